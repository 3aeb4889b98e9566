/*
 * tls_parts.h - contexts and servers of TLS in one line each; every failure fails the test
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_TLS_PARTS_H
#define TEST_TLS_PARTS_H

#include "tls/server.h"

/* A new configuration; with CERT NULL without a certificate. */
struct leat_tls_config *test_config_of(enum leat_tls_role role, const char *cert, const char *key);

/* Builds, and drops CONFIG. */
struct leat_tls_ctx *test_ctx_of(struct leat_tls_config *config);

/* What trusts the authorities in CA. */
struct leat_tls_ctx *test_client_of(const char *ca);

/* A server with one context, that gives no tickets: nothing goes over the wire but what the test
 * sends. */
struct leat_tls_server *test_server_of(const char *cert, const char *key);

/* A server of one context, which is dropped. */
struct leat_tls_server *test_server_of_ctx(struct leat_tls_ctx *ctx, struct leat_tls_keyring *ring);

/* A ring whose time stands still, or is *NOW. */
struct leat_tls_keyring *test_keyring(uint64_t *now);

#endif
