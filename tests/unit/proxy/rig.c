/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "amqp/method.h"
#include "base/str.h"
#include "proxy/config_keys.h"

static uint64_t tell_time(void *arg)
{
    const struct rig *rig = arg;

    return rig->now_ms;
}

static void keep_line(void *arg, enum leat_log_level level, struct leat_str line)
{
    struct rig *rig = arg;

    (void)level;
    wire_add(&rig->lines, line.ptr, line.len);
    wire_add(&rig->lines, "\n", 1);
}

bool rig_logged(const struct rig *rig, const char *text)
{
    return wire_has(&rig->lines, text);
}

static const struct leat_key *find_key(const struct leat_key_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->keys[i].name, name) == 0)
            return &table->keys[i];
    }
    fail_msg("there is no key %s", name);
    return NULL;
}

/* Sets NAME, without PREFIX, in BASE, which TABLE describes. False if it has no such prefix. */
static bool set_item(void *base, const struct leat_key_table *table, const char *prefix,
                     const char *name, const char *value)
{
    struct leat_error err = {.text = ""};

    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    const struct leat_key *key = find_key(table, name + strlen(prefix));
    if (leat_key_set(base, key, leat_str_of(value), &err) != LEAT_OK)
        fail_msg("%s", err.text);
    return true;
}

static void set(struct rig *rig, const char *name, const char *value)
{
    struct leat_error err = {.text = ""};

    if (set_item(rig->config->listeners.at, &leat_listener_table, "listener.", name, value) ||
        set_item(rig->config->backends.at, &leat_backend_table, "backend.", name, value))
        return;
    if (leat_config_set_option(rig->config, leat_str_of(name), leat_str_of(value), &err) != LEAT_OK)
        fail_msg("%s", err.text);
}

/* Listens on a free port of 127.0.0.1; writes its URL to URL. */
static int listen_here(char url[64])
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    (void)snprintf(url, 64, "amqp://127.0.0.1:%u", ntohs(in.sin_port));
    return fd;
}

static void make_config(struct rig *rig, unsigned brokers, const char *const *options)
{
    struct leat_error err = {.text = ""};
    char url[64];

    assert_int_equal(leat_config_new(&rig->config, &err), LEAT_OK);
    rig->shared->listener_fds[0] = listen_here(url);
    rig->shared->listener_count = 1;
    set(rig, "listen", url);
    for (unsigned i = 0; i < brokers; i++) {
        rig->broker_fds[i] = listen_here(url);
        set(rig, "backend", url);
    }
    for (; options != NULL && *options != NULL; options += 2)
        set(rig, options[0], options[1]);
    rig->shared->listener_addrs[0] = rig->config->listeners.at[0].endpoint.addr;
    if (leat_config_finish(rig->config, &err) != LEAT_OK)
        fail_msg("%s", err.text);
}

void rig_init(struct rig *rig, unsigned brokers, const char *const *options)
{
    struct leat_error err = {.text = ""};

    *rig = (struct rig){.now_ms = 1000000};
    for (unsigned i = 0; i < RIG_BROKERS_MAX; i++)
        rig->broker_fds[i] = rig->brokers[i].fd = -1;
    for (unsigned i = 0; i < RIG_CLIENTS_MAX; i++)
        rig->clients[i].fd = -1;
    rig->shared = calloc(1, sizeof(*rig->shared));
    rig->worker = calloc(1, sizeof(*rig->worker));
    assert_non_null(rig->shared);
    assert_non_null(rig->worker);
    make_config(rig, brokers, options);
    if (leat_snapshot_new(rig->config, NULL, &rig->snapshot, &err) != LEAT_OK)
        fail_msg("%s", err.text);
    rig->farm = rig->snapshot->farms[0];
    rig->log.level = LEAT_LOG_DEBUG;
    rig->log.write = keep_line;
    rig->log.arg = rig;
    rig->shared->log = &rig->log;
    (void)pthread_mutex_init(&rig->shared->snapshot_lock, NULL);
    rig->shared->snapshot = rig->snapshot;
    rig->shared->tracing = rig->config->trace;
    rig->shared->next_id = 1;
    rig->shared->account.limit = rig->config->limit_queue_bytes;
    rig->shared->sessions_max =
        rig->config->limit_sessions != 0 ? rig->config->limit_sessions : 100;
    rig->shared->handshakes_max = rig->config->limit_handshakes;
    rig->shared->workers = rig->worker;
    rig->shared->worker_count = 1;
    assert_int_equal(leat_worker_init(rig->worker, rig->shared, &err), LEAT_OK);
    leat_loop_set_clock(rig->worker->loop, tell_time, rig);
}

void rig_fini(struct rig *rig)
{
    leat_worker_fini(rig->worker);
    assert_int_equal(rig->worker->count.load, 0);
    assert_int_equal(rig->shared->handshakes, 0);
    assert_int_equal(rig->shared->sessions, 0);
    assert_int_equal(rig->shared->account.held, 0);
    assert_int_equal(rig->worker->count.opened, rig->worker->count.closed);
    assert_int_equal(rig->worker->count.accepted, rig->worker->count.closed +
                                                      rig->worker->count.refused +
                                                      rig->worker->count.failed);
    if (!rig->shared->listeners_closed)
        (void)close(rig->shared->listener_fds[0]);
    for (unsigned i = 0; i < RIG_BROKERS_MAX; i++) {
        if (rig->broker_fds[i] >= 0)
            (void)close(rig->broker_fds[i]);
        side_close(&rig->brokers[i]);
    }
    for (unsigned i = 0; i < RIG_CLIENTS_MAX; i++)
        side_close(&rig->clients[i]);
    wire_free(&rig->lines);
    leat_snapshot_unref(rig->snapshot);
    free(rig->worker);
    free(rig->shared);
}

static void take(struct side *side)
{
    uint8_t buf[65536];

    if (side->fd < 0 || side->lazy || side->ended || side->reset)
        return;
    ssize_t n = recv(side->fd, buf, sizeof(buf), MSG_DONTWAIT);
    if (n > 0)
        wire_add(&side->in, buf, (size_t)n);
    else if (n == 0)
        side->ended = true;
    else if (errno != EAGAIN)
        side->reset = true;
}

void rig_turn(struct rig *rig)
{
    leat_loop_turn(rig->worker->loop, 1);
    for (unsigned i = 0; i < RIG_CLIENTS_MAX; i++)
        take(&rig->clients[i]);
    for (unsigned i = 0; i < RIG_BROKERS_MAX; i++)
        take(&rig->brokers[i]);
}

void rig_turn_towards(struct rig *rig, int turns, const char *condition)
{
    if (turns == RIG_TURNS_MAX)
        fail_msg("never: %s", condition);
    rig_turn(rig);
}

void rig_settle(struct rig *rig)
{
    for (int i = 0; i < 20; i++)
        rig_turn(rig);
}

void rig_pass(struct rig *rig, uint64_t ms)
{
    for (uint64_t passed = 0; passed < ms; passed += 100) {
        rig->now_ms += 100;
        for (int i = 0; i < 4; i++)
            rig_turn(rig);
    }
}

struct side *rig_connect(struct rig *rig, unsigned i)
{
    const struct leat_addr *addr = &rig->config->listeners.at[0].endpoint.addr;
    struct side *side = &rig->clients[i];

    side_close(side);
    side->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(side->fd >= 0);
    assert_int_equal(connect(side->fd, (const struct sockaddr *)&addr->ss, addr->len), 0);
    return side;
}

struct side *rig_start(struct rig *rig, unsigned i, const char *peer)
{
    struct leat_addr addr;
    int fds[2];

    side_close(&rig->clients[i]);
    assert_int_equal(leat_addr_parse(leat_str_of(peer), 0, &addr, NULL), LEAT_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    rig->clients[i].fd = fds[0];
    rig->worker->count.load++;
    rig->worker->count.accepted++;
    rig->shared->handshakes++;
    leat_session_start(rig->worker, fds[1], 0, &addr);
    return &rig->clients[i];
}

struct side *rig_accept(struct rig *rig, unsigned i)
{
    struct side *side = &rig->brokers[i];

    side_close(side);
    UNTIL(rig, (side->fd = accept4(rig->broker_fds[i], NULL, NULL, SOCK_CLOEXEC)) >= 0);
    return side;
}

void side_close(struct side *side)
{
    if (side->fd >= 0)
        (void)close(side->fd);
    wire_free(&side->in);
    *side = (struct side){.fd = -1};
}

void side_reset(struct side *side)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    assert_int_equal(setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    side_close(side);
}

void side_send(struct side *side, const struct wire *wire)
{
    assert_int_equal(send(side->fd, wire->buf, wire->len, MSG_NOSIGNAL), wire->len);
}

void side_give(struct side *side, struct wire wire)
{
    side_send(side, &wire);
    wire_free(&wire);
}

void wire_drop(struct wire *wire, size_t len)
{
    memmove(wire->buf, wire->buf + len, wire->len - len);
    wire->len -= len;
}

void rig_expect(struct rig *rig, struct side *side, struct wire wire)
{
    UNTIL(rig, side->in.len >= wire.len);
    assert_memory_equal(side->in.buf, wire.buf, wire.len);
    wire_drop(&side->in, wire.len);
    wire_free(&wire);
}

size_t wire_frame_size(const struct wire *wire)
{
    const uint8_t *b = wire->buf;

    if (wire->len < 7)
        return SIZE_MAX;
    return ((size_t)b[3] << 24 | (size_t)b[4] << 16 | (size_t)b[5] << 8 | b[6]) + 8;
}

struct wire rig_method(struct rig *rig, struct side *side, uint32_t method)
{
    struct wire arguments = {0}, expected = {0};

    UNTIL(rig, side->in.len >= wire_frame_size(&side->in));
    size_t size = wire_frame_size(&side->in);
    assert_int_equal(side->in.buf[0], 1);
    assert_int_equal(side->in.buf[size - 1], 0xCE);
    wire_u32(&expected, method);
    assert_memory_equal(side->in.buf + 7, expected.buf, 4);
    wire_add(&arguments, side->in.buf + 11, size - 12);
    wire_drop(&side->in, size);
    wire_free(&expected);
    return arguments;
}

void rig_skip_method(struct rig *rig, struct side *side, uint32_t method)
{
    struct wire arguments = rig_method(rig, side, method);

    wire_free(&arguments);
}

void rig_expect_close(struct rig *rig, struct side *side, unsigned code, const char *part)
{
    struct wire close = rig_method(rig, side, LEAT_AMQP_CONNECTION_CLOSE);

    assert_int_equal(close.buf[0] << 8 | close.buf[1], code);
    if (!wire_has(&close, part))
        fail_msg("\"%.*s\" lacks \"%s\"", close.buf[2], (const char *)close.buf + 3, part);
    wire_free(&close);
}

/* What is sent. */

static struct wire method(uint32_t id, struct wire arguments)
{
    struct wire frame = {0};

    wire_method(&frame, 0, id, &arguments);
    wire_free(&arguments);
    return frame;
}

struct wire wire_header(void)
{
    struct wire wire = {0};

    wire_add(&wire, "AMQP\0\0\x09\x01", 8);
    return wire;
}

struct wire wire_client_start_ok(const char *user)
{
    struct wire arguments = {0}, table = {0}, response = {0};

    wire_text(&table, "product", "test");
    wire_text(&table, "connection_name", "till 7");
    wire_text(&table, "leat_client", "forged");
    wire_u8(&response, 0);
    wire_add(&response, user, strlen(user) + 1);
    wire_add(&response, "secret", 6);
    wire_str32(&arguments, table.buf, table.len);
    wire_str8(&arguments, "PLAIN");
    wire_str32(&arguments, response.buf, response.len);
    wire_str8(&arguments, "en_US");
    wire_free(&table);
    wire_free(&response);
    return method(LEAT_AMQP_CONNECTION_START_OK, arguments);
}

struct wire wire_start(bool tells_auth_failure)
{
    struct wire arguments = {0}, table = {0}, capabilities = {0};

    if (tells_auth_failure)
        wire_field(&capabilities, "authentication_failure_close", 't', "\1", 1);
    wire_str8(&table, "capabilities");
    wire_u8(&table, 'F');
    wire_str32(&table, capabilities.buf, capabilities.len);
    wire_text(&table, "product", "TestMQ");
    wire_u8(&arguments, 0);
    wire_u8(&arguments, 9);
    wire_str32(&arguments, table.buf, table.len);
    wire_str32(&arguments, "AMQPLAIN PLAIN", 14);
    wire_str32(&arguments, "en_US", 5);
    wire_free(&table);
    wire_free(&capabilities);
    return method(LEAT_AMQP_CONNECTION_START, arguments);
}

struct wire wire_tune(uint32_t id, unsigned channel_max, uint32_t frame_max, unsigned heartbeat_s)
{
    struct wire arguments = {0};

    wire_u16(&arguments, channel_max);
    wire_u32(&arguments, frame_max);
    wire_u16(&arguments, heartbeat_s);
    return method(id, arguments);
}

struct wire wire_open(void)
{
    struct wire arguments = {0};

    wire_str8(&arguments, "shop");
    wire_str8(&arguments, "");
    wire_u8(&arguments, 0);
    return method(LEAT_AMQP_CONNECTION_OPEN, arguments);
}

struct wire wire_open_ok(void)
{
    struct wire arguments = {0};

    wire_str8(&arguments, "");
    return method(LEAT_AMQP_CONNECTION_OPEN_OK, arguments);
}

struct wire wire_close(unsigned code, const char *text)
{
    struct wire frame = {0};

    wire_add_close(&frame, code, text);
    return frame;
}

struct wire wire_close_ok(void)
{
    return method(LEAT_AMQP_CONNECTION_CLOSE_OK, (struct wire){0});
}

struct wire wire_heartbeat(void)
{
    struct wire frame = {0};

    wire_frame(&frame, 8, 0, NULL, 0);
    return frame;
}

struct wire wire_body(size_t len)
{
    struct wire frame = {0};
    uint8_t *payload = malloc(len + 1);

    assert_non_null(payload);
    for (size_t i = 0; i < len; i++)
        payload[i] = (uint8_t)(i * 7);
    wire_frame(&frame, 3, 1, payload, len);
    free(payload);
    return frame;
}

/* Both parts of the handshake. */

void rig_client_opens(struct rig *rig, struct side *client, unsigned heartbeat_s)
{
    side_give(client, wire_header());
    rig_skip_method(rig, client, LEAT_AMQP_CONNECTION_START);
    side_give(client, wire_client_start_ok("guest"));
    rig_skip_method(rig, client, LEAT_AMQP_CONNECTION_TUNE);
    side_give(client, wire_tune(LEAT_AMQP_CONNECTION_TUNE_OK, 100, 131072, heartbeat_s));
    side_give(client, wire_open());
}

void rig_broker_tunes(struct rig *rig, struct side *broker, unsigned heartbeat_s)
{
    rig_expect(rig, broker, wire_header());
    side_give(broker, wire_start(true));
    rig_skip_method(rig, broker, LEAT_AMQP_CONNECTION_START_OK);
    side_give(broker, wire_tune(LEAT_AMQP_CONNECTION_TUNE, 2047, 131072, heartbeat_s));
    rig_skip_method(rig, broker, LEAT_AMQP_CONNECTION_TUNE_OK);
}

void rig_broker_opens(struct rig *rig, struct side *broker, unsigned heartbeat_s)
{
    rig_broker_tunes(rig, broker, heartbeat_s);
    rig_expect(rig, broker, wire_open());
    side_give(broker, wire_open_ok());
}

void rig_open(struct rig *rig, unsigned i, unsigned b)
{
    struct side *client = rig_connect(rig, i);

    rig_client_opens(rig, client, 0);
    rig_broker_opens(rig, rig_accept(rig, b), 0);
    rig_expect(rig, client, wire_open_ok());
}
