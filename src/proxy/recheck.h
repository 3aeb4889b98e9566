/*
 * recheck.h - watching the files of listeners' certificates: a change takes effect by a reload only
 *
 * Who has renewed a certificate and forgotten the reload is told, once for each certificate.
 *
 * Ownership: embedded in the engine; holds a reference to the snapshot it looks at.
 * Threads: the control loop's; the files are looked at on the pool's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_RECHECK_H
#define LEAT_PROXY_RECHECK_H

#include <stdbool.h>

#include "base/log.h"
#include "loop/loop.h"
#include "loop/offload.h"
#include "proxy/config.h"

struct leat_snapshot;

struct leat_recheck {
    struct leat_loop *loop;
    const struct leat_log *log;
    struct leat_snapshot *snapshot;
    struct leat_snapshot *next; /* to be looked at once the pool is done with the present one */
    struct leat_timer timer;
    struct leat_work work;
    bool is_at_work;
    bool has_changed[LEAT_CONFIG_LISTENERS_MAX]; /* that a listener shows; told already */
    bool is_new[LEAT_CONFIG_LISTENERS_MAX];      /* found on the pool, to be told */
};

void leat_recheck_init(struct leat_recheck *recheck, struct leat_loop *loop,
                       const struct leat_log *log);

/* Looks at the files of SNAPSHOT from now on. Never waits. */
void leat_recheck_start(struct leat_recheck *recheck, struct leat_snapshot *snapshot);

/* Stops, running the loop, which must not be in a turn, until what is at work is done. */
void leat_recheck_stop(struct leat_recheck *recheck);

#endif
