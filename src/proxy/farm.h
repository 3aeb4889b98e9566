/*
 * farm.h - the backends that serve the same vhosts, and which of them is next
 *
 * Sessions are dealt round robin, by weight, by one counter that advances once a session,
 * whichever worker it is on. A backend that failed goes last for a while that doubles with every
 * failure, and is still tried when no other is left.
 *
 * Ownership: farms and sessions borrow the backends, which belong to a snapshot.
 * Threads: everything but new and free may be called from any thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_FARM_H
#define LEAT_PROXY_FARM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>

#include "amqp/login.h"
#include "amqp/server.h"
#include "proxy/config.h"

#define LEAT_BACKEND_BACKOFF_MIN_MS 5000u
#define LEAT_BACKEND_BACKOFF_MAX_MS 60000u

struct leat_tally;

struct leat_backend {
    size_t index; /* in the configuration */
    const struct leat_backend_config *config;
    char text[LEAT_ENDPOINT_TEXT_MAX]; /* its address, for log and status */
    _Atomic uint64_t retry_at_ms;      /* it goes last until then */
    _Atomic uint32_t backoff_ms;       /* of the last failure; 0 after a success */
    _Atomic uint64_t sessions;         /* opened on it */
    _Atomic size_t turn;               /* which of its name's addresses is next */
    struct leat_tally *tally;          /* what is told of it; the snapshot's */
};

struct leat_farm {
    _Atomic uint64_t turn; /* advances once a session */
    /* The least that a broker has offered in its Tune; 0 while none has set a limit. */
    _Atomic uint32_t frame_max;
    _Atomic uint32_t channel_max;
    /* What a broker has said of itself in its Start; empty while none has. */
    pthread_mutex_t properties_lock;
    size_t properties_len;
    uint8_t properties[LEAT_AMQP_SERVER_PROPERTIES_MAX];
    size_t count;
    struct leat_backend *backends[];
};

/* The order in which one session tries the backends. */
struct leat_farm_search {
    uint8_t order[LEAT_CONFIG_BACKENDS_MAX];
    uint8_t count;
    uint8_t next;
};

/* Makes BACKEND, the one at INDEX of the configuration, that knows nothing yet. */
void leat_backend_init(struct leat_backend *backend, size_t index,
                       const struct leat_backend_config *config);

/* Takes over what was known of the same backend under the last configuration. */
void leat_backend_inherit(struct leat_backend *backend, const struct leat_backend *before);

/* Makes a farm of the COUNT backends, at least one, whose indices in BACKENDS are in MEMBERS.
 * LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_farm_new(struct leat_backend *backends,
                                               const uint8_t *members, size_t count,
                                               struct leat_farm **out);

/* Takes over what was learned of the same farm under the last configuration. */
void leat_farm_inherit(struct leat_farm *farm, struct leat_farm *before);

void leat_farm_free(struct leat_farm *farm);

/* Begins a session's search at the farm's next turn. NOW_MS: the loop's clock. */
void leat_farm_begin(struct leat_farm *farm, uint64_t now_ms, struct leat_farm_search *out);

/* Returns the backend to try next, or NULL when all were tried. */
struct leat_backend *leat_farm_next(struct leat_farm *farm, struct leat_farm_search *search);

/* Notes a failure of BACKEND. Returns for how long it goes last from now on, or 0 if that
 * was known already. */
uint32_t leat_backend_failed(struct leat_backend *backend, uint64_t now_ms);

/* Notes that a session opened on BACKEND. True if it had been failing. */
bool leat_backend_opened(struct leat_backend *backend);

/* Learns from a broker's Tune what the farm can take. */
void leat_farm_learn(struct leat_farm *farm, const struct leat_amqp_tune *offered);

/* Learns from a broker's Start what clients are told from now on; ignored if it is empty or too
 * large to be repeated. */
void leat_farm_learn_properties(struct leat_farm *farm, struct leat_str properties);

/* Copies what was learned to BUF and returns it, empty if nothing was. */
struct leat_str leat_farm_properties(struct leat_farm *farm,
                                     uint8_t buf[LEAT_AMQP_SERVER_PROPERTIES_MAX]);

/* Lowers TUNE, an offer to a client, to what the farm can take. */
void leat_farm_limit(const struct leat_farm *farm, struct leat_amqp_tune *tune);

#endif
