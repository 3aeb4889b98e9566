/*
 * endpoint.h - where to listen or to connect, as the configuration has it
 *
 *   amqp://127.0.0.1:5672    amqps://[::1]:5671      numeric addresses
 *   amqp://rabbit.example    amqps://rabbit.example  a name, for a backend only
 *   amqp+unix:///run/a.sock  amqps+unix:///run/a.sock
 *
 * Ownership: leat_endpoint_fini() frees what an endpoint holds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_ENDPOINT_H
#define LEAT_PROXY_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

#include "net/addr.h"

#define LEAT_ENDPOINT_HOST_MAX 253 /* RFC 1035, 2.3.4 */

/* Room for the text of any endpoint, NUL included. */
#define LEAT_ENDPOINT_TEXT_MAX (LEAT_ENDPOINT_HOST_MAX + 8)

struct leat_endpoint {
    bool tls;
    struct leat_addr addr; /* len is 0 if there is a host, or nothing at all */
    char *host;            /* the name to be resolved, else NULL */
    uint16_t port;         /* of host or addr; 0 for a UNIX socket */
};

/* What leat_endpoint_parse() takes, for messages. */
extern const char leat_endpoint_forms[];

/* Parses TEXT; without a port it is TLS_PORT or PLAIN_PORT. LEAT_EUSAGE with ERR saying what is
 * wrong; LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_endpoint_parse(struct leat_str text, uint16_t tls_port,
                                                     uint16_t plain_port, struct leat_endpoint *out,
                                                     struct leat_error *err);

/* Whether HOST can be a name in DNS (RFC 1123, 2.1), and does not look like an address. */
bool leat_endpoint_is_host(struct leat_str host);

void leat_endpoint_fini(struct leat_endpoint *endpoint);

bool leat_endpoint_is_given(const struct leat_endpoint *endpoint);

bool leat_endpoint_is_unix(const struct leat_endpoint *endpoint);

/* Whether both lead to the same place in the same way. */
bool leat_endpoint_is_equal(const struct leat_endpoint *a, const struct leat_endpoint *b);

/* Writes "127.0.0.1:5672", "rabbit.example:5672" or "unix:/run/a.sock" to BUF; returns BUF. */
const char *leat_endpoint_text(const struct leat_endpoint *endpoint,
                               char buf[LEAT_ENDPOINT_TEXT_MAX]);

/* Room for the URL of any endpoint, NUL included. */
#define LEAT_ENDPOINT_URL_MAX (LEAT_ENDPOINT_TEXT_MAX + 16)

/* Writes "amqps://127.0.0.1:5671" or "amqp+unix:///run/a.sock" to BUF; returns BUF. ADDR is the
 * address that ENDPOINT has come to have in place of its own, or NULL. */
const char *leat_endpoint_url(const struct leat_endpoint *endpoint, const struct leat_addr *addr,
                              char buf[LEAT_ENDPOINT_URL_MAX]);

/* Returns "amqp", "amqps", "amqp+unix" or "amqps+unix". */
const char *leat_endpoint_scheme(const struct leat_endpoint *endpoint);

#endif
