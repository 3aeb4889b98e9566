/*
 * keyring.h - the keys of session tickets, one ring for all servers of the process
 *
 * A ticket is the session itself, sealed (RFC 5077, RFC 8446 4.6.1), so that a client may come
 * back to any worker, and after a reload. There are two keys: the newest seals, both open; what
 * the older one opened is answered with a new ticket. After LEAT_TLS_KEYRING_MS a new key takes
 * the place of the newest, so a key that leaks opens two days of sessions at most.
 *
 * The ring does not care whose ticket it is: a session carries the fingerprint of the context
 * that it was made under, and OpenSSL refuses it under any other (server.h).
 *
 * Ownership: counted.
 * Threads: any; one lock, held for a copy of a key or while a new one is drawn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_KEYRING_H
#define LEAT_TLS_KEYRING_H

#include "loop/loop.h"

struct leat_tls_keyring;

#define LEAT_TLS_KEYRING_MS UINT64_C(86400000)

/* Makes a ring with one new key. CLOCK, with ARG, tells milliseconds and may be called from any
 * thread. LEAT_ENOMEM, or LEAT_ETLS if OpenSSL has no random numbers or lacks a cipher. */
LEAT_MUST_CHECK enum leat_status leat_tls_keyring_new(leat_clock_fn *clock, void *arg,
                                                      struct leat_tls_keyring **out,
                                                      struct leat_error *err);

struct leat_tls_keyring *leat_tls_keyring_ref(struct leat_tls_keyring *ring);

/* Drops a reference; the last one cleanses and frees. NULL is a no-op. */
void leat_tls_keyring_unref(struct leat_tls_keyring *ring);

struct evp_cipher_ctx_st;
struct evp_mac_ctx_st;

/* As the callback of SSL_CTX_set_tlsext_ticket_key_evp_cb(): readies CIPHER and MAC for sealing
 * (IS_SEALING; NAME and IV are written) or opening. 1: ready; 2: ready, and the client is to get
 * a new ticket; 0: no such key; -1: failed. */
int leat_tls_keyring_ready(struct leat_tls_keyring *ring, unsigned char *name, unsigned char *iv,
                           struct evp_cipher_ctx_st *cipher, struct evp_mac_ctx_st *mac,
                           bool is_sealing);

#endif
