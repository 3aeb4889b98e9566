/*
 * Tests of proxy/session.h once a session is open: relay, back-pressure, heartbeats, every
 * end, draining.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "amqp/method.h"

#define CLIENT (&rig.clients[0])
#define BROKER (&rig.brokers[0])

/* Both ends come, nothing before them, and the session goes away. */
static void expect_end(struct rig *rig)
{
    struct side *client = &rig->clients[0], *broker = &rig->brokers[0];

    UNTIL(rig, client->fd < 0 || client->ended);
    UNTIL(rig, broker->fd < 0 || broker->ended);
    assert_int_equal(client->in.len, 0);
    assert_int_equal(broker->in.len, 0);
    side_close(client);
    side_close(broker);
    UNTIL(rig, rig->worker->count.load == 0);
}

static void the_client_closes(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_open(&rig, 0, 0);
    side_give(CLIENT, wire_close(200, "Goodbye"));
    rig_expect(&rig, BROKER, wire_close(200, "Goodbye"));
    side_give(BROKER, wire_close_ok());
    rig_expect(&rig, CLIENT, wire_close_ok());
    expect_end(&rig);
    assert_true(rig_logged(&rig, "closed by=client reason=\"it closed with 200 Goodbye\""));
    rig_fini(&rig);
}

static void the_broker_closes(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_open(&rig, 0, 0);
    side_give(BROKER, wire_close(501, "FRAME_ERROR"));
    rig_expect(&rig, CLIENT, wire_close(501, "FRAME_ERROR"));
    side_give(CLIENT, wire_close_ok());
    rig_expect(&rig, BROKER, wire_close_ok());
    expect_end(&rig);
    assert_true(rig_logged(&rig, "closed by=broker reason=\"it closed with 501 FRAME_ERROR\""));
    rig_fini(&rig);
}

static void both_close_at_the_same_time(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_open(&rig, 0, 0);
    side_give(CLIENT, wire_close(200, "client"));
    side_give(BROKER, wire_close(320, "broker"));
    rig_expect(&rig, BROKER, wire_close(200, "client"));
    rig_expect(&rig, CLIENT, wire_close(320, "broker"));
    side_give(CLIENT, wire_close_ok());
    side_give(BROKER, wire_close_ok());
    rig_expect(&rig, CLIENT, wire_close_ok());
    UNTIL(&rig, CLIENT->ended && BROKER->ended);
    rig_fini(&rig);
}

static void an_unanswered_close_is_answered_by_leat(void **state)
{
    struct rig rig;

    (void)state;
    for (int by_client = 0; by_client < 2; by_client++) {
        rig_init(&rig, 1, NULL);
        rig_open(&rig, 0, 0);
        struct side *from = by_client ? CLIENT : BROKER, *to = by_client ? BROKER : CLIENT;
        side_give(from, wire_close(200, "bye"));
        rig_expect(&rig, to, wire_close(200, "bye"));
        rig_pass(&rig, 9800);
        assert_int_equal(from->in.len, 0);
        rig_pass(&rig, 500);
        rig_expect(&rig, from, wire_close_ok());
        expect_end(&rig);
        assert_true(rig_logged(&rig, "timeouts.close"));
        rig_fini(&rig);
    }
}

static void a_broker_lost_between_frames(void **state)
{
    struct rig rig;

    (void)state;
    for (int how = 0; how < 2; how++) {
        rig_init(&rig, 1, NULL);
        rig_open(&rig, 0, 0);
        side_give(BROKER, wire_body(50));
        rig_expect(&rig, CLIENT, wire_body(50));
        if (how == 0)
            side_close(BROKER);
        else
            side_reset(BROKER);
        rig_expect_close(&rig, CLIENT, 320, "CONNECTION_FORCED - broker connection lost");
        expect_end(&rig);
        assert_true(rig_logged(&rig, "closed by=broker code=320"));
        rig_fini(&rig);
    }
}

/* At every byte of a frame but its last: the client gets that part, and no Close in it. */
static void a_broker_lost_inside_a_frame(void **state)
{
    struct wire body = wire_body(20);

    (void)state;
    for (size_t part = 7; part < body.len; part++) {
        struct rig rig;
        rig_init(&rig, 1, NULL);
        rig_open(&rig, 0, 0);
        assert_int_equal(send(BROKER->fd, body.buf, part, MSG_NOSIGNAL), part);
        UNTIL(&rig, CLIENT->in.len == part);
        side_close(BROKER);
        UNTIL(&rig, CLIENT->ended);
        assert_int_equal(CLIENT->in.len, part);
        assert_memory_equal(CLIENT->in.buf, body.buf, part);
        rig_fini(&rig);
    }
    wire_free(&body);
}

static void a_client_lost(void **state)
{
    struct rig rig;

    (void)state;
    for (int how = 0; how < 2; how++) {
        rig_init(&rig, 1, NULL);
        rig_open(&rig, 0, 0);
        if (how == 0) {
            /* What it sent before its end is carried to the broker. */
            side_give(CLIENT, wire_body(3000));
            side_close(CLIENT);
            rig_expect(&rig, BROKER, wire_body(3000));
        } else {
            side_reset(CLIENT);
        }
        expect_end(&rig);
        assert_true(rig_logged(&rig, "closed by=client"));
        rig_fini(&rig);
    }
}

static void malformed_frames(void **state)
{
    struct rig rig;
    struct wire bad = {0};

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_open(&rig, 0, 0);
    wire_add(&bad, "\x07\0\1\0\0\0\0\xCE", 8);
    side_give(CLIENT, bad);
    rig_expect_close(&rig, CLIENT, 501, "FRAME_ERROR");
    expect_end(&rig);
    rig_fini(&rig);
}

/* Sends frames from SIDE until nobody takes any more; returns how many bytes that was. */
static size_t flood(struct rig *rig, struct side *side)
{
    struct wire body = wire_body(60000);
    size_t sent = 0, stuck = 0, rest = 0;

    while (stuck < 50) {
        ssize_t n = send(side->fd, body.buf + rest, body.len - rest, MSG_NOSIGNAL | MSG_DONTWAIT);
        stuck = n > 0 ? 0 : stuck + 1;
        if (n > 0) {
            sent += (size_t)n;
            rest = (rest + (size_t)n) % body.len;
        }
        rig_turn(rig);
    }
    assert_int_equal(errno, EAGAIN);
    wire_free(&body);
    return sent;
}

/* A receiver that does not read stops the sender, within bounds, and nothing is lost. */
static void a_slow_receiver_stops_the_sender(void **state)
{
    (void)state;
    for (int to_broker = 0; to_broker < 2; to_broker++) {
        struct rig rig;
        const int small = 65536;
        rig_init(&rig, 1, NULL);
        rig_open(&rig, 0, 0);
        struct side *from = to_broker ? CLIENT : BROKER, *to = to_broker ? BROKER : CLIENT;
        (void)setsockopt(to->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
        to->lazy = true;
        size_t sent = flood(&rig, from);
        assert_true(rig.shared->account.held > 0);
        assert_in_range(rig.shared->account.held, 1, 600 * 1024);
        uint64_t wakeups = leat_loop_counters(rig.worker->loop)->recvs;
        for (int i = 0; i < 100; i++)
            rig_turn(&rig);
        assert_int_equal(leat_loop_counters(rig.worker->loop)->recvs, wakeups);
        /* The other direction is not concerned. */
        side_give(to, wire_body(100));
        rig_expect(&rig, from, wire_body(100));
        to->lazy = false;
        UNTIL(&rig, to->in.len == sent);
        assert_int_equal(rig.shared->account.held, 0);
        struct wire body = wire_body(60000);
        for (size_t at = 0; at < sent; at += body.len) {
            size_t n = sent - at < body.len ? sent - at : body.len;
            assert_memory_equal(to->in.buf + at, body.buf, n);
        }
        wire_free(&body);
        rig_fini(&rig);
    }
}

/* Heartbeats, on a clock of ours. */

static void open_with_heartbeats(struct rig *rig, unsigned client_s, unsigned broker_s)
{
    struct side *client = rig_connect(rig, 0);

    rig_client_opens(rig, client, client_s);
    rig_broker_opens(rig, rig_accept(rig, 0), broker_s);
    rig_expect(rig, client, wire_open_ok());
}

/* Lets SECONDS pass, in which SIDE sends a heartbeat every second. */
static void pass_alive(struct rig *rig, struct side *side, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        side_give(side, wire_heartbeat());
        rig_pass(rig, 1000);
    }
}

static void heartbeats_are_each_legs_own(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    open_with_heartbeats(&rig, 20, 4);
    pass_alive(&rig, BROKER, 21);
    /* The broker gets one every 2 s, none of them the client's; the client every 10 s. */
    assert_in_range(BROKER->in.len, 9 * 8, 11 * 8);
    assert_int_equal(CLIENT->in.len, 2 * 8);
    assert_int_equal(rig.worker->count.load, 1);
    rig_fini(&rig);
}

/* With 60 s on both legs, and peers that keep to it, five minutes take ten frames each way. */
static void no_heartbeat_is_sent_that_is_not_due(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    open_with_heartbeats(&rig, 60, 60);
    for (int i = 0; i < 10; i++) {
        rig.now_ms += 29800;
        rig_settle(&rig);
        assert_int_equal(rig.worker->count.heartbeats_sent, 2 * i);
        rig_pass(&rig, 200);
        side_give(CLIENT, wire_heartbeat());
        side_give(BROKER, wire_heartbeat());
        rig_settle(&rig);
        assert_int_equal(CLIENT->in.len, (size_t)(i + 1) * 8);
        assert_int_equal(BROKER->in.len, (size_t)(i + 1) * 8);
    }
    assert_int_equal(rig.worker->count.heartbeats_sent, 20);
    assert_int_equal(rig.worker->count.heartbeats_received, 20);
    rig_fini(&rig);
}

static void traffic_takes_the_place_of_heartbeats(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    open_with_heartbeats(&rig, 0, 4);
    for (int i = 0; i < 20; i++) {
        side_give(CLIENT, wire_body(10));
        side_give(BROKER, wire_heartbeat());
        rig_pass(&rig, 1000);
        rig_expect(&rig, BROKER, wire_body(10));
    }
    assert_int_equal(BROKER->in.len, 0);
    assert_int_equal(CLIENT->in.len, 0);
    rig_fini(&rig);
}

static void a_silent_broker_is_dead(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    open_with_heartbeats(&rig, 0, 4);
    rig_pass(&rig, 7900);
    assert_int_equal(CLIENT->in.len, 0);
    rig_pass(&rig, 400);
    rig_expect_close(&rig, CLIENT, 320, "CONNECTION_FORCED - broker connection lost");
    assert_true(rig_logged(&rig, "nothing came for 8 s, twice its heartbeat"));
    rig_fini(&rig);
}

static void a_silent_client_is_dead(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    open_with_heartbeats(&rig, 4, 60);
    rig_pass(&rig, 7900);
    assert_false(BROKER->ended);
    rig_pass(&rig, 400);
    UNTIL(&rig, BROKER->ended && CLIENT->ended);
    assert_true(rig_logged(&rig, "closed by=client reason=\"nothing came for"));
    rig_fini(&rig);
}

/* A leg that leat does not read, since the other does not take it, is not judged. */
static void a_paused_leg_is_not_dead(void **state)
{
    struct rig rig;
    const int small = 65536;

    (void)state;
    rig_init(&rig, 1, NULL);
    open_with_heartbeats(&rig, 4, 0);
    BROKER->lazy = true;
    (void)setsockopt(BROKER->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    size_t sent = flood(&rig, CLIENT);
    pass_alive(&rig, BROKER, 20);
    assert_int_equal(rig.worker->count.load, 1);
    assert_true(CLIENT->in.len > 0); /* and gets its heartbeats */
    BROKER->lazy = false;
    UNTIL(&rig, BROKER->in.len == sent);
    /* Read again, it has its time from now on. */
    pass_alive(&rig, BROKER, 7);
    assert_false(BROKER->ended);
    pass_alive(&rig, BROKER, 3);
    UNTIL(&rig, BROKER->ended);
    assert_true(rig_logged(&rig, "closed by=client reason=\"nothing came for 8 s"));
    rig_fini(&rig);
}

/* No heartbeat goes into the middle of a frame. */
static void heartbeats_wait_for_the_end_of_a_frame(void **state)
{
    struct rig rig;
    struct wire body = wire_body(100);

    (void)state;
    rig_init(&rig, 1, NULL);
    open_with_heartbeats(&rig, 4, 4);
    assert_int_equal(send(BROKER->fd, body.buf, 50, MSG_NOSIGNAL), 50);
    pass_alive(&rig, CLIENT, 7);
    assert_int_equal(CLIENT->in.len, 50);
    assert_int_equal(send(BROKER->fd, body.buf + 50, body.len - 50, MSG_NOSIGNAL), body.len - 50);
    rig_expect(&rig, CLIENT, body);
    pass_alive(&rig, CLIENT, 3);
    rig_expect(&rig, CLIENT, wire_heartbeat());
    rig_fini(&rig);
}

/* Draining. */

static void a_drain_closes_both_sides(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_open(&rig, 0, 0);
    leat_worker_drain(rig.worker, 0);
    rig_expect_close(&rig, CLIENT, 320, "CONNECTION_FORCED");
    /* What the client sends before its answer is still carried, what the broker sends is not. */
    side_give(BROKER, wire_body(10));
    side_give(CLIENT, wire_body(500));
    rig_expect(&rig, BROKER, wire_body(500));
    side_give(CLIENT, wire_close_ok());
    rig_expect_close(&rig, BROKER, 200, "");
    side_give(BROKER, wire_close_ok());
    expect_end(&rig);
    assert_true(rig_logged(&rig, "closed by=leat code=320 reason=\"leat is shutting down\""));
    rig_fini(&rig);
}

/* Most clients end the connection right behind their Close-Ok. That is an answer. */
static void a_client_that_answers_and_leaves_has_answered(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_open(&rig, 0, 0);
    leat_worker_drain(rig.worker, 0);
    rig_expect_close(&rig, CLIENT, 320, "CONNECTION_FORCED");
    side_give(CLIENT, wire_close_ok());
    side_close(CLIENT);
    rig_expect_close(&rig, BROKER, 200, "");
    /* The broker, which does not know yet, still has something for it. */
    rig_settle(&rig);
    side_give(BROKER, wire_body(10));
    rig_settle(&rig);
    side_give(BROKER, wire_close_ok());
    expect_end(&rig);
    assert_false(rig_logged(&rig, "no Close-Ok came"));
    rig_fini(&rig);
}

/* The client's Close crosses leat's own: it counts as an answer, the broker is closed once. */
static void a_close_that_crosses_a_drain(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_open(&rig, 0, 0);
    leat_worker_drain(rig.worker, 0);
    rig_expect_close(&rig, CLIENT, 320, "CONNECTION_FORCED");
    side_give(CLIENT, wire_close(200, "bye"));
    rig_expect(&rig, CLIENT, wire_close_ok());
    side_give(CLIENT, wire_close_ok());
    rig_expect_close(&rig, BROKER, 200, "");
    rig_settle(&rig);
    assert_int_equal(BROKER->in.len, 0);
    side_give(BROKER, wire_close_ok());
    expect_end(&rig);
    rig_fini(&rig);
}

/* A drain that comes in the middle of a frame to the client waits for its end. */
static void a_drain_waits_for_the_end_of_a_frame(void **state)
{
    struct rig rig;
    struct wire body = wire_body(100);

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_open(&rig, 0, 0);
    assert_int_equal(send(BROKER->fd, body.buf, 50, MSG_NOSIGNAL), 50);
    UNTIL(&rig, CLIENT->in.len == 50);
    leat_worker_drain(rig.worker, 0);
    rig_pass(&rig, 1000);
    assert_int_equal(CLIENT->in.len, 50);
    assert_int_equal(send(BROKER->fd, body.buf + 50, body.len - 50, MSG_NOSIGNAL), body.len - 50);
    rig_expect(&rig, CLIENT, body);
    rig_pass(&rig, 200);
    rig_expect_close(&rig, CLIENT, 320, "CONNECTION_FORCED");
    rig_fini(&rig);
}

static void a_drain_spreads_its_closes(void **state)
{
    struct rig rig;
    struct side brokers[3];

    (void)state;
    rig_init(&rig, 1, NULL);
    for (unsigned i = 0; i < 3; i++) {
        rig_open(&rig, i, 0);
        brokers[i] = *BROKER; /* kept open, while the next one is accepted */
        *BROKER = (struct side){.fd = -1};
    }
    leat_worker_drain(rig.worker, 300);
    for (unsigned n = 0; n <= 3; n++) {
        unsigned closed = 0;
        rig_settle(&rig);
        for (unsigned i = 0; i < 3; i++)
            closed += rig.clients[i].in.len > 0;
        assert_int_equal(closed, n);
        rig.now_ms += 100;
    }
    for (unsigned i = 0; i < 3; i++)
        side_close(&brokers[i]);
    rig_fini(&rig);
}

static void a_drain_in_the_handshake(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_client_opens(&rig, rig_connect(&rig, 0), 0);
    (void)rig_accept(&rig, 0);
    leat_worker_drain(rig.worker, 0);
    rig_expect_close(&rig, CLIENT, 320, "CONNECTION_FORCED");
    UNTIL(&rig, CLIENT->ended);
    rig_fini(&rig);
}

static void listeners_close(void **state)
{
    struct rig rig;
    const struct leat_addr *addr;

    (void)state;
    rig_init(&rig, 1, NULL);
    rig_open(&rig, 0, 0);
    leat_worker_close_listeners(rig.worker);
    rig_settle(&rig);
    /* Refused by the kernel: nobody waits where nobody answers. */
    addr = &rig.config->listeners.at[0].endpoint.addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&addr->ss, addr->len), -1);
    assert_int_equal(errno, ECONNREFUSED);
    (void)close(fd);
    side_give(CLIENT, wire_body(10));
    rig_expect(&rig, BROKER, wire_body(10));
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_client_closes),
        cmocka_unit_test(the_broker_closes),
        cmocka_unit_test(both_close_at_the_same_time),
        cmocka_unit_test(an_unanswered_close_is_answered_by_leat),
        cmocka_unit_test(a_broker_lost_between_frames),
        cmocka_unit_test(a_broker_lost_inside_a_frame),
        cmocka_unit_test(a_client_lost),
        cmocka_unit_test(malformed_frames),
        cmocka_unit_test(a_slow_receiver_stops_the_sender),
        cmocka_unit_test(heartbeats_are_each_legs_own),
        cmocka_unit_test(no_heartbeat_is_sent_that_is_not_due),
        cmocka_unit_test(traffic_takes_the_place_of_heartbeats),
        cmocka_unit_test(a_silent_broker_is_dead),
        cmocka_unit_test(a_silent_client_is_dead),
        cmocka_unit_test(a_paused_leg_is_not_dead),
        cmocka_unit_test(heartbeats_wait_for_the_end_of_a_frame),
        cmocka_unit_test(a_drain_closes_both_sides),
        cmocka_unit_test(a_client_that_answers_and_leaves_has_answered),
        cmocka_unit_test(a_close_that_crosses_a_drain),
        cmocka_unit_test(a_drain_waits_for_the_end_of_a_frame),
        cmocka_unit_test(a_drain_spreads_its_closes),
        cmocka_unit_test(a_drain_in_the_handshake),
        cmocka_unit_test(listeners_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
