/*
 * dns.h - asking DNS servers for the addresses of a name; without search, cache and files
 *
 * c-ares writes the questions, reads the answers and keeps the sockets, one channel for each
 * server. Which server is asked when is decided here, so that an error can say which one did what,
 * and so that time is the loop's.
 *
 * A server that does not answer in time is asked again after the others have been, and what it then
 * answers late is taken too. One that answers with a failure is not asked again in this query.
 *
 * Ownership: a leat_dns is counted, and lasts as long as somebody refers to it or a query of it is
 * open; a query is embedded.
 * Threads: the loop's own.
 * Re-entrance: a query's callback runs at the end of a turn and may start or stop any query.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_DNS_H
#define LEAT_NET_DNS_H

#include "loop/loop.h"
#include "net/resolv_conf.h"

struct leat_dns;

/* Makes what asks the servers of CONF, at least one, in the way CONF says. LEAT_ENOMEM or LEAT_EIO
 * with ERR. */
LEAT_MUST_CHECK enum leat_status leat_dns_new(struct leat_loop *loop,
                                              const struct leat_resolv_conf *conf,
                                              struct leat_dns **out, struct leat_error *err);
struct leat_dns *leat_dns_ref(struct leat_dns *dns);
/* NULL is a no-op. */
void leat_dns_unref(struct leat_dns *dns);

/* What it was made with; as long as DNS. */
const struct leat_resolv_conf *leat_dns_conf(const struct leat_dns *dns);

enum leat_dns_result {
    LEAT_DNS_FOUND,
    LEAT_DNS_NO_NAME,    /* NXDOMAIN */
    LEAT_DNS_NO_ADDRESS, /* the name has none of this family */
    LEAT_DNS_REFUSED,    /* servers answered, but none with an answer; `error` says how */
    LEAT_DNS_SILENT,     /* no server answered, or none could be asked; `error` says why */
};

struct leat_dns_query;
typedef void leat_dns_fn(struct leat_dns_query *query, void *arg);

struct leat_dns_query {
    /* The answer, for the callback and after. */
    enum leat_dns_result result;
    struct leat_addr *addrs; /* of FOUND, with port 0; freed by whoever started the query */
    size_t addr_count;
    uint32_t ttl_s; /* of FOUND: the least on the way to the addresses */
    struct leat_error error;
    /* The query's own. */
    struct leat_dns *dns; /* NULL while it is not open */
    const char *name;
    int family;
    leat_dns_fn *fn;
    void *arg;
    unsigned first;    /* the server that is asked first */
    unsigned step;     /* how many times a server was asked, or passed over */
    unsigned spent;    /* the servers that are not asked again, a bit for each */
    unsigned blame;    /* how telling `error` is */
    bool is_asking;    /* inside c-ares' call that asks */
    bool is_done;      /* the answer is there, to be told at the end of the turn */
    uint64_t begun_at; /* in the loop's time */
    struct leat_timer timer;
    struct leat_task task;
    struct leat_list attempts;
};

/*
 * Starts to ask for the addresses of NAME, a host name which is kept by reference, in FAMILY,
 * AF_INET or AF_INET6. FN is called once. Cannot fail.
 */
void leat_dns_query_start(struct leat_dns *dns, struct leat_dns_query *query, const char *name,
                          int family, leat_dns_fn *fn, void *arg);

/* Ends QUERY at once, like a timer: FN is not called any more. One that is not open is left alone
 * if it was zeroed or has been open. */
void leat_dns_query_stop(struct leat_dns_query *query);

#endif
