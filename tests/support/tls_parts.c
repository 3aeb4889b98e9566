/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls_parts.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t stopped;

static uint64_t clock_ms(void *arg)
{
    return *(uint64_t *)arg;
}

struct leat_tls_config *test_config_of(enum leat_tls_role role, const char *cert, const char *key)
{
    struct leat_tls_config *config = NULL;
    assert_int_equal(leat_tls_config_new(role, &config, NULL), LEAT_OK);
    if (cert != NULL)
        assert_int_equal(leat_tls_config_set_cert(config, cert, key, NULL), LEAT_OK);
    return config;
}

struct leat_tls_ctx *test_ctx_of(struct leat_tls_config *config)
{
    struct leat_tls_ctx *ctx = NULL;
    struct leat_error err = {0};
    if (leat_tls_ctx_build(config, NULL, &ctx, &err) != LEAT_OK)
        fail_msg("no context: %s", err.text);
    leat_tls_config_unref(config);
    return ctx;
}

struct leat_tls_ctx *test_client_of(const char *ca)
{
    struct leat_tls_config *config = test_config_of(LEAT_TLS_CLIENT, NULL, NULL);
    assert_int_equal(leat_tls_config_set_authorities(config, ca, NULL), LEAT_OK);
    return test_ctx_of(config);
}

struct leat_tls_server *test_server_of(const char *cert, const char *key)
{
    struct leat_tls_config *config = test_config_of(LEAT_TLS_SERVER, cert, key);
    struct leat_tls_keyring *ring = test_keyring(NULL);
    assert_int_equal(leat_tls_config_set_tickets(config, false, NULL), LEAT_OK);
    struct leat_tls_server *server = test_server_of_ctx(test_ctx_of(config), ring);
    leat_tls_keyring_unref(ring);
    return server;
}

struct leat_tls_server *test_server_of_ctx(struct leat_tls_ctx *ctx, struct leat_tls_keyring *ring)
{
    struct leat_tls_server_entry entry = {.ctx = ctx};
    struct leat_tls_server *server = NULL;
    assert_int_equal(leat_tls_server_new(&entry, 1, ring, &server, NULL), LEAT_OK);
    leat_tls_ctx_unref(ctx);
    return server;
}

struct leat_tls_keyring *test_keyring(uint64_t *now)
{
    struct leat_tls_keyring *ring = NULL;
    assert_int_equal(leat_tls_keyring_new(clock_ms, now != NULL ? now : &stopped, &ring, NULL),
                     LEAT_OK);
    return ring;
}
