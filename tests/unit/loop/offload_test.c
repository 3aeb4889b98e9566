/*
 * Tests of loop/offload.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "loop/offload.h"

#define JOBS 500

/* One piece of work that notes where it ran. */
struct job {
    struct leat_work work;
    struct leat_offload *offload;
    sem_t *gate;      /* RUN waits for it; may be NULL */
    struct job *next; /* submitted by DONE; may be NULL */
    pthread_t ran_on, done_on;
    unsigned run, done;
    unsigned place; /* how many had run before */
};

static _Atomic unsigned runs;

static void job_run(void *arg)
{
    struct job *job = arg;

    if (job->gate != NULL)
        (void)sem_wait(job->gate);
    job->ran_on = pthread_self();
    job->place = atomic_fetch_add(&runs, 1);
    job->run++;
}

static void job_done(void *arg)
{
    struct job *job = arg;

    assert_int_equal(job->run, job->done + 1);
    job->done_on = pthread_self();
    job->done++;
    if (job->next != NULL)
        leat_offload_submit(job->offload, &job->next->work);
}

static void job_init(struct job *job, struct leat_offload *offload, struct leat_loop *loop)
{
    *job = (struct job){.offload = offload};
    job->work = (struct leat_work){.run = job_run, .done = job_done, .arg = job, .loop = loop};
}

static struct leat_offload *new_pool(unsigned threads)
{
    struct leat_offload *offload = NULL;

    atomic_store(&runs, 0);
    assert_int_equal(leat_offload_new(threads, &offload, NULL), LEAT_OK);
    return offload;
}

static void work_runs_elsewhere_and_is_told_on_its_loop(void **state)
{
    struct leat_loop *loop = NULL;
    struct job job;
    (void)state;
    assert_int_equal(leat_loop_new(&loop, NULL), LEAT_OK);
    struct leat_offload *offload = new_pool(1);
    job_init(&job, offload, loop);
    for (unsigned round = 1; round <= 3; round++) { /* it may be submitted again */
        leat_offload_submit(offload, &job.work);
        while (job.done < round)
            leat_loop_turn(loop, -1);
        assert_int_equal(job.run, round);
        assert_false(pthread_equal(job.ran_on, pthread_self()));
        assert_true(pthread_equal(job.done_on, pthread_self()));
    }
    leat_offload_free(offload);
    leat_loop_free(loop);
}

static void without_a_loop_it_is_told_on_the_pool(void **state)
{
    struct job job;
    (void)state;
    struct leat_offload *offload = new_pool(2);
    job_init(&job, offload, NULL);
    leat_offload_submit(offload, &job.work);
    leat_offload_free(offload);
    assert_int_equal(job.done, 1);
    assert_true(pthread_equal(job.done_on, job.ran_on));
}

static void one_thread_keeps_the_order(void **state)
{
    static struct job jobs[JOBS];
    (void)state;
    struct leat_offload *offload = new_pool(1);
    for (unsigned i = 0; i < JOBS; i++) {
        job_init(&jobs[i], offload, NULL);
        leat_offload_submit(offload, &jobs[i].work);
    }
    leat_offload_free(offload);
    for (unsigned i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].place, i);
        assert_int_equal(jobs[i].done, 1);
    }
}

/* Two pieces that wait for each other's gate can only both end on two threads. */
static void threads_work_side_by_side(void **state)
{
    sem_t gate;
    struct job slow, quick;
    struct leat_loop *loop = NULL;
    (void)state;
    assert_int_equal(leat_loop_new(&loop, NULL), LEAT_OK);
    assert_int_equal(sem_init(&gate, 0, 0), 0);
    struct leat_offload *offload = new_pool(2);
    job_init(&slow, offload, loop);
    slow.gate = &gate;
    job_init(&quick, offload, loop);
    leat_offload_submit(offload, &slow.work);
    leat_offload_submit(offload, &quick.work);
    while (quick.done == 0)
        leat_loop_turn(loop, -1);
    assert_int_equal(slow.done, 0);
    assert_int_equal(sem_post(&gate), 0);
    leat_offload_free(offload); /* waits for it */
    assert_int_equal(slow.run, 1);
    leat_loop_free(loop); /* tells it */
    assert_int_equal(slow.done, 1);
    (void)sem_destroy(&gate);
}

static void free_waits_for_what_work_submits(void **state)
{
    struct job first, second;
    (void)state;
    struct leat_offload *offload = new_pool(1);
    job_init(&first, offload, NULL);
    job_init(&second, offload, NULL);
    first.next = &second;
    leat_offload_submit(offload, &first.work);
    leat_offload_free(offload);
    assert_int_equal(second.done, 1);
    leat_offload_free(NULL);
}

static void out_of_memory_is_an_error(void **state)
{
    struct leat_offload *offload = NULL;
    struct leat_error err;
    (void)state;
    leat_mem_fail_after(1);
    assert_int_equal(leat_offload_new(1, &offload, &err), LEAT_ENOMEM);
    assert_null(offload);
    assert_int_equal(err.status, LEAT_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_runs_elsewhere_and_is_told_on_its_loop),
        cmocka_unit_test(without_a_loop_it_is_told_on_the_pool),
        cmocka_unit_test(one_thread_keeps_the_order),
        cmocka_unit_test(threads_work_side_by_side),
        cmocka_unit_test(free_waits_for_what_work_submits),
        cmocka_unit_test(out_of_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
