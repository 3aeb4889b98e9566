/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/verify.h"

#include <openssl/ssl.h>

#include "tls/cert_info.h"
#include "tls/conn.h"

#define HOSTS_SHOWN 4

#define ADVICE_CA "; it has to be in the CA file in use, or among the system's"

/* Appends the name that the peer's certificate has to be for. */
static void add_wanted(struct leat_text *text, SSL *ssl)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    const char *host = X509_VERIFY_PARAM_get0_host(param, 0);
    char *ip = host == NULL ? X509_VERIFY_PARAM_get1_ip_asc(param) : NULL;

    leat_text_add(text, "%s", host != NULL ? host : (ip != NULL ? ip : "the peer"));
    OPENSSL_free(ip);
}

static void add_quoted_name(struct leat_text *text, const X509_NAME *name)
{
    leat_text_add(text, "\"");
    leat_tls_cert_add_name(text, name);
    leat_text_add(text, "\"");
}

static void add_subject(struct leat_text *text, X509_STORE_CTX *store_ctx)
{
    const X509 *cert = X509_STORE_CTX_get_current_cert(store_ctx);

    if (X509_STORE_CTX_get_error_depth(store_ctx) == 0 || cert == NULL) {
        leat_text_add(text, "it");
        return;
    }
    leat_text_add(text, "its authority ");
    add_quoted_name(text, X509_get_subject_name(cert));
}

/* Appends "WHAT "NAME", the authority that has signed CERT. */
static void add_issuer(struct leat_text *text, const char *what, const X509 *cert)
{
    leat_text_add(text, "%s ", what);
    add_quoted_name(text, X509_get_issuer_name(cert));
}

/* Appends what ERROR means, if it lies with the authorities above CERT. */
static void add_reason_above(struct leat_text *text, int error, const X509 *cert)
{
    switch (error) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        add_issuer(text, "its authority", cert);
        leat_text_add(text, " is unknown" ADVICE_CA);
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        leat_text_add(text, "it is signed by itself" ADVICE_CA);
        break;
    case X509_V_ERR_UNABLE_TO_GET_CRL:
        add_issuer(text, "the CRL files hold no revocation list of", cert);
        break;
    case X509_V_ERR_CRL_HAS_EXPIRED:
        add_issuer(text, "the revocation list of", cert);
        leat_text_add(text, " is out of date; fetch a new one");
        break;
    case X509_V_ERR_CERT_CHAIN_TOO_LONG:
        leat_text_add(text, "more authorities stand between it and a trusted one than allowed");
        break;
    default:
        leat_text_add(text, "%s", X509_verify_cert_error_string(error));
        break;
    }
}

/* Appends why CERT, the one of the chain that OpenSSL looked at last, is not good. */
static void add_reason(struct leat_text *text, X509_STORE_CTX *store_ctx, bool is_server,
                       const X509 *cert)
{
    int error = X509_STORE_CTX_get_error(store_ctx);

    switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        add_subject(text, store_ctx);
        leat_text_add(text, " expired on ");
        leat_tls_cert_add_time(text, X509_get0_notAfter(cert));
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        add_subject(text, store_ctx);
        leat_text_add(text, " is not valid before ");
        leat_tls_cert_add_time(text, X509_get0_notBefore(cert));
        break;
    case X509_V_ERR_CERT_REVOKED:
        add_subject(text, store_ctx);
        leat_text_add(text, " was revoked");
        break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        leat_text_add(text, "it is for ");
        leat_tls_cert_add_hosts(text, cert, HOSTS_SHOWN);
        leat_text_add(text, "; which name to expect can be configured");
        break;
    case X509_V_ERR_INVALID_PURPOSE:
        add_subject(text, store_ctx);
        leat_text_add(text, " is not meant for a %s (key usage)", is_server ? "client" : "server");
        break;
    default:
        add_reason_above(text, error, cert);
        break;
    }
}

int leat_tls_verify_told(int is_good, X509_STORE_CTX *store_ctx)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store_ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
    const struct leat_tls_conn *conn = ssl != NULL ? SSL_get_app_data(ssl) : NULL;
    X509 *leaf = X509_STORE_CTX_get0_cert(store_ctx);
    const X509 *cert = X509_STORE_CTX_get_current_cert(store_ctx);
    struct leat_text text;

    if (is_good || conn == NULL || leaf == NULL)
        return is_good;
    leat_text_init(&text, *conn->verdict, sizeof(*conn->verdict));
    if (SSL_is_server(ssl)) {
        leat_text_add(&text, "the client's certificate ");
        add_quoted_name(&text, X509_get_subject_name(leaf));
    } else {
        leat_text_add(&text, "the certificate of ");
        add_wanted(&text, ssl);
    }
    leat_text_add(&text, " was not accepted: ");
    add_reason(&text, store_ctx, SSL_is_server(ssl), cert != NULL ? cert : leaf);
    return is_good;
}
