/*
 * Tests of net/resolv_conf.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "net/resolv_conf.h"

static void parse(const char *text, struct leat_resolv_conf *out)
{
    memset(out, 0xaa, sizeof(*out));
    leat_resolv_conf_parse(leat_str_of(text), out);
}

static void assert_server(const struct leat_resolv_conf *conf, size_t i, const char *expected)
{
    char text[LEAT_ADDR_TEXT_MAX];
    assert_true(i < conf->server_count);
    assert_string_equal(leat_addr_text(&conf->servers[i], text), expected);
}

static void an_empty_file_means_this_machine(void **state)
{
    struct leat_resolv_conf conf;
    (void)state;
    parse("", &conf);
    assert_int_equal(conf.server_count, 1);
    assert_server(&conf, 0, "127.0.0.1:53");
    assert_int_equal(conf.search_count, 0);
    assert_int_equal(conf.ndots, 1);
    assert_int_equal(conf.tries, 3);
    assert_int_equal(conf.timeout_ms, 2000);
    assert_false(conf.rotates);
}

static void all_that_is_used_is_read(void **state)
{
    struct leat_resolv_conf conf;
    (void)state;
    parse("; made by hand\nnameserver 192.0.2.53\n\tnameserver\t2001:db8::53 # second\r\n"
          "domain gone.example\nsearch one.example two.example. .\n"
          "options ndots:5 timeout:1 attempts:2 rotate edns0\noptions ndots:x\nsortlist 1.2.3.4\n",
          &conf);
    assert_int_equal(conf.server_count, 2);
    assert_server(&conf, 0, "192.0.2.53:53");
    assert_server(&conf, 1, "[2001:db8::53]:53");
    assert_int_equal(conf.search_count, 2);
    assert_string_equal(conf.search[0], "one.example");
    assert_string_equal(conf.search[1], "two.example");
    assert_int_equal(conf.ndots, 5);
    assert_int_equal(conf.timeout_ms, 1000);
    assert_int_equal(conf.tries, 2);
    assert_true(conf.rotates);
}

static void what_makes_no_sense_is_passed_over(void **state)
{
    struct leat_resolv_conf conf;
    (void)state;
    parse("nameserver\nnameserver rabbit\nnameserver fe80::1%1\nnameserver 192.0.2.1:53\nsearch\n"
          "options timeout:0 attempts:0 ndots:99 timeout:99 attempts:99\nnameserverx 192.0.2.1",
          &conf);
    assert_int_equal(conf.server_count, 1);
    assert_server(&conf, 0, "127.0.0.1:53");
    assert_int_equal(conf.search_count, 0);
    assert_int_equal(conf.ndots, 15);
    assert_int_equal(conf.timeout_ms, 30000);
    assert_int_equal(conf.tries, 5);
}

static void no_more_is_taken_than_there_is_room_for(void **state)
{
    struct leat_resolv_conf conf;
    char text[4096] = "search", word[300];
    size_t len;
    (void)state;
    memset(word, 'a', sizeof(word));
    word[sizeof(word) - 1] = '\0';
    len = strlen(text);
    len += (size_t)snprintf(text + len, sizeof(text) - len, " %s", word);
    for (int i = 0; i < 40; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, " d%d", i);
    for (int i = 0; i < 40; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "\nnameserver 192.0.2.%d", i);
    parse(text, &conf);
    assert_int_equal(conf.server_count, LEAT_DNS_SERVERS_MAX);
    assert_server(&conf, LEAT_DNS_SERVERS_MAX - 1, "192.0.2.7:53");
    assert_int_equal(conf.search_count, LEAT_DNS_SEARCH_MAX);
    assert_string_equal(conf.search[0], "d0");
    assert_string_equal(conf.search[LEAT_DNS_SEARCH_MAX - 1], "d15");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_means_this_machine),
        cmocka_unit_test(all_that_is_used_is_read),
        cmocka_unit_test(what_makes_no_sense_is_passed_over),
        cmocka_unit_test(no_more_is_taken_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
