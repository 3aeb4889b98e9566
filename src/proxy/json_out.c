/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/json_out.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

void leat_json_setup(void)
{
    json_set_alloc_funcs(leat_mem_alloc, leat_mem_free);
}

void leat_json_begin(struct leat_json *json)
{
    json->object = json_object();
}

json_t *leat_json_end(struct leat_json *json)
{
    json_t *object = json->object;

    json->object = NULL;
    return object;
}

void leat_json_add(struct leat_json *json, const char *key, json_t *value)
{
    /* It drops VALUE if the object is gone already. */
    if (json_object_set_new(json->object, key, value) == 0)
        return;
    json_decref(json->object);
    json->object = NULL;
}

void leat_json_add_count(struct leat_json *json, const char *key, uint64_t value)
{
    leat_json_add(json, key, json_integer((json_int_t)value));
}

void leat_json_add_text(struct leat_json *json, const char *key, const char *text)
{
    leat_json_add(json, key, text != NULL ? leat_json_str(leat_str_of(text)) : json_null());
}

void leat_json_add_str(struct leat_json *json, const char *key, struct leat_str str)
{
    leat_json_add(json, key, str.ptr != NULL ? leat_json_str(str) : json_null());
}

void leat_json_add_time(struct leat_json *json, const char *key, int64_t realtime_ms)
{
    time_t seconds = (time_t)(realtime_ms / 1000);
    struct tm utc;
    char text[64];

    (void)gmtime_r(&seconds, &utc);
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(text + len, sizeof(text) - len, ".%03dZ", (int)(realtime_ms % 1000));
    leat_json_add_text(json, key, text);
}

/* The size of the character in UTF-8 that begins with FIRST (RFC 3629, 4), and what its second byte
 * may be; 0 if none does. */
static size_t size_of(uint8_t first, uint8_t *low, uint8_t *high)
{
    static const struct {
        uint8_t first, last, low, high;
        uint8_t size;
    } ranges[] = {
        {0x01, 0x7F, 0x00, 0xFF, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (first < ranges[i].first || first > ranges[i].last)
            continue;
        *low = ranges[i].low;
        *high = ranges[i].high;
        return ranges[i].size;
    }
    return 0;
}

/* How many of the LEN bytes at POS are one character in UTF-8; 0: none is. */
static size_t character(const uint8_t *pos, size_t len)
{
    uint8_t low = 0, high = 0;
    size_t size = size_of(pos[0], &low, &high);

    if (size > len || (size > 1 && (pos[1] < low || pos[1] > high)))
        return 0;
    for (size_t i = 2; i < size; i++) {
        if ((pos[i] & 0xC0) != 0x80)
            return 0;
    }
    return size;
}

json_t *leat_json_str(struct leat_str str)
{
    const uint8_t *in = (const uint8_t *)str.ptr;
    char *text = NULL;
    size_t len = 0;

    if (str.len <= SIZE_MAX / 4)
        text = leat_mem_alloc(4 * str.len + 1);
    if (text == NULL)
        return NULL;
    for (size_t at = 0, size; at < str.len; at += size) {
        size = character(in + at, str.len - at);
        if (size > 0) {
            memcpy(text + len, in + at, size);
            len += size;
        } else {
            len += (size_t)snprintf(text + len, 5, "\\x%02x", in[at]);
            size = 1;
        }
    }
    json_t *value = json_stringn_nocheck(text, len);
    leat_mem_free(text);
    return value;
}

bool leat_json_append(json_t *array, json_t *value)
{
    return json_array_append_new(array, value) == 0;
}

/* A text that grows. */
struct growing {
    char *text;
    size_t len, cap;
    bool has_failed;
};

static int append(const char *text, size_t len, void *arg)
{
    struct growing *out = arg;

    /* Sticky: jansson does not look at every result, and would go on with a part missing. */
    out->has_failed =
        out->has_failed || !leat_mem_reserve(&out->text, out->len, &out->cap, len + 1);
    if (out->has_failed)
        return -1;
    memcpy(out->text + out->len, text, len);
    out->len += len;
    out->text[out->len] = '\0';
    return 0;
}

char *leat_json_take_text(json_t *value)
{
    struct growing out = {.text = NULL};

    if (value == NULL)
        return NULL;
    int result = json_dump_callback(value, append, &out, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(value);
    if (result == 0 && !out.has_failed)
        return out.text;
    leat_mem_free(out.text);
    return NULL;
}

int64_t leat_json_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
