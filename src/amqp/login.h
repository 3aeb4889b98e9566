/*
 * login.h - what a client says of itself before Open, kept for the broker
 *
 * Ownership: owns its copies; credentials are overwritten when they are freed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_AMQP_LOGIN_H
#define LEAT_AMQP_LOGIN_H

#include <stdbool.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

struct leat_amqp_tune {
    uint16_t channel_max; /* in a broker's Tune, 0 is no limit */
    uint32_t frame_max;   /* whole frames, head and end octet included; likewise */
    uint16_t heartbeat_s; /* 0 is off */
};

struct leat_amqp_login {
    struct leat_str client_properties; /* a table's contents, well-formed */
    struct leat_str mechanism;         /* "PLAIN" or "AMQPLAIN" */
    struct leat_str response;          /* secret */
    struct leat_str locale;
    struct leat_str user;       /* from the response; never the password */
    struct leat_str vhost;      /* empty before Open */
    struct leat_amqp_tune tune; /* the client's Tune-Ok */
    uint8_t *payload;           /* what the above is borrowed from */
    size_t payload_len;
    char *user_copy; /* of its own, so that it outlives the secret */
    char *vhost_copy;
};

/*
 * Fills LOGIN from the arguments of a Start-Ok (specification 1.4.2.2), copying them.
 * LEAT_EPROTOCOL if they are malformed, LEAT_EUSAGE if the mechanism is neither PLAIN (RFC
 * 4616) nor AMQPLAIN, LEAT_ENOMEM. A response without a user in it is malformed.
 */
LEAT_MUST_CHECK enum leat_status leat_amqp_login_from_start_ok(struct leat_amqp_login *login,
                                                               struct leat_str arguments);

LEAT_MUST_CHECK enum leat_status leat_amqp_login_set_vhost(struct leat_amqp_login *login,
                                                           struct leat_str vhost);

/* Overwrites and frees what LOGIN holds but the user and vhost's names: the credentials are
 * not needed after the broker has let the session in. */
void leat_amqp_login_forget_secret(struct leat_amqp_login *login);

/* Frees all. LOGIN may be all zero. */
void leat_amqp_login_fini(struct leat_amqp_login *login);

#endif
