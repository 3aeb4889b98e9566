/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/ctx.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/error.h"
#include "base/mem.h"
#include "tls/ctx_impl.h"
#include "tls/reason.h"

/* AES-128-GCM first: it is the fastest with hardware help and no weaker in practice. */
#define TLS13_SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
/* Forward secrecy and authenticated encryption only (RFC 9325, 4.2). */
#define TLS12_SUITES                                                                               \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                                   \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                                   \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"

/* Sets what servers and clients have in common. */
static bool configure(SSL_CTX *ssl_ctx)
{
    char groups[] = "X25519:P-256"; /* only read, but OpenSSL's macro casts const away */

    /* RELEASE_BUFFERS: a connection that waits holds no record buffer. NO_AUTO_CHAIN: the chain
     * is the file's; searching one in each handshake costs a third of it. */
    (void)SSL_CTX_set_mode(ssl_ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_NO_AUTO_CHAIN);
    /* Our BIO already has whole recvs in memory: reading ahead would copy them once more for
     * each record, which is quadratic. */
    SSL_CTX_set_read_ahead(ssl_ctx, 0);
    (void)SSL_CTX_set_options(ssl_ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
    /* Nobody resumes sessions yet, so none are kept and no tickets are given. */
    (void)SSL_CTX_set_session_cache_mode(ssl_ctx, SSL_SESS_CACHE_OFF);
    return SSL_CTX_set_num_tickets(ssl_ctx, 0) == 1 &&
           SSL_CTX_set_min_proto_version(ssl_ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(ssl_ctx, TLS13_SUITES) == 1 &&
           SSL_CTX_set_cipher_list(ssl_ctx, TLS12_SUITES) == 1 &&
           SSL_CTX_set1_groups_list(ssl_ctx, groups) == 1;
}

static enum leat_status new_ctx(const SSL_METHOD *method, struct leat_tls_ctx **out,
                                struct leat_error *err)
{
    char why[LEAT_TLS_REASON_MAX];

    ERR_clear_error();
    struct leat_tls_ctx *ctx = leat_mem_zalloc(sizeof(*ctx));
    if (ctx == NULL) {
        (void)leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a TLS context");
        return LEAT_ENOMEM;
    }
    ctx->refs = 1;
    ctx->ssl_ctx = SSL_CTX_new(method);
    if (ctx->ssl_ctx == NULL || !configure(ctx->ssl_ctx)) {
        (void)leat_error_set(err, LEAT_ETLS, 0, "OpenSSL refuses a setting that leat needs: %s",
                             leat_tls_reason_text(why));
        leat_tls_ctx_unref(ctx);
        return LEAT_ETLS;
    }
    *out = ctx;
    return LEAT_OK;
}

/* Called for an encrypted key. OpenSSL's own would ask on the terminal, for ever. */
static int refuse_password(char *buf, int size, int is_writing, void *arg)
{
    bool *asked = arg;

    (void)buf;
    (void)size;
    (void)is_writing;
    *asked = true;
    return -1;
}

#define SHOWN_MAX 80

/* The end of a file's name, as much of it as leaves room for what is wrong with the file. */
static const char *shown(const char *file)
{
    size_t len = strlen(file);

    return len > SHOWN_MAX ? file + len - SHOWN_MAX : file;
}

/* As much of a file as is looked at to say what is wrong with it. */
#define DIAGNOSED_BYTES 65536

/* What is wrong with FILE, in which OpenSSL did not find a WANTED ("CERTIFICATE" or "PRIVATE KEY");
 * OpenSSL's own words, say little. NULL if it is nothing that shows in the file's text. */
static const char *diagnose(const char *file, const char *wanted)
{
    char text[DIAGNOSED_BYTES + 1];
    struct stat info;
    FILE *stream;
    size_t len;

    if (stat(file, &info) == 0 && S_ISDIR(info.st_mode))
        return "it is a directory";
    stream = fopen(file, "re");
    if (stream == NULL)
        return NULL; /* the reason is in OpenSSL's words: the system's */
    len = fread(text, 1, DIAGNOSED_BYTES, stream);
    (void)fclose(stream);
    text[len] = '\0';
    if (len == 0)
        return "it is empty";
    if (memmem(text, len, "-----BEGIN ", 11) == NULL)
        return "it is not in PEM; convert it with openssl x509, openssl pkey or openssl pkcs12";
    if (memmem(text, len, wanted, strlen(wanted)) != NULL)
        return NULL;
    return *wanted == 'C' ? "it holds no certificate; is it the key that stands there?"
                          : "it holds no private key; is it the certificate that stands there?";
}

static enum leat_status load_failed(const char *what, const char *file, const char *wanted,
                                    struct leat_error *err)
{
    char why[LEAT_TLS_REASON_MAX];
    const char *found = diagnose(file, wanted);

    (void)leat_tls_reason_text(why);
    return leat_error_set(err, LEAT_EUSAGE, 0, "%s file %s: %s", what, shown(file),
                          found != NULL ? found : why);
}

/* Whether FILE is what could keep its reader waiting for ever. OpenSSL would open it. */
static bool would_block(const char *file)
{
    struct stat info;

    return stat(file, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

static enum leat_status refuse_pipe(const char *what, const char *file, struct leat_error *err)
{
    return leat_error_set(err, LEAT_EUSAGE, 0, "%s file %s: it is a pipe or socket, not a file",
                          what, shown(file));
}

/* Whether there is anything where OpenSSL looks for the system's authorities: it does not mind if
 * there is not, and then every certificate is refused. */
static bool has_system_authorities(void)
{
    const char *file = secure_getenv(X509_get_default_cert_file_env());
    const char *dir = secure_getenv(X509_get_default_cert_dir_env());

    return access(file != NULL ? file : X509_get_default_cert_file(), R_OK) == 0 ||
           access(dir != NULL ? dir : X509_get_default_cert_dir(), R_OK | X_OK) == 0;
}

static enum leat_status load_cert(SSL_CTX *ssl_ctx, const char *file, struct leat_error *err)
{
    if (would_block(file))
        return refuse_pipe("certificate", file, err);
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(ssl_ctx, file) == 1)
        return LEAT_OK;
    return load_failed("certificate", file, "CERTIFICATE", err);
}

static enum leat_status load_key(SSL_CTX *ssl_ctx, const char *file, struct leat_error *err)
{
    bool asked = false;

    if (would_block(file))
        return refuse_pipe("key", file, err);
    ERR_clear_error();
    SSL_CTX_set_default_passwd_cb(ssl_ctx, refuse_password);
    SSL_CTX_set_default_passwd_cb_userdata(ssl_ctx, &asked);
    int loaded = SSL_CTX_use_PrivateKey_file(ssl_ctx, file, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb_userdata(ssl_ctx, NULL);
    SSL_CTX_set_default_passwd_cb(ssl_ctx, NULL);
    if (asked)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "key file %s is encrypted; leat cannot ask for its passphrase, store "
                              "it decrypted (openssl pkey -in ... -out ...)",
                              shown(file));
    if (loaded == 1)
        return LEAT_OK;
    return load_failed("key", file, "PRIVATE KEY", err);
}

enum leat_status leat_tls_ctx_new_server(const char *cert_file, const char *key_file,
                                         struct leat_tls_ctx **out, struct leat_error *err)
{
    struct leat_tls_ctx *ctx = NULL;
    enum leat_status status = new_ctx(TLS_server_method(), &ctx, err);
    if (status != LEAT_OK)
        return status;
    /* The key first: then a mismatch shows in the check alone. */
    status = load_key(ctx->ssl_ctx, key_file, err);
    if (status == LEAT_OK)
        status = load_cert(ctx->ssl_ctx, cert_file, err);
    if (status == LEAT_OK && SSL_CTX_check_private_key(ctx->ssl_ctx) != 1)
        status = leat_error_set(err, LEAT_EUSAGE, 0,
                                "the key in %s does not belong to the certificate in %s, of which "
                                "the first has to be the server's own",
                                shown(key_file), shown(cert_file));
    ERR_clear_error();
    if (status != LEAT_OK) {
        leat_tls_ctx_unref(ctx);
        return status;
    }
    *out = ctx;
    return LEAT_OK;
}

static enum leat_status load_authorities(SSL_CTX *ssl_ctx, const char *file, struct leat_error *err)
{
    ERR_clear_error();
    if (file == NULL && has_system_authorities() && SSL_CTX_set_default_verify_paths(ssl_ctx) == 1)
        return LEAT_OK;
    if (file == NULL)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "the system has no certificate authorities (ca-certificates); name a "
                              "CA file");
    if (would_block(file))
        return refuse_pipe("CA", file, err);
    if (SSL_CTX_load_verify_file(ssl_ctx, file) == 1)
        return LEAT_OK;
    return load_failed("CA", file, "CERTIFICATE", err);
}

enum leat_status leat_tls_ctx_new_client(const char *ca_file, struct leat_tls_ctx **out,
                                         struct leat_error *err)
{
    struct leat_tls_ctx *ctx = NULL;
    enum leat_status status = new_ctx(TLS_client_method(), &ctx, err);
    if (status != LEAT_OK)
        return status;
    SSL_CTX_set_verify(ctx->ssl_ctx, SSL_VERIFY_PEER, NULL);
    status = load_authorities(ctx->ssl_ctx, ca_file, err);
    ERR_clear_error();
    if (status != LEAT_OK) {
        leat_tls_ctx_unref(ctx);
        return status;
    }
    *out = ctx;
    return LEAT_OK;
}

/* Seconds since 1970. */
static int64_t seconds_of(const ASN1_TIME *time)
{
    struct tm tm = {0};

    return ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static void narrow(const X509 *cert, int64_t *from, int64_t *until)
{
    int64_t cert_from = seconds_of(X509_get0_notBefore(cert));
    int64_t cert_until = seconds_of(X509_get0_notAfter(cert));

    if (cert_from > *from)
        *from = cert_from;
    if (cert_until < *until)
        *until = cert_until;
}

bool leat_tls_ctx_validity(const struct leat_tls_ctx *ctx, int64_t *out_from, int64_t *out_until)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx->ssl_ctx);
    STACK_OF(X509) *chain = NULL;
    int64_t from = INT64_MIN, until = INT64_MAX;

    if (cert == NULL)
        return false;
    narrow(cert, &from, &until);
    (void)SSL_CTX_get0_chain_certs(ctx->ssl_ctx, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++)
        narrow(sk_X509_value(chain, i), &from, &until);
    *out_from = from;
    *out_until = until;
    return true;
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
    leat_mem_free(ctx);
}
