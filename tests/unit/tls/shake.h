/*
 * shake.h - one whole connection of a bare OpenSSL client to a server under test
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_TLS_SHAKE_H
#define TEST_TLS_SHAKE_H

#include "stream_side.h"

/* The client. All zero is one with the library's defaults that asks for no name. */
struct shake_client {
    const char *name;    /* SNI */
    const char *cert;    /* a client certificate, with side_certs.key */
    int version;         /* the only one it speaks; 0: any */
    const char *ciphers; /* of TLS 1.2 */
    const char *suites;  /* of TLS 1.3 */
    const char *groups;
    SSL_SESSION *session; /* to be resumed */
};

/* What came of it. */
struct shake {
    bool is_open;             /* for both */
    struct leat_error error;  /* the server's, if not */
    int alert;                /* SSL_R_… of the alert that the client got, or 0 */
    struct leat_tls_ctx *ctx; /* that the server has used; not to be touched */
    bool is_resumed;
    int tickets;          /* that the client got */
    SSL_SESSION *session; /* of the last; the caller's */
    char subject[64];     /* CN of the certificate that the client saw */
    char peer[64];        /* what the server says of the client's */
    char asked[64];       /* the name that the server says the client asked for */
    int authorities;      /* whose certificates the client was told to show */
    char version[16], cipher[64];
};

/* Connects CLIENT to SERVER with F's users, and closes again. */
struct shake shake(struct fixture *f, struct leat_tls_server *server,
                   const struct shake_client *client);

#endif
