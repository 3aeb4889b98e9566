/*
 * connect_rig.h - hosts to connect to, and who connects, for the tests of connecting
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_CONNECT_RIG_H
#define TEST_CONNECT_RIG_H

#include "net/connect.h"
#include "resolver_rig.h"

struct caller {
    struct leat_io io;
    struct leat_connect *connect;
    unsigned calls;
    bool in_call;
    char addr[LEAT_ADDR_TEXT_MAX]; /* "" if it failed */
    struct leat_error err;
};

/* The callback of a caller. */
void on_connect(const struct leat_addr *addr, const struct leat_error *err, void *arg);

/* Starts CALLER to connect to TARGET. */
void begin(struct rig *rig, struct caller *caller, const struct leat_connect_target *target);

/* Checks that it was told once, and closes what it has. */
void end(struct caller *caller);

void assert_connected_to(const struct caller *caller, const struct leat_addr *addr);

/* Fails a test that needs IPv6's loopback if this machine has none. */
void require_ipv6(void);

/* Two hosts with the same port: both listen on it at first. */
struct hosts {
    int fds[2];
    struct leat_addr addrs[2];
    int fillers[3];
};

void open_hosts(struct hosts *hosts, const char *first, const char *second);

/* Host I refuses from now on. */
void close_host(struct hosts *hosts, int i);

/* Host I answers nobody from now on: its queue, which holds one, is filled. */
void fill_host(struct hosts *hosts, int i);

void close_hosts(struct hosts *hosts);

/* How many connections the loop has begun. */
uint64_t connects(const struct rig *rig);

/* The lowest descriptor that is free. */
int free_fd(void);

#endif
