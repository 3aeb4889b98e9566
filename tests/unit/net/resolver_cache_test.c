/*
 * Tests of net/resolver.h: what is kept and for how long, what is answered without DNS, search,
 * changed files, cancelling, and running out of memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "resolver_rig.h"

#include <stdio.h>

#include "base/mem.h"

#define A_RULE(host, seconds)                                                                      \
    (struct test_dns_rule)                                                                         \
    {                                                                                              \
        .name = (host), .ttl = (seconds), .addrs = { "192.0.2.1" }                                 \
    }

static void an_answer_is_kept_as_long_as_its_ttl_says(void **state)
{
    struct rig *rig = *state;
    test_dns_add(&rig->dns[0], A_RULE("a.example", 60));
    assert_found(rig, "a.example", "", "192.0.2.1 ");
    go_by(rig, 59999);
    assert_found(rig, "a.example", "", "192.0.2.1 ");
    assert_int_equal(rig->dns[0].asked, 2);
    rig->dns[0].rules[0].addrs[0] = "192.0.2.2";
    go_by(rig, 1);
    assert_found(rig, "a.example", "", "192.0.2.2 ");
    assert_int_equal(rig->dns[0].asked, 4);
}

static void ttls_are_kept_within_bounds(void **state)
{
    struct rig *rig = *state;
    static const struct {
        uint32_t ttl;
        uint64_t ms;
    } cases[] = {{0, 1000}, {7200, 3600000}, {UINT32_MAX, 1000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rig->dns[0].rule_count = 0;
        rig->dns[0].asked = 0;
        test_dns_add(&rig->dns[0], A_RULE("a.example", cases[i].ttl));
        assert_found(rig, "a.example", "", "192.0.2.1 ");
        go_by(rig, cases[i].ms - 1);
        assert_found(rig, "a.example", "", "192.0.2.1 ");
        assert_int_equal(rig->dns[0].asked, 2);
        go_by(rig, 1);
        assert_found(rig, "a.example", "", "192.0.2.1 ");
        assert_int_equal(rig->dns[0].asked, 4);
        go_by(rig, cases[i].ms);
    }
}

static void that_there_is_none_is_kept_for_a_short_time(void **state)
{
    struct rig *rig = *state;
    assert_error(rig, "a.example", LEAT_ENOTFOUND, "a.example: no such name (NXDOMAIN)");
    go_by(rig, 4999);
    assert_error(rig, "a.example", LEAT_ENOTFOUND, "a.example: no such name (NXDOMAIN)");
    assert_int_equal(rig->dns[0].asked, 2);
    test_dns_add(&rig->dns[0], A_RULE("a.example", 60));
    go_by(rig, 1);
    assert_found(rig, "a.example", "", "192.0.2.1 ");
}

static void a_failure_is_kept_for_a_second(void **state)
{
    struct rig *rig = *state;
    struct asker askers[2] = {0};
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "a.example", .rcode = 2});
    for (int i = 0; i < 2; i++) {
        look_up(rig, &askers[i], "a.example");
        await(&askers[i]);
        assert_int_equal(askers[i].err.status, LEAT_EIO);
        go_by(rig, 999);
    }
    assert_int_equal(rig->dns[0].asked, 2);
    rig->dns[0].rule_count = 0;
    test_dns_add(&rig->dns[0], A_RULE("a.example", 60));
    assert_found(rig, "a.example", "", "192.0.2.1 ");
}

static void however_many_ask_dns_is_asked_once(void **state)
{
    struct rig *rig = *state;
    struct asker *askers = calloc(1000, sizeof(*askers));
    test_dns_add(&rig->dns[0], A_RULE("a.example", 60));
    for (int i = 0; i < 1000; i++)
        look_up(rig, &askers[i], "a.example");
    for (int i = 0; i < 1000; i++) {
        await(&askers[i]);
        assert_string_equal(askers[i].v4, "192.0.2.1 ");
    }
    assert_int_equal(rig->dns[0].asked, 2);
    free(askers);
}

static void the_longest_unused_are_forgotten_over_the_limit(void **state)
{
    struct rig *rig = *state;
    rig->config.cache_max = 2;
    test_dns_add(&rig->dns[0], A_RULE("a.example", 60));
    test_dns_add(&rig->dns[0], A_RULE("b.example", 60));
    test_dns_add(&rig->dns[0], A_RULE("c.example", 60));
    assert_found(rig, "a.example", "", "192.0.2.1 ");
    assert_found(rig, "b.example", "", "192.0.2.1 ");
    assert_found(rig, "a.example", "", "192.0.2.1 ");
    assert_found(rig, "c.example", "", "192.0.2.1 ");
    assert_found(rig, "a.example", "", "192.0.2.1 ");
    assert_int_equal(rig->dns[0].asked, 6);
    assert_found(rig, "b.example", "", "192.0.2.1 ");
    assert_int_equal(rig->dns[0].asked, 8);
}

static void what_is_being_asked_for_is_not_forgotten(void **state)
{
    struct rig *rig = *state;
    struct asker askers[3] = {0};
    static const char *const names[] = {"a.example", "b.example", "a.example"};
    rig->config.cache_max = 1;
    for (int i = 0; i < 2; i++)
        test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = names[i],
                                                          .action = TEST_DNS_HOLD,
                                                          .addrs = {"192.0.2.1"}});
    for (int i = 0; i < 3; i++)
        look_up(rig, &askers[i], names[i]);
    await_asked(rig, 0, 4);
    test_settle(rig->loop);
    assert_int_equal(rig->dns[0].asked, 4); /* the third has joined the first */
    test_dns_let_go(&rig->dns[0]);
    for (int i = 0; i < 3; i++) {
        await(&askers[i]);
        assert_string_equal(askers[i].v4, "192.0.2.1 ");
    }
}

static void numeric_addresses_and_localhost_are_never_asked(void **state)
{
    struct rig *rig = *state;
    rig_write(rig->hosts_fd, "192.0.2.9 localhost a.localhost\n");
    assert_found(rig, "192.0.2.5", "", "192.0.2.5 ");
    assert_found(rig, "2001:db8::5", "2001:db8::5 ", "");
    assert_found(rig, "fe80::1%1", "fe80::1 ", "");
    assert_found(rig, "localhost", "::1 ", "127.0.0.1 ");
    assert_found(rig, "LOCALHOST.", "::1 ", "127.0.0.1 ");
    assert_found(rig, "a.localhost", "::1 ", "127.0.0.1 ");
    assert_int_equal(rig->dns[0].asked, 0);
    assert_error(rig, "nolocalhost", LEAT_ENOTFOUND, "nolocalhost: no such name (NXDOMAIN)");
    assert_int_equal(rig->dns[0].asked, 2);
}

static void hosts_go_before_dns_and_are_read_again_when_they_change(void **state)
{
    struct rig *rig = *state;
    rig_write(rig->hosts_fd, "# a comment\n192.0.2.9\tA.example alias # b.example\n"
                             "2001:db8::9 a.example\nnonsense a.example\n192.0.2.8 alias");
    test_dns_add(&rig->dns[0], A_RULE("a.example", 60));
    assert_found(rig, "a.example", "2001:db8::9 ", "192.0.2.9 ");
    assert_found(rig, "a.Example.", "2001:db8::9 ", "192.0.2.9 ");
    assert_found(rig, "alias", "", "192.0.2.9 192.0.2.8 ");
    assert_int_equal(rig->dns[0].asked, 0);
    assert_error(rig, "b.example", LEAT_ENOTFOUND, "b.example: no such name (NXDOMAIN)");
    rig_write(rig->hosts_fd, "192.0.2.7 a.example\n");
    assert_found(rig, "a.example", "2001:db8::9 ", "192.0.2.9 ");
    go_by(rig, 5000);
    assert_found(rig, "a.example", "", "192.0.2.7 ");
    rig_write(rig->hosts_fd, "");
    go_by(rig, 5000);
    assert_found(rig, "a.example", "", "192.0.2.1 ");
}

static void names_are_searched_as_resolv_conf_says(void **state)
{
    struct rig *rig = *state;
    rig_write(rig->resolv_conf_fd, "search one.example two.example.\n");
    test_dns_add(&rig->dns[0], A_RULE("rabbit.two.example", 60));
    test_dns_add(&rig->dns[0], A_RULE("rabbit.dotted", 60));
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "bad.one.example", .rcode = 2});
    test_dns_add(&rig->dns[0], A_RULE("bad.two.example", 60));
    assert_found(rig, "rabbit", "", "192.0.2.1 ");
    assert_int_equal(rig->dns[0].asked, 4);
    assert_found(rig, "rabbit.dotted", "", "192.0.2.1 "); /* as it is first */
    assert_int_equal(rig->dns[0].asked, 6);
    assert_error(rig, "rabbit.", LEAT_ENOTFOUND, "rabbit.: no such name (NXDOMAIN)");
    assert_int_equal(rig->dns[0].asked, 8);
    assert_error(rig, "hare", LEAT_ENOTFOUND,
                 "hare: no such name (NXDOMAIN); also searched in one.example, two.example");
    assert_int_equal(rig->dns[0].asked, 14);
    assert_found(rig, "bad", "", "192.0.2.1 "); /* another may know it */
}

static void search_can_be_switched_off(void **state)
{
    struct rig *rig = *state;
    rig_write(rig->resolv_conf_fd, "search one.example\n");
    rig->config.is_search_off = true;
    test_dns_add(&rig->dns[0], A_RULE("rabbit.one.example", 60));
    assert_error(rig, "rabbit", LEAT_ENOTFOUND, "rabbit: no such name (NXDOMAIN)");
}

static void a_silent_server_ends_the_search(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {0};
    rig_write(rig->resolv_conf_fd, "search one.example\noptions timeout:1 attempts:1\n");
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "rabbit.one.example", .action = TEST_DNS_SILENT});
    look_up(rig, &asker, "rabbit");
    await_asked(rig, 0, 2);
    go_by(rig, 1000);
    assert_int_equal(asker.lasts, 1);
    assert_int_equal(asker.err.status, LEAT_ETIMEOUT);
    assert_int_equal(rig->dns[0].asked, 2);
}

static void a_changed_resolv_conf_is_in_force_for_what_follows(void **state)
{
    struct rig *rig = *state;
    struct asker old = {0};
    rig->config.timeout_ms = 60000;
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "slow.example",
                                                      .action = TEST_DNS_HOLD,
                                                      .addrs = {"192.0.2.1"}});
    test_dns_add(&rig->dns[0], A_RULE("a.example", 3600));
    test_dns_add(&rig->dns[0], A_RULE("a.new.example", 3600));
    assert_found(rig, "a.example", "", "192.0.2.1 ");
    look_up(rig, &old, "slow.example");
    await_asked(rig, 0, 4);
    rig_write(rig->resolv_conf_fd, "search new.example\noptions ndots:2\n");
    go_by(rig, 4999);
    assert_found(rig, "a.example", "", "192.0.2.1 ");
    assert_int_equal(rig->dns[0].asked, 4);
    go_by(rig, 1);
    assert_found(rig, "a.example", "", "192.0.2.1 "); /* asked anew: a.example.new.example first */
    assert_int_equal(rig->dns[0].asked, 8);
    test_dns_let_go(&rig->dns[0]);
    await(&old);
    assert_string_equal(old.v4, "192.0.2.1 ");
}

static void a_cancelled_lookup_is_told_once(void **state)
{
    struct rig *rig = *state;
    struct asker askers[3] = {0};
    test_dns_add(&rig->dns[0], A_RULE("a.example", 60));
    for (int i = 0; i < 3; i++)
        look_up(rig, &askers[i], "a.example");
    leat_lookup_cancel(&askers[1].lookup);
    leat_lookup_cancel(&askers[1].lookup);
    assert_int_equal(askers[1].calls, 0);
    test_poll(rig->loop);
    assert_int_equal(askers[1].lasts, 1);
    assert_int_equal(askers[1].err.status, LEAT_ECANCELLED);
    for (int i = 0; i < 3; i += 2) {
        await(&askers[i]);
        assert_string_equal(askers[i].v4, "192.0.2.1 ");
    }
    leat_lookup_cancel(&askers[0].lookup); /* it is not open */
    test_settle(rig->loop);
    for (int i = 0; i < 3; i++)
        assert_int_equal(askers[i].calls, 1);
}

static void what_is_told_already_can_be_cancelled_in_the_callback(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {.cancels = true}, known = {.cancels = true};
    test_dns_add(
        &rig->dns[0],
        (struct test_dns_rule){.name = "a.example", .family = AF_INET, .action = TEST_DNS_HOLD});
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "a.example", .addrs = {"2001:db8::1"}});
    look_up(rig, &asker, "a.example");
    await(&asker);
    assert_int_equal(asker.calls, 2);
    assert_int_equal(asker.err.status, LEAT_ECANCELLED);
    look_up(rig, &known, "localhost");
    test_settle(rig->loop);
    assert_int_equal(known.calls, 1);
    /* One that was about to be told is cancelled nevertheless. */
    known = (struct asker){0};
    look_up(rig, &known, "localhost");
    leat_lookup_cancel(&known.lookup);
    test_settle(rig->loop);
    assert_int_equal(known.calls, 1);
    assert_int_equal(known.err.status, LEAT_ECANCELLED);
    test_dns_let_go(&rig->dns[0]);
}

static void freeing_the_resolver_cancels_what_is_open(void **state)
{
    struct rig *rig = *state;
    struct asker open[2] = {0}, known = {.frees = true};
    test_dns_add(&rig->dns[0], (struct test_dns_rule){
                                   .name = "a.example", .family = AF_INET, .addrs = {"192.0.2.1"}});
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "a.example", .action = TEST_DNS_SILENT});
    for (int i = 0; i < 2; i++)
        look_up(rig, &open[i], "a.example");
    TURN_UNTIL(rig->loop, open[0].calls == 1 && open[1].calls == 1);
    look_up(rig, &known, "localhost");
    await(&known);
    assert_null(rig->resolver);
    test_settle(rig->loop);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open[i].calls, 2);
        assert_int_equal(open[i].err.status, LEAT_ECANCELLED);
    }
}

/* Looks up what needs most of all; what is told is right, or that memory is short. */
static void rehearse(struct rig *rig, unsigned n)
{
    struct asker asker = {0}, local = {0};
    struct leat_error err = {0};
    leat_mem_fail_after(n);
    enum leat_status status = leat_resolver_new(rig->loop, &rig->config, &rig->resolver, &err);
    if (status != LEAT_OK) {
        assert_int_equal(status, LEAT_ENOMEM);
        assert_null(rig->resolver);
        return;
    }
    look_up(rig, &asker, "a");
    look_up(rig, &local, "localhost");
    await(&asker);
    await(&local);
    leat_mem_fail_after(0);
    if (asker.err.status == LEAT_OK)
        assert_true(strcmp(asker.v4, "192.0.2.1 ") == 0 || strcmp(asker.v6, "::1 ") == 0);
    else
        assert_int_equal(asker.err.status, LEAT_ENOMEM);
    if (local.err.status != LEAT_ENOMEM)
        assert_string_equal(local.v4, "127.0.0.1 ");
    /* It was not kept as an answer. */
    if (asker.err.status == LEAT_ENOMEM)
        assert_found(rig, "a", "::1 ", "192.0.2.1 ");
    leat_resolver_free(rig->resolver);
    rig->resolver = NULL;
    test_settle(rig->loop);
}

static void running_out_of_memory_costs_one_lookup(void **state)
{
    struct rig *rig = *state;
    rig_write(rig->hosts_fd, "192.0.2.9 b\n");
    rig_write(rig->resolv_conf_fd, "search one.example\n");
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "a.one.example", .addrs = {"192.0.2.1", "::1"}});
    for (unsigned n = 1; n < 30; n++)
        rehearse(rig, n);
    leat_mem_fail_after(0);
}

static void a_file_that_cannot_be_read_is_told(void **state)
{
    struct rig *rig = *state;
    struct leat_error err;
    rig->config.hosts_path = "/";
    assert_int_equal(leat_resolver_new(rig->loop, &rig->config, &rig->resolver, &err), LEAT_EIO);
    assert_string_equal(err.text, "reading /: Is a directory");
    rig->config.hosts_path = "/nowhere/hosts";
    rig->config.resolv_conf_path = "/nowhere/resolv.conf";
    assert_error(rig, "a.example", LEAT_ENOTFOUND, "a.example: no such name (NXDOMAIN)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(an_answer_is_kept_as_long_as_its_ttl_says),
        WITH_RIG(ttls_are_kept_within_bounds),
        WITH_RIG(that_there_is_none_is_kept_for_a_short_time),
        WITH_RIG(a_failure_is_kept_for_a_second),
        WITH_RIG(however_many_ask_dns_is_asked_once),
        WITH_RIG(the_longest_unused_are_forgotten_over_the_limit),
        WITH_RIG(what_is_being_asked_for_is_not_forgotten),
        WITH_RIG(numeric_addresses_and_localhost_are_never_asked),
        WITH_RIG(hosts_go_before_dns_and_are_read_again_when_they_change),
        WITH_RIG(names_are_searched_as_resolv_conf_says),
        WITH_RIG(search_can_be_switched_off),
        WITH_RIG(a_silent_server_ends_the_search),
        WITH_RIG(a_changed_resolv_conf_is_in_force_for_what_follows),
        WITH_RIG(a_cancelled_lookup_is_told_once),
        WITH_RIG(what_is_told_already_can_be_cancelled_in_the_callback),
        WITH_RIG(freeing_the_resolver_cancels_what_is_open),
        WITH_RIG(running_out_of_memory_costs_one_lookup),
        WITH_RIG(a_file_that_cannot_be_read_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
