/*
 * config_impl.h - what a TLS configuration is made of; for this layer only
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_CONFIG_IMPL_H
#define LEAT_TLS_CONFIG_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "tls/config.h"

struct leat_tls_config {
    atomic_uint refs;
    atomic_bool is_frozen; /* what follows is never changed again */
    pthread_mutex_t lock;  /* of freezing */
    enum leat_tls_role role;
    char *cert_file, *key_file, *passphrase_file; /* NULL: none */
    char *authorities;                            /* NULL: a client trusts the system's */
    char *crl_files[LEAT_TLS_CRL_FILES_MAX];
    size_t crl_count;
    enum leat_tls_client_cert client_cert; /* of a server */
    bool skips_verify;                     /* of a client */
    unsigned depth;
    enum leat_tls_version min, max;
    char *ciphers, *ciphersuites, *groups; /* NULL: LEAT_TLS_CIPHERS and so on */
    bool tickets;
    struct leat_tls_digest key;
};

/* AES-128-GCM first: it is the fastest with hardware help and no weaker in practice. */
#define LEAT_TLS_CIPHERSUITES                                                                      \
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
/* Forward secrecy and authenticated encryption only (RFC 9325, 4.2). */
#define LEAT_TLS_CIPHERS                                                                           \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                                   \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                                   \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define LEAT_TLS_GROUPS "X25519:P-256"

static inline const char *leat_tls_config_ciphers(const struct leat_tls_config *config)
{
    return config->ciphers != NULL ? config->ciphers : LEAT_TLS_CIPHERS;
}

static inline const char *leat_tls_config_ciphersuites(const struct leat_tls_config *config)
{
    return config->ciphersuites != NULL ? config->ciphersuites : LEAT_TLS_CIPHERSUITES;
}

static inline const char *leat_tls_config_groups(const struct leat_tls_config *config)
{
    return config->groups != NULL ? config->groups : LEAT_TLS_GROUPS;
}

/* Whether CONFIG's peers are to show certificates that are judged. */
static inline bool leat_tls_config_verifies(const struct leat_tls_config *config)
{
    return config->role == LEAT_TLS_CLIENT ? !config->skips_verify
                                           : config->client_cert != LEAT_TLS_CLIENT_CERT_NONE;
}

/* Whether a server of CONFIG gives and takes tickets. */
static inline bool leat_tls_config_resumes(const struct leat_tls_config *config)
{
    return config->role == LEAT_TLS_SERVER && config->tickets &&
           config->client_cert == LEAT_TLS_CLIENT_CERT_NONE;
}

#endif
