/*
 * server.h - the broker's part of the handshake, played to a client; a pure machine
 *
 * From the first byte to Open: protocol header, Start/Start-Ok, Tune/Tune-Ok, Open. Open-Ok
 * is not sent here: it follows when a broker has said it.
 *
 * Ownership: embedded in the session; init/fini. Holds at most one frame of
 * leat_amqp_server_config.initial_frame_max bytes, and the client's login.
 * Threads: none of its own. No I/O.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_AMQP_SERVER_H
#define LEAT_AMQP_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>

#include "amqp/collect.h"
#include "amqp/login.h"

struct leat_writer;

/* The largest server-properties that Start can carry instead of leat's own. */
#define LEAT_AMQP_SERVER_PROPERTIES_MAX 1500u

struct leat_amqp_server_config {
    const char *product; /* in Start's server-properties */
    const char *version;
    struct leat_str properties; /* what a broker said instead: a table's contents, well-formed and
                                   of at most LEAT_AMQP_SERVER_PROPERTIES_MAX bytes; or empty */
    struct leat_amqp_tune tune; /* what is offered; channel_max and frame_max not 0 */
    uint32_t initial_frame_max; /* frames before Open-Ok, in all: the largest allowed */
    unsigned max_frames;        /* how many frames the client may send before Open-Ok */
};

enum leat_amqp_server_event {
    LEAT_AMQP_SERVER_MORE,    /* all input is taken; more is needed */
    LEAT_AMQP_SERVER_OPEN,    /* the client asks for server->login.vhost; input after it is left */
    LEAT_AMQP_SERVER_REFUSED, /* a Close is in the output; server->refusal tells why */
    LEAT_AMQP_SERVER_FOREIGN, /* no AMQP 0-9-1; the output has what to answer, if anything */
    LEAT_AMQP_SERVER_CLOSED,  /* the client sent Close; Close-Ok is in the output */
    LEAT_AMQP_SERVER_NOMEM,
};

struct leat_amqp_server {
    const struct leat_amqp_server_config *config;
    int state;                              /* enum in server.c */
    uint8_t first[LEAT_AMQP_PROTOCOL_SIZE]; /* the protocol header, as far as it has come */
    size_t first_len;
    unsigned frames;
    struct leat_amqp_collect collect;
    struct leat_amqp_login login;
    uint16_t refusal_code;
    struct leat_error refusal; /* REFUSED: the Close's text; FOREIGN: a sentence for the log */
};

/* The most that one call of leat_amqp_server_feed() writes. */
#define LEAT_AMQP_SERVER_OUT_MAX 2048u

/* CONFIG outlives SERVER. */
void leat_amqp_server_init(struct leat_amqp_server *server,
                           const struct leat_amqp_server_config *config);

void leat_amqp_server_fini(struct leat_amqp_server *server);

/*
 * Takes bytes from the client. *OUT_TAKEN tells how many of LEN were used; the answer, if
 * any, is appended to OUT, which has room for LEAT_AMQP_SERVER_OUT_MAX. After any event but
 * MORE it must not be fed again. In particular:
 *  - first bytes that are not "AMQP" 0 0 9 1 (or the legacy "AMQP" 1 1 0 9): FOREIGN, as soon
 *    as they are known to be; answered with the right header if they are AMQP of another
 *    version or noise (specification 4.2.2), with nothing for TLS (refusal.text names it);
 *  - a mechanism other than PLAIN and AMQPLAIN: refused like RabbitMQ does, 403;
 *  - Tune-Ok above the offer, or 0 where that means "no limit", or frame_max below 4096: 530;
 *  - a frame that is too large: 501; malformed arguments: 502; another method than the one
 *    that is due: 503; not a method on channel 0: 505. Heartbeats are taken and ignored once
 *    Tune was sent.
 */
enum leat_amqp_server_event leat_amqp_server_feed(struct leat_amqp_server *server,
                                                  const uint8_t *data, size_t len,
                                                  size_t *out_taken, struct leat_writer *out);

/* What the client is expected to send, such as "Start-Ok", for log and trace. */
const char *leat_amqp_server_awaits(const struct leat_amqp_server *server);

#endif
