/*
 * Tests of proxy/session.h with one allocation after the other failing, over a whole session.
 * The client and the broker are robots here, which answer whatever they are told.
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

#define BODY_LEN 300000u

/* Takes a whole frame that has come and returns its method, 1 for another frame, 2 for a
 * protocol header, 0 if none is there. */
static uint32_t next_frame(struct side *side)
{
    const uint8_t *b = side->in.buf;
    size_t size = 8;
    uint32_t method = 2;

    if (side->in.len < 8)
        return 0;
    if (b[0] != 'A') {
        size = wire_frame_size(&side->in);
        if (side->in.len < size)
            return 0;
        method = 1;
        if (b[0] == 1)
            method = (uint32_t)b[7] << 24 | (uint32_t)b[8] << 16 | (uint32_t)b[9] << 8 | b[10];
    }
    wire_drop(&side->in, size);
    return method;
}

/* The robots send what a peer that is gone does not take any more. */
static void try_give(struct side *side, struct wire wire)
{
    (void)send(side->fd, wire.buf, wire.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    wire_free(&wire);
}

static void run_client(struct side *client, bool *saw_body)
{
    uint32_t method;

    while ((method = next_frame(client)) != 0) {
        if (method == LEAT_AMQP_CONNECTION_START) {
            try_give(client, wire_client_start_ok("guest"));
        } else if (method == LEAT_AMQP_CONNECTION_TUNE) {
            try_give(client, wire_tune(LEAT_AMQP_CONNECTION_TUNE_OK, 100, 131072, 0));
            try_give(client, wire_open());
        } else if (method == LEAT_AMQP_CONNECTION_OPEN_OK) {
            try_give(client, wire_body(100));
        } else if (method == 1) {
            *saw_body = true;
            try_give(client, wire_close(200, "bye"));
        } else if (method == LEAT_AMQP_CONNECTION_CLOSE) {
            try_give(client, wire_close_ok());
        }
    }
}

/* The broker answers a body with many, more than a client that is slow takes at once. */
static void run_broker(struct side *broker)
{
    uint32_t method;

    while ((method = next_frame(broker)) != 0) {
        if (method == 2) {
            try_give(broker, wire_start(true));
        } else if (method == LEAT_AMQP_CONNECTION_START_OK) {
            try_give(broker, wire_tune(LEAT_AMQP_CONNECTION_TUNE, 2047, 131072, 0));
        } else if (method == LEAT_AMQP_CONNECTION_OPEN) {
            try_give(broker, wire_open_ok());
        } else if (method == 1) {
            try_give(broker, wire_body(BODY_LEN / 4));
        } else if (method == LEAT_AMQP_CONNECTION_CLOSE) {
            try_give(broker, wire_close_ok());
        }
    }
}

/* Runs a session to whatever end it comes. True if it was a whole one. */
static bool run_session(struct rig *rig)
{
    bool saw_body = false;
    const int small = 4096;
    struct side *client = rig_connect(rig, 0), *broker = &rig->brokers[0];

    (void)setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    for (int turns = 0; !client->ended && !client->reset; turns++) {
        assert_true(turns < RIG_TURNS_MAX);
        /* It reads only now and then, so that bytes have to be queued for it. */
        client->lazy = turns % 5 != 0;
        if (broker->fd < 0 || broker->ended || broker->reset) {
            side_close(broker);
            broker->fd = accept4(rig->broker_fds[0], NULL, NULL, SOCK_CLOEXEC);
        }
        if (turns == 0)
            side_give(client, wire_header());
        rig_turn(rig);
        run_client(client, &saw_body);
        if (broker->fd >= 0)
            run_broker(broker);
    }
    side_close(client);
    UNTIL(rig, rig->worker->count.load == 0);
    side_close(broker);
    return saw_body;
}

/* Whether the failure that was set has not come yet. */
static bool failure_is_pending(unsigned n)
{
    bool pending = false;

    for (unsigned i = 0; i < n && !pending; i++) {
        void *probe = leat_mem_alloc(1);
        pending = probe == NULL;
        leat_mem_free(probe);
    }
    leat_mem_fail_after(0);
    return pending;
}

static void every_allocation_of_a_session_may_fail(void **state)
{
    struct rig rig;
    unsigned n = 0, whole = 0;
    bool pending;

    (void)state;
    rig_init(&rig, 1, NULL);
    assert_true(run_session(&rig));
    do {
        leat_mem_fail_after(++n);
        whole += run_session(&rig);
        pending = failure_is_pending(n);
        /* Only that one session was concerned. */
        for (size_t i = 0; i < rig.farm->count; i++)
            (void)leat_backend_opened(rig.farm->backends[i]);
        assert_true(run_session(&rig));
        assert_true(n < 1000);
    } while (!pending);
    assert_true(n > 8);         /* there was something that could fail */
    assert_true(whole < n / 2); /* and mostly it ended the session */
    rig_fini(&rig);
}

/* The same, with a client that asks for a backend which is not there first. */
static void every_allocation_of_a_refusal_may_fail(void **state)
{
    struct rig rig;
    unsigned n = 0;
    bool pending;

    (void)state;
    rig_init(&rig, 1, NULL);
    (void)close(rig.broker_fds[0]);
    rig.broker_fds[0] = -1;
    do {
        leat_mem_fail_after(++n);
        struct side *client = rig_connect(&rig, 0);
        bool saw_body = false;
        side_give(client, wire_header());
        for (int turns = 0; !client->ended && !client->reset; turns++) {
            assert_true(turns < RIG_TURNS_MAX);
            rig_turn(&rig);
            run_client(client, &saw_body);
        }
        side_close(client);
        UNTIL(&rig, rig.worker->count.load == 0);
        pending = failure_is_pending(n);
        assert_true(n < 1000);
    } while (!pending);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_a_session_may_fail),
        cmocka_unit_test(every_allocation_of_a_refusal_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
