/*
 * offload.h - a small pool of threads for work that blocks: files, parsing certificates
 *
 * A loop must not block (law 7), so what has to wait for a disk or compute for milliseconds
 * runs here, and the loop is told when it is done. Work is begun in the order in which it
 * came.
 *
 * Ownership: the pool is its maker's. Work is embedded in the caller's objects and must stay
 * until its DONE has been called.
 * Threads: leat_offload_submit() may be called from any thread, also from RUN and DONE; the
 * others belong to the pool's maker.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_LOOP_OFFLOAD_H
#define LEAT_LOOP_OFFLOAD_H

#include "loop/loop.h"

#define LEAT_OFFLOAD_THREADS_MAX 64

struct leat_offload;

struct leat_work {
    leat_task_fn *run;      /* blocks, on a thread of the pool */
    leat_task_fn *done;     /* called once after it, on LOOP's thread */
    void *arg;              /* of both */
    struct leat_loop *loop; /* lives until DONE was called; NULL: DONE runs on the pool's thread */
    struct leat_post post;  /* the pool's, as is: */
    struct leat_list link;
};

/* Makes a pool of THREADS threads, 1 to LEAT_OFFLOAD_THREADS_MAX. LEAT_ENOMEM or LEAT_EIO, with
 * ERR, if that fails. */
LEAT_MUST_CHECK enum leat_status leat_offload_new(unsigned threads, struct leat_offload **out,
                                                  struct leat_error *err);

/* Waits until all work that was submitted has run, then frees. NULL is a no-op. */
void leat_offload_free(struct leat_offload *offload);

/* Makes WORK, of which RUN, DONE, ARG and LOOP are set, run. It may be submitted again, or be
 * freed, in DONE. Cannot fail. */
void leat_offload_submit(struct leat_offload *offload, struct leat_work *work);

#endif
