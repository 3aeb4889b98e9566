/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/offload.h"

#include <pthread.h>
#include <signal.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"

struct leat_offload {
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct leat_list queue; /* under the lock, as is: */
    bool is_ending;
    unsigned thread_count; /* those that run */
    pthread_t threads[];
};

/* Waits for work. NULL: there is none, and none will come. */
static struct leat_work *take(struct leat_offload *offload)
{
    struct leat_work *work = NULL;

    (void)pthread_mutex_lock(&offload->lock);
    while (leat_list_is_empty(&offload->queue) && !offload->is_ending)
        (void)pthread_cond_wait(&offload->came, &offload->lock);
    if (!leat_list_is_empty(&offload->queue)) {
        work = LEAT_LIST_OBJECT(offload->queue.next, struct leat_work, link);
        leat_list_remove(&work->link);
    }
    (void)pthread_mutex_unlock(&offload->lock);
    return work;
}

static void *serve(void *arg)
{
    struct leat_offload *offload = arg;
    struct leat_work *work;

    while ((work = take(offload)) != NULL) {
        work->run(work->arg);
        if (work->loop == NULL)
            work->done(work->arg);
        else
            leat_loop_post(work->loop, &work->post);
    }
    return NULL;
}

/* Starts COUNT threads. Signals are for the program's own threads to take. */
static enum leat_status start_threads(struct leat_offload *offload, unsigned count,
                                      struct leat_error *err)
{
    sigset_t all, before;
    int sys = 0;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    while (offload->thread_count < count && sys == 0) {
        sys = pthread_create(&offload->threads[offload->thread_count], NULL, serve, offload);
        if (sys == 0)
            offload->thread_count++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return sys == 0 ? LEAT_OK
                    : leat_error_set(err, LEAT_EIO, sys, "cannot start a thread for blocking work");
}

enum leat_status leat_offload_new(unsigned threads, struct leat_offload **out,
                                  struct leat_error *err)
{
    LEAT_ASSERT(threads > 0 && threads <= LEAT_OFFLOAD_THREADS_MAX);
    struct leat_offload *offload =
        leat_mem_zalloc_flex(sizeof(*offload), threads, sizeof(offload->threads[0]));
    if (offload == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for threads for blocking work");
    (void)pthread_mutex_init(&offload->lock, NULL);
    (void)pthread_cond_init(&offload->came, NULL);
    leat_list_init(&offload->queue);
    enum leat_status status = start_threads(offload, threads, err);
    if (status != LEAT_OK) {
        leat_offload_free(offload);
        return status;
    }
    *out = offload;
    return LEAT_OK;
}

void leat_offload_free(struct leat_offload *offload)
{
    if (offload == NULL)
        return;
    (void)pthread_mutex_lock(&offload->lock);
    offload->is_ending = true;
    (void)pthread_cond_broadcast(&offload->came);
    (void)pthread_mutex_unlock(&offload->lock);
    for (unsigned i = 0; i < offload->thread_count; i++)
        (void)pthread_join(offload->threads[i], NULL);
    LEAT_ASSERT(leat_list_is_empty(&offload->queue));
    (void)pthread_cond_destroy(&offload->came);
    (void)pthread_mutex_destroy(&offload->lock);
    leat_mem_free(offload);
}

void leat_offload_submit(struct leat_offload *offload, struct leat_work *work)
{
    work->post = (struct leat_post){.fn = work->done, .arg = work->arg};
    leat_list_init(&work->link);
    (void)pthread_mutex_lock(&offload->lock);
    leat_list_append(&offload->queue, &work->link);
    (void)pthread_cond_signal(&offload->came);
    (void)pthread_mutex_unlock(&offload->lock);
}
