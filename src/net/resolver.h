/*
 * resolver.h - the addresses of a name
 *
 * Numeric addresses, "localhost" and what ends in ".localhost" (RFC 6761, 6.3) and the names of
 * /etc/hosts are answered here; all else is asked of DNS, both families at once and each told when
 * it is there (RFC 8305, 3). Answers are kept as long as their TTL says; however many ask for a
 * name at once, DNS is asked once. Changes of /etc/hosts and /etc/resolv.conf are seen within
 * seconds.
 *
 * Ownership: a resolver is its maker's and belongs to one loop; a lookup is embedded, and must stay
 * until its last callback.
 * Threads: the loop's own.
 * Re-entrance: callbacks run at the end of a turn; they may start and cancel lookups, and free the
 * resolver.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_RESOLVER_H
#define LEAT_NET_RESOLVER_H

#include "loop/loop.h"
#include "net/addr.h"

struct leat_resolver;

/* What is 0 or NULL is as said behind it. */
struct leat_resolver_config {
    const struct leat_addr *servers; /* DNS servers and their ports: resolv.conf's */
    size_t server_count;             /* at most LEAT_DNS_SERVERS_MAX */
    uint64_t timeout_ms;             /* for each question to a server: resolv.conf's, or 2 s */
    unsigned tries;                  /* how often each server is asked: resolv.conf's, or 3 */
    bool is_search_off;              /* a name is asked as it is, whatever resolv.conf says */
    uint64_t ttl_min_ms;             /* an answer is kept at least so long: 1 s */
    uint64_t ttl_max_ms;             /* and at most so long: 1 h */
    uint64_t ttl_negative_ms;        /* that there is no address is kept so long: 5 s */
    size_t cache_max;                /* names that are kept: 1024 */
    const char *hosts_path;          /* "/etc/hosts" */
    const char *resolv_conf_path;    /* "/etc/resolv.conf" */
};

/* Makes a resolver and reads the files, which blocks: before the loop runs, that is. CONFIG is
 * copied, its servers too; NULL is as all 0. LEAT_ENOMEM, LEAT_EIO or LEAT_ELIMIT with ERR. */
LEAT_MUST_CHECK enum leat_status leat_resolver_new(struct leat_loop *loop,
                                                   const struct leat_resolver_config *config,
                                                   struct leat_resolver **out,
                                                   struct leat_error *err);

/* Frees RESOLVER; lookups that are open are cancelled. NULL is a no-op. */
void leat_resolver_free(struct leat_resolver *resolver);

/* The addresses of one family, with port 0; valid until the callback returns. */
struct leat_lookup_addrs {
    bool is_known; /* the answer is there, now or since an earlier callback; perhaps empty */
    const struct leat_addr *addrs; /* those that were not told yet */
    size_t count;
};

struct leat_lookup_answer {
    struct leat_lookup_addrs v6, v4;
    bool is_last; /* no callback follows */
    /* With the last, if no address was told at all: why. LEAT_ENOTFOUND: there is no such name, or
     * it has no address; LEAT_EUSAGE: it is no host name; LEAT_ETIMEOUT, LEAT_EIO: DNS does not
     * say; LEAT_ENOMEM; LEAT_ECANCELLED. Otherwise NULL. */
    const struct leat_error *err;
};

/* Called once or twice for each lookup: with both families, or with each when it is there. */
typedef void leat_lookup_fn(const struct leat_lookup_answer *answer, void *arg);

struct leat_lookup_entry;

/* The resolver's, as long as the lookup is open. */
struct leat_lookup {
    struct leat_loop *loop;
    struct leat_lookup_entry *entry; /* NULL: `err` is the answer */
    struct leat_list link;
    struct leat_task task;
    leat_lookup_fn *fn;
    void *arg;
    bool is_open;
    bool has_told[2]; /* IPv6's addresses, IPv4's */
    struct leat_error err;
};

/* Starts to look up NAME, which is not kept. A dot at its end says that it is not to be searched
 * for. Cannot fail: a failure is the answer. */
void leat_lookup_start(struct leat_lookup *lookup, struct leat_resolver *resolver,
                       struct leat_str name, leat_lookup_fn *fn, void *arg);

/* Cancels LOOKUP: the callback comes once more, the last time, at the end of the turn, with
 * LEAT_ECANCELLED. One that is not open is left alone if it was zeroed or has been open. */
void leat_lookup_cancel(struct leat_lookup *lookup);

#endif
