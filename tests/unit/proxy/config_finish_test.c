/*
 * Tests of leat_config_finish() and of finding routes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "config_rig.h"
#include "proxy/config.h"
#include "proxy/config_keys.h"

static void finish_fails(struct leat_config *config, const char *part)
{
    struct leat_error err = {.text = ""};

    assert_int_equal(leat_config_finish(config, &err), LEAT_EUSAGE);
    if (strstr(err.text, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", err.text, part);
}

static void finish_succeeds(struct leat_config *config)
{
    struct leat_error err = {.text = ""};

    if (leat_config_finish(config, &err) != LEAT_OK)
        fail_msg("%s", err.text);
}

#define OPTIONS_MAX 8

struct option {
    const char *name, *value;
};

/* What OPTIONS give together, beside a plain listener and a plain backend: an error that has PART
 * in it, or none if that is NULL. */
static void judge(const struct option *options, const char *part)
{
    struct leat_config *config = NULL;
    struct leat_error err;

    assert_int_equal(leat_config_new(&config, &err), LEAT_OK);
    config_rig_set(config, "listen", "amqp://127.0.0.1:0");
    config_rig_set(config, "backend", "amqp://127.0.0.1");
    for (size_t i = 0; i < OPTIONS_MAX && options[i].name != NULL; i++)
        config_rig_set(config, options[i].name, options[i].value);
    if (part == NULL)
        finish_succeeds(config);
    else
        finish_fails(config, part);
    leat_config_free(config);
}

static void the_whole_is_judged(void **state)
{
    static const struct {
        struct option options[OPTIONS_MAX];
        const char *part;
    } cases[] = {
        {{{NULL, NULL}}, NULL},
        {{{"listen", "amqps://127.0.0.1:0"}}, "needs --cert FILE and --key FILE"},
        {{{"listen", "amqps://127.0.0.1:0"}, {"cert", "c"}}, "needs --cert FILE and --key FILE"},
        {{{"listen", "amqps://127.0.0.1:0"}, {"key", "k"}}, "needs --cert FILE and --key FILE"},
        {{{"listen", "amqps://127.0.0.1:0"}, {"cert", "c"}, {"key", "k"}}, NULL},
        {{{"cert", "c"}}, "--cert FILE and --key FILE need each other"},
        {{{"cert", "c"}, {"key", "k"}}, NULL},
        {{{"backend-name", "rabbit"}}, "need an amqps:// --backend"},
        {{{"backend-ca", "ca"}}, "need an amqps:// --backend"},
        {{{"backend", "amqps://10.0.0.1"}, {"backend-name", "rabbit"}}, NULL},
        {{{"backend", "amqps://10.0.0.1"}, {"backend-name", ""}}, "--backend-name: expected"},
        {{{"backend", "amqp://10.0.0.1:0"}}, "--backend \"10.0.0.1:0\": a backend has a port"},
        {{{"tune.heartbeat", "1500ms"}}, "--tune.heartbeat: expected whole seconds, got 1500ms"},
        {{{"tune.heartbeat", "0"}}, NULL},
        {{{"drain.close_until", "9999ms"}},
         "expected --drain.close_after <= --drain.close_until <= --drain.end"},
        {{{"drain.close_until", "10s"}}, NULL},
        {{{"drain.end", "24999ms"}}, "--drain.end"},
        {{{"drain.end", "25s"}}, NULL},
        {{{"drain.close_after", "0"}, {"drain.close_until", "0"}, {"drain.end", "0"}}, NULL},
    };

    finish_fails(*state, "no --listen");
    config_rig_set(*state, "listen", "amqp://127.0.0.1:0");
    finish_fails(*state, "no --backend");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        judge(cases[i].options, cases[i].part);
}

static void the_short_form_is_spelled_out(void **state)
{
    struct leat_config *config = *state;

    config_rig_set(config, "listen", "amqps://127.0.0.1:0");
    config_rig_set(config, "listen", "amqp://127.0.0.1:0");
    config_rig_set(config, "cert", "cert.pem");
    config_rig_set(config, "key", "key.pem");
    config_rig_set(config, "backend", "amqp://10.0.0.1");
    config_rig_set(config, "backend", "amqps://10.0.0.2");
    config_rig_set(config, "backend-ca", "ca.pem");
    config_rig_set(config, "backend-name", "rabbit");
    finish_succeeds(config);
    assert_string_equal(config->listeners.at[0].tls.cert, "cert.pem");
    assert_string_equal(config->listeners.at[0].tls.key, "key.pem");
    assert_null(config->listeners.at[1].tls.cert);
    assert_null(config->listeners.at[1].tls.key);
    assert_null(config->backends.at[0].tls.ca);
    assert_null(config->backends.at[0].verify_name);
    assert_string_equal(config->backends.at[1].tls.ca, "ca.pem");
    assert_string_equal(config->backends.at[1].verify_name, "rabbit");
    assert_int_equal(config->farms.count, 1);
    assert_string_equal(config->farms.at[0].name, "default");
    assert_int_equal(config->farms.at[0].count, 2);
    assert_int_equal(config->farms.at[0].backends[0], 0);
    assert_int_equal(config->farms.at[0].backends[1], 1);
    const struct leat_route_config *route = leat_config_find_route(config, leat_str_of("any"));
    assert_non_null(route);
    assert_null(route->vhost);
    assert_int_equal(route->farm, 0);
}

/* Adds a route of VHOST, which may be any bytes, to FARM. */
static void add_route(struct leat_config *config, struct leat_str vhost, const char *farm)
{
    struct leat_route_config *route = NULL;
    struct leat_error err = {.text = ""};
    const struct leat_key *key =
        leat_key_at(&leat_route_table, offsetof(struct leat_route_config, farm_name));

    if (leat_config_add_route(config, 0, vhost, &route, &err) != LEAT_OK ||
        leat_key_set(route, key, leat_str_of(farm), &err) != LEAT_OK)
        fail_msg("%s", err.text);
}

static void add_farm(struct leat_config *config, const char *name, const char *backend)
{
    struct leat_farm_config *farm = NULL;
    struct leat_error err = {.text = ""};
    const struct leat_key *key =
        leat_key_at(&leat_farm_table, offsetof(struct leat_farm_config, backend_names));

    if (leat_config_add_farm(config, 0, leat_str_of(name), &farm, &err) != LEAT_OK ||
        leat_key_add_name(farm, key, leat_str_of(backend), &err) != LEAT_OK)
        fail_msg("%s", err.text);
}

static const char *farm_of(const struct leat_config *config, struct leat_str vhost)
{
    const struct leat_route_config *route = leat_config_find_route(config, vhost);

    return route == NULL ? "none" : config->farms.at[route->farm].name;
}

static void routes_are_found_by_bytes(void **state)
{
    static const struct leat_str vhosts[] = {
        LEAT_STR_INIT("z"),    LEAT_STR_INIT("\xff\xfe"), LEAT_STR_INIT(""),
        LEAT_STR_INIT("\x80"), LEAT_STR_INIT("a"),        LEAT_STR_INIT("ab"),
        LEAT_STR_INIT("\x01"), LEAT_STR_INIT("/"),        LEAT_STR_INIT("a b")};
    struct leat_config *config = *state;
    const size_t count = sizeof(vhosts) / sizeof(vhosts[0]);

    config_rig_set(config, "listen", "amqp://127.0.0.1:0");
    config_rig_set(config, "backend", "amqp://127.0.0.1");
    for (size_t i = 0; i < count; i++) {
        add_farm(config, (char[]){(char)('A' + i), '\0'}, "127.0.0.1:5672");
        add_route(config, vhosts[i], (char[]){(char)('A' + i), '\0'});
    }
    finish_succeeds(config);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(farm_of(config, vhosts[i]), ((char[]){(char)('A' + i), '\0'}));
    assert_string_equal(farm_of(config, (struct leat_str){"a\0", 2}), "none");
    assert_string_equal(farm_of(config, (struct leat_str){"ab", 1}), "E");
    assert_string_equal(farm_of(config, (struct leat_str){"abc", 3}), "none");
    assert_string_equal(farm_of(config, (struct leat_str){"\xff", 1}), "none");
    assert_string_equal(farm_of(config, (struct leat_str){NULL, 0}), "C");
    assert_string_equal(farm_of(config, (struct leat_str){"0", 1}), "none");
}

static void a_route_is_given_once(void **state)
{
    struct leat_config *config = *state;

    config_rig_set(config, "listen", "amqp://127.0.0.1:0");
    config_rig_set(config, "backend", "amqp://127.0.0.1");
    add_farm(config, "main", "127.0.0.1:5672");
    add_route(config, leat_str_of("b"), "main");
    add_route(config, leat_str_of("a"), "main");
    add_route(config, leat_str_of("b"), "main");
    finish_fails(config, "vhosts.b: is there already");
}

static void names_are_bounded(void **state)
{
    struct leat_config *config = *state;
    struct leat_backend_config *backend;
    struct leat_farm_config *farm;
    struct leat_route_config *route;
    struct leat_error err;
    char longest[LEAT_CONFIG_NAME_MAX + 1];

    memset(longest, 'x', sizeof(longest));
    const struct leat_str wrong[] = {
        {longest, sizeof(longest)}, LEAT_STR_INIT("a\0b"), LEAT_STR_INIT("")};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(leat_config_add_backend(config, 0, wrong[i], &backend, &err), LEAT_EUSAGE);
        assert_int_equal(leat_config_add_farm(config, 0, wrong[i], &farm, &err), LEAT_EUSAGE);
        if (i < 2)
            assert_int_equal(leat_config_add_route(config, 0, wrong[i], &route, &err), LEAT_EUSAGE);
    }
    for (int i = 0; i < LEAT_CONFIG_FARMS_MAX; i++) {
        (void)snprintf(longest, sizeof(longest), "farm%d", i);
        assert_int_equal(leat_config_add_farm(config, 0, leat_str_of(longest), &farm, &err),
                         LEAT_OK);
    }
    assert_int_equal(leat_config_add_farm(config, 0, leat_str_of("more"), &farm, &err),
                     LEAT_EUSAGE);
    assert_string_equal(err.text, "at most 1024 are allowed");
    assert_int_equal(leat_config_add_farm(config, 0, leat_str_of("more"), &farm, NULL),
                     LEAT_EUSAGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, config_rig_new, config_rig_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_whole_is_judged),       TEST(the_short_form_is_spelled_out),
        TEST(routes_are_found_by_bytes), TEST(a_route_is_given_once),
        TEST(names_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
