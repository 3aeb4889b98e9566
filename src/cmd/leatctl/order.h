/*
 * order.h - from the command line to a request
 *
 * Ownership: an order borrows the command line and owns its request.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_CMD_LEATCTL_ORDER_H
#define LEAT_CMD_LEATCTL_ORDER_H

#include <stdbool.h>

#include <jansson.h>

#include <leat/compiler.h>
#include <leat/error.h>

#include "verbs.h"

struct leat_order {
    const char *socket; /* of -s; NULL without */
    bool json;
    bool version;
    bool help; /* for the verb, or for all if that is NULL; there is no request then */
    const struct leat_verb *verb;
    bool watches; /* the answer is followed by events */
    json_t *request;
};

/* Takes the command line apart. LEAT_EUSAGE, LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_order_parse(int argc, char **argv, struct leat_order *out,
                                                  struct leat_error *err);

void leat_order_fini(struct leat_order *order);

#endif
