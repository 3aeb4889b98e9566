/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/ctx_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"

/* How many are told in one turn before the others of the loop have theirs. */
#define TOLD_AT_ONCE 64

/* Entries are packed at the front of one array and searched in order. A process uses a handful of
 * TLS configurations; comparing 32 bytes a few times costs less than keeping a hash table and a
 * list consistent with each other. */
struct entry {
    struct leat_tls_config *config;
    struct leat_tls_ctx *ctx; /* NULL: the last build failed */
    struct leat_error err;    /* of the last build; LEAT_OK if it did not fail */
    uint64_t built_at, checked_at;
    uint64_t used_at; /* cache->uses at the last use; unique among entries */
    uint64_t uses;
    bool is_expired; /* its files are to be looked at whenever that was done last */
};

/* Those of one loop who wait for one flight. */
struct delivery {
    struct leat_post post;
    struct leat_tls_ctx_cache *cache;
    struct leat_loop *loop;
    struct leat_list link;  /* in the flight's */
    struct leat_list wants; /* under the lock */
    struct leat_tls_ctx *ctx;
    struct leat_error err;
};

/* A build or a recheck that is under way, or about to be. */
struct flight {
    struct leat_work work;
    struct leat_tls_ctx_cache *cache;
    struct leat_list link;       /* in the cache's, under the lock, as is: */
    struct leat_list deliveries; /* at least one */
    bool is_outdated;            /* purged: nobody joins it, and its result is not kept */
    struct leat_tls_config *config;
    struct leat_tls_ctx *old; /* whose files are looked at; NULL: there is none */
    struct leat_tls_ctx *ctx; /* what it has come to; NULL: ERR says why */
    struct leat_error err;    /* of the build, if one failed */
    bool has_built, has_failed;
    uint64_t build_us;
};

struct leat_tls_ctx_cache {
    atomic_uint refs;
    struct leat_tls_ctx_cache_options options;
    pthread_mutex_t lock; /* of all that follows */
    struct leat_tls_ctx_cache_counters counters;
    uint64_t uses;
    struct leat_list flights;
    size_t count;
    struct entry entries[];
};

enum leat_status leat_tls_ctx_cache_new(const struct leat_tls_ctx_cache_options *options,
                                        struct leat_tls_ctx_cache **out, struct leat_error *err)
{
    size_t capacity = options->capacity > 0 ? options->capacity : LEAT_TLS_CTX_CACHE_DEFAULT;
    struct leat_tls_trusts *trusts = NULL;

    if (capacity > LEAT_TLS_CTX_CACHE_MAX)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "a cache of TLS contexts can hold up to %d, not %zu",
                              LEAT_TLS_CTX_CACHE_MAX, capacity);
    if (options->trusts != NULL)
        trusts = leat_tls_trusts_ref(options->trusts);
    else if (leat_tls_trusts_new(&trusts, err) != LEAT_OK)
        return LEAT_ENOMEM;
    struct leat_tls_ctx_cache *cache =
        leat_mem_zalloc_flex(sizeof(*cache), capacity, sizeof(cache->entries[0]));
    if (cache == NULL) {
        leat_tls_trusts_unref(trusts);
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a cache of TLS contexts");
    }
    cache->refs = 1;
    cache->options = *options;
    cache->options.capacity = capacity;
    cache->options.trusts = trusts;
    if (options->clock == NULL)
        cache->options.clock = leat_clock_monotonic_ms;
    (void)pthread_mutex_init(&cache->lock, NULL);
    leat_list_init(&cache->flights);
    *out = cache;
    return LEAT_OK;
}

struct leat_tls_ctx_cache *leat_tls_ctx_cache_ref(struct leat_tls_ctx_cache *cache)
{
    (void)atomic_fetch_add_explicit(&cache->refs, 1, memory_order_relaxed);
    return cache;
}

void leat_tls_ctx_cache_unref(struct leat_tls_ctx_cache *cache)
{
    if (cache == NULL || atomic_fetch_sub_explicit(&cache->refs, 1, memory_order_acq_rel) > 1)
        return;
    leat_tls_ctx_cache_purge(cache);
    leat_tls_trusts_unref(cache->options.trusts);
    (void)pthread_mutex_destroy(&cache->lock);
    leat_mem_free(cache);
}

static uint64_t now_of(const struct leat_tls_ctx_cache *cache)
{
    return cache->options.clock(cache->options.clock_arg);
}

/* Entries. The lock is held in all of these. */

static bool is_for(const struct leat_tls_config *a, const struct leat_tls_config *b)
{
    return a == b || leat_tls_digest_equal(leat_tls_config_key(a), leat_tls_config_key(b));
}

static struct entry *find(struct leat_tls_ctx_cache *cache, const struct leat_tls_config *config)
{
    for (size_t i = 0; i < cache->count; i++) {
        if (is_for(cache->entries[i].config, config))
            return &cache->entries[i];
    }
    return NULL;
}

/* Takes the entry at INDEX out; what it held goes to *OUT. */
static void take_out(struct leat_tls_ctx_cache *cache, size_t index, struct entry *out)
{
    *out = cache->entries[index];
    cache->entries[index] = cache->entries[--cache->count];
}

/* Drops what ENTRY held. This may free much, so the lock is not held. */
static void drop(const struct entry *entry)
{
    leat_tls_ctx_unref(entry->ctx);
    leat_tls_config_unref(entry->config);
}

/* Returns an entry for CONFIG. *OUT_EVICTED is what had to go for it, all zero if nothing. */
static struct entry *put(struct leat_tls_ctx_cache *cache, struct leat_tls_config *config,
                         struct entry *out_evicted)
{
    size_t oldest = 0;

    struct entry *entry = find(cache, config);
    if (entry != NULL)
        return entry;
    for (size_t i = 1; i < cache->count; i++) {
        if (cache->entries[i].used_at < cache->entries[oldest].used_at)
            oldest = i;
    }
    if (cache->count == cache->options.capacity) {
        take_out(cache, oldest, out_evicted);
        cache->counters.evictions++;
    }
    entry = &cache->entries[cache->count++];
    *entry = (struct entry){.config = leat_tls_config_ref(config), .used_at = ++cache->uses};
    return entry;
}

/* Whether what ENTRY has, a context or a failure, can be handed out as it is. */
static bool is_fresh(const struct leat_tls_ctx_cache *cache, const struct entry *entry,
                     uint64_t now)
{
    uint64_t recheck_ms = cache->options.recheck_ms;

    if (entry->is_expired)
        return false;
    if (entry->ctx == NULL)
        return now - entry->checked_at < cache->options.backoff_ms;
    return recheck_ms == 0 || now - entry->checked_at < recheck_ms;
}

/* Telling those who wait. */

static void free_delivery(struct delivery *delivery)
{
    leat_tls_ctx_unref(delivery->ctx);
    leat_tls_ctx_cache_unref(delivery->cache);
    leat_mem_free(delivery);
}

/* Takes the next one off; NULL if all are told, or were taken back. */
static struct leat_tls_ctx_want *next_want(struct delivery *delivery)
{
    struct leat_tls_ctx_want *want = NULL;

    (void)pthread_mutex_lock(&delivery->cache->lock);
    if (!leat_list_is_empty(&delivery->wants)) {
        want = LEAT_LIST_OBJECT(delivery->wants.next, struct leat_tls_ctx_want, link);
        leat_list_remove(&want->link);
    }
    (void)pthread_mutex_unlock(&delivery->cache->lock);
    return want;
}

static void on_delivery(void *arg)
{
    struct delivery *delivery = arg;
    struct leat_tls_ctx_want *want;

    for (int i = 0; i < TOLD_AT_ONCE; i++) {
        want = next_want(delivery);
        if (want == NULL) {
            free_delivery(delivery);
            return;
        }
        want->fn(want->arg, delivery->ctx != NULL ? leat_tls_ctx_ref(delivery->ctx) : NULL,
                 &delivery->err);
    }
    leat_loop_post(delivery->loop, &delivery->post);
}

/* Sends FLIGHT's result to all loops. The lock is held: whoever takes the last want of a loop back,
 * and then frees the loop, does so before or after this. */
static void send_out(struct flight *flight, struct leat_list *empty)
{
    while (!leat_list_is_empty(&flight->deliveries)) {
        struct delivery *delivery =
            LEAT_LIST_OBJECT(flight->deliveries.next, struct delivery, link);
        leat_list_remove(&delivery->link);
        if (leat_list_is_empty(&delivery->wants)) {
            leat_list_append(empty, &delivery->link);
            continue;
        }
        if (flight->ctx != NULL)
            delivery->ctx = leat_tls_ctx_ref(flight->ctx);
        delivery->err = flight->err;
        leat_loop_post(delivery->loop, &delivery->post);
    }
}

/* Flights. */

static void free_flight(struct flight *flight)
{
    leat_tls_ctx_unref(flight->ctx);
    leat_tls_ctx_unref(flight->old);
    leat_tls_config_unref(flight->config);
    leat_tls_ctx_cache_unref(flight->cache);
    leat_mem_free(flight);
}

static uint64_t clock_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* On a thread of the pool: finds the context. */
static void run_flight(void *arg)
{
    struct flight *flight = arg;
    uint64_t begun = clock_us();

    if (flight->old == NULL || leat_tls_ctx_has_changed(flight->old)) {
        enum leat_status status = leat_tls_ctx_build(flight->config, flight->cache->options.trusts,
                                                     &flight->ctx, &flight->err);
        flight->has_built = true;
        flight->has_failed = status != LEAT_OK;
        flight->build_us = clock_us() - begun;
    }
    if (flight->ctx == NULL && flight->old != NULL)
        flight->ctx = leat_tls_ctx_ref(flight->old);
}

/* Keeps what FLIGHT has come to. The lock is held. Whether a failure is a new one. */
static bool keep(struct flight *flight, struct entry *out_evicted)
{
    struct leat_tls_ctx_cache *cache = flight->cache;
    struct entry *entry = put(cache, flight->config, out_evicted);
    bool is_new = strcmp(entry->err.text, flight->err.text) != 0;

    entry->checked_at = now_of(cache);
    entry->is_expired = false;
    if (flight->has_built && !flight->has_failed)
        entry->built_at = entry->checked_at;
    entry->err = flight->err;
    if (entry->ctx != NULL)
        out_evicted->ctx = entry->ctx; /* nothing else had to go */
    entry->ctx = flight->ctx != NULL ? leat_tls_ctx_ref(flight->ctx) : NULL;
    return is_new;
}

static void count(struct leat_tls_ctx_cache_counters *counters, const struct flight *flight)
{
    counters->build_us += flight->build_us;
    counters->rechecks += flight->old != NULL;
    counters->builds += flight->has_built && !flight->has_failed;
    counters->failures += flight->has_failed;
}

static void give_notice(const struct flight *flight, bool is_new_failure)
{
    const struct leat_tls_ctx_cache_options *options = &flight->cache->options;
    bool failed = flight->has_failed;
    enum leat_tls_ctx_notice notice;

    if (options->notice == NULL || !flight->has_built)
        return;
    if (flight->old == NULL)
        notice = failed ? LEAT_TLS_CTX_FAILED : LEAT_TLS_CTX_BUILT;
    else
        notice = failed ? LEAT_TLS_CTX_NOT_RENEWED : LEAT_TLS_CTX_RENEWED;
    if (notice != LEAT_TLS_CTX_NOT_RENEWED || is_new_failure)
        options->notice(options->notice_arg, notice, flight->config, failed ? &flight->err : NULL);
}

/* On the pool too: the cache outlives the loops. */
static void on_flight_done(void *arg)
{
    struct flight *flight = arg;
    struct leat_tls_ctx_cache *cache = flight->cache;
    struct entry evicted = {0};
    struct leat_list empty;
    bool is_new_failure = false;

    leat_list_init(&empty);
    (void)pthread_mutex_lock(&cache->lock);
    leat_list_remove(&flight->link);
    count(&cache->counters, flight);
    if (!flight->is_outdated)
        is_new_failure = keep(flight, &evicted);
    send_out(flight, &empty);
    (void)pthread_mutex_unlock(&cache->lock);
    give_notice(flight, is_new_failure);
    drop(&evicted);
    while (!leat_list_is_empty(&empty)) {
        struct delivery *delivery = LEAT_LIST_OBJECT(empty.next, struct delivery, link);
        leat_list_remove(&delivery->link);
        free_delivery(delivery);
    }
    free_flight(flight);
}

/* Makes WANT wait for FLIGHT. The lock is held. */
static enum leat_status join(struct flight *flight, struct leat_tls_ctx_want *want)
{
    struct delivery *delivery = NULL;

    for (struct leat_list *at = flight->deliveries.next; at != &flight->deliveries; at = at->next) {
        struct delivery *other = LEAT_LIST_OBJECT(at, struct delivery, link);
        if (other->loop == want->loop)
            delivery = other;
    }
    if (delivery == NULL) {
        delivery = leat_mem_zalloc(sizeof(*delivery));
        if (delivery == NULL)
            return LEAT_ENOMEM;
        delivery->post = (struct leat_post){.fn = on_delivery, .arg = delivery};
        delivery->cache = leat_tls_ctx_cache_ref(flight->cache);
        delivery->loop = want->loop;
        leat_list_init(&delivery->wants);
        leat_list_append(&flight->deliveries, &delivery->link);
    }
    leat_list_append(&delivery->wants, &want->link);
    return LEAT_OK;
}

static struct flight *find_flight(struct leat_tls_ctx_cache *cache,
                                  const struct leat_tls_config *config)
{
    for (struct leat_list *at = cache->flights.next; at != &cache->flights; at = at->next) {
        struct flight *flight = LEAT_LIST_OBJECT(at, struct flight, link);
        if (!flight->is_outdated && is_for(flight->config, config))
            return flight;
    }
    return NULL;
}

/* Makes WANT wait for CONFIG's flight, a new one if there is none. ENTRY may be NULL. The lock is
 * held. *OUT_NEW is a new flight, which is still to be submitted, or NULL. */
static enum leat_status wait_for(struct leat_tls_ctx_cache *cache, struct leat_tls_config *config,
                                 const struct entry *entry, struct leat_tls_ctx_want *want,
                                 struct flight **out_new)
{
    struct flight *flight = find_flight(cache, config);

    *out_new = NULL;
    if (flight != NULL)
        return join(flight, want);
    flight = leat_mem_zalloc(sizeof(*flight));
    if (flight == NULL)
        return LEAT_ENOMEM;
    leat_list_init(&flight->deliveries);
    flight->cache = cache;
    if (join(flight, want) != LEAT_OK) {
        leat_mem_free(flight);
        return LEAT_ENOMEM;
    }
    flight->work = (struct leat_work){.run = run_flight, .done = on_flight_done, .arg = flight};
    (void)leat_tls_ctx_cache_ref(cache);
    flight->config = leat_tls_config_ref(config);
    if (entry != NULL && entry->ctx != NULL)
        flight->old = leat_tls_ctx_ref(entry->ctx);
    leat_list_append(&cache->flights, &flight->link);
    *out_new = flight;
    return LEAT_OK;
}

/* The public functions. */

void leat_tls_ctx_want_init(struct leat_tls_ctx_want *want, struct leat_loop *loop,
                            leat_tls_ctx_got_fn *fn, void *arg)
{
    *want = (struct leat_tls_ctx_want){.loop = loop, .fn = fn, .arg = arg};
    leat_list_init(&want->link);
}

enum leat_status leat_tls_ctx_cache_get(struct leat_tls_ctx_cache *cache,
                                        struct leat_tls_config *config,
                                        struct leat_tls_ctx_want *want, struct leat_tls_ctx **out,
                                        struct leat_error *err)
{
    struct flight *new_flight = NULL;
    enum leat_status status = leat_tls_config_freeze(config, err);
    if (status != LEAT_OK)
        return status;
    LEAT_ASSERT(leat_list_is_empty(&want->link));
    (void)pthread_mutex_lock(&cache->lock);
    uint64_t now = now_of(cache);
    struct entry *entry = find(cache, config);
    if (entry != NULL)
        entry->used_at = ++cache->uses;
    bool is_ready = entry != NULL && is_fresh(cache, entry, now);
    if (is_ready && entry->ctx != NULL) {
        *out = leat_tls_ctx_ref(entry->ctx);
        entry->uses++;
        cache->counters.hits++;
    } else if (is_ready) {
        status = entry->err.status;
        if (err != NULL)
            *err = entry->err;
        cache->counters.misses++;
    } else {
        status = wait_for(cache, config, entry, want, &new_flight);
        status = status == LEAT_OK
                     ? LEAT_EAGAIN
                     : leat_error_set(err, status, 0, "out of memory for a TLS context");
        cache->counters.misses++;
    }
    (void)pthread_mutex_unlock(&cache->lock);
    if (new_flight != NULL)
        leat_offload_submit(cache->options.offload, &new_flight->work);
    return status;
}

void leat_tls_ctx_cache_cancel(struct leat_tls_ctx_cache *cache, struct leat_tls_ctx_want *want)
{
    (void)pthread_mutex_lock(&cache->lock);
    leat_list_remove(&want->link);
    (void)pthread_mutex_unlock(&cache->lock);
}

/* Takes one entry out; false if there is none. */
static bool take_any(struct leat_tls_ctx_cache *cache, struct entry *out)
{
    bool is_there;

    (void)pthread_mutex_lock(&cache->lock);
    is_there = cache->count > 0;
    if (is_there)
        take_out(cache, cache->count - 1, out);
    (void)pthread_mutex_unlock(&cache->lock);
    return is_there;
}

/* What is under way began before. The lock is held. */
static void outdate_flights(struct leat_tls_ctx_cache *cache)
{
    for (struct leat_list *at = cache->flights.next; at != &cache->flights; at = at->next)
        LEAT_LIST_OBJECT(at, struct flight, link)->is_outdated = true;
}

void leat_tls_ctx_cache_expire(struct leat_tls_ctx_cache *cache)
{
    (void)pthread_mutex_lock(&cache->lock);
    outdate_flights(cache);
    for (size_t i = 0; i < cache->count; i++)
        cache->entries[i].is_expired = true;
    (void)pthread_mutex_unlock(&cache->lock);
}

void leat_tls_ctx_cache_purge(struct leat_tls_ctx_cache *cache)
{
    struct entry entry;

    (void)pthread_mutex_lock(&cache->lock);
    outdate_flights(cache);
    (void)pthread_mutex_unlock(&cache->lock);
    while (take_any(cache, &entry))
        drop(&entry);
}

void leat_tls_ctx_cache_counters(struct leat_tls_ctx_cache *cache,
                                 struct leat_tls_ctx_cache_counters *out)
{
    (void)pthread_mutex_lock(&cache->lock);
    *out = cache->counters;
    out->entries = cache->count;
    (void)pthread_mutex_unlock(&cache->lock);
}

void leat_tls_ctx_cache_each(struct leat_tls_ctx_cache *cache, leat_tls_ctx_cache_each_fn *fn,
                             void *arg)
{
    (void)pthread_mutex_lock(&cache->lock);
    uint64_t now = now_of(cache);
    for (size_t i = 0; i < cache->count; i++) {
        const struct entry *entry = &cache->entries[i];
        struct leat_tls_ctx_cache_entry told = {
            .config = entry->config,
            .ctx = entry->ctx,
            .err = entry->err.status != LEAT_OK ? &entry->err : NULL,
            .age_ms = entry->ctx != NULL ? now - entry->built_at : 0,
            .uses = entry->uses,
        };
        fn(arg, &told);
    }
    (void)pthread_mutex_unlock(&cache->lock);
}
