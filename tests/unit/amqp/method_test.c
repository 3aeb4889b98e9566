/*
 * Tests of amqp/method.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "amqp/method.h"
#include "wire.h"

static void methods_have_their_names(void **state)
{
    static const struct {
        unsigned class_id, method_id;
        const char *name;
    } cases[] = {
        {10, 10, "connection.start"},   {10, 41, "connection.open-ok"},
        {10, 60, "connection.blocked"}, {10, 71, "connection.update-secret-ok"},
        {20, 10, "channel.open"},       {30, 11, "access.request-ok"},
        {40, 51, "exchange.unbind-ok"}, {50, 50, "queue.unbind"},
        {60, 40, "basic.publish"},      {60, 60, "basic.deliver"},
        {60, 72, "basic.get-empty"},    {60, 120, "basic.nack"},
        {85, 10, "confirm.select"},     {90, 31, "tx.rollback-ok"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(
            leat_amqp_method_name(LEAT_AMQP_METHOD(cases[i].class_id, cases[i].method_id)),
            cases[i].name);
}

/* The search relies on the order, so a line out of place would hide its neighbours. */
static void every_method_of_the_table_is_found(void **state)
{
    static const char *const classes[] = {"connection.", "channel.", "access.",  "exchange.",
                                          "queue.",      "basic.",   "confirm.", "tx."};
    static const size_t expected[] = {14, 6, 2, 8, 10, 18, 2, 6};
    size_t found[8] = {0};

    (void)state;
    for (uint32_t class_id = 0; class_id < 200; class_id++) {
        for (uint32_t method_id = 0; method_id < 200; method_id++) {
            const char *name = leat_amqp_method_name(LEAT_AMQP_METHOD(class_id, method_id));

            for (size_t i = 0; name != NULL && i < 8; i++)
                found[i] += strncmp(name, classes[i], strlen(classes[i])) == 0;
        }
    }
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(found[i], expected[i]);
}

static void others_have_none(void **state)
{
    (void)state;
    assert_null(leat_amqp_method_name(0));
    assert_null(leat_amqp_method_name(LEAT_AMQP_METHOD(40, 41)));
    assert_null(leat_amqp_method_name(LEAT_AMQP_METHOD(10, 62)));
    assert_null(leat_amqp_method_name(UINT32_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_have_their_names),
        cmocka_unit_test(every_method_of_the_table_is_found),
        cmocka_unit_test(others_have_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
