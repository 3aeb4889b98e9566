/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config_suggest.h"

#include <stdint.h>
#include <string.h>

#define NAME_MAX_LEN 64
#define FAR SIZE_MAX

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many characters are to be inserted, removed, replaced or swapped with their neighbour to
 * make A of B. */
static size_t distance_of(struct leat_str a, struct leat_str b)
{
    size_t rows[3][NAME_MAX_LEN + 1]; /* the row of i lies at i % 3 */

    if (a.len > NAME_MAX_LEN || b.len > NAME_MAX_LEN)
        return FAR;
    for (size_t k = 0; k <= b.len; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= b.len; k++) {
            row[k] = above[k - 1] + (a.ptr[i - 1] != b.ptr[k - 1]);
            row[k] = least(row[k], least(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && a.ptr[i - 1] == b.ptr[k - 2] && a.ptr[i - 2] == b.ptr[k - 1])
                row[k] = least(row[k], above_that[k - 2] + 1);
        }
    }
    return rows[a.len % 3][b.len];
}

void leat_suggest_init(struct leat_suggest *suggest, struct leat_str wanted)
{
    /* One slip in three characters: beyond that it is another word. */
    *suggest = (struct leat_suggest){.wanted = wanted, .distance = (wanted.len + 2) / 3 + 1};
    leat_text_init(&suggest->known, suggest->buf, sizeof(suggest->buf));
}

void leat_suggest_offer(struct leat_suggest *suggest, struct leat_str candidate)
{
    size_t distance = distance_of(suggest->wanted, candidate);

    leat_text_add(&suggest->known, "%s", suggest->known.len == 0 ? "known: " : ", ");
    leat_text_add_quoted(&suggest->known, candidate);
    if (distance < suggest->distance) {
        suggest->distance = distance;
        suggest->nearest = candidate;
    }
}

const char *leat_suggest_finish(struct leat_suggest *suggest)
{
    if (suggest->nearest.ptr != NULL) {
        leat_text_init(&suggest->known, suggest->buf, sizeof(suggest->buf));
        leat_text_add(&suggest->known, "did you mean ");
        leat_text_add_quoted(&suggest->known, suggest->nearest);
        leat_text_add(&suggest->known, "?");
    } else if (suggest->known.len == 0) {
        leat_text_add(&suggest->known, "there is none");
    } else if (suggest->known.is_cut) {
        leat_text_init(&suggest->known, suggest->buf, sizeof(suggest->buf));
        leat_text_add(&suggest->known, "docs/configuration.md has those there are");
    }
    return suggest->buf;
}
