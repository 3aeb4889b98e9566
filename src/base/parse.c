/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include <stddef.h>

#include "base/str.h"

struct unit {
    struct leat_str name;
    uint64_t factor;
};

static const struct unit durations[] = {
    {LEAT_STR_INIT("ms"), 1},
    {LEAT_STR_INIT("s"), 1000},
    {LEAT_STR_INIT("m"), UINT64_C(60) * 1000},
    {LEAT_STR_INIT("h"), UINT64_C(60) * 60 * 1000},
};

static const struct unit sizes[] = {
    {LEAT_STR_INIT(""), 1},
    {LEAT_STR_INIT("KiB"), UINT64_C(1) << 10},
    {LEAT_STR_INIT("MiB"), UINT64_C(1) << 20},
    {LEAT_STR_INIT("GiB"), UINT64_C(1) << 30},
};

/* Splits TEXT into the number that it begins with and the REST. */
static bool take_number(struct leat_str text, uint64_t *out, struct leat_str *out_rest)
{
    uint64_t value = 0;
    size_t used = 0;

    for (; used < text.len && text.ptr[used] >= '0' && text.ptr[used] <= '9'; used++) {
        uint64_t digit = (uint64_t)(text.ptr[used] - '0');

        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (used == 0)
        return false;
    *out = value;
    *out_rest = (struct leat_str){text.ptr + used, text.len - used};
    return true;
}

static bool scale(uint64_t value, struct leat_str name, const struct unit units[4], uint64_t *out)
{
    for (size_t i = 0; i < 4; i++) {
        if (!leat_str_equal(name, units[i].name))
            continue;
        if (value > UINT64_MAX / units[i].factor)
            return false;
        *out = value * units[i].factor;
        return true;
    }
    return false;
}

bool leat_parse_u64(struct leat_str text, uint64_t *out)
{
    struct leat_str rest;
    uint64_t value;

    if (!take_number(text, &value, &rest) || rest.len > 0)
        return false;
    *out = value;
    return true;
}

bool leat_parse_duration_ms(struct leat_str text, uint64_t *out_ms)
{
    static const struct leat_str zero = LEAT_STR_INIT("0");
    struct leat_str rest;
    uint64_t value;

    if (leat_str_equal(text, zero)) {
        *out_ms = 0;
        return true;
    }
    return take_number(text, &value, &rest) && scale(value, rest, durations, out_ms);
}

bool leat_parse_size(struct leat_str text, uint64_t *out_bytes)
{
    struct leat_str rest;
    uint64_t value;

    return take_number(text, &value, &rest) && scale(value, rest, sizes, out_bytes);
}
