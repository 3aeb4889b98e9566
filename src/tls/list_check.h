/*
 * list_check.h - whether OpenSSL knows every name of a list of ciphers or groups
 *
 * OpenSSL itself is content with a list of which it knows one name, so that a typing error
 * silently takes a suite away.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_LIST_CHECK_H
#define LEAT_TLS_LIST_CHECK_H

#include <leat/compiler.h>
#include <leat/error.h>

enum leat_tls_list {
    LEAT_TLS_LIST_CIPHERS,      /* of TLS 1.2 */
    LEAT_TLS_LIST_CIPHERSUITES, /* of TLS 1.3 */
    LEAT_TLS_LIST_GROUPS,
};

/* Judges LIST, names between colons. LEAT_EUSAGE with ERR naming the first that is wrong. */
LEAT_MUST_CHECK enum leat_status leat_tls_list_check(enum leat_tls_list kind, const char *list,
                                                     struct leat_error *err);

#endif
