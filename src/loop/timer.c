/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "base/assert.h"
#include "loop/loop_impl.h"

/* A pairing heap, linked through the timers: starting one cannot fail, since nothing is
 * allocated, and most timers are stopped long before they are due, which costs little here.
 * A timer's `back` points to the pointer that points to the timer: the root, its parent's
 * `child` or its elder sibling's `next`. So one function unlinks it wherever it is. */

#define LONG_MS 1000u
#define TICK_MS 100u

/* Joins two heaps, either of which may be NULL. Their roots have no siblings. */
static struct leat_timer *meld(struct leat_timer *a, struct leat_timer *b)
{
    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    struct leat_timer *parent = (b->at_ms < a->at_ms) ? b : a;
    struct leat_timer *child = (parent == a) ? b : a;
    child->next = parent->child;
    if (child->next != NULL)
        child->next->back = &child->next;
    child->back = &parent->child;
    parent->child = child;
    return parent;
}

/* Makes one heap of FIRST and its younger siblings: pairs from left to right, then all from
 * right to left, which is what makes the heap fast in the long run. */
static struct leat_timer *meld_siblings(struct leat_timer *first)
{
    struct leat_timer *pairs = NULL;
    while (first != NULL) {
        struct leat_timer *a = first;
        struct leat_timer *b = a->next;
        first = (b != NULL) ? b->next : NULL;
        a->next = NULL;
        if (b != NULL)
            b->next = NULL;
        struct leat_timer *pair = meld(a, b);
        pair->next = pairs;
        pairs = pair;
    }
    struct leat_timer *root = NULL;
    while (pairs != NULL) {
        struct leat_timer *pair = pairs;
        pairs = pair->next;
        pair->next = NULL;
        root = meld(root, pair);
    }
    return root;
}

static void set_root(struct leat_loop *loop, struct leat_timer *root)
{
    loop->timers = root;
    if (root != NULL)
        root->back = &loop->timers;
}

/* Takes TIMER out of its siblings or the list of the expired. */
static void unlink_timer(struct leat_timer *timer)
{
    LEAT_ASSERT(timer->back != NULL);
    *timer->back = timer->next;
    if (timer->next != NULL)
        timer->next->back = timer->back;
    timer->next = NULL;
    timer->back = NULL;
}

/* When a timer started at NOW_MS is due; at the end of time rather than wrapped around. */
static uint64_t due_at(uint64_t now_ms, uint64_t after_ms)
{
    if (after_ms > UINT64_MAX - now_ms - TICK_MS)
        return UINT64_MAX;
    uint64_t at_ms = now_ms + after_ms;
    if (after_ms < LONG_MS)
        return at_ms;
    return (at_ms + TICK_MS - 1) / TICK_MS * TICK_MS;
}

void leat_timer_init(struct leat_timer *timer, leat_timer_fn *fn, void *arg)
{
    *timer = (struct leat_timer){.fn = fn, .arg = arg};
}

void leat_timer_start(struct leat_loop *loop, struct leat_timer *timer, uint64_t after_ms)
{
    leat_timer_stop(loop, timer);
    /* Between two turns the loop's time is that of the last one, which may be long ago: a
     * timer counted from there would be early. */
    if (!loop->is_in_turn)
        leat_loop_read_clock(loop);
    timer->at_ms = due_at(loop->now_ms, after_ms);
    set_root(loop, meld(loop->timers, timer));
}

void leat_timer_stop(struct leat_loop *loop, struct leat_timer *timer)
{
    if (timer->back == NULL)
        return;
    struct leat_timer *orphans = meld_siblings(timer->child);
    timer->child = NULL;
    unlink_timer(timer);
    set_root(loop, meld(loop->timers, orphans));
}

bool leat_timer_is_running(const struct leat_timer *timer)
{
    return timer->back != NULL;
}

int leat_timers_wait_ms(const struct leat_loop *loop)
{
    if (loop->timers == NULL)
        return -1;
    if (loop->timers->at_ms <= loop->now_ms)
        return 0;
    uint64_t wait_ms = loop->timers->at_ms - loop->now_ms;
    return (wait_ms > INT_MAX) ? INT_MAX : (int)wait_ms;
}

void leat_timers_take_expired(struct leat_loop *loop)
{
    struct leat_timer **tail = &loop->expired;
    while (loop->timers != NULL && loop->timers->at_ms <= loop->now_ms) {
        struct leat_timer *timer = loop->timers;
        leat_timer_stop(loop, timer);
        *tail = timer;
        timer->back = tail;
        tail = &timer->next;
    }
}

void leat_timers_run_expired(struct leat_loop *loop)
{
    while (loop->expired != NULL) {
        struct leat_timer *timer = loop->expired;
        unlink_timer(timer);
        timer->fn(timer->arg);
    }
}
