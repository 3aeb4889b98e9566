/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/watch.h"

#include <string.h>

#include "base/mem.h"
#include "proxy/feed.h"
#include "proxy/json_out.h"
#include "proxy/session.h"

static struct leat_watch *watch_of(struct leat_list *link)
{
    return LEAT_LIST_OBJECT(link, struct leat_watch, link);
}

static bool is_traced(const struct leat_worker *worker, uint64_t id)
{
    for (struct leat_list *link = worker->watches.next; link != &worker->watches;
         link = link->next) {
        if (watch_of(link)->traced == id)
            return true;
    }
    return false;
}

struct leat_session *leat_watch_find(struct leat_worker *worker, uint64_t id)
{
    for (struct leat_list *link = worker->sessions.next; link != &worker->sessions;
         link = link->next) {
        struct leat_session *session = LEAT_LIST_OBJECT(link, struct leat_session, link);
        if (session->id == id)
            return session;
    }
    return NULL;
}

/* Makes the session ID tell its frames if anybody watches them. */
static void set_trace(struct leat_worker *worker, uint64_t id)
{
    struct leat_session *session = leat_watch_find(worker, id);

    if (session == NULL)
        return;
    session->trace = session->logs_frames || is_traced(worker, id);
    session->client.relay.trace = session->was_open && session->trace;
    session->broker.relay.trace = session->was_open && session->trace;
}

void leat_watch_add(struct leat_worker *worker, struct leat_watch *watch)
{
    leat_list_append(&worker->watches, &watch->link);
    if (watch->traced != 0)
        set_trace(worker, watch->traced);
}

void leat_watch_remove(struct leat_worker *worker, struct leat_watch *watch)
{
    bool was_added = !leat_list_is_empty(&watch->link);

    leat_list_remove(&watch->link);
    if (was_added && watch->traced != 0)
        set_trace(worker, watch->traced);
}

/* Begins a line of what happened now. */
static void begin(struct leat_json *json, const char *event)
{
    leat_json_begin(json);
    leat_json_add_text(json, "event", event);
    leat_json_add_time(json, "time", leat_json_now_ms());
}

static size_t length(const char *text)
{
    return text != NULL ? strlen(text) : 0;
}

static char *opened_text(const struct leat_session *session)
{
    struct leat_json json;

    begin(&json, "opened");
    leat_json_add(&json, "session", leat_session_json(session));
    return leat_json_take_text(leat_json_end(&json));
}

static bool is_followed(const struct leat_session *session, const struct leat_watch *watch)
{
    return watch->traced == 0 && leat_session_matches(session, &watch->filter) &&
           leat_feed_takes_more(watch->feed);
}

void leat_watch_opened(const struct leat_session *session)
{
    const struct leat_list *watches = &session->worker->watches;
    char *text = NULL; /* made once somebody wants it */

    for (struct leat_list *link = watches->next; link != watches; link = link->next) {
        if (!is_followed(session, watch_of(link)))
            continue;
        if (text == NULL)
            text = opened_text(session);
        leat_feed_put(watch_of(link)->feed, text, length(text));
    }
    leat_mem_free(text);
}

static char *ended_text(const struct leat_session *session, const struct leat_session_end *end,
                        const char *reason)
{
    struct leat_json json;

    begin(&json, "ended");
    leat_json_add(&json, "session", leat_session_json(session));
    leat_json_add_text(&json, "how", leat_session_end_how(session, end));
    leat_json_add_text(&json, "by", leat_session_by_name(end->by));
    if (end->told == LEAT_CLOSE_SENT)
        leat_json_add_count(&json, "code", end->close.code);
    leat_json_add_text(&json, "reason", reason);
    return leat_json_take_text(leat_json_end(&json));
}

void leat_watch_ended(const struct leat_session *session, const struct leat_session_end *end,
                      const char *reason)
{
    const struct leat_list *watches = &session->worker->watches;
    char *text = NULL;

    for (struct leat_list *link = watches->next; link != watches; link = link->next) {
        const struct leat_watch *watch = watch_of(link);
        bool is_traced_one = watch->traced == session->id;
        if (!is_traced_one && !is_followed(session, watch))
            continue;
        if (text == NULL)
            text = ended_text(session, end, reason);
        if (is_traced_one)
            leat_feed_end(watch->feed, text, length(text));
        else
            leat_feed_put(watch->feed, text, length(text));
    }
    leat_mem_free(text);
}

static char *frame_text(const struct leat_watch_frame *frame)
{
    struct leat_json json;

    begin(&json, "frame");
    leat_json_add_text(&json, "from", frame->from);
    leat_json_add_text(&json, "to", frame->to);
    leat_json_add_text(&json, "leg", frame->leg);
    leat_json_add_count(&json, "channel", frame->head->channel);
    leat_json_add_text(&json, "method", frame->method);
    leat_json_add_count(&json, "size", frame->head->size);
    return leat_json_take_text(leat_json_end(&json));
}

void leat_watch_frame(const struct leat_session *session, const struct leat_watch_frame *frame)
{
    const struct leat_list *watches = &session->worker->watches;
    char *text = NULL;

    for (struct leat_list *link = watches->next; link != watches; link = link->next) {
        const struct leat_watch *watch = watch_of(link);
        if (watch->traced != session->id || !leat_feed_takes_more(watch->feed))
            continue;
        if (text == NULL)
            text = frame_text(frame);
        leat_feed_put(watch->feed, text, length(text));
    }
    leat_mem_free(text);
}
