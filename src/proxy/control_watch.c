/* What sessions do, told as it happens. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/mem.h"
#include "proxy/ask.h"
#include "proxy/control_impl.h"
#include "proxy/feed.h"
#include "proxy/json_out.h"
#include "proxy/session.h"
#include "proxy/watch.h"
#include "proxy/worker.h"

/*
 *  ADDING --all workers have it--> WATCHING --the connection is gone--> REMOVING
 *
 * The workers are asked one after the other. A trace stops asking at the one that has the session.
 * ADDING goes to REMOVING too, when it has been answered.
 */
enum stage { ADDING, WATCHING, REMOVING };

struct watcher {
    struct leat_control_job job;
    struct leat_ask ask;
    enum stage stage;
    json_t *request; /* what the filters borrow from */
    struct leat_feed *feed;
    uint64_t traced; /* 0: all sessions are followed */
    bool is_found;   /* the one that is traced */
    bool is_ending;  /* and too late */
    unsigned worker;
    struct leat_watch watches[]; /* one a worker */
};

static struct watcher *of_job(struct leat_control_job *job)
{
    return LEAT_LIST_OBJECT(job, struct watcher, job);
}

static void run(struct leat_ask *ask, struct leat_worker *worker)
{
    struct watcher *watcher = LEAT_LIST_OBJECT(ask, struct watcher, ask);
    struct leat_watch *here = &watcher->watches[watcher->worker];
    const struct leat_session *session;

    if (watcher->stage == REMOVING) {
        leat_watch_remove(worker, here);
        return;
    }
    if (watcher->traced != 0) {
        session = leat_watch_find(worker, watcher->traced);
        watcher->is_ending = session != NULL && session->state == LEAT_SESSION_ENDING;
        watcher->is_found = session != NULL && !watcher->is_ending;
    }
    if (watcher->traced == 0 || watcher->is_found)
        leat_watch_add(worker, here);
}

static void ask_worker(struct watcher *watcher, unsigned worker)
{
    watcher->worker = worker;
    leat_ask(&watcher->ask, &watcher->job.control->shared->workers[worker]);
}

static void end(struct watcher *watcher)
{
    watcher->job.control->watchers--;
    leat_control_end_job(&watcher->job);
    leat_feed_free(watcher->feed);
    json_decref(watcher->request);
    leat_mem_free(watcher);
}

static void remove_all(struct watcher *watcher)
{
    watcher->stage = REMOVING;
    ask_worker(watcher, 0);
}

static void begin_watching(struct watcher *watcher)
{
    struct leat_control_conn *conn = watcher->job.conn;
    struct leat_json json;

    watcher->stage = WATCHING;
    leat_control_begin_answer(&json);
    if (watcher->traced != 0)
        leat_json_add_count(&json, "tracing", watcher->traced);
    else
        leat_json_add(&json, "following", json_true());
    leat_control_end_answer(conn, &json);
    leat_control_go_on(conn);
}

static void added(struct watcher *watcher)
{
    bool is_last = watcher->worker + 1 == watcher->job.control->shared->worker_count;

    if (watcher->job.conn == NULL) {
        remove_all(watcher);
    } else if (watcher->is_found || (watcher->traced == 0 && is_last)) {
        begin_watching(watcher);
    } else if (watcher->is_ending) {
        leat_control_fail(watcher->job.conn, "failed", "session %llu is ending already",
                          (unsigned long long)watcher->traced);
        end(watcher);
    } else if (!is_last) {
        ask_worker(watcher, watcher->worker + 1);
    } else {
        leat_control_fail(watcher->job.conn, "not_found", "there is no session %llu",
                          (unsigned long long)watcher->traced);
        end(watcher);
    }
}

static void done(struct leat_ask *ask, struct leat_worker *worker)
{
    struct watcher *watcher = LEAT_LIST_OBJECT(ask, struct watcher, ask);

    (void)worker;
    if (watcher->stage == ADDING)
        added(watcher);
    else if (watcher->worker + 1 < watcher->job.control->shared->worker_count)
        ask_worker(watcher, watcher->worker + 1);
    else
        end(watcher);
}

static void on_feed(void *arg)
{
    const struct watcher *watcher = arg;

    if (watcher->job.conn != NULL)
        leat_control_go_on(watcher->job.conn);
}

static void on_sent(struct leat_control_job *job)
{
    const struct watcher *watcher = of_job(job);
    size_t len;

    if (watcher->stage != WATCHING)
        return;
    char *text = leat_feed_take(watcher->feed, &len);
    if (text != NULL)
        leat_control_send(job->conn, text, len);
    else if (leat_feed_is_over(watcher->feed))
        leat_control_finish(job->conn);
}

static void on_stop(struct leat_control_job *job)
{
    static const char stopped[] = "{\"event\":\"stopped\"}";

    leat_feed_end(of_job(job)->feed, stopped, sizeof(stopped) - 1);
}

static void let_go(struct leat_control_job *job)
{
    struct watcher *watcher = of_job(job);

    /* Else a worker has it, and done() goes on. */
    if (watcher->stage == WATCHING)
        remove_all(watcher);
}

static void watch(struct leat_control_conn *conn, json_t *request, uint64_t traced)
{
    const struct leat_shared *shared = conn->control->shared;
    struct watcher *watcher;

    if (conn->control->watchers == LEAT_CONTROL_WATCHERS_MAX) {
        leat_control_fail(conn, "limit",
                          "%u control connections follow or trace, which is all that leat takes: "
                          "end a leatctl that does",
                          LEAT_CONTROL_WATCHERS_MAX);
        return;
    }
    watcher =
        leat_mem_zalloc_flex(sizeof(*watcher), shared->worker_count, sizeof(watcher->watches[0]));
    if (watcher != NULL)
        watcher->feed = leat_feed_new(conn->control->loop, on_feed, watcher);
    if (watcher == NULL || watcher->feed == NULL) {
        leat_mem_free(watcher);
        leat_control_send(conn, NULL, 0);
        return;
    }
    watcher->job.sent = on_sent;
    watcher->job.stop = on_stop;
    watcher->job.let_go = let_go;
    watcher->ask = (struct leat_ask){.control = conn->control->loop, .run = run, .done = done};
    watcher->request = json_incref(request);
    watcher->traced = traced;
    for (unsigned i = 0; i < shared->worker_count; i++) {
        leat_list_init(&watcher->watches[i].link);
        leat_control_filter(request, &watcher->watches[i].filter);
        watcher->watches[i].traced = traced;
        watcher->watches[i].feed = watcher->feed;
    }
    conn->control->watchers++;
    leat_control_begin_job(conn, &watcher->job);
    ask_worker(watcher, 0);
}

void leat_control_follow(struct leat_control_conn *conn, json_t *request)
{
    watch(conn, request, 0);
}

void leat_control_trace(struct leat_control_conn *conn, json_t *request)
{
    watch(conn, request, (uint64_t)json_integer_value(json_object_get(request, "id")));
}
