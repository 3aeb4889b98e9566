/* Tests of proxy/endpoint.h. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "proxy/endpoint.h"

#define LABEL63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static enum leat_status parse(const char *text, struct leat_endpoint *out, struct leat_error *err)
{
    return leat_endpoint_parse(leat_str_of(text), 5671, 5672, out, err);
}

static void what_is_right_has_a_text(void **state)
{
    static const struct {
        const char *from, *scheme, *text;
        bool is_named;
    } right[] = {
        {"amqp://127.0.0.1", "amqp", "127.0.0.1:5672", false},
        {"amqps://127.0.0.1", "amqps", "127.0.0.1:5671", false},
        {"amqps://[::1]:7", "amqps", "[::1]:7", false},
        {"amqp://rabbit", "amqp", "rabbit:5672", true},
        {"amqps://rabbit.example.:443", "amqps", "rabbit.example.:443", true},
        {"amqp://1a.2b-c.3com_x", "amqp", "1a.2b-c.3com_x:5672", true},
        {"amqp+unix:///run/a.sock", "amqp+unix", "unix:/run/a.sock", false},
        {"amqps+unix:///run/a.sock", "amqps+unix", "unix:/run/a.sock", false},
        {"amqp://" LABEL63, "amqp", LABEL63 ":5672", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        struct leat_endpoint endpoint = {.tls = false};
        struct leat_error err = {.text = ""};
        char text[LEAT_ENDPOINT_TEXT_MAX];
        enum leat_status status = parse(right[i].from, &endpoint, &err);
        if (status != LEAT_OK)
            fail_msg("%s: %s", right[i].from, err.text);
        assert_string_equal(leat_endpoint_scheme(&endpoint), right[i].scheme);
        assert_string_equal(leat_endpoint_text(&endpoint, text), right[i].text);
        assert_int_equal(endpoint.host != NULL, right[i].is_named);
        assert_true(leat_endpoint_is_given(&endpoint));
        leat_endpoint_fini(&endpoint);
    }
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text, *sentence;
    } wrong[] = {
        {"", "expected amqp[s]://HOST:PORT or amqp[s]+unix:///PATH, got \"\""},
        {"rabbit", "expected amqp[s]://HOST:PORT or amqp[s]+unix:///PATH, got \"rabbit\""},
        {"amqp://a@b", "no user or password belongs here, each client brings its own; expected "
                       "amqp[s]://HOST:PORT or amqp[s]+unix:///PATH"},
        {"amqp://", "a numeric address like 127.0.0.1:5672 or [::1]:5672, got \"\""},
        {"amqp://127.0.0.256", "a numeric address like"},
        {"amqp://127.1", "a numeric address like"},
        {"amqp://[::1", "a numeric address like"},
        {"amqp://127.0.0.1:x", "a port from 1 to 65535"},
        {"amqp://0x7f.1", "a host name, or a numeric address"},
        {"amqp://a.0x7f", "a host name, or a numeric address"},
        {"amqp://a.1", "a host name, or a numeric address"},
        {"amqp://a..b", "a host name, or a numeric address"},
        {"amqp://.a", "a host name, or a numeric address"},
        {"amqp://-a", "a host name, or a numeric address"},
        {"amqp://a-", "a host name, or a numeric address"},
        {"amqp://a b", "a host name, or a numeric address"},
        {"amqp://a/", "a host name, or a numeric address"},
        {"amqp://" LABEL63 "a", "a host name, or a numeric address"},
        {"amqp://a:", "a port from 1 to 65535 after the host, got \"a:\""},
        {"amqp://a:65536", "a port from 1 to 65535 after the host"},
        {"amqp://a:1:2", "a port from 1 to 65535 after the host"},
        {"amqp+unix://", "the path of a UNIX socket"},
        {"amqp+unix://run/x", "an absolute path"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct leat_endpoint endpoint = {.tls = false};
        struct leat_error err = {.text = ""};
        assert_int_equal(parse(wrong[i].text, &endpoint, &err), LEAT_EUSAGE);
        if (strstr(err.text, wrong[i].sentence) == NULL)
            fail_msg("%s: %s\ninstead of: %s", wrong[i].text, err.text, wrong[i].sentence);
        assert_false(leat_endpoint_is_given(&endpoint));
    }
}

static void a_name_has_at_most_253_bytes(void **state)
{
    struct leat_endpoint endpoint = {.tls = false};
    struct leat_error err;
    char text[300] = "amqp://";

    (void)state;
    for (size_t i = 0; i < LEAT_ENDPOINT_HOST_MAX + 1; i++)
        text[7 + i] = (i % 2 == 0) ? 'a' : '.';
    assert_int_equal(parse(text, &endpoint, &err), LEAT_EUSAGE);
    text[7 + LEAT_ENDPOINT_HOST_MAX] = '\0';
    assert_int_equal(parse(text, &endpoint, &err), LEAT_OK);
    assert_int_equal(strlen(leat_endpoint_text(&endpoint, text)), LEAT_ENDPOINT_HOST_MAX + 5);
    leat_endpoint_fini(&endpoint);
}

static void only_the_same_place_in_the_same_way_is_equal(void **state)
{
    static const char *const all[] = {"amqp://a",         "amqps://a:5672",  "amqp://a:1",
                                      "amqp://127.0.0.1", "amqp://[::1]",    "amqp+unix:///a",
                                      "amqps+unix:///a",  "amqp+unix:///a/b"};
    struct leat_endpoint parsed[sizeof(all) / sizeof(all[0])];
    struct leat_error err;

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_int_equal(parse(all[i], &parsed[i], &err), LEAT_OK);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
            assert_int_equal(leat_endpoint_is_equal(&parsed[i], &parsed[k]), i == k);
    }
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        leat_endpoint_fini(&parsed[i]);
}

static void lack_of_memory_is_told(void **state)
{
    struct leat_endpoint endpoint = {.tls = false};
    struct leat_error err;

    (void)state;
    leat_mem_fail_after(1);
    assert_int_equal(parse("amqp://rabbit", &endpoint, &err), LEAT_ENOMEM);
    leat_mem_fail_after(0);
    assert_false(leat_endpoint_is_given(&endpoint));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right_has_a_text),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_name_has_at_most_253_bytes),
        cmocka_unit_test(only_the_same_place_in_the_same_way_is_equal),
        cmocka_unit_test(lack_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
