/*
 * load.h - from the command line, and the file it names, to a snapshot
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_CMD_LEAT_LOAD_H
#define LEAT_CMD_LEAT_LOAD_H

#include <stdbool.h>

#include <leat/compiler.h>
#include <leat/error.h>

struct leat_snapshot;

/* What the command line asks for besides the configuration. */
struct leat_command {
    bool check; /* `leat check`: validate, and no more */
    bool help, version;
    const char *file; /* of -c; NULL without */
    int argc;         /* all that follows the program's name, `check` left out */
    char **argv;
};

/* Takes the command line apart as far as it is no configuration. LEAT_EUSAGE. */
LEAT_MUST_CHECK enum leat_status leat_command_parse(int argc, char **argv, struct leat_command *out,
                                                    struct leat_error *err);

/* Reads file and options anew and builds a snapshot of them. OLD as in proxy/snapshot.h; if there
 * is one, the new snapshot can replace it. LEAT_EUSAGE, LEAT_EIO, LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_command_load(const struct leat_command *command,
                                                   const struct leat_snapshot *old,
                                                   struct leat_snapshot **out,
                                                   struct leat_error *err);

/* Does what `leat check` does with SNAPSHOT, which could be built: judges the dates of certificates
 * and prints what there is. LEAT_EUSAGE for a certificate that is not valid now. */
LEAT_MUST_CHECK enum leat_status leat_command_check(const struct leat_snapshot *snapshot,
                                                    struct leat_error *err);

#endif
