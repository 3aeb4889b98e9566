/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/farm.h"

#include <string.h>

#include "base/mem.h"
#include "proxy/tally.h"

void leat_backend_init(struct leat_backend *backend, size_t index,
                       const struct leat_backend_config *config)
{
    backend->index = index;
    backend->config = config;
    (void)leat_endpoint_text(&config->endpoint, backend->text);
}

void leat_backend_inherit(struct leat_backend *backend, const struct leat_backend *before)
{
    backend->retry_at_ms = before->retry_at_ms;
    backend->backoff_ms = before->backoff_ms;
    backend->sessions = before->sessions;
    backend->turn = before->turn;
    backend->tally = leat_tally_ref(before->tally);
}

enum leat_status leat_farm_new(struct leat_backend *backends, const uint8_t *members, size_t count,
                               struct leat_farm **out)
{
    struct leat_farm *farm = leat_mem_zalloc_flex(sizeof(*farm), count, sizeof(farm->backends[0]));

    if (farm == NULL)
        return LEAT_ENOMEM;
    pthread_mutex_init(&farm->properties_lock, NULL);
    farm->count = count;
    for (size_t i = 0; i < count; i++)
        farm->backends[i] = &backends[members[i]];
    *out = farm;
    return LEAT_OK;
}

void leat_farm_inherit(struct leat_farm *farm, struct leat_farm *before)
{
    uint8_t buf[LEAT_AMQP_SERVER_PROPERTIES_MAX];

    farm->turn = before->turn;
    farm->frame_max = before->frame_max;
    farm->channel_max = before->channel_max;
    leat_farm_learn_properties(farm, leat_farm_properties(before, buf));
}

void leat_farm_free(struct leat_farm *farm)
{
    if (farm != NULL)
        (void)pthread_mutex_destroy(&farm->properties_lock);
    leat_mem_free(farm);
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A step that, taken TOTAL times round a circle of TOTAL places, visits each once, and spreads
 * neighbours far apart: near the golden section. */
static uint64_t step_over(uint64_t total)
{
    uint64_t step = (total * 618 + 500) / 1000;

    while (step > 1 && gcd(step, total) != 1)
        step--;
    return step > 0 ? step : 1;
}

/*
 * Which of the COUNT backends at FIT, indices of the farm's, has TURN. Each has as many of TOTAL
 * places round a circle as its weight, side by side; turns go round in steps, so that a heavy
 * one's are not all in a row. Weights that are equal count as 1: then it is the next one.
 */
static size_t whose_turn(const struct leat_farm *farm, const uint8_t *fit, size_t count,
                         uint64_t turn)
{
    uint64_t total = 0, at;
    bool are_equal = true;

    for (size_t i = 0; i < count; i++) {
        total += farm->backends[fit[i]]->config->weight;
        are_equal = are_equal && farm->backends[fit[i]]->config->weight ==
                                     farm->backends[fit[0]]->config->weight;
    }
    if (are_equal)
        return turn % count;
    at = turn % total * step_over(total) % total;
    for (size_t i = 0; i < count; i++) {
        uint64_t weight = farm->backends[fit[i]]->config->weight;
        if (at < weight)
            return i;
        at -= weight;
    }
    return 0;
}

void leat_farm_begin(struct leat_farm *farm, uint64_t now_ms, struct leat_farm_search *out)
{
    uint8_t fit[LEAT_CONFIG_BACKENDS_MAX], failing[LEAT_CONFIG_BACKENDS_MAX];
    size_t fits = 0, fails = 0, first;

    for (size_t i = 0; i < farm->count; i++) {
        if (farm->backends[i]->retry_at_ms <= now_ms)
            fit[fits++] = (uint8_t)i;
        else
            failing[fails++] = (uint8_t)i;
    }
    /* Dealt among the fit ones only, so that the neighbour of a failing one does not get
     * that one's share on top of its own. */
    uint64_t turn = farm->turn++;
    *out = (struct leat_farm_search){.count = (uint8_t)farm->count};
    first = fits > 0 ? whose_turn(farm, fit, fits, turn) : 0;
    for (size_t i = 0; i < fits; i++)
        out->order[i] = fit[(first + i) % fits];
    for (size_t i = 0; i < fails; i++)
        out->order[fits + i] = failing[(turn + i) % fails];
}

struct leat_backend *leat_farm_next(struct leat_farm *farm, struct leat_farm_search *search)
{
    if (search->next == search->count)
        return NULL;
    return farm->backends[search->order[search->next++]];
}

uint32_t leat_backend_failed(struct leat_backend *backend, uint64_t now_ms)
{
    uint64_t retry_at = backend->retry_at_ms;

    /* Many sessions may fail on it at the same time: only the first doubles the back-off. */
    if (retry_at > now_ms)
        return 0;
    uint32_t backoff = backend->backoff_ms * 2;
    if (backoff < LEAT_BACKEND_BACKOFF_MIN_MS)
        backoff = LEAT_BACKEND_BACKOFF_MIN_MS;
    if (backoff > LEAT_BACKEND_BACKOFF_MAX_MS)
        backoff = LEAT_BACKEND_BACKOFF_MAX_MS;
    if (!atomic_compare_exchange_strong(&backend->retry_at_ms, &retry_at, now_ms + backoff))
        return 0;
    backend->backoff_ms = backoff;
    return backoff;
}

bool leat_backend_opened(struct leat_backend *backend)
{
    backend->sessions++;
    /* Both are looked at, since a failure at the same time sets them one after the other. */
    if (backend->backoff_ms == 0 && backend->retry_at_ms == 0)
        return false;
    backend->retry_at_ms = 0;
    return atomic_exchange(&backend->backoff_ms, 0) != 0;
}

/* Lowers LIMIT, where 0 is none, to VALUE, where 0 is none too. */
static void lower(_Atomic uint32_t *limit, uint32_t value)
{
    uint32_t known = *limit;

    while (value != 0 && (known == 0 || value < known)) {
        if (atomic_compare_exchange_weak(limit, &known, value))
            return;
    }
}

void leat_farm_learn(struct leat_farm *farm, const struct leat_amqp_tune *offered)
{
    lower(&farm->frame_max, offered->frame_max);
    lower(&farm->channel_max, offered->channel_max);
}

void leat_farm_limit(const struct leat_farm *farm, struct leat_amqp_tune *tune)
{
    uint32_t frame_max = farm->frame_max, channel_max = farm->channel_max;

    if (frame_max != 0 && frame_max < tune->frame_max)
        tune->frame_max = frame_max;
    if (channel_max != 0 && channel_max < tune->channel_max)
        tune->channel_max = (uint16_t)channel_max;
}

void leat_farm_learn_properties(struct leat_farm *farm, struct leat_str properties)
{
    if (properties.len == 0 || properties.len > sizeof(farm->properties))
        return;
    (void)pthread_mutex_lock(&farm->properties_lock);
    memcpy(farm->properties, properties.ptr, properties.len);
    farm->properties_len = properties.len;
    (void)pthread_mutex_unlock(&farm->properties_lock);
}

struct leat_str leat_farm_properties(struct leat_farm *farm,
                                     uint8_t buf[LEAT_AMQP_SERVER_PROPERTIES_MAX])
{
    struct leat_str copy = {(const char *)buf, 0};

    (void)pthread_mutex_lock(&farm->properties_lock);
    copy.len = farm->properties_len;
    memcpy(buf, farm->properties, copy.len);
    (void)pthread_mutex_unlock(&farm->properties_lock);
    return copy;
}
