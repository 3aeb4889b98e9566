/*
 * worker.h - one thread of the data path: a loop, its sessions, and what all workers share
 *
 * Every worker watches every listener. Whoever accepts a connection raises the count of the
 * worker with the fewest sessions and hands the descriptor to it.
 *
 * Ownership: the engine owns its workers; a worker owns its sessions.
 * Threads: a worker's fields belong to its thread, except the atomics.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_WORKER_H
#define LEAT_PROXY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "buf/bufq.h"
#include "loop/io.h"
#include "loop/loop.h"
#include "net/unix_socket.h"
#include "proxy/config.h"

struct leat_resolver;
struct leat_session;
struct leat_snapshot;
struct leat_worker;

/* What has become of the proxy so far; belongs to the control loop's thread. Times are ms since
 * 1970.
 */
struct leat_life {
    int64_t started_at, loaded_at;
    uint64_t reloads, failed_reloads;
    int64_t last_failure_at;
    char last_failure[256]; /* of a reload */
    uint64_t contexts;      /* of TLS, built in all for listeners */
    bool is_draining;
};

/* What all workers share: the snapshot, and atomics. */
struct leat_shared {
    struct leat_life life;
    struct leat_log *log;
    pthread_mutex_t snapshot_lock;    /* of the pointer only, see leat_shared_snapshot() */
    struct leat_snapshot *snapshot;   /* the configuration in force */
    struct leat_bufq_account account; /* bytes queued in all */
    _Atomic bool tracing;
    _Atomic uint64_t next_id;
    _Atomic uint64_t handshakes; /* sessions that are not open yet */
    _Atomic uint64_t sessions;   /* open, or seeking their broker */
    _Atomic uint64_t ending;     /* ended, but their descriptors are not closed yet */
    _Atomic uint64_t sessions_max, handshakes_max; /* what configuration and descriptors allow */
    struct leat_log_rate rate_early;     /* connections that fail before anyone is known */
    struct leat_log_rate rate_refused;   /* those that named a user, but did not open */
    struct leat_log_rate rate_accept;    /* descriptors used up */
    struct leat_log_rate rate_pass_over; /* backends that are passed over */
    struct leat_log_rate rate_limit;     /* connections turned away */
    size_t listener_count;               /* in the order of the configuration, the same for life */
    _Atomic unsigned listening;          /* workers that still watch the listeners */
    _Atomic bool listeners_closed;
    int listener_fds[LEAT_CONFIG_LISTENERS_MAX];
    struct leat_unix_socket listener_sockets[LEAT_CONFIG_LISTENERS_MAX]; /* of those that are one */
    struct leat_addr listener_addrs[LEAT_CONFIG_LISTENERS_MAX]; /* with the port that the kernel
                                                                   chose for 0 */
    unsigned worker_count;
    struct leat_worker *workers;
};

/* Only ever grow, but `load`. */
struct leat_worker_counters {
    _Atomic uint64_t load; /* sessions placed on this worker */
    _Atomic uint64_t accepted;
    _Atomic uint64_t opened;
    _Atomic uint64_t closed;      /* after having been open */
    _Atomic uint64_t refused;     /* told so with a Close */
    _Atomic uint64_t failed;      /* ended before Open in any other way */
    _Atomic uint64_t silent;      /* among these, those that sent no byte */
    _Atomic uint64_t turned_away; /* a limit was reached */
    _Atomic uint64_t bytes_in, bytes_out;
    _Atomic uint64_t frames_in, frames_out;
    _Atomic uint64_t heartbeats_sent, heartbeats_received;
    _Atomic uint64_t tls_handshakes, tls_resumed; /* with clients; the second among the first */
};

struct leat_listener {
    struct leat_worker *worker;
    size_t index; /* in the configuration */
    struct leat_io io;
    struct leat_timer pause; /* while descriptors are lacking */
};

struct leat_worker {
    struct leat_shared *shared;
    struct leat_loop *loop;
    struct leat_resolver *resolver; /* of the backends' names */
    pthread_t thread;
    bool is_started;
    bool is_listening;
    struct leat_post close_listeners, begin_drain, finish;
    struct leat_list sessions; /* by id, as ids ascend */
    struct leat_list watches;  /* who watches them: proxy/watch.h */
    struct leat_list cursors;  /* who is going through them: struct leat_cursor */
    struct leat_timer drain;
    uint64_t drain_sessions;  /* there were when the Closes began */
    uint64_t drain_during_ms; /* that they take */
    uint64_t drain_until;     /* when the last session is to have got its own */
    struct leat_worker_counters count;
    struct leat_listener listeners[LEAT_CONFIG_LISTENERS_MAX];
};

/* Whether one more line of the kind that RATE bounds to BURST in 10 s may be logged; if lines have
 * been held back before, this is where that is told. */
bool leat_worker_may_log(const struct leat_worker *worker, struct leat_log_rate *rate,
                         uint32_t burst);

/* Returns the snapshot in force, with a reference for the caller. Any thread. */
struct leat_snapshot *leat_shared_snapshot(struct leat_shared *shared);

/* Makes the loop and watches the listeners. On failure what was made is freed. */
LEAT_MUST_CHECK enum leat_status
leat_worker_init(struct leat_worker *worker, struct leat_shared *shared, struct leat_error *err);

LEAT_MUST_CHECK enum leat_status leat_worker_start(struct leat_worker *worker,
                                                   struct leat_error *err);

/* Stops accepting and cuts the sessions. The worker's thread only. */
void leat_worker_cut(struct leat_worker *worker);

/* Cuts the sessions and ends the thread, if it runs. */
void leat_worker_stop(struct leat_worker *worker);

/* Cuts what others have handed over since, and frees what WORKER holds. All workers have been
 * stopped. */
void leat_worker_fini(struct leat_worker *worker);

/* Closes the listening sockets, which no worker may watch any more. */
void leat_worker_close_sockets(struct leat_shared *shared);

/* A place in the list of sessions that is kept from one turn to another: the session that is next,
 * or the end. The worker's thread only. */
struct leat_cursor {
    struct leat_list link;
    struct leat_list *next;
};

/* Puts CURSOR before the first session; takes it away. */
void leat_cursor_open(struct leat_cursor *cursor, struct leat_worker *worker);
void leat_cursor_close(struct leat_cursor *cursor);

/* Takes SESSION, which is going to be freed, out of the list. */
void leat_worker_forget(struct leat_worker *worker, struct leat_session *session);

/* Makes the worker stop accepting; the last one to do so closes the listening sockets. Any
 * thread. */
void leat_worker_close_listeners(struct leat_worker *worker);

/* Makes the worker close its sessions, evenly over DURING_MS. Any thread. */
void leat_worker_drain(struct leat_worker *worker, uint64_t during_ms);

#endif
