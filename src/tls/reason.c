/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "tls/reason.h"

#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "base/error.h"
#include "base/text.h"

/* OpenSSL's words for what operators meet most often say little to who does not know them. */
static const struct {
    int reason;
    const char *text;
} words[] = {
    {SSL_R_EE_KEY_TOO_SMALL,
     "its key is too small; use RSA of 2048 bits or more, or ECDSA with P-256"},
    {SSL_R_NO_SHARED_CIPHER, "the two sides have no cipher suite in common"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "the peer speaks only a version of TLS older than 1.2"},
    {SSL_R_WRONG_VERSION_NUMBER, "the peer sent what is no TLS record"},
    {SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, "a record was damaged or forged"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA,
     "the peer does not trust the certificate it was shown (alert unknown ca)"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
     "the peer did not accept the certificate it was shown (alert certificate unknown)"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,
     "the peer did not accept the certificate it was shown (alert bad certificate)"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
     "the peer finds that the certificate it was shown has expired (alert certificate expired)"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
     "the peer found no common settings, or wants a client certificate (alert handshake failure)"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED,
     "the peer wants a client certificate (alert certificate required)"},
};

const char *leat_tls_reason_text(char buf[LEAT_TLS_REASON_MAX])
{
    unsigned long code = ERR_peek_error();
    const char *text = NULL;
    char system[128];

    if (ERR_GET_LIB(code) == ERR_LIB_SSL) {
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            if (ERR_GET_REASON(code) == words[i].reason)
                text = words[i].text;
        }
    }
    if (text == NULL && ERR_SYSTEM_ERROR(code))
        text = strerror_r(ERR_GET_REASON(code), system, sizeof(system));
    if (text == NULL)
        text = ERR_reason_error_string(code);
    (void)snprintf(buf, LEAT_TLS_REASON_MAX, "%s", text != NULL ? text : "no reason given");
    ERR_clear_error();
    return buf;
}

/* Writes the name that SSL's certificate is verified for to BUF. */
static const char *verified_name(SSL *ssl, char *buf, size_t cap)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    const char *host = X509_VERIFY_PARAM_get0_host(param, 0);
    char *ip = host == NULL ? X509_VERIFY_PARAM_get1_ip_asc(param) : NULL;

    (void)snprintf(buf, cap, "%s", host != NULL ? host : (ip != NULL ? ip : "the peer"));
    OPENSSL_free(ip);
    return buf;
}

/* What to do about a certificate that was not accepted because of RESULT. */
static const char *advice(long result)
{
    switch (result) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return "; its authority has to be in the CA file in use, or among the system's";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "; it is for another name, and which one to expect can be configured";
    default:
        return "";
    }
}

enum leat_status leat_tls_reason(SSL *ssl, struct leat_error *err)
{
    char buf[LEAT_TLS_REASON_MAX];
    unsigned long code = ERR_peek_error();
    bool verifying =
        ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED;

    if (!verifying)
        return leat_error_set(err, LEAT_ETLS, 0, "TLS failed: %s", leat_tls_reason_text(buf));
    ERR_clear_error();
    long result = SSL_get_verify_result(ssl);
    return leat_error_set(err, LEAT_EVERIFY, 0, "the certificate of %s was not accepted: %s%s",
                          verified_name(ssl, buf, sizeof(buf)),
                          X509_verify_cert_error_string(result), advice(result));
}

bool leat_tls_can_begin(uint8_t byte)
{
    return byte == SSL3_RT_HANDSHAKE || byte == SSL3_RT_ALERT;
}

static bool begins_with(const uint8_t *first, size_t len, const char *word)
{
    size_t word_len = strlen(word);
    return len >= word_len && memcmp(first, word, word_len) == 0;
}

static bool is_http_request(const uint8_t *first, size_t len)
{
    static const char *const methods[] = {"GET ",     "HEAD ",    "POST ",  "PUT ",   "DELETE ",
                                          "OPTIONS ", "CONNECT ", "PATCH ", "TRACE ", "PRI * "};

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (begins_with(first, len, methods[i]))
            return true;
    }
    return false;
}

enum leat_status leat_tls_not_tls(const uint8_t *first, size_t len, bool is_server,
                                  struct leat_error *err)
{
    char hex[3 * LEAT_TLS_FIRST + 1] = "";
    struct leat_text text;

    if (begins_with(first, len, "AMQP"))
        return leat_error_set(err, LEAT_EPROTOCOL, 0, "%s",
                              is_server ? "plain-text AMQP on a TLS port; the client must use "
                                          "amqps:// or the port without TLS"
                                        : "the broker speaks plain-text AMQP on this port, not "
                                          "TLS; use its TLS port, or no TLS");
    if (is_server && is_http_request(first, len))
        return leat_error_set(err, LEAT_EPROTOCOL, 0,
                              "HTTP on an AMQP port over TLS; this port is for amqps:// clients");
    leat_text_init(&text, hex, sizeof(hex));
    for (size_t i = 0; i < len && i < LEAT_TLS_FIRST; i++)
        leat_text_add(&text, "%s%02x", i > 0 ? " " : "", first[i]);
    return leat_error_set(err, LEAT_EPROTOCOL, 0, "no TLS: the first bytes are %s%s", hex,
                          begins_with(first, len, "PROXY ") || begins_with(first, len, "\r\n\r\n")
                              ? ", a PROXY protocol header; leat does not take one, turn it off in "
                                "the load balancer"
                              : "");
}
