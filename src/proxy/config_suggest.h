/*
 * config_suggest.h - what somebody may have meant by a name that does not exist
 *
 * Ownership: the candidates are borrowed until leat_suggest_finish().
 * Threads: one at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_CONFIG_SUGGEST_H
#define LEAT_PROXY_CONFIG_SUGGEST_H

#include <stddef.h>

#include <leat/str.h>

#include "base/text.h"

struct leat_suggest {
    struct leat_str wanted;
    struct leat_str nearest;
    size_t distance; /* of the nearest; what is farther is none */
    char buf[160];
    struct leat_text known; /* all candidates, in BUF */
};

/* Begins the search for what WANTED may have meant. */
void leat_suggest_init(struct leat_suggest *suggest, struct leat_str wanted);

/* One of the names that exist. */
void leat_suggest_offer(struct leat_suggest *suggest, struct leat_str candidate);

/* Returns the end of a sentence: `did you mean "tls"?` or, when none is near, `known: "connect",
 * "tls"`, or, when these are too many to name, where they are listed. Valid as long as SUGGEST. */
const char *leat_suggest_finish(struct leat_suggest *suggest);

#endif
