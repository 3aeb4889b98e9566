/* SPDX-License-Identifier: Apache-2.0 */
#include "support/certs.h"

#include <dirent.h>
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

struct test_signer {
    X509 *ca, *authority;
    EVP_PKEY *ca_key, *key;
};

/* Makes a certificate of KEY, signed by ISSUER, or by itself as a CA with NULL. */
static X509 *new_cert(const struct test_cert *spec, EVP_PKEY *key, X509 *issuer,
                      EVP_PKEY *issuer_key)
{
    X509 *cert = X509_new();
    X509_NAME *subject = X509_get_subject_name(cert);
    uint64_t serial = 0;

    assert_int_equal(RAND_bytes((unsigned char *)&serial, sizeof(serial) - 1), 1);
    (void)ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial);
    (void)X509_set_version(cert, X509_VERSION_3);
    (void)X509_gmtime_adj(X509_getm_notBefore(cert), (long)spec->from_day * DAY_S);
    (void)X509_gmtime_adj(X509_getm_notAfter(cert), (long)spec->to_day * DAY_S);
    (void)X509_set_pubkey(cert, key);
    (void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)spec->name,
                                     -1, -1, 0);
    (void)X509_set_issuer_name(cert, issuer != NULL ? X509_get_subject_name(issuer) : subject);
    if (spec->is_authority) {
        add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
        add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign");
    }
    if (spec->alt != NULL)
        add_extension(cert, issuer, NID_subject_alt_name, spec->alt);
    if (spec->usage != NULL)
        add_extension(cert, issuer, NID_ext_key_usage, spec->usage);
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

void test_certs_issue(struct test_certs *certs, const char *file, const struct test_cert *spec,
                      char path[TEST_PATH_MAX])
{
    struct test_signer *signer = certs->signer;
    X509 *issuer = spec->by_authority ? signer->authority : signer->ca;
    EVP_PKEY *issuer_key = spec->by_authority ? signer->key : signer->ca_key;
    X509 *cert = new_cert(spec, signer->key, issuer, issuer_key);
    FILE *stream = create(certs, path, file);

    assert_int_equal(PEM_write_X509(stream, cert), 1);
    if (spec->by_authority)
        assert_int_equal(PEM_write_X509(stream, issuer), 1);
    (void)fclose(stream);
    if (spec->is_authority) {
        X509_free(signer->authority);
        signer->authority = X509_dup(cert);
    }
    X509_free(cert);
}

void test_certs_crl(struct test_certs *certs, const char *file, const char *revoked, int to_day,
                    char path[TEST_PATH_MAX])
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *time = X509_gmtime_adj(NULL, -DAY_S);

    (void)X509_CRL_set_version(crl, X509_CRL_VERSION_2);
    (void)X509_CRL_set_issuer_name(crl, X509_get_subject_name(certs->signer->ca));
    (void)X509_CRL_set1_lastUpdate(crl, time);
    if (revoked != NULL) {
        FILE *stream = fopen(revoked, "r");
        assert_non_null(stream);
        X509 *cert = PEM_read_X509(stream, NULL, NULL, NULL);
        X509_REVOKED *entry = X509_REVOKED_new();
        (void)fclose(stream);
        (void)X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(cert));
        (void)X509_REVOKED_set_revocationDate(entry, time);
        assert_int_equal(X509_CRL_add0_revoked(crl, entry), 1);
        X509_free(cert);
    }
    (void)X509_gmtime_adj(time, (long)to_day * DAY_S);
    (void)X509_CRL_set1_nextUpdate(crl, time);
    ASN1_TIME_free(time);
    assert_true(X509_CRL_sign(crl, certs->signer->ca_key, EVP_sha256()) > 0);
    FILE *stream = create(certs, path, file);
    assert_int_equal(PEM_write_X509_CRL(stream, crl), 1);
    (void)fclose(stream);
    X509_CRL_free(crl);
}

void test_certs_write(struct test_certs *certs, const char *file, const char *text,
                      char path[TEST_PATH_MAX])
{
    FILE *stream = create(certs, path, file);
    (void)fputs(text, stream);
    (void)fclose(stream);
}

void test_certs_replace(const char *from, const char *to)
{
    char buf[16384], beside[TEST_PATH_MAX + 8];
    FILE *in = fopen(from, "r");
    assert_non_null(in);
    size_t len = fread(buf, 1, sizeof(buf), in);
    (void)fclose(in);
    (void)snprintf(beside, sizeof(beside), "%s.new", to);
    FILE *out = fopen(beside, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(buf, 1, len, out), len);
    (void)fclose(out);
    assert_return_code(rename(beside, to), 0);
}

void test_certs_init(struct test_certs *certs)
{
    const struct test_cert ca_spec = {
        .name = "leat test CA", .from_day = -1, .to_day = 30, .is_authority = true};
    const struct test_cert other_spec = {
        .name = "other CA", .from_day = -1, .to_day = 30, .is_authority = true};
    const struct test_cert good = {.name = "leat test server",
                                   .alt = "DNS:localhost,IP:127.0.0.1",
                                   .from_day = -1,
                                   .to_day = 30};
    const struct test_cert old = {.name = "leat old server",
                                  .alt = "DNS:localhost,IP:127.0.0.1",
                                  .from_day = -2,
                                  .to_day = 0};
    EVP_PKEY *other_key = EVP_EC_gen("P-256");

    *certs = (struct test_certs){.signer = calloc(1, sizeof(struct test_signer))};
    certs->signer->ca_key = EVP_EC_gen("P-256");
    certs->signer->key = EVP_EC_gen("P-256");
    certs->signer->ca = new_cert(&ca_spec, certs->signer->ca_key, NULL, NULL);
    X509 *other_ca = new_cert(&other_spec, other_key, NULL, NULL);
    (void)snprintf(certs->dir, sizeof(certs->dir), "/tmp/leat-certs-XXXXXX");
    assert_non_null(mkdtemp(certs->dir));
    write_cert(certs, certs->ca, "ca.pem", certs->signer->ca);
    write_cert(certs, certs->other_ca, "other-ca.pem", other_ca);
    test_certs_issue(certs, "cert.pem", &good, certs->cert);
    test_certs_issue(certs, "expired.pem", &old, certs->expired);
    write_key(certs, certs->key, "key.pem", certs->signer->key, NULL);
    write_key(certs, certs->other_key, "other-key.pem", other_key, NULL);
    write_key(certs, certs->locked_key, "locked-key.pem", certs->signer->key, "secret");
    test_certs_write(certs, "nonsense.pem", "no PEM at all\n", certs->nonsense);
    X509_free(other_ca);
    EVP_PKEY_free(other_key);
}

void test_certs_fini(struct test_certs *certs)
{
    DIR *dir = opendir(certs->dir);
    const struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        (void)unlinkat(dirfd(dir), entry->d_name, 0);
    (void)closedir(dir);
    (void)rmdir(certs->dir);
    X509_free(certs->signer->ca);
    X509_free(certs->signer->authority);
    EVP_PKEY_free(certs->signer->ca_key);
    EVP_PKEY_free(certs->signer->key);
    free(certs->signer);
}
