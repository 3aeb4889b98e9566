/*
 * dns_server.h - a DNS server on loopback that answers as its rules say, on the loop under test
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_DNS_SERVER_H
#define TEST_DNS_SERVER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/io.h"
#include "net/addr.h"

enum test_dns_action {
    TEST_DNS_ANSWER,
    TEST_DNS_SILENT,
    TEST_DNS_HOLD,     /* answered by test_dns_let_go() */
    TEST_DNS_TRUNCATE, /* answered over TCP only */
    TEST_DNS_GARBAGE,  /* a head that matches, and nonsense behind it */
};

/* What is said to a question. */
struct test_dns_rule {
    const char *name;
    int family; /* 0: both */
    enum test_dns_action action;
    unsigned rcode;
    uint32_t ttl;
    const char *cnames[3]; /* the answers begin with these, one behind the other */
    const char *addrs[4];  /* those of the question's family are given */
    unsigned copies;       /* how often each address is given; 0 is once */
    unsigned asked;
};

#define TEST_DNS_RULES 16
#define TEST_DNS_HELD 16
#define TEST_DNS_MESSAGE 4096

struct test_dns_held {
    uint8_t question[512];
    size_t len;
    struct sockaddr_in from;
};

struct test_dns {
    struct leat_loop *loop;
    struct leat_addr addr;
    int udp_fd, listener_fd, tcp_fd;
    struct leat_io udp, listener, tcp;
    struct test_dns_rule rules[TEST_DNS_RULES]; /* the first that fits; none: NXDOMAIN */
    size_t rule_count;
    unsigned asked, asked_over_tcp;
    struct test_dns_held held[TEST_DNS_HELD];
    size_t held_count;
    /* Changes an answer before it is sent; may be NULL. */
    void (*spoil)(uint8_t *answer, size_t *len, void *arg);
    void *spoil_arg;
};

/* Opens a server on a free port of 127.0.0.1. */
void test_dns_open(struct test_dns *dns, struct leat_loop *loop);
void test_dns_close(struct test_dns *dns);

/* Adds a rule and returns it. */
struct test_dns_rule *test_dns_add(struct test_dns *dns, struct test_dns_rule rule);

/* Answers what is held, as if the rule's action were TEST_DNS_ANSWER. */
void test_dns_let_go(struct test_dns *dns);

#endif
