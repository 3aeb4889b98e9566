/*
 * config.h - the proxy's configuration: an immutable value, built whole and validated whole
 *
 * It comes from the command line (leat_config_set_option()), or from a file of YAML
 * (proxy/config_yaml.h) with options of the command line over it. One set of tables
 * (config_keys.c) describes every key: its type, range, default and help. They drive both
 * parsers, --help, `leat check` and docs/configuration.md.
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

#include "net/cidr.h"
#include "net/resolv_conf.h"
#include "proxy/endpoint.h"
#include "tls/config.h"

#define LEAT_CONFIG_LISTENERS_MAX 64
#define LEAT_CONFIG_CERTIFICATES_MAX 1024
#define LEAT_CONFIG_BACKENDS_MAX 64 /* also of one farm */
#define LEAT_CONFIG_FARMS_MAX 1024
#define LEAT_CONFIG_ROUTES_MAX 65536
#define LEAT_CONFIG_NETWORKS_MAX 64 /* of one listener's proxies */
#define LEAT_CONFIG_KEYS_MAX 40     /* of leat_config_table */

/* How many keys an item has at most: one with TLS, and any other. */
#define LEAT_CONFIG_TLS_KEYS_MAX 24
#define LEAT_CONFIG_ITEM_KEYS_MAX 4

struct leat_names {
    size_t count;
    char **at;
};

/* What is shown and wanted over TLS. Texts are NULL if not given. */
struct leat_tls_settings {
    char *cert, *key, *key_passphrase; /* files */
    char *ca, *crl;                    /* files; of a backend no CA means the system's */
    uint64_t min_version, max_version; /* enum leat_tls_version */
    char *ciphersuites, *ciphers, *groups;
    bool tickets;                /* of listeners only, as what follows */
    uint64_t client_certificate; /* enum leat_tls_client_cert */
};

/* An item of a list, or of a map by name. LINE is where it stands in the file, KEY_LINES where its
 * keys do, in the order of their table; 0 without a file or if not given. */
struct leat_listener_config {
    unsigned line, key_lines[LEAT_CONFIG_TLS_KEYS_MAX];
    struct leat_endpoint endpoint;
    struct leat_tls_settings tls;
    struct leat_names certificate_names;
    char *mode; /* of a UNIX socket, in octal digits; NULL: LEAT_LISTENER_MODE */
    struct leat_names proxy_names;
    /* Found in proxy_names, see leat_config_finish(): who has to send a PROXY header. */
    bool has_unix_proxies;
    size_t proxy_count;
    struct leat_cidr proxies[LEAT_CONFIG_NETWORKS_MAX];
};

#define LEAT_LISTENER_MODE "0660"

struct leat_certificate_config {
    unsigned line, key_lines[LEAT_CONFIG_TLS_KEYS_MAX];
    char *name;
    struct leat_tls_settings tls;
    struct leat_names server_names;
    bool is_used;
};

struct leat_backend_config {
    unsigned line, key_lines[LEAT_CONFIG_TLS_KEYS_MAX];
    char *name;
    struct leat_endpoint endpoint;
    struct leat_tls_settings tls;
    char *verify_name; /* NULL: the address */
    bool insecure_skip_verify;
    uint64_t weight;
    uint64_t proxy_protocol; /* the version of the header that it is sent; 0: none */
};

struct leat_farm_config {
    unsigned line, key_lines[LEAT_CONFIG_ITEM_KEYS_MAX];
    char *name;
    struct leat_names backend_names;
    size_t count;                               /* likewise, found: see leat_config_finish() */
    uint8_t backends[LEAT_CONFIG_BACKENDS_MAX]; /* indices of leat_config.backends */
};

/* Which farm serves a vhost. Exactly one of the two names is given. */
struct leat_route_config {
    unsigned line, key_lines[LEAT_CONFIG_ITEM_KEYS_MAX];
    char *vhost; /* NULL: the default, for every vhost that has no route of its own */
    char *farm_name;
    char *backend_name;
    size_t farm; /* found: an index of leat_config.farms */
};

#define LEAT_CONFIG_LIST(type)                                                                     \
    struct {                                                                                       \
        size_t count;                                                                              \
        type *at; /* NOLINT(bugprone-macro-parentheses): a type */                                 \
    }

/* Every number has the unit of its name; see config_keys.c for what each means. */
struct leat_config {
    char *file; /* NULL without one */
    /* Where the file sets each key of leat_config_table; 0: it does not, or an option is over it.
     */
    unsigned key_lines[LEAT_CONFIG_KEYS_MAX];

    LEAT_CONFIG_LIST(struct leat_listener_config) listeners;
    LEAT_CONFIG_LIST(struct leat_certificate_config) certificates;
    LEAT_CONFIG_LIST(struct leat_backend_config) backends;
    LEAT_CONFIG_LIST(struct leat_farm_config) farms;
    LEAT_CONFIG_LIST(struct leat_route_config)
    routes; /* in the order of their vhosts' bytes, the
               default, if any, first */
    /* The command line's short form: one certificate for all listeners, one farm for all.
     * leat_config_finish() copies them to the listeners and backends that they are for. */
    char *cert, *key;
    char *backend_ca, *backend_name;

    struct leat_names loopback_users;
    uint64_t workers;   /* 0: not set, one a core */
    uint64_t log_level; /* enum leat_log_level */
    bool trace;
    char *control_socket; /* NULL: none */
    uint64_t tls_recheck_ms;
    uint64_t tls_contexts;

    struct leat_names dns_server_names;
    size_t dns_server_count; /* found: see leat_config_finish() */
    struct leat_addr dns_servers[LEAT_DNS_SERVERS_MAX];
    uint64_t dns_timeout_ms;
    uint64_t dns_tries;
    uint64_t dns_ttl_max_ms;

    uint64_t frame_max;
    uint64_t channel_max;
    uint64_t heartbeat_ms;

    uint64_t timeout_proxy_ms;
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

/* Whether there is an option NAME of the command line, and whether it stands alone, without a
 * value. */
bool leat_config_has_option(struct leat_str name);
bool leat_config_is_flag(struct leat_str name);

/*
 * Sets the option NAME of the command line to VALUE, as it was written; repeatable ones are
 * added to. It is over what a file said, so the file is read before. LEAT_EUSAGE with ERR
 * saying what is known, expected or allowed; LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status leat_config_set_option(struct leat_config *config,
                                                        struct leat_str name, struct leat_str value,
                                                        struct leat_error *err);

/*
 * Checks what only the whole can tell, finds what names refer to, and makes the farm and the
 * route that are meant where none are given: one farm, "default", of all backends. A backend
 * that serves vhosts by itself gets a farm of its name, distinct from a farm that is called the
 * same. To be called once. LEAT_EUSAGE with ERR naming file, line and key where there are any;
 * LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status leat_config_finish(struct leat_config *config,
                                                    struct leat_error *err);

/* Writes the options with their meaning, range and default to FILE, for --help. */
void leat_config_print_help(FILE *file);

/* Writes docs/configuration.md to FILE. */
void leat_config_print_reference(FILE *file);

/* Returns the route of VHOST, else the default, else NULL. CONFIG is finished. */
const struct leat_route_config *leat_config_find_route(const struct leat_config *config,
                                                       struct leat_str vhost);

/* Returns what holds on LISTENER for its own certificate (CERTIFICATE is NULL), or for a further
 * one: what that does not say itself is as the listener says. The texts are borrowed from both. */
struct leat_tls_settings leat_config_tls_of(const struct leat_listener_config *listener,
                                            const struct leat_certificate_config *certificate);

/* Returns the certificate called NAME, or NULL. */
const struct leat_certificate_config *leat_config_find_certificate(const struct leat_config *config,
                                                                   const char *name);

/* Whether a client of LISTENER is to send a PROXY header first, and whether PEER is one that may.
 */
bool leat_config_expects_proxy(const struct leat_listener_config *listener);
bool leat_config_is_proxy(const struct leat_listener_config *listener,
                          const struct leat_addr *peer);

/* Whether USER is one of config->loopback_users. */
bool leat_config_is_loopback_user(const struct leat_config *config, struct leat_str user);

#endif
