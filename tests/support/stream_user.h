/*
 * stream_user.h - a user of streams that records what it is told, and sockets to test with
 *
 * Every callback checks that it does not run inside a call of the user's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_STREAM_USER_H
#define TEST_STREAM_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/stream.h"

enum test_event {
    TEST_CONNECTED,
    TEST_PROXIED,
    TEST_OPENED,
    TEST_READABLE,
    TEST_DRAINED,
    TEST_HUP,
    TEST_FAILED,
    TEST_CLOSED,
    TEST_EVENTS,
};

struct test_user {
    struct leat_loop *loop;
    struct leat_stream *stream; /* NULL once it is closed */
    unsigned told[TEST_EVENTS];
    size_t cap;   /* bytes a read asks for; 0: a random number up to 40,000 */
    bool is_lazy; /* does not read when it is told to */
    bool pauses;  /* pauses after each read */
    int close_in; /* the event in which it closes, or -1 */
    bool in_call; /* a callback now would break law 1 */
    uint8_t *got; /* what was read */
    size_t got_len;
    size_t received; /* sums of leat_stream_turn() */
    size_t records;
    enum leat_status end; /* what a read said that was neither OK nor EAGAIN */
    struct leat_error error;
    char source[LEAT_ADDR_TEXT_MAX]; /* of the PROXY header; "local" if it names none */
    uint32_t seed;
};

/* Prepares USER. */
void test_user_init(struct test_user *user, struct leat_loop *loop);

/* Closes its stream, runs the loop until that is gone, frees what was read. */
void test_user_fini(struct test_user *user);

/* What to give to the functions that make streams. */
struct leat_stream_user test_user_of(struct test_user *user);

/* Reads once, as the callback does. Returns what leat_stream_read() said. */
enum leat_status test_user_read(struct test_user *user);

/* Writes and checks the status. */
void test_user_write(struct test_user *user, const void *data, size_t len);

/* One turn; fails the test if nothing happens for 20 s, or if there are too many turns. */
void test_turn(struct leat_loop *loop);

/* One turn that does not wait; fails the test if there are too many. */
void test_poll(struct leat_loop *loop);

/* Turns until nothing is left to do. */
void test_settle(struct leat_loop *loop);

/* Makes a connected pair of non-blocking sockets, of TCP over loopback or UNIX's. */
void test_tcp_pair(int out_fds[2]);
void test_unix_pair(int out_fds[2]);

/* Closes FD so that the peer is reset. */
void test_reset(int fd);

/* Fills LEN bytes at BUF with a pattern that depends on SEED. */
void test_fill(uint8_t *buf, size_t len, uint32_t seed);

/* A number below LIMIT. */
uint32_t test_random(uint32_t *seed, uint32_t limit);

/* A clock for leat_loop_set_clock(); ARG is a uint64_t. */
uint64_t test_clock(void *arg);

#define TURN_UNTIL(loop, condition)                                                                \
    while (!(condition))                                                                           \
    test_turn(loop)

#endif
