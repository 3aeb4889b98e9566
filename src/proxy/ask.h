/*
 * ask.h - asking a worker, from the control loop, for what only its own thread may touch
 *
 * Ownership: a leat_ask is embedded in the asker's object, which stays where it is until `done`.
 * Threads: `run` is called on the worker's, all else belongs to the control loop's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_ASK_H
#define LEAT_PROXY_ASK_H

#include "loop/loop.h"

struct leat_ask;
struct leat_worker;

typedef void leat_ask_fn(struct leat_ask *ask, struct leat_worker *worker);

struct leat_ask {
    struct leat_loop *control;
    leat_ask_fn *run;  /* on the worker's loop */
    leat_ask_fn *done; /* then, on the control loop; may ask again, or free */
    struct leat_worker *worker;
    struct leat_post post;
};

/* Asks WORKER. Cannot fail. */
void leat_ask(struct leat_ask *ask, struct leat_worker *worker);

#endif
