/* Asking DNS for a name, in both families. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/resolver_impl.h"

/* A failure of the servers may be over in a moment; so long they are left alone. */
#define FAILURE_MS 1000u

struct leat_flight {
    struct leat_resolver *resolver;
    struct leat_lookup_entry *entry;
    struct leat_dns *dns; /* the present one may be another by the time this ends */
    struct leat_dns_query queries[LEAT_HALVES];
    bool is_done[LEAT_HALVES];
    size_t candidate;             /* which of the names to try is next */
    char name[LEAT_DNS_NAME_MAX]; /* the present one */
    bool has_name;                /* one of the names exists, but has no address */
    struct leat_error failure;    /* the first, LEAT_OK if there was none */
};

static const int families[LEAT_HALVES] = {[LEAT_HALF_V6] = AF_INET6, [LEAT_HALF_V4] = AF_INET};

/* How many domains ENTRY's name is searched in. */
static size_t search_count(const struct leat_flight *flight)
{
    const char *name = flight->entry->name;
    bool is_whole = name[strlen(name) - 1] == '.' || flight->resolver->config.is_search_off;

    return is_whole ? 0 : leat_dns_conf(flight->dns)->search_count;
}

/* Whether the name is asked as it is before it is searched, not after. */
static bool goes_first(const struct leat_flight *flight)
{
    unsigned dots = 0;

    for (const char *c = flight->entry->name; *c != '\0'; c++)
        dots += *c == '.';
    return dots >= leat_dns_conf(flight->dns)->ndots;
}

/* Makes the next of the names to try the present one. False if there is none. */
static bool take_next_name(struct leat_flight *flight)
{
    size_t count = search_count(flight);
    size_t as_it_is = goes_first(flight) ? 0 : count;
    const struct leat_resolv_conf *conf = leat_dns_conf(flight->dns);

    while (flight->candidate <= count) {
        size_t n = flight->candidate++;
        bool searched = n != as_it_is;
        struct leat_text text;
        leat_text_init(&text, flight->name, sizeof(flight->name));
        leat_text_add(&text, "%s%s%s", flight->entry->name, searched ? "." : "",
                      searched ? conf->search[n > as_it_is ? n - 1 : n] : "");
        if (!text.is_cut)
            return true;
    }
    return false;
}

static void set_error(const struct leat_flight *flight)
{
    struct leat_lookup_entry *entry = flight->entry;
    const struct leat_resolv_conf *conf = leat_dns_conf(flight->dns);
    size_t count = search_count(flight);
    char also[160];
    struct leat_text text;

    if (flight->failure.status != LEAT_OK) {
        entry->error = flight->failure;
        return;
    }
    leat_text_init(&text, also, sizeof(also));
    for (size_t i = 0; i < count; i++)
        leat_text_add(&text, "%s%s", i == 0 ? "; also searched in " : ", ", conf->search[i]);
    (void)leat_error_set(
        &entry->error, LEAT_ENOTFOUND, 0, "%s: %s%s", entry->name,
        flight->has_name ? "no address (neither A nor AAAA)" : "no such name (NXDOMAIN)", also);
}

/* How long what is known is kept. */
static uint64_t kept_ms(const struct leat_flight *flight)
{
    const struct leat_resolver_config *config = &flight->resolver->config;
    uint64_t ms = config->ttl_max_ms;
    bool has_found = false;

    for (int i = 0; i < LEAT_HALVES; i++) {
        const struct leat_dns_query *query = &flight->queries[i];
        if (query->result != LEAT_DNS_FOUND)
            continue;
        has_found = true;
        if (query->ttl_s * (uint64_t)1000 < ms)
            ms = query->ttl_s * (uint64_t)1000;
    }
    if (has_found && ms < config->ttl_min_ms)
        ms = config->ttl_min_ms;
    if (!has_found && ms > config->ttl_negative_ms)
        ms = config->ttl_negative_ms;
    /* With one family lacking for a failure it is soon time to ask again. A lack on this side says
     * nothing of the name. */
    if (flight->failure.status != LEAT_OK && ms > FAILURE_MS)
        ms = FAILURE_MS;
    return !has_found && flight->failure.sys != 0 ? 0 : ms;
}

static void free_flight(struct leat_flight *flight)
{
    flight->entry->flight = NULL;
    for (int i = 0; i < LEAT_HALVES; i++) {
        leat_dns_query_stop(&flight->queries[i]);
        leat_mem_free(flight->queries[i].addrs);
    }
    leat_dns_unref(flight->dns);
    leat_lookup_entry_unref(flight->entry);
    leat_mem_free(flight);
}

static void finish(struct leat_flight *flight)
{
    struct leat_lookup_entry *entry = flight->entry;

    if (entry->halves[LEAT_HALF_V6].count + entry->halves[LEAT_HALF_V4].count == 0)
        set_error(flight);
    for (int i = 0; i < LEAT_HALVES; i++)
        entry->halves[i].is_known = true;
    entry->expires_at = leat_loop_now_ms(flight->resolver->loop) + kept_ms(flight);
    leat_lookup_entry_tell(entry);
    free_flight(flight);
}

/* Notes what one half has found; returns whether it is an address. */
static bool take_answer(struct leat_flight *flight, int half)
{
    struct leat_dns_query *query = &flight->queries[half];
    struct leat_lookup_half *into = &flight->entry->halves[half];

    switch (query->result) {
    case LEAT_DNS_FOUND:
        *into = (struct leat_lookup_half){true, query->addrs, query->addr_count};
        query->addrs = NULL;
        return true;
    case LEAT_DNS_NO_NAME:
        break;
    case LEAT_DNS_NO_ADDRESS:
        flight->has_name = true;
        break;
    case LEAT_DNS_REFUSED:
    case LEAT_DNS_SILENT:
        if (flight->failure.status == LEAT_OK)
            flight->failure = query->error;
        break;
    }
    return false;
}

static void on_query(struct leat_dns_query *query, void *arg);

/* Asks for the present name. */
static void ask(struct leat_flight *flight)
{
    for (int i = 0; i < LEAT_HALVES; i++) {
        flight->is_done[i] = false;
        leat_dns_query_start(flight->dns, &flight->queries[i], flight->name, families[i], on_query,
                             flight);
    }
}

/* Whether another name is worth asking for: not if the servers are silent. */
static bool may_go_on(const struct leat_flight *flight)
{
    for (int i = 0; i < LEAT_HALVES; i++)
        if (flight->queries[i].result == LEAT_DNS_SILENT)
            return false;
    return true;
}

static void on_query(struct leat_dns_query *query, void *arg)
{
    struct leat_flight *flight = arg;
    struct leat_lookup_entry *entry = flight->entry;
    int half = query->family == AF_INET6 ? LEAT_HALF_V6 : LEAT_HALF_V4;
    int other = half == LEAT_HALF_V6 ? LEAT_HALF_V4 : LEAT_HALF_V6;

    flight->is_done[half] = true;
    bool has_found = take_answer(flight, half);
    if (!flight->is_done[other]) {
        if (has_found)
            leat_lookup_entry_tell(entry);
        return;
    }
    has_found = has_found || entry->halves[other].is_known;
    if (!has_found && may_go_on(flight) && take_next_name(flight))
        ask(flight);
    else
        finish(flight);
}

enum leat_status leat_flight_start(struct leat_resolver *resolver, struct leat_lookup_entry *entry)
{
    struct leat_flight *flight = leat_mem_zalloc(sizeof(*flight));

    if (flight == NULL)
        return LEAT_ENOMEM;
    flight->resolver = resolver;
    flight->entry = entry;
    entry->refs++;
    entry->flight = flight;
    flight->dns = leat_dns_ref(resolver->dns);
    /* There is one: a host name fits as it is. */
    (void)take_next_name(flight);
    ask(flight);
    return LEAT_OK;
}

void leat_flight_stop(struct leat_flight *flight)
{
    if (flight != NULL)
        free_flight(flight);
}
