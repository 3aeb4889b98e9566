/*
 * resolv_conf.h - what /etc/resolv.conf says (resolv.conf(5))
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_RESOLV_CONF_H
#define LEAT_NET_RESOLV_CONF_H

#include "net/addr.h"

/* As many as resolv.conf(5) uses, and room for more that a program sets. */
#define LEAT_DNS_SERVERS_MAX 8
#define LEAT_DNS_SEARCH_MAX 16
/* Room for the text of a name: 253 octets (RFC 1035, 2.3.4), a dot at its end and NUL. */
#define LEAT_DNS_NAME_MAX 255

struct leat_resolv_conf {
    size_t server_count;
    struct leat_addr servers[LEAT_DNS_SERVERS_MAX];
    size_t search_count;
    char search[LEAT_DNS_SEARCH_MAX][LEAT_DNS_NAME_MAX]; /* without a dot at the end */
    unsigned ndots;      /* a name with so many dots is asked as it is before it is searched */
    unsigned tries;      /* how often each server is asked */
    uint64_t timeout_ms; /* how long each time */
    bool rotates;        /* the queries are spread over the servers */
};

/* Makes OUT what TEXT says. What it does not say, and what makes no sense, is as it would be
 * without a file: a server on this machine, no search, 2 s and 3 tries. */
void leat_resolv_conf_parse(struct leat_str text, struct leat_resolv_conf *out);

#endif
