/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/server.h"

#include <stdatomic.h>
#include <string.h>

#include <openssl/err.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "buf/reader.h"
#include "tls/conn.h"
#include "tls/ctx_impl.h"
#include "tls/name_set.h"
#include "tls/reason.h"
#include "tls/server_impl.h"
#include "tls/settings.h"

struct leat_tls_server {
    atomic_uint refs;
    SSL_CTX *front;
    struct leat_tls_keyring *ring;
    struct leat_tls_name_set named;   /* names that were given */
    struct leat_tls_name_set implied; /* names of certificates */
    size_t count;
    struct leat_tls_ctx *ctxs[]; /* the first is the default */
};

/* The choice. */

/* Finds the host name in the LEN bytes at DATA, a server_name extension (RFC 6066, 3). False if it
 * is malformed. An empty name stands for none. */
static bool parse_server_name(const unsigned char *data, size_t len, struct leat_str *out)
{
    struct leat_reader reader;

    leat_reader_init(&reader, data, len);
    if (leat_reader_u16(&reader) != leat_reader_left(&reader) || reader.failed)
        return false;
    while (leat_reader_left(&reader) > 0) {
        uint8_t type = leat_reader_u8(&reader);
        struct leat_str name = leat_reader_bytes(&reader, leat_reader_u16(&reader));
        if (reader.failed)
            return false;
        if (type != TLSEXT_NAMETYPE_host_name)
            continue;
        if (out->len > 0 || name.len == 0)
            return false;
        *out = name;
    }
    return !reader.failed;
}

/* Called when the ClientHello is here and nothing of it has been judged. */
static int on_client_hello(SSL *ssl, int *alert, void *arg)
{
    struct leat_tls_server *server = arg;
    struct leat_tls_conn *conn = SSL_get_app_data(ssl);
    const unsigned char *data = NULL;
    size_t len = 0;
    struct leat_str name = {0};

    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &data, &len) == 1 &&
        !parse_server_name(data, len, &name)) {
        *alert = SSL_AD_DECODE_ERROR;
        return SSL_CLIENT_HELLO_ERROR;
    }
    struct leat_tls_ctx *ctx = leat_tls_server_find(server, name);
    if (SSL_set_SSL_CTX(ssl, ctx->ssl_ctx) == NULL ||
        !leat_tls_settings_switch(ssl, server->ctxs[0]->config, ctx)) {
        *alert = SSL_AD_INTERNAL_ERROR;
        return SSL_CLIENT_HELLO_ERROR;
    }
    conn->ctx = ctx;
    return SSL_CLIENT_HELLO_SUCCESS;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                     EVP_MAC_CTX *mac, int is_sealing)
{
    const struct leat_tls_conn *conn = SSL_get_app_data(ssl);

    int found = leat_tls_keyring_ready(conn->server->ring, name, iv, cipher, mac, is_sealing != 0);
    /* A ticket of TLS 1.3 should be used once (RFC 8446, C.4), so there is always a new one. */
    return found == 1 && !is_sealing && SSL_version(ssl) == TLS1_3_VERSION ? 2 : found;
}

struct leat_tls_ctx *leat_tls_server_find(const struct leat_tls_server *server,
                                          struct leat_str name)
{
    size_t index = 0;

    if (!leat_tls_name_set_find(&server->named, name, &index))
        (void)leat_tls_name_set_find(&server->implied, name, &index);
    return server->ctxs[index];
}

/* Making one. */

static enum leat_status make_front(struct leat_tls_server *server, struct leat_error *err)
{
    char why[LEAT_TLS_REASON_MAX];

    ERR_clear_error();
    server->front = leat_tls_settings_new_ctx(server->ctxs[0]->config);
    if (server->front == NULL)
        return leat_error_set(err, LEAT_ETLS, 0, "OpenSSL refuses a setting that leat needs: %s",
                              leat_tls_reason_text(why));
    SSL_CTX_set_client_hello_cb(server->front, on_client_hello, server);
    if (SSL_CTX_set_tlsext_ticket_key_evp_cb(server->front, on_ticket) != 1)
        return leat_error_set(err, LEAT_ETLS, 0, "OpenSSL refuses leat's keys for tickets");
    return LEAT_OK;
}

static bool is_address(const char *host)
{
    size_t len = strspn(host, "0123456789.");

    return host[len] == '\0' || strchr(host, ':') != NULL;
}

/* Adds the names of the certificate at INDEX that no certificate before it has. */
static enum leat_status add_implied(struct leat_tls_server *server, size_t index,
                                    struct leat_error *err)
{
    const struct leat_tls_cert_info *cert = leat_tls_ctx_cert(server->ctxs[index]);

    for (size_t i = 0; i < cert->host_count; i++) {
        if (is_address(cert->hosts[i]))
            continue; /* no client may ask for one (RFC 6066, 3) */
        /* Names that no client can ask for are left out, and those that are taken. */
        enum leat_status status =
            leat_tls_name_set_add(&server->implied, cert->hosts[i], index, err);
        if (status == LEAT_ENOMEM)
            return status;
    }
    return LEAT_OK;
}

static enum leat_status add_names(struct leat_tls_server *server,
                                  const struct leat_tls_server_entry *entry, size_t index,
                                  struct leat_error *err)
{
    if (entry->count == 0)
        return add_implied(server, index, err);
    for (size_t i = 0; i < entry->count; i++) {
        enum leat_status status =
            leat_tls_name_set_add(&server->named, entry->names[i], index, err);
        if (status != LEAT_OK)
            return status;
    }
    return LEAT_OK;
}

enum leat_status leat_tls_server_new(const struct leat_tls_server_entry *entries, size_t count,
                                     struct leat_tls_keyring *ring, struct leat_tls_server **out,
                                     struct leat_error *err)
{
    LEAT_ASSERT(count > 0);
    struct leat_tls_server *server =
        leat_mem_zalloc_flex(sizeof(*server), count, sizeof(server->ctxs[0]));
    if (server == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a listener's certificates");
    server->refs = 1;
    server->ring = leat_tls_keyring_ref(ring);
    enum leat_status status = LEAT_OK;
    for (size_t i = 0; i < count && status == LEAT_OK; i++) {
        LEAT_ASSERT(entries[i].ctx->config->role == LEAT_TLS_SERVER);
        server->ctxs[server->count++] = leat_tls_ctx_ref(entries[i].ctx);
        status = add_names(server, &entries[i], i, err);
    }
    if (status == LEAT_OK)
        status = make_front(server, err);
    if (status != LEAT_OK) {
        leat_tls_server_unref(server);
        return status;
    }
    *out = server;
    return LEAT_OK;
}

struct leat_tls_server *leat_tls_server_ref(struct leat_tls_server *server)
{
    (void)atomic_fetch_add_explicit(&server->refs, 1, memory_order_relaxed);
    return server;
}

void leat_tls_server_unref(struct leat_tls_server *server)
{
    if (server == NULL || atomic_fetch_sub_explicit(&server->refs, 1, memory_order_acq_rel) > 1)
        return;
    SSL_CTX_free(server->front);
    for (size_t i = 0; i < server->count; i++)
        leat_tls_ctx_unref(server->ctxs[i]);
    leat_tls_name_set_fini(&server->named);
    leat_tls_name_set_fini(&server->implied);
    leat_tls_keyring_unref(server->ring);
    leat_mem_free(server);
}

size_t leat_tls_server_count(const struct leat_tls_server *server)
{
    return server->count;
}

struct leat_tls_ctx *leat_tls_server_ctx(const struct leat_tls_server *server, size_t index)
{
    LEAT_ASSERT(index < server->count);
    return server->ctxs[index];
}

SSL_CTX *leat_tls_server_front(const struct leat_tls_server *server)
{
    return server->front;
}
