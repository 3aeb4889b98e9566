/*
 * Tests of proxy/config_yaml.h; what it refuses is in config_errors_test.c.
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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config_rig.h"
#include "proxy/config.h"
#include "proxy/config_yaml.h"

static const char complete[] = "listeners:\n"
                               "  - address: amqps://0.0.0.0:5671\n"
                               "    cert: cert.pem\n"
                               "    key: /etc/key.pem\n"
                               "  - address: amqp://127.0.0.1\n"
                               "backends:\n"
                               "  rabbit1: { address: amqp://10.0.0.11:5672 }\n"
                               "  rabbit2: { address: 'amqps://[::1]', ca: tls/ca.pem, name: "
                               "rabbit2.example, weight: 2 }\n"
                               "farms:\n"
                               "  main: { backends: [rabbit2, rabbit1] }\n"
                               "  rabbit1:\n"
                               "    backends:\n"
                               "      - rabbit2\n"
                               "vhosts:\n"
                               "  orders: { farm: main }\n"
                               "  \"logs of all\": { backend: rabbit1 }\n"
                               "  other: { backend: rabbit1 }\n"
                               "  same: { farm: rabbit1 }\n"
                               "default: { backend: rabbit2 }   # a comment\n"
                               "workers: 2\n"
                               "loopback_users: [ann, \"bob smith\"]\n"
                               "logging: { level: debug, trace: true }\n"
                               "tune: { frame_max: 64KiB, channel_max: 100, heartbeat: 30s }\n"
                               "timeouts: { tls: 1s, handshake: 2s, connect: 3s, search: 4s,\n"
                               "            close: 5s, linger: 6s, flush: 7s }\n"
                               "limits: { sessions: 10, handshakes: 11, initial_frame: 16KiB,\n"
                               "          initial_frames: 12, session_queue: 32KiB, queue: 2MiB }\n"
                               "drain: { close_after: 1s, close_until: 2s, end: 1h }\n";

static const char *farm_of(const struct leat_config *config, const char *vhost, size_t *out_farm)
{
    const struct leat_route_config *route = leat_config_find_route(config, leat_str_of(vhost));

    assert_non_null(route);
    *out_farm = route->farm;
    return config->farms.at[route->farm].name;
}

static void a_whole_file_is_read(void **state)
{
    struct leat_config *config = config_rig_take(complete);
    char text[LEAT_ADDR_TEXT_MAX];

    (void)state;
    assert_string_equal(config->file, NAME);
    assert_int_equal(config->listeners.count, 2);
    assert_true(config->listeners.at[0].endpoint.tls);
    assert_string_equal(config->listeners.at[0].tls.cert, "cert.pem");
    assert_string_equal(config->listeners.at[0].tls.key, "/etc/key.pem");
    assert_int_equal(config->listeners.at[0].line, 2);
    assert_int_equal(config->listeners.at[1].line, 5);
    assert_string_equal(leat_addr_text(&config->listeners.at[1].endpoint.addr, text),
                        "127.0.0.1:5672");
    assert_int_equal(config->backends.count, 2);
    assert_string_equal(config->backends.at[0].name, "rabbit1");
    assert_int_equal(config->backends.at[0].weight, 1);
    assert_null(config->backends.at[0].tls.ca);
    assert_string_equal(leat_addr_text(&config->backends.at[1].endpoint.addr, text), "[::1]:5671");
    assert_string_equal(config->backends.at[1].tls.ca, "tls/ca.pem");
    assert_string_equal(config->backends.at[1].verify_name, "rabbit2.example");
    assert_int_equal(config->backends.at[1].weight, 2);
    assert_int_equal(config->backends.at[1].line, 8);
    assert_int_equal(config->loopback_users.count, 2);
    assert_string_equal(config->loopback_users.at[0], "ann");
    assert_string_equal(config->loopback_users.at[1], "bob smith");
    assert_int_equal(config->log_level, LEAT_LOG_DEBUG);
    assert_true(config->trace);
    leat_config_free(config);
}

static void every_number_is_read(void **state)
{
    struct leat_config *config = config_rig_take(complete);
    const struct {
        uint64_t is, expected;
    } numbers[] = {
        {config->workers, 2},
        {config->frame_max, 65536},
        {config->channel_max, 100},
        {config->heartbeat_ms, 30000},
        {config->timeout_tls_ms, 1000},
        {config->timeout_handshake_ms, 2000},
        {config->timeout_connect_ms, 3000},
        {config->timeout_search_ms, 4000},
        {config->timeout_close_ms, 5000},
        {config->timeout_linger_ms, 6000},
        {config->timeout_flush_ms, 7000},
        {config->limit_sessions, 10},
        {config->limit_handshakes, 11},
        {config->limit_initial_frame_bytes, 16384},
        {config->limit_initial_frames, 12},
        {config->limit_session_queue_bytes, 32768},
        {config->limit_queue_bytes, 2097152},
        {config->drain_close_after_ms, 1000},
        {config->drain_close_until_ms, 2000},
        {config->drain_end_ms, 3600000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_int_equal(numbers[i].is, numbers[i].expected);
    leat_config_free(config);
}

/* A backend that is named by routes has one farm, whatever farm is called like it. */
static void routes_lead_to_farms_and_backends(void **state)
{
    struct leat_config *config = config_rig_take(complete);
    size_t orders, logs, other, same, fallback;

    (void)state;
    assert_string_equal(farm_of(config, "orders", &orders), "main");
    assert_string_equal(farm_of(config, "logs of all", &logs), "rabbit1");
    assert_string_equal(farm_of(config, "other", &other), "rabbit1");
    assert_string_equal(farm_of(config, "same", &same), "rabbit1");
    assert_string_equal(farm_of(config, "unheard of", &fallback), "rabbit2");
    assert_int_equal(config->farms.count, 4);
    assert_int_equal(logs, other);
    assert_int_not_equal(logs, same);
    assert_int_equal(config->farms.at[orders].count, 2);
    assert_int_equal(config->farms.at[orders].backends[0], 1);
    assert_int_equal(config->farms.at[orders].backends[1], 0);
    assert_int_equal(config->farms.at[logs].count, 1);
    assert_int_equal(config->farms.at[logs].backends[0], 0);
    assert_int_equal(config->farms.at[same].count, 1);
    assert_int_equal(config->farms.at[same].backends[0], 1);
    assert_int_equal(config->farms.at[fallback].backends[0], 1);
    leat_config_free(config);
}

static void little_is_enough(void **state)
{
    struct leat_config *config = config_rig_take(NEEDED "  r2: {address: 'amqp://10.0.0.2'}\n");
    size_t farm;

    (void)state;
    assert_int_equal(config->timeout_close_ms, 10000);
    assert_int_equal(config->farms.count, 1);
    assert_string_equal(farm_of(config, "any", &farm), "default");
    assert_int_equal(config->farms.at[farm].count, 2);
    assert_true(leat_config_is_loopback_user(config, leat_str_of("guest")));
    leat_config_free(config);

    config = config_rig_take(NEEDED "loopback_users: []\nvhosts: {orders: {backend: r1}}\n");
    assert_int_equal(config->loopback_users.count, 0);
    assert_null(leat_config_find_route(config, leat_str_of("other")));
    assert_non_null(leat_config_find_route(config, leat_str_of("orders")));
    leat_config_free(config);
}

static void yaml_has_many_ways_to_say_it(void **state)
{
    static const char *const same[] = {
        "\xef\xbb\xbf" NEEDED "workers: 2\n",
        "---\n" NEEDED "workers: 2\n...\n",
        "%YAML 1.1\n---\n" NEEDED "workers: 2\n",
        "workers: '2'\n" NEEDED,
        "{workers: \"2\", listeners: [{address: 'amqp://127.0.0.1'}], backends: {r1: {address: "
        "'amqp://10.0.0.1'}}}",
        "? workers\n: 2\n" NEEDED,
        "workers: 2\r\nlisteners: [{address: 'amqp://127.0.0.1'}]\r\n"
        "backends: {r1: {address: 'amqp://10.0.0.1'}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        struct leat_config *config = config_rig_take(same[i]);
        assert_int_equal(config->workers, 2);
        assert_string_equal(config->backends.at[0].name, "r1");
        leat_config_free(config);
    }
}

static void vhosts_may_have_any_bytes(void **state)
{
    struct leat_config *config = config_rig_take(NEEDED "vhosts:\n"
                                                        "  '': {backend: r1}\n"
                                                        "  '~': {backend: r1}\n"
                                                        "  /: {backend: r1}\n"
                                                        "  \"\\n\\x01\": {backend: r1}\n"
                                                        "  \xc3\xbc: {backend: r1}\n");
    static const char *const vhosts[] = {"", "~", "/", "\n\x01", "\xc3\xbc"};
    size_t farm;

    (void)state;
    for (size_t i = 0; i < sizeof(vhosts) / sizeof(vhosts[0]); i++)
        assert_string_equal(farm_of(config, vhosts[i], &farm), "r1");
    assert_int_equal(config->farms.count, 1);
    assert_null(leat_config_find_route(config, leat_str_of("\xc3")));
    leat_config_free(config);
}

static void options_are_over_the_file(void **state)
{
    struct leat_config *config = NULL;
    struct leat_error err;

    (void)state;
    config_rig_write(NAME, complete, sizeof(complete) - 1);
    assert_int_equal(leat_config_new(&config, &err), LEAT_OK);
    assert_int_equal(leat_config_read_yaml(config, NAME, &err), LEAT_OK);
    config_rig_set(config, "workers", "7");
    config_rig_set(config, "loopback_users", "eve");
    config_rig_set(config, "log-level", "warn");
    config_rig_set(config, "timeouts.tls", "9s");
    assert_int_equal(config->workers, 7);
    assert_int_equal(config->loopback_users.count, 1);
    assert_true(leat_config_is_loopback_user(config, leat_str_of("eve")));
    assert_int_equal(config->log_level, LEAT_LOG_WARN);
    assert_int_equal(config->timeout_tls_ms, 9000);
    assert_int_equal(config->timeout_handshake_ms, 2000);
    /* The error is where the value comes from. */
    config_rig_set(config, "tune.heartbeat", "1500ms");
    assert_int_equal(leat_config_finish(config, &err), LEAT_EUSAGE);
    assert_string_equal(err.text, "--tune.heartbeat: expected whole seconds, got 1500ms");
    leat_config_free(config);
}

static void the_short_form_is_not_for_a_file(void **state)
{
    static const char *const options[][3] = {
        {"listen", "amqp://127.0.0.1", "listeners[].address"},
        {"cert", "c", "listeners[].cert"},
        {"key", "k", "listeners[].key"},
        {"backend", "amqp://127.0.0.1", "backends.NAME.address"},
        {"backend-ca", "c", "backends.NAME.ca"},
        {"backend-name", "n", "backends.NAME.name"},
    };
    struct leat_config *config = config_rig_take(complete);
    struct leat_error err;
    char sentence[120];

    (void)state;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        assert_int_equal(leat_config_set_option(config, leat_str_of(options[i][0]),
                                                leat_str_of(options[i][1]), &err),
                         LEAT_EUSAGE);
        (void)snprintf(sentence, sizeof(sentence),
                       "--%s: is not taken beside a file: put it into leat.yaml, as %s",
                       options[i][0], options[i][2]);
        assert_string_equal(err.text, sentence);
    }
    assert_int_equal(config->listeners.count, 2);
    memcpy(config->file, "le\n\x1b", 4); /* a name that could write to the terminal */
    assert_int_equal(leat_config_set_option(config, leat_str_of("cert"), leat_str_of("c"), &err),
                     LEAT_EUSAGE);
    assert_non_null(strstr(err.text, "put it into le??.yaml, as "));
    leat_config_free(config);
}

static void files_are_beside_the_file(void **state)
{
    struct leat_config *config = NULL;
    struct leat_error err;

    (void)state;
    (void)mkdir("sub", 0700);
    config_rig_write("sub/other.yaml", complete, sizeof(complete) - 1);
    assert_int_equal(config_rig_load("sub/other.yaml", &config, &err), LEAT_OK);
    assert_string_equal(config->listeners.at[0].tls.cert, "sub/cert.pem");
    assert_string_equal(config->listeners.at[0].tls.key, "/etc/key.pem");
    assert_string_equal(config->backends.at[1].tls.ca, "sub/tls/ca.pem");
    leat_config_free(config);
    assert_int_equal(unlink("sub/other.yaml"), 0);
    assert_int_equal(rmdir("sub"), 0);
}

static void the_example_of_the_reference_is_right(void **state)
{
    static const char fence[] = "```yaml\n";
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    (void)state;
    assert_non_null(file);
    leat_config_print_reference(file);
    assert_int_equal(fclose(file), 0);
    char *from = strstr(text, fence);
    assert_non_null(from);
    from += strlen(fence);
    char *to = strstr(from, "```");
    assert_non_null(to);
    struct leat_config *config = config_rig_take_bytes(from, (size_t)(to - from));
    assert_int_equal(config->farms.count, 2);
    leat_config_free(config);
    free(text);
}

/* Writes a file of many farms and routes, in no order. */
static void write_large(size_t farms, size_t routes)
{
    FILE *file = fopen(NAME, "w");

    assert_non_null(file);
    (void)fputs(NEEDED "farms:\n", file);
    for (size_t i = 0; i < farms; i++)
        (void)fprintf(file, "  f%zu: {backends: [r1]}\n", i);
    (void)fputs("vhosts:\n", file);
    for (size_t i = 0; i < routes; i++)
        (void)fprintf(file, "  v%zu: {farm: f%zu}\n", (i * 7919) % routes, i % farms);
    assert_int_equal(fclose(file), 0);
}

static void many_routes_are_found(void **state)
{
    const size_t routes = 20000;
    struct leat_config *config = NULL;
    struct leat_error err = {.text = ""};
    char vhost[32], farm[32];
    size_t index;

    (void)state;
    write_large(100, routes);
    if (config_rig_load(NAME, &config, &err) != LEAT_OK)
        fail_msg("%s", err.text);
    assert_int_equal(config->routes.count, routes);
    for (size_t i = 0; i < routes; i++) {
        (void)snprintf(vhost, sizeof(vhost), "v%zu", (i * 7919) % routes);
        (void)snprintf(farm, sizeof(farm), "f%zu", i % 100);
        assert_string_equal(farm_of(config, vhost, &index), farm);
    }
    assert_null(leat_config_find_route(config, leat_str_of("v20000")));
    leat_config_free(config);
}

static void fails_at_every_allocation(void)
{
    struct leat_config *config;
    struct leat_error err;
    enum leat_status status;
    unsigned n = 0;

    do {
        config = NULL;
        leat_mem_fail_after(++n);
        status = config_rig_load(NAME, &config, &err);
        leat_mem_fail_after(0);
        leat_config_free(config);
        if (status != LEAT_OK && status != LEAT_ENOMEM)
            fail_msg("allocation %u: %s", n, err.text);
    } while (status != LEAT_OK);
    assert_true(n > 40);
}

static void survives_every_failing_allocation(void **state)
{
    (void)state;
    config_rig_write(NAME, complete, sizeof(complete) - 1);
    fails_at_every_allocation();
    write_large(20, 100);
    fails_at_every_allocation();
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static char spoiled_byte(uint32_t *seed)
{
    static const char telling[] = "{}[]:,-#&*!|>'\"%@`~?\n\t \0\xff\xc3";

    if (next_random(seed) % 2 == 0)
        return telling[next_random(seed) % (sizeof(telling) - 1)];
    return (char)next_random(seed);
}

/* Whether TEXT begins with the file's name, as it must, and a line: only what is missing in the
 * whole has none. */
static bool has_a_place(const char *text)
{
    unsigned line = 0;

    return sscanf(text, NAME ":%u: ", &line) == 1
               ? line > 0
               : strncmp(text, NAME ": ", strlen(NAME ": ")) == 0 &&
                     (strstr(text, "expected at least one") != NULL ||
                      strstr(text, "no farm serves") != NULL);
}

static void spoiled_files_do_no_harm(void **state)
{
    char text[sizeof(complete) - 1];
    uint32_t seed = 1;
    unsigned good = 0, bad = 0;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct leat_config *config = NULL;
        struct leat_error err = {.text = ""};
        memcpy(text, complete, sizeof(text));
        for (uint32_t left = next_random(&seed) % 3 + 1; left > 0; left--)
            text[next_random(&seed) % sizeof(text)] = spoiled_byte(&seed);
        size_t len = next_random(&seed) % 8 == 0 ? next_random(&seed) % sizeof(text) : sizeof(text);
        config_rig_write(NAME, text, len);
        enum leat_status status = config_rig_load(NAME, &config, &err);
        leat_config_free(config);
        if (status == LEAT_OK)
            good++;
        else
            bad++;
        if (status != LEAT_OK && (status != LEAT_EUSAGE || !has_a_place(err.text)))
            fail_msg("round %d: %d: %s", round, status, err.text);
        assert_null(strchr(err.text, '\n'));
    }
    assert_true(good > 50 && bad > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file_is_read),
        cmocka_unit_test(every_number_is_read),
        cmocka_unit_test(routes_lead_to_farms_and_backends),
        cmocka_unit_test(little_is_enough),
        cmocka_unit_test(yaml_has_many_ways_to_say_it),
        cmocka_unit_test(vhosts_may_have_any_bytes),
        cmocka_unit_test(options_are_over_the_file),
        cmocka_unit_test(the_short_form_is_not_for_a_file),
        cmocka_unit_test(files_are_beside_the_file),
        cmocka_unit_test(the_example_of_the_reference_is_right),
        cmocka_unit_test(many_routes_are_found),
        cmocka_unit_test(survives_every_failing_allocation),
        cmocka_unit_test(spoiled_files_do_no_harm),
    };

    return cmocka_run_group_tests(tests, config_rig_enter, config_rig_leave);
}
