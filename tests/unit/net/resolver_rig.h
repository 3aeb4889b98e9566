/*
 * resolver_rig.h - a resolver under test, its DNS servers, its files and its clock
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_RESOLVER_RIG_H
#define TEST_RESOLVER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "net/resolver.h"
#include "support/dns_server.h"
#include "support/stream_user.h"

struct rig {
    struct leat_loop *loop;
    uint64_t now_ms; /* the fake clock */
    struct test_dns dns[2];
    struct leat_addr servers[2];
    int hosts_fd, resolv_conf_fd;
    char hosts_path[64], resolv_conf_path[64];
    struct leat_resolver_config config;
    struct leat_resolver *resolver;
};

/* One lookup and what it was told. */
struct asker {
    struct rig *rig;
    struct leat_lookup lookup;
    unsigned calls, lasts;
    bool in_call;          /* a callback now would break law 1 */
    bool cancels;          /* in its first callback */
    bool frees;            /* the resolver, in its first callback */
    char v6[256], v4[256]; /* "?" until they are known, then the addresses, one blank behind each */
    struct leat_error err;
};

/* For WITH_RIG: makes and frees a rig with one server that is asked; the resolver is made by
 * the first look_up(). */
int rig_setup(void **state);
int rig_teardown(void **state);

/* Writes the file anew. */
void rig_write(int fd, const char *text);

/* Makes the resolver, if there is none. */
void rig_open(struct rig *rig);

/* Starts to look up NAME. */
void look_up(struct rig *rig, struct asker *asker, const char *name);

/* Turns until it has been told all. */
void await(struct asker *asker);

/* Both, and checks what it was told; V6 or V4 may be "". */
void assert_found(struct rig *rig, const char *name, const char *v6, const char *v4);

/* The same with an error. */
void assert_error(struct rig *rig, const char *name, enum leat_status status, const char *text);

/* Turns until server I has been asked COUNT times in all. */
void await_asked(struct rig *rig, int i, unsigned count);

/* Lets so much time go by and turns, without waiting. */
void go_by(struct rig *rig, uint64_t ms);

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

#endif
