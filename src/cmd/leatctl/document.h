/*
 * document.h - a configuration in the form of its file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_CMD_LEATCTL_DOCUMENT_H
#define LEAT_CMD_LEATCTL_DOCUMENT_H

#include <stdio.h>

#include <jansson.h>

#include <leat/compiler.h>
#include <leat/error.h>

/* Prints the object VALUE to OUT as a document of YAML. Texts that YAML would take for something
 * else are quoted. LEAT_ENOMEM; LEAT_EIO if OUT takes no more. */
LEAT_MUST_CHECK enum leat_status leat_document_print(const json_t *value, FILE *out);

#endif
