/*
 * Tests of tls/keyring.h by real handshakes: how long a ticket is good, and under which key.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "shake.h"

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static struct leat_tls_server *server_of(struct leat_tls_keyring *ring)
{
    return test_server_of_ctx(
        test_ctx_of(test_config_of(LEAT_TLS_SERVER, side_certs.cert, side_certs.key)), ring);
}

/* A connection with SESSION, which is dropped; returns the session to resume next. */
static SSL_SESSION *come_back(struct fixture *f, struct leat_tls_server *server,
                              const struct shake_client *like, SSL_SESSION *session,
                              bool is_resumed, int tickets)
{
    struct shake_client client = *like;
    client.session = session;
    struct shake result = shake(f, server, &client);
    assert_true(result.is_open);
    assert_int_equal(result.is_resumed, is_resumed);
    assert_int_equal(result.tickets, tickets);
    if (result.session == NULL)
        return session;
    SSL_SESSION_free(session);
    return result.session;
}

static void a_ticket_is_good_as_long_as_its_key_is_the_newest(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        const struct shake_client client = {.version = versions[i]};
        uint64_t now = 5;
        struct leat_tls_keyring *ring = test_keyring(&now);
        struct leat_tls_server *server = server_of(ring);
        SSL_SESSION *session = come_back(f, server, &client, NULL, false, 1);
        now += LEAT_TLS_KEYRING_MS - 1;
        /* Of TLS 1.3 each ticket is to be used once, so there is always a new one. */
        SSL_SESSION_free(
            come_back(f, server, &client, session, true, versions[i] == TLS1_3_VERSION ? 1 : 0));
        leat_tls_server_unref(server);
        leat_tls_keyring_unref(ring);
    }
}

static void after_one_rotation_it_is_replaced_and_after_two_refused(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        const struct shake_client client = {.version = versions[i]};
        uint64_t now = 5;
        struct leat_tls_keyring *ring = test_keyring(&now);
        struct leat_tls_server *server = server_of(ring);
        SSL_SESSION *first = come_back(f, server, &client, NULL, false, 1);
        now += LEAT_TLS_KEYRING_MS;
        assert_int_equal(SSL_SESSION_up_ref(first), 1);
        SSL_SESSION *second = come_back(f, server, &client, first, true, 1);
        assert_ptr_not_equal(second, first);
        now += LEAT_TLS_KEYRING_MS;
        SSL_SESSION_free(come_back(f, server, &client, first, false, 1));
        SSL_SESSION_free(come_back(f, server, &client, second, true, 1));
        leat_tls_server_unref(server);
        leat_tls_keyring_unref(ring);
    }
}

static void keys_that_nobody_used_for_long_are_gone(void **state)
{
    struct fixture *f = *state;
    const struct shake_client client = {.version = TLS1_3_VERSION};
    uint64_t now = 0;
    struct leat_tls_keyring *ring = test_keyring(&now);
    struct leat_tls_server *server = server_of(ring);
    SSL_SESSION *session = come_back(f, server, &client, NULL, false, 1);
    now += 2 * LEAT_TLS_KEYRING_MS;
    SSL_SESSION_free(come_back(f, server, &client, session, false, 1));
    leat_tls_server_unref(server);
    leat_tls_keyring_unref(ring);
}

/* As after a reload: another server, built anew of the same files. */
static void sessions_outlive_a_reload_of_the_same_certificate(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        const struct shake_client client = {.version = versions[i]};
        struct leat_tls_keyring *ring = test_keyring(NULL);
        struct leat_tls_server *before = server_of(ring);
        SSL_SESSION *session = come_back(f, before, &client, NULL, false, 1);
        leat_tls_server_unref(before);
        struct leat_tls_server *after = server_of(ring);
        SSL_SESSION_free(
            come_back(f, after, &client, session, true, versions[i] == TLS1_3_VERSION ? 1 : 0));
        leat_tls_server_unref(after);
        leat_tls_keyring_unref(ring);
    }
}

/* Two rings have nothing to do with each other. */
static void another_ring_opens_no_ticket(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        const struct shake_client client = {.version = versions[i]};
        struct leat_tls_keyring *one = test_keyring(NULL), *two = test_keyring(NULL);
        struct leat_tls_server *server_one = server_of(one), *server_two = server_of(two);
        SSL_SESSION *session = come_back(f, server_one, &client, NULL, false, 1);
        SSL_SESSION_free(come_back(f, server_two, &client, session, false, 1));
        leat_tls_server_unref(server_one);
        leat_tls_server_unref(server_two);
        leat_tls_keyring_unref(one);
        leat_tls_keyring_unref(two);
    }
}

static void changed_certificates_are_shown_again(void **state)
{
    struct fixture *f = *state;
    const struct test_cert spec = {
        .name = "renewed", .alt = "DNS:localhost", .from_day = -1, .to_day = 20};
    char path[TEST_PATH_MAX];
    test_certs_issue(&side_certs, "renewed.pem", &spec, path);
    for (size_t i = 0; i < 2; i++) {
        const struct shake_client client = {.version = versions[i]};
        struct leat_tls_keyring *ring = test_keyring(NULL);
        struct leat_tls_server *before = server_of(ring);
        struct leat_tls_server *after = test_server_of_ctx(
            test_ctx_of(test_config_of(LEAT_TLS_SERVER, path, side_certs.key)), ring);
        SSL_SESSION *session = come_back(f, before, &client, NULL, false, 1);
        SSL_SESSION_free(come_back(f, after, &client, session, false, 1));
        leat_tls_server_unref(before);
        leat_tls_server_unref(after);
        leat_tls_keyring_unref(ring);
    }
}

static void tickets_can_be_switched_off(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        const struct shake_client client = {.version = versions[i]};
        assert_null(come_back(f, f->tls_server, &client, NULL, false, 0));
    }
}

static void running_out_of_memory_is_an_error(void **state)
{
    struct leat_tls_keyring *ring = NULL;
    uint64_t now = 0;
    (void)state;
    leat_mem_fail_after(1);
    assert_int_equal(leat_tls_keyring_new(test_clock, &now, &ring, NULL), LEAT_ENOMEM);
    assert_null(ring);
    leat_tls_keyring_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIDE_TEST(a_ticket_is_good_as_long_as_its_key_is_the_newest),
        SIDE_TEST(after_one_rotation_it_is_replaced_and_after_two_refused),
        SIDE_TEST(keys_that_nobody_used_for_long_are_gone),
        SIDE_TEST(sessions_outlive_a_reload_of_the_same_certificate),
        SIDE_TEST(another_ring_opens_no_ticket),
        SIDE_TEST(changed_certificates_are_shown_again),
        SIDE_TEST(tickets_can_be_switched_off),
        SIDE_TEST(running_out_of_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, side_group_setup, side_group_teardown);
}
