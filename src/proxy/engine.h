/*
 * engine.h - the proxy as a whole: listeners, workers, sessions; started, watched, drained
 *
 * Ownership: the engine borrows its configuration, log and control loop, which outlive it.
 * Threads: all functions belong to the thread of the control loop; the engine's workers are
 * threads of its own, one loop each. A session never moves between them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_ENGINE_H
#define LEAT_PROXY_ENGINE_H

#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>

struct leat_config;
struct leat_engine;
struct leat_log;
struct leat_loop;

/*
 * Builds TLS contexts and opens the listeners, but accepts nothing yet. LEAT_EUSAGE,
 * LEAT_EIO, LEAT_ENOMEM with ERR saying what to do.
 */
LEAT_MUST_CHECK enum leat_status leat_engine_new(const struct leat_config *config,
                                                 const struct leat_log *log,
                                                 struct leat_loop *control,
                                                 struct leat_engine **out, struct leat_error *err);

/* Starts the workers, and logs where they listen. */
LEAT_MUST_CHECK enum leat_status leat_engine_start(struct leat_engine *engine,
                                                   struct leat_error *err);

/* Logs one line with what the workers have counted. */
void leat_engine_log_status(const struct leat_engine *engine);

/* Closes the listeners and ends the sessions as the configuration's drain times say, then
 * calls DONE on the control loop, once. */
void leat_engine_drain(struct leat_engine *engine, void (*done)(void *arg), void *arg);

/* Stops the workers, cutting the sessions that are left, and frees all. NULL is a no-op. */
void leat_engine_free(struct leat_engine *engine);

#endif
