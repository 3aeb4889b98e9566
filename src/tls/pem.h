/*
 * pem.h - certificates, keys and revocation lists out of the contents of files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_PEM_H
#define LEAT_TLS_PEM_H

#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "tls/source.h"

/* A file, for messages too. */
struct leat_tls_pem {
    const char *what; /* "certificate", "CA", "key", "CRL" */
    const char *path;
    const struct leat_tls_file *file;
};

/*
 * Each parses PEM. LEAT_EUSAGE, with ERR naming the file, what is wrong with it and what to do, if
 * there is none or one that is damaged; LEAT_ENOMEM. The caller frees *OUT.
 */
LEAT_MUST_CHECK enum leat_status leat_tls_pem_certs(const struct leat_tls_pem *pem,
                                                    STACK_OF(X509) * *out, struct leat_error *err);

LEAT_MUST_CHECK enum leat_status leat_tls_pem_crls(const struct leat_tls_pem *pem,
                                                   STACK_OF(X509_CRL) * *out,
                                                   struct leat_error *err);

/* PASSPHRASE opens a key that is encrypted; it may lack (NULL). */
LEAT_MUST_CHECK enum leat_status leat_tls_pem_key(const struct leat_tls_pem *pem,
                                                  const struct leat_tls_pem *passphrase,
                                                  EVP_PKEY **out, struct leat_error *err);

#endif
