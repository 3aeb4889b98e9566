/*
 * proxy_header.h - the PROXY protocol's header, in which a proxy says whom it connects for
 *
 * Version 1 is a line of text, version 2 is binary and may carry more in TLVs; HAProxy's
 * doc/proxy-protocol.txt defines both, and its sections are meant below. Reading takes either
 * version, since a receiver tells them apart by their first bytes; whether there is a header at
 * all is never guessed (2): who configures that also says from which networks it is believed.
 *
 * Ownership: what is read is borrowed from the bytes it was read from.
 * Threads: any; nothing is kept. Sans-I/O.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_PROXY_HEADER_H
#define LEAT_NET_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

#include "net/addr.h"

struct leat_writer;

/* The longest header that is read. Proxies keep theirs below 536 bytes, so that it comes in one
 * segment (2); certificates' names can make it longer. */
#define LEAT_PROXY_HEADER_MAX 4096

/* What the proxy says of TLS between it and the client (2.2.6). Texts that it does not say are
 * empty; those that it does are any bytes. */
struct leat_proxy_tls {
    bool is_used;         /* the client spoke TLS */
    bool has_cert;        /* the client showed a certificate, now or when its session began */
    bool is_verified;     /* and it was verified */
    struct leat_str name; /* the common name of that certificate's subject */
    struct leat_str version, cipher;
    struct leat_str sig_alg, key_alg; /* of the certificate that the proxy showed */
};

struct leat_proxy_header {
    unsigned version; /* 1 or 2 */
    /* It names no addresses: a health check of the proxy's own, or a client whose address it can't
     * tell. The connection's own ends count, and nothing below is set. */
    bool is_local;
    bool has_checksum;            /* CRC32C; when read it was right (2.2.3) */
    struct leat_addr source;      /* the client; a UNIX socket's path may be empty */
    struct leat_addr destination; /* what the client connected to */
    struct leat_str alpn, netns;  /* 2.2.1, 2.2.7 */
    struct leat_str authority;    /* the host name the client asked for, in TLS its SNI (2.2.2) */
    struct leat_str unique_id;    /* the proxy's name of the connection, any bytes (2.2.5) */
    struct leat_proxy_tls tls;
};

/*
 * Reads the header that the LEN bytes at DATA begin with. LEAT_OK: *OUT, whose texts lie in DATA,
 * and *OUT_USED, its length; what follows is the next protocol's. LEAT_EAGAIN: it is good so far,
 * more bytes must come; never said of LEAT_PROXY_HEADER_MAX bytes. LEAT_EPROTOCOL, with ERR saying
 * what is wrong, as soon as the bytes so far show it.
 * Datagrams are refused. Unknown TLVs are skipped.
 */
LEAT_MUST_CHECK enum leat_status leat_proxy_header_parse(const void *data, size_t len,
                                                         struct leat_proxy_header *out,
                                                         size_t *out_used, struct leat_error *err);

/*
 * Writes HEADER, in the version it says. IPv4 beside IPv6 is written as the IPv6 address that maps
 * it. Addresses that the version has no form for (a UNIX socket's in version 1, or beside another
 * family's) make a header without addresses, as is_local does. TLVs are written for what is set,
 * in version 2 only. WRITER fails if there is no room, or if something is longer than may be read.
 * To a server that must accept the connection, name the connection's own two ends rather than no
 * addresses: some refuse those (2.1), RabbitMQ 3.10 in both versions, and UNIX sockets' as well.
 */
void leat_proxy_header_write(struct leat_writer *writer, const struct leat_proxy_header *header);

#endif
