/*
 * io_side.h - a socket on a loop under test, for the tests of loop/io.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TESTS_LOOP_IO_SIDE_H
#define LEAT_TESTS_LOOP_IO_SIDE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include "loop/io.h"

/* A socket on the loop under test, and what its callback does. */
struct side {
    struct leat_io io;
    unsigned runs;
    unsigned ready;         /* in the last callback */
    struct leat_io *closes; /* closed by the callback */
    struct leat_io *requeues;
};

static inline int setup(void **state)
{
    struct leat_loop *loop = NULL;
    if (leat_loop_new(&loop, NULL) != LEAT_OK)
        return 1;
    *state = loop;
    return 0;
}

static inline int teardown(void **state)
{
    leat_loop_free(*state);
    return 0;
}

static inline void on_side(struct leat_io *io, void *arg)
{
    struct side *side = arg;
    side->runs++;
    side->ready = io->ready;
    if (side->requeues != NULL)
        leat_io_requeue(side->requeues);
    if (side->closes != NULL)
        leat_io_close(side->closes);
}

static inline const struct leat_loop_counters *counters(struct leat_loop *loop)
{
    return leat_loop_counters(loop);
}

/* Makes a listening socket on a free port of 127.0.0.1 and tells its address. */
static inline int listen_tcp(struct sockaddr_in *out)
{
    socklen_t len = sizeof(*out);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    *out = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)out, sizeof(*out)), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)out, &len), 0);
    return fd;
}

/* Connects a blocking socket to ADDR. */
static inline int connect_tcp(const struct sockaddr_in *addr)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)addr, sizeof(*addr)), 0);
    return fd;
}

static inline enum leat_status send_text(struct leat_io *io, const char *text, int *out_sys)
{
    /* the parts are not const, but what they point to is only read */
    char buf[64];
    size_t text_len = strlen(text), len = 0;
    assert_in_range(text_len, 0, sizeof(buf));
    memcpy(buf, text, text_len);
    struct iovec iov = {.iov_base = buf, .iov_len = text_len};
    enum leat_status status = leat_io_send(io, &iov, 1, &len, out_sys);
    assert_int_equal(len, status == LEAT_OK ? text_len : 0);
    return status;
}

#define WITH_LOOP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
