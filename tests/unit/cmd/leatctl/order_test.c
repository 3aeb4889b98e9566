/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "order.h"
#include "proxy/json_out.h"

/* Parses a command line with every kind of word in it. */
static enum leat_status parse(struct leat_order *out)
{
    static char words[][16] = {"leatctl", "-s",     "/x",     "sessions", "--vhost=/",
                               "--user",  "orders", "--json", "--follow"};
    char *argv[sizeof(words) / sizeof(words[0])];
    int argc = 0;
    struct leat_error err;

    for (; (size_t)argc < sizeof(words) / sizeof(words[0]); argc++)
        argv[argc] = words[argc];
    return leat_order_parse(argc, argv, out, &err);
}

static void an_order_is_a_request(void **state)
{
    struct leat_order order;
    char *text;

    (void)state;
    assert_int_equal(parse(&order), LEAT_OK);
    assert_string_equal(order.socket, "/x");
    assert_true(order.json && order.watches && !order.help && !order.version);
    assert_int_equal(order.verb->id, LEAT_VERB_SESSIONS);
    text = json_dumps(order.request, JSON_COMPACT);
    assert_string_equal(
        text, "{\"verb\":\"sessions\",\"vhost\":\"/\",\"user\":\"orders\",\"follow\":true}");
    leat_mem_free(text);
    leat_order_fini(&order);
}

static void short_of_memory(void **state)
{
    struct leat_order order;
    unsigned n = 0;
    enum leat_status status;

    (void)state;
    do {
        leat_mem_fail_after(++n);
        status = parse(&order);
        assert_true(status == LEAT_OK || status == LEAT_ENOMEM);
    } while (status != LEAT_OK);
    leat_mem_fail_after(0);
    leat_order_fini(&order);
    assert_true(n > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_is_a_request),
        cmocka_unit_test(short_of_memory),
    };

    leat_json_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
