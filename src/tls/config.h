/*
 * config.h - what a TLS context is to be: a value that is set once and then shared
 *
 * It names files but reads none; that is done when a context is built of it (ctx.h). Its
 * *key*, a SHA-256 over all that is set here, is what the cache of contexts finds by: equal
 * configurations share a context. The name of the peer belongs to the connection, not here.
 *
 * A configuration is frozen by its first use; setters then say LEAT_EUSAGE.
 *
 * Ownership: counted. What is passed in is copied.
 * Threads: any once it is frozen, also for freezing it; one before.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_CONFIG_H
#define LEAT_TLS_CONFIG_H

#include <stdbool.h>

#include "tls/digest.h"

enum leat_tls_role {
    LEAT_TLS_CLIENT, /* connects, and verifies the peer's certificate and name */
    LEAT_TLS_SERVER, /* accepts */
};

/* What a server asks of its clients. */
enum leat_tls_client_cert {
    LEAT_TLS_CLIENT_CERT_NONE,
    LEAT_TLS_CLIENT_CERT_OPTIONAL, /* who shows one must show a good one */
    LEAT_TLS_CLIENT_CERT_REQUIRED,
};

enum leat_tls_version { LEAT_TLS_1_2, LEAT_TLS_1_3 };

#define LEAT_TLS_CRL_FILES_MAX 64

struct leat_tls_config;

/*
 * Makes a configuration with the defaults: TLS 1.2 and 1.3, cipher suites with forward secrecy
 * and authenticated encryption only (RFC 9325, 4.2), X25519 and P-256; a client trusts the
 * system's authorities, a server asks for no certificates and gives tickets. LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status
leat_tls_config_new(enum leat_tls_role role, struct leat_tls_config **out, struct leat_error *err);

struct leat_tls_config *leat_tls_config_ref(struct leat_tls_config *config);

/* Drops a reference; the last one frees. NULL is a no-op. */
void leat_tls_config_unref(struct leat_tls_config *config);

/*
 * The setters. Each returns LEAT_EUSAGE with ERR saying what is wrong and what to do,
 * LEAT_ENOMEM, or LEAT_OK; a value that is refused changes nothing.
 */

/* Shows the certificate in CERT_FILE (PEM: its own first, then its chain), whose private key is in
 * KEY_FILE. A server needs one. */
LEAT_MUST_CHECK enum leat_status leat_tls_config_set_cert(struct leat_tls_config *config,
                                                          const char *cert_file,
                                                          const char *key_file,
                                                          struct leat_error *err);

/* The key file is encrypted; the first line of FILE is its passphrase. */
LEAT_MUST_CHECK enum leat_status leat_tls_config_set_passphrase_file(struct leat_tls_config *config,
                                                                     const char *file,
                                                                     struct leat_error *err);

/* Trusts the authorities in PATH, a PEM file or a directory of them (names that end in .pem, .crt
 * or .cer, or are a hash as c_rehash makes them), instead of the system's. */
LEAT_MUST_CHECK enum leat_status leat_tls_config_set_authorities(struct leat_tls_config *config,
                                                                 const char *path,
                                                                 struct leat_error *err);

/* Refuses what the revocation lists in FILE (PEM) name. Once there is one, each authority of a
 * peer's chain must have a list that is not out of date. */
LEAT_MUST_CHECK enum leat_status leat_tls_config_add_crl(struct leat_tls_config *config,
                                                         const char *file, struct leat_error *err);

/* For servers. What is asked for needs authorities: the system's vouch for no clients. */
LEAT_MUST_CHECK enum leat_status leat_tls_config_set_client_cert(struct leat_tls_config *config,
                                                                 enum leat_tls_client_cert mode,
                                                                 struct leat_error *err);

/* For clients: accepts any certificate, and so any attacker. */
LEAT_MUST_CHECK enum leat_status
leat_tls_config_insecure_skip_verify(struct leat_tls_config *config, struct leat_error *err);

/* How many authorities may stand between the peer's certificate and a trusted one; 10 unless
 * set, at most 100. */
LEAT_MUST_CHECK enum leat_status leat_tls_config_set_depth(struct leat_tls_config *config,
                                                           unsigned depth, struct leat_error *err);

LEAT_MUST_CHECK enum leat_status leat_tls_config_set_versions(struct leat_tls_config *config,
                                                              enum leat_tls_version min,
                                                              enum leat_tls_version max,
                                                              struct leat_error *err);

/* The cipher suites of TLS 1.2, in OpenSSL's names between colons (such as
 * "ECDHE-RSA-AES128-GCM-SHA256"); "!" before one excludes it. Each must be known. */
LEAT_MUST_CHECK enum leat_status leat_tls_config_set_ciphers(struct leat_tls_config *config,
                                                             const char *list,
                                                             struct leat_error *err);

/* Those of TLS 1.3, such as "TLS_AES_128_GCM_SHA256". */
LEAT_MUST_CHECK enum leat_status leat_tls_config_set_ciphersuites(struct leat_tls_config *config,
                                                                  const char *list,
                                                                  struct leat_error *err);

/* The groups for key exchange, the preferred one first, such as "X25519:P-256". */
LEAT_MUST_CHECK enum leat_status leat_tls_config_set_groups(struct leat_tls_config *config,
                                                            const char *list,
                                                            struct leat_error *err);

/* For servers: whether sessions can be resumed. Never while client certificates are asked for: a
 * ticket would outlive the certificate's revocation. */
LEAT_MUST_CHECK enum leat_status leat_tls_config_set_tickets(struct leat_tls_config *config,
                                                             bool on, struct leat_error *err);

/* Freezes CONFIG, which every use does too. LEAT_EUSAGE, with ERR, if what was set does not go
 * together. */
LEAT_MUST_CHECK enum leat_status leat_tls_config_freeze(struct leat_tls_config *config,
                                                        struct leat_error *err);

/* The key of CONFIG, which must be frozen. It lives as long as CONFIG. */
const struct leat_tls_digest *leat_tls_config_key(const struct leat_tls_config *config);

/* The files that CONFIG names, for messages: NULL what is not set; the authorities of a client
 * that trusts the system's are NULL too. They live as long as CONFIG. */
const char *leat_tls_config_cert_file(const struct leat_tls_config *config);
const char *leat_tls_config_authorities(const struct leat_tls_config *config);

#endif
