/* Tests of what a configuration can say of TLS. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config_rig.h"

#define BACKENDS "backends: {r1: {address: 'amqp://10.0.0.1'}}\n"
#define LISTENER "listeners:\n- address: amqps://127.0.0.1\n  cert: c\n  key: k\n"

static const char complete[] = "listeners:\n"
                               "- address: amqps://127.0.0.1\n"
                               "  cert: one.pem\n"
                               "  key: one.key\n"
                               "  key_passphrase: one.txt\n"
                               "  min_version: TLSv1.3\n"
                               "  groups: P-256\n"
                               "  client_ca: people.pem\n"
                               "  crl: people.crl\n"
                               "  certificates: [two, three]\n"
                               "certificates:\n"
                               "  two:\n"
                               "    cert: two.pem\n"
                               "    key: two.key\n"
                               "    names: [two.example, '*.two.example']\n"
                               "    client_certificate: optional\n"
                               "    crl: two.crl\n"
                               "    min_version: TLSv1.2\n"
                               "  three: {cert: three.pem, key: three.key, client_ca: ca.pem}\n"
                               "backends:\n"
                               "  r1:\n"
                               "    address: amqps://10.0.0.1\n"
                               "    ca: ca.pem\n"
                               "    cert: leat.pem\n"
                               "    key: leat.key\n"
                               "    max_version: TLSv1.2\n"
                               "    ciphers: ECDHE-RSA-AES128-GCM-SHA256\n"
                               "  r2: {address: 'amqps://10.0.0.2', insecure_skip_verify: true}\n";

static struct leat_tls_settings settings(const struct leat_config *config, const char *certificate)
{
    return leat_config_tls_of(&config->listeners.at[0],
                              leat_config_find_certificate(config, certificate));
}

static void a_listener_says_what_it_shows_and_wants(void **state)
{
    struct leat_config *config = config_rig_take(complete);
    struct leat_tls_settings tls = leat_config_tls_of(&config->listeners.at[0], NULL);

    (void)state;
    assert_string_equal(tls.cert, "one.pem");
    assert_string_equal(tls.key, "one.key");
    assert_string_equal(tls.key_passphrase, "one.txt");
    assert_int_equal(tls.min_version, LEAT_TLS_1_3);
    assert_int_equal(tls.max_version, LEAT_TLS_1_3);
    assert_string_equal(tls.groups, "P-256");
    assert_null(tls.ciphers);
    assert_string_equal(tls.ca, "people.pem");
    assert_int_equal(tls.client_certificate, LEAT_TLS_CLIENT_CERT_REQUIRED);
    leat_config_free(config);
}

static void a_further_certificate_says_only_what_differs(void **state)
{
    struct leat_config *config = config_rig_take(complete);
    struct leat_tls_settings two, three;

    (void)state;
    two = settings(config, "two");
    three = settings(config, "three");
    assert_string_equal(two.cert, "two.pem");
    assert_null(two.key_passphrase); /* another key's would only be wrong */
    assert_int_equal(two.min_version, LEAT_TLS_1_2);
    assert_string_equal(two.groups, "P-256");
    assert_int_equal(two.client_certificate, LEAT_TLS_CLIENT_CERT_OPTIONAL);
    assert_string_equal(two.crl, "two.crl");
    assert_string_equal(three.ca, "ca.pem");
    assert_int_equal(three.client_certificate, LEAT_TLS_CLIENT_CERT_REQUIRED);
    assert_int_equal(three.min_version, LEAT_TLS_1_3);
    assert_int_equal(config->certificates.at[0].server_names.count, 2);
    leat_config_free(config);
}

static void a_further_certificate_asks_as_its_listener_does(void **state)
{
    struct leat_config *config = config_rig_take(
        LISTENER "  client_ca: ca\n  client_certificate: optional\n  certificates: [x]\n"
                 "certificates: {x: {cert: c, key: k}}\n" BACKENDS);
    struct leat_tls_settings tls = settings(config, "x");

    (void)state;
    assert_string_equal(tls.ca, "ca");
    assert_int_equal(tls.client_certificate, LEAT_TLS_CLIENT_CERT_OPTIONAL);
    leat_config_free(config);
}

static void authorities_of_its_own_make_a_certificate_ask(void **state)
{
    struct leat_config *config =
        config_rig_take(LISTENER "  certificates: [x]\n"
                                 "certificates: {x: {cert: c, key: k, client_ca: ca}}\n" BACKENDS);

    (void)state;
    assert_int_equal(settings(config, "x").client_certificate, LEAT_TLS_CLIENT_CERT_REQUIRED);
    assert_int_equal(leat_config_tls_of(&config->listeners.at[0], NULL).client_certificate,
                     LEAT_TLS_CLIENT_CERT_NONE);
    leat_config_free(config);
}

static void a_backend_says_what_it_is_shown(void **state)
{
    struct leat_config *config = config_rig_take(complete);
    const struct leat_backend_config *backend = &config->backends.at[0];

    (void)state;
    assert_string_equal(backend->tls.ca, "ca.pem");
    assert_string_equal(backend->tls.cert, "leat.pem");
    assert_string_equal(backend->tls.key, "leat.key");
    assert_int_equal(backend->tls.max_version, LEAT_TLS_1_2);
    assert_string_equal(backend->tls.ciphers, "ECDHE-RSA-AES128-GCM-SHA256");
    assert_false(backend->insecure_skip_verify);
    assert_true(config->backends.at[1].insecure_skip_verify);
    leat_config_free(config);
}

static void what_does_not_fit_together_is_refused(void **state)
{
    static const struct {
        const char *text, *sentence;
    } wrong[] = {
        {LISTENER "  min_version: TLSv1.1\n" BACKENDS,
         "leat.yaml:5: listeners[0].min_version: expected TLSv1.2 or TLSv1.3, got \"TLSv1.1\""},
        {LISTENER "  min_version: TLSv1.3\n  max_version: TLSv1.2\n" BACKENDS,
         "leat.yaml:5: listeners[0].min_version: is above max_version: no version is left"},
        {LISTENER "  client_certificate: required\n" BACKENDS,
         "leat.yaml:5: listeners[0].client_certificate: needs a client_ca: the authorities of "
         "clients' certificates"},
        {LISTENER "  crl: x\n" BACKENDS,
         "leat.yaml:5: listeners[0].crl: has no effect where clients show no certificate; it "
         "needs a client_ca"},
        {LISTENER "  client_certificate: always\n" BACKENDS,
         "leat.yaml:5: listeners[0].client_certificate: expected none, optional or required, got "
         "\"always\""},
        {LISTENER "  certificates: [mian]\ncertificates: {main: {cert: c, key: k}}\n" BACKENDS,
         "leat.yaml:5: listeners[0].certificates: no certificate is called \"mian\"; did you mean "
         "\"main\"?"},
        {LISTENER "certificates:\n  main: {cert: c, key: k}\n" BACKENDS,
         "leat.yaml:6: certificates.main: no listener shows it: name it in the certificates of "
         "one"},
        {LISTENER "  certificates: [a]\ncertificates:\n  a: {cert: c}\n" BACKENDS,
         "leat.yaml:7: certificates.a.key: a certificate needs one"},
        {LISTENER "certificates:\n  a: {cert: c}\n  a: {cert: c}\n" BACKENDS,
         "leat.yaml:7: certificates.a: is there already, in line 6"},
        {"listeners:\n- address: amqp://127.0.0.1\n  groups: P-256\n" BACKENDS,
         "leat.yaml:3: listeners[0].groups: only an amqps:// listener has one"},
        {"listeners:\n- address: amqp://127.0.0.1\n  certificates: [a]\n" BACKENDS,
         "leat.yaml:3: listeners[0].certificates: only an amqps:// listener has any"},
        {NEEDED "  r2: {address: 'amqps://10.0.0.2', cert: c}\n",
         "leat.yaml:4: backends.r2.key: is missing beside cert"},
        {NEEDED "  r2: {address: 'amqps://10.0.0.2', key: c}\n",
         "leat.yaml:4: backends.r2.cert: is missing beside key"},
        {NEEDED "  r2: {address: 'amqps://10.0.0.2', key_passphrase: c}\n",
         "leat.yaml:4: backends.r2.key_passphrase: there is no key that it could decrypt"},
        {NEEDED "  r2: {address: 'amqps://10.0.0.2', ca: c, insecure_skip_verify: true}\n",
         "leat.yaml:4: backends.r2.insecure_skip_verify: goes with neither ca nor crl, which say "
         "what to verify"},
        {NEEDED "  r2: {address: 'amqp://10.0.0.2', insecure_skip_verify: true}\n",
         "leat.yaml:4: backends.r2.insecure_skip_verify: only an amqps:// backend has one"},
        {NEEDED "  r2: {address: 'amqp://10.0.0.2', min_version: TLSv1.3}\n",
         "leat.yaml:4: backends.r2.min_version: only an amqps:// backend has one"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        config_rig_refuse(wrong[i].text, strlen(wrong[i].text), wrong[i].sentence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listener_says_what_it_shows_and_wants),
        cmocka_unit_test(a_further_certificate_says_only_what_differs),
        cmocka_unit_test(a_further_certificate_asks_as_its_listener_does),
        cmocka_unit_test(authorities_of_its_own_make_a_certificate_ask),
        cmocka_unit_test(a_backend_says_what_it_is_shown),
        cmocka_unit_test(what_does_not_fit_together_is_refused),
    };

    return cmocka_run_group_tests(tests, config_rig_enter, config_rig_leave);
}
