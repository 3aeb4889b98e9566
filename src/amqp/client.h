/*
 * client.h - the client's part of the handshake, played to a broker; a pure machine
 *
 * Replays a client's login: protocol header, Start/Start-Ok, Tune/Tune-Ok, Open/Open-Ok.
 *
 * Ownership: embedded in the session; init/fini. The login and the texts of the
 * configuration are borrowed and outlive it.
 * Threads: none of its own. No I/O.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_AMQP_CLIENT_H
#define LEAT_AMQP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>

#include "amqp/collect.h"
#include "amqp/login.h"

struct leat_writer;

struct leat_amqp_client_config {
    const struct leat_amqp_login *login;
    struct leat_str peer; /* the real client, "192.0.2.1:4711" or "192.0.2.1:4711 TLS": becomes
                             the property `leat_client` */
};

enum leat_amqp_client_event {
    LEAT_AMQP_CLIENT_MORE,    /* all input is taken; more is needed */
    LEAT_AMQP_CLIENT_STARTED, /* Start-Ok is in the output; feed on */
    LEAT_AMQP_CLIENT_OPEN,    /* Open-Ok came; input after it is left */
    LEAT_AMQP_CLIENT_REFUSED, /* the broker sent Close: client->close; Close-Ok is in the output */
    LEAT_AMQP_CLIENT_SECURE,  /* the broker asks Secure, which can't be answered */
    LEAT_AMQP_CLIENT_FAILED,  /* the broker breaks the protocol: client->failure */
    LEAT_AMQP_CLIENT_UNFIT,   /* the broker works, but not for this login: client->failure */
    LEAT_AMQP_CLIENT_NOMEM,
};

struct leat_amqp_client {
    const struct leat_amqp_client_config *config;
    int state; /* enum in client.c */
    unsigned frames;
    struct leat_amqp_collect collect;
    bool tells_auth_failure;       /* the broker's Start has authentication_failure_close */
    struct leat_str properties;    /* STARTED: the broker's, a table's contents; until fed again */
    struct leat_amqp_tune offered; /* the broker's Tune */
    struct leat_amqp_tune tune;    /* what was agreed; frame_max and channel_max may be 0 */
    uint16_t close_code;           /* REFUSED */
    char close_text[256];          /* NUL-terminated; may hold any other bytes */
    size_t close_text_len;
    struct leat_error failure; /* FAILED: the sentence for the log */
};

/* RabbitMQ 4.1 and later refuse a Tune-Ok with less, which is what some clients choose. */
#define LEAT_AMQP_CLIENT_FRAME_MAX_MIN 8192u

/* The most that one call of leat_amqp_client_feed() writes, for a login whose Start-Ok
 * payload has PAYLOAD_LEN bytes. */
#define LEAT_AMQP_CLIENT_OUT_MAX(payload_len) ((payload_len) + 1024u)

/* CONFIG outlives CLIENT. */
void leat_amqp_client_init(struct leat_amqp_client *client,
                           const struct leat_amqp_client_config *config);

void leat_amqp_client_fini(struct leat_amqp_client *client);

/* Writes the protocol header, with which the connection begins. */
void leat_amqp_client_begin(struct leat_amqp_client *client, struct leat_writer *out);

/*
 * Takes bytes from the broker. *OUT_TAKEN and OUT as in amqp/server.h. After any event but
 * MORE and STARTED it must not be fed again.
 *
 * Start-Ok repeats the client's mechanism, response, locale and properties byte for byte,
 * except: properties that begin with `leat_` or `amqpprox_` are removed, `leat_client` is
 * added, and the capability `authentication_failure_close` is set to true (without it
 * RabbitMQ resets the connection instead of saying why). Tune-Ok is the lesser of what the
 * broker offers and what the client has chosen, 0 being no limit for sizes; a frame_max below
 * LEAT_AMQP_CLIENT_FRAME_MAX_MIN counts as that, and what comes then has to be split for the
 * client. The heartbeat is never longer than the client's unless that is 0, and then the broker's.
 */
enum leat_amqp_client_event leat_amqp_client_feed(struct leat_amqp_client *client,
                                                  const uint8_t *data, size_t len,
                                                  size_t *out_taken, struct leat_writer *out);

/* What the broker is expected to send, such as "Tune", for log and trace. */
const char *leat_amqp_client_awaits(const struct leat_amqp_client *client);

#endif
