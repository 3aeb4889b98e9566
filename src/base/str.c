/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <string.h>

struct leat_str leat_str_of(const char *text)
{
    return (struct leat_str){text, strlen(text)};
}

bool leat_str_equal(struct leat_str a, struct leat_str b)
{
    return a.len == b.len && leat_str_starts(a, b);
}

bool leat_str_starts(struct leat_str str, struct leat_str prefix)
{
    /* An empty string may have no address, which memcmp does not accept. */
    if (prefix.len == 0)
        return true;
    return str.len >= prefix.len && memcmp(str.ptr, prefix.ptr, prefix.len) == 0;
}
