/*
 * Tests of proxy/session.h until a session is open: the client's handshake, the search for a
 * broker, and every refusal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "amqp/method.h"
#include "base/mem.h"

static void a_session_opens_and_relays_both_ways(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_open(&rig, 0, 0);
    side_give(&rig.clients[0], wire_body(1000));
    rig_expect(&rig, &rig.brokers[0], wire_body(1000));
    side_give(&rig.brokers[0], wire_body(5000));
    rig_expect(&rig, &rig.clients[0], wire_body(5000));
    assert_int_equal(rig.worker->count.opened, 1);
    assert_int_equal(rig.shared->handshakes, 0);
    assert_int_equal(rig.shared->sessions, 1);
    assert_true(rig_logged(&rig, "opened peer=127.0.0.1:"));
    assert_true(rig_logged(&rig, "user=\"guest\" vhost=\"shop\" backend=127.0.0.1:"));
    assert_false(rig_logged(&rig, "secret"));
    rig_fini(&rig);
}

/* The broker sees what the client said, but for what only leat may say. */
static void the_login_is_repeated(void **state)
{
    struct rig rig;
    struct wire got, response = {0}, tune = {0};

    (void)state;
    rig_init(&rig, 1, NULL);
    struct side *client = rig_connect(&rig, 0);
    rig_client_opens(&rig, client, 30);
    struct side *broker = rig_accept(&rig, 0);
    rig_expect(&rig, broker, wire_header());
    side_give(broker, wire_start(true));
    got = rig_method(&rig, broker, LEAT_AMQP_CONNECTION_START_OK);
    wire_add(&response, "\0guest\0secret", 13);
    assert_non_null(memmem(got.buf, got.len, response.buf, response.len));
    assert_true(wire_has(&got, "authentication_failure_close"));
    assert_true(wire_has(&got, "127.0.0.1:"));
    assert_false(wire_has(&got, "forged"));
    wire_free(&got);
    wire_free(&response);
    side_give(broker, wire_tune(LEAT_AMQP_CONNECTION_TUNE, 0, 4096, 60));
    got = rig_method(&rig, broker, LEAT_AMQP_CONNECTION_TUNE_OK);
    wire_u16(&tune, 100);
    wire_u32(&tune, 4096);
    wire_u16(&tune, 30);
    assert_true(wire_equal(&got, &tune));
    wire_free(&got);
    wire_free(&tune);
    rig_fini(&rig);
}

/* All that the client sends comes at once, cut in every way, and some of it behind Open. */
static void a_pipelined_handshake_at_any_cut(void **state)
{
    (void)state;
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct rig rig;
        struct wire all = wire_header(), parts[4];
        uint32_t seed = (uint32_t)cut;
        rig_init(&rig, 1, NULL);
        struct side *client = rig_connect(&rig, 0);
        parts[0] = wire_client_start_ok("guest");
        parts[1] = wire_tune(LEAT_AMQP_CONNECTION_TUNE_OK, 100, 131072, 0);
        parts[2] = wire_open();
        parts[3] = wire_body(1500);
        for (int i = 0; i < 4; i++) {
            wire_add(&all, parts[i].buf, parts[i].len);
            wire_free(&parts[i]);
        }
        for (size_t at = 0; at < all.len;) {
            size_t n = wire_next_cut(cut, all.len - at, &seed);
            assert_int_equal(send(client->fd, all.buf + at, n, MSG_NOSIGNAL), n);
            at += n;
            if (cut != WIRE_BYTES || at % 16 == 0)
                rig_turn(&rig);
        }
        wire_free(&all);
        rig_broker_opens(&rig, rig_accept(&rig, 0), 0);
        rig_expect(&rig, &rig.brokers[0], wire_body(1500));
        rig_skip_method(&rig, client, LEAT_AMQP_CONNECTION_START);
        rig_skip_method(&rig, client, LEAT_AMQP_CONNECTION_TUNE);
        rig_expect(&rig, client, wire_open_ok());
        rig_fini(&rig);
    }
}

static void give_slowly(struct rig *rig, struct side *side, struct wire wire)
{
    for (size_t i = 0; i < wire.len; i++) {
        assert_int_equal(send(side->fd, wire.buf + i, 1, MSG_NOSIGNAL), 1);
        rig_turn(rig);
    }
    wire_free(&wire);
}

/* What the broker says comes in single bytes, and bytes of a frame come right behind Open-Ok. */
static void a_slow_broker_is_understood(void **state)
{
    struct rig rig;
    struct wire got, last = wire_open_ok(), body = wire_body(100);

    (void)state;
    rig_init(&rig, 1, NULL);
    struct side *client = rig_connect(&rig, 0);
    rig_client_opens(&rig, client, 0);
    struct side *broker = rig_accept(&rig, 0);
    rig_expect(&rig, broker, wire_header());
    give_slowly(&rig, broker, wire_start(true));
    rig_skip_method(&rig, broker, LEAT_AMQP_CONNECTION_START_OK);
    give_slowly(&rig, broker, wire_tune(LEAT_AMQP_CONNECTION_TUNE, 2047, 131072, 0));
    rig_skip_method(&rig, broker, LEAT_AMQP_CONNECTION_TUNE_OK);
    rig_expect(&rig, broker, wire_open());
    wire_add(&last, body.buf, body.len);
    wire_free(&body);
    side_give(broker, last);
    rig_expect(&rig, client, wire_open_ok());
    rig_expect(&rig, client, wire_body(100));
    /* The next client is told of the broker what that has said. */
    client = rig_connect(&rig, 1);
    side_give(client, wire_header());
    got = rig_method(&rig, client, LEAT_AMQP_CONNECTION_START);
    assert_true(wire_has(&got, "TestMQ"));
    wire_free(&got);
    rig_fini(&rig);
}

/* The client sends its Close right behind Open, the broker part of a frame behind Open-Ok. */
static void a_close_right_behind_open(void **state)
{
    struct rig rig;
    struct wire early = wire_open(), close = wire_close(200, "bye"), last, body = wire_body(100);

    (void)state;
    rig_init(&rig, 1, NULL);
    struct side *client = rig_connect(&rig, 0);
    side_give(client, wire_header());
    side_give(client, wire_client_start_ok("guest"));
    side_give(client, wire_tune(LEAT_AMQP_CONNECTION_TUNE_OK, 100, 131072, 0));
    wire_add(&early, close.buf, close.len);
    side_give(client, early);
    struct side *broker = rig_accept(&rig, 0);
    rig_broker_tunes(&rig, broker, 0);
    rig_expect(&rig, broker, wire_open());
    last = wire_open_ok();
    wire_add(&last, body.buf, 50);
    side_give(broker, last);
    rig_expect(&rig, broker, close);
    assert_int_equal(send(broker->fd, body.buf + 50, body.len - 50, MSG_NOSIGNAL), body.len - 50);
    side_give(broker, wire_close_ok());
    rig_skip_method(&rig, client, LEAT_AMQP_CONNECTION_START);
    rig_skip_method(&rig, client, LEAT_AMQP_CONNECTION_TUNE);
    rig_expect(&rig, client, wire_open_ok());
    rig_expect(&rig, client, body);
    rig_expect(&rig, client, wire_close_ok());
    UNTIL(&rig, client->ended && broker->ended);
    rig_fini(&rig);
}

/* A broker answers Open with a Close: the client gets the same, and leat has sent Close-Ok. */
static void a_refusal_is_passed_on(unsigned code, const char *text)
{
    struct rig rig;

    rig_init(&rig, 2, NULL);
    struct side *client = rig_connect(&rig, 0);
    rig_client_opens(&rig, client, 0);
    struct side *broker = rig_accept(&rig, 0);
    rig_broker_tunes(&rig, broker, 0);
    rig_expect(&rig, broker, wire_open());
    side_give(broker, wire_close(code, text));
    rig_expect_close(&rig, client, code, text);
    rig_expect(&rig, broker, wire_close_ok());
    UNTIL(&rig, client->ended && broker->ended);
    assert_int_equal(rig.worker->count.refused, 1);
    assert_true(rig_logged(&rig, "refused by=broker"));
    /* It is no failure of the backend: the next one was not tried. */
    assert_int_equal(rig.farm->backends[0]->backoff_ms, 0);
    assert_int_equal(accept4(rig.broker_fds[1], NULL, NULL, 0), -1);
    rig_fini(&rig);
}

static void refusals_of_the_broker_are_passed_on(void **state)
{
    (void)state;
    a_refusal_is_passed_on(403, "ACCESS_REFUSED - Login was refused");
    a_refusal_is_passed_on(530, "NOT_ALLOWED - vhost shop not found");
    a_refusal_is_passed_on(504, "CHANNEL_ERROR - who knows");
}

static void the_next_backend_is_tried_after(unsigned code, const char *text, unsigned backoff_ms)
{
    struct rig rig;

    rig_init(&rig, 2, NULL);
    struct side *client = rig_connect(&rig, 0);
    rig_client_opens(&rig, client, 0);
    struct side *first = rig_accept(&rig, 0);
    rig_broker_tunes(&rig, first, 0);
    rig_expect(&rig, first, wire_open());
    side_give(first, wire_close(code, text));
    rig_broker_opens(&rig, rig_accept(&rig, 1), 0);
    rig_expect(&rig, client, wire_open_ok());
    assert_int_equal(rig.farm->backends[0]->backoff_ms, backoff_ms);
    assert_int_equal(rig.farm->backends[1]->sessions, 1);
    rig_fini(&rig);
}

static void a_broker_that_cannot_now_is_passed_over(void **state)
{
    (void)state;
    the_next_backend_is_tried_after(320, "CONNECTION_FORCED - going down", 5000);
    the_next_backend_is_tried_after(530, "NOT_ALLOWED - node connection limit (1) is reached",
                                    5000);
    /* This may have to do with the one session only, and is held against nobody. */
    the_next_backend_is_tried_after(541, "INTERNAL_ERROR - vhost is down", 0);
}

/* What a broker says reaches the log only in a form that cannot forge lines. */
static void a_broker_cannot_forge_log_lines(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    struct side *client = rig_connect(&rig, 0);
    rig_client_opens(&rig, client, 0);
    struct side *broker = rig_accept(&rig, 0);
    rig_broker_tunes(&rig, broker, 0);
    rig_expect(&rig, broker, wire_open());
    side_give(broker, wire_close(320, "x\nsession=7 forged"));
    rig_expect_close(&rig, client, 320, "no broker can be reached");
    assert_false(rig_logged(&rig, "\nsession=7 forged"));
    rig_fini(&rig);
}

static void a_backend_that_refuses_tcp_is_passed_over(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 2, NULL);
    (void)close(rig.broker_fds[0]);
    rig.broker_fds[0] = -1;
    struct side *client = rig_connect(&rig, 0);
    rig_client_opens(&rig, client, 0);
    rig_broker_opens(&rig, rig_accept(&rig, 1), 0);
    rig_expect(&rig, client, wire_open_ok());
    assert_int_equal(rig.farm->backends[0]->backoff_ms, 5000);
    assert_true(rig_logged(&rig, "it goes last for 5 s"));
    rig_fini(&rig);
}

static void no_backend_left(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 2, NULL);
    for (int i = 0; i < 2; i++) {
        (void)close(rig.broker_fds[i]);
        rig.broker_fds[i] = -1;
    }
    struct side *client = rig_connect(&rig, 0);
    rig_client_opens(&rig, client, 0);
    rig_expect_close(&rig, client, 320, "CONNECTION_FORCED - no broker can be reached");
    UNTIL(&rig, client->ended);
    assert_int_equal(client->in.len, 0);
    assert_int_equal(rig.worker->count.refused, 1);
    rig_fini(&rig);
}

/* A broker that drops the connection for a wrong password is not followed by another one,
 * unless it has said that it would tell. */
static void a_loss_after_start_ok(void **state)
{
    (void)state;
    for (int tells = 0; tells < 2; tells++) {
        struct rig rig;
        rig_init(&rig, 2, NULL);
        struct side *client = rig_connect(&rig, 0);
        rig_client_opens(&rig, client, 0);
        struct side *broker = rig_accept(&rig, 0);
        rig_expect(&rig, broker, wire_header());
        side_give(broker, wire_start(tells));
        rig_skip_method(&rig, broker, LEAT_AMQP_CONNECTION_START_OK);
        side_close(broker);
        if (tells) {
            rig_broker_opens(&rig, rig_accept(&rig, 1), 0);
            rig_expect(&rig, client, wire_open_ok());
        } else {
            rig_expect_close(&rig, client, 403, "ACCESS_REFUSED");
            assert_int_equal(accept4(rig.broker_fds[1], NULL, NULL, 0), -1);
        }
        rig_fini(&rig);
    }
}

static void a_broker_that_asks_secure(void **state)
{
    struct rig rig;
    struct wire secure = {0}, arguments = {0};

    (void)state;
    rig_init(&rig, 1, NULL);
    struct side *client = rig_connect(&rig, 0);
    rig_client_opens(&rig, client, 0);
    struct side *broker = rig_accept(&rig, 0);
    rig_expect(&rig, broker, wire_header());
    side_give(broker, wire_start(true));
    rig_skip_method(&rig, broker, LEAT_AMQP_CONNECTION_START_OK);
    wire_str32(&arguments, "why?", 4);
    wire_method(&secure, 0, LEAT_AMQP_CONNECTION_SECURE, &arguments);
    wire_free(&arguments);
    side_give(broker, secure);
    rig_expect_close(&rig, client, 540, "NOT_IMPLEMENTED");
    rig_fini(&rig);
}

static void loopback_users_come_from_this_machine(void **state)
{
    static const char *const peers[] = {"203.0.113.5:4711", "[2001:db8::1]:4711", "127.9.9.9:4711",
                                        "[::1]:4711"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct rig rig;
        rig_init(&rig, 1, NULL);
        struct side *client = rig_start(&rig, 0, peers[i]);
        rig_client_opens(&rig, client, 0);
        if (i < 2) {
            rig_expect_close(&rig, client, 403, "ACCESS_REFUSED - this user can only connect");
            rig_settle(&rig);
            assert_int_equal(accept4(rig.broker_fds[0], NULL, NULL, 0), -1);
            assert_true(rig_logged(&rig, "refused by=leat code=403"));
        } else {
            rig_broker_opens(&rig, rig_accept(&rig, 0), 0);
            rig_expect(&rig, client, wire_open_ok());
        }
        rig_fini(&rig);
    }
}

/* What leat refuses in the handshake itself is logged and counted as refused, too. */
static void a_tune_ok_above_the_offer(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    struct side *client = rig_connect(&rig, 0);
    side_give(client, wire_header());
    side_give(client, wire_client_start_ok("guest"));
    side_give(client, wire_tune(LEAT_AMQP_CONNECTION_TUNE_OK, 0, 131072, 0));
    rig_skip_method(&rig, client, LEAT_AMQP_CONNECTION_START);
    rig_skip_method(&rig, client, LEAT_AMQP_CONNECTION_TUNE);
    rig_expect_close(&rig, client, 530, "NOT_ALLOWED");
    UNTIL(&rig, client->ended);
    assert_int_equal(client->in.len, 0);
    assert_int_equal(rig.worker->count.refused, 1);
    assert_true(rig_logged(&rig, "refused by=leat code=530"));
    rig_fini(&rig);
}

static void the_limit_of_sessions(void **state)
{
    static const char *const options[] = {"limits.sessions", "1", NULL};
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, options);
    rig_open(&rig, 0, 0);
    struct side *second = rig_connect(&rig, 1);
    rig_client_opens(&rig, second, 0);
    rig_expect_close(&rig, second, 530, "NOT_ALLOWED - the proxy's limit of 1 sessions");
    assert_int_equal(rig.worker->count.turned_away, 1);
    /* The refused one lingers, since its client does not close. That takes nobody's place. */
    side_close(&rig.clients[0]);
    UNTIL(&rig, rig.brokers[0].ended);
    side_close(&rig.brokers[0]);
    UNTIL(&rig, rig.worker->count.load == 1);
    rig_open(&rig, 2, 0);
    rig_fini(&rig);
}

static void the_limit_of_handshakes(void **state)
{
    static const char *const options[] = {"limits.handshakes", "1", NULL};
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, options);
    (void)rig_connect(&rig, 0);
    UNTIL(&rig, rig.shared->handshakes == 1);
    struct side *second = rig_connect(&rig, 1);
    UNTIL(&rig, second->ended || second->reset);
    assert_int_equal(rig.worker->count.turned_away, 1);
    assert_true(rig_logged(&rig, "limits.handshakes"));
    side_close(&rig.clients[0]);
    UNTIL(&rig, rig.shared->handshakes == 0);
    rig.worker->count.accepted--; /* for the sum that rig_fini() makes */
    rig_open(&rig, 2, 0);
    rig_fini(&rig);
}

static void a_silent_client_is_let_go_without_a_line(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    (void)rig_connect(&rig, 0);
    UNTIL(&rig, rig.worker->count.load == 1);
    side_close(&rig.clients[0]);
    UNTIL(&rig, rig.worker->count.load == 0);
    assert_int_equal(rig.worker->count.silent, 1);
    assert_false(rig_logged(&rig, "failed"));
    rig_fini(&rig);
}

static void a_client_that_does_not_go_on_is_let_go(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    struct side *client = rig_connect(&rig, 0);
    side_give(client, wire_header());
    rig_skip_method(&rig, client, LEAT_AMQP_CONNECTION_START);
    rig_pass(&rig, 9800);
    assert_false(client->ended);
    rig_pass(&rig, 500);
    assert_true(client->ended);
    assert_true(rig_logged(&rig, "the client did not send Start-Ok in time"));
    rig_fini(&rig);
}

static void a_client_that_leaves_ends_the_search(void **state)
{
    struct rig rig;

    (void)state;
    for (int how = 0; how < 2; how++) {
        rig_init(&rig, 1, NULL);
        struct side *client = rig_connect(&rig, 0);
        rig_client_opens(&rig, client, 0);
        struct side *broker = rig_accept(&rig, 0);
        if (how == 0)
            side_close(client);
        else
            side_reset(client);
        UNTIL(&rig, broker->ended || broker->reset);
        assert_int_equal(rig.worker->count.failed, 1);
        assert_int_equal(rig.farm->backends[0]->backoff_ms, 0);
        rig_fini(&rig);
    }
}

/* A broker that accepts and then says nothing. */
static void a_mute_broker_is_passed_over(void **state)
{
    static const char *const options[] = {"timeouts.handshake", "2s", NULL};
    struct rig rig;

    (void)state;
    rig_init(&rig, 2, options);
    struct side *client = rig_connect(&rig, 0);
    rig_client_opens(&rig, client, 1);
    (void)rig_accept(&rig, 0);
    rig_pass(&rig, 2200);
    rig_broker_opens(&rig, rig_accept(&rig, 1), 0);
    /* Meanwhile the client got heartbeats, one for each half of its interval. */
    for (int i = 0; i < 4; i++)
        rig_expect(&rig, client, wire_heartbeat());
    rig_expect(&rig, client, wire_open_ok());
    assert_int_equal(rig.farm->backends[0]->backoff_ms, 5000);
    rig_fini(&rig);
}

/* The time for the whole search is over while a broker is awaited: that one has failed, and
 * must not be the first for the next client in turn. */
static void the_search_has_an_end(void **state)
{
    static const char *const options[] = {"timeouts.search", "3s", NULL};
    struct rig rig;

    (void)state;
    rig_init(&rig, 2, options);
    struct side *client = rig_connect(&rig, 0);
    rig_client_opens(&rig, client, 0);
    (void)rig_accept(&rig, 0);
    rig_pass(&rig, 3200);
    rig_expect_close(&rig, client, 320, "no broker could be reached in time");
    assert_int_equal(rig.farm->backends[0]->backoff_ms, 5000);
    rig_fini(&rig);
}

static void foreign_protocols_are_answered(void **state)
{
    struct rig rig;
    struct wire http = {0};

    (void)state;
    rig_init(&rig, 1, NULL);
    struct side *client = rig_connect(&rig, 0);
    wire_add(&http, "GET / HTTP/1.1\r\n\r\n", 18);
    side_give(client, http);
    rig_expect(&rig, client, wire_header());
    UNTIL(&rig, client->ended);
    assert_true(rig_logged(&rig, "HTTP on an AMQP port"));
    rig_fini(&rig);
}

/* The listeners of which the first cannot be watched. */
static void a_worker_that_cannot_begin(void **state)
{
    struct rig rig;
    struct leat_error err;

    (void)state;
    rig_init(&rig, 1, NULL);
    int fd = rig.shared->listener_fds[0];
    leat_worker_fini(rig.worker);
    rig.shared->listener_fds[0] = -1;
    rig.shared->listener_fds[1] = fd;
    rig.shared->listener_count = 2;
    *rig.worker = (struct leat_worker){0};
    assert_int_not_equal(leat_worker_init(rig.worker, rig.shared, &err), LEAT_OK);
    leat_worker_fini(rig.worker);
    rig.shared->listener_fds[0] = fd;
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_opens_and_relays_both_ways),
        cmocka_unit_test(the_login_is_repeated),
        cmocka_unit_test(a_pipelined_handshake_at_any_cut),
        cmocka_unit_test(a_slow_broker_is_understood),
        cmocka_unit_test(a_close_right_behind_open),
        cmocka_unit_test(refusals_of_the_broker_are_passed_on),
        cmocka_unit_test(a_broker_that_cannot_now_is_passed_over),
        cmocka_unit_test(a_broker_cannot_forge_log_lines),
        cmocka_unit_test(a_backend_that_refuses_tcp_is_passed_over),
        cmocka_unit_test(no_backend_left),
        cmocka_unit_test(a_loss_after_start_ok),
        cmocka_unit_test(a_broker_that_asks_secure),
        cmocka_unit_test(loopback_users_come_from_this_machine),
        cmocka_unit_test(a_tune_ok_above_the_offer),
        cmocka_unit_test(the_limit_of_sessions),
        cmocka_unit_test(the_limit_of_handshakes),
        cmocka_unit_test(a_silent_client_is_let_go_without_a_line),
        cmocka_unit_test(a_client_that_does_not_go_on_is_let_go),
        cmocka_unit_test(a_client_that_leaves_ends_the_search),
        cmocka_unit_test(a_mute_broker_is_passed_over),
        cmocka_unit_test(the_search_has_an_end),
        cmocka_unit_test(foreign_protocols_are_answered),
        cmocka_unit_test(a_worker_that_cannot_begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
