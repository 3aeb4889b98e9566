/* SPDX-License-Identifier: Apache-2.0 */
#include "net/resolver.h"

#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "net/resolver_impl.h"

/* How often the files are looked at, at most. */
#define CHECK_MS 5000u
/* How many addresses of a name in /etc/hosts are taken. */
#define HOSTS_ADDRS_MAX 64
#define LABEL_MAX 63

/* As DNS has it, whatever the locale says (RFC 4343). */
static char small(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c;
}

/* Entries. */

struct leat_lookup_entry *leat_lookup_entry_new(struct leat_str name)
{
    struct leat_lookup_entry *entry = leat_mem_zalloc_flex(sizeof(*entry), name.len + 1, 1);

    if (entry == NULL)
        return NULL;
    entry->refs = 1;
    leat_list_init(&entry->bucket);
    leat_list_init(&entry->recent);
    leat_list_init(&entry->waiters);
    for (size_t i = 0; i < name.len; i++)
        entry->name[i] = small(name.ptr[i]);
    return entry;
}

void leat_lookup_entry_unref(struct leat_lookup_entry *entry)
{
    if (--entry->refs > 0)
        return;
    for (int i = 0; i < LEAT_HALVES; i++)
        leat_mem_free(entry->halves[i].addrs);
    leat_mem_free(entry);
}

void leat_lookup_entry_tell(struct leat_lookup_entry *entry)
{
    struct leat_list *link;

    for (link = entry->waiters.next; link != &entry->waiters; link = link->next) {
        struct leat_lookup *lookup = LEAT_LIST_OBJECT(link, struct leat_lookup, link);
        leat_loop_defer(lookup->loop, &lookup->task);
    }
}

/* Lookups. */

/* Takes LOOKUP away from its entry, which it keeps a reference to no longer. */
static void detach(struct leat_lookup *lookup)
{
    struct leat_lookup_entry *entry = lookup->entry;

    leat_list_remove(&lookup->link);
    lookup->entry = NULL;
    if (entry != NULL)
        leat_lookup_entry_unref(entry);
}

void leat_lookup_cancel(struct leat_lookup *lookup)
{
    if (!lookup->is_open)
        return;
    detach(lookup);
    (void)leat_error_set(&lookup->err, LEAT_ECANCELLED, 0, "looking up a name was cancelled");
    leat_loop_defer(lookup->loop, &lookup->task);
}

/* Puts in OUT what LOOKUP was not told yet of one half. */
static void fill(struct leat_lookup *lookup, int half, struct leat_lookup_addrs *out)
{
    const struct leat_lookup_half *known = &lookup->entry->halves[half];

    out->is_known = known->is_known;
    if (!known->is_known || lookup->has_told[half])
        return;
    lookup->has_told[half] = true;
    out->addrs = known->addrs;
    out->count = known->count;
}

static void run_lookup(void *arg)
{
    struct leat_lookup *lookup = arg;
    struct leat_lookup_entry *entry = lookup->entry;
    struct leat_lookup_answer answer = {0};

    if (entry == NULL) {
        answer.is_last = true;
        answer.err = &lookup->err;
        lookup->is_open = false;
        lookup->fn(&answer, lookup->arg);
        return;
    }
    entry->refs++;
    fill(lookup, LEAT_HALF_V6, &answer.v6);
    fill(lookup, LEAT_HALF_V4, &answer.v4);
    answer.is_last = answer.v6.is_known && answer.v4.is_known;
    if (answer.is_last) {
        lookup->is_open = false;
        detach(lookup);
        if (entry->error.status != LEAT_OK)
            answer.err = &entry->error;
    }
    lookup->fn(&answer, lookup->arg);
    leat_lookup_entry_unref(entry);
}

/* The cache. */

static struct leat_list *bucket_of(struct leat_resolver *resolver, struct leat_str name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (uint8_t)small(name.ptr[i])) * 16777619u;
    return &resolver->buckets[hash % LEAT_RESOLVER_BUCKETS];
}

static struct leat_lookup_entry *find_entry(struct leat_resolver *resolver, struct leat_str name)
{
    struct leat_list *bucket = bucket_of(resolver, name);

    for (struct leat_list *link = bucket->next; link != bucket; link = link->next) {
        struct leat_lookup_entry *entry = LEAT_LIST_OBJECT(link, struct leat_lookup_entry, bucket);
        if (strlen(entry->name) == name.len && strncasecmp(entry->name, name.ptr, name.len) == 0)
            return entry;
    }
    return NULL;
}

/* Takes ENTRY out of the cache; whoever waits for it is told nevertheless. */
static void forget(struct leat_resolver *resolver, struct leat_lookup_entry *entry)
{
    leat_list_remove(&entry->bucket);
    leat_list_remove(&entry->recent);
    resolver->entry_count--;
    leat_lookup_entry_unref(entry);
}

/* Forgets the longest unused entries that are over the limit of MAX, but none that is being asked
 * for. */
static void forget_over(struct leat_resolver *resolver, size_t max)
{
    struct leat_list *next;

    for (struct leat_list *link = resolver->recent.next;
         resolver->entry_count > max && link != &resolver->recent; link = next) {
        struct leat_lookup_entry *entry = LEAT_LIST_OBJECT(link, struct leat_lookup_entry, recent);
        next = link->next;
        if (entry->flight == NULL)
            forget(resolver, entry);
    }
}

/* Puts ENTRY, whose reference it takes over, in the cache. */
static void keep(struct leat_resolver *resolver, struct leat_lookup_entry *entry)
{
    struct leat_str name = leat_str_of(entry->name);

    leat_list_append(bucket_of(resolver, name), &entry->bucket);
    leat_list_append(&resolver->recent, &entry->recent);
    resolver->entry_count++;
    forget_over(resolver, resolver->config.cache_max);
}

/* What DNS says of NAME, or will; with a reference for the caller. NULL if memory is short. */
static struct leat_lookup_entry *get_of_dns(struct leat_resolver *resolver, struct leat_str name)
{
    struct leat_lookup_entry *entry = find_entry(resolver, name);

    if (entry != NULL && entry->flight == NULL &&
        entry->expires_at <= leat_loop_now_ms(resolver->loop)) {
        forget(resolver, entry);
        entry = NULL;
    }
    if (entry == NULL) {
        entry = leat_lookup_entry_new(name);
        if (entry == NULL)
            return NULL;
        if (leat_flight_start(resolver, entry) != LEAT_OK) {
            leat_lookup_entry_unref(entry);
            return NULL;
        }
        keep(resolver, entry);
    } else {
        leat_list_remove(&entry->recent);
        leat_list_append(&resolver->recent, &entry->recent);
    }
    entry->refs++;
    return entry;
}

/* What is answered here. */

/* Adds the COUNT addresses of ADDRS that are of FAMILY to the half of ENTRY. */
static bool add_half(struct leat_lookup_entry *entry, int half, int family,
                     const struct leat_addr *addrs, size_t count)
{
    struct leat_lookup_half *into = &entry->halves[half];

    into->is_known = true;
    into->addrs = leat_mem_zalloc_flex(0, count, sizeof(*addrs));
    if (into->addrs == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        if (addrs[i].ss.ss_family == family)
            into->addrs[into->count++] = addrs[i];
    return true;
}

/* An entry of these addresses that is in no cache. NULL if memory is short. */
static struct leat_lookup_entry *make_known(struct leat_str name, const struct leat_addr *addrs,
                                            size_t count)
{
    struct leat_lookup_entry *entry = leat_lookup_entry_new(name);

    if (entry != NULL && add_half(entry, LEAT_HALF_V6, AF_INET6, addrs, count) &&
        add_half(entry, LEAT_HALF_V4, AF_INET, addrs, count))
        return entry;
    if (entry != NULL)
        leat_lookup_entry_unref(entry);
    return NULL;
}

static bool is_localhost(struct leat_str name)
{
    static const struct leat_str localhost = LEAT_STR_INIT("localhost");

    if (name.len > 0 && name.ptr[name.len - 1] == '.')
        name.len--;
    if (name.len < localhost.len)
        return false;
    size_t before = name.len - localhost.len;
    return strncasecmp(name.ptr + before, localhost.ptr, localhost.len) == 0 &&
           (before == 0 || name.ptr[before - 1] == '.');
}

/* Whether NAME is one that hosts have: letters, digits, - and _ in labels between dots. */
static bool is_host_name(struct leat_str name)
{
    size_t label = 0;

    for (size_t i = 0; i < name.len; i++) {
        char c = small(name.ptr[i]);
        bool is_of_label = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        if (c == '.' && label > 0)
            label = 0;
        else if (is_of_label && label < LABEL_MAX)
            label++;
        else
            return false;
    }
    return name.len > 0 && name.len + (label > 0 ? 1u : 0u) < LEAT_DNS_NAME_MAX;
}

/* Finds the addresses of NAME that are known without asking; returns how many. */
static size_t find_known(const struct leat_resolver *resolver, struct leat_str name,
                         struct leat_addr *out, size_t cap)
{
    if (leat_addr_parse_host(name, out))
        return 1;
    if (is_localhost(name)) {
        (void)leat_addr_parse_host(leat_str_of("::1"), &out[0]);
        (void)leat_addr_parse_host(leat_str_of("127.0.0.1"), &out[1]);
        return 2;
    }
    size_t count = leat_hosts_find(resolver->files->hosts, name, out, cap);
    return count < cap ? count : cap;
}

/* The files. */

/* Makes what asks DNS as FILES and the configuration say. */
static enum leat_status make_dns(const struct leat_resolver *resolver,
                                 const struct leat_name_files *files, struct leat_dns **out,
                                 struct leat_error *err)
{
    const struct leat_resolver_config *config = &resolver->config;
    struct leat_resolv_conf conf = files->resolv_conf;

    if (config->server_count > 0) {
        conf.server_count = config->server_count;
        memcpy(conf.servers, resolver->servers, sizeof(conf.servers));
    }
    if (config->timeout_ms > 0)
        conf.timeout_ms = config->timeout_ms;
    if (config->tries > 0)
        conf.tries = config->tries;
    return leat_dns_new(resolver->loop, &conf, out, err);
}

/* Puts FILES in force, which it takes over. If that fails all stays as it was. */
static enum leat_status adopt_files(struct leat_resolver *resolver, struct leat_name_files *files,
                                    struct leat_error *err)
{
    struct leat_name_files *old = resolver->files;
    struct leat_dns *dns = NULL;

    if (old == NULL ||
        !leat_file_identity_is_equal(&old->resolv_conf_identity, &files->resolv_conf_identity)) {
        enum leat_status status = make_dns(resolver, files, &dns, err);
        if (status != LEAT_OK) {
            leat_name_files_free(files);
            return status;
        }
        /* Other servers may say something else. What is being asked ends with the old ones. */
        forget_over(resolver, 0);
        leat_dns_unref(resolver->dns);
        resolver->dns = dns;
    }
    leat_name_files_free(old);
    resolver->files = files;
    return LEAT_OK;
}

/* Reads the files and puts them in force. Blocks. */
static enum leat_status load_files(struct leat_resolver *resolver, struct leat_error *err)
{
    struct leat_name_files *files;
    enum leat_status status = leat_name_files_read(resolver->config.hosts_path,
                                                   resolver->config.resolv_conf_path, &files, err);

    return status == LEAT_OK ? adopt_files(resolver, files, err) : status;
}

/* The one place where the loop's thread looks at files: now and then, for changes. */
static void check_files(struct leat_resolver *resolver)
{
    const struct leat_resolver_config *config = &resolver->config;
    uint64_t now_ms = leat_loop_now_ms(resolver->loop);

    if (now_ms - resolver->checked_at < CHECK_MS)
        return;
    resolver->checked_at = now_ms;
    if (leat_name_files_is_current(resolver->files, config->hosts_path, config->resolv_conf_path))
        return;
    /* A file that can't be read now is tried again; until then the old one is in force. */
    enum leat_status status = load_files(resolver, NULL);
    (void)status;
}

/* What is called. */

/* What is known of NAME, or will be; with a reference for the caller. NULL with ERR. */
static struct leat_lookup_entry *get_entry(struct leat_resolver *resolver, struct leat_str name,
                                           struct leat_error *err)
{
    struct leat_addr addrs[HOSTS_ADDRS_MAX];
    struct leat_lookup_entry *entry;
    char quoted[160];
    struct leat_text text;

    check_files(resolver);
    size_t count = find_known(resolver, name, addrs, HOSTS_ADDRS_MAX);
    if (count == 0 && !is_host_name(name)) {
        leat_text_init(&text, quoted, sizeof(quoted));
        leat_text_add_quoted(&text, name);
        (void)leat_error_set(err, LEAT_EUSAGE, 0,
                             "%s is no host name (letters, digits, - and _ between dots)", quoted);
        return NULL;
    }
    entry = count > 0 ? make_known(name, addrs, count) : get_of_dns(resolver, name);
    if (entry == NULL)
        (void)leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for looking up a name");
    return entry;
}

void leat_lookup_start(struct leat_lookup *lookup, struct leat_resolver *resolver,
                       struct leat_str name, leat_lookup_fn *fn, void *arg)
{
    *lookup = (struct leat_lookup){.loop = resolver->loop, .fn = fn, .arg = arg, .is_open = true};
    leat_list_init(&lookup->link);
    leat_task_init(&lookup->task, run_lookup, lookup);
    lookup->entry = get_entry(resolver, name, &lookup->err);
    if (lookup->entry != NULL) {
        leat_list_append(&lookup->entry->waiters, &lookup->link);
        const struct leat_lookup_half *halves = lookup->entry->halves;
        if (!halves[LEAT_HALF_V6].is_known && !halves[LEAT_HALF_V4].is_known)
            return;
    }
    leat_loop_defer(lookup->loop, &lookup->task);
}

/* Copies CONFIG with everything it lacks. False if memory is short. */
static bool set_config(struct leat_resolver *resolver, const struct leat_resolver_config *config)
{
    struct leat_resolver_config *own = &resolver->config;

    if (config != NULL)
        *own = *config;
    LEAT_ASSERT(own->server_count <= LEAT_DNS_SERVERS_MAX);
    if (own->server_count > 0)
        memcpy(resolver->servers, own->servers, own->server_count * sizeof(own->servers[0]));
    own->servers = resolver->servers;
    if (own->ttl_min_ms == 0)
        own->ttl_min_ms = 1000;
    if (own->ttl_max_ms == 0)
        own->ttl_max_ms = (uint64_t)3600 * 1000;
    if (own->ttl_negative_ms == 0)
        own->ttl_negative_ms = 5000;
    if (own->cache_max == 0)
        own->cache_max = 1024;
    const char *hosts = own->hosts_path, *resolv_conf = own->resolv_conf_path;
    resolver->hosts_path = leat_mem_dup(leat_str_of(hosts != NULL ? hosts : "/etc/hosts"));
    resolver->resolv_conf_path =
        leat_mem_dup(leat_str_of(resolv_conf != NULL ? resolv_conf : "/etc/resolv.conf"));
    own->hosts_path = resolver->hosts_path;
    own->resolv_conf_path = resolver->resolv_conf_path;
    return own->hosts_path != NULL && own->resolv_conf_path != NULL;
}

enum leat_status leat_resolver_new(struct leat_loop *loop,
                                   const struct leat_resolver_config *config,
                                   struct leat_resolver **out, struct leat_error *err)
{
    struct leat_resolver *resolver = leat_mem_zalloc(sizeof(*resolver));

    if (resolver == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a resolver");
    resolver->loop = loop;
    resolver->checked_at = leat_loop_now_ms(loop);
    leat_list_init(&resolver->recent);
    for (size_t i = 0; i < LEAT_RESOLVER_BUCKETS; i++)
        leat_list_init(&resolver->buckets[i]);
    enum leat_status status =
        set_config(resolver, config)
            ? load_files(resolver, err)
            : leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a resolver");
    if (status != LEAT_OK) {
        leat_resolver_free(resolver);
        return status;
    }
    *out = resolver;
    return LEAT_OK;
}

void leat_resolver_free(struct leat_resolver *resolver)
{
    if (resolver == NULL)
        return;
    while (!leat_list_is_empty(&resolver->recent)) {
        struct leat_lookup_entry *entry =
            LEAT_LIST_OBJECT(resolver->recent.next, struct leat_lookup_entry, recent);
        leat_flight_stop(entry->flight);
        while (!leat_list_is_empty(&entry->waiters))
            leat_lookup_cancel(LEAT_LIST_OBJECT(entry->waiters.next, struct leat_lookup, link));
        forget(resolver, entry);
    }
    leat_dns_unref(resolver->dns);
    leat_name_files_free(resolver->files);
    leat_mem_free(resolver->hosts_path);
    leat_mem_free(resolver->resolv_conf_path);
    leat_mem_free(resolver);
}
