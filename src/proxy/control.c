/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/control.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/control_impl.h"
#include "proxy/json_out.h"

#define ACCEPTS_A_TURN 16
#define PAUSE_MS 200
/* What goes to a stream at once: far below what it may queue. */
#define PIECE_BYTES (64u * 1024u)
#define FLUSH_MS 10000
#define LINGER_MS 1000
/* How long leat stays for those who are still to take what they were told. */
#define END_MS 1000

/* Sending. */

static void write_out(struct leat_control_conn *conn, const char *text, size_t len)
{
    union {
        const char *lent;
        void *base;
    } part = {.lent = text}; /* a stream only reads it */

    if (conn->stream == NULL)
        return;
    /* A stream that breaks says so by its events. */
    enum leat_status status =
        leat_stream_write(conn->stream, &(struct iovec){.iov_base = part.base, .iov_len = len}, 1);
    if (status != LEAT_OK) {
        leat_stream_close(conn->stream);
        conn->is_finished = true;
    }
}

static void drop_answer(struct leat_control_conn *conn)
{
    leat_mem_free(conn->answer);
    conn->answer = NULL;
    conn->answer_len = conn->answer_sent = 0;
}

void leat_control_send(struct leat_control_conn *conn, char *text, size_t len)
{
    static const char short_of_memory[] =
        "{\"ok\":false,\"kind\":\"memory\",\"error\":\"leat is out of memory\"}\n";

    if (text == NULL) {
        write_out(conn, short_of_memory, sizeof(short_of_memory) - 1);
        return;
    }
    conn->answer = text;
    conn->answer_len = len;
    conn->answer_sent = 0;
}

void leat_control_answer(struct leat_control_conn *conn, json_t *answer)
{
    char *text = leat_json_take_text(answer);
    size_t len = 0;

    if (text != NULL) {
        len = strlen(text);
        text[len++] = '\n'; /* in place of the NUL */
    }
    leat_control_send(conn, text, len);
}

void leat_control_begin_answer(struct leat_json *json)
{
    leat_json_begin(json);
    leat_json_add(json, "ok", json_true());
}

void leat_control_end_answer(struct leat_control_conn *conn, struct leat_json *json)
{
    leat_control_answer(conn, leat_json_end(json));
}

void leat_control_fail(struct leat_control_conn *conn, const char *kind, const char *format, ...)
{
    char buf[600];
    struct leat_text text;
    struct leat_json json;
    va_list args;

    leat_text_init(&text, buf, sizeof(buf));
    va_start(args, format);
    leat_text_vadd(&text, format, args);
    va_end(args);
    leat_json_begin(&json);
    leat_json_add(&json, "ok", json_false());
    leat_json_add_text(&json, "kind", kind);
    leat_json_add_text(&json, "error", buf);
    leat_control_answer(conn, leat_json_end(&json));
}

void leat_control_finish(struct leat_control_conn *conn)
{
    conn->is_finished = true;
}

/* Jobs. */

void leat_control_begin_job(struct leat_control_conn *conn, struct leat_control_job *job)
{
    job->control = conn->control;
    job->conn = conn;
    conn->job = job;
    conn->control->jobs++;
}

void leat_control_end_job(struct leat_control_job *job)
{
    struct leat_control_conn *conn = job->conn;

    job->control->jobs--;
    if (conn == NULL)
        return;
    conn->job = NULL;
    job->conn = NULL;
    leat_control_go_on(conn);
}

/* Requests. */

static void drop_input(struct leat_control_conn *conn)
{
    leat_mem_free(conn->input);
    conn->input = NULL;
    conn->input_len = conn->input_cap = 0;
}

/* Takes the first line of the input, and answers it. False if there is no whole one. */
static bool take_line(struct leat_control_conn *conn)
{
    char *end = conn->input != NULL ? memchr(conn->input, '\n', conn->input_len) : NULL;

    if (end == NULL && conn->has_ended && conn->input_len > 0) {
        drop_input(conn);
        leat_control_fail(conn, "usage", "the line has no end");
        return true;
    }
    if (end == NULL && conn->input_len <= LEAT_CONTROL_LINE_MAX)
        return false;
    if (end == NULL || end - conn->input > (ptrdiff_t)LEAT_CONTROL_LINE_MAX) {
        leat_control_fail(conn, "usage", "a request is a line of at most %u KiB",
                          LEAT_CONTROL_LINE_MAX / 1024);
        leat_control_finish(conn);
        return true;
    }
    size_t len = (size_t)(end - conn->input);
    leat_control_handle(conn, (struct leat_str){conn->input, len});
    conn->input_len -= len + 1;
    memmove(conn->input, end + 1, conn->input_len);
    if (conn->input_len == 0)
        drop_input(conn);
    return true;
}

static void send_piece(struct leat_control_conn *conn)
{
    size_t left = conn->answer_len - conn->answer_sent;
    size_t len = left < PIECE_BYTES ? left : PIECE_BYTES;

    write_out(conn, conn->answer + conn->answer_sent, len);
    conn->answer_sent += len;
    if (conn->answer_sent == conn->answer_len)
        drop_answer(conn);
}

/* Does one thing that is due now. False if there is nothing. */
static bool do_next(struct leat_control_conn *conn)
{
    struct leat_control_job *job = conn->job;

    if (conn->answer != NULL) {
        send_piece(conn);
        return true;
    }
    if (conn->is_finished)
        return false;
    if (job == NULL)
        return take_line(conn);
    if (job->sent != NULL)
        job->sent(job);
    return conn->answer != NULL || conn->job != job || conn->is_finished;
}

void leat_control_go_on(struct leat_control_conn *conn)
{
    bool is_idle = false;

    while (conn->stream != NULL && leat_stream_queued(conn->stream) == 0 && !is_idle)
        is_idle = !do_next(conn);
    if (conn->stream == NULL)
        return;
    bool is_done = conn->is_finished || (conn->has_ended && conn->job == NULL);
    if (is_idle && is_done)
        leat_stream_finish(conn->stream, FLUSH_MS, LINGER_MS);
    else if (is_idle && conn->job == NULL)
        leat_stream_resume(conn->stream);
    else
        leat_stream_pause(conn->stream);
}

/* Events of a connection's stream. */

static void on_opened(struct leat_stream *stream, void *arg)
{
    struct leat_control_conn *conn = arg;

    (void)stream;
    if (conn->control->conn_count <= LEAT_CONTROL_CONNS_MAX)
        return;
    leat_control_fail(conn, "limit",
                      "there are %u control connections, which is all that leat takes",
                      LEAT_CONTROL_CONNS_MAX);
    leat_control_finish(conn);
    leat_control_go_on(conn);
}

static void on_readable(struct leat_stream *stream, void *arg)
{
    struct leat_control_conn *conn = arg;
    size_t len = 0;

    if (!leat_mem_reserve(&conn->input, conn->input_len, &conn->input_cap, 1)) {
        leat_stream_close(stream);
        return;
    }
    enum leat_status status = leat_stream_read(stream, conn->input + conn->input_len,
                                               conn->input_cap - conn->input_len, &len);
    if (status == LEAT_EAGAIN)
        return;
    if (status == LEAT_OK)
        conn->input_len += len;
    else if (status == LEAT_ECLOSED)
        conn->has_ended = true;
    else {
        leat_stream_close(stream);
        return;
    }
    leat_control_go_on(conn);
}

static void on_drained(struct leat_stream *stream, void *arg)
{
    (void)stream;
    leat_control_go_on(arg);
}

static void on_failed(struct leat_stream *stream, void *arg)
{
    (void)arg;
    leat_stream_close(stream);
}

static void free_conn(struct leat_control_conn *conn)
{
    struct leat_control_job *job = conn->job;

    conn->job = NULL;
    if (job != NULL) {
        job->conn = NULL;
        job->let_go(job);
    }
    leat_list_remove(&conn->link);
    conn->control->conn_count--;
    drop_input(conn);
    drop_answer(conn);
    leat_mem_free(conn);
}

static void on_closed(struct leat_stream *stream, void *arg)
{
    struct leat_control_conn *conn = arg;

    (void)stream;
    conn->stream = NULL;
    free_conn(conn);
}

static const struct leat_stream_events events = {
    .opened = on_opened,
    .readable = on_readable,
    .drained = on_drained,
    .failed = on_failed,
    .closed = on_closed,
};

/* Accepting. */

static void begin_conn(struct leat_control *control, int fd)
{
    struct leat_control_conn *conn = NULL;
    struct leat_stream_user user = {.events = &events};

    /* As many again may be told that they are too many. */
    if (control->conn_count < 2 * LEAT_CONTROL_CONNS_MAX)
        conn = leat_mem_zalloc(sizeof(*conn));
    if (conn == NULL) {
        (void)close(fd);
        return;
    }
    conn->control = control;
    leat_list_append(&control->conns, &conn->link);
    control->conn_count++;
    user.arg = conn;
    if (leat_stream_accept(control->loop, fd, &user, &conn->stream) != LEAT_OK)
        free_conn(conn);
}

static void on_acceptable(struct leat_io *io, void *arg)
{
    struct leat_control *control = arg;
    struct sockaddr_storage peer;
    int fd, sys;

    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        enum leat_status status = leat_io_accept(io, &fd, &peer, &sys);
        if (status == LEAT_ELIMIT) { /* they wait in the kernel */
            leat_io_close(io);
            leat_timer_start(control->loop, &control->pause, PAUSE_MS);
        }
        if (status != LEAT_OK)
            return;
        begin_conn(control, fd);
    }
}

static void on_pause_over(void *arg)
{
    struct leat_control *control = arg;

    if (leat_io_open_listener(&control->listener, control->loop, control->fd, on_acceptable,
                              control) != LEAT_OK)
        leat_timer_start(control->loop, &control->pause, PAUSE_MS);
}

/* The socket. */

static enum leat_status make_socket(const struct leat_control *control, const char *path,
                                    struct leat_unix_socket *out, int *out_fd,
                                    struct leat_error *err)
{
    struct leat_addr addr;
    struct leat_error why = {.text = ""};

    enum leat_status status = leat_addr_from_path(leat_str_of(path), &addr, &why);
    if (status == LEAT_OK)
        status =
            leat_unix_socket_listen(control->loop, &addr, S_IRUSR | S_IWUSR, out, out_fd, &why);
    if (status != LEAT_OK)
        return leat_error_set(err, status, 0, "control.socket: %s", why.text);
    return LEAT_OK;
}

static enum leat_status open_socket(struct leat_control *control, const char *path,
                                    struct leat_error *err)
{
    enum leat_status status = make_socket(control, path, &control->socket, &control->fd, err);

    if (status != LEAT_OK)
        return status;
    if (leat_io_open_listener(&control->listener, control->loop, control->fd, on_acceptable,
                              control) == LEAT_OK)
        return LEAT_OK;
    return leat_error_set(err, LEAT_ENOMEM, 0, "control.socket: out of memory");
}

enum leat_status leat_control_new(struct leat_loop *loop, struct leat_shared *shared,
                                  const char *path, const struct leat_control_ops *ops,
                                  struct leat_control **out, struct leat_error *err)
{
    struct leat_control *control = leat_mem_zalloc(sizeof(*control));

    if (control == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    leat_json_setup();
    control->loop = loop;
    control->shared = shared;
    control->ops = *ops;
    control->fd = control->listener.fd = -1;
    leat_list_init(&control->conns);
    leat_timer_init(&control->pause, on_pause_over, control);
    enum leat_status status = open_socket(control, path, err);
    if (status != LEAT_OK) {
        leat_control_free(control);
        return status;
    }
    *out = control;
    return LEAT_OK;
}

enum leat_status leat_control_renew(struct leat_control *control, struct leat_error *err)
{
    struct leat_unix_socket made = {.path = ""};
    int fd = -1;

    if (control == NULL || leat_unix_socket_is_there(&control->socket))
        return LEAT_OK;
    enum leat_status status = make_socket(control, control->socket.path, &made, &fd, err);
    if (status != LEAT_OK)
        return status;
    leat_timer_stop(control->loop, &control->pause);
    leat_io_close(&control->listener);
    (void)close(control->fd);
    control->socket = made;
    control->fd = fd;
    on_pause_over(control);
    return LEAT_OK;
}

static void end_conn(struct leat_control_conn *conn)
{
    struct leat_control_job *job = conn->job;

    if (job != NULL && job->stop != NULL) {
        job->stop(job);
        leat_control_go_on(conn);
    } else {
        leat_stream_close(conn->stream);
    }
}

static void on_end_over(void *arg)
{
    const struct leat_control *control = arg;

    for (struct leat_list *link = control->conns.next; link != &control->conns; link = link->next)
        leat_stream_close(LEAT_LIST_OBJECT(link, struct leat_control_conn, link)->stream);
}

void leat_control_free(struct leat_control *control)
{
    struct leat_timer over;

    if (control == NULL)
        return;
    leat_timer_stop(control->loop, &control->pause);
    leat_io_close(&control->listener);
    leat_unix_socket_remove(&control->socket);
    if (control->fd >= 0)
        (void)close(control->fd);
    for (struct leat_list *link = control->conns.next; link != &control->conns; link = link->next)
        end_conn(LEAT_LIST_OBJECT(link, struct leat_control_conn, link));
    leat_timer_init(&over, on_end_over, control);
    leat_timer_start(control->loop, &over, END_MS);
    while (control->conn_count > 0 || control->jobs > 0)
        leat_loop_turn(control->loop, -1);
    leat_timer_stop(control->loop, &over);
    leat_mem_free(control);
}
