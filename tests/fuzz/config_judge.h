/*
 * config_judge.h - what holds for every configuration that was taken
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_FUZZ_CONFIG_JUDGE_H
#define LEAT_FUZZ_CONFIG_JUDGE_H

#include "proxy/config.h"

/* Finishes CONFIG, which was set, and checks it, or the error. */
void config_judge_finish(struct leat_config *config);

#endif
