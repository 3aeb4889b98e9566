/*
 * config_place.h - where in a configuration something stands, for messages
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_CONFIG_PLACE_H
#define LEAT_PROXY_CONFIG_PLACE_H

#include "base/text.h"
#include "proxy/config.h"

/* Appends the name of FILE, of a long one the end; no byte can end the line. NULL: nothing. */
void leat_place_add_file_name(struct leat_text *text, const char *file);

/* Appends `leat.yaml:35: ` to TEXT, without the line if it is 0; nothing if FILE is NULL. */
void leat_place_add_file(struct leat_text *text, const char *file, unsigned line);

/* Appends NAME, which somebody has chosen, to PATH, the path of a key: after a dot unless it is
 * the first, as it is if it is a plain word, otherwise quoted. */
void leat_place_add_name(struct leat_text *path, struct leat_str name);

/* Appends VALUE, which somebody has written, quoted; but not a URL with a user in it, in which a
 * password may stand. */
void leat_place_add_value(struct leat_text *text, struct leat_str value);

/* Sets ERR to LEAT_EUSAGE with `expected EXPECTED, got "GOT"`, GOT as leat_place_add_value() has
 * it, and returns it. */
enum leat_status leat_place_refuse(const char *expected, struct leat_str got,
                                   struct leat_error *err);

#endif
