/*
 * Tests of tls/stream.h: reading and writing, and every way in which a stream ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/err.h>

#include "base/mem.h"
#include "stream_side.h"

#define BULK (4u * 1024u * 1024u)

static void assert_got(const struct test_user *user, const void *want, size_t len)
{
    assert_int_equal(user->got_len, len);
    assert_memory_equal(user->got, want, len);
}

/* Writes more of DATA, in parts of random sizes, while little is queued. */
static size_t write_some(struct test_user *user, uint8_t *data, size_t at)
{
    while (at < BULK && leat_stream_queued(user->stream) < 100000) {
        struct iovec parts[8];
        int count = 1 + (int)test_random(&user->seed, 8);
        for (int i = 0; i < count; i++) {
            size_t len = test_random(&user->seed, i % 3 == 0 ? 40000 : 300);
            len = len < BULK - at ? len : BULK - at;
            parts[i] = (struct iovec){.iov_base = data + at, .iov_len = len};
            at += len;
        }
        assert_int_equal(leat_stream_write(user->stream, parts, count), LEAT_OK);
    }
    return at;
}

static void bulk_goes_both_ways_at_once(void **state)
{
    struct fixture *f = *state;
    uint8_t *data = malloc(BULK);
    size_t up = 0, down = 0;
    test_fill(data, BULK, 7);
    side_open_both(f);
    f->server.cap = 0;
    f->client.cap = 0;
    f->client.seed = 99;
    while (f->server.got_len < BULK || f->client.got_len < BULK) {
        up = write_some(&f->client, data, up);
        down = write_some(&f->server, data, down);
        test_turn(f->loop);
    }
    assert_got(&f->server, data, BULK);
    assert_got(&f->client, data, BULK);
    assert_string_equal(leat_stream_tls(f->client.stream).version, "TLSv1.3");
    assert_string_equal(leat_stream_tls(f->server.stream).cipher, "TLS_AES_128_GCM_SHA256");
    free(data);
}

/* Queues COUNT records of SIZE bytes at the peer; returns how many bytes DATA then has. */
static size_t peer_records(struct fixture *f, uint8_t *data, int count, size_t size)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        test_fill(data + total, size, (uint32_t)i);
        raw_tls_write(&f->raw, data + total, size);
        total += size;
    }
    return total;
}

/* Carries ciphertext to the stream in pieces of CUT bytes, 0: random, through the handshake and
 * some records. */
static void run_cut(struct fixture *f, size_t cut)
{
    static uint8_t data[20000];
    size_t total = 0;
    uint32_t seed = 5;
    side_accept_raw(f, test_unix_pair);
    f->server.cap = 777;
    for (bool written = false; f->server.got_len < total || !written;) {
        (void)raw_tls_receive(&f->raw);
        ERR_clear_error();
        if (SSL_do_handshake(f->raw.ssl) == 1 && !written) {
            total = peer_records(f, data, 30, 40);
            total += peer_records(f, data + total, 1, 16384);
            written = true;
        }
        (void)raw_tls_send(&f->raw, cut != 0 ? cut : 1 + test_random(&seed, 500));
        test_poll(f->loop);
    }
    assert_got(&f->server, data, total);
    assert_int_equal(f->server.told[TEST_OPENED], 1);
    assert_int_equal(f->server.records, 31);
}

static void ciphertext_may_come_whole(void **state)
{
    run_cut(*state, 65536);
}

static void ciphertext_may_come_byte_by_byte(void **state)
{
    run_cut(*state, 1);
}

static void ciphertext_may_be_cut_anywhere(void **state)
{
    run_cut(*state, 0);
}

static void the_first_data_may_come_with_the_handshake(void **state)
{
    struct fixture *f = *state;
    side_accept_raw(f, test_unix_pair);
    while (SSL_do_handshake(f->raw.ssl) != 1) {
        ERR_clear_error();
        if (BIO_ctrl_pending(f->raw.out) > 0 && !SSL_is_init_finished(f->raw.ssl))
            side_send_all(f);
        test_poll(f->loop);
        (void)raw_tls_receive(&f->raw);
    }
    assert_int_equal(f->server.told[TEST_OPENED], 0);
    raw_tls_write(&f->raw, "hello", 5);
    assert_true(raw_tls_send(&f->raw, SIZE_MAX) > 0);
    assert_int_equal(BIO_ctrl_pending(f->raw.out), 0);
    TURN_UNTIL(f->loop, f->server.got_len == 5);
    assert_got(&f->server, "hello", 5);
}

/* One recv brings many records, and one readable event reads them all. */
static void one_turn_reads_all_that_came(void **state)
{
    struct fixture *f = *state;
    static uint8_t data[100000];
    side_open_raw(f, test_unix_pair);
    size_t total = peer_records(f, data, 1000, 10);
    side_send_all(f);
    unsigned before = f->server.told[TEST_READABLE];
    TURN_UNTIL(f->loop, f->server.got_len == total);
    assert_got(&f->server, data, total);
    assert_int_equal(f->server.told[TEST_READABLE] - before, 1);
    assert_int_equal(f->server.records, 1000);
    assert_int_equal(leat_stream_turn(f->server.stream)->inside, 0);
}

/* The reader stops after every CAP bytes; nothing further comes from the peer. */
static void stop_after_every(struct fixture *f, size_t cap, bool pauses)
{
    static uint8_t data[40000];
    side_open_raw(f, test_unix_pair);
    size_t total = peer_records(f, data, 3, 100);
    total += peer_records(f, data + total, 20, 3);
    side_send_all(f);
    f->server.cap = cap;
    f->server.pauses = pauses;
    while (f->server.got_len < total) {
        test_turn(f->loop);
        if (leat_stream_is_paused(f->server.stream)) {
            unsigned told = f->server.told[TEST_READABLE];
            test_settle(f->loop);
            assert_int_equal(f->server.told[TEST_READABLE], told);
            leat_stream_resume(f->server.stream);
        }
    }
    assert_got(&f->server, data, total);
    test_settle(f->loop);
    assert_int_equal(leat_stream_turn(f->server.stream)->inside, 0);
}

static void a_reader_may_stop_at_every_byte(void **state)
{
    stop_after_every(*state, 1, false);
}

static void a_reader_may_pause_at_every_byte(void **state)
{
    stop_after_every(*state, 1, true);
}

static void a_reader_may_pause_anywhere(void **state)
{
    for (size_t cap = 2; cap < 360; cap += 7) {
        stop_after_every(*state, cap, cap % 2 == 0);
        assert_int_equal(side_teardown(state), 0);
        assert_int_equal(side_setup(state), 0);
    }
}

static void small_parts_share_a_record(void **state)
{
    struct fixture *f = *state;
    uint8_t data[1000], buf[2000];
    struct iovec parts[100];
    test_fill(data, sizeof(data), 3);
    side_open_raw(f, test_unix_pair);
    for (int i = 0; i < 100; i++)
        parts[i] = (struct iovec){.iov_base = data + 10 * i, .iov_len = 10};
    uint64_t sends = leat_loop_counters(f->loop)->sends;
    assert_int_equal(leat_stream_write(f->server.stream, parts, 100), LEAT_OK);
    assert_int_equal(leat_loop_counters(f->loop)->sends - sends, 1);
    (void)raw_tls_receive(&f->raw);
    assert_int_equal(raw_tls_read(&f->raw, buf, sizeof(buf)), sizeof(data));
    assert_memory_equal(buf, data, sizeof(data));
}

/* More than the scratch for ciphertext holds. */
static void one_write_may_be_large(void **state)
{
    struct fixture *f = *state;
    static uint8_t data[1500000], buf[65536];
    size_t total = 0, len;
    test_fill(data, sizeof(data), 6);
    side_open_raw(f, test_unix_pair);
    test_user_write(&f->server, data, sizeof(data));
    while (total < sizeof(data)) {
        (void)raw_tls_receive(&f->raw);
        while ((len = raw_tls_read(&f->raw, buf, sizeof(buf))) > 0) {
            assert_memory_equal(buf, data + total, len);
            total += len;
        }
        test_poll(f->loop);
    }
}

static void close_notify_is_a_clean_end(void **state)
{
    struct fixture *f = *state;
    side_open_raw(f, test_tcp_pair);
    raw_tls_write(&f->raw, "bye", 3);
    (void)SSL_shutdown(f->raw.ssl);
    side_send_all(f);
    TURN_UNTIL(f->loop, f->server.end != LEAT_OK);
    assert_got(&f->server, "bye", 3);
    assert_int_equal(f->server.end, LEAT_ECLOSED);
    /* The other direction still works. */
    char buf[8];
    test_user_write(&f->server, "well", 4);
    (void)raw_tls_receive(&f->raw);
    SSL_set_shutdown(f->raw.ssl, 0);
    assert_int_equal(raw_tls_read(&f->raw, buf, sizeof(buf)), 4);
    leat_stream_finish(f->server.stream, 0, 0);
    test_settle(f->loop);
    assert_non_null(f->server.stream); /* it waits for the connection's own end */
    raw_tls_close(&f->raw);
    TURN_UNTIL(f->loop, f->server.stream == NULL);
}

static void an_end_without_close_notify_is_truncation(void **state)
{
    struct fixture *f = *state;
    side_open_raw(f, test_tcp_pair);
    raw_tls_write(&f->raw, "half", 4);
    side_send_all(f);
    (void)shutdown(f->raw.fd, SHUT_WR);
    TURN_UNTIL(f->loop, f->server.end != LEAT_OK);
    assert_got(&f->server, "half", 4);
    assert_int_equal(f->server.end, LEAT_ETRUNCATED);
    assert_int_equal(f->server.error.status, LEAT_ETRUNCATED);
    char buf[8];
    test_user_write(&f->server, "well", 4);
    (void)raw_tls_receive(&f->raw);
    assert_int_equal(raw_tls_read(&f->raw, buf, sizeof(buf)), 4);
    leat_stream_finish(f->server.stream, 0, 0);
    TURN_UNTIL(f->loop, f->server.stream == NULL);
}

static void a_reset_is_a_reset(void **state)
{
    struct fixture *f = *state;
    side_open_raw(f, test_tcp_pair);
    test_reset(f->raw.fd);
    f->raw.fd = -1;
    TURN_UNTIL(f->loop, f->server.end != LEAT_OK);
    assert_int_equal(f->server.end, LEAT_ERESET);
}

/* The peer's bytes are read, its clean end too, but our bytes were lost: that is the end. */
static void a_failed_write_is_told_after_the_bytes(void **state)
{
    struct fixture *f = *state;
    side_open_raw(f, test_tcp_pair);
    test_user_write(&f->server, "unread", 6);
    raw_tls_write(&f->raw, "last words", 10);
    (void)SSL_shutdown(f->raw.ssl);
    side_send_all(f);
    raw_tls_close(&f->raw);
    test_user_write(&f->server, "lost", 4);
    TURN_UNTIL(f->loop, f->server.end != LEAT_OK);
    assert_got(&f->server, "last words", 10);
    assert_int_equal(f->server.end, LEAT_ERESET);
}

static void a_damaged_record_ends_the_stream_with_an_alert(void **state)
{
    struct fixture *f = *state;
    uint8_t buf[100], *record;
    side_open_raw(f, test_tcp_pair);
    raw_tls_write(&f->raw, "good", 4);
    side_send_all(f);
    raw_tls_write(&f->raw, "bad", 3);
    long len = BIO_get_mem_data(f->raw.out, &record);
    record[len - 1] ^= 1;
    side_send_all(f);
    TURN_UNTIL(f->loop, f->server.end != LEAT_OK);
    assert_got(&f->server, "good", 4);
    assert_int_equal(f->server.end, LEAT_ETLS);
    assert_non_null(strstr(f->server.error.text, "damaged"));
    (void)raw_tls_receive(&f->raw);
    assert_int_equal(raw_tls_read(&f->raw, buf, sizeof(buf)), 0);
    assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
    struct iovec part = {.iov_base = buf, .iov_len = 1};
    assert_int_equal(leat_stream_write(f->server.stream, &part, 1), LEAT_OK);
    leat_stream_finish(f->server.stream, 0, 0);
    TURN_UNTIL(f->loop, f->server.stream == NULL);
}

static void a_paused_reader_hears_of_a_damaged_record_on_resuming(void **state)
{
    struct fixture *f = *state;
    uint8_t *record;
    side_open_raw(f, test_tcp_pair);
    f->server.pauses = true;
    raw_tls_write(&f->raw, "good", 4);
    raw_tls_write(&f->raw, "bad", 3);
    long len = BIO_get_mem_data(f->raw.out, &record);
    record[len - 1] ^= 1;
    side_send_all(f);
    /* The error was met while reading the good bytes, after which the reader paused. */
    TURN_UNTIL(f->loop, f->server.told[TEST_FAILED] > 0);
    assert_got(&f->server, "good", 4);
    assert_int_equal(f->server.error.status, LEAT_ETLS);
}

static void stale_errors_change_nothing(void **state)
{
    struct fixture *f = *state;
    char buf[8];
    side_accept_raw(f, test_unix_pair);
    while (!raw_tls_step(&f->raw) || f->server.told[TEST_OPENED] == 0) {
        ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
        test_poll(f->loop);
    }
    raw_tls_write(&f->raw, "hello", 5);
    side_send_all(f);
    ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
    TURN_UNTIL(f->loop, f->server.got_len == 5);
    ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
    assert_int_equal(test_user_read(&f->server), LEAT_EAGAIN);
    ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
    test_user_write(&f->server, "well", 4);
    (void)raw_tls_receive(&f->raw);
    assert_int_equal(raw_tls_read(&f->raw, buf, sizeof(buf)), 4);
    assert_int_equal(f->server.told[TEST_FAILED], 0);
}

static void a_key_update_is_answered(void **state)
{
    struct fixture *f = *state;
    char buf[8];
    side_open_raw(f, test_unix_pair);
    assert_int_equal(SSL_key_update(f->raw.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    assert_int_equal(SSL_do_handshake(f->raw.ssl), 1);
    raw_tls_write(&f->raw, "hello", 5);
    side_send_all(f);
    TURN_UNTIL(f->loop, f->server.got_len == 5);
    test_user_write(&f->server, "well", 4);
    (void)raw_tls_receive(&f->raw);
    /* Two records: OpenSSL answers before the next data, as RFC 8446, 4.6.3, asks. */
    assert_int_equal(BIO_ctrl_pending(f->raw.in), (5 + 5 + 1 + 16) + (5 + 4 + 1 + 16));
    assert_int_equal(raw_tls_read(&f->raw, buf, sizeof(buf)), 4);
}

/* A ticket too large for one record: while half of it is there OpenSSL can't write. */
static int large_ticket(SSL *ssl, void *arg)
{
    static const uint8_t large[3000];
    (void)arg;
    return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), large, sizeof(large));
}

static SSL_TICKET_RETURN use_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                    size_t len, SSL_TICKET_STATUS status, void *arg)
{
    (void)ssl, (void)session, (void)name, (void)len, (void)status, (void)arg;
    return SSL_TICKET_RETURN_IGNORE;
}

/* Elsewhere such a write waited for the socket to become writable, which it was. */
static void r57_writing_waits_for_half_a_handshake_message(void **state)
{
    struct fixture *f = *state;
    char buf[16];
    raw_tls_init(&f->raw, true, &side_certs, side_connect(f, f->client_ctx, "localhost"));
    SSL_CTX_set_session_ticket_cb(f->raw.ctx, large_ticket, use_ticket, NULL);
    SSL_set_num_tickets(f->raw.ssl, 0);
    assert_int_equal(SSL_set_max_send_fragment(f->raw.ssl, 512), 1);
    while (!raw_tls_step(&f->raw) || f->client.told[TEST_OPENED] == 0)
        test_poll(f->loop);
    assert_int_equal(SSL_new_session_ticket(f->raw.ssl), 1);
    raw_tls_write(&f->raw, "hello", 5);
    assert_true(BIO_ctrl_pending(f->raw.out) > 3000);
    assert_int_equal(raw_tls_send(&f->raw, 1200), 1200);
    test_settle(f->loop);
    test_user_write(&f->client, "well", 4);
    test_user_write(&f->client, "met", 3);
    assert_int_equal(leat_stream_queued(f->client.stream), 7);
    side_send_all(f);
    TURN_UNTIL(f->loop, f->client.told[TEST_DRAINED] > 0);
    assert_got(&f->client, "hello", 5);
    assert_int_equal(leat_stream_queued(f->client.stream), 0);
    (void)raw_tls_receive(&f->raw);
    size_t len = raw_tls_read(&f->raw, buf, sizeof(buf));
    len += raw_tls_read(&f->raw, buf + len, sizeof(buf) - len);
    assert_int_equal(len, 7);
    assert_memory_equal(buf, "wellmet", 7);
}

static void finish_sends_all_then_close_notify(void **state)
{
    struct fixture *f = *state;
    static uint8_t data[600000], buf[65536];
    size_t total = 0, len;
    side_open_raw(f, test_tcp_pair);
    raw_tls_write(&f->raw, "not read by anybody", 19);
    side_send_all(f);
    leat_stream_pause(f->server.stream);
    test_fill(data, sizeof(data), 4);
    for (int i = 0; i < 4; i++)
        test_user_write(&f->server, data, sizeof(data));
    leat_stream_finish(f->server.stream, 0, 0);
    bool more = true;
    while (more) {
        test_poll(f->loop);
        more = raw_tls_receive(&f->raw);
        while ((len = raw_tls_read(&f->raw, buf, sizeof(buf))) > 0)
            total += len;
    }
    assert_int_equal(total, 4 * sizeof(data));
    assert_int_equal(SSL_get_shutdown(f->raw.ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
    raw_tls_close(&f->raw);
    TURN_UNTIL(f->loop, f->server.stream == NULL);
}

/* Accepts, shakes hands, echoes what came together with the handshake's end. Returns whether it
 * worked. */
static bool echo_once(struct fixture *f)
{
    struct leat_stream_user user = test_user_of(&f->server);
    uint8_t data[3000], buf[4000];
    struct iovec part = {.iov_base = data, .iov_len = sizeof(data)};
    bool sent = false, echoed = false;
    size_t len = 0;
    int fds[2];
    test_fill(data, sizeof(data), 8);
    test_unix_pair(fds);
    raw_tls_init(&f->raw, false, &side_certs, fds[1]);
    if (leat_tls_stream_accept(f->loop, fds[0], f->tls_server, &user, &f->server.stream) != LEAT_OK)
        return false;
    for (int i = 0; i < 50 && len < sizeof(data); i++) {
        (void)raw_tls_receive(&f->raw);
        if (SSL_do_handshake(f->raw.ssl) == 1 && !sent) {
            raw_tls_write(&f->raw, data, sizeof(data));
            sent = true;
        }
        (void)raw_tls_send(&f->raw, SIZE_MAX);
        test_poll(f->loop);
        if (f->server.got_len == sizeof(data) && !echoed)
            echoed = leat_stream_write(f->server.stream, &part, 1) == LEAT_OK;
        len += raw_tls_read(&f->raw, buf, sizeof(buf));
    }
    return len == sizeof(data);
}

static void running_out_of_memory_costs_one_stream(void **state)
{
    bool worked = false;
    unsigned failures = 0;
    for (unsigned n = 1; n < 100 && !worked; n++) {
        struct fixture *f = *state;
        leat_mem_fail_after(n);
        worked = echo_once(f);
        leat_mem_fail_after(0);
        if (!worked) {
            failures++;
            bool told = f->server.stream == NULL || f->server.end == LEAT_ENOMEM ||
                        f->server.error.status == LEAT_ENOMEM;
            assert_true(told);
        }
        assert_int_equal(side_teardown(state), 0);
        assert_int_equal(side_setup(state), 0);
    }
    assert_true(worked);
    assert_true(failures >= 3); /* the stream, the BIO, bytes kept */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIDE_TEST(bulk_goes_both_ways_at_once),
        SIDE_TEST(ciphertext_may_come_whole),
        SIDE_TEST(ciphertext_may_come_byte_by_byte),
        SIDE_TEST(ciphertext_may_be_cut_anywhere),
        SIDE_TEST(the_first_data_may_come_with_the_handshake),
        SIDE_TEST(one_turn_reads_all_that_came),
        SIDE_TEST(a_reader_may_stop_at_every_byte),
        SIDE_TEST(a_reader_may_pause_at_every_byte),
        SIDE_TEST(a_reader_may_pause_anywhere),
        SIDE_TEST(small_parts_share_a_record),
        SIDE_TEST(one_write_may_be_large),
        SIDE_TEST(close_notify_is_a_clean_end),
        SIDE_TEST(an_end_without_close_notify_is_truncation),
        SIDE_TEST(a_reset_is_a_reset),
        SIDE_TEST(a_failed_write_is_told_after_the_bytes),
        SIDE_TEST(a_damaged_record_ends_the_stream_with_an_alert),
        SIDE_TEST(a_paused_reader_hears_of_a_damaged_record_on_resuming),
        SIDE_TEST(stale_errors_change_nothing),
        SIDE_TEST(a_key_update_is_answered),
        SIDE_TEST(r57_writing_waits_for_half_a_handshake_message),
        SIDE_TEST(finish_sends_all_then_close_notify),
        SIDE_TEST(running_out_of_memory_costs_one_stream),
    };

    return cmocka_run_group_tests(tests, side_group_setup, side_group_teardown);
}
