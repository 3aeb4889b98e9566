/*
 * Fuzzes base/parse.h: numbers, durations and sizes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/parse.h"
#include "base/str.h"
#include "fuzz/fuzz.h"

typedef bool parse_fn(struct leat_str text, uint64_t *out);

#define UNTOUCHED UINT64_C(0x1234567890ABCDEF)

struct unit {
    const char *name;
    uint64_t factor;
};

/* What TEXT is worth by UNITS, found by adding factor up digit by digit. */
static bool model(struct leat_str text, const struct unit *units, uint64_t *out)
{
    size_t digits = 0;
    uint64_t sum = 0;

    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
        digits++;
    struct leat_str name = {text.ptr + digits, text.len - digits};
    while (units->name != NULL && !leat_str_equal(leat_str_of(units->name), name))
        units++;
    if (digits == 0 || units->name == NULL)
        return false;
    for (size_t i = 0; i < digits; i++) {
        uint64_t digit = (uint64_t)(text.ptr[i] - '0') * units->factor;

        if (__builtin_mul_overflow(sum, 10u, &sum) || __builtin_add_overflow(sum, digit, &sum))
            return false;
    }
    *out = sum;
    return true;
}

static void check(parse_fn *parse, struct leat_str text, const struct unit *units)
{
    uint64_t value = UNTOUCHED, expected = UNTOUCHED;

    LEAT_ASSERT(parse(text, &value) == model(text, units, &expected));
    LEAT_ASSERT(value == expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct unit none[] = {{"", 1}, {0}};
    static const struct unit sizes[] = {
        {"", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {0}};
    static const struct unit durations[] = {
        {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {0}};
    uint8_t *copy = fuzz_copy(data, size);
    struct leat_str text = {(const char *)copy, size};

    check(leat_parse_u64, text, none);
    check(leat_parse_size, text, sizes);
    check(leat_parse_duration_ms, text, leat_str_equal(text, leat_str_of("0")) ? none : durations);
    free(copy);
    return 0;
}
