/*
 * feed.h - lines from workers to whoever watches over a control connection
 *
 * A worker never waits for who reads: what a feed holds is bounded. From the first line that does
 * not fit on they are dropped and counted, until what there is has been taken, with
 * {"event":"lost","lines":N} at its end. A feed that is not read costs no more than that count.
 *
 * Ownership: the control connection's side makes and frees it, when no worker puts into it any
 * more.
 * Threads: takes_more, put and end may be called from any thread, the rest belongs to the loop's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_FEED_H
#define LEAT_PROXY_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include <leat/compiler.h>

struct leat_feed;
struct leat_loop;

/* The most bytes that wait: those that were taken last are counted until more is taken. */
#define LEAT_FEED_MAX (256u * 1024u)

/* Called on the loop, not inside put, when there is something to take. */
typedef void leat_feed_fn(void *arg);

/* Makes a feed for LOOP; NULL if memory is short. */
struct leat_feed *leat_feed_new(struct leat_loop *loop, leat_feed_fn *fn, void *arg);

/* Nobody puts any more, and the loop has run what was posted since. NULL is a no-op. */
void leat_feed_free(struct leat_feed *feed);

/* Whether a line is worth making. If not, it is counted as lost. */
bool leat_feed_takes_more(struct leat_feed *feed);

/* Puts a line of the LEN bytes at TEXT and a newline. NULL: it could not be made, and is lost. */
void leat_feed_put(struct leat_feed *feed, const char *text, size_t len);

/* Puts the last line, even if the feed is full. What is put after it goes nowhere. */
void leat_feed_end(struct leat_feed *feed, const char *text, size_t len);

/* Takes all lines: the caller's to leat_mem_free(), *OUT_LEN bytes. NULL if there are none. To be
 * called again only when these have gone out. */
char *leat_feed_take(struct leat_feed *feed, size_t *out_len);

/* Whether it has been ended, and all was taken. */
bool leat_feed_is_over(struct leat_feed *feed);

#endif
