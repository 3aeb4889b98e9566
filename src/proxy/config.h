/*
 * config.h - the proxy's configuration: an immutable value, built whole and validated whole
 *
 * One table (config.c) describes every key: its type, range, default and help. It drives
 * the parser and the text of --help.
 *
 * Ownership: leat_config_free() frees all that it holds.
 * Threads: read-only once leat_config_finish() has succeeded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_CONFIG_H
#define LEAT_PROXY_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

#include "net/addr.h"

#define LEAT_CONFIG_ENDPOINTS_MAX 64

/* Where to listen or to connect: amqp://ADDRESS:PORT or amqps://ADDRESS:PORT. */
struct leat_endpoint {
    bool tls;
    struct leat_addr addr;
};

struct leat_endpoints {
    size_t count;
    struct leat_endpoint at[LEAT_CONFIG_ENDPOINTS_MAX];
};

/* Every number has the unit of its name; see config.c for what each means. */
struct leat_config {
    struct leat_endpoints listeners;
    struct leat_endpoints backends;
    char *cert;
    char *key;
    char *backend_ca;
    char *backend_name;
    char *loopback_users; /* separated by commas */
    uint64_t workers;     /* 0: not set, one a core */
    uint64_t log_level;   /* enum leat_log_level */
    bool trace;

    uint64_t frame_max;
    uint64_t channel_max;
    uint64_t heartbeat_ms;

    uint64_t timeout_tls_ms;
    uint64_t timeout_handshake_ms;
    uint64_t timeout_connect_ms;
    uint64_t timeout_search_ms;
    uint64_t timeout_close_ms;
    uint64_t timeout_linger_ms;
    uint64_t timeout_flush_ms;

    uint64_t limit_sessions; /* 0: as many as descriptors allow */
    uint64_t limit_handshakes;
    uint64_t limit_initial_frame_bytes;
    uint64_t limit_initial_frames;
    uint64_t limit_session_queue_bytes;
    uint64_t limit_queue_bytes;

    uint64_t drain_close_after_ms;
    uint64_t drain_close_until_ms;
    uint64_t drain_end_ms;
};

/* Makes a configuration of all defaults. LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_config_new(struct leat_config **out, struct leat_error *err);

void leat_config_free(struct leat_config *config);

/* Whether there is a key NAME at all. */
bool leat_config_has(struct leat_str name);

/* Whether NAME is a key that stands alone, without a value. */
bool leat_config_is_flag(struct leat_str name);

/*
 * Sets the key NAME to VALUE, as it was written; repeatable keys are added to. LEAT_EUSAGE
 * with ERR saying what is known, expected or allowed.
 */
LEAT_MUST_CHECK enum leat_status leat_config_set(struct leat_config *config, struct leat_str name,
                                                 struct leat_str value, struct leat_error *err);

/* Checks what only the whole can tell: that nothing needed is missing and all fits together. */
LEAT_MUST_CHECK enum leat_status leat_config_finish(const struct leat_config *config,
                                                    struct leat_error *err);

/* Writes the keys with their meaning, range and default to FILE, for --help. */
void leat_config_print_help(FILE *file);

/* Whether USER is one of config->loopback_users. */
bool leat_config_is_loopback_user(const struct leat_config *config, struct leat_str user);

#endif
