/*
 * certs.h - certificates and keys made when a test runs, in a directory of its own
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_CERTS_H
#define TEST_CERTS_H

#include <stdbool.h>

#define TEST_PATH_MAX 64

struct test_signer;

/* Each array is the path of a PEM file. */
struct test_certs {
    char dir[TEST_PATH_MAX];
    char ca[TEST_PATH_MAX];
    char other_ca[TEST_PATH_MAX]; /* has signed nothing here */
    char cert[TEST_PATH_MAX];     /* for localhost and 127.0.0.1, signed by ca */
    char key[TEST_PATH_MAX];
    char expired[TEST_PATH_MAX];    /* as cert, of the same key, but expired */
    char other_key[TEST_PATH_MAX];  /* of no certificate here */
    char locked_key[TEST_PATH_MAX]; /* the same as key, encrypted with "secret" */
    char nonsense[TEST_PATH_MAX];
    struct test_signer *signer;
};

/* A certificate to be made with the key in `key`, signed by `ca`. */
struct test_cert {
    const char *name;     /* its CN */
    const char *alt;      /* subjectAltName; NULL: none */
    const char *usage;    /* extendedKeyUsage; NULL: none */
    int from_day, to_day; /* of its validity, from now on */
    bool is_authority;    /* signed by `ca`; its key is `key` */
    bool by_authority;    /* signed by the last one with is_authority, which is put behind it */
};

/* Makes SPEC as FILE in the directory; its path goes to PATH. */
void test_certs_issue(struct test_certs *certs, const char *file, const struct test_cert *spec,
                      char path[TEST_PATH_MAX]);

/* Makes a revocation list of `ca` as FILE, good until TO_DAY; it names the certificate in REVOKED
 * unless that is NULL. */
void test_certs_crl(struct test_certs *certs, const char *file, const char *revoked, int to_day,
                    char path[TEST_PATH_MAX]);

/* Writes TEXT to FILE in the directory; its path goes to PATH. */
void test_certs_write(struct test_certs *certs, const char *file, const char *text,
                      char path[TEST_PATH_MAX]);

/* Copies the file at FROM over the one at TO in the way that programs do: whole, by a rename. */
void test_certs_replace(const char *from, const char *to);

/* Makes them all. */
void test_certs_init(struct test_certs *certs);

/* Removes them all. */
void test_certs_fini(struct test_certs *certs);

#endif
