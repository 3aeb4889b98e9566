/*
 * resolver_impl.h - the inside of a resolver: what is known of a name, and finding it out
 *
 * An entry holds what is known of one name. Those of DNS are in the resolver's cache; those that
 * are answered here belong only to the lookups that wait for them. A flight is the asking.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_RESOLVER_IMPL_H
#define LEAT_NET_RESOLVER_IMPL_H

#include "net/dns.h"
#include "net/name_files.h"
#include "net/resolver.h"

/* The two families, in the order in which they are told. */
enum { LEAT_HALF_V6, LEAT_HALF_V4, LEAT_HALVES };

struct leat_lookup_half {
    bool is_known;
    struct leat_addr *addrs;
    size_t count;
};

struct leat_flight;

struct leat_lookup_entry {
    unsigned refs;           /* the cache's, the flight's, and one for each lookup */
    struct leat_list bucket; /* in the cache, those with the same hash */
    struct leat_list recent; /* in the cache, the longest unused first */
    struct leat_list waiters;
    struct leat_lookup_half halves[LEAT_HALVES];
    struct leat_flight *flight; /* while DNS is being asked */
    uint64_t expires_at;        /* in the loop's time, once both halves are known */
    struct leat_error error;    /* why there is no address */
    char name[];                /* in small letters */
};

#define LEAT_RESOLVER_BUCKETS 256u

struct leat_resolver {
    struct leat_loop *loop;
    struct leat_resolver_config config; /* nothing in it is 0 but the servers */
    struct leat_addr servers[LEAT_DNS_SERVERS_MAX];
    char *hosts_path, *resolv_conf_path;
    struct leat_name_files *files;
    uint64_t checked_at; /* when the files were last looked at */
    struct leat_dns *dns;
    size_t entry_count;
    struct leat_list recent;
    struct leat_list buckets[LEAT_RESOLVER_BUCKETS];
};

/* An entry that is in no cache, with one reference. NULL if memory is short. */
struct leat_lookup_entry *leat_lookup_entry_new(struct leat_str name);
void leat_lookup_entry_unref(struct leat_lookup_entry *entry);

/* Has all who wait for ENTRY told what they have not been. */
void leat_lookup_entry_tell(struct leat_lookup_entry *entry);

/* Starts to ask for ENTRY's name. LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_flight_start(struct leat_resolver *resolver,
                                                   struct leat_lookup_entry *entry);

/* Ends it without an answer. NULL is a no-op. */
void leat_flight_stop(struct leat_flight *flight);

#endif
