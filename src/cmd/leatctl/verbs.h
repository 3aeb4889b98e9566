/*
 * verbs.h - what leatctl can be asked to do, and its help
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_CMD_LEATCTL_VERBS_H
#define LEAT_CMD_LEATCTL_VERBS_H

#include <stdio.h>

#include <leat/compiler.h>
#include <leat/error.h>

/* Where leat listens unless -s or LEAT_SOCKET says otherwise. */
#define LEAT_CTL_SOCKET "/run/leat/leat.sock"

enum leat_verb_id {
    LEAT_VERB_STATUS,
    LEAT_VERB_SESSIONS,
    LEAT_VERB_SESSION,
    LEAT_VERB_BACKENDS,
    LEAT_VERB_TLS,
    LEAT_VERB_RELOAD,
    LEAT_VERB_DRAIN,
    LEAT_VERB_LOG,
    LEAT_VERB_CONFIG,
    LEAT_VERB_HELP,
};

struct leat_verb {
    const char *name;
    enum leat_verb_id id;
    const char *arguments; /* as the help writes them; "" for none */
    const char *summary;
    const char *details; /* whole lines */
};

/* Finds the verb called NAME. LEAT_EUSAGE, with ERR saying which one may be meant. */
LEAT_MUST_CHECK enum leat_status leat_verb_find(const char *name, const struct leat_verb **out,
                                                struct leat_error *err);

/* Prints the help for VERB, or all of it in short if VERB is NULL, to OUT. */
void leat_verb_print_help(const struct leat_verb *verb, FILE *out);

#endif
