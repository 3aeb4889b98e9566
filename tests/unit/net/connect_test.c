/*
 * Tests of net/connect.h: who is tried when, who wins, and what is said if nobody does. A host that
 * does not answer is a listener whose queue is full.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "connect_rig.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"

static void one_address_is_one_connect(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    struct leat_connect_target target = {.addrs = hosts.addrs, .addr_count = 1};
    begin(rig, &caller, &target);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_connected_to(&caller, &hosts.addrs[0]);
    assert_int_equal(caller.io.ready, LEAT_IO_WRITABLE); /* it was not moved */
    go_by(rig, 10000);
    assert_int_equal(connects(rig), 1);
    end(&caller);
    close_hosts(&hosts);
}

static void the_next_is_tried_at_once_when_one_refuses(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    close_host(&hosts, 0);
    struct leat_connect_target target = {.addrs = hosts.addrs, .addr_count = 2};
    begin(rig, &caller, &target);
    TURN_UNTIL(rig->loop, caller.calls > 0); /* the clock stands still */
    assert_connected_to(&caller, &hosts.addrs[1]);
    assert_int_equal(connects(rig), 2);
    end(&caller);
    close_hosts(&hosts);
}

static void a_turn_says_with_which_address_to_begin(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    for (size_t turn = 0; turn < 4; turn++) {
        struct caller caller = {0};
        struct leat_connect_target target = {.addrs = hosts.addrs, .addr_count = 2, .turn = turn};
        begin(rig, &caller, &target);
        TURN_UNTIL(rig->loop, caller.calls > 0);
        assert_connected_to(&caller, &hosts.addrs[turn % 2]);
        end(&caller);
    }
    close_host(&hosts, 1);
    struct caller caller = {0};
    struct leat_connect_target target = {.addrs = hosts.addrs, .addr_count = 2, .turn = 1};
    begin(rig, &caller, &target);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_connected_to(&caller, &hosts.addrs[0]); /* round to the first */
    end(&caller);
    close_hosts(&hosts);
}

static void one_that_does_not_answer_is_not_waited_for(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    char buf[8];
    size_t len = 0;
    int sys = 0;
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    fill_host(&hosts, 0);
    int before = free_fd();
    struct leat_connect_target target = {.addrs = hosts.addrs, .addr_count = 2};
    begin(rig, &caller, &target);
    go_by(rig, 249);
    assert_int_equal(connects(rig), 1);
    go_by(rig, 1);
    assert_int_equal(connects(rig), 2);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_connected_to(&caller, &hosts.addrs[1]);
    /* It was moved, and nothing it had to tell is lost. */
    int peer = accept4(hosts.fds[1], NULL, NULL, 0);
    assert_int_equal(write(peer, "hello", 5), 5);
    TURN_UNTIL(rig->loop, (caller.io.ready & LEAT_IO_READABLE) != 0);
    assert_true(caller.io.ready & LEAT_IO_WRITABLE);
    assert_int_equal(leat_io_recv(&caller.io, buf, sizeof(buf), &len, &sys), LEAT_OK);
    assert_int_equal(len, 5);
    (void)close(peer);
    end(&caller);
    assert_int_equal(free_fd(), before); /* the other attempt was closed, too */
    close_hosts(&hosts);
}

static void the_delay_can_be_set_and_there_is_no_deadline(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    fill_host(&hosts, 0);
    struct leat_addr addrs[] = {hosts.addrs[0], hosts.addrs[0], hosts.addrs[0]};
    struct leat_connect_target target = {.addrs = addrs, .addr_count = 3, .attempt_delay_ms = 20};
    begin(rig, &caller, &target);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(connects(rig), i);
        go_by(rig, 19);
        assert_int_equal(connects(rig), i);
        go_by(rig, 1);
    }
    go_by(rig, 100000);
    assert_int_equal(caller.calls, 0); /* the deadline is the caller's */
    leat_connect_cancel(caller.connect);
    test_poll(rig->loop);
    assert_int_equal(caller.err.status, LEAT_ECANCELLED);
    end(&caller);
    close_hosts(&hosts);
}

static void all_that_failed_is_named(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    char expected[240];
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    close_host(&hosts, 0);
    close_host(&hosts, 1);
    struct leat_addr odd = {.ss = {.ss_family = AF_UNSPEC}, .len = sizeof(odd.ss)};
    struct leat_addr addrs[] = {hosts.addrs[0], hosts.addrs[1], odd};
    struct leat_connect_target target = {.addrs = addrs, .addr_count = 3};
    begin(rig, &caller, &target);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    (void)snprintf(expected, sizeof(expected),
                   "connecting to unknown: Address family not supported by protocol; "
                   "127.0.0.2:%u, 127.0.0.3:%u: Connection refused",
                   leat_addr_port(&addrs[0]), leat_addr_port(&addrs[1]));
    assert_string_equal(caller.err.text, expected);
    assert_int_equal(caller.err.status, LEAT_EIO);
    assert_int_equal(caller.err.sys, ECONNREFUSED); /* says more than the other */
    end(&caller);
    target.addr_count = 1;
    caller = (struct caller){0};
    begin(rig, &caller, &target);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    (void)snprintf(expected, sizeof(expected), "connecting to 127.0.0.2:%u: Connection refused",
                   leat_addr_port(&addrs[0]));
    assert_string_equal(caller.err.text, expected);
    end(&caller);
}

static void a_lack_on_this_side_goes_before_what_peers_say(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    struct rlimit old, tight;
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    close_host(&hosts, 0);
    struct leat_connect_target target = {.addrs = hosts.addrs, .addr_count = 2};
    begin(rig, &caller, &target);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    tight = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(caller.err.sys, EMFILE);
    assert_non_null(strstr(caller.err.text, "Too many open files"));
    assert_non_null(strstr(caller.err.text, "Connection refused"));
    end(&caller);
    close_hosts(&hosts);
}

static void without_an_address_there_is_nothing_to_do(void **state)
{
    struct rig *rig = *state;
    struct caller caller = {0};
    struct leat_connect_target target = {.name = "nobody.example"};
    begin(rig, &caller, &target);
    test_poll(rig->loop);
    assert_int_equal(caller.err.status, LEAT_EUSAGE);
    end(&caller);
}

static void the_families_are_tried_in_turn(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    require_ipv6();
    for (int ipv4_first = 0; ipv4_first < 2; ipv4_first++) {
        struct caller caller = {0};
        open_hosts(&hosts, "::1", "127.0.0.1");
        struct leat_addr addrs[] = {hosts.addrs[1], hosts.addrs[0]};
        struct leat_connect_target target = {
            .addrs = addrs, .addr_count = 2, .is_ipv4_first = ipv4_first};
        begin(rig, &caller, &target);
        TURN_UNTIL(rig->loop, caller.calls > 0);
        assert_connected_to(&caller, &hosts.addrs[ipv4_first]);
        end(&caller);
        close_hosts(&hosts);
    }
    /* After one of IPv6 one of IPv4, however many of IPv6 there are. */
    struct caller caller = {0};
    open_hosts(&hosts, "::1", "127.0.0.1");
    close_host(&hosts, 0);
    struct leat_addr addrs[] = {hosts.addrs[0], hosts.addrs[0], hosts.addrs[1]};
    struct leat_connect_target target = {.addrs = addrs, .addr_count = 3};
    uint64_t before = connects(rig);
    begin(rig, &caller, &target);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_connected_to(&caller, &hosts.addrs[1]);
    assert_int_equal(connects(rig) - before, 2);
    end(&caller);
    close_hosts(&hosts);
}

static void running_out_of_memory_costs_one_address(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    fill_host(&hosts, 0);
    struct leat_addr addrs[] = {hosts.addrs[0], hosts.addrs[1]};
    struct leat_connect_target target = {.addrs = addrs, .addr_count = 2};
    for (unsigned n = 1; n <= 4; n++) {
        struct caller caller = {0};
        leat_mem_fail_after(n);
        enum leat_status status = leat_connect_start(&caller.io, rig->loop, &target, on_connect,
                                                     &caller, &caller.connect);
        assert_int_equal(status, n <= 2 ? LEAT_ENOMEM : LEAT_OK);
        if (status != LEAT_OK)
            continue;
        go_by(rig, 250);
        if (n == 3) { /* no room for a second attempt beside the first */
            assert_int_equal(caller.calls, 0);
            leat_connect_cancel(caller.connect);
        }
        TURN_UNTIL(rig->loop, caller.calls > 0);
        assert_int_equal(caller.err.status, n == 3 ? LEAT_ECANCELLED : LEAT_OK);
        end(&caller);
    }
    leat_mem_fail_after(0);
    close_hosts(&hosts);
}

static void cancelling_is_told_once(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    struct leat_connect_target target = {.addrs = hosts.addrs, .addr_count = 2};
    int before = free_fd();
    for (int i = 0; i < 2; i++) {
        struct caller caller = {0};
        begin(rig, &caller, &target);
        leat_connect_cancel(caller.connect);
        assert_int_equal(free_fd(), before); /* closed at once */
        assert_int_equal(caller.calls, 0);
        if (i == 1)
            leat_connect_cancel(caller.connect);
        test_poll(rig->loop);
        test_settle(rig->loop);
        assert_int_equal(caller.err.status, LEAT_ECANCELLED);
        end(&caller);
    }
    close_hosts(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(one_address_is_one_connect),
        WITH_RIG(the_next_is_tried_at_once_when_one_refuses),
        WITH_RIG(a_turn_says_with_which_address_to_begin),
        WITH_RIG(one_that_does_not_answer_is_not_waited_for),
        WITH_RIG(the_delay_can_be_set_and_there_is_no_deadline),
        WITH_RIG(all_that_failed_is_named),
        WITH_RIG(a_lack_on_this_side_goes_before_what_peers_say),
        WITH_RIG(without_an_address_there_is_nothing_to_do),
        WITH_RIG(the_families_are_tried_in_turn),
        WITH_RIG(running_out_of_memory_costs_one_address),
        WITH_RIG(cancelling_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
