/*
 * table.h - field tables (AMQP 0-9-1 4.2.5.5, with RabbitMQ's types), read in place
 *
 * Tables are judged and rewritten without being decoded: what leat does not change stays
 * byte for byte. Types and their sizes are RabbitMQ's (`s` is a 16-bit integer). Nesting is
 * followed to a depth of LEAT_AMQP_TABLE_DEPTH_MAX; anything deeper is malformed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_AMQP_TABLE_H
#define LEAT_AMQP_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <leat/str.h>

struct leat_reader;
struct leat_writer;

#define LEAT_AMQP_TABLE_DEPTH_MAX 16

struct leat_amqp_field {
    struct leat_str key;
    char type;
    struct leat_str value; /* the encoded value, without the octet of its type */
    struct leat_str whole; /* the entry as it stands: key, type and value */
};

/* Reads the next entry of a table's contents. False at the end, or with READER->failed set
 * when the table is malformed. The value is checked to its full depth. */
bool leat_amqp_table_next(struct leat_reader *reader, struct leat_amqp_field *out);

/* Whether TABLE, the contents without the length, is well-formed. */
bool leat_amqp_table_is_valid(struct leat_str table);

/* Finds the first entry called KEY in a TABLE that is well-formed. */
bool leat_amqp_table_find(struct leat_str table, struct leat_str key, struct leat_amqp_field *out);

/* Whether TABLE says that KEY is true (type `t`). */
bool leat_amqp_table_is_true(struct leat_str table, struct leat_str key);

/* If FIELD is a long string (`S`) or a table (`F`), its contents, otherwise empty. */
struct leat_str leat_amqp_field_contents(const struct leat_amqp_field *field);

void leat_amqp_write_field_text(struct leat_writer *writer, struct leat_str key,
                                struct leat_str value);
void leat_amqp_write_field_bool(struct leat_writer *writer, struct leat_str key, bool value);

#endif
