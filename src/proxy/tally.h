/*
 * tally.h - what is told of a backend: how it fared, and what its broker says of itself
 *
 * A backend of the same name and address has one tally, whichever configuration a session began
 * with.
 *
 * Ownership: counted.
 * Threads: any.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_TALLY_H
#define LEAT_PROXY_TALLY_H

#include <stdint.h>

#include <leat/str.h>

struct leat_tally;

/* What a broker says of itself is cut at this length. */
#define LEAT_TALLY_NAME_MAX 64

struct leat_tally_report {
    uint64_t sessions; /* open now */
    uint64_t opened, failures;
    int64_t last_failure_at; /* ms since 1970; 0: none */
    char last_failure[256];
    char product[LEAT_TALLY_NAME_MAX + 1], version[LEAT_TALLY_NAME_MAX + 1]; /* "": not known */
};

/* NULL if memory is short. */
struct leat_tally *leat_tally_new(void);
struct leat_tally *leat_tally_ref(struct leat_tally *tally);
/* NULL is a no-op. */
void leat_tally_unref(struct leat_tally *tally);

/* Note that a session opened, that one which had opened is over, that one could not be opened, and
 * why; what a broker's Start said, its PROPERTIES being a table's contents. */
void leat_tally_opened(struct leat_tally *tally);
void leat_tally_closed(struct leat_tally *tally);
void leat_tally_failed(struct leat_tally *tally, const char *reason);
void leat_tally_learn(struct leat_tally *tally, struct leat_str properties);

void leat_tally_read(struct leat_tally *tally, struct leat_tally_report *out);

#endif
