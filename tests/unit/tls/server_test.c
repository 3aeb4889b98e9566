/*
 * Tests of tls/server.h by real handshakes: which context serves whom, that all its settings do,
 * and that no ticket leads past them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/err.h>

#include "base/mem.h"
#include "base/str.h"
#include "shake.h"

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

/* Certificates called "default", "a" and "wild", for names of their own. */
static char default_cert[TEST_PATH_MAX], a_cert[TEST_PATH_MAX], wild_cert[TEST_PATH_MAX];
static char client_cert[TEST_PATH_MAX];

static int group_setup(void **state)
{
    const struct test_cert certs[] = {
        {.name = "default", .alt = "DNS:localhost,DNS:own.example", .to_day = 9},
        {.name = "a", .alt = "DNS:a.example,DNS:A.Second.Example,IP:127.0.0.1", .to_day = 9},
        {.name = "wild", .alt = "DNS:*.example,DNS:a.example", .to_day = 9},
        {.name = "alice", .usage = "clientAuth", .to_day = 9},
    };
    (void)side_group_setup(state);
    test_certs_issue(&side_certs, "default.pem", &certs[0], default_cert);
    test_certs_issue(&side_certs, "a.pem", &certs[1], a_cert);
    test_certs_issue(&side_certs, "wild.pem", &certs[2], wild_cert);
    test_certs_issue(&side_certs, "alice.pem", &certs[3], client_cert);
    return 0;
}

static struct leat_tls_config *config_of(const char *cert)
{
    return test_config_of(LEAT_TLS_SERVER, cert, side_certs.key);
}

/* A server whose default is ONE and that has OTHER for "b.example"; both are dropped. */
static struct leat_tls_server *server_of(struct leat_tls_config *one, struct leat_tls_config *other)
{
    static const char *const names[] = {"b.example"};
    struct leat_tls_keyring *ring = test_keyring(NULL);
    struct leat_tls_server_entry entries[] = {
        {.ctx = test_ctx_of(one)},
        {.ctx = test_ctx_of(other), .names = names, .count = 1},
    };
    struct leat_tls_server *server = NULL;
    assert_int_equal(leat_tls_server_new(entries, 2, ring, &server, NULL), LEAT_OK);
    leat_tls_ctx_unref(entries[0].ctx);
    leat_tls_ctx_unref(entries[1].ctx);
    leat_tls_keyring_unref(ring);
    return server;
}

/* A server of the three certificates; the last has NAMES, or its own with COUNT 0. */
static enum leat_status new_server(const char *const *names, size_t count,
                                   struct leat_tls_server **out, struct leat_error *err)
{
    struct leat_tls_keyring *ring = test_keyring(NULL);
    struct leat_tls_server_entry entries[] = {
        {.ctx = test_ctx_of(config_of(default_cert))},
        {.ctx = test_ctx_of(config_of(a_cert))},
        {.ctx = test_ctx_of(config_of(wild_cert)), .names = names, .count = count},
    };
    enum leat_status status = leat_tls_server_new(entries, 3, ring, out, err);
    for (size_t i = 0; i < 3; i++)
        leat_tls_ctx_unref(entries[i].ctx);
    leat_tls_keyring_unref(ring);
    return status;
}

static void assert_index(const struct leat_tls_server *server, const char *name, size_t index)
{
    if (leat_tls_server_find(server, leat_str_of(name)) != leat_tls_server_ctx(server, index))
        fail_msg("\"%s\" is not for the context %zu", name, index);
}

static void names_come_from_certificates(void **state)
{
    struct leat_tls_server *server = NULL;
    (void)state;
    assert_int_equal(new_server(NULL, 0, &server, NULL), LEAT_OK);
    assert_int_equal(leat_tls_server_count(server), 3);
    assert_index(server, "", 0);
    assert_index(server, "elsewhere.org", 0);
    assert_index(server, "a.example", 1); /* the first that has it */
    assert_index(server, "A.EXAMPLE", 1);
    assert_index(server, "a.example.", 1);
    assert_index(server, "a.second.example", 1);
    assert_index(server, "b.example", 2);
    assert_index(server, "own.example", 0); /* exact before wildcard */
    assert_index(server, "a.b.example", 0); /* one label only */
    assert_index(server, ".example", 0);
    assert_index(server, "example", 0);
    assert_index(server, "*.example", 0);
    assert_index(server, "127.0.0.1", 0); /* an address is no name */
    assert_index(server, "a.example..", 0);
    struct leat_str nul = {"a.example\0b", 11};
    assert_ptr_equal(leat_tls_server_find(server, nul), leat_tls_server_ctx(server, 0));
    char longest[300];
    memset(longest, 'x', sizeof(longest));
    struct leat_str too_long = {longest, sizeof(longest)};
    assert_ptr_equal(leat_tls_server_find(server, too_long), leat_tls_server_ctx(server, 0));
    leat_tls_server_unref(server);
    leat_tls_server_unref(NULL);
}

static void given_names_win_over_those_of_certificates(void **state)
{
    static const char *const names[] = {"*.Second.example", "a.example.", "a.example"};
    struct leat_tls_server *server = NULL;
    (void)state;
    assert_int_equal(new_server(names, 3, &server, NULL), LEAT_OK);
    assert_index(server, "a.example", 2);
    assert_index(server, "a.second.example", 2);
    assert_index(server, "b.example", 0); /* it is not asked for its own names */
    leat_tls_server_unref(server);
}

static void bad_names_are_refused(void **state)
{
    static const char *const bad[] = {"",      "*", "*.", "a b", "a.*",     "*.*.a",
                                      "[::1]", "ä", ".",  ".a",  "http://a"};
    struct leat_tls_server *server = NULL;
    struct leat_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(new_server(&bad[i], 1, &server, &err), LEAT_EUSAGE);
        assert_non_null(strstr(err.text, "is no host name"));
    }
    static const char *const names[] = {"x.example"};
    struct leat_tls_ctx *ctx = test_ctx_of(config_of(a_cert));
    struct leat_tls_keyring *ring = test_keyring(NULL);
    struct leat_tls_server_entry twice[] = {{.ctx = ctx, .names = names, .count = 1},
                                            {.ctx = ctx, .names = names, .count = 1}};
    assert_int_equal(leat_tls_server_new(twice, 2, ring, &server, &err), LEAT_EUSAGE);
    assert_non_null(strstr(err.text, "\"x.example\" is the name of two"));
    assert_null(server);
    leat_tls_keyring_unref(ring);
    leat_tls_ctx_unref(ctx);
}

static void running_out_of_memory_is_an_error(void **state)
{
    static const char *const names[] = {"x.example"};
    struct leat_tls_ctx *ctx = test_ctx_of(config_of(a_cert));
    struct leat_tls_keyring *ring = test_keyring(NULL);
    struct leat_tls_server_entry entries[] = {{.ctx = ctx},
                                              {.ctx = ctx, .names = names, .count = 1}};
    struct leat_tls_server *server = NULL;
    unsigned nth = 0;
    (void)state;
    do {
        leat_mem_fail_after(++nth);
        enum leat_status status = leat_tls_server_new(entries, 2, ring, &server, NULL);
        assert_int_equal(status, server != NULL ? LEAT_OK : LEAT_ENOMEM);
        leat_mem_fail_after(0);
    } while (server == NULL);
    assert_true(nth > 5);
    leat_tls_server_unref(server);
    leat_tls_keyring_unref(ring);
    leat_tls_ctx_unref(ctx);
}

static void the_name_decides_which_certificate_is_shown(void **state)
{
    static const struct {
        const char *name, *subject;
    } cases[] = {{NULL, "default"},     {"nobody.example.org", "default"},
                 {"a.example", "a"},    {"A.EXAMPLE", "a"},
                 {"b.example", "wild"}, {"own.example", "default"},
                 {"a.b.c", "default"},  {"a.second.example", "a"}};
    struct fixture *f = *state;
    struct leat_tls_server *server = NULL;
    assert_int_equal(new_server(NULL, 0, &server, NULL), LEAT_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t v = 0; v < 2; v++) {
            struct shake_client client = {.name = cases[i].name, .version = versions[v]};
            struct shake got = shake(f, server, &client);
            assert_true(got.is_open);
            assert_string_equal(got.subject, cases[i].subject);
            assert_string_equal(got.asked, cases[i].name != NULL ? cases[i].name : "");
            SSL_SESSION_free(got.session);
        }
    }
    leat_tls_server_unref(server);
}

/* The client has to say hello twice. */
static void the_choice_outlives_a_retry(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_server *server = NULL;
    assert_int_equal(new_server(NULL, 0, &server, NULL), LEAT_OK);
    struct shake_client client = {
        .name = "a.example", .version = TLS1_3_VERSION, .groups = "P-384:X25519"};
    struct shake got = shake(f, server, &client);
    assert_true(got.is_open);
    assert_string_equal(got.subject, "a");
    SSL_SESSION_free(got.session);
    leat_tls_server_unref(server);
}

/* A ClientHello whose server_name extension lies: adds BY to the byte AT before the name. */
static void assert_malformed(int at, int by)
{
    void *state = NULL;
    char *hello = NULL;
    char name[] = "abcdefg.example"; /* only read, but OpenSSL's macro casts const away */
    assert_int_equal(side_setup(&state), 0);
    struct fixture *f = state;
    side_accept_raw(f, test_unix_pair);
    assert_int_equal(SSL_set_tlsext_host_name(f->raw.ssl, name), 1);
    assert_int_equal(SSL_do_handshake(f->raw.ssl), -1);
    long len = BIO_get_mem_data(f->raw.out, &hello);
    char *found = memmem(hello, (size_t)len, name, strlen(name));
    assert_non_null(found);
    found[-at] = (char)(found[-at] + by);
    side_send_all(f);
    TURN_UNTIL(f->loop, f->server.told[TEST_FAILED] > 0);
    assert_int_equal(f->server.error.status, LEAT_ETLS);
    (void)raw_tls_receive(&f->raw);
    assert_int_equal(SSL_do_handshake(f->raw.ssl), -1);
    assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_TLSV1_ALERT_DECODE_ERROR);
    assert_int_equal(side_teardown(&state), 0);
}

static void malformed_names_are_refused(void **state)
{
    (void)state;
    assert_malformed(1, 1);  /* the name's length: beyond the list */
    assert_malformed(1, -1); /* a byte is left over */
    assert_malformed(2, 1);
    assert_malformed(4, 1); /* the list's length */
    assert_malformed(4, -1);
    assert_malformed(1, -15); /* an empty name, and then nonsense */
}

/* What is for "b.example" only, one setting each, and what a client there meets. */

static struct leat_tls_config *asking(enum leat_tls_client_cert mode)
{
    struct leat_tls_config *config = config_of(wild_cert);
    assert_int_equal(leat_tls_config_set_authorities(config, side_certs.ca, NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_set_client_cert(config, mode, NULL), LEAT_OK);
    return config;
}

/* CLIENT can connect to the default, but not to "b.example", where SAYS is the reason. */
static void assert_only_default(struct fixture *f, struct leat_tls_server *server,
                                struct shake_client client, const char *says)
{
    struct shake got = shake(f, server, &client);
    assert_true(got.is_open);
    assert_string_equal(got.subject, "default");
    SSL_SESSION_free(got.session);
    client.name = "b.example";
    got = shake(f, server, &client);
    assert_false(got.is_open && got.alert == 0);
    if (strstr(got.error.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", got.error.text, says);
    leat_tls_server_unref(server);
}

static void the_choice_sets_whether_a_certificate_is_asked_for(void **state)
{
    struct fixture *f = *state;
    for (size_t v = 0; v < 2; v++)
        assert_only_default(
            f, server_of(config_of(default_cert), asking(LEAT_TLS_CLIENT_CERT_REQUIRED)),
            (struct shake_client){.version = versions[v]},
            "the client gave no certificate, which is required here");
}

/* The reverse: the default asks, this one does not. */
static void the_choice_unsets_whether_a_certificate_is_asked_for(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_server *server =
        server_of(asking(LEAT_TLS_CLIENT_CERT_REQUIRED), config_of(default_cert));
    for (size_t v = 0; v < 2; v++) {
        struct shake_client client = {.version = versions[v]};
        assert_int_equal(shake(f, server, &client).error.status, LEAT_EVERIFY);
        client.cert = client_cert;
        struct shake got = shake(f, server, &client);
        assert_true(got.is_open);
        assert_string_equal(got.peer, "CN=alice");
        client.name = "b.example";
        got = shake(f, server, &client);
        assert_true(got.is_open);
        assert_string_equal(got.peer, ""); /* it was not asked */
        assert_int_equal(got.tickets, 1);
        SSL_SESSION_free(got.session);
    }
    leat_tls_server_unref(server);
}

static void an_optional_certificate_may_lack_but_not_be_bad(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_server *server =
        server_of(config_of(default_cert), asking(LEAT_TLS_CLIENT_CERT_OPTIONAL));
    struct shake_client client = {.name = "b.example"};
    struct shake got = shake(f, server, &client);
    assert_true(got.is_open);
    assert_int_equal(got.authorities, 1);
    assert_string_equal(got.peer, "");
    client.cert = client_cert;
    got = shake(f, server, &client);
    assert_true(got.is_open);
    assert_string_equal(got.peer, "CN=alice");
    client.cert = side_certs.expired;
    assert_int_equal(shake(f, server, &client).error.status, LEAT_EVERIFY);
    leat_tls_server_unref(server);
}

static void the_choice_sets_the_depth(void **state)
{
    const struct test_cert middle = {.name = "middle", .to_day = 9, .is_authority = true};
    const struct test_cert deep = {.name = "deep", .to_day = 9, .by_authority = true};
    char path[TEST_PATH_MAX];
    struct fixture *f = *state;
    test_certs_issue(&side_certs, "middle.pem", &middle, path);
    test_certs_issue(&side_certs, "deep.pem", &deep, path);
    struct leat_tls_config *one = config_of(default_cert);
    assert_int_equal(leat_tls_config_set_authorities(one, side_certs.ca, NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_set_client_cert(one, LEAT_TLS_CLIENT_CERT_REQUIRED, NULL),
                     LEAT_OK);
    struct leat_tls_config *other = asking(LEAT_TLS_CLIENT_CERT_REQUIRED);
    assert_int_equal(leat_tls_config_set_depth(other, 0, NULL), LEAT_OK);
    assert_only_default(f, server_of(one, other), (struct shake_client){.cert = path},
                        "more authorities stand between");
}

static void the_choice_sets_the_versions(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_config *only_13 = config_of(wild_cert), *only_12 = config_of(wild_cert);
    assert_int_equal(leat_tls_config_set_versions(only_13, LEAT_TLS_1_3, LEAT_TLS_1_3, NULL),
                     LEAT_OK);
    assert_only_default(f, server_of(config_of(default_cert), only_13),
                        (struct shake_client){.version = TLS1_2_VERSION}, "TLS");
    assert_int_equal(leat_tls_config_set_versions(only_12, LEAT_TLS_1_2, LEAT_TLS_1_2, NULL),
                     LEAT_OK);
    assert_only_default(f, server_of(config_of(default_cert), only_12),
                        (struct shake_client){.version = TLS1_3_VERSION}, "TLS");
}

static void the_choice_sets_the_ciphers(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_config *other = config_of(wild_cert);
    assert_int_equal(leat_tls_config_set_ciphers(other, "ECDHE-ECDSA-AES256-GCM-SHA384", NULL),
                     LEAT_OK);
    assert_only_default(f, server_of(config_of(default_cert), other),
                        (struct shake_client){.version = TLS1_2_VERSION,
                                              .ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"},
                        "no cipher suite in common");
    other = config_of(wild_cert);
    assert_int_equal(leat_tls_config_set_ciphersuites(other, "TLS_AES_256_GCM_SHA384", NULL),
                     LEAT_OK);
    assert_only_default(
        f, server_of(config_of(default_cert), other),
        (struct shake_client){.version = TLS1_3_VERSION, .suites = "TLS_AES_128_GCM_SHA256"},
        "no cipher suite in common");
}

/* Also wider ones than the default's. */
static void the_choice_may_have_more_ciphers(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_config *one = config_of(default_cert), *other = config_of(wild_cert);
    assert_int_equal(leat_tls_config_set_ciphers(one, "ECDHE-ECDSA-AES256-GCM-SHA384", NULL),
                     LEAT_OK);
    assert_int_equal(leat_tls_config_set_ciphersuites(one, "TLS_AES_256_GCM_SHA384", NULL),
                     LEAT_OK);
    assert_int_equal(leat_tls_config_set_groups(one, "P-384", NULL), LEAT_OK);
    struct leat_tls_server *server = server_of(one, other);
    for (size_t v = 0; v < 2; v++) {
        struct shake_client client = {.name = "b.example",
                                      .version = versions[v],
                                      .ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256",
                                      .suites = "TLS_AES_128_GCM_SHA256",
                                      .groups = "X25519:P-256"};
        struct shake got = shake(f, server, &client);
        assert_true(got.is_open);
        SSL_SESSION_free(got.session);
        client.name = NULL;
        assert_false(shake(f, server, &client).is_open);
    }
    leat_tls_server_unref(server);
}

static void the_choice_sets_the_groups(void **state)
{
    struct fixture *f = *state;
    for (size_t v = 0; v < 2; v++) {
        struct leat_tls_config *other = config_of(wild_cert);
        assert_int_equal(leat_tls_config_set_groups(other, "P-384", NULL), LEAT_OK);
        assert_only_default(f, server_of(config_of(default_cert), other),
                            (struct shake_client){.version = versions[v], .groups = "X25519:P-256"},
                            "TLS failed");
    }
}

static void the_choice_sets_whether_there_are_tickets(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_config *without = config_of(wild_cert);
    assert_int_equal(leat_tls_config_set_tickets(without, false, NULL), LEAT_OK);
    struct leat_tls_server *server = server_of(config_of(default_cert), without);
    for (size_t v = 0; v < 2; v++) {
        struct shake_client client = {.version = versions[v]};
        struct shake got = shake(f, server, &client);
        assert_int_equal(got.tickets, 1);
        client.name = "b.example";
        client.session = got.session;
        got = shake(f, server, &client);
        assert_true(got.is_open);
        assert_false(got.is_resumed);
        assert_int_equal(got.tickets, 0);
        SSL_SESSION_free(client.session);
    }
    leat_tls_server_unref(server);
}

/* CVE-2025-23419: a session made where nobody asks for a certificate, resumed where one is
 * required. */
static void no_ticket_leads_past_a_client_certificate(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_server *server =
        server_of(config_of(default_cert), asking(LEAT_TLS_CLIENT_CERT_REQUIRED));
    for (size_t v = 0; v < 2; v++) {
        struct shake_client client = {.version = versions[v]};
        struct shake got = shake(f, server, &client);
        assert_non_null(got.session);
        client.session = got.session;
        client.name = "b.example";
        got = shake(f, server, &client);
        assert_int_equal(got.error.status, LEAT_EVERIFY);
        assert_int_equal(got.alert, versions[v] == TLS1_3_VERSION
                                        ? SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED
                                        : SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE);
        client.cert = client_cert; /* with one it gets in, by a whole handshake, and no ticket */
        got = shake(f, server, &client);
        assert_true(got.is_open);
        assert_false(got.is_resumed);
        assert_string_equal(got.peer, "CN=alice");
        assert_int_equal(got.tickets, 0);
        SSL_SESSION_free(client.session);
    }
    leat_tls_server_unref(server);
}

static void a_ticket_is_good_under_its_own_name_only(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_server *server = server_of(config_of(default_cert), config_of(a_cert));
    for (size_t v = 0; v < 2; v++) {
        struct shake_client client = {.version = versions[v]};
        struct shake got = shake(f, server, &client);
        client.session = got.session;
        client.name = "b.example";
        got = shake(f, server, &client);
        assert_true(got.is_open);
        assert_false(got.is_resumed);
        assert_string_equal(got.subject, "a");
        SSL_SESSION_free(client.session);
        client.session = got.session;
        got = shake(f, server, &client);
        assert_true(got.is_resumed);
        SSL_SESSION_free(got.session);
        SSL_SESSION_free(client.session);
    }
    leat_tls_server_unref(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_from_certificates),
        cmocka_unit_test(given_names_win_over_those_of_certificates),
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(running_out_of_memory_is_an_error),
        cmocka_unit_test(malformed_names_are_refused),
        SIDE_TEST(the_name_decides_which_certificate_is_shown),
        SIDE_TEST(the_choice_outlives_a_retry),
        SIDE_TEST(the_choice_sets_whether_a_certificate_is_asked_for),
        SIDE_TEST(the_choice_unsets_whether_a_certificate_is_asked_for),
        SIDE_TEST(an_optional_certificate_may_lack_but_not_be_bad),
        SIDE_TEST(the_choice_sets_the_depth),
        SIDE_TEST(the_choice_sets_the_versions),
        SIDE_TEST(the_choice_sets_the_ciphers),
        SIDE_TEST(the_choice_may_have_more_ciphers),
        SIDE_TEST(the_choice_sets_the_groups),
        SIDE_TEST(the_choice_sets_whether_there_are_tickets),
        SIDE_TEST(no_ticket_leads_past_a_client_certificate),
        SIDE_TEST(a_ticket_is_good_under_its_own_name_only),
    };

    return cmocka_run_group_tests(tests, group_setup, side_group_teardown);
}
