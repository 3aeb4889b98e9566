/*
 * Tests of net/connect.h with names, whose addresses come in pieces.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "connect_rig.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"

/* A host of IPv4 and one that stands for IPv6: an address of IPv6 as DNS has it where there is
 * IPv6, so what needs one is skipped where there is none. */
static void open_both(struct hosts *hosts)
{
    open_hosts(hosts, "::1", "127.0.0.1");
}

static struct leat_connect_target named(struct rig *rig, const struct hosts *hosts)
{
    rig_open(rig);
    return (struct leat_connect_target){.name = "rabbit.example",
                                        .port = leat_addr_port(&hosts->addrs[0]),
                                        .resolver = rig->resolver};
}

static struct test_dns_rule *answer(struct rig *rig, int family, enum test_dns_action action,
                                    const char *first, const char *second)
{
    return test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "rabbit.example",
                                                             .family = family,
                                                             .action = action,
                                                             .ttl = 60,
                                                             .addrs = {first, second}});
}

static void a_name_is_looked_up_and_all_its_addresses_tried(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    close_host(&hosts, 0);
    answer(rig, 0, TEST_DNS_ANSWER, "127.0.0.2", "127.0.0.3");
    struct leat_connect_target target = named(rig, &hosts);
    begin(rig, &caller, &target);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_connected_to(&caller, &hosts.addrs[1]);
    end(&caller);
    close_hosts(&hosts);
}

static void a_numeric_name_needs_no_dns(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    struct leat_connect_target target = named(rig, &hosts);
    target.name = "127.0.0.3";
    begin(rig, &caller, &target);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_connected_to(&caller, &hosts.addrs[1]);
    assert_int_equal(rig->dns[0].asked, 0);
    end(&caller);
    close_hosts(&hosts);
}

static void ipv6_is_waited_for_a_moment(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    answer(rig, AF_INET6, TEST_DNS_SILENT, NULL, NULL);
    answer(rig, AF_INET, TEST_DNS_ANSWER, "127.0.0.2", NULL);
    struct leat_connect_target target = named(rig, &hosts);
    begin(rig, &caller, &target);
    await_asked(rig, 0, 2);
    go_by(rig, 0);
    go_by(rig, 49);
    assert_int_equal(connects(rig), 0);
    go_by(rig, 1);
    assert_int_equal(connects(rig), 1);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_connected_to(&caller, &hosts.addrs[0]);
    end(&caller);
    close_hosts(&hosts);
}

static void ipv4_is_not_waited_for_if_ipv6_is_not_first(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    answer(rig, AF_INET6, TEST_DNS_SILENT, NULL, NULL);
    answer(rig, AF_INET, TEST_DNS_ANSWER, "127.0.0.2", NULL);
    struct leat_connect_target target = named(rig, &hosts);
    target.is_ipv4_first = true;
    begin(rig, &caller, &target);
    TURN_UNTIL(rig->loop, caller.calls > 0); /* the clock stands still */
    assert_connected_to(&caller, &hosts.addrs[0]);
    end(&caller);
    close_hosts(&hosts);
}

static void that_there_is_no_ipv6_ends_the_waiting(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    answer(rig, AF_INET6, TEST_DNS_HOLD, NULL, NULL);
    answer(rig, AF_INET, TEST_DNS_ANSWER, "127.0.0.2", NULL);
    struct leat_connect_target target = named(rig, &hosts);
    begin(rig, &caller, &target);
    await_asked(rig, 0, 2);
    go_by(rig, 20);
    assert_int_equal(connects(rig), 0);
    test_dns_let_go(&rig->dns[0]);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_connected_to(&caller, &hosts.addrs[0]);
    end(&caller);
    close_hosts(&hosts);
}

static void ipv6_goes_first_if_it_is_there_in_time(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    require_ipv6();
    open_both(&hosts);
    answer(rig, AF_INET6, TEST_DNS_HOLD, "::1", NULL);
    answer(rig, AF_INET, TEST_DNS_ANSWER, "127.0.0.1", NULL);
    struct leat_connect_target target = named(rig, &hosts);
    begin(rig, &caller, &target);
    await_asked(rig, 0, 2);
    go_by(rig, 49);
    test_dns_let_go(&rig->dns[0]);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_connected_to(&caller, &hosts.addrs[0]);
    assert_int_equal(connects(rig), 1);
    end(&caller);
    close_hosts(&hosts);
}

static void addresses_that_come_late_join_in(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    require_ipv6();
    open_both(&hosts);
    fill_host(&hosts, 1);
    answer(rig, AF_INET6, TEST_DNS_HOLD, "::1", NULL);
    answer(rig, AF_INET, TEST_DNS_ANSWER, "127.0.0.1", NULL);
    struct leat_connect_target target = named(rig, &hosts);
    begin(rig, &caller, &target);
    await_asked(rig, 0, 2);
    go_by(rig, 0);
    go_by(rig, 50);
    assert_int_equal(connects(rig), 1);
    test_dns_let_go(&rig->dns[0]);
    go_by(rig, 249);
    assert_int_equal(connects(rig), 1);
    go_by(rig, 1);
    assert_int_equal(connects(rig), 2);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_connected_to(&caller, &hosts.addrs[0]);
    end(&caller);
    close_hosts(&hosts);
}

static void a_family_that_refuses_leaves_the_other_to_be_awaited(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    char expected[240];
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    close_host(&hosts, 0);
    answer(rig, AF_INET6, TEST_DNS_HOLD, NULL, NULL);
    answer(rig, AF_INET, TEST_DNS_ANSWER, "127.0.0.2", NULL);
    struct leat_connect_target target = named(rig, &hosts);
    begin(rig, &caller, &target);
    await_asked(rig, 0, 2);
    go_by(rig, 0);
    go_by(rig, 50);
    go_by(rig, 300);
    assert_int_equal(connects(rig), 1);
    assert_int_equal(caller.calls, 0);
    test_dns_let_go(&rig->dns[0]);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    (void)snprintf(expected, sizeof(expected),
                   "connecting to rabbit.example:%u: 127.0.0.2: Connection refused", target.port);
    assert_string_equal(caller.err.text, expected);
    assert_int_equal(caller.err.sys, ECONNREFUSED);
    end(&caller);
    close_hosts(&hosts);
}

static void a_name_without_addresses_is_told(void **state)
{
    struct rig *rig = *state;
    struct caller caller = {0};
    struct hosts hosts = {0};
    struct leat_connect_target target = named(rig, &hosts);
    begin(rig, &caller, &target);
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_string_equal(caller.err.text, "rabbit.example: no such name (NXDOMAIN)");
    assert_int_equal(caller.err.status, LEAT_ENOTFOUND);
    assert_int_equal(caller.err.sys, 0);
    end(&caller);
}

static void it_can_be_cancelled_while_the_name_is_looked_up(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    fill_host(&hosts, 0);
    answer(rig, AF_INET6, TEST_DNS_SILENT, NULL, NULL);
    answer(rig, AF_INET, TEST_DNS_ANSWER, "127.0.0.2", NULL);
    struct leat_connect_target target = named(rig, &hosts);
    for (int attempts = 0; attempts < 2; attempts++) {
        struct caller caller = {0};
        begin(rig, &caller, &target);
        await_asked(rig, 0, 2);
        go_by(rig, 0);
        go_by(rig, attempts == 0 ? 0 : 50);
        assert_int_equal(connects(rig), attempts);
        leat_connect_cancel(caller.connect);
        assert_int_equal(caller.calls, 0);
        test_poll(rig->loop);
        assert_int_equal(caller.calls, 1);
        assert_int_equal(caller.err.status, LEAT_ECANCELLED);
        test_settle(rig->loop);
        end(&caller);
    }
    close_hosts(&hosts);
}

static void it_can_be_cancelled_when_it_has_connected_but_not_told(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    struct caller caller = {0};
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    struct leat_connect_target target = {.addrs = hosts.addrs, .addr_count = 1};
    begin(rig, &caller, &target);
    /* What the loop would do. */
    caller.io.ready |= LEAT_IO_WRITABLE;
    caller.io.fn(&caller.io, caller.io.arg);
    assert_int_equal(caller.calls, 0);
    leat_connect_cancel(caller.connect);
    assert_int_equal(caller.io.fd, -1);
    test_poll(rig->loop);
    assert_int_equal(caller.err.status, LEAT_ECANCELLED);
    end(&caller);
    close_hosts(&hosts);
}

static void freeing_the_resolver_ends_the_waiting_for_a_name(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts = {0};
    struct caller caller = {0};
    answer(rig, 0, TEST_DNS_SILENT, NULL, NULL);
    struct leat_connect_target target = named(rig, &hosts);
    begin(rig, &caller, &target);
    await_asked(rig, 0, 2);
    leat_resolver_free(rig->resolver);
    rig->resolver = NULL;
    TURN_UNTIL(rig->loop, caller.calls > 0);
    assert_int_equal(caller.err.status, LEAT_ECANCELLED);
    end(&caller);
}

static void running_out_of_memory_costs_one_connection(void **state)
{
    struct rig *rig = *state;
    struct hosts hosts;
    open_hosts(&hosts, "127.0.0.2", "127.0.0.3");
    close_host(&hosts, 0);
    answer(rig, 0, TEST_DNS_ANSWER, "127.0.0.2", "127.0.0.3");
    struct leat_connect_target target = named(rig, &hosts);
    for (unsigned n = 1; n < 14; n++) {
        struct caller caller = {0};
        leat_mem_fail_after(n);
        if (leat_connect_start(&caller.io, rig->loop, &target, on_connect, &caller,
                               &caller.connect) != LEAT_OK)
            continue;
        TURN_UNTIL(rig->loop, caller.calls > 0);
        leat_mem_fail_after(0);
        if (caller.err.status == LEAT_OK)
            assert_connected_to(&caller, &hosts.addrs[1]);
        else
            assert_int_equal(caller.err.status, LEAT_ENOMEM);
        end(&caller);
        go_by(rig, 60000);
    }
    leat_mem_fail_after(0);
    close_hosts(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(a_name_is_looked_up_and_all_its_addresses_tried),
        WITH_RIG(a_numeric_name_needs_no_dns),
        WITH_RIG(ipv6_is_waited_for_a_moment),
        WITH_RIG(ipv4_is_not_waited_for_if_ipv6_is_not_first),
        WITH_RIG(that_there_is_no_ipv6_ends_the_waiting),
        WITH_RIG(ipv6_goes_first_if_it_is_there_in_time),
        WITH_RIG(addresses_that_come_late_join_in),
        WITH_RIG(a_family_that_refuses_leaves_the_other_to_be_awaited),
        WITH_RIG(a_name_without_addresses_is_told),
        WITH_RIG(it_can_be_cancelled_while_the_name_is_looked_up),
        WITH_RIG(it_can_be_cancelled_when_it_has_connected_but_not_told),
        WITH_RIG(freeing_the_resolver_ends_the_waiting_for_a_name),
        WITH_RIG(running_out_of_memory_costs_one_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
