/*
 * stream_side.h - the fixture of the tests of streams over TLS
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_TLS_STREAM_SIDE_H
#define TEST_TLS_STREAM_SIDE_H

#include "support/certs.h"
#include "support/raw_tls.h"
#include "support/stream_user.h"
#include "support/tls_parts.h"
#include "tls/stream.h"

struct fixture {
    struct leat_loop *loop;
    struct leat_tls_server *tls_server;
    struct leat_tls_ctx *client_ctx;
    struct test_user server, client; /* streams under test */
    struct raw_tls raw;              /* the peer of one of them */
    int plain;                       /* or a plain socket as the peer; -1 if none */
};

extern struct test_certs side_certs;

/* For cmocka. */
int side_group_setup(void **state);
int side_group_teardown(void **state);
int side_setup(void **state);
int side_teardown(void **state);

/* A stream accepted from a plain socket, f->plain. */
void side_accept_plain(struct fixture *f, void (*pair)(int *));

/* A stream accepted from f->raw; side_open_raw() also takes both through the handshake. */
void side_accept_raw(struct fixture *f, void (*pair)(int *));
void side_open_raw(struct fixture *f, void (*pair)(int *));

/* A stream of f->client's, or of USER's, that connects as NAME; returns the peer's socket. */
int side_connect(struct fixture *f, struct leat_tls_ctx *ctx, const char *name);
int side_connect_as(struct test_user *client, struct leat_tls_ctx *ctx, const char *name);

/* A stream that connects to f->raw as a server, through the handshake. */
void side_connect_raw(struct fixture *f, const char *name);

/* Both ends under test, through the handshake. */
void side_open_both(struct fixture *f);

/* Sends all that the peer has. */
void side_send_all(struct fixture *f);

#define SIDE_TEST(name) cmocka_unit_test_setup_teardown(name, side_setup, side_teardown)

#endif
