/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "buf/reader.h"

int fuzz_cut(int index, uint8_t chosen)
{
    return index < WIRE_RANDOM ? index : WIRE_RANDOM + chosen;
}

uint8_t *fuzz_copy(const void *data, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);

    LEAT_ASSERT(copy != NULL);
    if (len > 0)
        memcpy(copy, data, len);
    return copy;
}

bool fuzz_is_line(const char *text)
{
    size_t len = 0;

    for (; text[len] != '\0'; len++) {
        if (text[len] < ' ' || text[len] > '~')
            return false;
    }
    return len > 0;
}

void fuzz_check_error(enum leat_status status, const struct leat_error *err)
{
    LEAT_ASSERT(status != LEAT_OK && err->status == status);
    LEAT_ASSERT(strnlen(err->text, sizeof(err->text)) < sizeof(err->text));
    LEAT_ASSERT(fuzz_is_line(err->text));
}

bool fuzz_begins(const struct wire *whole, const struct wire *part)
{
    return part->len <= whole->len &&
           (part->len == 0 || memcmp(whole->buf, part->buf, part->len) == 0);
}

struct leat_str fuzz_check_frames(const uint8_t *data, size_t len)
{
    struct leat_str payload = {0};
    struct leat_reader reader;

    leat_reader_init(&reader, data, len);
    while (leat_reader_left(&reader) > 0) {
        (void)leat_reader_u8(&reader);
        (void)leat_reader_u16(&reader);
        payload = leat_reader_str32(&reader);
        uint8_t end = leat_reader_u8(&reader);
        LEAT_ASSERT(!reader.failed && end == 0xCE);
    }
    return payload;
}
