/*
 * log.h - one line an event, to whatever sink the program has chosen
 *
 * A line is words and key=value pairs, a session's id first; values that come from a peer
 * are quoted with leat_text_add_quoted(). Nothing secret and no payload is ever logged.
 *
 * Ownership: the program owns the log and its sink and keeps both for its life.
 * Threads: leat_log_line() may be called from any thread, so the sink's write must be
 * callable from any thread and must not block.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BASE_LOG_H
#define LEAT_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/str.h>

enum leat_log_level {
    LEAT_LOG_ERROR, /* something that leat needs is broken; somebody has to act */
    LEAT_LOG_WARN,  /* a session or a backend failed, or somebody does what will not work */
    LEAT_LOG_INFO,  /* sessions open and end, the program starts and stops */
    LEAT_LOG_DEBUG, /* every change of state */
    LEAT_LOG_TRACE, /* what every stream did in every turn */
};

/* Takes a finished line, without a newline. Must not block. */
typedef void leat_log_write_fn(void *arg, enum leat_log_level level, struct leat_str line);

struct leat_log {
    _Atomic int level; /* the most verbose enum leat_log_level that is written */
    leat_log_write_fn *write;
    void *arg;
};

/* "error", "warn", "info", "debug" and "trace", in the order of their enum; then NULL. */
extern const char *const leat_log_levels[];

/* Returns the name of LEVEL. */
const char *leat_log_level_name(enum leat_log_level level);

/* Finds the level called NAME. False, leaving *OUT alone, if there is none. */
bool leat_log_level_find(struct leat_str name, enum leat_log_level *out);

/* Whether a line of LEVEL would be written: ask before doing work for it. */
bool leat_log_is_on(const struct leat_log *log, enum leat_log_level level);

/* Writes one line, formatted as by printf and cut at 1,000 bytes, if LEVEL is on. */
void leat_log_line(const struct leat_log *log, enum leat_log_level level, const char *format, ...)
    LEAT_PRINTF(3, 4);

/* A bound on how often one place in the code may log: BURST lines in every 10 s. All zero
 * is a fresh one. It may be shared by threads. */
struct leat_log_rate {
    _Atomic uint64_t window_and_lines; /* its number above, its lines in the lower 32 bits */
    _Atomic uint32_t held_back;
};

/*
 * Whether one more line may be written now. NOW_MS is any monotonic clock. When a new
 * window begins *OUT_HELD_BACK tells how many lines the last ones held back, otherwise 0.
 */
bool leat_log_rate_allows(struct leat_log_rate *rate, uint32_t burst, uint64_t now_ms,
                          uint32_t *out_held_back);

#endif
