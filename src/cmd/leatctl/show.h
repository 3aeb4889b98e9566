/*
 * show.h - what leat answers, as people read it
 *
 * Whatever leat has from peers is written without control characters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_CMD_LEATCTL_SHOW_H
#define LEAT_CMD_LEATCTL_SHOW_H

#include <stdio.h>

#include <jansson.h>

#include <leat/compiler.h>
#include <leat/error.h>

#include "order.h"

/* Prints ANSWER, which says yes to ORDER, to OUT. LEAT_ENOMEM; LEAT_EPROTOCOL if it lacks what such
 * an answer has. A failure to write is left for ferror(). */
LEAT_MUST_CHECK enum leat_status leat_show_answer(const struct leat_order *order,
                                                  const json_t *answer, FILE *out);

/* Prints EVENT, one of those that follow an answer, as one line. */
void leat_show_event(const json_t *event, FILE *out);

#endif
