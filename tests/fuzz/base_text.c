/*
 * Fuzzes the quoting of base/text.h. Input: room in the buffer, what stands in it already, the
 * value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "fuzz/fuzz.h"

static int hex(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = strchr(digits, digit);

    LEAT_ASSERT(digit != '\0' && found != NULL);
    return (int)(found - digits);
}

/* Reads one character as it is quoted, moving *AT behind it. */
static int unquote(const char **at)
{
    const char *pos = *at;
    bool is_hex = pos[0] == '\\' && pos[1] == 'x';

    LEAT_ASSERT(*pos >= ' ' && *pos <= '~' && *pos != '"');
    LEAT_ASSERT(*pos != '\\' || is_hex || pos[1] == '"' || pos[1] == '\\');
    *at += is_hex ? 4 : *pos == '\\' ? 2 : 1;
    if (is_hex)
        return hex(pos[2]) << 4 | hex(pos[3]);
    return (unsigned char)(*pos == '\\' ? pos[1] : *pos);
}

/* QUOTED is VALUE, or, if IS_CUT, the beginning of it without a closing quote. */
static void check(const char *quoted, const uint8_t *value, size_t len, bool is_cut)
{
    size_t pos = 0;

    if (is_cut && *quoted == '\0')
        return;
    LEAT_ASSERT(*quoted++ == '"');
    while (*quoted != '\0' && *quoted != '"') {
        LEAT_ASSERT(pos < len);
        LEAT_ASSERT(unquote(&quoted) == value[pos++]);
    }
    LEAT_ASSERT(is_cut ? *quoted == '\0' : strcmp(quoted, "\"") == 0 && pos == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_text text;

    if (size < 2)
        return 0;
    size_t cap = 1 + data[0], before = data[1] % 16u;
    char *buf = malloc(cap);
    LEAT_ASSERT(buf != NULL);
    uint8_t *value = fuzz_copy(data + 2, size - 2);
    leat_text_init(&text, buf, cap);
    leat_text_add(&text, "%.*s", (int)before, "peer and user: x=");
    size_t begin = text.len;
    bool was_cut = text.is_cut;
    leat_text_add_quoted(&text, (struct leat_str){(const char *)value, size - 2});
    LEAT_ASSERT(text.len < cap && strlen(buf) == text.len);
    LEAT_ASSERT(!was_cut || text.len == begin);
    check(buf + begin, value, size - 2, text.is_cut);
    /* Once cut, nothing more is appended. */
    size_t len = text.len;
    was_cut = text.is_cut;
    leat_text_add(&text, "x");
    LEAT_ASSERT(!was_cut || text.len == len);
    LEAT_ASSERT(text.len < cap && strlen(buf) == text.len);
    free(value);
    free(buf);
    return 0;
}
