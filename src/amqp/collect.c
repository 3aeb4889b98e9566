/* SPDX-License-Identifier: Apache-2.0 */
#include "amqp/collect.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static enum leat_status judge_head(const struct leat_amqp_collect *collect,
                                   const struct leat_amqp_frame_head *head)
{
    bool is_known = (head->type >= LEAT_AMQP_FRAME_METHOD && head->type <= LEAT_AMQP_FRAME_BODY) ||
                    head->type == LEAT_AMQP_FRAME_HEARTBEAT;

    if (!is_known)
        return LEAT_EPROTOCOL;
    if ((uint64_t)head->size + LEAT_AMQP_FRAME_OVERHEAD > collect->max)
        return LEAT_ELIMIT;
    return LEAT_OK;
}

/* Moves up to WANT bytes in all to TO, of which collect->len are there. */
static size_t hold(struct leat_amqp_collect *collect, uint8_t *to, size_t want, const uint8_t *data,
                   size_t len)
{
    size_t n = least(want - collect->len, len);

    if (n > 0)
        memcpy(to + collect->len, data, n);
    collect->len += n;
    return n;
}

static enum leat_status give(const uint8_t *frame, size_t need, const uint8_t **out_payload)
{
    if (frame[need - 1] != LEAT_AMQP_FRAME_END)
        return LEAT_EPROTOCOL;
    *out_payload = frame + LEAT_AMQP_FRAME_HEAD_SIZE;
    return LEAT_OK;
}

enum leat_status leat_amqp_collect_feed(struct leat_amqp_collect *collect, const uint8_t *data,
                                        size_t len, size_t *out_taken,
                                        struct leat_amqp_frame_head *out_head,
                                        const uint8_t **out_payload)
{
    size_t taken = 0;

    if (collect->need > 0 && collect->len == collect->need)
        leat_amqp_collect_clear(collect); /* the last frame was given */
    if (collect->need == 0) {
        bool was_empty = collect->len == 0;

        taken = hold(collect, collect->head, LEAT_AMQP_FRAME_HEAD_SIZE, data, len);
        *out_taken = taken;
        if (collect->len < LEAT_AMQP_FRAME_HEAD_SIZE)
            return LEAT_EAGAIN;
        *out_head = leat_amqp_frame_head_parse(collect->head);
        enum leat_status status = judge_head(collect, out_head);
        if (status != LEAT_OK)
            return status;
        size_t need = out_head->size + LEAT_AMQP_FRAME_OVERHEAD;
        if (was_empty && len >= need) { /* whole in DATA: nothing to copy */
            collect->len = 0;
            *out_taken = need;
            return give(data, need, out_payload);
        }
        collect->frame = leat_mem_alloc(need);
        if (collect->frame == NULL)
            return LEAT_ENOMEM;
        memcpy(collect->frame, collect->head, LEAT_AMQP_FRAME_HEAD_SIZE);
        collect->need = need;
    }
    taken += hold(collect, collect->frame, collect->need, data + taken, len - taken);
    *out_taken = taken;
    if (collect->len < collect->need)
        return LEAT_EAGAIN;
    *out_head = leat_amqp_frame_head_parse(collect->frame);
    return give(collect->frame, collect->need, out_payload);
}

void leat_amqp_collect_clear(struct leat_amqp_collect *collect)
{
    leat_mem_free_secret(collect->frame, collect->need);
    collect->frame = NULL;
    collect->len = 0;
    collect->need = 0;
}
