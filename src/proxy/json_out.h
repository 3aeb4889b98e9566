/*
 * json_out.h - making JSON of what leat knows
 *
 * The error is sticky: after the first value that could not be made, for want of memory, all
 * further ones are dropped and leat_json_end() yields NULL; so an object is a straight list
 * of values and one check.
 *
 * Ownership: a json_t that is added belongs to the object.
 * Threads: a json_t belongs to one thread at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_JSON_OUT_H
#define LEAT_PROXY_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <leat/compiler.h>
#include <leat/str.h>

struct leat_json {
    json_t *object; /* NULL once it has failed */
};

/* Makes jansson allocate by base/mem.h. Before other threads make JSON. */
void leat_json_setup(void);

/* Makes JSON an empty object. */
void leat_json_begin(struct leat_json *json);

/* Returns the object, the caller's, or NULL if memory was short. */
json_t *leat_json_end(struct leat_json *json);

/* Adds VALUE, taking it over; NULL: it could not be made. */
void leat_json_add(struct leat_json *json, const char *key, json_t *value);

void leat_json_add_count(struct leat_json *json, const char *key, uint64_t value);

/* Adds TEXT, or null for NULL. */
void leat_json_add_text(struct leat_json *json, const char *key, const char *text);

/* Adds STR, or null if its ptr is NULL. */
void leat_json_add_str(struct leat_json *json, const char *key, struct leat_str str);

/* Adds an instant, REALTIME_MS since 1970, as the log writes it: 2026-01-31T09:10:11.123Z. */
void leat_json_add_time(struct leat_json *json, const char *key, int64_t realtime_ms);

/* Makes a text of what may be any bytes: those that are no UTF-8, and NUL, are shown as \xNN. */
json_t *leat_json_str(struct leat_str str);

/* Appends VALUE, taking it over, to ARRAY. False if either is NULL or memory is short. */
LEAT_MUST_CHECK bool leat_json_append(json_t *array, json_t *value);

/* The text of VALUE, without a newline and NUL-terminated, the caller's to leat_mem_free(); NULL
 * if VALUE is or memory is short. VALUE is dropped. */
char *leat_json_take_text(json_t *value);

/* Milliseconds since 1970. */
int64_t leat_json_now_ms(void);

#endif
