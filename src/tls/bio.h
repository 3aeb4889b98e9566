/*
 * bio.h - the one BIO that all TLS streams of a loop share
 *
 * It belongs to no stream: bind() points it at the stream, input and output of the work at
 * hand, before every call on an SSL object, and flush() sends what that call has written.
 * So a stream that waits has no BIO buffers, and what one recv brought is decrypted from
 * where it lies.
 *
 * There is one for each loop that has TLS streams, found in a list of the process, since a
 * loop may be made and freed on another thread than it runs on. The list is locked; it is
 * only looked at when streams are made and freed.
 *
 * Ownership: counted by the streams of the loop.
 * Threads: get() and put() any; the rest is the loop's own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_BIO_H
#define LEAT_TLS_BIO_H

#include <openssl/bio.h>

#include "net/stream_impl.h"

struct leat_tls_bio {
    BIO *bio;
    const uint8_t *in; /* ciphertext to be read */
    size_t in_len;
    struct leat_stream *stream; /* whose output it is */
    uint8_t *out;               /* the loop's LEAT_SCRATCH_SEND */
    size_t out_len;
    enum leat_status out_status;                             /* the first failure of sending */
    char verdict[sizeof(((struct leat_error *)NULL)->text)]; /* leat_tls_conn's */
    struct leat_loop *loop;
    size_t users;
    struct leat_tls_bio *next;
};

/* Returns the BIO of LOOP with one more user, or NULL if memory is short. */
struct leat_tls_bio *leat_tls_bio_get(struct leat_loop *loop);

/* Drops a user; the last one frees. NULL is a no-op. */
void leat_tls_bio_put(struct leat_tls_bio *shared);

/* Sets what is read, IN_LEN bytes at IN, and that STREAM gets what is written. */
void leat_tls_bio_bind(struct leat_tls_bio *shared, struct leat_stream *stream, const uint8_t *in,
                       size_t in_len);

/* Sends what was written since bind(). Results as leat_stream_push(). */
LEAT_MUST_CHECK enum leat_status leat_tls_bio_flush(struct leat_tls_bio *shared);

#endif
