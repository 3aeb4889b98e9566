/*
 * loop.h - the event loop: one per thread; timers, deferred tasks, posts from elsewhere
 *
 * Readiness of descriptors is in io.h. Made for connections that mostly wait: waiting
 * costs no memory here and no wake-up. A loop that has neither work nor a timer sleeps
 * without limit.
 *
 * The laws, which everything above relies on:
 *  1. A callback never runs inside the call that registered it.
 *  2. Every started operation completes exactly once, cancelled ones too.
 *  3. close() stops events at once; memory lives to the end of the turn; the closed
 *     callback is the last one.
 *  4. After a callback, its caller does not touch the object unless it holds a reference.
 *  5. State is consistent before a callback runs.
 *  6. A callback spends at most its budget, then re-queues itself.
 *  7. Nothing blocks: no file read, no DNS, no certificate parsing, no logging to a full pipe.
 *  8. Time is read once a turn; tests use a fake clock.
 *  9. A connection belongs to one loop for life; other threads only post.
 *
 * A turn: wait for events, run posts, expired timers, ready descriptors, then the tasks
 * deferred so far. Tasks deferred by tasks run in the next turn, which then does not wait.
 *
 * Ownership: timers, tasks and posts are embedded in the caller's objects and must be
 * stopped, cancelled or done before these go.
 * Threads: all functions belong to the loop's own thread, except leat_loop_post(),
 * leat_loop_stop() and reading the counters, which may be called from any.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_LOOP_LOOP_H
#define LEAT_LOOP_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>

#include "base/list.h"

struct leat_loop;

/* What the loop has asked of the kernel; only ever grows. */
struct leat_loop_counters {
    _Atomic uint64_t wakeups; /* returns of epoll_wait that had waited: a sleep that ended */
    _Atomic uint64_t polls;   /* returns of epoll_wait that only looked, since work was queued */
    _Atomic uint64_t recvs;
    _Atomic uint64_t sends;
    _Atomic uint64_t accepts;
    _Atomic uint64_t connects;
};

/* Returns milliseconds of a clock that never goes back. */
typedef uint64_t leat_clock_fn(void *arg);

/* The system's monotonic clock, for whoever needs the time without a loop. ARG is not looked at. */
uint64_t leat_clock_monotonic_ms(void *arg);

/* Makes a loop. On LEAT_ENOMEM or LEAT_EIO ERR says why. */
LEAT_MUST_CHECK enum leat_status leat_loop_new(struct leat_loop **out, struct leat_error *err);

/* Frees LOOP, which must not be running. Posts and tasks that are still to run are run first,
 * since they free memory; timers are forgotten. NULL is a no-op. */
void leat_loop_free(struct leat_loop *loop);

/* Runs turns until leat_loop_stop(). */
void leat_loop_run(struct leat_loop *loop);

/* Runs one turn, waiting at most TIMEOUT_MS for something to do; -1 waits without limit. */
void leat_loop_turn(struct leat_loop *loop, int timeout_ms);

/* Makes leat_loop_run() return after the current turn. Any thread. */
void leat_loop_stop(struct leat_loop *loop);

/* The time at which this turn began, in milliseconds of a monotonic clock. */
uint64_t leat_loop_now_ms(const struct leat_loop *loop);

const struct leat_loop_counters *leat_loop_counters(const struct leat_loop *loop);

/* Test hook: takes the time from CLOCK instead of the system. */
void leat_loop_set_clock(struct leat_loop *loop, leat_clock_fn *clock, void *arg);

/*
 * A timer. Delays of a second or more are rounded up to a common tick of 100 ms, so that
 * the deadlines of many connections share their wake-ups. Never early.
 */
typedef void leat_timer_fn(void *arg);

struct leat_timer {
    leat_timer_fn *fn;
    void *arg;
    uint64_t at_ms;
    struct leat_timer *child, *next, **back; /* the loop's; back is NULL while stopped */
};

/* Prepares TIMER, stopped. */
void leat_timer_init(struct leat_timer *timer, leat_timer_fn *fn, void *arg);

/* Makes TIMER call back once, AFTER_MS from now; a running one is moved. Cannot fail. */
void leat_timer_start(struct leat_loop *loop, struct leat_timer *timer, uint64_t after_ms);

/* Stops TIMER if it runs. */
void leat_timer_stop(struct leat_loop *loop, struct leat_timer *timer);

bool leat_timer_is_running(const struct leat_timer *timer);

/* Work for the end of the turn, on the loop's own thread. */
typedef void leat_task_fn(void *arg);

struct leat_task {
    leat_task_fn *fn;
    void *arg;
    struct leat_list link;
};

/* Prepares TASK, not deferred. */
void leat_task_init(struct leat_task *task, leat_task_fn *fn, void *arg);

/* Makes TASK run once at the end of this turn; does nothing if it is deferred already. */
void leat_loop_defer(struct leat_loop *loop, struct leat_task *task);

/* Takes TASK back if it is deferred. */
void leat_task_cancel(struct leat_task *task);

/* Work for a loop from any thread: runs once, on LOOP's thread, in the order of posting. A
 * post must stay where it is until it has run; it may be freed or posted again in FN. */
struct leat_post {
    leat_task_fn *fn;
    void *arg;
    struct leat_post *next; /* the loop's */
};

/* Makes POST run on LOOP and wakes it if need be. Cannot fail. Any thread. */
void leat_loop_post(struct leat_loop *loop, struct leat_post *post);

/*
 * Scratch space shared by everything on the loop: its contents last until the callback
 * that filled it returns, and each area has one kind of user. Memory is touched only as
 * far as it is used.
 */
enum leat_scratch {
    LEAT_SCRATCH_RECV,  /* ciphertext as it came: streams over TLS */
    LEAT_SCRATCH_PLAIN, /* what a reader of streams reads into */
    LEAT_SCRATCH_SEND,  /* ciphertext to send: streams over TLS */
};

#define LEAT_SCRATCH_RECV_SIZE (512u * 1024u)
#define LEAT_SCRATCH_PLAIN_SIZE (LEAT_SCRATCH_RECV_SIZE + 32u * 1024u)
#define LEAT_SCRATCH_SEND_SIZE (2u * LEAT_SCRATCH_RECV_SIZE + 128u * 1024u)

uint8_t *leat_loop_scratch(struct leat_loop *loop, enum leat_scratch area);

#endif
