/*
 * config_json.h - a configuration as JSON, in the form of the file
 *
 * Every key has its value, defaults included, written as a person writes it. As YAML it is a file
 * that leat takes, and that means the same wherever it lies: names of files are absolute.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_CONFIG_JSON_H
#define LEAT_PROXY_CONFIG_JSON_H

#include <jansson.h>

struct leat_config;

/* CONFIG is finished. NULL if memory is short. */
json_t *leat_config_json(const struct leat_config *config);

#endif
