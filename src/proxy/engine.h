/*
 * engine.h - the proxy as a whole: listeners, workers, sessions; started, watched, drained
 *
 * Ownership: the engine borrows its log and control loop, which outlive it.
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

struct leat_engine;
struct leat_log;
struct leat_loop;
struct leat_shared;
struct leat_snapshot;

/*
 * Opens the listeners of SNAPSHOT, which it takes a reference to, but accepts nothing yet. The
 * level of LOG follows the configuration. LEAT_EIO, LEAT_ENOMEM with ERR saying what to do.
 */
LEAT_MUST_CHECK enum leat_status leat_engine_new(struct leat_snapshot *snapshot,
                                                 struct leat_log *log, struct leat_loop *control,
                                                 struct leat_engine **out, struct leat_error *err);

/* Starts the workers, and logs where they listen. */
LEAT_MUST_CHECK enum leat_status leat_engine_start(struct leat_engine *engine,
                                                   struct leat_error *err);

/* The snapshot in force, borrowed. */
const struct leat_snapshot *leat_engine_snapshot(const struct leat_engine *engine);

/* Takes SNAPSHOT into use, with a reference of its own: the very next connection has it, those that
 * are there keep theirs. leat_snapshot_may_replace() has allowed it. */
void leat_engine_replace(struct leat_engine *engine, struct leat_snapshot *snapshot);

/* Notes that a new configuration was to be taken into use but can't be, and why. */
void leat_engine_reload_failed(struct leat_engine *engine, const char *reason);

/* What the workers share; belongs to the engine. */
struct leat_shared *leat_engine_shared(struct leat_engine *engine);

/* Logs one line with what the workers have counted. */
void leat_engine_log_status(const struct leat_engine *engine);

/* Closes the listeners and ends the sessions as the configuration's drain times say, then
 * calls DONE on the control loop, once. */
void leat_engine_drain(struct leat_engine *engine, void (*done)(void *arg), void *arg);

/* Cuts the sessions that are left: whoever watches them hears of it by the control, which has to be
 * there still. Runs the control loop until that is done. NULL is a no-op. */
void leat_engine_cut(struct leat_engine *engine);

/* Stops the workers, cutting the sessions that are left, and frees all. NULL is a no-op. */
void leat_engine_free(struct leat_engine *engine);

/* How many connections there are, and how many sessions are open. */
uint64_t leat_shared_connections(const struct leat_shared *shared);
uint64_t leat_shared_sessions(const struct leat_shared *shared);

/* Calls FN with everything that is counted, summed up over the workers, and its name. */
typedef void leat_counter_fn(void *arg, const char *name, uint64_t value);
void leat_shared_each_counter(const struct leat_shared *shared, leat_counter_fn *fn, void *arg);

#endif
