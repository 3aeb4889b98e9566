/*
 * control.h - the socket over which a running leat is asked and told: leatctl's other end
 *
 * A request is a line of JSON, {"verb":"status"}; the answer is a line too, or many for what is
 * followed. docs/control.md has the verbs. In answers an instant is a text as in the log,
 * "2026-01-31T09:10:11.123Z"; what ends in _s is whole seconds.
 *
 * control.c has the socket and its connections, control_verbs.c which request is whose,
 * control_tell.c the verbs that the control loop answers by itself, control_sessions.c and
 * control_watch.c those that need the workers.
 *
 * Ownership: the control borrows what it is given, until leat_control_free().
 * Threads: the control loop's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_CONTROL_H
#define LEAT_PROXY_CONTROL_H

#include <stdbool.h>

#include <leat/compiler.h>
#include <leat/error.h>

struct leat_control;
struct leat_loop;
struct leat_shared;

/* What only the program can do. */
struct leat_control_ops {
    /* Takes the configuration into use anew. On failure ERR says why, and nothing has changed. */
    enum leat_status (*reload)(void *arg, struct leat_error *err);
    /* Begins to drain. False if that is under way already. */
    bool (*drain)(void *arg);
    void *arg;
};

/*
 * Listens at PATH, a UNIX socket of its owner alone, on LOOP. What a leat that is gone has left
 * there is replaced. LEAT_EUSAGE if there is another leat's, or something that is no socket;
 * LEAT_EIO, LEAT_ENOMEM; with ERR saying what to do.
 */
LEAT_MUST_CHECK enum leat_status leat_control_new(struct leat_loop *loop,
                                                  struct leat_shared *shared, const char *path,
                                                  const struct leat_control_ops *ops,
                                                  struct leat_control **out,
                                                  struct leat_error *err);

/* Makes the socket anew if somebody has removed it or put another file in its place; connections
 * stay. As leat_control_new(); on failure nothing has changed. NULL is a no-op. */
LEAT_MUST_CHECK enum leat_status leat_control_renew(struct leat_control *control,
                                                    struct leat_error *err);

/* Removes the socket, if it is still this one, and ends all connections; who follows or traces is
 * told, and has a second to take it. Runs LOOP until the workers, which run still, have given back
 * what they were asked. NULL is a no-op. */
void leat_control_free(struct leat_control *control);

#endif
