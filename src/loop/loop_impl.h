/*
 * loop_impl.h - the inside of a loop, shared by the files of this layer only
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_LOOP_LOOP_IMPL_H
#define LEAT_LOOP_LOOP_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/list.h"
#include "loop/io.h"
#include "loop/loop.h"

/* How many events one epoll_wait brings at most; the rest comes in the next turn. */
#define LEAT_LOOP_EVENTS 256

struct leat_loop {
    int epoll_fd;
    int wake_fd; /* an eventfd, edge-triggered and never read */
    bool is_in_turn;
    uint64_t now_ms;
    leat_clock_fn *clock;
    void *clock_arg;
    struct leat_timer *timers;  /* the root of the heap */
    struct leat_timer *expired; /* those of this turn that are still to run */
    struct leat_list ready;     /* sockets for the next turn */
    struct leat_list running;   /* sockets of this turn that are still to run */
    struct leat_list tasks;
    _Atomic(struct leat_post *) posts; /* the newest first */
    atomic_bool is_stopping;
    uint8_t *scratch;
    struct leat_loop_counters counters;
    struct epoll_event events[LEAT_LOOP_EVENTS];
};

/* Adds one to COUNTER. Only the loop's thread writes, so no locked instruction is needed. */
static inline void leat_loop_count(_Atomic uint64_t *counter)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + 1, memory_order_relaxed);
}

/* Reads the clock into LOOP's time. */
void leat_loop_read_clock(struct leat_loop *loop);

/* How many milliseconds remain to the next timer: 0 if it is due, -1 if there is none. */
int leat_timers_wait_ms(const struct leat_loop *loop);

/* Moves the timers that are due from the heap to LOOP's expired ones. */
void leat_timers_take_expired(struct leat_loop *loop);

/* Runs the expired ones. */
void leat_timers_run_expired(struct leat_loop *loop);

/* Notes what epoll's EVENTS say of IO and puts it on the list of the ready. */
void leat_io_note(struct leat_io *io, uint32_t events);

/* Calls back each socket of this turn once. */
void leat_io_run(struct leat_loop *loop);

#endif
