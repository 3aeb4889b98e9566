/* The sessions, and what is done to one. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proxy/ask.h"
#include "proxy/config_suggest.h"
#include "proxy/control_impl.h"
#include "proxy/json_out.h"
#include "proxy/session.h"
#include "proxy/session_info.h"
#include "proxy/watch.h"
#include "proxy/worker.h"

/* What a worker does in a turn for a list of sessions. */
#define SHOWN_A_TURN 64
#define LOOKED_AT_A_TURN 1024
/* How often, and how many times more, a Close that has to wait is tried again. */
#define CLOSE_AGAIN_MS 100
#define CLOSE_TRIES 20

void leat_control_filter(const json_t *request, struct leat_session_filter *out)
{
    *out = (struct leat_session_filter){
        .vhost = json_string_value(json_object_get(request, "vhost")),
        .user = json_string_value(json_object_get(request, "user")),
        .backend = json_string_value(json_object_get(request, "backend")),
        .client = json_string_value(json_object_get(request, "client")),
        .listener = json_string_value(json_object_get(request, "listener")),
        .state = json_string_value(json_object_get(request, "state")),
    };
}

/* The list: asked of one worker after the other, in pieces, each when the last has gone out. */
struct listing {
    struct leat_control_job job;
    struct leat_ask ask;
    json_t *request; /* what the filter borrows from */
    struct leat_session_filter filter;
    unsigned worker; /* whose turn it is */
    bool is_asked;   /* it is the worker's now */
    bool gives_up;   /* nobody wants the rest */
    bool has_cursor; /* the worker has it open */
    struct leat_cursor cursor;
    json_t *piece; /* what the worker has found; NULL: memory was short */
    bool has_begun;
    bool has_shown; /* a comma is due */
};

static void fill_piece(struct listing *listing, const struct leat_worker *worker)
{
    struct leat_cursor *cursor = &listing->cursor;

    listing->piece = json_array();
    for (int i = 0; i < LOOKED_AT_A_TURN && cursor->next != &worker->sessions &&
                    json_array_size(listing->piece) < SHOWN_A_TURN;
         i++) {
        const struct leat_session *session =
            LEAT_LIST_OBJECT(cursor->next, struct leat_session, link);
        cursor->next = cursor->next->next;
        if (!leat_session_matches(session, &listing->filter) ||
            leat_json_append(listing->piece, leat_session_json(session)))
            continue;
        json_decref(listing->piece);
        listing->piece = NULL;
        return;
    }
}

static void run_listing(struct leat_ask *ask, struct leat_worker *worker)
{
    struct listing *listing = LEAT_LIST_OBJECT(ask, struct listing, ask);

    if (!listing->has_cursor && !listing->gives_up) {
        leat_cursor_open(&listing->cursor, worker);
        listing->has_cursor = true;
    }
    if (!listing->gives_up)
        fill_piece(listing, worker);
    if (listing->gives_up || listing->cursor.next == &worker->sessions) {
        leat_cursor_close(&listing->cursor);
        listing->has_cursor = false;
    }
}

static void end_listing(struct listing *listing)
{
    leat_control_end_job(&listing->job);
    json_decref(listing->piece);
    json_decref(listing->request);
    leat_mem_free(listing);
}

static void ask_for_more(struct listing *listing)
{
    struct leat_shared *shared = listing->job.control->shared;

    listing->is_asked = true;
    leat_ask(&listing->ask, &shared->workers[listing->worker]);
}

static void give_up(struct listing *listing)
{
    listing->gives_up = true;
    if (listing->has_cursor)
        ask_for_more(listing);
    else
        end_listing(listing);
}

/* Makes the text that goes out for the piece; its size is never 0 when IS_LAST. NULL if memory is
 * short. */
static char *piece_text(struct listing *listing, bool is_last, size_t *out_len)
{
    size_t shown = json_array_size(listing->piece);
    const char *head = listing->has_begun ? "" : "{\"ok\":true,\"sessions\":[";
    const char *comma = (listing->has_shown && shown > 0) ? "," : "";
    char *array = leat_json_take_text(listing->piece), *text = NULL;

    listing->piece = NULL;
    if (array == NULL)
        return NULL;
    /* Without the brackets of the array. */
    size_t len = strlen(array) - 2, cap = len + 64;
    text = leat_mem_alloc(cap);
    if (text != NULL)
        *out_len = (size_t)snprintf(text, cap, "%s%s%.*s%s", head, comma, (int)len, array + 1,
                                    is_last ? "]}\n" : "");
    leat_mem_free(array);
    listing->has_begun = true;
    listing->has_shown = listing->has_shown || shown > 0;
    return text;
}

static void listing_done(struct leat_ask *ask, struct leat_worker *worker)
{
    struct listing *listing = LEAT_LIST_OBJECT(ask, struct listing, ask);
    struct leat_control_conn *conn = listing->job.conn;
    size_t len = 0;

    (void)worker;
    listing->is_asked = false;
    if (conn == NULL) {
        give_up(listing);
        return;
    }
    if (!listing->has_cursor)
        listing->worker++;
    bool is_last = listing->worker == listing->job.control->shared->worker_count;
    char *text = piece_text(listing, is_last, &len);
    if (text == NULL && conn->stream != NULL) {
        /* What has gone out can't be taken back: only the end of the stream tells of it. */
        leat_stream_close(conn->stream);
    } else if (text != NULL) {
        leat_control_send(conn, text, len);
        if (is_last)
            end_listing(listing);
        else
            leat_control_go_on(conn);
    }
}

static void listing_sent(struct leat_control_job *job)
{
    struct listing *listing = LEAT_LIST_OBJECT(job, struct listing, job);

    if (!listing->is_asked)
        ask_for_more(listing);
}

static void listing_let_go(struct leat_control_job *job)
{
    struct listing *listing = LEAT_LIST_OBJECT(job, struct listing, job);

    if (!listing->is_asked)
        give_up(listing);
}

static bool is_state(const char *name, struct leat_suggest *suggest)
{
    leat_suggest_init(suggest, leat_str_of(name));
    for (int state = LEAT_SESSION_PROXY; state <= LEAT_SESSION_ENDING; state++) {
        const char *known = leat_session_state_name((enum leat_session_state)state);
        leat_suggest_offer(suggest, leat_str_of(known));
        if (strcmp(known, name) == 0)
            return true;
    }
    return false;
}

void leat_control_sessions(struct leat_control_conn *conn, json_t *request)
{
    const char *state = json_string_value(json_object_get(request, "state"));
    struct leat_suggest suggest;
    struct listing *listing;

    if (state != NULL && !is_state(state, &suggest)) {
        leat_control_fail(conn, "usage", "sessions: unknown state; %s",
                          leat_suggest_finish(&suggest));
        return;
    }
    if (json_is_true(json_object_get(request, "follow"))) {
        leat_control_follow(conn, request);
        return;
    }
    listing = leat_mem_zalloc(sizeof(*listing));
    if (listing == NULL) {
        leat_control_send(conn, NULL, 0);
        return;
    }
    listing->job.sent = listing_sent;
    listing->job.let_go = listing_let_go;
    listing->ask.control = conn->control->loop;
    listing->ask.run = run_listing;
    listing->ask.done = listing_done;
    leat_list_init(&listing->cursor.link);
    listing->request = json_incref(request);
    leat_control_filter(request, &listing->filter);
    leat_control_begin_job(conn, &listing->job);
}

/* One session: the workers are asked one after the other whether they have it. */
enum action { SHOW, CLOSE, KILL };

struct errand {
    struct leat_control_job job;
    struct leat_ask ask;
    uint64_t id;
    enum action action;
    unsigned worker;
    bool is_asked;
    bool is_found, is_done;
    json_t *shown;
    struct leat_timer again; /* while a frame is only half sent, a Close has to wait */
    unsigned tries;
};

static void run_errand(struct leat_ask *ask, struct leat_worker *worker)
{
    struct errand *errand = LEAT_LIST_OBJECT(ask, struct errand, ask);
    struct leat_session *session = leat_watch_find(worker, errand->id);

    errand->is_found = session != NULL;
    errand->is_done = true;
    if (session == NULL)
        return;
    switch (errand->action) {
    case SHOW:
        errand->shown = leat_session_json(session);
        break;
    case CLOSE:
        errand->is_done = leat_session_close_by_operator(session);
        break;
    case KILL:
        leat_session_cut(session, "killed by the operator");
        break;
    }
}

static void end_errand(struct errand *errand)
{
    leat_control_end_job(&errand->job);
    leat_mem_free(errand);
}

static void ask_worker(struct errand *errand)
{
    errand->is_asked = true;
    leat_ask(&errand->ask, &errand->job.control->shared->workers[errand->worker]);
}

static void ask_again(void *arg)
{
    ask_worker(arg);
}

static void answer_errand(struct errand *errand)
{
    struct leat_json json;

    leat_control_begin_answer(&json);
    if (errand->action == SHOW)
        leat_json_add(&json, "session", errand->shown);
    leat_control_end_answer(errand->job.conn, &json);
    end_errand(errand);
}

static void errand_done(struct leat_ask *ask, struct leat_worker *worker)
{
    struct errand *errand = LEAT_LIST_OBJECT(ask, struct errand, ask);
    struct leat_control *control = errand->job.control;
    bool was_last = errand->worker + 1 == control->shared->worker_count;

    (void)worker;
    errand->is_asked = false;
    if (errand->job.conn == NULL) {
        json_decref(errand->shown);
        end_errand(errand);
    } else if (errand->is_found && errand->is_done) {
        answer_errand(errand);
    } else if (errand->is_found && errand->tries++ < CLOSE_TRIES) {
        leat_timer_start(control->loop, &errand->again, CLOSE_AGAIN_MS);
    } else if (errand->is_found) {
        leat_control_fail(errand->job.conn, "failed",
                          "session %llu does not take what is sent to it, so no Close can be sent: "
                          "kill cuts it",
                          (unsigned long long)errand->id);
        end_errand(errand);
    } else if (!was_last) {
        errand->worker++;
        ask_worker(errand);
    } else {
        leat_control_fail(errand->job.conn, "not_found", "there is no session %llu",
                          (unsigned long long)errand->id);
        end_errand(errand);
    }
}

static void errand_let_go(struct leat_control_job *job)
{
    struct errand *errand = LEAT_LIST_OBJECT(job, struct errand, job);

    leat_timer_stop(job->control->loop, &errand->again);
    if (!errand->is_asked)
        end_errand(errand);
}

static void begin_errand(struct leat_control_conn *conn, uint64_t id, enum action action)
{
    struct errand *errand = leat_mem_zalloc(sizeof(*errand));

    if (errand == NULL) {
        leat_control_send(conn, NULL, 0);
        return;
    }
    errand->job.let_go = errand_let_go;
    errand->ask.control = conn->control->loop;
    errand->ask.run = run_errand;
    errand->ask.done = errand_done;
    errand->id = id;
    errand->action = action;
    leat_timer_init(&errand->again, ask_again, errand);
    leat_control_begin_job(conn, &errand->job);
    ask_worker(errand);
}

void leat_control_session(struct leat_control_conn *conn, json_t *request)
{
    static const char *const actions[] = {"show", "close", "kill"}; /* as enum action */
    const char *name = json_string_value(json_object_get(request, "action"));
    json_int_t id = json_integer_value(json_object_get(request, "id"));
    struct leat_suggest suggest;

    if (id <= 0) {
        leat_control_fail(conn, "not_found", "there is no session %lld", (long long)id);
        return;
    }
    leat_suggest_init(&suggest, leat_str_of(name));
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        leat_suggest_offer(&suggest, leat_str_of(actions[i]));
        if (strcmp(actions[i], name) == 0) {
            begin_errand(conn, (uint64_t)id, (enum action)i);
            return;
        }
    }
    leat_suggest_offer(&suggest, leat_str_of("trace"));
    if (strcmp(name, "trace") == 0)
        leat_control_trace(conn, request);
    else
        leat_control_fail(conn, "usage", "session: unknown action; %s",
                          leat_suggest_finish(&suggest));
}
