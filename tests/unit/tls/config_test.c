/*
 * Tests of tls/config.h: what can be set, what is refused, and what the key tells apart.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/err.h>

#include "base/mem.h"
#include "tls/config.h"

static struct leat_tls_config *new_config(enum leat_tls_role role)
{
    struct leat_tls_config *config = NULL;
    assert_int_equal(leat_tls_config_new(role, &config, NULL), LEAT_OK);
    return config;
}

static void assert_refused(enum leat_status status, const struct leat_error *err, const char *says)
{
    assert_int_equal(status, LEAT_EUSAGE);
    assert_int_equal(err->status, LEAT_EUSAGE);
    if (strstr(err->text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err->text, says);
    assert_int_equal(ERR_peek_error(), 0);
}

typedef enum leat_status set_list_fn(struct leat_tls_config *, const char *, struct leat_error *);

static void lists_are_taken_if_every_name_is_known(void **state)
{
    static const struct {
        set_list_fn *set;
        const char *list;
        const char *says; /* NULL: it is good */
    } cases[] = {
        {leat_tls_config_set_ciphers, "ECDHE-RSA-AES256-GCM-SHA384", NULL},
        {leat_tls_config_set_ciphers, "ECDHE+AESGCM:!aNULL:-PSK", NULL},
        {leat_tls_config_set_ciphers, "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES",
         "\"ECDHE-RSA-AES\""},
        {leat_tls_config_set_ciphers, "TLS_AES_128_GCM_SHA256", "TLS 1.2"},
        {leat_tls_config_set_ciphers, "ECDHE+AESGCM:@SECLEVEL=0", "@SECLEVEL=0"},
        {leat_tls_config_set_ciphers, "AESGCM:!AESGCM", "leaves no"},
        {leat_tls_config_set_ciphers, "", "\"\" is no cipher"},
        {leat_tls_config_set_ciphers, "AESGCM::AESCCM", "\"\" is no cipher"},
        {leat_tls_config_set_ciphers, NULL, "\"\" is no cipher"},
        {leat_tls_config_set_ciphersuites, "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256", NULL},
        {leat_tls_config_set_ciphersuites, "TLS_AES_256_GCM_SHA384:TLS_AES_999", "\"TLS_AES_999\""},
        {leat_tls_config_set_ciphersuites, "ECDHE-RSA-AES256-GCM-SHA384", "TLS 1.3"},
        {leat_tls_config_set_groups, "P-384:X25519", NULL},
        {leat_tls_config_set_groups, "P-384:P-999", "\"P-999\" is no group"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct leat_tls_config *config = new_config(LEAT_TLS_CLIENT);
        struct leat_error err = {0};
        enum leat_status status = cases[i].set(config, cases[i].list, &err);
        if (cases[i].says == NULL)
            assert_int_equal(status, LEAT_OK);
        else
            assert_refused(status, &err, cases[i].says);
        leat_tls_config_unref(config);
    }
}

static void values_out_of_range_are_refused(void **state)
{
    struct leat_tls_config *client = new_config(LEAT_TLS_CLIENT);
    struct leat_tls_config *server = new_config(LEAT_TLS_SERVER);
    struct leat_error err = {0};
    (void)state;
    assert_refused(leat_tls_config_set_versions(client, LEAT_TLS_1_3, LEAT_TLS_1_2, &err), &err,
                   "above the highest");
    assert_refused(leat_tls_config_set_depth(client, 101, &err), &err, "up to 100 deep");
    assert_int_equal(leat_tls_config_set_depth(client, 0, &err), LEAT_OK);
    assert_refused(leat_tls_config_set_cert(client, "", "key.pem", &err), &err, "empty");
    assert_refused(leat_tls_config_set_cert(client, "cert.pem", NULL, &err), &err, "empty");
    assert_null(leat_tls_config_cert_file(client)); /* nothing was changed */
    assert_refused(leat_tls_config_set_client_cert(client, LEAT_TLS_CLIENT_CERT_REQUIRED, &err),
                   &err, "servers only");
    assert_refused(leat_tls_config_set_tickets(client, true, &err), &err, "servers only");
    assert_refused(leat_tls_config_insecure_skip_verify(server, &err), &err, "clients only");
    for (int i = 0; i < LEAT_TLS_CRL_FILES_MAX; i++)
        assert_int_equal(leat_tls_config_add_crl(client, "crl.pem", NULL), LEAT_OK);
    assert_refused(leat_tls_config_add_crl(client, "crl.pem", &err), &err, "more than 64");
    leat_tls_config_unref(client);
    leat_tls_config_unref(server);
}

static void the_whole_is_judged_when_it_is_frozen(void **state)
{
    struct leat_error err = {0};
    (void)state;
    struct leat_tls_config *config = new_config(LEAT_TLS_SERVER);
    assert_refused(leat_tls_config_freeze(config, &err), &err, "needs a certificate");
    assert_int_equal(leat_tls_config_set_cert(config, "cert.pem", "key.pem", NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_set_client_cert(config, LEAT_TLS_CLIENT_CERT_OPTIONAL, NULL),
                     LEAT_OK);
    assert_refused(leat_tls_config_freeze(config, &err), &err, "no CA");
    assert_int_equal(leat_tls_config_set_client_cert(config, LEAT_TLS_CLIENT_CERT_NONE, NULL),
                     LEAT_OK);
    assert_int_equal(leat_tls_config_add_crl(config, "crl.pem", NULL), LEAT_OK);
    assert_refused(leat_tls_config_freeze(config, &err), &err, "revocation lists");
    leat_tls_config_unref(config);

    config = new_config(LEAT_TLS_CLIENT);
    assert_int_equal(leat_tls_config_set_passphrase_file(config, "pass", NULL), LEAT_OK);
    assert_refused(leat_tls_config_freeze(config, &err), &err, "no key");
    leat_tls_config_unref(config);

    config = new_config(LEAT_TLS_CLIENT);
    assert_int_equal(leat_tls_config_insecure_skip_verify(config, NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_set_authorities(config, "ca.pem", NULL), LEAT_OK);
    assert_refused(leat_tls_config_freeze(config, &err), &err, "switched off");
    leat_tls_config_unref(config);
    leat_tls_config_unref(NULL);
}

static void a_frozen_one_is_not_changed(void **state)
{
    struct leat_tls_config *config = new_config(LEAT_TLS_CLIENT);
    struct leat_error err = {0};
    (void)state;
    assert_int_equal(leat_tls_config_freeze(config, &err), LEAT_OK);
    assert_int_equal(leat_tls_config_freeze(config, &err), LEAT_OK);
    assert_refused(leat_tls_config_set_authorities(config, "ca.pem", &err), &err, "in use");
    assert_refused(leat_tls_config_set_groups(config, "X25519", &err), &err, "in use");
    assert_refused(leat_tls_config_set_depth(config, 1, &err), &err, "in use");
    assert_refused(leat_tls_config_insecure_skip_verify(config, &err), &err, "in use");
    leat_tls_config_unref(config);
}

/* Changes one thing; there is one of these for each. False at the end. */
static bool change(struct leat_tls_config *config, int which)
{
    switch (which) {
    case 0:
        return leat_tls_config_set_cert(config, "b", "key", NULL) == LEAT_OK;
    case 1:
        return leat_tls_config_set_cert(config, "cert", "b", NULL) == LEAT_OK;
    case 2:
        return leat_tls_config_set_passphrase_file(config, "b", NULL) == LEAT_OK;
    case 3:
        return leat_tls_config_set_authorities(config, "b", NULL) == LEAT_OK;
    case 4:
        return leat_tls_config_add_crl(config, "b", NULL) == LEAT_OK;
    case 5:
        return leat_tls_config_set_client_cert(config, LEAT_TLS_CLIENT_CERT_OPTIONAL, NULL) ==
               LEAT_OK;
    case 6:
        return leat_tls_config_set_depth(config, 3, NULL) == LEAT_OK;
    case 7:
        return leat_tls_config_set_versions(config, LEAT_TLS_1_3, LEAT_TLS_1_3, NULL) == LEAT_OK;
    case 8:
        return leat_tls_config_set_versions(config, LEAT_TLS_1_2, LEAT_TLS_1_2, NULL) == LEAT_OK;
    case 9:
        return leat_tls_config_set_ciphers(config, "AESGCM", NULL) == LEAT_OK;
    case 10:
        return leat_tls_config_set_ciphersuites(config, "TLS_AES_128_GCM_SHA256", NULL) == LEAT_OK;
    case 11:
        return leat_tls_config_set_groups(config, "P-256", NULL) == LEAT_OK;
    case 12:
        return leat_tls_config_set_tickets(config, false, NULL) == LEAT_OK;
    default:
        return false;
    }
}

static struct leat_tls_config *full_config(void)
{
    struct leat_tls_config *config = new_config(LEAT_TLS_SERVER);
    assert_int_equal(leat_tls_config_set_cert(config, "cert", "key", NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_set_authorities(config, "ca", NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_set_client_cert(config, LEAT_TLS_CLIENT_CERT_REQUIRED, NULL),
                     LEAT_OK);
    return config;
}

static void equal_ones_have_equal_keys_and_no_others(void **state)
{
    enum { CHANGES = 13 };
    struct leat_tls_digest keys[CHANGES + 1];
    (void)state;
    for (int i = 0; i <= CHANGES; i++) {
        struct leat_tls_config *config = full_config(), *twin = full_config();
        assert_int_equal(change(config, i), i < CHANGES);
        (void)change(twin, i);
        assert_int_equal(leat_tls_config_freeze(config, NULL), LEAT_OK);
        assert_int_equal(leat_tls_config_freeze(twin, NULL), LEAT_OK);
        keys[i] = *leat_tls_config_key(config);
        assert_true(leat_tls_digest_equal(&keys[i], leat_tls_config_key(twin)));
        for (int j = 0; j < i; j++)
            assert_false(leat_tls_digest_equal(&keys[i], &keys[j]));
        leat_tls_config_unref(config);
        leat_tls_config_unref(twin);
    }
}

static void skipping_verification_is_in_the_key(void **state)
{
    struct leat_tls_config *safe = new_config(LEAT_TLS_CLIENT);
    struct leat_tls_config *unsafe = new_config(LEAT_TLS_CLIENT);
    (void)state;
    assert_int_equal(leat_tls_config_insecure_skip_verify(unsafe, NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_freeze(safe, NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_freeze(unsafe, NULL), LEAT_OK);
    assert_false(leat_tls_digest_equal(leat_tls_config_key(safe), leat_tls_config_key(unsafe)));
    leat_tls_config_unref(safe);
    leat_tls_config_unref(unsafe);
}

static void *freeze(void *arg)
{
    struct leat_tls_config *config = arg;
    assert_int_equal(leat_tls_config_freeze(config, NULL), LEAT_OK);
    leat_tls_config_unref(config);
    return NULL;
}

static void threads_may_freeze_one_at_once(void **state)
{
    struct leat_tls_config *config = full_config();
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, freeze, leat_tls_config_ref(config)), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_non_null(leat_tls_config_key(config));
    leat_tls_config_unref(config);
}

static void running_out_of_memory_changes_nothing(void **state)
{
    struct leat_tls_config *config = NULL;
    struct leat_error err = {0};
    (void)state;
    leat_mem_fail_after(1);
    assert_int_equal(leat_tls_config_new(LEAT_TLS_CLIENT, &config, &err), LEAT_ENOMEM);
    assert_null(config);
    config = new_config(LEAT_TLS_CLIENT);
    for (unsigned nth = 1; nth <= 2; nth++) {
        leat_mem_fail_after(nth);
        assert_int_equal(leat_tls_config_set_cert(config, "cert", "key", &err), LEAT_ENOMEM);
        assert_null(leat_tls_config_cert_file(config));
    }
    leat_mem_fail_after(1);
    assert_int_equal(leat_tls_config_set_groups(config, "X25519", &err), LEAT_ENOMEM);
    leat_tls_config_unref(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_taken_if_every_name_is_known),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(the_whole_is_judged_when_it_is_frozen),
        cmocka_unit_test(a_frozen_one_is_not_changed),
        cmocka_unit_test(equal_ones_have_equal_keys_and_no_others),
        cmocka_unit_test(skipping_verification_is_in_the_key),
        cmocka_unit_test(threads_may_freeze_one_at_once),
        cmocka_unit_test(running_out_of_memory_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
