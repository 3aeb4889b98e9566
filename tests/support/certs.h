/*
 * certs.h - certificates and keys made when a test runs, in a directory of its own
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_CERTS_H
#define TEST_CERTS_H

#define TEST_PATH_MAX 64

/* Each member is the path of a PEM file. */
struct test_certs {
    char dir[TEST_PATH_MAX];
    char ca[TEST_PATH_MAX];
    char other_ca[TEST_PATH_MAX]; /* has signed nothing here */
    char cert[TEST_PATH_MAX];     /* for localhost and 127.0.0.1, signed by ca */
    char key[TEST_PATH_MAX];
    char expired[TEST_PATH_MAX];    /* as cert, of the same key, but expired */
    char other_key[TEST_PATH_MAX];  /* of no certificate here */
    char locked_key[TEST_PATH_MAX]; /* the same as key, encrypted */
    char nonsense[TEST_PATH_MAX];
};

/* Makes them all. */
void test_certs_init(struct test_certs *certs);

/* Removes them all. */
void test_certs_fini(struct test_certs *certs);

#endif
