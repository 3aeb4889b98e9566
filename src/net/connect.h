/*
 * connect.h - connecting to one of several addresses, or to a name (RFC 8305)
 *
 * The addresses are tried one after the other, the families in turn, each some time after the one
 * before or as soon as that has failed; the first that connects is it. Those of a name join in
 * when they are there. One address alone costs what one connect costs.
 *
 * Ownership: what connects belongs to itself and is gone after its callback; until then it works
 * with the caller's leat_io, which must stay.
 * Threads: the loop's own.
 * Re-entrance: the callback runs at the end of a turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_CONNECT_H
#define LEAT_NET_CONNECT_H

#include "loop/io.h"
#include "net/addr.h"

struct leat_connect;
struct leat_resolver;

/* Where to connect to: addresses, or a name and a port. What is 0 is as said behind it. */
struct leat_connect_target {
    const struct leat_addr *addrs; /* in the order in which those of a family are tried */
    size_t addr_count;
    const char *name; /* looked up if there are no addresses; may be a numeric address */
    uint16_t port;
    struct leat_resolver *resolver; /* for NAME */
    bool is_ipv4_first;             /* else IPv6 is */
    size_t turn; /* from which of a family's addresses on they are tried, counted round */
    uint64_t attempt_delay_ms; /* from one attempt to the next: 250 ms (RFC 8305, 8) */
};

/*
 * Called once. ERR is NULL: the leat_io is connected to ADDR, and the caller sets its callback
 * before he returns. Otherwise it is closed. ERR->sys is the errno that tells most of all attempts:
 * one of a lack on this side (EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC) goes before what a peer or
 * the network has said, and that before EADDRNOTAVAIL and what says that a whole family can't be
 * reached. The text names all that was tried. LEAT_ECANCELLED; LEAT_ENOTFOUND and others as the
 * name's lookup has them.
 */
typedef void leat_connect_fn(const struct leat_addr *addr, const struct leat_error *err, void *arg);

/* Starts to connect IO to TARGET, of which nothing is kept but the resolver. There is no deadline
 * but the caller's. LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_connect_start(struct leat_io *io, struct leat_loop *loop,
                                                    const struct leat_connect_target *target,
                                                    leat_connect_fn *fn, void *arg,
                                                    struct leat_connect **out);

/* Cancels CONNECT, which has not called back: it closes the leat_io at once, and calls back with
 * LEAT_ECANCELLED at the end of the turn. */
void leat_connect_cancel(struct leat_connect *connect);

#endif
