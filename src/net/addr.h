/*
 * addr.h - numeric socket addresses, those of UNIX sockets, and their texts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_ADDR_H
#define LEAT_NET_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

struct leat_addr {
    struct sockaddr_storage ss;
    socklen_t len;
};

/* The longest path of a UNIX socket, in bytes: the kernel takes no longer one. */
#define LEAT_ADDR_PATH_MAX 107

/* Room for the text of any address, NUL included: "[v6%scope]:port", "unix:/path". */
#define LEAT_ADDR_TEXT_MAX 128

/* Parses "127.0.0.1:5672", "[::1]:5671" or, with DEFAULT_PORT other than 0, the same without
 * the port. LEAT_EUSAGE, with ERR saying what is wrong, for anything else. */
LEAT_MUST_CHECK enum leat_status leat_addr_parse(struct leat_str text, uint16_t default_port,
                                                 struct leat_addr *out, struct leat_error *err);

/* Makes the address of the UNIX socket at PATH. LEAT_EUSAGE, with ERR saying what is wrong, if PATH
 * is empty, has a NUL in it, or is longer than LEAT_ADDR_PATH_MAX. */
LEAT_MUST_CHECK enum leat_status leat_addr_from_path(struct leat_str path, struct leat_addr *out,
                                                     struct leat_error *err);

/* Takes over what accept or getsockname wrote to SS, which was zeroed before; an IPv4 address
 * mapped into IPv6 becomes the IPv4 address it stands for. */
/* Parses a host without port or brackets: "127.0.0.1", "::1", "fe80::1%eth0". False, leaving OUT
 * alone, if HOST is none of these. The port is 0. */
bool leat_addr_parse_host(struct leat_str host, struct leat_addr *out);

/* Takes over what accept or getsockname wrote; an IPv4 address mapped into IPv6 becomes the
 * IPv4 address it stands for. */
void leat_addr_from_sockaddr(const struct sockaddr_storage *ss, struct leat_addr *out);

/* Writes "127.0.0.1:5672", "[::1]:5672" or "unix:/path" to BUF and returns BUF; "unix" for a
 * socket without a path, as those that connect are. Of a path, what is no plain character is shown
 * as \xNN. */
const char *leat_addr_text(const struct leat_addr *addr, char buf[LEAT_ADDR_TEXT_MAX]);

/* Writes the same without brackets and port, as certificates have it, to BUF; returns BUF. */
const char *leat_addr_host_text(const struct leat_addr *addr, char buf[LEAT_ADDR_TEXT_MAX]);

/* Writes the path of a UNIX socket as it is to BUF, "" if it has none; returns BUF. */
const char *leat_addr_path(const struct leat_addr *addr, char buf[LEAT_ADDR_PATH_MAX + 1]);

/* The port of an IPv4 or IPv6 address, otherwise 0. */
uint16_t leat_addr_port(const struct leat_addr *addr);

/* Sets the port of an IPv4 or IPv6 address. */
void leat_addr_set_port(struct leat_addr *addr, uint16_t port);

/* Whether A and B are the same address and port. */
bool leat_addr_is_equal(const struct leat_addr *a, const struct leat_addr *b);

/* Whether a socket that listens on LISTENER gets what connects to ADDR, on this machine: it is the
 * same address, or it listens on all and ADDR is loopback. */
bool leat_addr_is_served_by(const struct leat_addr *addr, const struct leat_addr *listener);

/* Whether a connection from LOCAL to PEER is one to LISTENER of this very machine: it listens on
 * all addresses, and the connection is to one of the machine's own. */
bool leat_addr_leads_to(const struct leat_addr *peer, const struct leat_addr *local,
                        const struct leat_addr *listener);

/* Whether ADDR is of 127.0.0.0/8 or ::1. */
bool leat_addr_is_loopback(const struct leat_addr *addr);

/*
 * Makes a non-blocking socket that listens on ADDR and returns its descriptor in *OUT_FD;
 * the caller closes it. An IPv6 one takes no IPv4 connections. A UNIX one belongs to its owner
 * alone (mode 0600), and its path must not exist yet. LEAT_EIO with ERR naming the address: in
 * use, not ours, no right.
 */
LEAT_MUST_CHECK enum leat_status leat_addr_listen(const struct leat_addr *addr, int *out_fd,
                                                  struct leat_error *err);

#endif
