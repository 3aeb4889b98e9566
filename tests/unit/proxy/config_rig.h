/*
 * config_rig.h - files of YAML for tests, read in a directory of their own as leat.yaml
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CONFIG_RIG_H
#define CONFIG_RIG_H

#include <stddef.h>

#include "proxy/config.h"

#define NAME "leat.yaml"

/* What every file needs that is about something else: three lines. */
#define NEEDED                                                                                     \
    "listeners: [{address: 'amqp://127.0.0.1:5672'}]\n"                                            \
    "backends:\n"                                                                                  \
    "  r1: {address: 'amqp://10.0.0.1'}\n"

/* Makes the directory and goes there; goes away and removes it: for a group of tests. */
int config_rig_enter(void **state);
int config_rig_leave(void **state);

void config_rig_write(const char *name, const char *text, size_t len);

/* Reads the file NAME and finishes. *OUT is to be freed in any case. */
enum leat_status config_rig_load(const char *name, struct leat_config **out,
                                 struct leat_error *err);

/* Returns what the file TEXT says; it must be right. */
struct leat_config *config_rig_take_bytes(const char *text, size_t len);
struct leat_config *config_rig_take(const char *text);

/* The file TEXT must be refused with SENTENCE. */
void config_rig_refuse(const char *text, size_t len, const char *sentence);

/* Makes *STATE a configuration of defaults; frees it: for a test. */
int config_rig_new(void **state);
int config_rig_free(void **state);

/* Sets an option of the command line, which must be right. */
void config_rig_set(struct leat_config *config, const char *name, const char *value);

#endif
