/*
 * Tests of proxy/session.h with PROXY headers: who the client is, and what the broker is told.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>

#include "amqp/method.h"
#include "base/mem.h"

#define CLIENT (&rig.clients[0])
#define PROXIED "PROXY TCP4 203.0.113.7 192.0.2.1 40130 5671\r\n"
#define LOOPBACK "PROXY TCP4 127.0.0.9 192.0.2.1 40130 5671\r\n"
#define UNKNOWN "PROXY UNKNOWN\r\n"

static const char *const behind_loopback[] = {"listener.proxy_protocol", "127.0.0.0/8", NULL};
static const char *const behind_another[] = {"listener.proxy_protocol", "10.0.0.0/8", NULL};
static const char *const tells[] = {"listener.proxy_protocol", "127.0.0.0/8",
                                    "backend.proxy_protocol", "v1", NULL};

static struct wire wire_text_of(const char *text)
{
    struct wire wire = {0};

    wire_add(&wire, text, strlen(text));
    return wire;
}

static void the_client_is_the_headers(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, behind_loopback);
    (void)rig_connect(&rig, 0);
    side_give(CLIENT, wire_text_of(PROXIED));
    rig_client_opens(&rig, CLIENT, 0);
    UNTIL(&rig, rig_logged(&rig, "peer=203.0.113.7:40130 via=127.0.0.1:"));
    side_close(CLIENT);
    UNTIL(&rig, rig.worker->count.load == 0);
    rig_fini(&rig);
}

static void a_stranger_is_turned_away(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, behind_another);
    (void)rig_connect(&rig, 0);
    UNTIL(&rig, CLIENT->ended || CLIENT->reset);
    assert_true(rig_logged(&rig, "failed by=leat reason=\"it is none of the proxies that "
                                 "listeners[0].proxy_protocol names\" peer=127.0.0.1:"));
    assert_int_equal(rig.worker->count.silent, 0);
    rig_fini(&rig);
}

static void a_header_has_a_deadline(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, behind_loopback);
    (void)rig_connect(&rig, 0);
    side_give(CLIENT, wire_text_of("PROXY TCP4 "));
    rig_settle(&rig);
    rig_pass(&rig, 2900);
    assert_false(CLIENT->ended);
    rig_pass(&rig, 200);
    UNTIL(&rig, CLIENT->ended);
    assert_true(rig_logged(&rig, "no PROXY header in time (timeouts.proxy)"));
    rig_fini(&rig);
}

static void who_says_nothing_is_only_counted(void **state)
{
    static const char *const said[] = {"", UNKNOWN};

    (void)state;
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct rig rig;
        rig_init(&rig, 1, behind_loopback);
        (void)rig_connect(&rig, 0);
        side_give(CLIENT, wire_text_of(said[i]));
        rig_settle(&rig);
        side_close(CLIENT);
        UNTIL(&rig, rig.worker->count.silent == 1 && rig.worker->count.load == 0);
        assert_false(rig_logged(&rig, "failed"));
        rig_fini(&rig);
    }
}

/* guest is one of loopback_users. */
static void who_is_local(void **state)
{
    static const struct {
        const char *header;
        bool is_local;
    } cases[] = {{LOOPBACK, true}, {PROXIED, false}, {UNKNOWN, false}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig rig;
        rig_init(&rig, 1, behind_loopback);
        (void)rig_connect(&rig, 0);
        side_give(CLIENT, wire_text_of(cases[i].header));
        rig_client_opens(&rig, CLIENT, 0);
        if (cases[i].is_local)
            rig_broker_opens(&rig, rig_accept(&rig, 0), 0);
        else
            rig_expect_close(&rig, CLIENT, 403, "from the machine of the proxy");
        rig_fini(&rig);
    }
}

/* A proxy elsewhere may say of anybody that he is on its own loopback. */
static void another_machines_loopback_is_not_ours(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, behind_another);
    (void)rig_start(&rig, 0, "10.0.0.7:4711");
    side_give(CLIENT, wire_text_of(LOOPBACK));
    rig_client_opens(&rig, CLIENT, 0);
    rig_expect_close(&rig, CLIENT, 403, "from the machine of the proxy");
    rig_fini(&rig);
}

static void the_broker_is_told(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, tells);
    (void)rig_connect(&rig, 0);
    side_give(CLIENT, wire_text_of(LOOPBACK));
    rig_client_opens(&rig, CLIENT, 0);
    struct side *broker = rig_accept(&rig, 0);
    rig_expect(&rig, broker, wire_text_of(LOOPBACK));
    rig_expect(&rig, broker, wire_header());
    rig_fini(&rig);
}

/* Nothing is left over, whatever fails between the client's header and the broker's. */
static void every_allocation_may_fail(void **state)
{
    unsigned n = 0;
    bool has_failed;

    (void)state;
    do {
        struct rig rig;
        rig_init(&rig, 1, tells);
        leat_mem_fail_after(++n);
        (void)rig_connect(&rig, 0);
        side_give(CLIENT, wire_text_of(LOOPBACK));
        side_give(CLIENT, wire_header());
        side_give(CLIENT, wire_client_start_ok("guest"));
        side_give(CLIENT, wire_tune(LEAT_AMQP_CONNECTION_TUNE_OK, 100, 131072, 0));
        side_give(CLIENT, wire_open());
        rig_settle(&rig);
        leat_mem_fail_after(0);
        has_failed = rig.worker->count.failed + rig.worker->count.refused > 0 ||
                     rig_logged(&rig, "passed over");
        rig_fini(&rig);
        assert_true(n < 1000);
    } while (has_failed);
    assert_true(n > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_client_is_the_headers),
        cmocka_unit_test(a_stranger_is_turned_away),
        cmocka_unit_test(a_header_has_a_deadline),
        cmocka_unit_test(who_says_nothing_is_only_counted),
        cmocka_unit_test(who_is_local),
        cmocka_unit_test(another_machines_loopback_is_not_ours),
        cmocka_unit_test(the_broker_is_told),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
