/*
 * Tests of amqp/login.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "amqp/login.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire.h"

static void add_start_ok(struct wire *wire, const char *mechanism, const void *response, size_t len)
{
    struct wire properties = {0};

    wire_text(&properties, "product", "test");
    wire_str32(wire, properties.buf, properties.len);
    wire_str8(wire, mechanism);
    wire_str32(wire, response, len);
    wire_str8(wire, "en_US");
    wire_free(&properties);
}

/* What comes of a RESPONSE of LEN bytes; USER may be NULL. */
static void check(const char *mechanism, const void *response, size_t len, const char *user,
                  enum leat_status expected)
{
    struct wire arguments = {0};
    struct leat_amqp_login login = {0};

    add_start_ok(&arguments, mechanism, response, len);
    assert_int_equal(leat_amqp_login_from_start_ok(&login, wire_str(&arguments)), expected);
    memset(arguments.buf, 'x', arguments.len); /* it must have copied them */
    wire_free(&arguments);
    if (expected == LEAT_OK) {
        assert_true(leat_str_equal(login.user, leat_str_of(user)));
        assert_true(leat_str_equal(login.mechanism, leat_str_of(mechanism)));
        assert_int_equal(login.response.len, len);
        assert_memory_equal(login.response.ptr, response, len);
        assert_true(leat_str_equal(login.locale, leat_str_of("en_US")));
        assert_int_equal(login.client_properties.len, 8 + 1 + 4 + 4);
    } else {
        assert_null(login.payload);
    }
    leat_amqp_login_fini(&login);
}

static void plain_has_a_user(void **state)
{
    (void)state;
    check("PLAIN", "\0guest\0secret", 13, "guest", LEAT_OK);
    check("PLAIN", "\0guest\0", 7, "guest", LEAT_OK);
    check("PLAIN", "other\0guest\0secret", 18, "guest", LEAT_OK);
    check("PLAIN", "\0\303\274ser\1\377\0p", 10, "\303\274ser\1\377", LEAT_OK);
    check("PLAIN", "", 0, NULL, LEAT_EPROTOCOL);
    check("PLAIN", "guest", 5, NULL, LEAT_EPROTOCOL);
    check("PLAIN", "\0guest", 6, NULL, LEAT_EPROTOCOL);
    check("PLAIN", "\0\0secret", 8, NULL, LEAT_EPROTOCOL);
    check("PLAIN", "\0a\0b\0c", 6, NULL, LEAT_EPROTOCOL);
}

static void check_amqplain(const char *first, const char *second, char type, const char *user,
                           enum leat_status expected)
{
    struct wire response = {0};
    struct wire value = {0};

    wire_str32(&value, "guest", 5);
    wire_field(&response, first, type, value.buf, value.len);
    wire_field(&response, second, 'S', value.buf, value.len);
    check("AMQPLAIN", response.buf, response.len, user, expected);
    wire_free(&response);
    wire_free(&value);
}

static void amqplain_has_a_user(void **state)
{
    (void)state;
    check_amqplain("LOGIN", "PASSWORD", 'S', "guest", LEAT_OK);
    check_amqplain("PASSWORD", "LOGIN", 'S', "guest", LEAT_OK);
    check_amqplain("LOGIN", "PASSWORD", 'x', NULL, LEAT_EPROTOCOL);
    check_amqplain("PASSWORD", "LOGIN", 'x', NULL, LEAT_EPROTOCOL);
    check_amqplain("LOGIN", "password", 'S', NULL, LEAT_EPROTOCOL);
    check_amqplain("login", "PASSWORD", 'S', NULL, LEAT_EPROTOCOL);
    check("AMQPLAIN", "", 0, NULL, LEAT_EPROTOCOL);
    check("AMQPLAIN", "\0guest\0secret", 13, NULL, LEAT_EPROTOCOL);
}

/* Which of two a broker takes is not for leat to know. */
static void amqplain_has_one_user(void **state)
{
    static const char *const keys[] = {"LOGIN", "PASSWORD"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct wire response = {0};
        wire_text(&response, "LOGIN", "alice");
        wire_text(&response, "PASSWORD", "secret");
        wire_text(&response, keys[i], "guest");
        check("AMQPLAIN", response.buf, response.len, NULL, LEAT_EPROTOCOL);
        wire_free(&response);
    }
}

static void other_mechanisms_are_told_apart(void **state)
{
    (void)state;
    check("EXTERNAL", "", 0, NULL, LEAT_EUSAGE);
    check("plain", "\0guest\0secret", 13, NULL, LEAT_EUSAGE);
    check("PLAIN ", "\0guest\0secret", 13, NULL, LEAT_EUSAGE);
    check("", "", 0, NULL, LEAT_EUSAGE);
}

static void cut_or_longer_arguments_are_malformed(void **state)
{
    struct wire arguments = {0};
    struct leat_amqp_login login = {0};

    (void)state;
    add_start_ok(&arguments, "PLAIN", "\0guest\0secret", 13);
    for (size_t len = 0; len < arguments.len; len++) {
        char *copy = malloc(len + 1);

        assert_non_null(copy);
        memcpy(copy, arguments.buf, len);
        assert_int_equal(leat_amqp_login_from_start_ok(&login, (struct leat_str){copy, len}),
                         LEAT_EPROTOCOL);
        free(copy);
    }
    wire_u8(&arguments, 0);
    assert_int_equal(leat_amqp_login_from_start_ok(&login, wire_str(&arguments)), LEAT_EPROTOCOL);
    arguments.len--;
    arguments.buf[4 + 8] = '?'; /* the type of the property */
    assert_int_equal(leat_amqp_login_from_start_ok(&login, wire_str(&arguments)), LEAT_EPROTOCOL);
    wire_free(&arguments);
}

static void names_outlive_the_secret(void **state)
{
    struct wire arguments = {0};
    struct leat_amqp_login login = {0};

    (void)state;
    add_start_ok(&arguments, "PLAIN", "\0guest\0secret", 13);
    assert_int_equal(leat_amqp_login_from_start_ok(&login, wire_str(&arguments)), LEAT_OK);
    assert_int_equal(login.vhost.len, 0);
    assert_int_equal(leat_amqp_login_set_vhost(&login, leat_str_of("one")), LEAT_OK);
    assert_int_equal(leat_amqp_login_set_vhost(&login, leat_str_of("/two")), LEAT_OK);
    leat_amqp_login_forget_secret(&login);
    assert_null(login.payload);
    assert_null(login.response.ptr);
    assert_true(leat_str_equal(login.user, leat_str_of("guest")));
    assert_true(leat_str_equal(login.vhost, leat_str_of("/two")));
    leat_amqp_login_forget_secret(&login);
    leat_amqp_login_fini(&login);
    leat_amqp_login_fini(&login);
    wire_free(&arguments);
}

static void memory_may_be_short(void **state)
{
    struct wire arguments = {0};
    struct leat_amqp_login login = {0};

    (void)state;
    add_start_ok(&arguments, "PLAIN", "\0guest\0secret", 13);
    for (unsigned n = 1; n <= 2; n++) {
        leat_mem_fail_after(n);
        assert_int_equal(leat_amqp_login_from_start_ok(&login, wire_str(&arguments)), LEAT_ENOMEM);
        assert_null(login.payload);
    }
    leat_mem_fail_after(0);
    assert_int_equal(leat_amqp_login_from_start_ok(&login, wire_str(&arguments)), LEAT_OK);
    assert_int_equal(leat_amqp_login_set_vhost(&login, leat_str_of("one")), LEAT_OK);
    leat_mem_fail_after(1);
    assert_int_equal(leat_amqp_login_set_vhost(&login, leat_str_of("two")), LEAT_ENOMEM);
    leat_mem_fail_after(0);
    assert_true(leat_str_equal(login.vhost, leat_str_of("one")));
    leat_amqp_login_fini(&login);
    wire_free(&arguments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_has_a_user),
        cmocka_unit_test(amqplain_has_a_user),
        cmocka_unit_test(amqplain_has_one_user),
        cmocka_unit_test(other_mechanisms_are_told_apart),
        cmocka_unit_test(cut_or_longer_arguments_are_malformed),
        cmocka_unit_test(names_outlive_the_secret),
        cmocka_unit_test(memory_may_be_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
