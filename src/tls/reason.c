/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "tls/reason.h"

#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "base/error.h"
#include "base/text.h"
#include "tls/conn.h"

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
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,
     "the peer finds that the certificate it was shown was revoked (alert certificate revoked)"},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
     "the peer cannot use the kind of certificate it was shown (alert unsupported certificate)"},
    {SSL_R_TLSV1_ALERT_ACCESS_DENIED,
     "the peer knows the certificate it was shown, but lets it not in (alert access denied)"},
    {SSL_R_TLSV1_UNRECOGNIZED_NAME,
     "the peer has no certificate for the name it was asked for (alert unrecognized name)"},
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

enum leat_status leat_tls_reason(SSL *ssl, struct leat_error *err)
{
    const struct leat_tls_conn *conn = SSL_get_app_data(ssl);
    char buf[LEAT_TLS_REASON_MAX];
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;

    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
        ERR_clear_error();
        return leat_error_set(err, LEAT_EVERIFY, 0,
                              "the client gave no certificate, which is required here");
    }
    if (reason != SSL_R_CERTIFICATE_VERIFY_FAILED)
        return leat_error_set(err, LEAT_ETLS, 0, "TLS failed: %s", leat_tls_reason_text(buf));
    ERR_clear_error();
    if ((*conn->verdict)[0] != '\0')
        return leat_error_set(err, LEAT_EVERIFY, 0, "%s", *conn->verdict);
    return leat_error_set(err, LEAT_EVERIFY, 0, "the peer's certificate was not accepted: %s",
                          X509_verify_cert_error_string(SSL_get_verify_result(ssl)));
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
