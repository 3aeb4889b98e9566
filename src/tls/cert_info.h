/*
 * cert_info.h - what a certificate says, in words and numbers for people
 *
 * Ownership: what is made belongs to the caller.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_CERT_INFO_H
#define LEAT_TLS_CERT_INFO_H

#include <openssl/x509.h>

#include "base/text.h"
#include "tls/ctx.h"

/* Makes what CERT says. LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_tls_cert_info_new(X509 *cert,
                                                        struct leat_tls_cert_info **out);

/* NULL is a no-op. */
void leat_tls_cert_info_free(struct leat_tls_cert_info *info);

/* Appends NAME, such as "CN=rabbit.example,O=Example" (RFC 4514), without control characters. */
void leat_tls_cert_add_name(struct leat_text *text, const X509_NAME *name);

/* Appends the first common name in NAME, as UTF-8; nothing if there is none. */
void leat_tls_cert_add_common_name(struct leat_text *text, const X509_NAME *name);

/* Appends the names that CERT is for, DNS names and addresses, between commas; at most MAX, then
 * how many more there are. "no name" if none. */
void leat_tls_cert_add_hosts(struct leat_text *text, const X509 *cert, size_t max);

/* Appends TIME as "2026-01-31 12:00 UTC". */
void leat_tls_cert_add_time(struct leat_text *text, const ASN1_TIME *time);

/* TIME in seconds since 1970; 0 if it is none. */
int64_t leat_tls_cert_seconds(const ASN1_TIME *time);

/* Moves *FROM and *UNTIL together so that CERT is valid all the time between them. */
void leat_tls_cert_narrow(const X509 *cert, int64_t *from, int64_t *until);

#endif
