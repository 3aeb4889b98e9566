/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"
#include "loop/loop_impl.h"

/* The scratch areas lie in one mapping with a page that nobody may touch after each. An
 * overrun faults instead of writing into a neighbour, and no area is part of a mapping so
 * large that the kernel would back a single touched byte with a huge page. */
#define GUARD_SIZE 65536u
#define PLAIN_OFFSET (LEAT_SCRATCH_RECV_SIZE + GUARD_SIZE)
#define SEND_OFFSET (PLAIN_OFFSET + LEAT_SCRATCH_PLAIN_SIZE + GUARD_SIZE)
#define SCRATCH_SIZE (SEND_OFFSET + LEAT_SCRATCH_SEND_SIZE + GUARD_SIZE)

uint64_t leat_clock_monotonic_ms(void *arg)
{
    (void)arg;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

void leat_loop_read_clock(struct leat_loop *loop)
{
    loop->now_ms = loop->clock(loop->clock_arg);
}

/* Maps the scratch space, or returns NULL with errno set. */
static uint8_t *map_scratch(void)
{
    uint8_t *base =
        mmap(NULL, SCRATCH_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    if (mprotect(base, (size_t)LEAT_SCRATCH_RECV_SIZE, PROT_READ | PROT_WRITE) == 0 &&
        mprotect(base + PLAIN_OFFSET, LEAT_SCRATCH_PLAIN_SIZE, PROT_READ | PROT_WRITE) == 0 &&
        mprotect(base + SEND_OFFSET, LEAT_SCRATCH_SEND_SIZE, PROT_READ | PROT_WRITE) == 0)
        return base;
    int sys = errno;
    (void)munmap(base, SCRATCH_SIZE);
    errno = sys;
    return NULL;
}

/* Makes what LOOP needs of the kernel. What was made before a failure is the caller's to
 * undo. */
static enum leat_status open_parts(struct leat_loop *loop, struct leat_error *err)
{
    loop->scratch = map_scratch();
    if (loop->scratch == NULL)
        return leat_error_set(err, LEAT_ENOMEM, errno, "cannot map scratch space for a loop");
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        return leat_error_set(err, LEAT_EIO, errno, "cannot make an epoll descriptor");
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0)
        return leat_error_set(err, LEAT_EIO, errno, "cannot make an event descriptor");
    /* Edge-triggered, so that each write wakes and nothing has to be read. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) != 0)
        return leat_error_set(err, LEAT_EIO, errno, "cannot watch an event descriptor");
    return LEAT_OK;
}

enum leat_status leat_loop_new(struct leat_loop **out, struct leat_error *err)
{
    struct leat_loop *loop = leat_mem_zalloc(sizeof(*loop));
    if (loop == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a loop");
    loop->epoll_fd = -1;
    loop->wake_fd = -1;
    loop->clock = leat_clock_monotonic_ms;
    leat_list_init(&loop->ready);
    leat_list_init(&loop->running);
    leat_list_init(&loop->tasks);
    enum leat_status status = open_parts(loop, err);
    if (status != LEAT_OK) {
        leat_loop_free(loop);
        return status;
    }
    leat_loop_read_clock(loop);
    *out = loop;
    return LEAT_OK;
}

/* Runs the tasks deferred so far; those that they defer wait for the next call. */
static void run_tasks(struct leat_loop *loop)
{
    struct leat_list present;
    leat_list_init(&present);
    leat_list_move(&present, &loop->tasks);
    while (!leat_list_is_empty(&present)) {
        struct leat_task *task = LEAT_LIST_OBJECT(present.next, struct leat_task, link);
        leat_list_remove(&task->link);
        task->fn(task->arg);
    }
}

/* Runs the posts present, the oldest first. */
static void run_posts(struct leat_loop *loop)
{
    struct leat_post *newest = atomic_exchange_explicit(&loop->posts, NULL, memory_order_acquire);
    struct leat_post *oldest = NULL;
    while (newest != NULL) {
        struct leat_post *post = newest;
        newest = post->next;
        post->next = oldest;
        oldest = post;
    }
    while (oldest != NULL) {
        struct leat_post *post = oldest;
        oldest = post->next; /* the post may be gone after its call */
        post->fn(post->arg);
    }
}

void leat_loop_free(struct leat_loop *loop)
{
    if (loop == NULL)
        return;
    LEAT_ASSERT(!loop->is_in_turn);
    do {
        run_posts(loop);
        run_tasks(loop);
    } while (!leat_list_is_empty(&loop->tasks) || atomic_load(&loop->posts) != NULL);
    if (loop->wake_fd >= 0)
        (void)close(loop->wake_fd);
    if (loop->epoll_fd >= 0)
        (void)close(loop->epoll_fd);
    if (loop->scratch != NULL)
        (void)munmap(loop->scratch, SCRATCH_SIZE);
    leat_mem_free(loop);
}

/* How long epoll may wait: not at all if there is work, else to the next timer or
 * TIMEOUT_MS, whichever comes first; -1 is without limit. */
static int wait_limit_ms(struct leat_loop *loop, int timeout_ms)
{
    if (!leat_list_is_empty(&loop->ready) || !leat_list_is_empty(&loop->tasks) ||
        atomic_load_explicit(&loop->posts, memory_order_relaxed) != NULL)
        return 0;
    int timer_ms = leat_timers_wait_ms(loop);
    if (timer_ms < 0)
        return timeout_ms;
    return (timeout_ms < 0 || timer_ms < timeout_ms) ? timer_ms : timeout_ms;
}

/* Waits for events and puts all their sockets on the list of the ready before any callback
 * runs: closing a socket takes it off again, so a callback can be sure that what it closes
 * is not called any more. */
static void wait_for_events(struct leat_loop *loop, int timeout_ms)
{
    int limit_ms = wait_limit_ms(loop, timeout_ms);
    int count = epoll_wait(loop->epoll_fd, loop->events, LEAT_LOOP_EVENTS, limit_ms);
    LEAT_ASSERT(count >= 0 || errno == EINTR);
    leat_loop_count(limit_ms == 0 ? &loop->counters.polls : &loop->counters.wakeups);
    for (int i = 0; i < count; i++) {
        if (loop->events[i].data.ptr != NULL)
            leat_io_note(loop->events[i].data.ptr, loop->events[i].events);
    }
}

void leat_loop_turn(struct leat_loop *loop, int timeout_ms)
{
    LEAT_ASSERT(!loop->is_in_turn);
    wait_for_events(loop, timeout_ms);
    leat_loop_read_clock(loop);
    loop->is_in_turn = true;
    /* What this turn does is settled before the first callback: whatever callbacks start or
     * re-queue belongs to the next. */
    leat_list_move(&loop->running, &loop->ready);
    leat_timers_take_expired(loop);
    run_posts(loop);
    leat_timers_run_expired(loop);
    leat_io_run(loop);
    run_tasks(loop);
    loop->is_in_turn = false;
}

void leat_loop_run(struct leat_loop *loop)
{
    while (!atomic_exchange(&loop->is_stopping, false))
        leat_loop_turn(loop, -1);
}

static void wake(struct leat_loop *loop)
{
    uint64_t one = 1;
    ssize_t written = write(loop->wake_fd, &one, sizeof(one));
    (void)written; /* it can only fail once 2^64 wake-ups have been written */
}

void leat_loop_stop(struct leat_loop *loop)
{
    atomic_store(&loop->is_stopping, true);
    wake(loop);
}

void leat_loop_post(struct leat_loop *loop, struct leat_post *post)
{
    struct leat_post *newest = atomic_load_explicit(&loop->posts, memory_order_relaxed);
    do {
        post->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&loop->posts, &newest, post,
                                                    memory_order_release, memory_order_relaxed));
    /* Whoever found the list empty wakes the loop, for all that come before it looks. */
    if (newest == NULL)
        wake(loop);
}

uint64_t leat_loop_now_ms(const struct leat_loop *loop)
{
    return loop->now_ms;
}

const struct leat_loop_counters *leat_loop_counters(const struct leat_loop *loop)
{
    return &loop->counters;
}

void leat_loop_set_clock(struct leat_loop *loop, leat_clock_fn *clock, void *arg)
{
    loop->clock = clock;
    loop->clock_arg = arg;
    leat_loop_read_clock(loop);
}

void leat_task_init(struct leat_task *task, leat_task_fn *fn, void *arg)
{
    *task = (struct leat_task){.fn = fn, .arg = arg};
    leat_list_init(&task->link);
}

void leat_loop_defer(struct leat_loop *loop, struct leat_task *task)
{
    if (leat_list_is_empty(&task->link))
        leat_list_append(&loop->tasks, &task->link);
}

void leat_task_cancel(struct leat_task *task)
{
    leat_list_remove(&task->link);
}

uint8_t *leat_loop_scratch(struct leat_loop *loop, enum leat_scratch area)
{
    switch (area) {
    case LEAT_SCRATCH_RECV:
        return loop->scratch;
    case LEAT_SCRATCH_PLAIN:
        return loop->scratch + PLAIN_OFFSET;
    case LEAT_SCRATCH_SEND:
        return loop->scratch + SEND_OFFSET;
    }
    leat_assert_failed("an area of enum leat_scratch", __FILE__, __LINE__);
}
