/*
 * reason.h - what went wrong with TLS, in words for a person
 *
 * OpenSSL keeps its errors in a queue of the thread, from which they must be taken before
 * the next call of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_REASON_H
#define LEAT_TLS_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include <leat/error.h>

#define LEAT_TLS_REASON_MAX 120

/* Writes the first error of the thread's queue to BUF, empties the queue and returns BUF. */
const char *leat_tls_reason_text(char buf[LEAT_TLS_REASON_MAX]);

/* Fills ERR after a call on SSL, whose app data is a leat_tls_conn, that has failed, and empties
 * the queue: LEAT_EVERIFY with the reason if the peer gave no certificate or one that was not
 * accepted, otherwise LEAT_ETLS. Returns the status. */
enum leat_status leat_tls_reason(SSL *ssl, struct leat_error *err);

/* How many first bytes show that a peer does not speak TLS and what it speaks. */
#define LEAT_TLS_FIRST 8

/* Whether a TLS record can begin with BYTE (RFC 8446, 5.1). */
bool leat_tls_can_begin(uint8_t byte);

/* Fills ERR with LEAT_EPROTOCOL and what the LEN first bytes of a peer say it speaks. Returns the
 * status. */
enum leat_status leat_tls_not_tls(const uint8_t *first, size_t len, bool is_server,
                                  struct leat_error *err);

#endif
