/*
 * Tests of proxy/config.h. With the argument --print-reference it prints docs/configuration.md.
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

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config_rig.h"
#include "proxy/config.h"
#include "proxy/config_keys.h"

/* VALUE must be refused with a sentence that has PART in it. */
static void refuse(struct leat_config *config, const char *name, const char *value,
                   const char *part)
{
    struct leat_error err = {.text = ""};

    assert_int_equal(leat_config_set_option(config, leat_str_of(name), leat_str_of(value), &err),
                     LEAT_EUSAGE);
    assert_int_equal(err.status, LEAT_EUSAGE);
    if (strstr(err.text, name) == NULL || strstr(err.text, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", err.text, name, part);
}

static void has_the_documented_defaults(void **state)
{
    const struct leat_config *config = *state;

    assert_int_equal(config->listeners.count, 0);
    assert_int_equal(config->backends.count, 0);
    assert_null(config->cert);
    assert_null(config->key);
    assert_null(config->backend_ca);
    assert_null(config->backend_name);
    assert_int_equal(config->loopback_users.count, 1);
    assert_string_equal(config->loopback_users.at[0], "guest");
    assert_int_equal(config->workers, 0);
    assert_int_equal(config->log_level, LEAT_LOG_INFO);
    assert_false(config->trace);
    assert_int_equal(config->frame_max, 131072);
    assert_int_equal(config->channel_max, 2047);
    assert_int_equal(config->heartbeat_ms, 60000);
    assert_int_equal(config->dns_server_count, 0);
    assert_int_equal(config->timeout_proxy_ms, 3000);
    assert_int_equal(config->timeout_close_ms, 10000);
    assert_int_equal(config->timeout_linger_ms, 5000);
    assert_int_equal(config->limit_session_queue_bytes, 512 * 1024);
    assert_int_equal(config->drain_close_after_ms, 10000);
    assert_int_equal(config->drain_close_until_ms, 25000);
    assert_int_equal(config->drain_end_ms, 30000);
}

#define MEMBER(member) offsetof(struct leat_config, member)
#define DAY_MS 86400000u

static const struct number {
    const char *name;
    size_t offset;
    const char *unit; /* of min and max, in the text */
    uint64_t factor;  /* what the unit means */
    uint64_t min, max;
} numbers[] = {
    {"workers", MEMBER(workers), "", 1, 1, 256},
    {"tls.contexts", MEMBER(tls_contexts), "", 1, 1, 1024},
    {"tls.recheck", MEMBER(tls_recheck_ms), "ms", 1, 100, DAY_MS},
    {"tune.frame_max", MEMBER(frame_max), "", 1, 4096, 16777216},
    {"tune.channel_max", MEMBER(channel_max), "", 1, 1, 65535},
    {"tune.heartbeat", MEMBER(heartbeat_ms), "s", 1000, 0, 65535},
    {"dns.timeout", MEMBER(dns_timeout_ms), "ms", 1, 100, 60000},
    {"dns.tries", MEMBER(dns_tries), "", 1, 1, 10},
    {"dns.ttl_max", MEMBER(dns_ttl_max_ms), "ms", 1, 1000, DAY_MS},
    {"timeouts.proxy", MEMBER(timeout_proxy_ms), "ms", 1, 100, DAY_MS},
    {"timeouts.tls", MEMBER(timeout_tls_ms), "ms", 1, 100, DAY_MS},
    {"timeouts.handshake", MEMBER(timeout_handshake_ms), "ms", 1, 100, DAY_MS},
    {"timeouts.connect", MEMBER(timeout_connect_ms), "ms", 1, 100, DAY_MS},
    {"timeouts.search", MEMBER(timeout_search_ms), "ms", 1, 100, DAY_MS},
    {"timeouts.close", MEMBER(timeout_close_ms), "ms", 1, 100, DAY_MS},
    {"timeouts.linger", MEMBER(timeout_linger_ms), "ms", 1, 100, DAY_MS},
    {"timeouts.flush", MEMBER(timeout_flush_ms), "ms", 1, 100, DAY_MS},
    {"limits.sessions", MEMBER(limit_sessions), "", 1, 0, 10000000},
    {"limits.handshakes", MEMBER(limit_handshakes), "", 1, 1, 10000000},
    {"limits.initial_frame", MEMBER(limit_initial_frame_bytes), "KiB", 1024, 4, 1024},
    {"limits.initial_frames", MEMBER(limit_initial_frames), "", 1, 3, 10000},
    {"limits.session_queue", MEMBER(limit_session_queue_bytes), "KiB", 1024, 16, 512},
    {"limits.queue", MEMBER(limit_queue_bytes), "MiB", 1048576, 1, 1048576},
    {"drain.close_after", MEMBER(drain_close_after_ms), "ms", 1, 0, DAY_MS},
    {"drain.close_until", MEMBER(drain_close_until_ms), "ms", 1, 0, DAY_MS},
    {"drain.end", MEMBER(drain_end_ms), "ms", 1, 0, DAY_MS},
};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static const char *text_of(const struct number *number, uint64_t value, char buf[64])
{
    (void)snprintf(buf, 64, "%llu%s", (unsigned long long)value, number->unit);
    return buf;
}

static uint64_t value_of(const struct leat_config *config, const struct number *number)
{
    uint64_t value;

    memcpy(&value, (const char *)config + number->offset, sizeof(value));
    return value;
}

static void numbers_keep_to_their_ranges(void **state)
{
    struct leat_config *config = *state;
    char text[64];

    for (size_t i = 0; i < NUMBERS; i++) {
        const struct number *number = &numbers[i];
        config_rig_set(config, number->name, text_of(number, number->max, text));
        assert_int_equal(value_of(config, number), number->max * number->factor);
        refuse(config, number->name, text_of(number, number->max + 1, text), text);
        config_rig_set(config, number->name, text_of(number, number->min, text));
        assert_int_equal(value_of(config, number), number->min * number->factor);
        if (number->min > 0)
            refuse(config, number->name, text_of(number, number->min - 1, text), "expected ");
        /* What was refused has changed nothing. */
        assert_int_equal(value_of(config, number), number->min * number->factor);
    }
}

static void numbers_are_written_as_people_write_them(void **state)
{
    static const char *const wrong[] = {
        "", "-1", " 5", "5 ", "+5", "0x10", "five", "1.5s", "5sec", "1e3", "99999999999999999999"};
    struct leat_config *config = *state;

    for (size_t i = 0; i < NUMBERS; i++) {
        for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
            refuse(config, numbers[i].name, wrong[k], "expected ");
    }
    config_rig_set(config, "timeouts.close", "2m");
    assert_int_equal(config->timeout_close_ms, 120000);
    config_rig_set(config, "timeouts.close", "1h");
    assert_int_equal(config->timeout_close_ms, 3600000);
    config_rig_set(config, "tune.frame_max", "1MiB");
    assert_int_equal(config->frame_max, 1048576);
    refuse(config, "timeouts.close", "10", "expected 100ms to 24h, got \"10\"");
    refuse(config, "timeouts.close", "5KiB", "expected 100ms to 24h");
    refuse(config, "tune.frame_max", "5s", "expected 4KiB to 16MiB");
    refuse(config, "tune.channel_max", "1KiB", "expected 1 to 65535");
    refuse(config, "tune.heartbeat", "65536s", "expected 0s to 65535s");
}

static void endpoints_add_up(void **state)
{
    struct leat_config *config = *state;
    char text[LEAT_ADDR_TEXT_MAX];

    config_rig_set(config, "listen", "amqp://127.0.0.1");
    config_rig_set(config, "listen", "amqps://127.0.0.1");
    config_rig_set(config, "listen", "amqps://[::1]:0");
    config_rig_set(config, "backend", "amqp://[::1]");
    config_rig_set(config, "backend", "amqps://10.0.0.1:7000");
    assert_int_equal(config->listeners.count, 3);
    assert_false(config->listeners.at[0].endpoint.tls);
    assert_string_equal(leat_addr_text(&config->listeners.at[0].endpoint.addr, text),
                        "127.0.0.1:5672");
    assert_true(config->listeners.at[1].endpoint.tls);
    assert_string_equal(leat_addr_text(&config->listeners.at[1].endpoint.addr, text),
                        "127.0.0.1:5671");
    assert_string_equal(leat_addr_text(&config->listeners.at[2].endpoint.addr, text), "[::1]:0");
    assert_int_equal(config->backends.count, 2);
    assert_false(config->backends.at[0].endpoint.tls);
    assert_string_equal(config->backends.at[0].name, "[::1]:5672");
    assert_int_equal(config->backends.at[0].weight, 1);
    assert_true(config->backends.at[1].endpoint.tls);
    assert_string_equal(config->backends.at[1].name, "10.0.0.1:7000");
    assert_string_equal(leat_addr_text(&config->backends.at[1].endpoint.addr, text),
                        "10.0.0.1:7000");
}

static void endpoints_are_judged(void **state)
{
    static const char *const wrong[] = {"",       "127.0.0.1:5672",      "http://127.0.0.1",
                                        "amqp:",  "AMQP://127.0.0.1",    "amqp://",
                                        "amqps:", "amqp://127.0.0.1:",   "amqp://127.0.0.1:65536",
                                        "amqp",   "amqp://127.0.0.1/vh", "amqp://::1"};
    struct leat_config *config = *state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        refuse(config, "listen", wrong[i], "");
        refuse(config, "backend", wrong[i], "");
    }
    refuse(config, "listen", "127.0.0.1", "expected amqp[s]://HOST:PORT or amqp[s]+unix:///PATH");
    refuse(config, "listen", "amqp://\n", "got \"\\x0a\"");
    assert_int_equal(config->listeners.count, 0);
    assert_int_equal(config->backends.count, 0);
}

static void endpoints_are_bounded(void **state)
{
    struct leat_config *config = *state;

    char url[64];

    for (int i = 0; i < LEAT_CONFIG_BACKENDS_MAX; i++) {
        (void)snprintf(url, sizeof(url), "amqp://127.0.0.1:%d", 7000 + i);
        config_rig_set(config, "backend", url);
        config_rig_set(config, "listen", url);
    }
    refuse(config, "backend", "amqp://127.0.0.1", "at most 64 are allowed");
    refuse(config, "listen", "amqp://127.0.0.1", "at most 64 are allowed");
    assert_int_equal(config->backends.count, LEAT_CONFIG_BACKENDS_MAX);
    assert_int_equal(config->listeners.count, LEAT_CONFIG_LISTENERS_MAX);
}

static void a_backend_is_given_once(void **state)
{
    struct leat_config *config = *state;

    config_rig_set(config, "backend", "amqp://127.0.0.1");
    refuse(config, "backend", "amqp://127.0.0.1:5672", "\"127.0.0.1:5672\": is there already");
    assert_int_equal(config->backends.count, 1);
}

static void the_last_text_counts(void **state)
{
    struct leat_config *config = *state;
    const struct leat_str with_nul = {"a\0b", 3};
    struct leat_error err;

    config_rig_set(config, "cert", "one.pem");
    config_rig_set(config, "cert", "two.pem");
    assert_string_equal(config->cert, "two.pem");
    config_rig_set(config, "key", "key.pem");
    config_rig_set(config, "backend-ca", "ca.pem");
    config_rig_set(config, "backend-name", "rabbit.example");
    assert_string_equal(config->key, "key.pem");
    assert_string_equal(config->backend_ca, "ca.pem");
    assert_string_equal(config->backend_name, "rabbit.example");
    refuse(config, "cert", "", "the name of a file");
    refuse(config, "key", "", "the name of a file");
    assert_int_equal(leat_config_set_option(config, leat_str_of("cert"), with_nul, &err),
                     LEAT_EUSAGE);
    assert_string_equal(config->cert, "two.pem");
    assert_int_equal(
        leat_config_set_option(config, leat_str_of("loopback_users"), (struct leat_str){0}, &err),
        LEAT_OK);
    assert_int_equal(config->loopback_users.count, 0);
}

static void flags_and_levels(void **state)
{
    struct leat_config *config = *state;

    refuse(config, "trace", "off", "takes no value");
    assert_false(config->trace);
    config_rig_set(config, "trace", "");
    assert_true(config->trace);
    config_rig_set(config, "log-level", "error");
    assert_int_equal(config->log_level, LEAT_LOG_ERROR);
    config_rig_set(config, "log-level", "trace");
    assert_int_equal(config->log_level, LEAT_LOG_TRACE);
    refuse(config, "log-level", "loud", "error, warn, info, debug or trace, got \"loud\"");
    refuse(config, "log-level", "INFO", "expected");
    assert_int_equal(config->log_level, LEAT_LOG_TRACE);
}

static void unknown_keys_are_refused(void **state)
{
    struct leat_config *config = *state;

    refuse(config, "lissten", "amqp://127.0.0.1", "unknown option");
    refuse(config, "", "", "unknown option");
    refuse(config, "Trace", "", "unknown option --Trace; did you mean --trace?");
    refuse(config, "timeouts.tsl", "5s", "did you mean --timeouts.tls?");
    refuse(config, "nothing.of.this.kind", "", "see leat --help");
    refuse(config, "logging.level", "info", "unknown option");
    assert_false(leat_config_has_option(leat_str_of("listen ")));
    assert_false(leat_config_has_option(leat_str_of("liste")));
    assert_false(leat_config_has_option(leat_str_of("")));
    assert_true(leat_config_has_option(leat_str_of("listen")));
    assert_true(leat_config_is_flag(leat_str_of("trace")));
    assert_false(leat_config_is_flag(leat_str_of("listen")));
    assert_false(leat_config_is_flag(leat_str_of("nothing")));
}

/* The sentence is one line whatever the name, and has no password. */
static void unknown_keys_are_shown_with_care(void **state)
{
    static const char *const cases[][2] = {
        {"x\n\033\210",
         "unknown option --\"x\\x0a\\x1b\\x88\"; see leat --help for those there are"},
        {"amqp://u:secret@h",
         "unknown option --a URL with a user; see leat --help for those there are"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct leat_error err = {.text = ""};

        assert_int_equal(
            leat_config_set_option(*state, leat_str_of(cases[i][0]), leat_str_of(""), &err),
            LEAT_EUSAGE);
        assert_string_equal(err.text, cases[i][1]);
    }
}

static char *help(void)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    assert_non_null(file);
    leat_config_print_help(file);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void help_has_every_key(void **state)
{
    static const char *const others[] = {
        "listen", "cert",      "key",     "backend",        "backend-ca",     "backend-name",
        "trace",  "log-level", "workers", "loopback_users", "control-socket", "dns.servers"};
    char *text = help(), option[64];
    size_t lines = 0;

    (void)state;
    for (size_t i = 0; i < NUMBERS; i++) {
        (void)snprintf(option, sizeof(option), "  --%s ", numbers[i].name);
        if (strstr(text, option) == NULL)
            fail_msg("no %s", option);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        (void)snprintf(option, sizeof(option), "  --%s ", others[i]);
        if (strstr(text, option) == NULL)
            fail_msg("no %s", option);
    }
    /* "workers" is in both lists: so no key is missing in this test. */
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    assert_int_equal(lines, NUMBERS + sizeof(others) / sizeof(others[0]) - 1);
    assert_non_null(strstr(text, "[128KiB]"));
    assert_non_null(strstr(text, "--trace "));
    assert_non_null(strstr(text, "--cert FILE"));
    free(text);
}

/* The defaults that the help shows are values that the key takes. */
static void help_shows_defaults_that_are_allowed(void **state)
{
    struct leat_config *config = *state;
    char *text = help(), *rest = text, *line;
    unsigned shown = 0;

    while ((line = strsep(&rest, "\n")) != NULL) {
        char *open = strrchr(line, '['), *close = strrchr(line, ']');
        if (open == NULL || close == NULL)
            continue;
        *close = '\0';
        line[strcspn(line + 4, " ") + 4] = '\0';
        config_rig_set(config, line + 4, open + 1);
        shown++;
    }
    assert_int_equal(shown, 27);
    free(text);
}

struct option {
    const char *name, *value;
};

static bool is_local(const struct leat_config *config, const char *user)
{
    return leat_config_is_loopback_user(config, leat_str_of(user));
}

static void loopback_users_are_whole_names(void **state)
{
    struct leat_config *config = *state;

    assert_true(is_local(config, "guest"));
    assert_false(is_local(config, "gues"));
    assert_false(is_local(config, "guest2"));
    assert_false(is_local(config, "Guest"));
    assert_false(is_local(config, ""));
    config_rig_set(config, "loopback_users", "");
    assert_false(is_local(config, "guest"));
    assert_false(is_local(config, ""));
    config_rig_set(config, "loopback_users", "ann,anne,bob");
    assert_true(is_local(config, "ann"));
    assert_true(is_local(config, "anne"));
    assert_true(is_local(config, "bob"));
    assert_false(is_local(config, "an"));
    assert_false(is_local(config, "ann,anne"));
    assert_false(is_local(config, "guest"));
    config_rig_set(config, "loopback_users", "anne,ann,");
    assert_true(is_local(config, "ann"));
    assert_true(is_local(config, "anne"));
    assert_false(is_local(config, "bob"));
    assert_false(leat_config_is_loopback_user(config, (struct leat_str){"ann\0", 4}));
}

static void a_space_does_not_open_the_door(void **state)
{
    static const char *const wrong[] = {"ann, bob", "ann ,bob", " ann", "ann "};
    struct leat_config *config = *state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        refuse(config, "loopback_users", wrong[i],
               "expected names separated by commas, without spaces around these, got \"");
    assert_true(is_local(config, "guest"));
    config_rig_set(config, "loopback_users", "ann lee,bob");
    assert_true(is_local(config, "ann lee"));
}

static enum leat_status set(struct leat_config *config, const char *name, const char *value,
                            unsigned fail_at)
{
    struct leat_error err;

    leat_mem_fail_after(fail_at);
    enum leat_status status =
        leat_config_set_option(config, leat_str_of(name), leat_str_of(value), &err);
    leat_mem_fail_after(0);
    return status;
}

static enum leat_status scenario(void)
{
    static const struct option options[] = {
        {"listen", "amqps://127.0.0.1"},
        {"listen", "amqp://127.0.0.1"},
        {"cert", "cert.pem"},
        {"key", "key.pem"},
        {"backend", "amqps://10.0.0.1"},
        {"backend", "amqp://10.0.0.2"},
        {"backend-ca", "ca.pem"},
        {"backend-name", "rabbit"},
        {"loopback_users", "ann,bob"},
    };
    struct leat_config *config = NULL;
    struct leat_error err;
    enum leat_status status = leat_config_new(&config, &err);

    for (size_t i = 0; status == LEAT_OK && i < sizeof(options) / sizeof(options[0]); i++)
        status = leat_config_set_option(config, leat_str_of(options[i].name),
                                        leat_str_of(options[i].value), &err);
    if (status == LEAT_OK)
        status = leat_config_finish(config, &err);
    leat_config_free(config);
    return status;
}

static void survives_every_failing_allocation(void **state)
{
    struct leat_config *config = *state;
    unsigned n = 0;
    enum leat_status status;

    do {
        leat_mem_fail_after(++n);
        status = scenario();
        assert_true(status == LEAT_OK || status == LEAT_ENOMEM);
    } while (status != LEAT_OK);
    leat_mem_fail_after(0);
    assert_in_range(n, 20, 100);
    assert_int_equal(set(config, "cert", "a", 1), LEAT_ENOMEM);
    assert_int_equal(set(config, "loopback_users", "a,b", 2), LEAT_ENOMEM);
    assert_null(config->cert);
    assert_true(is_local(config, "guest"));
    leat_config_free(NULL);
}

static void the_reference_is_up_to_date(void **state)
{
    char *made = NULL, *kept;
    size_t made_len = 0, kept_len;
    FILE *file = open_memstream(&made, &made_len);

    (void)state;
    assert_non_null(file);
    leat_config_print_reference(file);
    assert_int_equal(fclose(file), 0);
    file = fopen(REFERENCE, "r");
    assert_non_null(file);
    kept = calloc(1, made_len + 2);
    assert_non_null(kept);
    kept_len = fread(kept, 1, made_len + 1, file);
    assert_int_equal(fclose(file), 0);
    if (kept_len != made_len || memcmp(kept, made, made_len) != 0)
        fail_msg("make it anew: proxy_config_test --print-reference > %s", REFERENCE);
    free(kept);
    free(made);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, config_rig_new, config_rig_free)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(has_the_documented_defaults),
        TEST(numbers_keep_to_their_ranges),
        TEST(numbers_are_written_as_people_write_them),
        TEST(endpoints_add_up),
        TEST(endpoints_are_judged),
        TEST(endpoints_are_bounded),
        TEST(a_backend_is_given_once),
        TEST(the_last_text_counts),
        TEST(flags_and_levels),
        TEST(unknown_keys_are_refused),
        TEST(unknown_keys_are_shown_with_care),
        TEST(help_has_every_key),
        TEST(help_shows_defaults_that_are_allowed),
        TEST(loopback_users_are_whole_names),
        TEST(a_space_does_not_open_the_door),
        TEST(survives_every_failing_allocation),
        cmocka_unit_test(the_reference_is_up_to_date),
    };

    if (argc > 1 && strcmp(argv[1], "--print-reference") == 0) {
        leat_config_print_reference(stdout);
        return 0;
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
