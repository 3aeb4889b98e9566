/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_side.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct test_certs side_certs;

int side_group_setup(void **state)
{
    (void)state;
    test_certs_init(&side_certs);
    return 0;
}

int side_group_teardown(void **state)
{
    (void)state;
    test_certs_fini(&side_certs);
    return 0;
}

int side_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->plain = -1;
    f->raw.fd = -1;
    *state = f;
    if (leat_loop_new(&f->loop, NULL) != LEAT_OK)
        return -1;
    f->tls_server = test_server_of(side_certs.cert, side_certs.key);
    f->client_ctx = test_client_of(side_certs.ca);
    test_user_init(&f->server, f->loop);
    test_user_init(&f->client, f->loop);
    return 0;
}

int side_teardown(void **state)
{
    struct fixture *f = *state;
    if (f->plain >= 0)
        (void)close(f->plain);
    raw_tls_fini(&f->raw);
    test_user_fini(&f->server);
    test_user_fini(&f->client);
    leat_tls_server_unref(f->tls_server);
    leat_tls_ctx_unref(f->client_ctx);
    leat_loop_free(f->loop);
    free(f);
    return 0;
}

void side_accept_plain(struct fixture *f, void (*pair)(int *))
{
    int fds[2];
    struct leat_stream_user user = test_user_of(&f->server);
    pair(fds);
    f->plain = fds[1];
    assert_int_equal(
        leat_tls_stream_accept(f->loop, fds[0], f->tls_server, &user, &f->server.stream), LEAT_OK);
}

void side_accept_raw(struct fixture *f, void (*pair)(int *))
{
    side_accept_plain(f, pair);
    raw_tls_init(&f->raw, false, &side_certs, f->plain);
    f->plain = -1;
}

void side_open_raw(struct fixture *f, void (*pair)(int *))
{
    side_accept_raw(f, pair);
    while (!raw_tls_step(&f->raw) || f->server.told[TEST_OPENED] == 0)
        test_poll(f->loop);
}

int side_connect_as(struct test_user *client, struct leat_tls_ctx *ctx, const char *name)
{
    struct leat_addr addr;
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);
    struct leat_str text = {"127.0.0.1:0", 11};
    struct leat_stream_user user = test_user_of(client);
    struct leat_tls_target tls = {.ctx = ctx, .name = name};
    struct leat_connect_target target = {.addrs = &addr, .addr_count = 1};
    int listener;

    assert_int_equal(leat_addr_parse(text, 0, &addr, NULL), LEAT_OK);
    assert_int_equal(leat_addr_listen(&addr, &listener, NULL), LEAT_OK);
    assert_return_code(getsockname(listener, (struct sockaddr *)&ss, &len), 0);
    leat_addr_from_sockaddr(&ss, &addr);
    client->in_call = true;
    assert_int_equal(
        leat_tls_stream_connect(client->loop, &target, &tls, &user, &client->stream, NULL),
        LEAT_OK);
    client->in_call = false;
    assert_return_code(fcntl(listener, F_SETFL, 0), 0); /* wait for it */
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_return_code(fd, 0);
    (void)close(listener);
    return fd;
}

int side_connect(struct fixture *f, struct leat_tls_ctx *ctx, const char *name)
{
    return side_connect_as(&f->client, ctx, name);
}

void side_connect_raw(struct fixture *f, const char *name)
{
    raw_tls_init(&f->raw, true, &side_certs, side_connect(f, f->client_ctx, name));
    while (!raw_tls_step(&f->raw) || f->client.told[TEST_OPENED] == 0)
        test_poll(f->loop);
}

void side_open_both(struct fixture *f)
{
    struct leat_stream_user user = test_user_of(&f->server);
    int fd = side_connect(f, f->client_ctx, "localhost");
    assert_int_equal(leat_tls_stream_accept(f->loop, fd, f->tls_server, &user, &f->server.stream),
                     LEAT_OK);
    TURN_UNTIL(f->loop, f->server.told[TEST_OPENED] > 0 && f->client.told[TEST_OPENED] > 0);
}

void side_send_all(struct fixture *f)
{
    while (BIO_ctrl_pending(f->raw.out) > 0) {
        if (raw_tls_send(&f->raw, SIZE_MAX) == 0)
            test_poll(f->loop);
    }
}
