/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/feed.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "loop/loop.h"

#define LOST_MAX 64

struct leat_feed {
    struct leat_loop *loop;
    leat_feed_fn *fn;
    void *arg;
    struct leat_post post;
    pthread_mutex_t lock;
    bool is_posted;
    bool has_ended;
    uint64_t lost; /* lines; none is put until that has been told */
    size_t taken;  /* bytes, the last time */
    size_t len, cap;
    char *buf;
};

static void on_post(void *arg)
{
    struct leat_feed *feed = arg;

    (void)pthread_mutex_lock(&feed->lock);
    feed->is_posted = false;
    (void)pthread_mutex_unlock(&feed->lock);
    feed->fn(feed->arg);
}

struct leat_feed *leat_feed_new(struct leat_loop *loop, leat_feed_fn *fn, void *arg)
{
    struct leat_feed *feed = leat_mem_zalloc(sizeof(*feed));

    if (feed == NULL)
        return NULL;
    feed->loop = loop;
    feed->fn = fn;
    feed->arg = arg;
    feed->post = (struct leat_post){.fn = on_post, .arg = feed};
    pthread_mutex_init(&feed->lock, NULL);
    return feed;
}

void leat_feed_free(struct leat_feed *feed)
{
    if (feed == NULL)
        return;
    (void)pthread_mutex_destroy(&feed->lock);
    leat_mem_free(feed->buf);
    leat_mem_free(feed);
}

static void append(struct leat_feed *feed, const char *text, size_t len)
{
    memcpy(feed->buf + feed->len, text, len);
    feed->len += len;
}

/* Puts how many lines are lost, if any are. False if memory is short. With the lock held. */
static bool put_lost(struct leat_feed *feed)
{
    char line[LOST_MAX];
    size_t len;

    if (feed->lost == 0)
        return true;
    len = (size_t)snprintf(line, sizeof(line), "{\"event\":\"lost\",\"lines\":%llu}\n",
                           (unsigned long long)feed->lost);
    if (!leat_mem_reserve(&feed->buf, feed->len, &feed->cap, len))
        return false;
    append(feed, line, len);
    feed->lost = 0;
    return true;
}

/* Puts a line, or counts it as lost. With the lock held. */
static void put(struct leat_feed *feed, const char *text, size_t len)
{
    if (text == NULL || !leat_mem_reserve(&feed->buf, feed->len, &feed->cap, len + 1)) {
        feed->lost++;
        return;
    }
    append(feed, text, len);
    append(feed, "\n", 1);
}

/* Lets the lock go, and wakes the loop if IS_NEWS, unless that is under way. */
static void leave(struct leat_feed *feed, bool is_news)
{
    bool must_post = is_news && !feed->is_posted;

    feed->is_posted = feed->is_posted || must_post;
    (void)pthread_mutex_unlock(&feed->lock);
    if (must_post)
        leat_loop_post(feed->loop, &feed->post);
}

bool leat_feed_takes_more(struct leat_feed *feed)
{
    bool is_full;

    (void)pthread_mutex_lock(&feed->lock);
    is_full = feed->lost > 0;
    if (is_full)
        feed->lost++;
    (void)pthread_mutex_unlock(&feed->lock);
    return !is_full;
}

void leat_feed_put(struct leat_feed *feed, const char *text, size_t len)
{
    size_t held;
    bool has_room;

    (void)pthread_mutex_lock(&feed->lock);
    held = feed->len + feed->taken;
    has_room = feed->lost == 0 && held <= LEAT_FEED_MAX && len < LEAT_FEED_MAX - held;
    if (!feed->has_ended)
        put(feed, has_room ? text : NULL, len);
    /* What is lost is told when more is taken, which comes by itself if anything is held. */
    leave(feed, !feed->has_ended && (has_room || held == 0));
}

void leat_feed_end(struct leat_feed *feed, const char *text, size_t len)
{
    (void)pthread_mutex_lock(&feed->lock);
    /* The bound is for those who could go on and on: this is the last. */
    if (!feed->has_ended && put_lost(feed))
        put(feed, text, len);
    feed->has_ended = true;
    leave(feed, true);
}

char *leat_feed_take(struct leat_feed *feed, size_t *out_len)
{
    char *buf;

    (void)pthread_mutex_lock(&feed->lock);
    (void)put_lost(feed);
    buf = feed->buf;
    *out_len = feed->len;
    feed->taken = feed->len;
    feed->buf = NULL;
    feed->len = feed->cap = 0;
    (void)pthread_mutex_unlock(&feed->lock);
    return buf;
}

bool leat_feed_is_over(struct leat_feed *feed)
{
    bool is_over;

    (void)pthread_mutex_lock(&feed->lock);
    is_over = feed->has_ended && feed->len == 0;
    (void)pthread_mutex_unlock(&feed->lock);
    return is_over;
}
