/*
 * Tests of tls/trust.h: stores are shared by what they hold, and a directory is read whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/certs.h"
#include "support/tls_parts.h"

static struct test_certs certs;

static int setup(void **state)
{
    struct leat_tls_trusts *trusts = NULL;
    test_certs_init(&certs);
    *state = trusts;
    return leat_tls_trusts_new(&trusts, NULL) != LEAT_OK || (*state = trusts) == NULL;
}

static int teardown(void **state)
{
    leat_tls_trusts_unref(*state);
    test_certs_fini(&certs);
    return 0;
}

static struct leat_tls_config *config_with(const char *ca, const char *crl)
{
    struct leat_tls_config *config = test_config_of(LEAT_TLS_CLIENT, NULL, NULL);
    if (ca != NULL)
        assert_int_equal(leat_tls_config_set_authorities(config, ca, NULL), LEAT_OK);
    if (crl != NULL)
        assert_int_equal(leat_tls_config_add_crl(config, crl, NULL), LEAT_OK);
    return config;
}

static struct leat_tls_ctx *build(struct leat_tls_trusts *trusts, struct leat_tls_config *config)
{
    struct leat_tls_ctx *ctx = NULL;
    struct leat_error err = {0};
    if (leat_tls_ctx_build(config, trusts, &ctx, &err) != LEAT_OK)
        fail_msg("no context: %s", err.text);
    leat_tls_config_unref(config);
    return ctx;
}

static struct leat_tls_trusts_counters counters(struct leat_tls_trusts *trusts)
{
    struct leat_tls_trusts_counters out;
    leat_tls_trusts_counters(trusts, &out);
    return out;
}

static void equal_contents_are_parsed_once(void **state)
{
    char copy[TEST_PATH_MAX];
    test_certs_write(&certs, "copy.pem", "", copy);
    test_certs_replace(certs.ca, copy);
    struct leat_tls_config *named = config_with(certs.ca, NULL);
    assert_int_equal(leat_tls_config_set_groups(named, "P-384", NULL), LEAT_OK);
    struct leat_tls_ctx *a = build(*state, config_with(certs.ca, NULL));
    struct leat_tls_ctx *b = build(*state, named);
    struct leat_tls_ctx *c = build(*state, config_with(copy, NULL));
    assert_int_equal(counters(*state).parses, 1);
    assert_int_equal(counters(*state).shared, 2);
    assert_int_equal(counters(*state).stores, 1);
    assert_ptr_equal(leat_tls_ctx_trust(a), leat_tls_ctx_trust(c));
    /* Their files differ in name, so they are not the same in all respects. */
    assert_false(leat_tls_digest_equal(leat_tls_ctx_fingerprint(a), leat_tls_ctx_fingerprint(c)));
    leat_tls_ctx_unref(a);
    leat_tls_ctx_unref(b);
    assert_int_equal(counters(*state).stores, 1);
    leat_tls_ctx_unref(c);
    assert_int_equal(counters(*state).stores, 0);
    leat_tls_ctx_unref(build(*state, config_with(certs.ca, NULL)));
    assert_int_equal(counters(*state).parses, 2); /* the last user had freed it */
}

static void other_contents_are_not_shared(void **state)
{
    char crl[TEST_PATH_MAX];
    test_certs_crl(&certs, "crl.pem", NULL, 5, crl);
    struct leat_tls_ctx *a = build(*state, config_with(certs.ca, NULL));
    struct leat_tls_ctx *b = build(*state, config_with(certs.other_ca, NULL));
    struct leat_tls_ctx *c = build(*state, config_with(certs.ca, crl));
    assert_int_equal(counters(*state).parses, 3);
    assert_int_equal(counters(*state).stores, 3);
    assert_int_equal(leat_tls_ctx_trust(a)->crls, 0);
    assert_int_equal(leat_tls_ctx_trust(c)->crls, 1);
    assert_true(leat_tls_ctx_trust(a)->crl_next_until == INT64_MAX);
    assert_true(leat_tls_ctx_trust(c)->crl_next_until < leat_tls_ctx_trust(c)->last_until);
    leat_tls_ctx_unref(a);
    leat_tls_ctx_unref(b);
    leat_tls_ctx_unref(c);
}

/* A directory as c_rehash leaves one: files, links by hash to them, and what is neither. */
static void make_dir(char dir[TEST_PATH_MAX])
{
    char path[TEST_PATH_MAX + 32];
    (void)snprintf(dir, TEST_PATH_MAX, "%.32s-ca", certs.dir);
    assert_return_code(mkdir(dir, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/a.crt", dir);
    assert_return_code(link(certs.ca, path), 0);
    (void)snprintf(path, sizeof(path), "%s/9d66eef0.0", dir);
    assert_return_code(symlink("a.crt", path), 0);
    (void)snprintf(path, sizeof(path), "%s/0123abcd.0", dir);
    assert_return_code(symlink("gone.crt", path), 0);
    (void)snprintf(path, sizeof(path), "%s/README", dir);
    assert_return_code(symlink(certs.nonsense, path), 0);
    (void)snprintf(path, sizeof(path), "%s/sub.pem", dir);
    assert_return_code(mkdir(path, 0700), 0);
}

static void remove_dir(const char *dir)
{
    static const char *const names[] = {"a.crt",      "b.pem",  "9d66eef0.0",
                                        "0123abcd.0", "README", "c.cer"};
    char path[TEST_PATH_MAX + 32];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof(path), "%s/sub.pem", dir);
    (void)rmdir(path);
    assert_return_code(rmdir(dir), 0);
}

static void a_directory_is_read_whole(void **state)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX + 32];
    make_dir(dir);
    struct leat_tls_ctx *ctx = build(*state, config_with(dir, NULL));
    assert_int_equal(leat_tls_ctx_trust(ctx)->authorities, 1); /* the link is no second one */
    struct leat_tls_ctx *of_file = build(*state, config_with(certs.ca, NULL));
    assert_ptr_equal(leat_tls_ctx_trust(ctx), leat_tls_ctx_trust(of_file));
    leat_tls_ctx_unref(of_file);
    assert_false(leat_tls_ctx_has_changed(ctx));
    (void)snprintf(path, sizeof(path), "%s/b.pem", dir);
    assert_return_code(link(certs.other_ca, path), 0);
    assert_true(leat_tls_ctx_has_changed(ctx));
    leat_tls_ctx_unref(ctx);
    ctx = build(*state, config_with(dir, NULL));
    assert_int_equal(leat_tls_ctx_trust(ctx)->authorities, 2);
    leat_tls_ctx_unref(ctx);
    remove_dir(dir);
}

static void assert_bad(struct leat_tls_config *config, const char *named, const char *says)
{
    struct leat_tls_ctx *ctx = NULL;
    struct leat_error err = {0};
    assert_int_equal(leat_tls_ctx_build(config, NULL, &ctx, &err), LEAT_EUSAGE);
    if (strstr(err.text, named) == NULL || strstr(err.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\" of %s", err.text, says, named);
    leat_tls_config_unref(config);
}

static void what_is_wrong_with_a_directory_is_told(void **state)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX + 32];
    (void)state;
    make_dir(dir);
    (void)snprintf(path, sizeof(path), "%s/c.cer", dir);
    assert_return_code(link(certs.nonsense, path), 0);
    assert_bad(config_with(dir, NULL), "c.cer", "PEM");
    remove_dir(dir);
    assert_return_code(mkdir(dir, 0700), 0);
    assert_bad(config_with(dir, NULL), dir, "no file in it ends in");
    assert_return_code(rmdir(dir), 0);
}

static void a_crl_file_must_hold_one(void **state)
{
    (void)state;
    assert_bad(config_with(certs.ca, certs.cert), certs.cert, "no revocation list");
    assert_bad(config_with(certs.ca, "/none/crl.pem"), "CRL file /none/crl.pem", "No such file");
}

static void a_crl_of_nobody_trusted_is_refused(void **state)
{
    char crl[TEST_PATH_MAX];
    (void)state;
    test_certs_crl(&certs, "foreign.pem", NULL, 5, crl);
    assert_bad(config_with(certs.other_ca, crl), crl, "of an authority that is trusted");
}

static void the_system_has_authorities(void **state)
{
    assert_return_code(setenv("SSL_CERT_FILE", certs.ca, 1), 0);
    struct leat_tls_ctx *ctx = build(*state, config_with(NULL, NULL));
    assert_int_equal(leat_tls_ctx_trust(ctx)->authorities, 1);
    leat_tls_ctx_unref(ctx);
    assert_return_code(setenv("SSL_CERT_FILE", "/none", 1), 0);
    assert_return_code(setenv("SSL_CERT_DIR", "/none", 1), 0);
    assert_bad(config_with(NULL, NULL), "the system", "name a CA file");
    assert_return_code(unsetenv("SSL_CERT_FILE"), 0);
    assert_return_code(unsetenv("SSL_CERT_DIR"), 0);
}

static void who_verifies_nobody_has_no_store(void **state)
{
    struct leat_tls_config *config = test_config_of(LEAT_TLS_CLIENT, NULL, NULL);
    assert_int_equal(leat_tls_config_insecure_skip_verify(config, NULL), LEAT_OK);
    struct leat_tls_ctx *ctx = build(*state, config);
    assert_int_equal(counters(*state).parses, 0);
    assert_null(leat_tls_ctx_trust(ctx));
    leat_tls_ctx_unref(ctx);
}

#define TRUST_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRUST_TEST(equal_contents_are_parsed_once),
        TRUST_TEST(other_contents_are_not_shared),
        TRUST_TEST(a_directory_is_read_whole),
        TRUST_TEST(what_is_wrong_with_a_directory_is_told),
        TRUST_TEST(a_crl_file_must_hold_one),
        TRUST_TEST(a_crl_of_nobody_trusted_is_refused),
        TRUST_TEST(the_system_has_authorities),
        TRUST_TEST(who_verifies_nobody_has_no_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
