/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/ctx.h"

#include <openssl/err.h>

#include "base/error.h"
#include "base/mem.h"
#include "tls/cert_info.h"
#include "tls/ctx_impl.h"
#include "tls/pem.h"
#include "tls/reason.h"
#include "tls/settings.h"

/* What is put together while a context is built. */
struct building {
    struct leat_tls_ctx *ctx;
    struct leat_tls_hash hash; /* of the fingerprint */
    struct leat_tls_trusts *trusts;
    struct leat_error *err;
};

static enum leat_status out_of_memory(struct leat_error *err)
{
    ERR_clear_error();
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a TLS context");
}

/* Reads PATH, a WHAT, into *FILE, which goes into the fingerprint. */
static enum leat_status read_file(struct building *b, const char *what, const char *path,
                                  struct leat_tls_file *file, struct leat_tls_pem *out)
{
    struct leat_tls_sources *sources = &b->ctx->sources;
    enum leat_status status = leat_tls_sources_add(sources, path, b->err);
    if (status == LEAT_OK)
        status = leat_tls_source_read(&sources->at[sources->count - 1], what, file, b->err);
    if (status != LEAT_OK)
        return status;
    leat_tls_hash_add(&b->hash, file->data, file->len);
    *out = (struct leat_tls_pem){what, path, file};
    return LEAT_OK;
}

static enum leat_status load_key(struct building *b)
{
    const struct leat_tls_config *config = b->ctx->config;
    struct leat_tls_file key_file = {0}, passphrase_file = {0};
    struct leat_tls_pem pem, passphrase;
    EVP_PKEY *key = NULL;

    enum leat_status status = read_file(b, "key", config->key_file, &key_file, &pem);
    if (status == LEAT_OK && config->passphrase_file != NULL)
        status = read_file(b, "passphrase", config->passphrase_file, &passphrase_file, &passphrase);
    if (status == LEAT_OK)
        status = leat_tls_pem_key(&pem, config->passphrase_file != NULL ? &passphrase : NULL, &key,
                                  b->err);
    leat_tls_file_free(&key_file);
    leat_tls_file_free(&passphrase_file);
    if (status != LEAT_OK)
        return status;
    char why[LEAT_TLS_REASON_MAX];
    if (SSL_CTX_use_PrivateKey(b->ctx->ssl_ctx, key) != 1)
        status = leat_error_set(b->err, LEAT_EUSAGE, 0, "key file %s: %s",
                                leat_tls_shown(config->key_file), leat_tls_reason_text(why));
    EVP_PKEY_free(key);
    return status;
}

/* Sets the first of CERTS as the certificate and the others as its chain. */
static enum leat_status use_certs(struct building *b, STACK_OF(X509) * certs)
{
    SSL_CTX *ssl_ctx = b->ctx->ssl_ctx;
    const char *path = b->ctx->config->cert_file;
    char why[LEAT_TLS_REASON_MAX];

    ERR_clear_error();
    if (SSL_CTX_use_certificate(ssl_ctx, sk_X509_value(certs, 0)) != 1)
        return leat_error_set(b->err, LEAT_EUSAGE, 0, "certificate file %s: %s",
                              leat_tls_shown(path), leat_tls_reason_text(why));
    for (int i = 1; i < sk_X509_num(certs); i++) {
        if (SSL_CTX_add1_chain_cert(ssl_ctx, sk_X509_value(certs, i)) != 1)
            return leat_error_set(b->err, LEAT_EUSAGE, 0,
                                  "certificate file %s: certificate %d of it: %s",
                                  leat_tls_shown(path), i + 1, leat_tls_reason_text(why));
    }
    return leat_tls_cert_info_new(sk_X509_value(certs, 0), &b->ctx->cert) == LEAT_OK
               ? LEAT_OK
               : out_of_memory(b->err);
}

static enum leat_status load_certs(struct building *b)
{
    struct leat_tls_file file = {0};
    struct leat_tls_pem pem;
    STACK_OF(X509) *certs = NULL;

    enum leat_status status = read_file(b, "certificate", b->ctx->config->cert_file, &file, &pem);
    if (status == LEAT_OK)
        status = leat_tls_pem_certs(&pem, &certs, b->err);
    leat_tls_file_free(&file);
    if (status == LEAT_OK)
        status = use_certs(b, certs);
    sk_X509_pop_free(certs, X509_free);
    return status;
}

static enum leat_status load_identity(struct building *b)
{
    const struct leat_tls_config *config = b->ctx->config;

    if (config->cert_file == NULL)
        return LEAT_OK;
    /* The key first: then a mismatch shows in the check alone. */
    enum leat_status status = load_key(b);
    if (status == LEAT_OK)
        status = load_certs(b);
    if (status == LEAT_OK && SSL_CTX_check_private_key(b->ctx->ssl_ctx) != 1)
        status = leat_error_set(b->err, LEAT_EUSAGE, 0,
                                "the key in %s does not belong to the certificate in %s, of which "
                                "the first has to be leat's own",
                                leat_tls_shown_beside(config->key_file),
                                leat_tls_shown_beside(config->cert_file));
    ERR_clear_error();
    return status;
}

/* Sets the names that a client is asked for a certificate of. */
static bool send_names(SSL_CTX *ssl_ctx, const struct leat_tls_trust *trust)
{
    const STACK_OF(X509_NAME) *names = leat_tls_trust_names(trust);
    STACK_OF(X509_NAME) *copy = names != NULL ? SSL_dup_CA_list(names) : NULL;

    if (names != NULL && copy == NULL)
        return false;
    if (copy != NULL)
        SSL_CTX_set_client_CA_list(ssl_ctx, copy);
    return true;
}

static enum leat_status load_trust(struct building *b)
{
    struct leat_tls_ctx *ctx = b->ctx;
    if (!leat_tls_config_verifies(ctx->config))
        return LEAT_OK;
    enum leat_status status =
        leat_tls_trusts_get(b->trusts, ctx->config, &ctx->sources, &ctx->trust, b->err);
    if (status != LEAT_OK)
        return status;
    const struct leat_tls_digest *digest = leat_tls_trust_digest(ctx->trust);
    leat_tls_hash_add(&b->hash, digest->bytes, sizeof(digest->bytes));
    SSL_CTX_set1_cert_store(ctx->ssl_ctx, leat_tls_trust_store(ctx->trust));
    if (ctx->config->role == LEAT_TLS_SERVER && !send_names(ctx->ssl_ctx, ctx->trust))
        return out_of_memory(b->err);
    return LEAT_OK;
}

static enum leat_status make_ssl_ctx(struct leat_tls_ctx *ctx, struct leat_error *err)
{
    char why[LEAT_TLS_REASON_MAX];

    ERR_clear_error();
    ctx->ssl_ctx = leat_tls_settings_new_ctx(ctx->config);
    if (ctx->ssl_ctx != NULL)
        return LEAT_OK;
    return leat_error_set(err, LEAT_ETLS, 0, "OpenSSL refuses a setting that leat needs: %s",
                          leat_tls_reason_text(why));
}

/* Fills B's context, of which only the configuration is there. */
static enum leat_status fill(struct building *b)
{
    const struct leat_tls_digest *key = leat_tls_config_key(b->ctx->config);
    struct leat_tls_digest fingerprint;

    leat_tls_hash_begin(&b->hash);
    leat_tls_hash_add(&b->hash, key->bytes, sizeof(key->bytes));
    enum leat_status status = make_ssl_ctx(b->ctx, b->err);
    if (status == LEAT_OK)
        status = load_identity(b);
    if (status == LEAT_OK)
        status = load_trust(b);
    bool hashed = leat_tls_hash_end(&b->hash, &fingerprint) == LEAT_OK;
    if (status != LEAT_OK)
        return status;
    if (!hashed)
        return out_of_memory(b->err);
    b->ctx->fingerprint = fingerprint;
    return LEAT_OK;
}

enum leat_status leat_tls_ctx_build(struct leat_tls_config *config, struct leat_tls_trusts *trusts,
                                    struct leat_tls_ctx **out, struct leat_error *err)
{
    enum leat_status status = leat_tls_config_freeze(config, err);
    if (status != LEAT_OK)
        return status;
    if (trusts != NULL)
        trusts = leat_tls_trusts_ref(trusts);
    else if (leat_tls_trusts_new(&trusts, err) != LEAT_OK)
        return LEAT_ENOMEM;
    struct building b = {.ctx = leat_mem_zalloc(sizeof(*b.ctx)), .trusts = trusts, .err = err};
    if (b.ctx == NULL) {
        leat_tls_trusts_unref(trusts);
        return out_of_memory(err);
    }
    b.ctx->refs = 1;
    b.ctx->config = leat_tls_config_ref(config);
    status = fill(&b);
    leat_tls_trusts_unref(trusts);
    if (status != LEAT_OK) {
        leat_tls_ctx_unref(b.ctx);
        return status;
    }
    *out = b.ctx;
    return LEAT_OK;
}

struct leat_tls_ctx *leat_tls_ctx_ref(struct leat_tls_ctx *ctx)
{
    (void)atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
    return ctx;
}

void leat_tls_ctx_unref(struct leat_tls_ctx *ctx)
{
    if (ctx == NULL || atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) > 1)
        return;
    SSL_CTX_free(ctx->ssl_ctx);
    leat_tls_trust_unref(ctx->trust);
    leat_tls_cert_info_free(ctx->cert);
    leat_tls_sources_fini(&ctx->sources);
    leat_tls_config_unref(ctx->config);
    leat_mem_free(ctx);
}

const struct leat_tls_digest *leat_tls_ctx_fingerprint(const struct leat_tls_ctx *ctx)
{
    return &ctx->fingerprint;
}

struct leat_tls_config *leat_tls_ctx_config(const struct leat_tls_ctx *ctx)
{
    return ctx->config;
}

bool leat_tls_ctx_has_changed(const struct leat_tls_ctx *ctx)
{
    return leat_tls_sources_have_changed(&ctx->sources);
}

const struct leat_tls_cert_info *leat_tls_ctx_cert(const struct leat_tls_ctx *ctx)
{
    return ctx->cert;
}

const struct leat_tls_trust_info *leat_tls_ctx_trust(const struct leat_tls_ctx *ctx)
{
    return ctx->trust != NULL ? leat_tls_trust_info(ctx->trust) : NULL;
}

bool leat_tls_ctx_trusts_only_expired(const struct leat_tls_ctx *ctx, int64_t now)
{
    return ctx->trust != NULL && leat_tls_trust_info(ctx->trust)->last_until < now;
}

bool leat_tls_ctx_validity(const struct leat_tls_ctx *ctx, int64_t *out_from, int64_t *out_until)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx->ssl_ctx);
    STACK_OF(X509) *chain = NULL;
    int64_t from = INT64_MIN, until = INT64_MAX;

    if (cert == NULL)
        return false;
    leat_tls_cert_narrow(cert, &from, &until);
    (void)SSL_CTX_get0_chain_certs(ctx->ssl_ctx, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++)
        leat_tls_cert_narrow(sk_X509_value(chain, i), &from, &until);
    *out_from = from;
    *out_until = until;
    return true;
}
