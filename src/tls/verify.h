/*
 * verify.h - why the peer's certificate is not accepted, in words for a person
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_VERIFY_H
#define LEAT_TLS_VERIFY_H

#include <openssl/x509_vfy.h>

/* For SSL_CTX_set_verify(): changes no verdict, but when one is bad writes why to the connection's
 * leat_tls_conn.verdict, since afterwards OpenSSL has neither the certificate nor its place in the
 * chain. */
int leat_tls_verify_told(int is_good, X509_STORE_CTX *store_ctx);

#endif
