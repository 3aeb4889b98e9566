/*
 * conf_words.h - files of lines of words, as /etc/hosts and /etc/resolv.conf are
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_CONF_WORDS_H
#define LEAT_NET_CONF_WORDS_H

#include <stdbool.h>

#include <leat/str.h>

/* Takes the next line from TEXT, without its end and without what follows one of the characters
 * COMMENT. False at the end of TEXT. */
bool leat_conf_words_line(struct leat_str *text, const char *comment, struct leat_str *out);

/* Takes the next word from LINE; blanks divide words. False if there is none. */
bool leat_conf_words_next(struct leat_str *line, struct leat_str *out);

#endif
