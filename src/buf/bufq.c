/* SPDX-License-Identifier: Apache-2.0 */
#include "buf/bufq.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

/* Small enough for a heartbeat that waits, large enough for few chunks in a long queue. */
#define CHUNK_MIN_BYTES ((size_t)4 * 1024)
#define CHUNK_MAX_BYTES ((size_t)64 * 1024)

/* What it holds lies from start to end. Only the last chunk of a queue has room behind end,
 * and none is empty. */
struct chunk {
    struct leat_list link;
    size_t start, end, cap;
    uint8_t data[];
};

static struct chunk *chunk_of(struct leat_list *link)
{
    return LEAT_LIST_OBJECT(link, struct chunk, link);
}

static size_t at_most(size_t value, size_t most)
{
    return value < most ? value : most;
}

static void set_len(struct leat_bufq *queue, size_t len)
{
    if (queue->account != NULL) {
        /* Unsigned, so a difference below 0 wraps around and lowers the sum. */
        atomic_fetch_add_explicit(&queue->account->held, len - queue->len, memory_order_relaxed);
    }
    queue->len = len;
}

static void free_chunks(struct leat_list *chunks)
{
    while (!leat_list_is_empty(chunks)) {
        struct leat_list *link = chunks->next;

        leat_list_remove(link);
        leat_mem_free(chunk_of(link));
    }
}

void leat_bufq_init(struct leat_bufq *queue, size_t limit, struct leat_bufq_account *account)
{
    *queue = (struct leat_bufq){.limit = limit, .account = account};
    leat_list_init(&queue->chunks);
}

void leat_bufq_clear(struct leat_bufq *queue)
{
    free_chunks(&queue->chunks);
    set_len(queue, 0);
}

static size_t room_at_end(const struct leat_bufq *queue)
{
    const struct chunk *last;

    if (leat_list_is_empty(&queue->chunks))
        return 0;
    last = chunk_of(queue->chunks.prev);
    return last->cap - last->end;
}

/* Adds chunks for SIZE bytes to the empty list CHUNKS; all or, returning false, none. */
static bool allocate(struct leat_list *chunks, size_t size)
{
    while (size > 0) {
        size_t holds = at_most(size, CHUNK_MAX_BYTES);
        size_t cap = holds < CHUNK_MIN_BYTES ? CHUNK_MIN_BYTES : holds;
        struct chunk *chunk = leat_mem_alloc(sizeof(*chunk) + cap);

        if (chunk == NULL) {
            free_chunks(chunks);
            return false;
        }
        chunk->start = chunk->end = 0;
        chunk->cap = cap;
        leat_list_init(&chunk->link);
        leat_list_append(chunks, &chunk->link);
        size -= holds;
    }
    return true;
}

/* Copies LEN bytes to the end, going on to the next of the FRESH chunks as one is full. */
static void copy(struct leat_bufq *queue, struct leat_list *fresh, const uint8_t *data, size_t len)
{
    while (len > 0) {
        size_t taken = at_most(len, room_at_end(queue));

        if (taken == 0) {
            struct leat_list *link = fresh->next;

            LEAT_ASSERT(link != fresh);
            leat_list_remove(link);
            leat_list_append(&queue->chunks, link);
            continue;
        }
        struct chunk *last = chunk_of(queue->chunks.prev);
        memcpy(last->data + last->end, data, taken);
        last->end += taken;
        data += taken;
        len -= taken;
    }
}

enum leat_status leat_bufq_append(struct leat_bufq *queue, const struct iovec *iov, int count,
                                  size_t skip)
{
    size_t room = queue->limit - queue->len, size = 0, to_skip = skip;
    struct leat_list fresh;

    for (int i = 0; i < count; i++) {
        size_t skipped = at_most(to_skip, iov[i].iov_len);

        to_skip -= skipped;
        if (iov[i].iov_len - skipped > room - size)
            return LEAT_ELIMIT;
        size += iov[i].iov_len - skipped;
    }
    leat_list_init(&fresh);
    if (!allocate(&fresh, size - at_most(size, room_at_end(queue))))
        return LEAT_ENOMEM;
    for (int i = 0; i < count; i++) {
        size_t skipped = at_most(skip, iov[i].iov_len);

        skip -= skipped;
        if (skipped < iov[i].iov_len)
            copy(queue, &fresh, (const uint8_t *)iov[i].iov_base + skipped,
                 iov[i].iov_len - skipped);
    }
    set_len(queue, queue->len + size);
    return LEAT_OK;
}

int leat_bufq_peek(const struct leat_bufq *queue, struct iovec *iov, int max)
{
    int filled = 0;

    for (struct leat_list *link = queue->chunks.next; link != &queue->chunks && filled < max;
         link = link->next) {
        struct chunk *chunk = chunk_of(link);

        iov[filled++] = (struct iovec){chunk->data + chunk->start, chunk->end - chunk->start};
    }
    return filled;
}

void leat_bufq_consume(struct leat_bufq *queue, size_t len)
{
    LEAT_ASSERT(len <= queue->len);
    set_len(queue, queue->len - len);
    while (len > 0) {
        struct chunk *first = chunk_of(queue->chunks.next);
        size_t taken = at_most(len, first->end - first->start);

        first->start += taken;
        len -= taken;
        if (first->start == first->end) {
            leat_list_remove(&first->link);
            leat_mem_free(first);
        }
    }
}
