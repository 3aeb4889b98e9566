/* SPDX-License-Identifier: Apache-2.0 */
#include "support/certs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#define DAY_S 86400

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(cert, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* Makes a certificate of KEY called NAME, valid from yesterday for DAYS days; a CA with ISSUER
 * NULL, otherwise signed by it. */
static X509 *new_cert(const char *name, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key, int days)
{
    X509 *cert = X509_new();
    X509_NAME *subject = X509_get_subject_name(cert);
    uint64_t serial = 0;

    assert_int_equal(RAND_bytes((unsigned char *)&serial, sizeof(serial) - 1), 1);
    (void)ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial);
    (void)X509_set_version(cert, X509_VERSION_3);
    (void)X509_gmtime_adj(X509_getm_notBefore(cert), -DAY_S);
    (void)X509_gmtime_adj(X509_getm_notAfter(cert), (long)days * DAY_S);
    (void)X509_set_pubkey(cert, key);
    (void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
                                     -1, 0);
    (void)X509_set_issuer_name(cert, issuer != NULL ? X509_get_subject_name(issuer) : subject);
    if (issuer == NULL) {
        add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
        add_extension(cert, cert, NID_key_usage, "critical,keyCertSign");
    } else {
        add_extension(cert, issuer, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    }
    assert_true(X509_sign(cert, issuer != NULL ? issuer_key : key, EVP_sha256()) > 0);
    return cert;
}

static FILE *create(struct test_certs *certs, char *path, const char *name)
{
    (void)snprintf(path, TEST_PATH_MAX, "%.32s/%s", certs->dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

static void write_cert(struct test_certs *certs, char *path, const char *name, X509 *cert)
{
    FILE *file = create(certs, path, name);
    assert_int_equal(PEM_write_X509(file, cert), 1);
    (void)fclose(file);
}

static void write_key(struct test_certs *certs, char *path, const char *name, EVP_PKEY *key,
                      const char *password)
{
    FILE *file = create(certs, path, name);
    assert_int_equal(PEM_write_PKCS8PrivateKey(file, key,
                                               password != NULL ? EVP_aes_128_cbc() : NULL,
                                               password, password != NULL ? 6 : 0, NULL, NULL),
                     1);
    (void)fclose(file);
}

void test_certs_init(struct test_certs *certs)
{
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *other_key = EVP_EC_gen("P-256");
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *ca = new_cert("leat test CA", ca_key, NULL, NULL, 30);
    X509 *other_ca = new_cert("other CA", other_key, NULL, NULL, 30);
    X509 *cert = new_cert("leat test server", key, ca, ca_key, 30);
    X509 *expired = new_cert("leat old server", key, ca, ca_key, 0);

    (void)snprintf(certs->dir, sizeof(certs->dir), "/tmp/leat-certs-XXXXXX");
    assert_non_null(mkdtemp(certs->dir));
    write_cert(certs, certs->ca, "ca.pem", ca);
    write_cert(certs, certs->other_ca, "other-ca.pem", other_ca);
    write_cert(certs, certs->cert, "cert.pem", cert);
    write_cert(certs, certs->expired, "expired.pem", expired);
    write_key(certs, certs->key, "key.pem", key, NULL);
    write_key(certs, certs->other_key, "other-key.pem", other_key, NULL);
    write_key(certs, certs->locked_key, "locked-key.pem", key, "secret");
    FILE *file = create(certs, certs->nonsense, "nonsense.pem");
    (void)fputs("no PEM at all\n", file);
    (void)fclose(file);

    X509_free(ca);
    X509_free(other_ca);
    X509_free(cert);
    X509_free(expired);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(other_key);
    EVP_PKEY_free(key);
}

void test_certs_fini(struct test_certs *certs)
{
    const char *paths[] = {certs->ca,      certs->other_ca,  certs->cert,       certs->key,
                           certs->expired, certs->other_key, certs->locked_key, certs->nonsense};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        (void)unlink(paths[i]);
    (void)rmdir(certs->dir);
}
