/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/settings.h"

#include <string.h>

#include "tls/const_cast.h"
#include "tls/ctx_impl.h"
#include "tls/verify.h"

/* How long a ticket can be used (RFC 8446, 4.6.1 allows a week): clients of brokers come back
 * after hours. */
#define SESSION_S (24L * 3600)

static int version_of(enum leat_tls_version version)
{
    return version == LEAT_TLS_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION;
}

static int verify_mode(const struct leat_tls_config *config)
{
    if (!leat_tls_config_verifies(config))
        return SSL_VERIFY_NONE;
    return config->client_cert == LEAT_TLS_CLIENT_CERT_REQUIRED
               ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
               : SSL_VERIFY_PEER;
}

static uint64_t options_of(const struct leat_tls_config *config)
{
    uint64_t options =
        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE;

    return leat_tls_config_resumes(config) ? options : options | SSL_OP_NO_TICKET;
}

/* One a connection: a client that opens several takes a new one from each. None where there
 * must be none, since without SSL_OP_NO_TICKET's kind TLS 1.3 would still send some. */
static size_t tickets_of(const struct leat_tls_config *config)
{
    return leat_tls_config_resumes(config) ? 1 : 0;
}

static bool configure(SSL_CTX *ssl_ctx, const struct leat_tls_config *config)
{
    /* RELEASE_BUFFERS: a connection that waits holds no record buffer. NO_AUTO_CHAIN: the chain
     * is the file's; searching one in each handshake costs a third of it. */
    (void)SSL_CTX_set_mode(ssl_ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_NO_AUTO_CHAIN);
    /* Our BIO already has whole recvs in memory: reading ahead would copy them once more for
     * each record, which is quadratic. */
    SSL_CTX_set_read_ahead(ssl_ctx, 0);
    /* A session is in its ticket and nowhere else. */
    (void)SSL_CTX_set_session_cache_mode(ssl_ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_timeout(ssl_ctx, SESSION_S);
    (void)SSL_CTX_set_options(ssl_ctx, options_of(config));
    SSL_CTX_set_verify(ssl_ctx, verify_mode(config),
                       leat_tls_config_verifies(config) ? leat_tls_verify_told : NULL);
    SSL_CTX_set_verify_depth(ssl_ctx, (int)config->depth);
    return SSL_CTX_set_num_tickets(ssl_ctx, tickets_of(config)) == 1 &&
           SSL_CTX_set_min_proto_version(ssl_ctx, version_of(config->min)) == 1 &&
           SSL_CTX_set_max_proto_version(ssl_ctx, version_of(config->max)) == 1 &&
           SSL_CTX_set_ciphersuites(ssl_ctx, leat_tls_config_ciphersuites(config)) == 1 &&
           SSL_CTX_set_cipher_list(ssl_ctx, leat_tls_config_ciphers(config)) == 1 &&
           SSL_CTX_set1_groups_list(ssl_ctx, leat_tls_taken(leat_tls_config_groups(config))) == 1;
}

SSL_CTX *leat_tls_settings_new_ctx(const struct leat_tls_config *config)
{
    SSL_CTX *ssl_ctx =
        SSL_CTX_new(config->role == LEAT_TLS_SERVER ? TLS_server_method() : TLS_client_method());

    if (ssl_ctx == NULL || configure(ssl_ctx, config))
        return ssl_ctx;
    SSL_CTX_free(ssl_ctx);
    return NULL;
}

/* The lists are parsed by OpenSSL each time, so they are set only where they differ. The ciphers of
 * TLS 1.2 come with the SSL_CTX: an SSL that has none of its own looks there. */
static bool switch_lists(SSL *ssl, const struct leat_tls_config *from,
                         const struct leat_tls_config *to)
{
    const char *suites = leat_tls_config_ciphersuites(to);
    const char *groups = leat_tls_config_groups(to);
    bool is_set = true;

    if (strcmp(suites, leat_tls_config_ciphersuites(from)) != 0)
        is_set = SSL_set_ciphersuites(ssl, suites) == 1;
    if (strcmp(groups, leat_tls_config_groups(from)) != 0)
        is_set = is_set && SSL_set1_groups_list(ssl, leat_tls_taken(groups)) == 1;
    return is_set;
}

bool leat_tls_settings_switch(SSL *ssl, const struct leat_tls_config *from,
                              const struct leat_tls_ctx *to)
{
    const struct leat_tls_config *config = to->config;
    uint64_t options = options_of(config);

    SSL_set_verify(ssl, verify_mode(config),
                   leat_tls_config_verifies(config) ? leat_tls_verify_told : NULL);
    SSL_set_verify_depth(ssl, (int)config->depth);
    (void)SSL_clear_options(ssl, options_of(from) & ~options);
    (void)SSL_set_options(ssl, options);
    return SSL_set_session_id_context(ssl, to->fingerprint.bytes, sizeof(to->fingerprint.bytes)) ==
               1 &&
           SSL_set_num_tickets(ssl, tickets_of(config)) == 1 &&
           SSL_set_min_proto_version(ssl, version_of(config->min)) == 1 &&
           SSL_set_max_proto_version(ssl, version_of(config->max)) == 1 &&
           switch_lists(ssl, from, config);
}
