/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/stream.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/error.h"
#include "base/mem.h"
#include "net/proxy_header.h"
#include "net/stream_impl.h"
#include "tls/bio.h"
#include "tls/cert_info.h"
#include "tls/conn.h"
#include "tls/const_cast.h"
#include "tls/ctx_impl.h"
#include "tls/peer_name.h"
#include "tls/reason.h"
#include "tls/server_impl.h"

/* The most plaintext of one record (RFC 8446, 5.1). */
#define RECORD_MAX 16384u
/* What one recv of the handshake asks for: more would be early data to keep. */
#define HANDSHAKE_RECV 16384u
_Static_assert(HANDSHAKE_RECV >= LEAT_PROXY_HEADER_MAX, "all that came behind the PROXY header");
/* More than a record can hold inside OpenSSL: a read with room for so much more than it asks of
 * the socket leaves nothing behind. */
#define READ_RESERVE 32768u
/* From here on a reader's buffer is large enough to leave the reserve. */
#define READ_LARGE 65536u
/* How many parts of the unsealed bytes are taken at once. */
#define SEAL_PARTS 16

struct tls_stream {
    struct leat_stream base;
    struct leat_tls_conn conn; /* keeps the server or the client's context */
    struct leat_tls_bio *bio;
    SSL *ssl;
    bool is_begun;          /* the peer has sent what may be TLS */
    enum leat_status ended; /* what comes after the bytes that are still inside; LEAT_OK: more */
    size_t first_len;
    uint8_t first[LEAT_TLS_FIRST]; /* of a peer that does not speak TLS */
    uint8_t *kept;                 /* ciphertext that no read has taken yet, KEPT_LEN bytes from */
    size_t kept_at, kept_len;      /* KEPT_AT on; NULL if there is none */
    struct leat_bufq unsealed;     /* plaintext written while TLS itself waits for the peer */
};

static struct tls_stream *of(struct leat_stream *s)
{
    return (struct tls_stream *)(void *)s;
}

/* Keeps the input that OpenSSL has not taken. */
static enum leat_status keep_rest(struct tls_stream *t)
{
    const uint8_t *rest = t->bio->in;
    size_t len = t->bio->in_len;

    if (t->kept != NULL) {
        t->kept_at += t->kept_len - len;
        t->kept_len = len;
    } else if (len > 0) {
        t->kept = leat_mem_alloc(len);
        if (t->kept == NULL)
            return LEAT_ENOMEM;
        memcpy(t->kept, rest, len);
        t->kept_at = 0;
        t->kept_len = len;
    }
    if (t->kept_len == 0) {
        leat_mem_free(t->kept);
        t->kept = NULL;
    }
    return LEAT_OK;
}

/* Breaks the stream with ERR, a copy of which leat_stream_break() keeps. */
static enum leat_status break_with(struct tls_stream *t, const struct leat_error *err)
{
    return leat_stream_break(&t->base, err->status, err->sys, "%s", err->text);
}

/* The handshake. */

/* Receives into the scratch. A peer that does not speak TLS is told apart by its first bytes,
 * before OpenSSL sees them: what OpenSSL says then would help nobody. */
static enum leat_status receive_handshake(struct tls_stream *t, const uint8_t **out,
                                          size_t *out_len)
{
    struct leat_error err;
    uint8_t *in = leat_loop_scratch(t->base.io.loop, LEAT_SCRATCH_RECV);
    size_t len = 0;
    enum leat_status status = leat_stream_pull(&t->base, in, HANDSHAKE_RECV, &len);

    if (status == LEAT_OK && !t->is_begun) {
        t->is_begun = t->first_len == 0 && leat_tls_can_begin(in[0]);
        for (size_t i = 0; !t->is_begun && i < len && t->first_len < LEAT_TLS_FIRST; i++)
            t->first[t->first_len++] = in[i];
    }
    bool complete = t->first_len == LEAT_TLS_FIRST;
    if (complete || (t->first_len > 0 && status == LEAT_ECLOSED)) {
        (void)leat_tls_not_tls(t->first, t->first_len, t->conn.server != NULL, &err);
        return break_with(t, &err);
    }
    if (status == LEAT_ECLOSED)
        return leat_stream_break(&t->base, LEAT_ECLOSED, 0,
                                 "the peer closed the connection during the TLS handshake");
    if (status != LEAT_OK && status != LEAT_EAGAIN)
        return status;
    *out = in;
    *out_len = t->is_begun ? len : 0;
    return LEAT_OK;
}

static enum leat_status tls_advance(struct leat_stream *s)
{
    struct tls_stream *t = of(s);
    struct leat_error err = {0};
    const uint8_t *in = NULL;
    size_t in_len = 0;
    enum leat_status status = receive_handshake(t, &in, &in_len);
    if (status != LEAT_OK)
        return status;

    leat_tls_bio_bind(t->bio, s, in, in_len);
    ERR_clear_error();
    int done = SSL_do_handshake(t->ssl);
    int why = SSL_get_error(t->ssl, done);
    if (why != SSL_ERROR_NONE && why != SSL_ERROR_WANT_READ)
        (void)leat_tls_reason(t->ssl, &err);
    status = keep_rest(t);
    /* Also after a failure: what OpenSSL wrote last is the alert that tells the peer why. */
    enum leat_status flushed = leat_tls_bio_flush(t->bio);
    if (err.status != LEAT_OK)
        return break_with(t, &err);
    if (status != LEAT_OK)
        return leat_stream_break(s, status, 0, "out of memory during the TLS handshake");
    if (flushed != LEAT_OK)
        return flushed;
    s->inside = t->kept_len > 0;
    return done == 1 ? LEAT_OK : LEAT_EAGAIN;
}

/* Writing. */

/* The one call of SSL_write. LEAT_OK: all LEN bytes are sealed. LEAT_EAGAIN: none, the peer must
 * send something first. LEAT_ETLS, with ERR: broken. */
static enum leat_status seal(struct tls_stream *t, const void *data, size_t len,
                             struct leat_error *err)
{
    size_t written = 0;

    if (len == 0)
        return LEAT_OK;
    ERR_clear_error();
    int done = SSL_write_ex(t->ssl, data, len, &written);
    int why = SSL_get_error(t->ssl, done);
    if (why == SSL_ERROR_NONE)
        return LEAT_OK;
    if (why == SSL_ERROR_WANT_READ)
        return LEAT_EAGAIN;
    return leat_tls_reason(t->ssl, err);
}

/* One seal_parts(): HELD bytes of GATHER wait to be sealed, SEALED bytes went through. */
struct sealing {
    struct tls_stream *t;
    uint8_t *gather; /* of RECORD_MAX bytes */
    size_t held;
    size_t sealed;
    struct leat_error *err;
};

static enum leat_status seal_and_count(struct sealing *sealing, const void *data, size_t len)
{
    enum leat_status status = seal(sealing->t, data, len, sealing->err);

    if (status == LEAT_OK)
        sealing->sealed += len;
    return status;
}

static enum leat_status seal_gathered(struct sealing *sealing)
{
    size_t held = sealing->held;

    sealing->held = 0;
    return seal_and_count(sealing, sealing->gather, held);
}

/* Seals LEN bytes of DATA, or gathers what of them fills no record; not if they come ALONE. */
static enum leat_status seal_part(struct sealing *sealing, const uint8_t *data, size_t len,
                                  bool alone)
{
    enum leat_status status = LEAT_OK;

    while (len > 0 && status == LEAT_OK) {
        size_t room = RECORD_MAX - sealing->held;
        size_t more = len < room ? len : room;
        if (sealing->held == 0 && (alone || len >= RECORD_MAX))
            return seal_and_count(sealing, data, len);
        memcpy(sealing->gather + sealing->held, data, more);
        sealing->held += more;
        data += more;
        len -= more;
        if (sealing->held == RECORD_MAX)
            status = seal_gathered(sealing);
    }
    return status;
}

/*
 * Seals the COUNT parts of IOV; small ones are gathered first, so that a record, which costs about
 * a microsecond whatever is in it, holds many. *SEALED is how many bytes went through.
 */
static enum leat_status seal_parts(struct tls_stream *t, const struct iovec *iov, int count,
                                   size_t *sealed, struct leat_error *err)
{
    uint8_t gather[RECORD_MAX];
    struct sealing sealing = {.t = t, .gather = gather, .err = err};
    enum leat_status status = LEAT_OK;

    for (int i = 0; i < count && status == LEAT_OK; i++)
        status = seal_part(&sealing, iov[i].iov_base, iov[i].iov_len, count == 1);
    if (status == LEAT_OK)
        status = seal_gathered(&sealing);
    *sealed = sealing.sealed;
    return status;
}

/* Keeps plaintext that cannot be sealed now. */
static enum leat_status hold(struct tls_stream *t, const struct iovec *iov, int count, size_t skip)
{
    enum leat_status status = leat_bufq_append(&t->unsealed, iov, count, skip);
    if (status != LEAT_OK)
        return leat_stream_break(&t->base, status, 0, "%s",
                                 status == LEAT_ELIMIT
                                     ? "more bytes wait to be sent than a stream may queue"
                                     : "out of memory for bytes that wait to be sent");
    t->base.held = t->unsealed.len;
    t->base.owes_drained = true;
    return LEAT_OK;
}

static enum leat_status tls_write(struct leat_stream *s, const struct iovec *iov, int count)
{
    struct tls_stream *t = of(s);
    struct leat_error err;
    size_t sealed = 0;

    if (t->unsealed.len > 0)
        return hold(t, iov, count, 0);
    leat_tls_bio_bind(t->bio, s, NULL, 0);
    enum leat_status status = seal_parts(t, iov, count, &sealed, &err);
    enum leat_status flushed = leat_tls_bio_flush(t->bio);
    if (flushed != LEAT_OK)
        return flushed;
    if (status == LEAT_EAGAIN)
        return hold(t, iov, count, sealed);
    if (status != LEAT_OK)
        (void)break_with(t, &err); /* the reader hears of it */
    return LEAT_OK;
}

/* Tries again what was held, after the peer has sent something. The BIO is bound. */
static enum leat_status seal_held(struct tls_stream *t, struct leat_error *err)
{
    struct iovec parts[SEAL_PARTS];
    enum leat_status status = LEAT_OK;

    while (t->unsealed.len > 0 && status == LEAT_OK) {
        size_t sealed = 0;
        int count = leat_bufq_peek(&t->unsealed, parts, SEAL_PARTS);
        status = seal_parts(t, parts, count, &sealed, err);
        leat_bufq_consume(&t->unsealed, sealed);
    }
    t->base.held = t->unsealed.len;
    return status == LEAT_EAGAIN ? LEAT_OK : status;
}

/* Reading. */

/* The one call of SSL_read: the bytes of at most one record. LEAT_EAGAIN: more input is needed.
 * LEAT_ECLOSED: close_notify. Otherwise broken, with ERR. */
static enum leat_status open_record(struct tls_stream *t, void *buf, size_t cap, size_t *out_len,
                                    struct leat_error *err)
{
    ERR_clear_error();
    int done = SSL_read_ex(t->ssl, buf, cap, out_len);
    int why = SSL_get_error(t->ssl, done);
    if (why == SSL_ERROR_NONE)
        return LEAT_OK;
    if (why == SSL_ERROR_WANT_READ)
        return LEAT_EAGAIN;
    if (why == SSL_ERROR_ZERO_RETURN)
        return LEAT_ECLOSED;
    return leat_tls_reason(t->ssl, err);
}

/* Decrypts into the CAP bytes at BUF until they are full (LEAT_OK), the input is used up
 * (LEAT_EAGAIN), or the stream ends. */
static enum leat_status open_records(struct tls_stream *t, uint8_t *buf, size_t cap, size_t *total,
                                     struct leat_error *err)
{
    enum leat_status status = LEAT_OK;

    while (*total < cap && status == LEAT_OK) {
        size_t len = 0;
        status = open_record(t, buf + *total, cap - *total, &len, err);
        if (status != LEAT_OK)
            break;
        *total += len;
        if (SSL_pending(t->ssl) == 0)
            t->base.turn.records++;
    }
    return status;
}

/* Finds the input of a read: what was kept, or what a recv brings. */
static enum leat_status find_input(struct tls_stream *t, size_t cap, const uint8_t **out,
                                   size_t *out_len)
{
    if (t->kept != NULL) {
        *out = t->kept + t->kept_at;
        *out_len = t->kept_len;
        return LEAT_OK;
    }
    if (SSL_pending(t->ssl) > 0)
        return LEAT_OK;
    uint8_t *in = leat_loop_scratch(t->base.io.loop, LEAT_SCRATCH_RECV);
    size_t ask = cap > READ_LARGE ? cap - READ_RESERVE : cap;
    enum leat_status status = leat_stream_pull(
        &t->base, in, ask < LEAT_SCRATCH_RECV_SIZE ? ask : LEAT_SCRATCH_RECV_SIZE, out_len);
    if (status == LEAT_OK)
        *out = in;
    /* The other direction still works, so the stream is not broken by this. */
    if (status == LEAT_ECLOSED && !t->base.broken)
        status = leat_error_set(&t->base.error, LEAT_ETRUNCATED, 0,
                                "the peer ended the connection without a TLS close_notify");
    return status;
}

/* Notes that nothing follows what has been decrypted. */
static void end_reading(struct tls_stream *t, enum leat_status status, const struct leat_error *err)
{
    t->ended = status;
    leat_mem_free(t->kept);
    t->kept = NULL;
    t->kept_len = 0;
    if (status == LEAT_ENOMEM)
        (void)leat_stream_break(&t->base, status, 0, "out of memory for received bytes");
    if (status == LEAT_ENOMEM || status == LEAT_ECLOSED)
        return;
    (void)break_with(t, err);
    /* What the peer said before it broke the connection says more than that sending failed then. */
    t->base.error = *err;
}

static enum leat_status tls_read(struct leat_stream *s, void *buf, size_t cap, size_t *out_len)
{
    struct tls_stream *t = of(s);
    struct leat_error err;
    const uint8_t *in = NULL;
    size_t in_len = 0, total = 0;

    if (t->ended != LEAT_OK)
        return t->ended;
    enum leat_status status = find_input(t, cap, &in, &in_len);
    if (status != LEAT_OK)
        return status;
    leat_tls_bio_bind(t->bio, s, in, in_len);
    status = open_records(t, buf, cap, &total, &err);
    enum leat_status held = LEAT_OK;
    if (status == LEAT_OK || status == LEAT_EAGAIN)
        held = seal_held(t, &err);
    enum leat_status kept = keep_rest(t);
    /* Answers to the peer, and alerts; if they can't be sent the stream is broken already. */
    enum leat_status flushed = leat_tls_bio_flush(t->bio);
    (void)flushed;
    if (held != LEAT_OK)
        status = held;
    if (kept != LEAT_OK)
        status = kept;
    if (status != LEAT_OK && status != LEAT_EAGAIN)
        end_reading(t, status, &err);
    size_t pending = (size_t)SSL_pending(t->ssl);
    s->inside = t->ended != LEAT_OK || t->kept_len > 0 || pending > 0;
    s->turn.inside = t->kept_len + pending;
    if (total == 0)
        return status;
    *out_len = total;
    return LEAT_OK;
}

/* The rest of the kind. */

static void tls_send_end(struct leat_stream *s)
{
    struct tls_stream *t = of(s);

    leat_tls_bio_bind(t->bio, s, NULL, 0);
    ERR_clear_error();
    (void)SSL_shutdown(t->ssl);
    ERR_clear_error();
    /* If it can't be sent the stream is broken, which is noticed there. */
    enum leat_status flushed = leat_tls_bio_flush(t->bio);
    (void)flushed;
    leat_bufq_clear(&t->unsealed);
    s->held = 0;
}

/* Frees what T owns; any part may be lacking. */
static void tls_fini(struct leat_stream *s)
{
    struct tls_stream *t = of(s);

    SSL_free(t->ssl);
    leat_tls_bio_put(t->bio);
    if (t->conn.server == NULL)
        leat_tls_ctx_unref(t->conn.ctx);
    leat_tls_server_unref(t->conn.server);
    leat_bufq_clear(&t->unsealed);
    leat_mem_free(t->kept);
}

static struct leat_stream_tls tls_names(const struct leat_stream *s)
{
    const struct tls_stream *t = (const struct tls_stream *)(const void *)s;

    if (!SSL_is_init_finished(t->ssl))
        return (struct leat_stream_tls){.version = "", .cipher = ""};
    return (struct leat_stream_tls){
        .version = SSL_get_version(t->ssl),
        .cipher = SSL_get_cipher_name(t->ssl),
    };
}

static void tls_set_secret(struct leat_stream *s, bool is_secret)
{
    if (is_secret)
        (void)SSL_set_options(of(s)->ssl, SSL_OP_CLEANSE_PLAINTEXT);
    else
        (void)SSL_clear_options(of(s)->ssl, SSL_OP_CLEANSE_PLAINTEXT);
}

static const struct leat_stream_ops tls_ops = {
    .read = tls_read,
    .write = tls_write,
    .advance = tls_advance,
    .send_end = tls_send_end,
    .fini = tls_fini,
    .tls = tls_names,
    .set_secret = tls_set_secret,
};

static void discard_new(struct tls_stream *t)
{
    tls_fini(&t->base);
    leat_mem_free(t);
}

/* Makes a stream that is not started yet, of CONN, whose reference it takes. NULL if memory is
 * short. */
static struct tls_stream *new_stream(struct leat_loop *loop, const struct leat_tls_conn *conn,
                                     const struct leat_stream_user *user)
{
    struct tls_stream *t = leat_mem_zalloc(sizeof(*t));
    if (t == NULL)
        return NULL;
    leat_stream_init(&t->base, &tls_ops, user);
    leat_bufq_init(&t->unsealed, LEAT_STREAM_QUEUE_MAX, user->account);
    t->conn = *conn;
    t->bio = leat_tls_bio_get(loop);
    ERR_clear_error();
    if (conn->server != NULL) {
        (void)leat_tls_server_ref(conn->server);
        t->ssl = SSL_new(leat_tls_server_front(conn->server));
    } else if (conn->ctx != NULL) {
        (void)leat_tls_ctx_ref(conn->ctx);
        t->ssl = SSL_new(conn->ctx->ssl_ctx);
    }
    if (t->bio == NULL || t->ssl == NULL || SSL_set_app_data(t->ssl, &t->conn) != 1) {
        discard_new(t);
        return NULL;
    }
    t->conn.verdict = &t->bio->verdict;
    /* One reference for both directions, as SSL_set_bio() has it when they are the same. */
    (void)BIO_up_ref(t->bio->bio);
    SSL_set_bio(t->ssl, t->bio->bio, t->bio->bio);
    return t;
}

enum leat_status leat_tls_stream_accept(struct leat_loop *loop, int fd,
                                        struct leat_tls_server *server,
                                        const struct leat_stream_user *user,
                                        struct leat_stream **out)
{
    struct tls_stream *t = new_stream(loop, &(struct leat_tls_conn){.server = server}, user);
    enum leat_status status = LEAT_ENOMEM;

    if (t != NULL) {
        SSL_set_accept_state(t->ssl);
        status = leat_stream_start(&t->base, loop, fd);
    }
    if (status != LEAT_OK) {
        if (t != NULL)
            discard_new(t);
        (void)close(fd);
        return status;
    }
    *out = &t->base;
    return LEAT_OK;
}

enum leat_status leat_tls_stream_connect(struct leat_loop *loop,
                                         const struct leat_connect_target *target,
                                         const struct leat_tls_target *tls,
                                         const struct leat_stream_user *user,
                                         struct leat_stream **out, struct leat_error *err)
{
    struct tls_stream *t = new_stream(loop, &(struct leat_tls_conn){.ctx = tls->ctx}, user);
    enum leat_status status;

    if (t == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a connection");
    SSL_set_connect_state(t->ssl);
    if (leat_tls_set_peer_name(t->ssl, tls->name))
        status = leat_stream_start_connect(&t->base, loop, target, err);
    else
        status = leat_error_set(err, LEAT_EUSAGE, 0,
                                "\"%.80s\" is no name that a certificate can be verified for",
                                tls->name != NULL ? tls->name : "");
    if (status != LEAT_OK) {
        discard_new(t);
        return status;
    }
    *out = &t->base;
    return LEAT_OK;
}

/* STREAM if it is over TLS and the handshake is done, otherwise NULL. */
static const struct tls_stream *opened(const struct leat_stream *stream)
{
    const struct tls_stream *t = (const struct tls_stream *)(const void *)stream;

    return stream->ops == &tls_ops && SSL_is_init_finished(t->ssl) ? t : NULL;
}

struct leat_tls_ctx *leat_tls_stream_ctx(const struct leat_stream *stream)
{
    const struct tls_stream *t = opened(stream);

    return t != NULL ? t->conn.ctx : NULL;
}

bool leat_tls_stream_is_resumed(const struct leat_stream *stream)
{
    const struct tls_stream *t = opened(stream);

    return t != NULL && SSL_session_reused(t->ssl) == 1;
}

const char *leat_tls_stream_server_name(const struct leat_stream *stream)
{
    const struct tls_stream *t = opened(stream);
    const char *name = t != NULL ? SSL_get_servername(t->ssl, TLSEXT_NAMETYPE_host_name) : NULL;

    if (name == NULL || t->conn.server == NULL)
        return name;
    /* A second ClientHello may name another than the first, by which the context was chosen. */
    const struct leat_str asked = {name, strlen(name)};
    return leat_tls_server_find(t->conn.server, asked) == t->conn.ctx ? name : NULL;
}

bool leat_tls_stream_add_peer(const struct leat_stream *stream, struct leat_text *text)
{
    const struct tls_stream *t = opened(stream);
    const X509 *cert = t != NULL ? SSL_get0_peer_certificate(t->ssl) : NULL;

    if (cert == NULL)
        return false;
    leat_tls_cert_add_name(text, X509_get_subject_name(cert));
    return true;
}

bool leat_tls_stream_add_common_name(const struct leat_stream *stream, struct leat_text *text)
{
    const struct tls_stream *t = opened(stream);
    const X509 *cert = t != NULL ? SSL_get0_peer_certificate(t->ssl) : NULL;

    if (cert == NULL)
        return false;
    leat_tls_cert_add_common_name(text, X509_get_subject_name(cert));
    return true;
}
