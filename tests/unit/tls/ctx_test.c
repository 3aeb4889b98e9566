/*
 * Tests of tls/ctx.h: what can be wrong with the files, what the error says, and what a context
 * tells of itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/err.h>

#include "base/mem.h"
#include "support/certs.h"
#include "support/tls_parts.h"
#include "tls/ctx.h"

#define DAY_S 86400

static struct test_certs certs;

static int setup(void **state)
{
    (void)state;
    test_certs_init(&certs);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_certs_fini(&certs);
    return 0;
}

static struct leat_tls_config *config_with_ca(const char *ca)
{
    struct leat_tls_config *config = test_config_of(LEAT_TLS_CLIENT, NULL, NULL);
    assert_int_equal(leat_tls_config_set_authorities(config, ca, NULL), LEAT_OK);
    return config;
}

static void good_files_make_contexts(void **state)
{
    (void)state;
    struct leat_tls_ctx *ctx = test_ctx_of(test_config_of(LEAT_TLS_SERVER, certs.cert, certs.key));
    assert_ptr_equal(leat_tls_ctx_ref(ctx), ctx);
    leat_tls_ctx_unref(ctx);
    assert_null(leat_tls_ctx_trust(ctx));
    leat_tls_ctx_unref(ctx);
    ctx = test_client_of(certs.ca);
    assert_null(leat_tls_ctx_cert(ctx));
    assert_int_equal(leat_tls_ctx_trust(ctx)->authorities, 1);
    leat_tls_ctx_unref(ctx);
    leat_tls_ctx_unref(NULL);
}

/* A context cannot be built of CONFIG, which is dropped, and ERR says SAYS about the file NAMED. */
static void assert_bad(struct leat_tls_config *config, const char *named, const char *says)
{
    struct leat_tls_ctx *ctx = NULL;
    struct leat_error err;
    assert_int_equal(leat_tls_ctx_build(config, NULL, &ctx, &err), LEAT_EUSAGE);
    assert_int_equal(err.status, LEAT_EUSAGE);
    assert_null(ctx);
    if (strstr(err.text, named) == NULL || strstr(err.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\" of %s", err.text, says, named);
    assert_int_equal(ERR_peek_error(), 0);
    leat_tls_config_unref(config);
}

static void assert_bad_pair(const char *cert, const char *key, const char *named, const char *says)
{
    assert_bad(test_config_of(LEAT_TLS_SERVER, cert, key), named, says);
}

static void errors_name_the_file(void **state)
{
    (void)state;
    assert_bad_pair("/none/cert.pem", certs.key, "/none/cert.pem", "No such file");
    assert_bad_pair(certs.cert, "/none/key.pem", "/none/key.pem", "No such file");
    assert_bad_pair(certs.nonsense, certs.key, certs.nonsense, "PEM");
    assert_bad_pair(certs.cert, certs.nonsense, certs.nonsense, "PEM");
    assert_bad_pair(certs.cert, certs.other_key, certs.other_key, "does not belong to");
    assert_bad_pair(certs.cert, certs.other_key, certs.cert, "does not belong to");
    assert_bad_pair(certs.key, certs.key, certs.key, "holds no certificate");
    assert_bad_pair(certs.cert, certs.cert, certs.cert, "holds no private key");
    assert_bad_pair(certs.dir, certs.key, certs.dir, "it is a directory");
    assert_bad_pair(certs.cert, "/dev/null", "key file /dev/null", "it is a device");
    assert_bad(config_with_ca("/none/ca.pem"), "CA file /none/ca.pem", "No such file");
    assert_bad(config_with_ca(certs.nonsense), certs.nonsense, "PEM");
    assert_bad(config_with_ca(certs.key), certs.key, "holds no certificate");
}

static void odd_files_do_not_block(void **state)
{
    char fifo[TEST_PATH_MAX], empty[TEST_PATH_MAX], cut[TEST_PATH_MAX];
    (void)state;
    (void)snprintf(fifo, sizeof(fifo), "%.32s/fifo", certs.dir);
    assert_return_code(mkfifo(fifo, 0600), 0);
    assert_bad_pair(fifo, certs.key, fifo, "it is a pipe");
    test_certs_write(&certs, "empty", "", empty);
    assert_bad_pair(certs.cert, empty, empty, "it is empty");
    test_certs_write(&certs, "cut", "-----BEGIN CERTIFICATE-----\nMIIB\n", cut);
    assert_bad_pair(cut, certs.key, cut, "bad");
    assert_bad(config_with_ca(cut), cut, "bad");
}

static struct leat_tls_config *locked_config(const char *passphrase)
{
    struct leat_tls_config *config = test_config_of(LEAT_TLS_SERVER, certs.cert, certs.locked_key);
    char path[TEST_PATH_MAX];
    if (passphrase == NULL)
        return config;
    test_certs_write(&certs, "passphrase", passphrase, path);
    assert_int_equal(leat_tls_config_set_passphrase_file(config, path, NULL), LEAT_OK);
    return config;
}

static void an_encrypted_key_is_opened_by_its_passphrase(void **state)
{
    static const char *const good[] = {"secret\n", "secret", "secret\r\n", "secret\nmore\n"};
    (void)state;
    for (size_t i = 0; i < 4; i++)
        leat_tls_ctx_unref(test_ctx_of(locked_config(good[i])));
    assert_bad(locked_config(NULL), certs.locked_key, "is encrypted; name a file");
    assert_bad(locked_config("wrong\n"), certs.locked_key, "does not open it");
    assert_bad(locked_config("secret \n"), certs.locked_key, "does not open it");
    assert_bad(locked_config("\nsecret\n"), "/passphrase", "is empty");
    char longer[2000];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_bad(locked_config(longer), "/passphrase", "longer than");
    struct leat_tls_config *config = locked_config(NULL);
    assert_int_equal(leat_tls_config_set_passphrase_file(config, "/none/pass", NULL), LEAT_OK);
    assert_bad(config, "passphrase file /none/pass", "No such file");
}

static void a_certificate_is_told_of(void **state)
{
    const struct test_cert spec = {.name = "told",
                                   .alt = "DNS:a.example,DNS:*.b.example,IP:::1,email:x@y.example",
                                   .from_day = -3,
                                   .to_day = 7};
    char path[TEST_PATH_MAX];
    int64_t now = (int64_t)time(NULL);
    (void)state;
    test_certs_issue(&certs, "told.pem", &spec, path);
    struct leat_tls_ctx *ctx = test_ctx_of(test_config_of(LEAT_TLS_SERVER, path, certs.key));
    const struct leat_tls_cert_info *cert = leat_tls_ctx_cert(ctx);
    assert_string_equal(cert->subject, "CN=told");
    assert_string_equal(cert->issuer, "CN=leat test CA");
    assert_true(strspn(cert->serial, "0123456789ABCDEF") == strlen(cert->serial));
    assert_true(strlen(cert->serial) > 4);
    assert_int_equal(cert->host_count, 3);
    assert_string_equal(cert->hosts[0], "a.example");
    assert_string_equal(cert->hosts[1], "*.b.example");
    assert_string_equal(cert->hosts[2], "::1");
    assert_in_range(cert->from, now - 3 * DAY_S - 100, now - 3 * DAY_S + 100);
    assert_in_range(cert->until, now + 7 * DAY_S - 100, now + 7 * DAY_S + 100);
    leat_tls_ctx_unref(ctx);
}

/* The chain's validity counts too. */
static void validity_is_that_of_the_whole_chain(void **state)
{
    const struct test_cert middle = {
        .name = "middle", .from_day = -2, .to_day = 5, .is_authority = true};
    const struct test_cert leaf = {
        .name = "leaf", .alt = "DNS:a", .from_day = -3, .to_day = 7, .by_authority = true};
    char path[TEST_PATH_MAX];
    int64_t from, until, now = (int64_t)time(NULL);
    (void)state;
    test_certs_issue(&certs, "middle.pem", &middle, path);
    test_certs_issue(&certs, "leaf.pem", &leaf, path);
    struct leat_tls_ctx *ctx = test_ctx_of(test_config_of(LEAT_TLS_SERVER, path, certs.key));
    assert_true(leat_tls_ctx_validity(ctx, &from, &until));
    assert_in_range(from, now - 2 * DAY_S - 100, now - 2 * DAY_S + 100);
    assert_in_range(until, now + 5 * DAY_S - 100, now + 5 * DAY_S + 100);
    leat_tls_ctx_unref(ctx);
    ctx = test_client_of(certs.ca);
    assert_false(leat_tls_ctx_validity(ctx, &from, &until));
    leat_tls_ctx_unref(ctx);
}

static void expired_authorities_are_told_of(void **state)
{
    int64_t now = (int64_t)time(NULL);
    (void)state;
    struct leat_tls_ctx *ctx = test_client_of(certs.ca);
    assert_false(leat_tls_ctx_trusts_only_expired(ctx, now));
    assert_false(leat_tls_ctx_trusts_only_expired(ctx, now + 29 * DAY_S));
    assert_true(leat_tls_ctx_trusts_only_expired(ctx, now + 31 * DAY_S));
    leat_tls_ctx_unref(ctx);
    ctx = test_ctx_of(test_config_of(LEAT_TLS_SERVER, certs.cert, certs.key));
    assert_false(leat_tls_ctx_trusts_only_expired(ctx, now + 31 * DAY_S));
    leat_tls_ctx_unref(ctx);
}

static struct leat_tls_digest fingerprint_of(struct leat_tls_config *config)
{
    struct leat_tls_ctx *ctx = test_ctx_of(config);
    struct leat_tls_digest digest = *leat_tls_ctx_fingerprint(ctx);
    leat_tls_ctx_unref(ctx);
    return digest;
}

static void a_fingerprint_is_that_of_the_contents(void **state)
{
    char cert[TEST_PATH_MAX], ca[TEST_PATH_MAX];
    (void)state;
    test_certs_write(&certs, "changing.pem", "", cert);
    test_certs_write(&certs, "changing-ca.pem", "", ca);
    test_certs_replace(certs.cert, cert);
    struct leat_tls_ctx *ctx = test_ctx_of(test_config_of(LEAT_TLS_SERVER, cert, certs.key));
    struct leat_tls_digest first = *leat_tls_ctx_fingerprint(ctx);
    assert_false(leat_tls_ctx_has_changed(ctx));

    test_certs_replace(certs.cert, cert); /* another file, the same contents */
    assert_true(leat_tls_ctx_has_changed(ctx));
    struct leat_tls_digest same = fingerprint_of(test_config_of(LEAT_TLS_SERVER, cert, certs.key));
    assert_true(leat_tls_digest_equal(&first, &same));

    test_certs_replace(certs.expired, cert);
    struct leat_tls_digest other = fingerprint_of(test_config_of(LEAT_TLS_SERVER, cert, certs.key));
    assert_false(leat_tls_digest_equal(&first, &other));
    leat_tls_ctx_unref(ctx);

    test_certs_replace(certs.ca, ca);
    first = fingerprint_of(config_with_ca(ca));
    test_certs_replace(certs.other_ca, ca);
    other = fingerprint_of(config_with_ca(ca));
    assert_false(leat_tls_digest_equal(&first, &other));
}

/* Another file of the same size, as old as the first. */
static void a_file_that_takes_its_place_is_a_change(void **state)
{
    char ca[TEST_PATH_MAX], other[TEST_PATH_MAX];
    struct stat info;
    (void)state;
    test_certs_write(&certs, "place.pem", "", ca);
    test_certs_write(&certs, "other-place.pem", "", other);
    test_certs_replace(certs.ca, ca);
    test_certs_replace(certs.ca, other);
    assert_return_code(stat(ca, &info), 0);
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    assert_return_code(utimensat(AT_FDCWD, other, times, 0), 0);
    struct leat_tls_ctx *ctx = test_client_of(ca);
    assert_return_code(rename(other, ca), 0);
    assert_true(leat_tls_ctx_has_changed(ctx));
    leat_tls_ctx_unref(ctx);
}

static void a_file_that_goes_is_a_change(void **state)
{
    char ca[TEST_PATH_MAX];
    (void)state;
    test_certs_write(&certs, "going.pem", "", ca);
    test_certs_replace(certs.ca, ca);
    struct leat_tls_ctx *ctx = test_client_of(ca);
    assert_return_code(unlink(ca), 0);
    assert_true(leat_tls_ctx_has_changed(ctx));
    leat_tls_ctx_unref(ctx);
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    for (unsigned role = 0; role < 2; role++) {
        enum leat_status status = LEAT_ENOMEM;
        for (unsigned nth = 1; status != LEAT_OK; nth++) {
            struct leat_tls_config *config =
                role == 0 ? config_with_ca(certs.ca)
                          : test_config_of(LEAT_TLS_SERVER, certs.cert, certs.key);
            struct leat_tls_ctx *ctx = NULL;
            leat_mem_fail_after(nth);
            status = leat_tls_ctx_build(config, NULL, &ctx, NULL);
            leat_mem_fail_after(0);
            assert_true(status == LEAT_OK ? ctx != NULL && nth > 3 : status == LEAT_ENOMEM);
            assert_int_equal(ERR_peek_error(), 0);
            leat_tls_ctx_unref(ctx);
            leat_tls_config_unref(config);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_make_contexts),
        cmocka_unit_test(errors_name_the_file),
        cmocka_unit_test(odd_files_do_not_block),
        cmocka_unit_test(an_encrypted_key_is_opened_by_its_passphrase),
        cmocka_unit_test(a_certificate_is_told_of),
        cmocka_unit_test(validity_is_that_of_the_whole_chain),
        cmocka_unit_test(expired_authorities_are_told_of),
        cmocka_unit_test(a_fingerprint_is_that_of_the_contents),
        cmocka_unit_test(a_file_that_takes_its_place_is_a_change),
        cmocka_unit_test(a_file_that_goes_is_a_change),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
