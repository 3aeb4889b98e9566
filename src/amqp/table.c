/* SPDX-License-Identifier: Apache-2.0 */
#include "amqp/table.h"

#include "base/str.h"
#include "buf/reader.h"
#include "buf/writer.h"

static void skip_value(struct leat_reader *reader, char type, int depth);

/* Checks the CONTENTS of a table, or of an array, DEPTH levels below the outermost table. */
static bool is_nested_valid(struct leat_str contents, bool has_keys, int depth)
{
    struct leat_reader reader;

    if (depth > LEAT_AMQP_TABLE_DEPTH_MAX)
        return false;
    leat_reader_init(&reader, contents.ptr, contents.len);
    while (leat_reader_left(&reader) > 0) {
        if (has_keys)
            (void)leat_reader_str8(&reader);
        char type = (char)leat_reader_u8(&reader);
        skip_value(&reader, type, depth);
    }
    return !reader.failed;
}

static void skip_nested(struct leat_reader *reader, bool has_keys, int depth)
{
    struct leat_str contents = leat_reader_str32(reader);

    if (!reader->failed && !is_nested_valid(contents, has_keys, depth + 1))
        reader->failed = true;
}

static void skip_value(struct leat_reader *reader, char type, int depth)
{
    switch (type) {
    case 'V': /* void */
        break;
    case 't': /* boolean */
    case 'b': /* integers, small letters signed for 8 bits, and then as RabbitMQ has them */
    case 'B':
        (void)leat_reader_bytes(reader, 1);
        break;
    case 's':
    case 'u':
    case 'U':
        (void)leat_reader_bytes(reader, 2);
        break;
    case 'I':
    case 'i':
    case 'f': /* float */
        (void)leat_reader_bytes(reader, 4);
        break;
    case 'D': /* decimal: scale and value */
        (void)leat_reader_bytes(reader, 5);
        break;
    case 'l':
    case 'L':
    case 'd': /* double */
    case 'T': /* timestamp */
        (void)leat_reader_bytes(reader, 8);
        break;
    case 'S': /* long string */
    case 'x': /* byte array */
        (void)leat_reader_str32(reader);
        break;
    case 'F': /* table */
        skip_nested(reader, true, depth);
        break;
    case 'A': /* array */
        skip_nested(reader, false, depth);
        break;
    default:
        reader->failed = true;
    }
}

/* The bytes from START to where READER stands. */
static struct leat_str since(const uint8_t *start, const struct leat_reader *reader)
{
    return (struct leat_str){(const char *)start, (size_t)(reader->pos - start)};
}

bool leat_amqp_table_next(struct leat_reader *reader, struct leat_amqp_field *out)
{
    struct leat_amqp_field field;
    const uint8_t *start = reader->pos;

    if (leat_reader_left(reader) == 0)
        return false;
    field.key = leat_reader_str8(reader);
    field.type = (char)leat_reader_u8(reader);
    const uint8_t *value = reader->pos;
    skip_value(reader, field.type, 0);
    if (reader->failed)
        return false;
    field.value = since(value, reader);
    field.whole = since(start, reader);
    *out = field;
    return true;
}

bool leat_amqp_table_is_valid(struct leat_str table)
{
    return is_nested_valid(table, true, 0);
}

bool leat_amqp_table_find(struct leat_str table, struct leat_str key, struct leat_amqp_field *out)
{
    struct leat_reader reader;
    struct leat_amqp_field field;

    leat_reader_init(&reader, table.ptr, table.len);
    while (leat_amqp_table_next(&reader, &field)) {
        if (leat_str_equal(field.key, key)) {
            *out = field;
            return true;
        }
    }
    return false;
}

bool leat_amqp_table_is_true(struct leat_str table, struct leat_str key)
{
    struct leat_amqp_field field;

    return leat_amqp_table_find(table, key, &field) && field.type == 't' && field.value.ptr[0] != 0;
}

struct leat_str leat_amqp_field_contents(const struct leat_amqp_field *field)
{
    struct leat_reader reader;

    if (field->type != 'S' && field->type != 'F')
        return (struct leat_str){0};
    leat_reader_init(&reader, field->value.ptr, field->value.len);
    return leat_reader_str32(&reader);
}

void leat_amqp_write_field_text(struct leat_writer *writer, struct leat_str key,
                                struct leat_str value)
{
    leat_writer_str8(writer, key);
    leat_writer_u8(writer, 'S');
    leat_writer_str32(writer, value);
}

void leat_amqp_write_field_bool(struct leat_writer *writer, struct leat_str key, bool value)
{
    leat_writer_str8(writer, key);
    leat_writer_u8(writer, 't');
    leat_writer_u8(writer, value ? 1 : 0);
}
