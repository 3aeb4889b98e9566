/*
 * bufq.h - a queue of bytes in chunks, bounded, that holds no memory while empty
 *
 * It holds what could not be passed on at once. An append takes all or nothing. Bytes
 * can be counted against a common account, so that all queues of a process together stay
 * below one limit.
 *
 * Ownership: the queue owns its chunks; the account is shared and outlives it.
 * Threads: a queue belongs to one thread; an account may be shared by several.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BUF_BUFQ_H
#define LEAT_BUF_BUFQ_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/uio.h>

#include <leat/compiler.h>
#include <leat/error.h>

#include "base/list.h"

/* How many bytes the queues of a process hold, and from where on they should hold fewer. */
struct leat_bufq_account {
    _Atomic size_t held;
    _Atomic size_t
        limit; /* bytes; readers shorten their reads when it is passed, see net/stream.h */
};

struct leat_bufq {
    struct leat_list chunks;
    size_t len;
    size_t limit;
    struct leat_bufq_account *account; /* may be NULL */
};

/* Makes an empty queue that holds at most LIMIT bytes. ACCOUNT may be NULL. */
void leat_bufq_init(struct leat_bufq *queue, size_t limit, struct leat_bufq_account *account);

/* Frees what it holds; the queue is empty and usable afterwards. */
void leat_bufq_clear(struct leat_bufq *queue);

/*
 * Copies the COUNT parts of IOV, without their first SKIP bytes, to the end.
 * Returns LEAT_ELIMIT if the queue's own limit would be passed, LEAT_ENOMEM if memory is
 * short; then nothing was appended.
 */
LEAT_MUST_CHECK enum leat_status leat_bufq_append(struct leat_bufq *queue, const struct iovec *iov,
                                                  int count, size_t skip);

/* Fills at most MAX elements of IOV with the first bytes, without taking them; returns how
 * many elements. They are valid until the queue changes. */
int leat_bufq_peek(const struct leat_bufq *queue, struct iovec *iov, int max);

/* Drops the first LEN bytes, at most leat_bufq.len. */
void leat_bufq_consume(struct leat_bufq *queue, size_t len);

#endif
