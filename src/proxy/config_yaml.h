/*
 * config_yaml.h - reading a configuration from a file of YAML
 *
 * Ownership: the configuration is the caller's.
 * Threads: blocks on the file: never on a worker's loop.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_CONFIG_YAML_H
#define LEAT_PROXY_CONFIG_YAML_H

#include "proxy/config.h"

/*
 * Reads the file NAME into CONFIG, which has its defaults, and sets config->file. It is read
 * whole or not at all: on failure CONFIG is to be freed. LEAT_EUSAGE with ERR naming file,
 * line, key, what was found and what is allowed, for an unknown key also the nearest known
 * one; LEAT_EIO if the file can't be read; LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status leat_config_read_yaml(struct leat_config *config, const char *name,
                                                       struct leat_error *err);

#endif
