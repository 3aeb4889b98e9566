/*
 * snapshot.h - a configuration in force: the value, and what is built from it
 *
 * TLS contexts are all built before a snapshot is used, so that taking it into use is one
 * exchange of a pointer and no handshake waits for a file. Those of listeners stay as they are;
 * those of backends come from a cache, which renews them when their files change. A session keeps
 * the snapshot it began with to its end.
 *
 * Ownership: counted. A snapshot owns its configuration, the listeners' contexts, backends and
 * farms; what TLS keeps (tls_state.h) it shares with those before and after it.
 * Threads: immutable but for the state of backends and farms, which any thread may touch. The
 * count is atomic. Making one blocks on files: never on a worker's loop.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_SNAPSHOT_H
#define LEAT_PROXY_SNAPSHOT_H

#include <leat/compiler.h>
#include <leat/error.h>

#include "proxy/config.h"
#include "proxy/farm.h"

struct leat_tls_config;
struct leat_tls_ctx;
struct leat_tls_state;
struct leat_tls_server;

struct leat_snapshot {
    _Atomic unsigned refs;
    struct leat_config *config;
    struct leat_tls_state *tls;
    struct leat_tls_server **listener_tls; /* one a listener; NULL for a plain one */
    struct leat_tls_config **backend_tls;  /* one a backend, likewise; sessions get their contexts
                                              from tls->cache by it */
    struct leat_tls_ctx **backend_ctx;     /* what the cache had when the snapshot was made */
    struct leat_backend *backends;         /* in the order of config->backends */
    struct leat_farm **farms;              /* in the order of config->farms */
};

/*
 * Makes a snapshot of CONFIG, which is finished, and takes it over; on failure CONFIG stays the
 * caller's. What OLD, which may be NULL, knows of backends and farms of the same name and
 * address is taken along. LEAT_EUSAGE with ERR naming the file that can't be used, and where it is
 * configured; LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status leat_snapshot_new(struct leat_config *config,
                                                   const struct leat_snapshot *old,
                                                   struct leat_snapshot **out,
                                                   struct leat_error *err);

/* Returns SNAPSHOT with one more reference. */
struct leat_snapshot *leat_snapshot_ref(struct leat_snapshot *snapshot);

/* Drops a reference; the last one frees. NULL is a no-op. */
void leat_snapshot_unref(struct leat_snapshot *snapshot);

/* Returns the farm that serves VHOST, or NULL if there is none. */
struct leat_farm *leat_snapshot_find_farm(const struct leat_snapshot *snapshot,
                                          struct leat_str vhost);

/* Lowers TUNE, an offer to a client whose vhost is not known yet, to what all farms can take. */
void leat_snapshot_limit_tune(const struct leat_snapshot *snapshot, struct leat_amqp_tune *tune);

/* Copies to BUF what Start is to say to such a client, and returns it: what the first farm that is
 * known has said; empty if none is. */
struct leat_str leat_snapshot_properties(const struct leat_snapshot *snapshot,
                                         uint8_t buf[LEAT_AMQP_SERVER_PROPERTIES_MAX]);

/* Where the configuration says what a TLS context is. All is lent for the call. */
struct leat_snapshot_ctx_place {
    const char *path; /* "listeners[0]" or "backends.rabbit1" */
    bool is_backend;
    const char *ca_key; /* what its key for authorities is called */
    /* Where its keys stand in the file; 0: there is none. */
    unsigned cert_line, ca_line, crl_line;
    const char *failure; /* why its files could not be read again; NULL: nothing failed */
};

typedef void leat_snapshot_ctx_fn(void *arg, const struct leat_snapshot_ctx_place *place,
                                  struct leat_tls_ctx *ctx);

/* Calls FN for each TLS context of SNAPSHOT; of backends, for those that the next session gets. */
void leat_snapshot_each_ctx(const struct leat_snapshot *snapshot, leat_snapshot_ctx_fn *fn,
                            void *arg);

/* snapshot_tls.c, for snapshot.c: builds all TLS of SNAPSHOT, whose `tls` is there. */
LEAT_MUST_CHECK enum leat_status leat_snapshot_build_tls(struct leat_snapshot *snapshot,
                                                         struct leat_error *err);

/*
 * Whether NEXT can replace OLD while the proxy runs. If not, LEAT_EUSAGE with ERR naming what can't
 * change without a restart.
 */
LEAT_MUST_CHECK enum leat_status leat_snapshot_may_replace(const struct leat_config *old,
                                                           const struct leat_config *next,
                                                           struct leat_error *err);

#endif
