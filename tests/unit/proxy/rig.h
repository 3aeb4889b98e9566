/*
 * rig.h - a worker with its sessions, a client and brokers on loopback, all in one thread
 *
 * Time is what the test says it is: rig.now_ms. Waits are counted in turns of the loop.
 * What clients and brokers send is made of hand-made bytes; nothing of src/amqp is used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TEST_PROXY_RIG_H
#define LEAT_TEST_PROXY_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "amqp/wire.h"
#include "base/log.h"
#include "proxy/session.h"
#include "proxy/worker.h"

#define RIG_BROKERS_MAX 2
#define RIG_CLIENTS_MAX 3
#define RIG_TURNS_MAX 3000

/* One end of a connection, a test's. */
struct side {
    int fd; /* -1: none */
    struct wire in;
    bool ended; /* the peer's end of stream came */
    bool reset;
    bool lazy; /* does not read */
};

struct rig {
    uint64_t now_ms;
    struct leat_snapshot *snapshot;
    struct leat_config *config; /* of the snapshot */
    struct leat_farm *farm;     /* the first of it */
    struct leat_shared *shared;
    struct leat_worker *worker;
    struct leat_log log;
    struct wire lines; /* what was logged */
    int broker_fds[RIG_BROKERS_MAX];
    struct side clients[RIG_CLIENTS_MAX], brokers[RIG_BROKERS_MAX];
};

/* Options are pairs "name", "value"; NULL ends them. Some are given: a listener, as many backends
 * as BROKERS, which listen; "listener.KEY" and "backend.KEY" are keys of the first of these. */
void rig_init(struct rig *rig, unsigned brokers, const char *const *options);

/* Ends all and checks that no session and no count is left over. */
void rig_fini(struct rig *rig);

/* One turn of the loop; then all sides take what has come. */
void rig_turn(struct rig *rig);

/* Turns until CONDITION is true. */
#define UNTIL(rig, condition)                                                                      \
    for (int turns_ = 0; !(condition); turns_++)                                                   \
    rig_turn_towards(rig, turns_, #condition)

/* One turn for UNTIL(), after TURNS others; too many fail the test. */
void rig_turn_towards(struct rig *rig, int turns, const char *condition);

/* As many turns as anything takes that is going to happen at once. */
void rig_settle(struct rig *rig);

/* Lets MS pass, in steps of 100 ms, with a few turns in each. */
void rig_pass(struct rig *rig, uint64_t ms);

/* Whether a line with TEXT was logged. */
bool rig_logged(const struct rig *rig, const char *text);

/* Makes clients[I] connect to the listener. */
struct side *rig_connect(struct rig *rig, unsigned i);

/* Starts a session with the other end of clients[I], as if PEER had connected. */
struct side *rig_start(struct rig *rig, unsigned i, const char *peer);

/* Waits until brokers[I] has been connected to. */
struct side *rig_accept(struct rig *rig, unsigned i);

void side_close(struct side *side);
/* Closes in such a way that the peer sees a reset. */
void side_reset(struct side *side);
void side_send(struct side *side, const struct wire *wire);
/* Sends and frees WIRE. */
void side_give(struct side *side, struct wire wire);

/* Waits for exactly WIRE, which it frees. */
void rig_expect(struct rig *rig, struct side *side, struct wire wire);

/* Waits for a method frame on channel 0 and returns its arguments. */
struct wire rig_method(struct rig *rig, struct side *side, uint32_t method);

/* The same, of a method whose arguments do not matter. */
void rig_skip_method(struct rig *rig, struct side *side, uint32_t method);

/* Waits for a Close with CODE whose text has PART in it. */
void rig_expect_close(struct rig *rig, struct side *side, unsigned code, const char *part);

/* The size of the frame that WIRE begins with; SIZE_MAX if that is not known yet. */
size_t wire_frame_size(const struct wire *wire);
/* Drops the first LEN bytes. */
void wire_drop(struct wire *wire, size_t len);

/* What is sent. */
struct wire wire_client_start_ok(const char *user);
struct wire wire_header(void);
struct wire wire_start(bool tells_auth_failure);
struct wire wire_tune(uint32_t id, unsigned channel_max, uint32_t frame_max, unsigned heartbeat_s);
struct wire wire_open(void);
struct wire wire_open_ok(void);
struct wire wire_close(unsigned code, const char *text);
struct wire wire_close_ok(void);
struct wire wire_heartbeat(void);
struct wire wire_body(size_t len);

/* A client's part, up to its Open, with HEARTBEAT_S in its Tune-Ok. */
void rig_client_opens(struct rig *rig, struct side *client, unsigned heartbeat_s);

/* A broker's part: up to and with Tune; up to and with Open-Ok. */
void rig_broker_tunes(struct rig *rig, struct side *broker, unsigned heartbeat_s);
void rig_broker_opens(struct rig *rig, struct side *broker, unsigned heartbeat_s);

/* clients[I] opens a session over brokers[B]. */
void rig_open(struct rig *rig, unsigned i, unsigned b);

#endif
