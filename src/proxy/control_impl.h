/*
 * control_impl.h - what the control's files share
 *
 * Requests of a connection are answered one after the other. One that takes longer than its line is
 * a job: the next line is looked at when it is over. Answers go out in pieces, the next when the
 * socket has taken the last, so that no reader makes leat hold more than one answer.
 *
 * Ownership: a connection owns its job until it lets it go; a job that was let go frees itself
 * when the workers have given it back.
 * Threads: the control loop's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_CONTROL_IMPL_H
#define LEAT_PROXY_CONTROL_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/list.h"
#include "loop/io.h"
#include "loop/loop.h"
#include "net/stream.h"
#include "net/unix_socket.h"
#include "proxy/control.h"

#define LEAT_CONTROL_LINE_MAX (64u * 1024u)
#define LEAT_CONTROL_CONNS_MAX 32u
/* Of these: some are left for who comes to see what is wrong. */
#define LEAT_CONTROL_WATCHERS_MAX 28u

struct leat_control_conn;
struct leat_control_job;

struct leat_control {
    struct leat_loop *loop;
    struct leat_shared *shared;
    struct leat_control_ops ops;
    struct leat_unix_socket socket;
    int fd;
    struct leat_io listener;
    struct leat_timer pause; /* while descriptors are lacking */
    struct leat_list conns;
    size_t conn_count;
    size_t jobs;     /* that are not freed yet */
    size_t watchers; /* among them, those that follow or trace */
};

struct leat_control_conn {
    struct leat_control *control;
    struct leat_list link;
    struct leat_stream *stream; /* NULL: none yet, or gone */
    bool has_ended;             /* the peer sends nothing more */
    bool is_finished;           /* nothing more is to be sent */
    char *input;                /* what has come and is not answered yet; NULL: nothing */
    size_t input_len, input_cap;
    char *answer; /* what is still to be sent, from answer_sent on; NULL: nothing */
    size_t answer_len, answer_sent;
    struct leat_control_job *job; /* NULL: the next line may be looked at */
};

/* What a request does that is not over when its line has been read; embedded first. */
struct leat_control_job {
    struct leat_control *control;
    struct leat_control_conn *conn; /* NULL: it was let go */
    /* All that was given has gone out: goes on. NULL: nothing to do then. */
    void (*sent)(struct leat_control_job *job);
    /* leat ends, and nothing more happens: says so. NULL: the connection is ended. */
    void (*stop)(struct leat_control_job *job);
    /* The connection is gone. Frees the job, now or later. */
    void (*let_go)(struct leat_control_job *job);
};

/* control.c */

/* Makes JOB what CONN is busy with. */
void leat_control_begin_job(struct leat_control_conn *conn, struct leat_control_job *job);

/* JOB is over: CONN, if it is still there, goes on. The caller frees it. */
void leat_control_end_job(struct leat_control_job *job);

/* Goes on with what CONN is about, as far as its peer takes what is sent: after something was sent
 * for a job. Not from a verb's function or a job's `sent`, behind which that happens anyway. */
void leat_control_go_on(struct leat_control_conn *conn);

/* Sends the LEN bytes at TEXT, which it takes over; nothing else is waiting to be sent. NULL:
 * memory was short, and CONN is told so. */
void leat_control_send(struct leat_control_conn *conn, char *text, size_t len);

/* Sends a line with ANSWER, which it takes over; NULL as above. */
void leat_control_answer(struct leat_control_conn *conn, json_t *answer);

/* Begins and sends an answer of {"ok":true} and what is added in between. */
struct leat_json;
void leat_control_begin_answer(struct leat_json *json);
void leat_control_end_answer(struct leat_control_conn *conn, struct leat_json *json);

/* Sends an error. KIND: "usage", "not_found", "failed", "limit" or "memory". */
void leat_control_fail(struct leat_control_conn *conn, const char *kind, const char *format, ...)
    LEAT_PRINTF(3, 4);

/* Ends CONN when all has gone out. */
void leat_control_finish(struct leat_control_conn *conn);

/* control_verbs.c: answers LINE. */
void leat_control_handle(struct leat_control_conn *conn, struct leat_str line);

/* The verbs. REQUEST has the members that the verb takes, of the right types; it is borrowed. */
typedef void leat_control_verb_fn(struct leat_control_conn *conn, json_t *request);

/* control_tell.c */
leat_control_verb_fn leat_control_status, leat_control_backends, leat_control_tls,
    leat_control_reload, leat_control_drain, leat_control_log, leat_control_config;

/* control_sessions.c */
leat_control_verb_fn leat_control_sessions, leat_control_session;

/* control_watch.c */
leat_control_verb_fn leat_control_follow, leat_control_trace;

/* The filter that REQUEST has; borrowed from it. */
struct leat_session_filter;
void leat_control_filter(const json_t *request, struct leat_session_filter *out);

#endif
