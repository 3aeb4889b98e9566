/*
 * Fuzzes amqp/table.h. Input: a table's contents.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "amqp/table.h"
#include "base/assert.h"
#include "base/str.h"
#include "buf/reader.h"
#include "buf/writer.h"
#include "fuzz/fuzz.h"

/* How many bytes a value of TYPE has; -1: it has a length of its own; -2: there is none. */
static int size_of(uint8_t type)
{
    static const char types[] = "VtbBsuUIifDlLdTSxFA";
    static const signed char sizes[] = {0, 1, 1, 1, 2, 2,  2,  4,  4, 4,
                                        5, 8, 8, 8, 8, -1, -1, -1, -1};
    const char *found = memchr(types, type, sizeof(types) - 1);

    return found == NULL ? -2 : sizes[found - types];
}

/* Whether CONTENTS are those of a table, or of an array, that DEPTH others are around. */
static bool model(struct leat_str contents, bool has_keys, int depth)
{
    struct leat_reader reader;

    leat_reader_init(&reader, contents.ptr, contents.len);
    while (leat_reader_left(&reader) > 0) {
        if (has_keys)
            (void)leat_reader_str8(&reader);
        uint8_t type = leat_reader_u8(&reader);
        int size = size_of(type);
        struct leat_str value =
            size < 0 ? leat_reader_str32(&reader) : leat_reader_bytes(&reader, (size_t)size);

        if (reader.failed || size == -2)
            return false;
        if ((type == 'F' || type == 'A') &&
            (depth == LEAT_AMQP_TABLE_DEPTH_MAX || !model(value, type == 'F', depth + 1)))
            return false;
    }
    return !reader.failed;
}

static void check_field(struct leat_str table, const struct leat_amqp_field *field)
{
    struct leat_amqp_field first;
    struct leat_str contents = leat_amqp_field_contents(field);

    /* The entry is its key, type and value. */
    LEAT_ASSERT(field->whole.len == 1 + field->key.len + 1 + field->value.len);
    LEAT_ASSERT(field->key.ptr == field->whole.ptr + 1);
    LEAT_ASSERT(field->value.ptr == field->key.ptr + field->key.len + 1);
    LEAT_ASSERT(leat_amqp_table_find(table, field->key, &first));
    LEAT_ASSERT(first.whole.ptr <= field->whole.ptr && leat_str_equal(first.key, field->key));
    if (field->type == 'S' || field->type == 'F')
        LEAT_ASSERT(contents.len + 4 == field->value.len);
    else
        LEAT_ASSERT(contents.len == 0);
    if (field->type == 'F')
        LEAT_ASSERT(leat_amqp_table_is_valid(contents));
}

/* A table that is valid is the sum of its entries, one that is not ends in a failure. */
static void check_entries(struct leat_str table, bool is_valid)
{
    struct leat_amqp_field field;
    struct leat_reader reader;
    size_t sum = 0;

    leat_reader_init(&reader, table.ptr, table.len);
    while (leat_amqp_table_next(&reader, &field)) {
        LEAT_ASSERT(field.whole.ptr == table.ptr + sum);
        sum += field.whole.len;
        if (is_valid)
            check_field(table, &field);
    }
    LEAT_ASSERT(reader.failed == !is_valid);
    LEAT_ASSERT(!is_valid || sum == table.len);
}

/* What leat appends to a table is found there, and the table stays what it was. */
static void check_appended(struct leat_str table)
{
    static const struct leat_str text = LEAT_STR_INIT("text of ours"),
                                 flag = LEAT_STR_INIT("flag of ours"), said = LEAT_STR_INIT("said");
    size_t cap = table.len + 128;
    struct leat_amqp_field field;
    struct leat_writer writer;
    uint8_t *buf = malloc(cap);

    LEAT_ASSERT(buf != NULL);
    bool is_new = !leat_amqp_table_find(table, text, &field);
    bool is_new_flag = !leat_amqp_table_find(table, flag, &field);
    leat_writer_init(&writer, buf, cap);
    leat_writer_bytes(&writer, table);
    leat_amqp_write_field_text(&writer, text, said);
    leat_amqp_write_field_bool(&writer, flag, true);
    LEAT_ASSERT(!writer.failed);
    struct leat_str longer = {(const char *)buf, writer.len};
    LEAT_ASSERT(leat_amqp_table_is_valid(longer));
    LEAT_ASSERT(leat_amqp_table_find(longer, text, &field));
    LEAT_ASSERT(!is_new || leat_str_equal(leat_amqp_field_contents(&field), said));
    LEAT_ASSERT(!is_new_flag || leat_amqp_table_is_true(longer, flag));
    free(buf);
}

/* A table in tables stays valid until it is too deep. */
static void check_wrapped(struct leat_str table)
{
    size_t cap = table.len + 6u * (LEAT_AMQP_TABLE_DEPTH_MAX + 1);
    uint8_t *buf = malloc(cap);
    size_t start = cap - table.len;
    bool was_valid = true;

    LEAT_ASSERT(buf != NULL);
    if (table.len > 0)
        memcpy(buf + start, table.ptr, table.len);
    for (int depth = 0; depth <= LEAT_AMQP_TABLE_DEPTH_MAX; depth++) {
        struct leat_writer writer;
        uint32_t len = (uint32_t)(cap - start);

        start -= 6;
        leat_writer_init(&writer, buf + start, 6);
        leat_writer_str8(&writer, (struct leat_str){0});
        leat_writer_u8(&writer, 'F');
        leat_writer_u32(&writer, len);
        bool is_valid =
            leat_amqp_table_is_valid((struct leat_str){(const char *)buf + start, cap - start});
        LEAT_ASSERT(was_valid || !is_valid);
        was_valid = is_valid;
    }
    LEAT_ASSERT(!was_valid);
    free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy(data, size);
    struct leat_str table = {(const char *)copy, size};
    bool is_valid = leat_amqp_table_is_valid(table);

    LEAT_ASSERT(is_valid == model(table, true, 0));
    check_entries(table, is_valid);
    if (is_valid) {
        check_appended(table);
        check_wrapped(table);
    }
    free(copy);
    return 0;
}
