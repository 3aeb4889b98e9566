/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/farm.h"

#include <string.h>

#include "base/mem.h"

enum leat_status leat_farm_new(const struct leat_endpoints *endpoints, struct leat_farm **out)
{
    struct leat_farm *farm =
        leat_mem_zalloc_flex(sizeof(*farm), endpoints->count, sizeof(farm->backends[0]));

    if (farm == NULL)
        return LEAT_ENOMEM;
    pthread_mutex_init(&farm->properties_lock, NULL);
    farm->count = endpoints->count;
    for (size_t i = 0; i < farm->count; i++) {
        farm->backends[i].endpoint = endpoints->at[i];
        (void)leat_addr_text(&endpoints->at[i].addr, farm->backends[i].text);
    }
    *out = farm;
    return LEAT_OK;
}

void leat_farm_free(struct leat_farm *farm)
{
    if (farm != NULL)
        (void)pthread_mutex_destroy(&farm->properties_lock);
    leat_mem_free(farm);
}

void leat_farm_begin(struct leat_farm *farm, uint64_t now_ms, struct leat_farm_search *out)
{
    uint8_t fit[LEAT_CONFIG_ENDPOINTS_MAX], failing[LEAT_CONFIG_ENDPOINTS_MAX];
    size_t fits = 0, fails = 0;

    for (size_t i = 0; i < farm->count; i++) {
        if (farm->backends[i].retry_at_ms <= now_ms)
            fit[fits++] = (uint8_t)i;
        else
            failing[fails++] = (uint8_t)i;
    }
    /* Dealt among the fit ones only, so that the neighbour of a failing one does not get
     * that one's share on top of its own. */
    uint64_t turn = farm->turn++;
    *out = (struct leat_farm_search){.count = (uint8_t)farm->count};
    for (size_t i = 0; i < fits; i++)
        out->order[i] = fit[(turn + i) % fits];
    for (size_t i = 0; i < fails; i++)
        out->order[fits + i] = failing[(turn + i) % fails];
}

struct leat_backend *leat_farm_next(struct leat_farm *farm, struct leat_farm_search *search)
{
    if (search->next == search->count)
        return NULL;
    return &farm->backends[search->order[search->next++]];
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
