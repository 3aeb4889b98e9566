/* PROXY headers at the beginning of streams. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "net/proxy_header.h"
#include "net/stream_impl.h"

/* The header, which may come in pieces, and what one recv brought behind it. It exists only while
 * there are bytes in it. */
struct leat_stream_ahead {
    size_t at, len; /* what is not taken yet: from AT to LEN */
    uint8_t bytes[LEAT_PROXY_HEADER_MAX];
};

void leat_stream_drop_ahead(struct leat_stream *s)
{
    /* A plain peer may have sent a password at once. */
    leat_mem_free_secret(s->ahead, sizeof(*s->ahead));
    s->ahead = NULL;
}

/* Receives behind what has come of the header. Results as leat_stream_pull(), but the end breaks
 * the stream. */
static enum leat_status receive(struct leat_stream *s)
{
    struct leat_stream_ahead *ahead = s->ahead;
    size_t len = 0;

    if (ahead == NULL) {
        ahead = leat_mem_alloc(sizeof(*ahead));
        if (ahead == NULL)
            return leat_stream_break(s, LEAT_ENOMEM, 0, "out of memory for the PROXY header");
        ahead->at = 0;
        ahead->len = 0;
        s->ahead = ahead;
    }
    enum leat_status status =
        leat_stream_pull(s, ahead->bytes + ahead->len, sizeof(ahead->bytes) - ahead->len, &len);
    ahead->len += len;
    if (status == LEAT_ECLOSED)
        status = leat_stream_break(s, LEAT_ECLOSED, 0, "%s",
                                   ahead->len == 0
                                       ? "the peer closed the connection before its PROXY header"
                                       : "the peer closed the connection inside its PROXY header");
    if (status != LEAT_OK && ahead->len == 0)
        leat_stream_drop_ahead(s);
    return status;
}

enum leat_status leat_stream_await_proxy(struct leat_stream *s)
{
    struct leat_proxy_header header;
    struct leat_error err = {0};
    enum leat_status status = receive(s);
    if (status != LEAT_OK)
        return status;

    status = leat_proxy_header_parse(s->ahead->bytes, s->ahead->len, &header, &s->ahead->at, &err);
    if (status == LEAT_EAGAIN)
        return status;
    if (status != LEAT_OK)
        return leat_stream_break(s, status, 0, "%s", err.text);
    s->user.expects_proxy = false;
    if (s->user.events->proxied != NULL)
        s->user.events->proxied(s, &header, s->user.arg);
    if (s->ahead->at == s->ahead->len)
        leat_stream_drop_ahead(s);
    s->inside = s->ahead != NULL;
    return s->state == LEAT_STREAM_HANDSHAKING ? LEAT_OK : LEAT_EAGAIN;
}

void leat_stream_take_ahead(struct leat_stream *s, void *buf, size_t cap, size_t *out_len)
{
    struct leat_stream_ahead *ahead = s->ahead;
    size_t left = ahead->len - ahead->at;
    size_t len = cap < left ? cap : left;

    memcpy(buf, ahead->bytes + ahead->at, len);
    ahead->at += len;
    if (len == left)
        leat_stream_drop_ahead(s);
    s->inside = s->ahead != NULL;
    *out_len = len;
}

enum leat_status leat_stream_send_first(struct leat_stream *s, const void *data, size_t len)
{
    struct iovec part = {.iov_len = len};
    bool is_connecting = s->state == LEAT_STREAM_CONNECTING;
    /* While nothing has come, `connected` is the only event of this state. */
    bool is_connected = s->state == LEAT_STREAM_HANDSHAKING && s->running && s->received == 0;

    if ((!is_connecting && !is_connected) || s->broken)
        return LEAT_EUSAGE;
    memcpy(&part.iov_base, &data, sizeof(data));
    /* The queue goes before whatever the kind pushes. */
    return leat_bufq_append(&s->queue, &part, 1, 0);
}
