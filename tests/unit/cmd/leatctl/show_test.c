/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "proxy/json_out.h"
#include "show.h"

static const char sessions[] = "{\"ok\":true,\"sessions\":["
                               "{\"id\":2,\"state\":\"open\",\"seconds\":61},"
                               "{\"id\":1,\"state\":\"tls\",\"user\":\"\\u001b\"}]}";
static const char config[] = "{\"ok\":true,\"config\":{\"a\":[\"text\",\"1\"],\"b\":{\"~\":true}}}";
static const char status_answer[] =
    "{\"ok\":true,\"counters\":{\"opened\":1},\"workers\":[{\"sessions\":1}]}";

/* Shows TEXT as the answer to VERB; the caller frees *OUT. */
static enum leat_status show(const char *verb, const char *text, char **out)
{
    struct leat_order order = {.watches = false};
    struct leat_error err;
    json_t *answer = json_loads(text, 0, NULL);
    size_t len;
    FILE *file = open_memstream(out, &len);
    enum leat_status status = LEAT_ENOMEM;

    assert_int_equal(leat_verb_find(verb, &order.verb, &err), LEAT_OK);
    if (answer != NULL)
        status = leat_show_answer(&order, answer, file);
    (void)fclose(file);
    json_decref(answer);
    return status;
}

static void expect(const char *verb, const char *text, const char *expected)
{
    char *shown;

    assert_int_equal(show(verb, text, &shown), LEAT_OK);
    assert_string_equal(shown, expected);
    free(shown);
}

static void sessions_are_a_table(void **state)
{
    (void)state;
    expect("sessions", sessions,
           "ID  STATE  CLIENT  USER  VHOST  BACKEND   FOR  IN  OUT  WAITS FOR  NAME\n"
           " 1  tls    -       \\x1b  -      -           -   -    -  -          -\n"
           " 2  open   -       -     -      -        1m1s   -    -  -          -\n"
           "2 sessions\n");
}

static void tls_is_told_context_by_context(void **state)
{
    (void)state;
    expect("tls",
           "{\"ok\":true,\"builds\":2,\"contexts\":["
           "{\"used_by\":[\"backends.a\"],\"ca\":null,\"authorities\":3,"
           "\"authorities_until\":\"2036\",\"failure\":\"no \\u001b\"},"
           "{\"used_by\":[\"backends.b\"],\"insecure_skip_verify\":true}],"
           "\"cache\":{\"entries\":2,\"hits\":9,\"misses\":2,\"builds\":2,\"failures\":1,"
           "\"rechecks\":4,\"evictions\":0},\"trust_stores\":{\"stores\":1,\"parses\":1}}",
           "used by             backends.a\n"
           "trusts              the system's authorities\n"
           "authorities         3\n"
           "the last until      2036\n"
           "not read again      no \\x1b\n"
           "\n"
           "used by             backends.b\n"
           "trusts              anyone: insecure_skip_verify\n"
           "\n"
           "for backends        2\n"
           "found ready         9\n"
           "had to wait         2\n"
           "built               2\n"
           "failed builds       1\n"
           "files looked at     4\n"
           "put out             0\n"
           "trust stores        stores 1, parses 1\n"
           "\n"
           "2 contexts, 2 built since the start\n");
}

static void the_configuration_is_yaml(void **state)
{
    (void)state;
    expect("config", config, "a: [text, \"1\"]\nb:\n  \"~\": true\n");
}

/* What could not be shown is told, whichever allocation it was that failed. */
static void memory_may_be_short(void **state)
{
    static const char *const verbs[] = {"sessions", "status"};
    static const char *const answers[] = {sessions, status_answer};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        unsigned n = 0;
        enum leat_status status;
        do {
            char *shown;
            leat_mem_fail_after(++n);
            status = show(verbs[i], answers[i], &shown);
            free(shown);
            assert_true(status == LEAT_OK || status == LEAT_ENOMEM);
        } while (status != LEAT_OK);
        leat_mem_fail_after(0);
        assert_true(n > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_are_a_table),
        cmocka_unit_test(tls_is_told_context_by_context),
        cmocka_unit_test(the_configuration_is_yaml),
        cmocka_unit_test(memory_may_be_short),
    };

    leat_json_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
