/*
 * Tests of net/stream.h: streams that connect, and what became of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "connect_rig.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"

struct fixture {
    struct rig *rig;
    struct hosts hosts;
    struct test_user user;
    struct leat_connect_target target; /* the first host */
};

static void open_fixture(struct fixture *f, struct rig *rig)
{
    *f = (struct fixture){.rig = rig};
    open_hosts(&f->hosts, "127.0.0.2", "127.0.0.3");
    f->target = (struct leat_connect_target){.addrs = f->hosts.addrs, .addr_count = 1};
    test_user_init(&f->user, rig->loop);
}

static void close_fixture(struct fixture *f)
{
    test_user_fini(&f->user);
    close_hosts(&f->hosts);
}

static void start(struct fixture *f)
{
    struct leat_stream_user user = test_user_of(&f->user);
    f->user.in_call = true;
    assert_int_equal(leat_stream_connect(f->rig->loop, &f->target, &user, &f->user.stream, NULL),
                     LEAT_OK);
    f->user.in_call = false;
}

/* The stream is open to host I, and bytes go both ways. */
static void assert_open_to(struct fixture *f, int i)
{
    struct leat_addr peer;
    char got[8] = "";
    TURN_UNTIL(f->rig->loop, f->user.told[TEST_OPENED] > 0);
    assert_int_equal(f->user.told[TEST_CONNECTED], 1);
    leat_stream_peer_addr(f->user.stream, &peer);
    assert_true(leat_addr_is_equal(&peer, &f->hosts.addrs[i]));
    int fd = accept4(f->hosts.fds[i], NULL, NULL, 0);
    test_user_write(&f->user, "question", 8);
    assert_int_equal(read(fd, got, sizeof(got)), 8);
    assert_memory_equal(got, "question", 8);
    assert_int_equal(write(fd, "answer", 6), 6);
    TURN_UNTIL(f->rig->loop, f->user.got_len >= 6);
    assert_memory_equal(f->user.got, "answer", 6);
    (void)close(fd);
}

static void it_connects(void **state)
{
    struct fixture f;
    struct leat_addr peer;
    open_fixture(&f, *state);
    start(&f);
    leat_stream_peer_addr(f.user.stream, &peer);
    assert_int_equal(peer.ss.ss_family, AF_UNSPEC);
    assert_open_to(&f, 0);
    close_fixture(&f);
}

static void it_connects_to_a_unix_socket(void **state)
{
    struct fixture f;
    char path[64];
    struct leat_addr addr, peer;
    int fd;

    open_fixture(&f, *state);
    (void)snprintf(path, sizeof(path), "/tmp/leat-connect-%d.sock", (int)getpid());
    assert_int_equal(leat_addr_from_path((struct leat_str){path, strlen(path)}, &addr, NULL),
                     LEAT_OK);
    assert_int_equal(leat_addr_listen(&addr, &fd, NULL), LEAT_OK);
    f.target.addrs = &addr;
    start(&f);
    TURN_UNTIL(f.rig->loop, f.user.told[TEST_OPENED] > 0);
    leat_stream_peer_addr(f.user.stream, &peer);
    assert_true(leat_addr_is_equal(&peer, &addr));
    (void)close(fd);
    (void)unlink(path);
    close_fixture(&f);
}

static void it_connects_to_the_second_address(void **state)
{
    struct fixture f;
    open_fixture(&f, *state);
    fill_host(&f.hosts, 0);
    f.target.addr_count = 2;
    start(&f);
    go_by(f.rig, 250);
    assert_open_to(&f, 1);
    close_fixture(&f);
}

static void it_connects_to_a_name(void **state)
{
    struct fixture f;
    open_fixture(&f, *state);
    test_dns_add(&f.rig->dns[0],
                 (struct test_dns_rule){.name = "rabbit.example", .addrs = {"127.0.0.3"}});
    rig_open(f.rig);
    f.target = (struct leat_connect_target){.name = "rabbit.example",
                                            .port = leat_addr_port(&f.hosts.addrs[0]),
                                            .resolver = f.rig->resolver};
    start(&f);
    assert_open_to(&f, 1);
    close_fixture(&f);
}

static void a_refused_connection_names_the_address(void **state)
{
    struct fixture f;
    char expected[240];
    open_fixture(&f, *state);
    close_host(&f.hosts, 0);
    start(&f);
    TURN_UNTIL(f.rig->loop, f.user.told[TEST_FAILED] > 0);
    assert_int_equal(test_user_read(&f.user), LEAT_EIO);
    (void)snprintf(expected, sizeof(expected), "connecting to 127.0.0.2:%u: Connection refused",
                   leat_addr_port(&f.hosts.addrs[0]));
    assert_string_equal(f.user.error.text, expected);
    assert_int_equal(f.user.error.status, LEAT_EIO);
    assert_int_equal(f.user.error.sys, ECONNREFUSED);
    assert_int_equal(f.user.told[TEST_CONNECTED], 0);
    leat_stream_finish(f.user.stream, 1000, 1000);
    TURN_UNTIL(f.rig->loop, f.user.told[TEST_CLOSED] > 0);
    assert_int_equal(f.user.told[TEST_FAILED], 1);
    close_fixture(&f);
}

static void closing_while_it_connects_tells_only_that(void **state)
{
    struct fixture f;
    open_fixture(&f, *state);
    test_dns_add(&f.rig->dns[0],
                 (struct test_dns_rule){.name = "rabbit.example", .action = TEST_DNS_SILENT});
    rig_open(f.rig);
    for (int i = 0; i < 2; i++) {
        f.user.told[TEST_CLOSED] = 0;
        start(&f);
        leat_stream_close(f.user.stream);
        leat_stream_close(f.user.stream);
        test_poll(f.rig->loop); /* at the end of the turn */
        assert_null(f.user.stream);
        f.target = (struct leat_connect_target){
            .name = "rabbit.example", .port = 5672, .resolver = f.rig->resolver};
    }
    for (int event = 0; event < TEST_EVENTS; event++)
        assert_int_equal(f.user.told[event], event == TEST_CLOSED);
    close_fixture(&f);
}

static void every_event_may_close(void **state)
{
    static const enum test_event events[] = {TEST_CONNECTED, TEST_OPENED, TEST_FAILED};
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        struct fixture f;
        open_fixture(&f, *state);
        if (events[i] == TEST_FAILED)
            close_host(&f.hosts, 0);
        f.user.close_in = (int)events[i];
        start(&f);
        TURN_UNTIL(f.rig->loop, f.user.stream == NULL);
        assert_int_equal(f.user.told[events[i]], 1);
        assert_int_equal(f.user.told[TEST_CLOSED], 1);
        close_fixture(&f);
    }
}

static void running_out_of_memory_costs_one_stream(void **state)
{
    struct fixture f;
    open_fixture(&f, *state);
    struct leat_stream_user user = test_user_of(&f.user);
    for (unsigned n = 1; n <= 3; n++) {
        struct leat_error err;
        leat_mem_fail_after(n);
        assert_int_equal(leat_stream_connect(f.rig->loop, &f.target, &user, &f.user.stream, &err),
                         LEAT_ENOMEM);
        assert_string_equal(err.text, "out of memory for a connection");
        assert_null(f.user.stream);
    }
    leat_mem_fail_after(0);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(it_connects),
        WITH_RIG(it_connects_to_a_unix_socket),
        WITH_RIG(it_connects_to_the_second_address),
        WITH_RIG(it_connects_to_a_name),
        WITH_RIG(a_refused_connection_names_the_address),
        WITH_RIG(closing_while_it_connects_tells_only_that),
        WITH_RIG(every_event_may_close),
        WITH_RIG(running_out_of_memory_costs_one_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
