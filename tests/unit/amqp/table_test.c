/*
 * Tests of amqp/table.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "amqp/table.h"
#include "base/str.h"
#include "buf/reader.h"
#include "buf/writer.h"
#include "wire.h"

static const uint8_t zeros[8];

/* A table with every type there is; returns how many entries. */
static size_t add_all_types(struct wire *wire)
{
    static const struct {
        char type;
        size_t len;
    } fixed[] = {{'V', 0}, {'t', 1}, {'b', 1}, {'B', 1}, {'s', 2}, {'u', 2}, {'U', 2}, {'I', 4},
                 {'i', 4}, {'f', 4}, {'D', 5}, {'l', 8}, {'L', 8}, {'d', 8}, {'T', 8}};
    const size_t count = sizeof(fixed) / sizeof(fixed[0]);
    struct wire inner = {0};

    for (size_t i = 0; i < count; i++)
        wire_field(wire, "fixed", fixed[i].type, zeros, fixed[i].len);
    wire_text(wire, "text", "some text");
    wire_field(wire, "bytes", 'x', "\0\0\0\2ab", 6);
    wire_text(&inner, "a", "b");
    wire_field(&inner, "yes", 't', "\1", 1);
    wire_str8(wire, "table");
    wire_u8(wire, 'F');
    wire_str32(wire, inner.buf, inner.len);
    wire_field(wire, "array", 'A', "\0\0\0\4t\1VV", 8);
    wire_free(&inner);
    return count + 4;
}

static bool is_valid(const struct wire *wire)
{
    return leat_amqp_table_is_valid(wire_str(wire));
}

static void entries_come_one_after_the_other(void **state)
{
    struct wire table = {0}, again = {0};
    struct leat_reader reader;
    struct leat_amqp_field field;
    size_t count = 0;

    (void)state;
    size_t expected = add_all_types(&table);
    assert_true(is_valid(&table));
    leat_reader_init(&reader, table.buf, table.len);
    while (leat_amqp_table_next(&reader, &field)) {
        assert_int_equal(field.whole.len, 1 + field.key.len + 1 + field.value.len);
        wire_add(&again, field.whole.ptr, field.whole.len);
        count++;
    }
    assert_false(reader.failed);
    assert_int_equal(count, expected);
    assert_true(wire_equal(&table, &again));
    wire_free(&table);
    wire_free(&again);
}

static void a_table_that_is_cut_is_malformed(void **state)
{
    struct wire table = {0};

    (void)state;
    assert_true(is_valid(&table));
    (void)add_all_types(&table);
    size_t whole = table.len;
    size_t valid = 0;
    for (size_t len = 1; len < whole; len++) {
        uint8_t *copy = malloc(len);

        assert_non_null(copy);
        memcpy(copy, table.buf, len);
        valid += leat_amqp_table_is_valid((struct leat_str){(const char *)copy, len});
        free(copy);
    }
    assert_int_equal(valid, 18); /* where one entry ends and the next does not begin yet */
    wire_free(&table);
}

static void unknown_types_are_malformed(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        struct wire table = {0};

        wire_field(&table, "k", (char)type, zeros, 0);
        table.len = 3;
        for (size_t len = 0; len < 9 && !is_valid(&table); len++)
            wire_u8(&table, 0);
        bool known = type != 0 && strchr("VtbBsuUIifDlLdTSxFA", (int)type) != NULL;
        assert_int_equal(is_valid(&table), known);
        wire_free(&table);
    }
}

/* LEVELS tables, or arrays, each in the one before it, in the outermost table. */
static bool is_depth_valid(unsigned levels, char type)
{
    struct wire table = {0}, outer = {0};

    for (unsigned i = 0; i < levels; i++) {
        outer.len = 0;
        if (type == 'F' || i + 1 == levels)
            wire_str8(&outer, "k");
        wire_u8(&outer, (unsigned char)type);
        wire_str32(&outer, table.buf, table.len);
        table.len = 0;
        wire_add(&table, outer.buf, outer.len);
    }
    bool valid = is_valid(&table);
    wire_free(&table);
    wire_free(&outer);
    return valid;
}

static void depth_is_bounded(void **state)
{
    (void)state;
    assert_true(is_depth_valid(1, 'F'));
    assert_true(is_depth_valid(LEAT_AMQP_TABLE_DEPTH_MAX, 'F'));
    assert_false(is_depth_valid(LEAT_AMQP_TABLE_DEPTH_MAX + 1, 'F'));
    assert_false(is_depth_valid(20000, 'F'));
    assert_true(is_depth_valid(LEAT_AMQP_TABLE_DEPTH_MAX, 'A'));
    assert_false(is_depth_valid(LEAT_AMQP_TABLE_DEPTH_MAX + 1, 'A'));
    assert_false(is_depth_valid(20000, 'A'));
}

static void the_first_entry_of_a_name_is_found(void **state)
{
    struct wire table = {0};
    struct leat_amqp_field field;

    (void)state;
    (void)add_all_types(&table);
    wire_text(&table, "text", "another");
    wire_field(&table, "yes", 't', "\1", 1);
    wire_field(&table, "no", 't', "\0", 1);
    wire_field(&table, "octet", 'B', "\1", 1);
    struct leat_str str = wire_str(&table);
    assert_true(leat_amqp_table_find(str, leat_str_of("text"), &field));
    assert_true(leat_str_equal(leat_amqp_field_contents(&field), leat_str_of("some text")));
    assert_true(leat_amqp_table_find(str, leat_str_of("table"), &field));
    assert_true(leat_amqp_table_is_true(leat_amqp_field_contents(&field), leat_str_of("yes")));
    assert_true(leat_amqp_table_find(str, leat_str_of("bytes"), &field));
    assert_int_equal(leat_amqp_field_contents(&field).len, 0);
    assert_false(leat_amqp_table_find(str, leat_str_of("tex"), &field));
    assert_true(leat_amqp_table_is_true(str, leat_str_of("yes")));
    assert_false(leat_amqp_table_is_true(str, leat_str_of("no")));
    assert_false(leat_amqp_table_is_true(str, leat_str_of("octet")));
    assert_false(leat_amqp_table_is_true(str, leat_str_of("absent")));
    wire_free(&table);
}

static void what_is_written_is_read(void **state)
{
    uint8_t buf[64];
    struct leat_writer writer;
    struct leat_amqp_field field;

    (void)state;
    leat_writer_init(&writer, buf, sizeof(buf));
    leat_amqp_write_field_text(&writer, leat_str_of("key"), leat_str_of("value"));
    leat_amqp_write_field_bool(&writer, leat_str_of("yes"), true);
    leat_amqp_write_field_bool(&writer, leat_str_of("no"), false);
    struct leat_str table = {(const char *)buf, writer.len};
    assert_true(leat_amqp_table_is_valid(table));
    assert_true(leat_amqp_table_find(table, leat_str_of("key"), &field));
    assert_true(leat_str_equal(leat_amqp_field_contents(&field), leat_str_of("value")));
    assert_true(leat_amqp_table_is_true(table, leat_str_of("yes")));
    assert_true(leat_amqp_table_find(table, leat_str_of("no"), &field));
    assert_false(leat_amqp_table_is_true(table, leat_str_of("no")));
}

/* The sanitizers see a read that goes too far. */
static void noise_does_no_harm(void **state)
{
    struct wire table = {0};
    uint32_t seed = 5;

    (void)state;
    (void)add_all_types(&table);
    for (int round = 0; round < 20000; round++) {
        uint8_t *copy = malloc(table.len);

        assert_non_null(copy);
        memcpy(copy, table.buf, table.len);
        for (int i = 0; i < 3; i++)
            copy[wire_random(&seed, (uint32_t)table.len)] = (uint8_t)wire_random(&seed, 256);
        (void)leat_amqp_table_is_valid((struct leat_str){(const char *)copy, table.len});
        free(copy);
    }
    wire_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_one_after_the_other),
        cmocka_unit_test(a_table_that_is_cut_is_malformed),
        cmocka_unit_test(unknown_types_are_malformed),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(the_first_entry_of_a_name_is_found),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(noise_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
