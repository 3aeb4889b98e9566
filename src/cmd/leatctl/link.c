/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/loop.h"
#include "net/connect.h"
#include "net/stream.h"

#define FIRST_ROOM (64u * 1024u)

struct leat_link {
    struct leat_loop *loop;
    struct leat_stream *stream;
    bool is_open;
    enum leat_status end; /* why no more comes; LEAT_OK while more may */
    char *buf;
    size_t room;
    size_t begin, len; /* what is still to be taken */
    size_t looked_at;  /* of it, without a newline */
};

/* Makes room for more behind what is there. */
static enum leat_status make_room(struct leat_link *link)
{
    size_t room = (link->room == 0) ? FIRST_ROOM : link->room * 2;
    char *buf;

    if (link->begin > 0) {
        memmove(link->buf, link->buf + link->begin, link->len);
        link->begin = 0;
    }
    if (link->len < link->room)
        return LEAT_OK;
    if (room > LEAT_LINK_LINE_MAX)
        return LEAT_ELIMIT;
    buf = leat_mem_alloc(room);
    if (buf == NULL)
        return LEAT_ENOMEM;
    if (link->len > 0)
        memcpy(buf, link->buf, link->len);
    leat_mem_free(link->buf);
    link->buf = buf;
    link->room = room;
    return LEAT_OK;
}

static void on_opened(struct leat_stream *stream, void *arg)
{
    struct leat_link *link = arg;

    (void)stream;
    link->is_open = true;
}

static void on_readable(struct leat_stream *stream, void *arg)
{
    struct leat_link *link = arg;
    enum leat_status status = make_room(link);
    size_t more;

    if (status == LEAT_OK) {
        status = leat_stream_read(stream, link->buf + link->len, link->room - link->len, &more);
        if (status == LEAT_OK)
            link->len += more;
    }
    if (status != LEAT_OK && status != LEAT_EAGAIN) {
        link->end = status;
        leat_stream_pause(stream);
    }
}

static void on_failed(struct leat_stream *stream, void *arg)
{
    struct leat_link *link = arg;

    if (link->end == LEAT_OK) /* what comes after the end is no news */
        link->end = leat_stream_error(stream)->status;
}

static const struct leat_stream_events events = {
    .opened = on_opened, .readable = on_readable, .failed = on_failed};

static enum leat_status unreachable(const char *path, int sys, struct leat_error *err)
{
    if (sys == ENOENT || sys == ECONNREFUSED || sys == ENOTDIR)
        return leat_error_set(err, LEAT_EIO, 0,
                              "no leat listens at %s: set control.socket in its configuration and "
                              "name the socket with -s",
                              path);
    if (sys == EACCES || sys == EPERM)
        return leat_error_set(err, LEAT_EIO, 0,
                              "%s: permission denied: the socket is its owner's only, run leatctl "
                              "as the user that leat runs as",
                              path);
    if (sys == EAGAIN)
        return leat_error_set(err, LEAT_EIO, 0,
                              "%s: leat listens but takes no connections: it hangs or is stopped",
                              path);
    return leat_error_set(err, LEAT_EIO, sys, "connecting to %s", path);
}

enum leat_status leat_link_new(const char *path, struct leat_link **out, struct leat_error *err)
{
    struct leat_addr addr;
    struct leat_link *link;
    enum leat_status status = leat_addr_from_path(leat_str_of(path), &addr, err);

    if (status != LEAT_OK)
        return status;
    link = leat_mem_zalloc(sizeof(*link));
    if (link == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    status = leat_loop_new(&link->loop, err);
    if (status != LEAT_OK)
        goto fail;
    status = leat_stream_connect(
        link->loop, &(struct leat_connect_target){.addrs = &addr, .addr_count = 1},
        &(struct leat_stream_user){.events = &events, .arg = link}, &link->stream, err);
    while (status == LEAT_OK && !link->is_open && link->end == LEAT_OK)
        leat_loop_turn(link->loop, -1);
    if (link->end != LEAT_OK)
        status = unreachable(path, leat_stream_error(link->stream)->sys, err);
    if (status != LEAT_OK)
        goto fail;
    *out = link;
    return LEAT_OK;
fail:
    leat_link_free(link);
    return status;
}

void leat_link_free(struct leat_link *link)
{
    if (link == NULL)
        return;
    if (link->stream != NULL)
        leat_stream_close(link->stream);
    leat_loop_free(link->loop);
    leat_mem_free(link->buf);
    leat_mem_free(link);
}

enum leat_status leat_link_send(struct leat_link *link, struct leat_str line,
                                struct leat_error *err)
{
    struct iovec parts[] = {{.iov_base = (void *)(uintptr_t)line.ptr, .iov_len = line.len},
                            {.iov_base = (char[]){'\n'}, .iov_len = 1}};
    enum leat_status status = leat_stream_write(link->stream, parts, 2);

    return (status == LEAT_OK) ? status
                               : leat_error_set(err, status, 0, "sending the request failed");
}

static void on_wait_over(void *arg)
{
    *(bool *)arg = true;
}

bool leat_link_wait(struct leat_link *link, uint64_t ms)
{
    struct leat_timer timer;
    bool is_over = false;

    leat_timer_init(&timer, on_wait_over, &is_over);
    leat_timer_start(link->loop, &timer, ms);
    while (link->len == 0 && link->end == LEAT_OK && !is_over)
        leat_loop_turn(link->loop, -1);
    leat_timer_stop(link->loop, &timer);
    return link->len > 0 || link->end != LEAT_OK;
}

static bool has_line(struct leat_link *link, struct leat_str *out)
{
    const char *begin = (link->len > 0) ? link->buf + link->begin : NULL, *newline = NULL;

    if (link->len > link->looked_at)
        newline = memchr(begin + link->looked_at, '\n', link->len - link->looked_at);
    link->looked_at = link->len;
    if (newline == NULL)
        return false;
    *out = (struct leat_str){begin, (size_t)(newline - begin)};
    link->begin += out->len + 1;
    link->len -= out->len + 1;
    link->looked_at = 0;
    return true;
}

static enum leat_status say_end(const struct leat_link *link, struct leat_error *err)
{
    if (link->end == LEAT_ENOMEM)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for what leat says");
    if (link->end == LEAT_ELIMIT)
        return leat_error_set(err, LEAT_ELIMIT, 0, "leat says more than %u MiB in one line",
                              LEAT_LINK_LINE_MAX >> 20);
    if (link->end == LEAT_ECLOSED && link->len == 0)
        return leat_error_set(err, LEAT_ECLOSED, 0, "leat has ended the connection");
    return leat_error_set(err, LEAT_ERESET, 0, "the connection to leat was lost");
}

enum leat_status leat_link_take_line(struct leat_link *link, struct leat_str *out,
                                     struct leat_error *err)
{
    while (!has_line(link, out)) {
        if (link->end != LEAT_OK)
            return say_end(link, err);
        leat_loop_turn(link->loop, -1);
    }
    return LEAT_OK;
}
