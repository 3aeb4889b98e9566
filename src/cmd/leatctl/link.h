/*
 * link.h - the way to a leat: a request goes out, lines come back, one at a time
 *
 * A line is taken when the program wants it; until then nothing more is read, so that a leatctl
 * whose output is not taken holds no more than the line at hand.
 *
 * Ownership: the link belongs to who opened it. Threads: one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_CMD_LEATCTL_LINK_H
#define LEAT_CMD_LEATCTL_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

struct leat_link;

/* The longest line that is taken: 50,000 sessions fit well. */
#define LEAT_LINK_LINE_MAX (256u * 1024u * 1024u)

/* Connects to the leat that listens at PATH. LEAT_EUSAGE if PATH can't be one; LEAT_EIO if no leat
 * answers there, with ERR saying what to do; LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_link_new(const char *path, struct leat_link **out,
                                               struct leat_error *err);

/* NULL is a no-op. */
void leat_link_free(struct leat_link *link);

/* Sends LINE and a newline. LEAT_ENOMEM; a lost connection is told by leat_link_take_line(). */
LEAT_MUST_CHECK enum leat_status leat_link_send(struct leat_link *link, struct leat_str line,
                                                struct leat_error *err);

/* Waits until something has come, or it is known that nothing will. False if neither is so after
 * MS. */
bool leat_link_wait(struct leat_link *link, uint64_t ms);

/*
 * Waits for the next line, without its newline; *OUT is valid until the next call. LEAT_ECLOSED if
 * leat has ended the connection after a whole line, LEAT_ERESET if it was lost inside one or
 * otherwise; LEAT_ELIMIT if the line is longer than LEAT_LINK_LINE_MAX; LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status leat_link_take_line(struct leat_link *link, struct leat_str *out,
                                                     struct leat_error *err);

#endif
