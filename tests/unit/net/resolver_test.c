/*
 * Tests of net/resolver.h: what is answered, by whom, and how failures are told.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "resolver_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static void both_families_are_told_in_one_call_if_they_are_there(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {0};
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "rabbit.example",
                                        .ttl = 60,
                                        .addrs = {"192.0.2.1", "2001:db8::1", "192.0.2.2"}});
    assert_found(rig, "rabbit.example", "2001:db8::1 ", "192.0.2.1 192.0.2.2 ");
    look_up(rig, &asker, "RABBIT.example"); /* from the cache */
    test_poll(rig->loop);
    assert_int_equal(asker.calls, 1);
    assert_int_equal(asker.lasts, 1);
    assert_string_equal(asker.v6, "2001:db8::1 ");
    assert_string_equal(asker.v4, "192.0.2.1 192.0.2.2 ");
    assert_int_equal(rig->dns[0].asked, 2);
}

static void each_family_is_told_when_it_is_there(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {0}, later = {0};
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "slow.example",
                                                      .family = AF_INET6,
                                                      .action = TEST_DNS_HOLD,
                                                      .addrs = {"2001:db8::1"}});
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "slow.example", .addrs = {"192.0.2.1"}});
    look_up(rig, &asker, "slow.example");
    TURN_UNTIL(rig->loop, asker.calls > 0);
    assert_int_equal(asker.lasts, 0);
    assert_string_equal(asker.v6, "?");
    assert_string_equal(asker.v4, "192.0.2.1 ");
    look_up(rig, &later, "slow.example"); /* joins, and is told what is known */
    test_poll(rig->loop);
    assert_string_equal(later.v4, "192.0.2.1 ");
    assert_int_equal(later.lasts, 0);
    test_dns_let_go(&rig->dns[0]);
    await(&asker);
    await(&later);
    assert_int_equal(asker.calls, 2);
    assert_string_equal(asker.v6, "2001:db8::1 ");
    assert_string_equal(asker.v4, "192.0.2.1 "); /* not told twice */
    assert_string_equal(later.v6, "2001:db8::1 ");
    assert_int_equal(rig->dns[0].asked, 2);
}

static void a_family_that_is_never_answered_ends_without_addresses(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {0};
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "half.example",
                                                      .family = AF_INET6,
                                                      .action = TEST_DNS_SILENT});
    test_dns_add(&rig->dns[0], (struct test_dns_rule){
                                   .name = "half.example", .ttl = 600, .addrs = {"192.0.2.1"}});
    look_up(rig, &asker, "half.example");
    TURN_UNTIL(rig->loop, asker.calls > 0);
    for (unsigned i = 3; i <= 4; i++) {
        go_by(rig, 2000);
        await_asked(rig, 0, i);
    }
    assert_int_equal(asker.lasts, 0);
    go_by(rig, 2000);
    assert_int_equal(asker.lasts, 1);
    assert_string_equal(asker.v6, "");
    assert_string_equal(asker.err.text, "");
    /* It may be the servers' failure, so it is not kept for ten minutes. */
    go_by(rig, 1000);
    look_up(rig, &(struct asker){0}, "half.example");
    await_asked(rig, 0, 6);
    leat_resolver_free(rig->resolver);
    rig->resolver = NULL;
    test_settle(rig->loop);
}

static void no_such_name_and_no_address_are_told_apart(void **state)
{
    struct rig *rig = *state;
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "empty.example"});
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "alias.example", .cnames = {"empty.example"}});
    assert_error(rig, "rabbit.example", LEAT_ENOTFOUND, "rabbit.example: no such name (NXDOMAIN)");
    assert_error(rig, "empty.example", LEAT_ENOTFOUND,
                 "empty.example: no address (neither A nor AAAA)");
    assert_error(rig, "alias.example", LEAT_ENOTFOUND,
                 "alias.example: no address (neither A nor AAAA)");
}

static void a_silent_server_is_asked_again_and_named(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {0};
    char expected[160], addr[LEAT_ADDR_TEXT_MAX];
    rig->config.timeout_ms = 500;
    rig->config.tries = 2;
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "mute.example", .action = TEST_DNS_SILENT});
    look_up(rig, &asker, "mute.example");
    await_asked(rig, 0, 2);
    go_by(rig, 499);
    assert_int_equal(rig->dns[0].asked, 2);
    go_by(rig, 1);
    await_asked(rig, 0, 4);
    go_by(rig, 500);
    assert_int_equal(asker.lasts, 1);
    (void)snprintf(expected, sizeof(expected), "mute.example: DNS server %s did not answer in 1 s",
                   leat_addr_text(&rig->servers[0], addr));
    assert_string_equal(asker.err.text, expected);
    assert_int_equal(asker.err.status, LEAT_ETIMEOUT);
}

static void a_late_answer_is_taken(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {0};
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "late.example",
                                                      .action = TEST_DNS_HOLD,
                                                      .addrs = {"192.0.2.1"}});
    look_up(rig, &asker, "late.example");
    await_asked(rig, 0, 2);
    go_by(rig, 2000);
    await_asked(rig, 0, 4);
    rig->dns[0].held_count = 2; /* the second questions got lost */
    test_dns_let_go(&rig->dns[0]);
    await(&asker);
    assert_string_equal(asker.v4, "192.0.2.1 ");
}

static void a_late_failure_leaves_the_next_server_its_time(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {0};
    struct test_dns_rule rule = {.name = "late.example", .action = TEST_DNS_HOLD, .rcode = 2};
    rig->config.server_count = 2;
    test_dns_add(&rig->dns[0], rule);
    rule.rcode = 0;
    rule.addrs[0] = "192.0.2.1";
    test_dns_add(&rig->dns[1], rule);
    look_up(rig, &asker, "late.example");
    await_asked(rig, 0, 2);
    go_by(rig, 2000);
    await_asked(rig, 1, 2);
    test_dns_let_go(&rig->dns[0]);
    test_settle(rig->loop);
    assert_int_equal(rig->dns[1].asked, 2);
    test_dns_let_go(&rig->dns[1]);
    await(&asker);
    assert_string_equal(asker.v4, "192.0.2.1 ");
}

static void failures_of_servers_are_told(void **state)
{
    struct rig *rig = *state;
    static const struct {
        unsigned rcode;
        const char *text;
    } cases[] = {{2, "could not find out (SERVFAIL)"},
                 {5, "does not answer this machine (REFUSED)"},
                 {4, "does not understand the question"},
                 {1, "does not understand the question"}};
    char name[32], expected[160], addr[LEAT_ADDR_TEXT_MAX];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(name, sizeof(name), "f%zu.example", i);
        test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = name, .rcode = cases[i].rcode});
        (void)snprintf(expected, sizeof(expected), "%s: DNS server %s %s", name,
                       leat_addr_text(&rig->servers[0], addr), cases[i].text);
        assert_error(rig, name, LEAT_EIO, expected);
        assert_int_equal(rig->dns[0].asked, 2 * (i + 1)); /* not asked again in vain */
        rig->dns[0].rule_count = 0;
    }
}

static void the_next_server_is_asked_when_one_fails(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {0};
    struct test_dns_rule good = {.name = "a.example", .addrs = {"192.0.2.1"}};
    rig->config.server_count = 2;
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "a.example", .rcode = 5});
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "b.example", .action = TEST_DNS_SILENT});
    test_dns_add(&rig->dns[1], good);
    good.name = "b.example";
    test_dns_add(&rig->dns[1], good);
    assert_found(rig, "a.example", "", "192.0.2.1 ");
    look_up(rig, &asker, "b.example");
    await_asked(rig, 0, 4);
    assert_int_equal(rig->dns[1].asked, 2);
    go_by(rig, 2000);
    await(&asker);
    assert_string_equal(asker.v4, "192.0.2.1 ");
}

static void queries_rotate_over_the_servers_if_told_so(void **state)
{
    struct rig *rig = *state;
    rig->config.server_count = 2;
    rig_write(rig->resolv_conf_fd, "options rotate\n");
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "a.example", .addrs = {"::1"}});
    test_dns_add(&rig->dns[1], (struct test_dns_rule){.name = "a.example", .addrs = {"::1"}});
    assert_found(rig, "a.example", "::1 ", "");
    assert_int_equal(rig->dns[0].asked, 1);
    assert_int_equal(rig->dns[1].asked, 1);
}

static void a_server_that_is_not_there_is_told(void **state)
{
    struct rig *rig = *state;
    char expected[160], addr[LEAT_ADDR_TEXT_MAX];
    (void)snprintf(expected, sizeof(expected), "a.example: DNS server %s cannot be reached",
                   leat_addr_text(&rig->servers[0], addr));
    test_dns_close(&rig->dns[0]);
    assert_error(rig, "a.example", LEAT_EIO, expected);
    test_dns_open(&rig->dns[0], rig->loop);
}

static void a_lack_of_descriptors_is_told_and_not_kept(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {0};
    struct rlimit old, tight;
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "a.example", .addrs = {"::1"}});
    rig_open(rig);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    tight = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    look_up(rig, &asker, "a.example");
    await(&asker);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(asker.err.sys, EMFILE);
    assert_non_null(strstr(asker.err.text, " could not be asked: Too many open files"));
    assert_found(rig, "a.example", "::1 ", "");
}

static void the_environment_is_not_read(void **state)
{
    struct rig *rig = *state;
    assert_return_code(setenv("LOCALDOMAIN", "one.example", 1), 0);
    assert_return_code(setenv("RES_OPTIONS", "ndots:3 retrans:1 retry:1", 1), 0);
    assert_return_code(setenv("HOSTALIASES", rig->hosts_path, 1), 0);
    rig_write(rig->hosts_fd, "rabbit other.example\n");
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "rabbit.one.example", .addrs = {"::1"}});
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "other.example", .addrs = {"::1"}});
    assert_error(rig, "rabbit", LEAT_ENOTFOUND, "rabbit: no such name (NXDOMAIN)");
    (void)unsetenv("LOCALDOMAIN");
    (void)unsetenv("RES_OPTIONS");
    (void)unsetenv("HOSTALIASES");
}

static void a_truncated_answer_is_asked_for_over_tcp(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {0};
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "big.example",
                                                      .action = TEST_DNS_TRUNCATE,
                                                      .copies = 60,
                                                      .addrs = {"192.0.2.1", "2001:db8::1"}});
    look_up(rig, &asker, "big.example");
    await(&asker);
    assert_int_equal(rig->dns[0].asked_over_tcp, 2);
    assert_memory_equal(asker.v4, "192.0.2.1 192.0.2.1 ", 20);
    assert_memory_equal(asker.v6, "2001:db8::1 2001:db8::1 ", 24);
}

static void aliases_are_followed(void **state)
{
    struct rig *rig = *state;
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "a.example",
                                                      .cnames = {"b.example", "c.other.example"},
                                                      .addrs = {"192.0.2.7", "2001:db8::7"}});
    assert_found(rig, "a.example", "2001:db8::7 ", "192.0.2.7 ");
}

static void malformed_answers_are_a_failure(void **state)
{
    struct rig *rig = *state;
    char expected[160], addr[LEAT_ADDR_TEXT_MAX];
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "a.example", .action = TEST_DNS_GARBAGE});
    (void)snprintf(expected, sizeof(expected), "a.example: DNS server %s sent a malformed answer",
                   leat_addr_text(&rig->servers[0], addr));
    assert_error(rig, "a.example", LEAT_EIO, expected);
}

/* Changes some octets of an answer, or cuts it. */
static void spoil(uint8_t *answer, size_t *len, void *arg)
{
    uint32_t *seed = arg;
    uint32_t changes = test_random(seed, 6);
    for (uint32_t i = 0; i < changes; i++)
        answer[2 + test_random(seed, (uint32_t)*len - 2)] = (uint8_t)test_random(seed, 256);
    if (test_random(seed, 4) == 0)
        *len = test_random(seed, (uint32_t)*len + 1);
}

static void no_answer_however_spoilt_does_harm(void **state)
{
    struct rig *rig = *state;
    uint32_t seed = 20;
    rig->config.tries = 1;
    test_dns_add(&rig->dns[0], (struct test_dns_rule){.name = "a.example",
                                                      .cnames = {"b.example", "c.example"},
                                                      .ttl = 3600,
                                                      .addrs = {"192.0.2.7", "2001:db8::7"}});
    rig->dns[0].spoil = spoil;
    rig->dns[0].spoil_arg = &seed;
    for (int i = 0; i < 1500; i++) {
        struct asker asker = {0};
        look_up(rig, &asker, "a.example");
        for (int turns = 0; turns < 50 && asker.lasts == 0; turns++)
            leat_loop_turn(rig->loop, 0);
        go_by(rig, 2000); /* it may have been dropped */
        await(&asker);
        rig->now_ms += 3600000; /* nothing is kept longer */
        assert_int_equal(asker.lasts, 1);
    }
    rig->dns[0].spoil = NULL;
    rig->dns[0].spoil_arg = NULL;
}

/* The lowest descriptor that is free. */
static int free_fd(void)
{
    int fd = fcntl(0, F_DUPFD, 0);
    (void)close(fd);
    return fd;
}

static void sockets_are_closed_when_nothing_is_asked(void **state)
{
    struct rig *rig = *state;
    test_dns_add(&rig->dns[0],
                 (struct test_dns_rule){.name = "a.example", .action = TEST_DNS_TRUNCATE});
    rig_open(rig);
    int before = free_fd();
    assert_error(rig, "a.example", LEAT_ENOTFOUND, "a.example: no address (neither A nor AAAA)");
    TURN_UNTIL(rig->loop, rig->dns[0].tcp_fd < 0);
    assert_int_equal(free_fd(), before);
    uint64_t wakeups = atomic_load(&leat_loop_counters(rig->loop)->wakeups);
    rig->now_ms += 10000;
    leat_loop_turn(rig->loop, 1);
    assert_int_equal(atomic_load(&leat_loop_counters(rig->loop)->wakeups), wakeups + 1);
}

static void what_is_no_host_name_is_refused(void **state)
{
    struct rig *rig = *state;
    static const char *const names[] = {"",          ".",     "a..b", ".a",  "a b", "a\\.b",
                                        "b\xc3\xbc", "[::1]", "1:80", "a/b", "a\nb"};
    char label[80], name[330];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct asker asker = {0};
        look_up(rig, &asker, names[i]);
        await(&asker);
        assert_int_equal(asker.err.status, LEAT_EUSAGE);
        assert_non_null(strstr(asker.err.text, " is no host name"));
    }
    assert_error(rig, "a\nb", LEAT_EUSAGE,
                 "\"a\\x0ab\" is no host name (letters, digits, - and _ between dots)");
    memset(label, 'a', 64);
    label[64] = '\0';
    for (int len = 0; len < 2; len++) { /* one octet too many in a label, then none */
        struct asker asker = {0};
        look_up(rig, &asker, label + len);
        await(&asker);
        assert_int_equal(asker.err.status, len == 0 ? LEAT_EUSAGE : LEAT_ENOTFOUND);
    }
    (void)snprintf(name, sizeof(name), "%s.%s.%s.%s", label + 1, label + 1, label + 1, label + 3);
    for (int len = 0; len < 2; len++) { /* the same of 254 octets, then 253 */
        struct asker asker = {0};
        name[254 - len] = '\0';
        if (len == 0)
            (void)memcpy(name + 252, "aa", 3);
        look_up(rig, &asker, name);
        await(&asker);
        assert_int_equal(asker.err.status, len == 0 ? LEAT_EUSAGE : LEAT_ENOTFOUND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(both_families_are_told_in_one_call_if_they_are_there),
        WITH_RIG(each_family_is_told_when_it_is_there),
        WITH_RIG(a_family_that_is_never_answered_ends_without_addresses),
        WITH_RIG(no_such_name_and_no_address_are_told_apart),
        WITH_RIG(a_silent_server_is_asked_again_and_named),
        WITH_RIG(a_late_answer_is_taken),
        WITH_RIG(a_late_failure_leaves_the_next_server_its_time),
        WITH_RIG(failures_of_servers_are_told),
        WITH_RIG(the_next_server_is_asked_when_one_fails),
        WITH_RIG(queries_rotate_over_the_servers_if_told_so),
        WITH_RIG(a_server_that_is_not_there_is_told),
        WITH_RIG(a_lack_of_descriptors_is_told_and_not_kept),
        WITH_RIG(the_environment_is_not_read),
        WITH_RIG(a_truncated_answer_is_asked_for_over_tcp),
        WITH_RIG(aliases_are_followed),
        WITH_RIG(malformed_answers_are_a_failure),
        WITH_RIG(no_answer_however_spoilt_does_harm),
        WITH_RIG(sockets_are_closed_when_nothing_is_asked),
        WITH_RIG(what_is_no_host_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
