/*
 * Tests of proxy/config_json.h: what is shown is taken again, and means the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "config_rig.h"
#include "proxy/config_json.h"

/* The text of CONFIG as JSON, which is YAML too. */
static char *shown(const struct leat_config *config)
{
    json_t *json = leat_config_json(config);
    char *text;

    assert_non_null(json);
    text = json_dumps(json, JSON_INDENT(1));
    json_decref(json);
    assert_non_null(text);
    return text;
}

/* What FILE says must be shown as a file that is shown as the same. */
static void assert_round_trip(const char *file)
{
    struct leat_config *config = config_rig_take(file), *again;
    char *first = shown(config), *second;

    again = config_rig_take(first);
    second = shown(again);
    assert_string_equal(first, second);
    leat_config_free(config);
    leat_config_free(again);
    free(first);
    free(second);
}

static void what_is_shown_is_taken_and_shown_the_same(void **state)
{
    (void)state;
    assert_round_trip(NEEDED);
    assert_round_trip("listeners:\n"
                      "  - {address: 'amqps://[::1]:1', cert: c.pem, key: /etc/k.pem}\n"
                      "  - {address: 'amqp://127.0.0.1:0'}\n"
                      "backends:\n"
                      "  r1: {address: 'amqp://10.0.0.1'}\n"
                      "  \"r 2\": {address: 'amqps://10.0.0.2', ca: ca.pem, name: r2, weight: 3}\n"
                      "farms:\n"
                      "  main: {backends: [r1, 'r 2']}\n"
                      "  r1: {backends: ['r 2']}\n"
                      "vhosts:\n"
                      "  /: {farm: main}\n"
                      "  '': {backend: r1}\n"
                      "  \"n\\u00e4he: #\\t\\\"\": {farm: r1}\n"
                      "default: {backend: 'r 2'}\n"
                      "loopback_users: []\n"
                      "workers: 3\n"
                      "logging: {level: warn, trace: true}\n"
                      "control: {socket: leat.sock}\n"
                      "tune: {frame_max: 5000, heartbeat: 0}\n"
                      "timeouts: {tls: 1500ms, connect: 2m, search: 3h}\n"
                      "dns: {servers: [10.0.0.1, '[::1]:5353'], timeout: 2s, ttl_max: 1m}\n"
                      "limits: {sessions: 7, initial_frame: 1MiB, queue: 2GiB}\n");
}

static void what_is_said_of_tls_is_shown_too(void **state)
{
    (void)state;
    assert_round_trip(
        "listeners:\n"
        "  - {address: 'amqp+unix:///run/a.sock'}\n"
        "  - {address: 'amqp+unix:///run/c.sock', mode: 666, proxy_protocol: [unix]}\n"
        "  - {address: 'amqp://127.0.0.1:2', proxy_protocol: [10.0.0.0/8, '::1']}\n"
        "  - {address: 'amqps+unix:///run/b.sock', cert: c.pem, key: k.pem}\n"
        "  - address: amqps://127.0.0.1:1\n"
        "    cert: c.pem\n"
        "    key: k.pem\n"
        "    key_passphrase: p.txt\n"
        "    client_ca: ca.pem\n"
        "    crl: x.crl\n"
        "    min_version: TLSv1.3\n"
        "    ciphersuites: TLS_AES_128_GCM_SHA256\n"
        "    certificates: [a, b]\n"
        "certificates:\n"
        "  a: {cert: a.pem, key: a.key, names: [a.example], min_version: TLSv1.2}\n"
        "  b: {cert: b.pem, key: b.key, client_certificate: none}\n"
        "backends:\n"
        "  r1: {address: 'amqp://rabbit.example:1', proxy_protocol: v1}\n"
        "  r2: {address: 'amqps://rabbit.example', cert: l.pem, key: l.key}\n"
        "  r3: {address: 'amqps+unix:///run/r.sock', insecure_skip_verify: true}\n");
}

static void values_are_as_a_person_writes_them(void **state)
{
    struct leat_config *config = config_rig_take(
        NEEDED "control: {socket: leat.sock}\n"
               "tune: {frame_max: 5000}\ntimeouts: {tls: 1500ms, connect: 2m, search: 3h}\n");
    json_t *json = leat_config_json(config);
    const char *level, *socket, *tls, *connect, *search, *size, *address;
    json_int_t frame_max, channel_max, sessions;
    int trace;

    (void)state;
    assert_int_equal(
        json_unpack(json, "{s:{s:s,s:b},s:{s:s},s:{s:s,s:s,s:s},s:{s:I,s:I},s:{s:I,s:s},s:[{s:s}]}",
                    "logging", "level", &level, "trace", &trace, "control", "socket", &socket,
                    "timeouts", "tls", &tls, "connect", &connect, "search", &search, "tune",
                    "frame_max", &frame_max, "channel_max", &channel_max, "limits", "sessions",
                    &sessions, "session_queue", &size, "listeners", "address", &address),
        0);
    assert_string_equal(level, "info");
    assert_false(trace);
    assert_int_equal(socket[0], '/'); /* wherever the file is taken */
    assert_non_null(strstr(socket, "/leat.sock"));
    assert_string_equal(tls, "1500ms");
    assert_string_equal(connect, "120s");
    assert_string_equal(search, "3h");
    assert_int_equal(frame_max, 5000);
    assert_int_equal(channel_max, 2047);
    assert_int_equal(sessions, 0);
    assert_string_equal(size, "512KiB");
    assert_string_equal(address, "amqp://127.0.0.1:5672");
    assert_null(json_object_get(json, "workers")); /* not set: as many as there are cores */
    json_decref(json);
    leat_config_free(config);
}

static void the_farm_of_a_single_backend_is_not_shown(void **state)
{
    struct leat_config *config = config_rig_take(NEEDED "vhosts: {a: {backend: r1}}\n");
    json_t *json = leat_config_json(config);

    (void)state;
    assert_int_equal(config->farms.count, 1);
    assert_int_equal(json_object_size(json_object_get(json, "farms")), 0);
    assert_null(json_object_get(json, "default"));
    json_decref(json);
    leat_config_free(config);
}

static void every_failing_allocation_yields_nothing(void **state)
{
    struct leat_config *config = config_rig_take(
        NEEDED "farms: {f: {backends: [r1]}}\nvhosts: {a: {farm: f}}\ndefault: {backend: r1}\n"
               "control: {socket: s}\n");
    json_t *json = NULL;
    unsigned failed = 0;

    (void)state;
    json_set_alloc_funcs(leat_mem_alloc, leat_mem_free);
    for (unsigned n = 1; json == NULL; n++) {
        leat_mem_fail_after(n);
        json = leat_config_json(config);
        leat_mem_fail_after(0);
        failed += json == NULL;
    }
    assert_true(failed > 50);
    json_decref(json);
    leat_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shown_is_taken_and_shown_the_same),
        cmocka_unit_test(what_is_said_of_tls_is_shown_too),
        cmocka_unit_test(values_are_as_a_person_writes_them),
        cmocka_unit_test(the_farm_of_a_single_backend_is_not_shown),
        cmocka_unit_test(every_failing_allocation_yields_nothing),
    };
    return cmocka_run_group_tests(tests, config_rig_enter, config_rig_leave);
}
