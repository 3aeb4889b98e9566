/*
 * Tests of turns, tasks, posts and stopping; timers and sockets have tests of their own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "loop/loop.h"

static int setup(void **state)
{
    struct leat_loop *loop = NULL;
    if (leat_loop_new(&loop, NULL) != LEAT_OK)
        return 1;
    *state = loop;
    return 0;
}

static int teardown(void **state)
{
    leat_loop_free(*state);
    return 0;
}

static uint64_t wakeups(struct leat_loop *loop)
{
    return atomic_load(&leat_loop_counters(loop)->wakeups);
}

static uint64_t polls(struct leat_loop *loop)
{
    return atomic_load(&leat_loop_counters(loop)->polls);
}

/* The lowest descriptor that is free. */
static int free_fd(void)
{
    int fd = fcntl(0, F_DUPFD, 0);
    (void)close(fd);
    return fd;
}

static void new_fails_cleanly_without_memory(void **state)
{
    (void)state;
    struct leat_loop *loop = NULL;
    struct leat_error err = {0};
    unsigned n = 1;
    for (;; n++) {
        leat_mem_fail_after(n);
        enum leat_status status = leat_loop_new(&loop, &err);
        leat_mem_fail_after(0);
        if (status == LEAT_OK)
            break;
        assert_int_equal(status, LEAT_ENOMEM);
        assert_int_equal(err.status, LEAT_ENOMEM);
        assert_null(loop);
    }
    assert_true(n > 1);
    leat_loop_free(loop);
    leat_loop_free(NULL);
}

static void new_fails_cleanly_without_descriptors(void **state)
{
    (void)state;
    struct leat_loop *loop = NULL;
    struct rlimit old, tight;
    int fd = free_fd();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (rlim_t spare = 0; spare < 2; spare++) {
        struct leat_error err = {0};
        tight = (struct rlimit){.rlim_cur = (rlim_t)fd + spare, .rlim_max = old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
        enum leat_status status = leat_loop_new(&loop, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        assert_int_equal(status, LEAT_EIO);
        assert_int_equal(err.sys, EMFILE);
        assert_null(loop);
        assert_int_equal(free_fd(), fd); /* nothing was left open */
    }
}

/* A record of what ran, in order. */
struct trace {
    struct leat_loop *loop;
    char text[32];
};

struct job {
    struct trace *trace;
    char name;
    struct leat_task task;
    struct leat_post post;
    struct leat_timer timer;
    struct job *next; /* whose task, post and timer this one's task starts */
};

static void note(struct job *job)
{
    size_t len = strlen(job->trace->text);
    assert_true(len + 1 < sizeof(job->trace->text));
    job->trace->text[len] = job->name;
}

static void on_job(void *arg)
{
    struct job *job = arg;
    note(job);
    if (job->next == NULL)
        return;
    leat_loop_defer(job->trace->loop, &job->next->task);
    assert_int_not_equal(job->trace->text[strlen(job->trace->text) - 1], job->next->name);
}

static void job_init(struct job *job, struct trace *trace, char name)
{
    *job = (struct job){.trace = trace, .name = name, .post = {.fn = on_job, .arg = job}};
    leat_task_init(&job->task, on_job, job);
    leat_timer_init(&job->timer, on_job, job);
}

static void law_1_a_task_runs_at_the_end_of_the_turn(void **state)
{
    struct trace trace = {.loop = *state};
    struct job a, b;
    job_init(&a, &trace, 'a');
    job_init(&b, &trace, 'b');
    leat_loop_defer(trace.loop, &a.task);
    leat_loop_defer(trace.loop, &b.task);
    leat_loop_defer(trace.loop, &a.task); /* deferred already */
    assert_string_equal(trace.text, "");
    leat_loop_turn(trace.loop, -1);
    assert_string_equal(trace.text, "ab");
    assert_int_equal(polls(trace.loop), 1);
    assert_int_equal(wakeups(trace.loop), 0);
}

static void a_task_deferred_by_a_task_runs_in_the_next_turn(void **state)
{
    struct trace trace = {.loop = *state};
    struct job a, b;
    job_init(&a, &trace, 'a');
    job_init(&b, &trace, 'b');
    a.next = &b;
    b.next = &a;
    leat_loop_defer(trace.loop, &a.task);
    leat_loop_turn(trace.loop, -1);
    assert_string_equal(trace.text, "a");
    leat_loop_turn(trace.loop, -1);
    assert_string_equal(trace.text, "ab");
    leat_task_cancel(&a.task);
}

static void cancel_from_task(void *arg)
{
    leat_task_cancel(arg);
}

static void law_2_a_cancelled_task_does_not_run(void **state)
{
    struct trace trace = {.loop = *state};
    struct leat_task canceller;
    struct job a, b;
    job_init(&a, &trace, 'a');
    job_init(&b, &trace, 'b');
    leat_task_init(&canceller, cancel_from_task, &b.task);
    leat_task_cancel(&a.task); /* not deferred: nothing happens */
    leat_loop_defer(trace.loop, &a.task);
    leat_task_cancel(&a.task);
    leat_loop_defer(trace.loop, &canceller);
    leat_loop_defer(trace.loop, &b.task);
    leat_loop_turn(trace.loop, 0);
    leat_loop_turn(trace.loop, 0);
    assert_string_equal(trace.text, "");
    leat_loop_defer(trace.loop, &b.task); /* it can be deferred again */
    leat_loop_turn(trace.loop, -1);
    assert_string_equal(trace.text, "b");
}

struct owned {
    struct leat_task task;
    struct leat_post post;
    unsigned *runs;
};

static void free_itself(void *arg)
{
    struct owned *owned = arg;
    (*owned->runs)++;
    free(owned);
}

static struct owned *owned_new(unsigned *runs)
{
    struct owned *owned = calloc(1, sizeof(*owned));
    assert_non_null(owned);
    owned->runs = runs;
    leat_task_init(&owned->task, free_itself, owned);
    owned->post = (struct leat_post){.fn = free_itself, .arg = owned};
    return owned;
}

static void law_4_tasks_and_posts_may_free_themselves(void **state)
{
    struct leat_loop *loop = *state;
    unsigned runs = 0;
    for (int i = 0; i < 3; i++) {
        leat_loop_defer(loop, &owned_new(&runs)->task);
        leat_loop_post(loop, &owned_new(&runs)->post);
    }
    leat_loop_turn(loop, -1);
    assert_int_equal(runs, 6);
}

static void posts_come_before_timers_before_tasks(void **state)
{
    struct trace trace = {.loop = *state};
    struct job task, timer, post;
    job_init(&task, &trace, 'k');
    job_init(&timer, &trace, 't');
    job_init(&post, &trace, 'p');
    leat_loop_defer(trace.loop, &task.task);
    leat_timer_start(trace.loop, &timer.timer, 0);
    leat_loop_post(trace.loop, &post.post);
    leat_loop_turn(trace.loop, -1);
    assert_string_equal(trace.text, "ptk");
}

struct repost {
    struct leat_loop *loop;
    struct leat_post post;
    struct leat_timer timer;
    unsigned runs;
    unsigned timer_runs;
};

static void on_repost(void *arg)
{
    struct repost *repost = arg;
    repost->runs++;
    if (repost->runs > 1)
        return;
    leat_loop_post(repost->loop, &repost->post);
    leat_timer_start(repost->loop, &repost->timer, 0);
}

static void on_repost_timer(void *arg)
{
    struct repost *repost = arg;
    repost->timer_runs++;
}

static void law_1_what_a_post_starts_waits_for_the_next_turn(void **state)
{
    struct repost repost = {.loop = *state, .post = {.fn = on_repost, .arg = &repost}};
    leat_timer_init(&repost.timer, on_repost_timer, &repost);
    leat_loop_post(repost.loop, &repost.post);
    assert_int_equal(repost.runs, 0);
    leat_loop_turn(repost.loop, -1);
    assert_int_equal(repost.runs, 1);
    assert_int_equal(repost.timer_runs, 0);
    leat_loop_turn(repost.loop, -1);
    assert_int_equal(repost.runs, 2);
    assert_int_equal(repost.timer_runs, 1);
}

#define POSTERS 4
#define POSTS_EACH 20000

struct poster {
    struct leat_loop *loop;
    pthread_t thread;
    unsigned next; /* the number that must arrive next */
    struct numbered {
        struct leat_post post;
        struct poster *poster;
        unsigned number;
    } * posts;
};

static struct {
    pthread_t loop_thread;
    unsigned arrived;
} arrivals;

static void on_numbered(void *arg)
{
    struct numbered *numbered = arg;
    assert_true(pthread_equal(pthread_self(), arrivals.loop_thread));
    assert_int_equal(numbered->number, numbered->poster->next);
    numbered->poster->next++;
    if (++arrivals.arrived == POSTERS * POSTS_EACH)
        leat_loop_stop(numbered->poster->loop);
}

static void *post_all(void *arg)
{
    struct poster *poster = arg;
    for (unsigned i = 0; i < POSTS_EACH; i++)
        leat_loop_post(poster->loop, &poster->posts[i].post);
    return NULL;
}

/* Hangs if a single wake-up is lost. */
static void law_9_posts_of_all_threads_arrive_in_order(void **state)
{
    struct poster posters[POSTERS] = {0};
    arrivals.loop_thread = pthread_self();
    arrivals.arrived = 0;
    for (size_t t = 0; t < POSTERS; t++) {
        struct poster *poster = &posters[t];
        poster->loop = *state;
        poster->posts = calloc(POSTS_EACH, sizeof(*poster->posts));
        assert_non_null(poster->posts);
        for (unsigned i = 0; i < POSTS_EACH; i++)
            poster->posts[i] = (struct numbered){
                .post = {.fn = on_numbered, .arg = &poster->posts[i]},
                .poster = poster,
                .number = i,
            };
    }
    for (size_t t = 0; t < POSTERS; t++)
        assert_int_equal(pthread_create(&posters[t].thread, NULL, post_all, &posters[t]), 0);
    leat_loop_run(*state);
    for (size_t t = 0; t < POSTERS; t++) {
        assert_int_equal(pthread_join(posters[t].thread, NULL), 0);
        assert_int_equal(posters[t].next, POSTS_EACH);
        free(posters[t].posts);
    }
}

static void stop_from_task(void *arg)
{
    leat_loop_stop(arg);
}

static void *stop_from_thread(void *arg)
{
    leat_loop_stop(arg);
    return NULL;
}

static void stop_ends_the_run_after_the_current_turn(void **state)
{
    struct trace trace = {.loop = *state};
    struct leat_task stopper;
    struct job a, b;
    job_init(&a, &trace, 'a');
    job_init(&b, &trace, 'b');
    a.next = &b;
    leat_task_init(&stopper, stop_from_task, trace.loop);
    leat_loop_defer(trace.loop, &stopper);
    leat_loop_defer(trace.loop, &a.task);
    leat_loop_run(trace.loop);
    assert_string_equal(trace.text, "a");
    leat_loop_defer(trace.loop, &stopper); /* and it can be run again */
    leat_loop_run(trace.loop);
    assert_string_equal(trace.text, "ab");
}

static void stop_wakes_a_loop_that_sleeps(void **state)
{
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, stop_from_thread, *state), 0);
        leat_loop_run(*state);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

/* With nothing to do the only thing that ends a wait is its limit, and it counts. */
static void an_idle_loop_sleeps_and_counts_its_wakeups(void **state)
{
    struct leat_loop *loop = *state;
    leat_loop_turn(loop, 1);
    assert_int_equal(wakeups(loop), 1);
    assert_int_equal(polls(loop), 0);
    leat_loop_turn(loop, 0);
    assert_int_equal(wakeups(loop), 1);
    assert_int_equal(polls(loop), 1);
}

static void a_timer_ends_the_sleep_and_counts_as_a_wakeup(void **state)
{
    struct trace trace = {.loop = *state};
    struct job timer;
    job_init(&timer, &trace, 't');
    leat_timer_start(trace.loop, &timer.timer, 2);
    while (trace.text[0] == '\0')
        leat_loop_turn(trace.loop, -1);
    assert_true(wakeups(trace.loop) + polls(trace.loop) <= 2);
}

static void free_runs_posts_and_tasks_and_forgets_timers(void **state)
{
    (void)state;
    struct trace trace = {0};
    struct job a, b, post, timer;
    assert_int_equal(leat_loop_new(&trace.loop, NULL), LEAT_OK);
    job_init(&a, &trace, 'a');
    job_init(&b, &trace, 'b');
    job_init(&post, &trace, 'p');
    job_init(&timer, &trace, 't');
    a.next = &b;
    leat_loop_defer(trace.loop, &a.task);
    leat_timer_start(trace.loop, &timer.timer, 0);
    leat_loop_post(trace.loop, &post.post);
    leat_loop_free(trace.loop);
    assert_string_equal(trace.text, "pab");
}

static void scratch_areas_are_whole_and_apart(void **state)
{
    static const size_t sizes[] = {LEAT_SCRATCH_RECV_SIZE, LEAT_SCRATCH_PLAIN_SIZE,
                                   LEAT_SCRATCH_SEND_SIZE};
    uint8_t *areas[3];
    for (int i = 0; i < 3; i++) {
        areas[i] = leat_loop_scratch(*state, (enum leat_scratch)i);
        assert_int_equal(areas[i][sizes[i] - 1], 0);
        memset(areas[i], i + 1, sizes[i]);
    }
    for (int i = 0; i < 3; i++) {
        for (size_t at = 0; at < sizes[i]; at++)
            assert_true(areas[i][at] == i + 1);
    }
}

#define WITH_LOOP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_fails_cleanly_without_memory),
        cmocka_unit_test(new_fails_cleanly_without_descriptors),
        WITH_LOOP(law_1_a_task_runs_at_the_end_of_the_turn),
        WITH_LOOP(a_task_deferred_by_a_task_runs_in_the_next_turn),
        WITH_LOOP(law_2_a_cancelled_task_does_not_run),
        WITH_LOOP(law_4_tasks_and_posts_may_free_themselves),
        WITH_LOOP(posts_come_before_timers_before_tasks),
        WITH_LOOP(law_1_what_a_post_starts_waits_for_the_next_turn),
        WITH_LOOP(law_9_posts_of_all_threads_arrive_in_order),
        WITH_LOOP(stop_ends_the_run_after_the_current_turn),
        WITH_LOOP(stop_wakes_a_loop_that_sleeps),
        WITH_LOOP(an_idle_loop_sleeps_and_counts_its_wakeups),
        WITH_LOOP(a_timer_ends_the_sleep_and_counts_as_a_wakeup),
        cmocka_unit_test(free_runs_posts_and_tasks_and_forgets_timers),
        WITH_LOOP(scratch_areas_are_whole_and_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
