/*
 * Tests of net/cidr.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "net/cidr.h"

static struct leat_cidr network(const char *text)
{
    struct leat_cidr cidr;
    struct leat_error err = {0};

    if (leat_cidr_parse(leat_str_of(text), &cidr, &err) != LEAT_OK)
        fail_msg("%s: %s", text, err.text);
    return cidr;
}

static struct leat_addr address(const char *host)
{
    struct leat_addr addr;
    struct leat_str text = leat_str_of(host);
    /* As it comes from a socket, where a mapped address is still one. */
    assert_int_equal(leat_addr_parse(text, 5672, &addr, NULL), LEAT_OK);
    return addr;
}

static void addresses_are_in_their_networks(void **state)
{
    static const struct {
        const char *cidr, *addr;
        bool is_in;
    } cases[] = {
        {"10.0.0.0/8", "10.255.1.2", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "9.255.255.255", false},
        {"192.0.2.128/25", "192.0.2.128", true},
        {"192.0.2.128/25", "192.0.2.127", false},
        {"192.0.2.1", "192.0.2.1", true},
        {"192.0.2.1", "192.0.2.0", false},
        {"192.0.2.1/32", "192.0.2.2", false},
        {"0.0.0.0/0", "203.0.113.9", true},
        {"0.0.0.0/0", "[::1]", false},
        {"0.0.0.0/1", "127.0.0.1", true},
        {"0.0.0.0/1", "128.0.0.0", false},
        {"::1/128", "[::1]", true},
        {"::1", "[::2]", false},
        {"::/0", "[2001:db8::1]", true},
        {"::/0", "10.0.0.1", false},
        {"::/0", "[::ffff:10.0.0.1]", false},
        {"fd00::/8", "[fdff::1]", true},
        {"fd00::/8", "[fe80::1]", false},
        {"2001:db8::/33", "[2001:db8:7fff::]", true},
        {"2001:db8::/33", "[2001:db8:8000::]", false},
        {"fe80::/10", "[fe80::1%1]", true},
        {"::ffff:10.0.0.0/104", "10.1.1.1", true},
        {"::ffff:10.0.0.0/104", "[::ffff:10.1.1.1]", true},
        {"::ffff:10.0.0.0/104", "11.1.1.1", false},
        {"::ffff:192.0.2.1", "192.0.2.1", true},
        {"::ffff:0:0/96", "1.2.3.4", true},
        {"10.0.0.0/8", "[::ffff:10.1.1.1]", true},
        {"10.0.0.0/8", "[::a00:1]", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct leat_cidr cidr = network(cases[i].cidr);
        struct leat_addr addr = address(cases[i].addr);
        if (leat_cidr_has(&cidr, &addr) != cases[i].is_in)
            fail_msg("%s in %s", cases[i].addr, cases[i].cidr);
    }
}

static void what_is_no_inet_address_is_in_none(void **state)
{
    struct leat_addr addr = {.ss = {.ss_family = AF_UNIX}, .len = sizeof(addr.ss.ss_family)};
    struct leat_cidr all4 = network("0.0.0.0/0"), all6 = network("::/0");

    (void)state;
    assert_false(leat_cidr_has(&all4, &addr));
    assert_false(leat_cidr_has(&all6, &addr));
    addr.ss.ss_family = AF_UNSPEC;
    assert_false(leat_cidr_has(&all4, &addr));
}

static void anything_else_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "a network like"},
        {"/8", "a network like"},
        {"localhost", "a network like"},
        {"10.0.0/8", "a network like"},
        {"10.0.0.0.0/8", "a network like"},
        {"010.0.0.0/8", "a network like"},
        {"256.0.0.0/8", "a network like"},
        {"10.0.0.0:5672", "a network like"},
        {"[::1]/128", "a network like"},
        {"fe80::1%1/64", "a network like"},
        {"1:2:3:4:5:6:7:8:9/64", "a network like"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/64", "a network like"},
        {" 10.0.0.0/8", "a network like"},
        {"10.0.0.0/", "from 0 to 32"},
        {"10.0.0.0/33", "from 0 to 32"},
        {"10.0.0.0/-1", "from 0 to 32"},
        {"10.0.0.0/8 ", "from 0 to 32"},
        {"10.0.0.0/8/8", "from 0 to 32"},
        {"10.0.0.0/255.0.0.0", "from 0 to 32"},
        {"::/129", "from 0 to 128"},
        {"::/18446744073709551616", "from 0 to 128"},
        {"10.0.0.1/8", "10.0.0.0/8 for the network"},
        {"192.0.2.129/25", "192.0.2.128/25 for the network"},
        {"2001:db8::1/64", "2001:db8::/64 for the network"},
        {"1.2.3.4/0", "0.0.0.0/0 for the network"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct leat_cidr cidr = {.family = 77};
        struct leat_error err = {0};
        assert_int_equal(leat_cidr_parse(leat_str_of(cases[i].text), &cidr, &err), LEAT_EUSAGE);
        assert_int_equal(err.status, LEAT_EUSAGE);
        if (strstr(err.text, cases[i].says) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
        assert_int_equal(cidr.family, 77);
    }
    assert_int_equal(
        leat_cidr_parse((struct leat_str){"10.0.0.0\0/8", 11}, &(struct leat_cidr){0}, NULL),
        LEAT_EUSAGE);
    assert_int_equal(leat_cidr_parse((struct leat_str){0}, &(struct leat_cidr){0}, NULL),
                     LEAT_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_in_their_networks),
        cmocka_unit_test(what_is_no_inet_address_is_in_none),
        cmocka_unit_test(anything_else_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
