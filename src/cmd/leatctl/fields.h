/*
 * fields.h - members of JSON objects under a label each, below each other or as a table's columns
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_CMD_LEATCTL_FIELDS_H
#define LEAT_CMD_LEATCTL_FIELDS_H

#include <stdio.h>

#include <jansson.h>

#include <leat/compiler.h>
#include <leat/error.h>

#include "words.h"

enum leat_field_form {
    LEAT_FIELD_TEXT,     /* whatever it is */
    LEAT_FIELD_NUMBER,   /* aligned to the right */
    LEAT_FIELD_SIZE,     /* bytes */
    LEAT_FIELD_DURATION, /* seconds */
    LEAT_FIELD_OF,       /* "N of at most M"; M is the member of that name and "_max" */
    LEAT_FIELD_INDEX,    /* of the row, from 0 */
};

struct leat_field {
    const char *label;
    const char *path; /* names of members, from the outermost on, with dots between */
    enum leat_field_form form;
    const char *absent; /* for null and what is not there; NULL is "-", "" leaves the line out */
};

/* Writes the member of OBJECT at PATH to BUF, "-" if there is none, and returns BUF. */
char *leat_field_text(const json_t *object, const char *path, char buf[LEAT_WORDS_MAX]);

/* Prints the COUNT FIELDS of OBJECT, one a line. LEAT_EPROTOCOL if OBJECT is none. */
LEAT_MUST_CHECK enum leat_status leat_fields_print(const struct leat_field *fields, size_t count,
                                                   const json_t *object, FILE *out);

/* Prints all members of OBJECT in the same way, under their own names. */
LEAT_MUST_CHECK enum leat_status leat_fields_print_members(const json_t *object, FILE *out);

/* Prints a table: a row for each object in LIST, a column for each field. LEAT_ENOMEM;
 * LEAT_EPROTOCOL if LIST is none. */
LEAT_MUST_CHECK enum leat_status leat_fields_print_rows(const struct leat_field *fields,
                                                        size_t count, const json_t *list,
                                                        FILE *out);

#endif
