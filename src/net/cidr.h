/*
 * cidr.h - networks, such as 10.0.0.0/8, and whether an address is in one
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_CIDR_H
#define LEAT_NET_CIDR_H

#include "net/addr.h"

struct leat_cidr {
    int family;      /* AF_INET or AF_INET6 */
    unsigned prefix; /* how many bits of an address must be those of `ip` */
    uint8_t ip[16];  /* 4 of them for AF_INET; the other bits are 0 */
};

/* Parses "10.0.0.0/8", "fd00::/8" or a single address, "192.0.2.1". An IPv4 network mapped into
 * IPv6, "::ffff:10.0.0.0/104", is the IPv4 one. LEAT_EUSAGE, with ERR saying what is wrong, for
 * anything else; also if bits behind the prefix are set, since one of the two must be a slip. */
LEAT_MUST_CHECK enum leat_status leat_cidr_parse(struct leat_str text, struct leat_cidr *out,
                                                 struct leat_error *err);

/* Whether ADDR is in the network. An IPv4 address mapped into IPv6 counts as the IPv4 address, so
 * that ::/0 holds no IPv4 address. One that is neither is in none. */
bool leat_cidr_has(const struct leat_cidr *cidr, const struct leat_addr *addr);

#endif
