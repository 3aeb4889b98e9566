/*
 * Tests of proxy/control.h: sessions as they are shown, followed, traced and ended.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "control_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "amqp/method.h"
#include "base/mem.h"

static size_t count_sessions(struct asker *asker, const char *request)
{
    json_t *answer = asker_ask(asker, request);
    size_t count = json_array_size(json_object_get(answer, "sessions"));

    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    return count;
}

static json_int_t number(const json_t *value, const char *path)
{
    assert_true(json_is_integer(member(value, path)));
    return json_integer_value(member(value, path));
}

static void a_session_is_shown_with_what_is_known(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    char address[LEAT_ADDR_TEXT_MAX + 8];
    json_t *answer, *shown;

    rig_open(&c->rig, 0, 0);
    side_give(&c->rig.clients[0], wire_body(100));
    UNTIL(&c->rig, c->rig.brokers[0].in.len == 108);
    c->rig.now_ms += 7500;
    answer = asker_ask(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"show\"}");
    shown = json_object_get(answer, "session");
    assert_int_equal(number(shown, "id"), 1);
    assert_text(json_incref(shown), "state", "open");
    assert_text(json_incref(shown), "user", "guest");
    assert_text(json_incref(shown), "vhost", "shop");
    assert_text(json_incref(shown), "farm", "default");
    assert_text(json_incref(shown), "connection_name", "till 7");
    assert_text(json_incref(shown), "backend", c->rig.config->backends.at[0].name);
    assert_text(json_incref(shown), "backend_address", c->rig.snapshot->backends[0].text);
    (void)snprintf(address, sizeof(address), "amqp://");
    (void)leat_addr_text(&c->rig.config->listeners.at[0].endpoint.addr, address + 7);
    assert_text(json_incref(shown), "listener", address);
    assert_int_equal(number(shown, "seconds"), 7);
    assert_int_equal(number(shown, "frame_max"), 131072);
    assert_int_equal(number(shown, "channel_max"), 100);
    assert_int_equal(number(shown, "bytes_in"), 108);
    assert_int_equal(number(shown, "frames_in"), 1);
    assert_int_equal(number(shown, "heartbeat_s.client"), 0);
    assert_true(json_is_null(member(shown, "tls")));
    assert_true(json_is_null(member(shown, "waits")));
    json_decref(answer);
    asker_close(&asker);
}

static void what_is_not_known_yet_is_null(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    static const char *const unknown[] = {"user",  "vhost",           "farm",      "backend",
                                          "waits", "backend_address", "frame_max", "channel_max",
                                          "tls",   "backend_tls"};

    (void)rig_start(&c->rig, 0, "192.0.2.7:4711");
    json_t *answer = asker_ask(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"show\"}");
    const json_t *shown = json_object_get(answer, "session");
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        assert_true(json_is_null(member(shown, unknown[i])));
    assert_null(member(shown, "connection_name"));
    assert_true(json_is_null(member(shown, "heartbeat_s.client")));
    assert_text(json_incref(member(answer, "session")), "state", "handshake");
    assert_text(json_incref(member(answer, "session")), "client", "192.0.2.7:4711");
    json_decref(answer);
    asker_close(&asker);
}

static void filters_all_have_to_match(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    static const struct {
        const char *filter;
        size_t matches;
    } cases[] = {
        {"\"vhost\":\"shop\"", 1},
        {"\"vhost\":\"sho\"", 0},
        {"\"user\":\"guest\"", 1},
        {"\"user\":\"\\\\x67uest\"", 0},
        {"\"state\":\"open\"", 1},
        {"\"state\":\"handshake\"", 1},
        {"\"state\":\"ending\"", 0},
        {"\"client\":\"192.0.2.7:4711\"", 1},
        {"\"client\":\"192.0.2.7\"", 1},
        {"\"client\":\"192.0.2\"", 0},
        {"\"client\":\"192.0.2.7:4712\"", 0},
        {"\"client\":\"192.0.2.7\",\"vhost\":\"shop\"", 0},
        {"\"client\":\"127.0.0.1\",\"vhost\":\"shop\",\"user\":\"guest\",\"state\":\"open\"", 1},
        {"\"backend\":\"nowhere\"", 0},
        {"\"listener\":\"amqps://127.0.0.1:1\"", 0},
    };
    char request[LEAT_ENDPOINT_TEXT_MAX + 60], addr[LEAT_ADDR_TEXT_MAX];

    rig_open(&c->rig, 0, 0);
    (void)rig_start(&c->rig, 1, "192.0.2.7:4711");
    assert_int_equal(count_sessions(&asker, "{\"verb\":\"sessions\"}"), 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(request, sizeof(request), "{\"verb\":\"sessions\",%s}", cases[i].filter);
        if (count_sessions(&asker, request) != cases[i].matches)
            fail_msg("%s", cases[i].filter);
    }
    (void)snprintf(request, sizeof(request), "{\"verb\":\"sessions\",\"backend\":\"%s\"}",
                   c->rig.snapshot->backends[0].text);
    assert_int_equal(count_sessions(&asker, request), 1);
    (void)leat_addr_text(&c->rig.config->listeners.at[0].endpoint.addr, addr);
    (void)snprintf(request, sizeof(request), "{\"verb\":\"sessions\",\"listener\":\"%s\"}", addr);
    assert_int_equal(count_sessions(&asker, request), 2);
    (void)snprintf(request, sizeof(request), "{\"verb\":\"sessions\",\"listener\":\"amqp://%s\"}",
                   addr);
    assert_int_equal(count_sessions(&asker, request), 2);
    asker_close(&asker);
}

#define MANY 1500u

/* Starts MANY sessions of clients that say nothing; their ends go to FDS. */
static void start_many(struct control_rig *c, int fds[MANY])
{
    for (unsigned i = 0; i < MANY; i++) {
        (void)rig_start(&c->rig, 2, "192.0.2.7:4711");
        fds[i] = c->rig.clients[2].fd;
        c->rig.clients[2].fd = -1;
    }
}

static void end_many(struct control_rig *c, const int fds[MANY])
{
    for (unsigned i = 0; i < MANY; i++)
        (void)close(fds[i]);
    UNTIL(&c->rig, c->rig.worker->count.load == 0);
}

static void many_sessions_are_listed_in_pieces(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c), other = asker_open(c);
    int fds[MANY];

    start_many(c, fds);
    /* Nobody reads: the rest of the list has to wait, and what is listed costs no memory. */
    asker_send(&asker, "{\"verb\":\"sessions\"}\n");
    for (int i = 0; i < 20; i++)
        rig_settle(&c->rig);
    assert_false(leat_list_is_empty(&c->rig.worker->cursors));
    /* The session that would be next goes away, and so do its neighbours. */
    const struct leat_cursor *cursor =
        LEAT_LIST_OBJECT(c->rig.worker->cursors.next, struct leat_cursor, link);
    uint64_t next = LEAT_LIST_OBJECT(cursor->next, struct leat_session, link)->id;
    for (uint64_t id = next - 1; id < next + 3; id++) {
        char request[80];
        (void)snprintf(request, sizeof(request),
                       "{\"verb\":\"session\",\"id\":%u,\"action\":\"kill\"}", (unsigned)id);
        asker_does(&other, request);
    }
    UNTIL(&c->rig, c->rig.worker->count.load == MANY - 4);
    json_t *answer = asker_line(&asker);
    const json_t *sessions = json_object_get(answer, "sessions");
    assert_int_equal(json_array_size(sessions), MANY - 3);
    json_int_t last = 0;
    for (size_t i = 0; i < json_array_size(sessions); i++) {
        json_int_t id = number(json_array_get(sessions, i), "id");
        assert_true(id > last);
        last = id;
    }
    json_decref(answer);
    assert_true(leat_list_is_empty(&c->rig.worker->cursors));
    end_many(c, fds);
    asker_close(&asker);
    asker_close(&other);
}

static void who_leaves_in_the_middle_of_a_list_leaves_nothing(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    int fds[MANY];

    start_many(c, fds);
    asker_send(&asker, "{\"verb\":\"sessions\"}\n");
    rig_settle(&c->rig);
    assert_false(leat_list_is_empty(&c->rig.worker->cursors));
    asker_close(&asker);
    rig_settle(&c->rig);
    assert_true(leat_list_is_empty(&c->rig.worker->cursors));
    end_many(c, fds);
}

static void a_filter_that_matches_few_is_answered(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    int fds[MANY];

    start_many(c, fds);
    rig_open(&c->rig, 0, 0);
    assert_int_equal(count_sessions(&asker, "{\"verb\":\"sessions\",\"user\":\"guest\"}"), 1);
    assert_int_equal(count_sessions(&asker, "{\"verb\":\"sessions\",\"user\":\"none\"}"), 0);
    side_close(&c->rig.clients[0]);
    side_close(&c->rig.brokers[0]);
    end_many(c, fds);
    asker_close(&asker);
}

static void assert_event(struct asker *asker, const char *event, const char *path,
                         const char *expected)
{
    json_t *line = asker_line(asker);

    assert_text(json_incref(line), "event", event);
    assert_non_null(member(line, "time"));
    assert_text(line, path, expected);
}

static void who_follows_is_told_what_matches(void **state)
{
    struct control_rig *c = *state;
    struct asker all = asker_open(c), shop = asker_open(c), other = asker_open(c);

    json_t *answer = asker_ask(&all, "{\"verb\":\"sessions\",\"follow\":true}");
    assert_true(json_is_true(json_object_get(answer, "following")));
    json_decref(answer);
    asker_does(&shop, "{\"verb\":\"sessions\",\"follow\":true,\"vhost\":\"shop\"}");
    asker_does(&other, "{\"verb\":\"sessions\",\"follow\":true,\"vhost\":\"other\"}");
    rig_open(&c->rig, 0, 0);
    assert_event(&all, "opened", "session.vhost", "shop");
    assert_event(&shop, "opened", "session.user", "guest");
    side_close(rig_connect(&c->rig, 1));
    assert_event(&all, "ended", "how", "failed");
    side_give(&c->rig.clients[0], wire_close(200, "Goodbye"));
    rig_skip_method(&c->rig, &c->rig.brokers[0], LEAT_AMQP_CONNECTION_CLOSE);
    side_give(&c->rig.brokers[0], wire_close_ok());
    json_t *ended = asker_line(&all);
    assert_text(json_incref(ended), "how", "closed");
    assert_text(json_incref(ended), "by", "client");
    assert_text(ended, "reason", "it closed with 200 Goodbye");
    assert_event(&shop, "ended", "how", "closed");
    rig_settle(&c->rig);
    assert_int_equal(recv(other.fd, (char[1]){0}, 1, MSG_DONTWAIT), -1);
    asker_close(&all);
    rig_settle(&c->rig);
    assert_false(leat_list_is_empty(&c->rig.worker->watches));
    asker_close(&shop);
    asker_close(&other);
    rig_settle(&c->rig);
    assert_true(leat_list_is_empty(&c->rig.worker->watches));
}

static void a_refusal_is_told_with_its_code(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    struct side *client;

    asker_does(&asker, "{\"verb\":\"sessions\",\"follow\":true}");
    client = rig_start(&c->rig, 0, "192.0.2.7:4711"); /* guest may not come from there */
    rig_client_opens(&c->rig, client, 0);
    json_t *ended = asker_line(&asker);
    assert_int_equal(number(ended, "code"), 403);
    assert_text(json_incref(ended), "by", "leat");
    assert_text(ended, "how", "refused");
    asker_close(&asker);
}

/* A session's frames, from where the trace begins to the session's end. */
static void a_trace_has_every_frame_and_the_end(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);

    rig_open(&c->rig, 0, 0);
    json_t *answer = asker_ask(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"trace\"}");
    assert_int_equal(number(answer, "tracing"), 1);
    json_decref(answer);
    side_give(&c->rig.clients[0], wire_body(24));
    json_t *frame = asker_line(&asker);
    assert_text(json_incref(frame), "event", "frame");
    assert_text(json_incref(frame), "from", "client");
    assert_text(json_incref(frame), "to", "broker");
    assert_text(json_incref(frame), "leg", "client");
    assert_text(json_incref(frame), "method", "body");
    assert_int_equal(number(frame, "channel"), 1);
    assert_int_equal(number(frame, "size"), 24);
    json_decref(frame);
    assert_false(rig_logged(&c->rig, "client->broker")); /* the log has not asked for it */
    side_give(&c->rig.brokers[0], wire_heartbeat());
    frame = asker_line(&asker);
    assert_text(json_incref(frame), "method", "heartbeat");
    assert_text(frame, "to", "leat"); /* it goes no further */
    side_close(&c->rig.clients[0]);
    assert_event(&asker, "ended", "session.state", "open");
    assert_null(asker_line(&asker));
    asker_close(&asker);
}

/* The frames of the handshake too, though the trace begins inside one. */
static void a_trace_may_begin_inside_a_frame(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    struct side *client = rig_start(&c->rig, 0, "127.0.0.1:4711");
    struct wire start_ok = wire_client_start_ok("guest");

    side_give(client, wire_header());
    rig_skip_method(&c->rig, client, LEAT_AMQP_CONNECTION_START);
    assert_int_equal(send(client->fd, start_ok.buf, 20, 0), 20);
    rig_settle(&c->rig);
    asker_does(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"trace\"}");
    assert_int_equal(send(client->fd, start_ok.buf + 20, start_ok.len - 20, 0), start_ok.len - 20);
    wire_free(&start_ok);
    assert_event(&asker, "frame", "method", "connection.tune");
    side_give(client, wire_tune(LEAT_AMQP_CONNECTION_TUNE_OK, 100, 131072, 0));
    assert_event(&asker, "frame", "method", "connection.tune-ok");
    side_give(client, wire_open());
    assert_event(&asker, "frame", "method", "connection.open");
    rig_broker_opens(&c->rig, rig_accept(&c->rig, 0), 0);
    assert_event(&asker, "frame", "method", "connection.start");
    assert_event(&asker, "frame", "method", "connection.start-ok");
    assert_event(&asker, "frame", "from", "broker");
    assert_event(&asker, "frame", "from", "leat");
    asker_close(&asker);
    rig_settle(&c->rig);
    const struct leat_session *session =
        LEAT_LIST_OBJECT(c->rig.worker->sessions.next, struct leat_session, link);
    assert_false(session->trace); /* nobody watches any more */
    assert_false(session->client.relay.trace);
}

static void who_does_not_read_a_trace_loses_lines(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    struct wire frames = {0};
    unsigned long told = 0, lost = 0;

    rig_open(&c->rig, 0, 0);
    asker_does(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"trace\"}");
    for (int i = 0; i < 8000; i++) {
        struct wire one = wire_body(0);
        wire_add(&frames, one.buf, one.len);
        wire_free(&one);
    }
    /* None waits for who does not read. */
    (void)fcntl(c->rig.clients[0].fd, F_SETFL, O_NONBLOCK);
    for (size_t at = 0; at < frames.len;) {
        ssize_t n = send(c->rig.clients[0].fd, frames.buf + at, frames.len - at, MSG_NOSIGNAL);
        at += n > 0 ? (size_t)n : 0;
        rig_turn(&c->rig);
    }
    UNTIL(&c->rig, c->rig.brokers[0].in.len == frames.len);
    wire_free(&frames);
    /* All come or are counted: with the end, which always fits, the last count comes. */
    side_close(&c->rig.clients[0]);
    for (json_t *line; (line = asker_line(&asker)) != NULL; json_decref(line)) {
        const char *event = json_string_value(json_object_get(line, "event"));
        told += strcmp(event, "frame") == 0;
        lost += strcmp(event, "lost") == 0 ? (unsigned long)number(line, "lines") : 0;
    }
    assert_int_equal(told + lost, 8000);
    assert_true(lost > 0 && told > 1000);
    asker_close(&asker);
}

static void a_close_waits_for_the_end_of_a_frame(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    struct side *client = &c->rig.clients[0], *broker = &c->rig.brokers[0];
    struct wire frame = wire_body(50), last = wire_body(10);

    rig_open(&c->rig, 0, 0);
    assert_int_equal(send(broker->fd, frame.buf, 30, 0), 30);
    UNTIL(&c->rig, client->in.len == 30);
    asker_send(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"close\"}\n");
    rig_pass(&c->rig, 500);
    assert_int_equal(recv(asker.fd, (char[1]){0}, 1, MSG_DONTWAIT), -1);
    assert_int_equal(client->in.len, 30);
    assert_int_equal(send(broker->fd, frame.buf + 30, frame.len - 30, 0), frame.len - 30);
    rig_pass(&c->rig, 200);
    json_t *answer = asker_line(&asker);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    rig_expect(&c->rig, client, frame);
    rig_expect_close(&c->rig, client, 320, "CONNECTION_FORCED - closed by the operator");
    side_send(client, &last);
    side_give(client, wire_close_ok());
    rig_expect(&c->rig, broker, last);
    rig_skip_method(&c->rig, broker, LEAT_AMQP_CONNECTION_CLOSE);
    side_give(broker, wire_close_ok());
    UNTIL(&c->rig,
          rig_logged(&c->rig, "closed by=leat code=320 reason=\"closed by the operator\""));
    asker_close(&asker);
}

static void a_client_that_takes_nothing_cannot_be_closed(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    struct wire frame = wire_body(50);

    rig_open(&c->rig, 0, 0);
    assert_int_equal(send(c->rig.brokers[0].fd, frame.buf, 30, 0), 30);
    UNTIL(&c->rig, c->rig.clients[0].in.len == 30);
    wire_free(&frame);
    asker_send(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"close\"}\n");
    for (int i = 0; i < 25; i++)
        rig_pass(&c->rig, 100);
    assert_text(asker_line(&asker), "kind", "failed");
    asker_close(&asker);
}

/* leat's Close and the answers to it go no further than to leat. */
static void a_close_by_leat_is_traced_as_its_own(void **state)
{
    struct control_rig *c = *state;
    struct asker trace = asker_open(c), asker = asker_open(c);
    struct side *client = &c->rig.clients[0], *broker = &c->rig.brokers[0];

    rig_open(&c->rig, 0, 0);
    asker_does(&trace, "{\"verb\":\"session\",\"id\":1,\"action\":\"trace\"}");
    asker_does(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"close\"}");
    rig_skip_method(&c->rig, client, LEAT_AMQP_CONNECTION_CLOSE);
    side_give(client, wire_close_ok());
    rig_skip_method(&c->rig, broker, LEAT_AMQP_CONNECTION_CLOSE);
    side_give(broker, wire_close_ok());
    assert_event(&trace, "frame", "to", "client");
    assert_event(&trace, "frame", "to", "leat");
    assert_event(&trace, "frame", "to", "broker");
    assert_event(&trace, "frame", "to", "leat");
    json_t *ended = asker_line(&trace);
    assert_int_equal(number(ended, "code"), 320);
    assert_text(ended, "by", "leat");
    asker_refused(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"trace\"}", "failed",
                  "session 1 is ending already");
    asker_close(&trace);
    asker_close(&asker);
}

static void who_stops_waiting_for_a_close_leaves_nothing(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    struct wire frame = wire_body(50);

    rig_open(&c->rig, 0, 0);
    assert_int_equal(send(c->rig.brokers[0].fd, frame.buf, 30, 0), 30);
    UNTIL(&c->rig, c->rig.clients[0].in.len == 30);
    wire_free(&frame);
    asker_send(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"close\"}\n");
    rig_settle(&c->rig);
    asker_close(&asker);
    rig_pass(&c->rig, 500);
    assert_false(rig_logged(&c->rig, "operator"));
}

static void a_killed_session_is_gone_at_once(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);

    rig_open(&c->rig, 0, 0);
    asker_does(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"kill\"}");
    UNTIL(&c->rig, c->rig.clients[0].ended && c->rig.brokers[0].ended);
    assert_int_equal(c->rig.clients[0].in.len, 0);
    assert_true(rig_logged(&c->rig, "by=leat reason=\"killed by the operator\""));
    asker_refused(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"kill\"}", "not_found",
                  "there is no session 1");
    asker_refused(&asker, "{\"verb\":\"session\",\"id\":1,\"action\":\"trace\"}", "not_found",
                  "there is no session 1");
    asker_refused(&asker, "{\"verb\":\"session\",\"id\":-1,\"action\":\"show\"}", "not_found",
                  "there is no session -1");
    asker_close(&asker);
}

static void a_backend_is_shown_as_it_fared(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    json_t *answer, *shown;

    answer = asker_ask(&asker, "{\"verb\":\"backends\"}");
    shown = json_array_get(json_object_get(answer, "backends"), 0);
    assert_text(json_incref(shown), "state", "unknown");
    assert_true(json_is_null(member(shown, "product")));
    json_decref(answer);

    rig_client_opens(&c->rig, rig_connect(&c->rig, 0), 0);
    side_close(rig_accept(&c->rig, 0)); /* it fails, and there is no other */
    rig_expect_close(&c->rig, &c->rig.clients[0], 320, "no broker");
    answer = asker_ask(&asker, "{\"verb\":\"backends\"}");
    shown = json_array_get(json_object_get(answer, "backends"), 0);
    assert_text(json_incref(shown), "state", "back-off");
    assert_int_equal(number(shown, "retry_in_s"), 5);
    assert_int_equal(number(shown, "failures"), 1);
    assert_non_null(json_string_value(member(shown, "last_failure.reason")));
    json_decref(answer);

    rig_open(&c->rig, 1, 0);
    answer = asker_ask(&asker, "{\"verb\":\"backends\"}");
    shown = json_array_get(json_object_get(answer, "backends"), 0);
    assert_text(json_incref(shown), "state", "up");
    assert_text(json_incref(shown), "product", "TestMQ");
    assert_int_equal(number(shown, "sessions"), 1);
    assert_int_equal(number(shown, "opened"), 1);
    assert_int_equal(json_array_size(member(shown, "farms")), 1);
    json_decref(answer);

    asker_does(&asker, "{\"verb\":\"session\",\"id\":2,\"action\":\"kill\"}");
    answer = asker_ask(&asker, "{\"verb\":\"backends\"}");
    assert_int_equal(number(json_array_get(json_object_get(answer, "backends"), 0), "sessions"), 0);
    json_decref(answer);
    asker_close(&asker);
}

/* With the first, second, ... allocation failing, while a session is listed, shown and traced: who
 * asks is told, or loses the connection or a line; the session goes on. */
static void running_out_of_memory_costs_no_session(void **state)
{
    static const char *const requests[] = {
        "{\"verb\":\"sessions\"}\n",
        "{\"verb\":\"sessions\",\"vhost\":\"\\\\x00\"}\n",
        "{\"verb\":\"session\",\"id\":1,\"action\":\"show\"}\n",
        "{\"verb\":\"session\",\"id\":1,\"action\":\"trace\"}\n",
        "{\"verb\":\"session\",\"id\":1,\"action\":\"close\"}\n",
    };
    struct control_rig *c = *state;
    struct wire frame = wire_body(5);

    rig_open(&c->rig, 0, 0);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        for (unsigned n = 1; n < 120; n++) {
            struct asker asker = asker_open(c);
            rig_turn(&c->rig);
            leat_mem_fail_after(n);
            asker_send(&asker, requests[i]);
            for (int turns = 0; turns < 5; turns++)
                rig_turn(&c->rig);
            /* A frame of the other side's costs its session no memory. */
            if (i + 1 < sizeof(requests) / sizeof(requests[0]))
                side_send(&c->rig.brokers[0], &frame);
            for (int turns = 0; turns < 5; turns++)
                rig_turn(&c->rig);
            leat_mem_fail_after(0);
            json_decref(asker_line(&asker));
            asker_close(&asker);
        }
    }
    wire_free(&frame);
    UNTIL(&c->rig, c->rig.clients[0].in.len > 4 * 119 * 13);
    wire_drop(&c->rig.clients[0].in, (size_t)4 * 119 * 13);
    rig_expect_close(&c->rig, &c->rig.clients[0], 320, "operator");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, control_rig_setup, control_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_session_is_shown_with_what_is_known),
        TEST(what_is_not_known_yet_is_null),
        TEST(filters_all_have_to_match),
        TEST(many_sessions_are_listed_in_pieces),
        TEST(who_leaves_in_the_middle_of_a_list_leaves_nothing),
        TEST(a_filter_that_matches_few_is_answered),
        TEST(who_follows_is_told_what_matches),
        TEST(a_refusal_is_told_with_its_code),
        TEST(a_trace_has_every_frame_and_the_end),
        TEST(a_trace_may_begin_inside_a_frame),
        TEST(who_does_not_read_a_trace_loses_lines),
        TEST(a_close_waits_for_the_end_of_a_frame),
        TEST(a_client_that_takes_nothing_cannot_be_closed),
        TEST(a_close_by_leat_is_traced_as_its_own),
        TEST(who_stops_waiting_for_a_close_leaves_nothing),
        TEST(a_killed_session_is_gone_at_once),
        TEST(a_backend_is_shown_as_it_fared),
        TEST(running_out_of_memory_costs_no_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
