/*
 * watch.h - who watches what the sessions of a worker do, over a control connection
 *
 * A worker has a list of watches, empty in the normal case: then nothing here costs more than
 * that one look.
 *
 * Ownership: whoever watches owns the watch, its filter and its feed, and keeps them until the
 * worker has been asked to remove it.
 * Threads: the worker's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_WATCH_H
#define LEAT_PROXY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "proxy/session_info.h"

struct leat_amqp_frame_head;
struct leat_feed;
struct leat_session;
struct leat_session_end;
struct leat_worker;

struct leat_watch {
    struct leat_list link;             /* in the worker's list */
    struct leat_session_filter filter; /* unless it is a trace: whose beginnings and ends */
    uint64_t traced; /* the session whose frames are watched, to its end; 0: none */
    struct leat_feed *feed;
};

/* A frame for the trace. */
struct leat_watch_frame {
    const char *from, *to, *leg; /* "client", "broker" or "leat"; LEG is not leat's */
    const struct leat_amqp_frame_head *head;
    const char *method; /* or what kind of frame it is */
};

void leat_watch_add(struct leat_worker *worker, struct leat_watch *watch);

/* Also of one that was not added. */
void leat_watch_remove(struct leat_worker *worker, struct leat_watch *watch);

/* Returns the session ID of WORKER, or NULL. */
struct leat_session *leat_watch_find(struct leat_worker *worker, uint64_t id);

/* What is told of a session: that it is open, that it ends, that it gets or sends a frame. */
void leat_watch_opened(const struct leat_session *session);
void leat_watch_ended(const struct leat_session *session, const struct leat_session_end *end,
                      const char *reason);
void leat_watch_frame(const struct leat_session *session, const struct leat_watch_frame *frame);

#endif
