/* SPDX-License-Identifier: Apache-2.0 */
#include "support/dns_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/str.h"

#define HEAD 12
#define TYPE_A 1
#define TYPE_CNAME 5
#define TYPE_AAAA 28

struct message {
    uint8_t bytes[TEST_DNS_MESSAGE];
    size_t len;
};

static void put(struct message *m, const void *data, size_t len)
{
    assert_true(len <= sizeof(m->bytes) - m->len);
    memcpy(m->bytes + m->len, data, len);
    m->len += len;
}

static void put_u16(struct message *m, unsigned value)
{
    const uint8_t bytes[] = {(uint8_t)(value >> 8), (uint8_t)value};
    put(m, bytes, sizeof(bytes));
}

static void put_name(struct message *m, const char *name)
{
    while (*name != '\0') {
        const char *dot = strchr(name, '.');
        size_t len = dot != NULL ? (size_t)(dot - name) : strlen(name);
        uint8_t head = (uint8_t)len;
        put(m, &head, 1);
        put(m, name, len);
        name += dot != NULL ? len + 1 : len;
    }
    put(m, "", 1);
}

/* Writes the name at QUESTION's head as text; returns the length of the question behind it. */
static size_t read_name(const uint8_t *question, size_t len, char out[256])
{
    size_t pos = HEAD, written = 0;
    while (pos < len && question[pos] != 0) {
        size_t label = question[pos];
        assert_true(pos + 1 + label < len && written + label + 1 < 256);
        if (written > 0)
            out[written++] = '.';
        memcpy(out + written, question + pos + 1, label);
        written += label;
        pos += 1 + label;
    }
    out[written] = '\0';
    return pos + 1 + 4;
}

static void count_answer(struct message *m)
{
    m->bytes[7]++;
}

static void put_record_head(struct message *m, const char *owner, unsigned type, uint32_t ttl)
{
    put_name(m, owner);
    put_u16(m, type);
    put_u16(m, 1);
    put_u16(m, ttl >> 16);
    put_u16(m, ttl & 0xffff);
    count_answer(m);
}

/* ADDR as often as RULE has it, if it is one for TYPE. */
static void put_addr(struct message *m, const struct test_dns_rule *rule, const char *owner,
                     unsigned type, const char *addr)
{
    uint8_t bytes[16];
    size_t len = type == TYPE_A ? 4 : 16;
    unsigned copies = rule->copies > 0 ? rule->copies : 1;
    if (inet_pton(type == TYPE_A ? AF_INET : AF_INET6, addr, bytes) != 1)
        return;
    for (unsigned n = 0; n < copies; n++) {
        put_record_head(m, owner, type, rule->ttl);
        put_u16(m, (unsigned)len);
        put(m, bytes, len);
    }
}

static void put_records(struct message *m, const struct test_dns_rule *rule, const char *name,
                        unsigned type)
{
    const char *owner = name;
    for (size_t i = 0; i < 3 && rule->cnames[i] != NULL; i++) {
        put_record_head(m, owner, TYPE_CNAME, rule->ttl);
        put_u16(m, (unsigned)strlen(rule->cnames[i]) + 2);
        put_name(m, rule->cnames[i]);
        owner = rule->cnames[i];
    }
    for (size_t i = 0; i < 4 && rule->addrs[i] != NULL; i++)
        put_addr(m, rule, owner, type, rule->addrs[i]);
}

struct test_dns_rule *test_dns_add(struct test_dns *dns, struct test_dns_rule rule)
{
    assert_true(dns->rule_count < TEST_DNS_RULES);
    dns->rules[dns->rule_count] = rule;
    return &dns->rules[dns->rule_count++];
}

static struct test_dns_rule *find_rule(struct test_dns *dns, const char *name, int family)
{
    for (size_t i = 0; i < dns->rule_count; i++) {
        struct test_dns_rule *rule = &dns->rules[i];
        if (strcasecmp(rule->name, name) == 0 && (rule->family == 0 || rule->family == family))
            return rule;
    }
    return NULL;
}

/* Makes the answer to QUESTION. False if there is none. */
static bool make_answer(struct test_dns *dns, const struct test_dns_held *question, bool over_tcp,
                        bool is_let_go, struct message *out)
{
    static const struct test_dns_rule none = {.rcode = 3};
    char name[256];
    size_t len = read_name(question->question, question->len, name);
    unsigned type = question->question[len - 3];
    assert_true(type == TYPE_A || type == TYPE_AAAA);
    struct test_dns_rule *found = find_rule(dns, name, type == TYPE_A ? AF_INET : AF_INET6);
    const struct test_dns_rule *rule = found != NULL ? found : &none;
    if (found != NULL && !is_let_go)
        found->asked++;
    out->len = 0;
    put(out, question->question, len);
    out->bytes[2] = 0x81; /* an answer, recursion desired */
    out->bytes[3] = (uint8_t)(0x80 | rule->rcode);
    memset(out->bytes + 6, 0, 6);
    switch (is_let_go ? TEST_DNS_ANSWER : rule->action) {
    case TEST_DNS_HOLD:
        assert_true(dns->held_count < TEST_DNS_HELD);
        dns->held[dns->held_count++] = *question;
        return false;
    case TEST_DNS_SILENT:
        return false;
    case TEST_DNS_TRUNCATE:
        if (!over_tcp) {
            out->bytes[2] |= 2;
            break;
        }
        put_records(out, rule, name, type);
        break;
    case TEST_DNS_GARBAGE:
        count_answer(out);
        put(out, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
        break;
    case TEST_DNS_ANSWER:
        put_records(out, rule, name, type);
        break;
    }
    if (dns->spoil != NULL)
        dns->spoil(out->bytes, &out->len, dns->spoil_arg);
    return true;
}

static void send_udp(struct test_dns *dns, const struct message *m, const struct sockaddr_in *to)
{
    (void)sendto(dns->udp_fd, m->bytes, m->len, 0, (const struct sockaddr *)to, sizeof(*to));
}

static void on_udp(struct leat_io *io, void *arg)
{
    struct test_dns *dns = arg;
    struct test_dns_held question;
    struct message answer;
    socklen_t len = sizeof(question.from);
    ssize_t n = recvfrom(io->fd, question.question, sizeof(question.question), MSG_DONTWAIT,
                         (struct sockaddr *)&question.from, &len);
    if (n < HEAD)
        return;
    question.len = (size_t)n;
    dns->asked++;
    if (make_answer(dns, &question, false, false, &answer))
        send_udp(dns, &answer, &question.from);
}

void test_dns_let_go(struct test_dns *dns)
{
    struct message answer;
    for (size_t i = 0; i < dns->held_count; i++)
        if (make_answer(dns, &dns->held[i], false, true, &answer))
            send_udp(dns, &answer, &dns->held[i].from);
    dns->held_count = 0;
}

static void close_tcp(struct test_dns *dns)
{
    leat_io_close(&dns->tcp);
    if (dns->tcp_fd >= 0)
        (void)close(dns->tcp_fd);
    dns->tcp_fd = -1;
}

/* Questions over TCP come whole on loopback: c-ares sends each at once. */
static void on_tcp(struct leat_io *io, void *arg)
{
    struct test_dns *dns = arg;
    struct test_dns_held question = {0};
    struct message answer;
    uint8_t head[2];
    if (recv(io->fd, head, 2, MSG_DONTWAIT | MSG_WAITALL) != 2) {
        close_tcp(dns);
        return;
    }
    question.len = (size_t)head[0] << 8 | head[1];
    assert_true(question.len <= sizeof(question.question));
    assert_int_equal(recv(io->fd, question.question, question.len, MSG_WAITALL), question.len);
    dns->asked++;
    dns->asked_over_tcp++;
    if (!make_answer(dns, &question, true, false, &answer))
        return;
    head[0] = (uint8_t)(answer.len >> 8);
    head[1] = (uint8_t)answer.len;
    (void)send(io->fd, head, 2, MSG_NOSIGNAL);
    (void)send(io->fd, answer.bytes, answer.len, MSG_NOSIGNAL);
}

static void on_listener(struct leat_io *io, void *arg)
{
    struct test_dns *dns = arg;
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    close_tcp(dns);
    dns->tcp_fd = fd;
    assert_int_equal(leat_io_open_watch(&dns->tcp, dns->loop, fd, LEAT_IO_READABLE, on_tcp, dns),
                     LEAT_OK);
}

/* Binds UDP to a free port, and listens for TCP on the same. */
static void bind_both(struct test_dns *dns)
{
    for (int tries = 0; tries < 100; tries++) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        struct sockaddr_storage ss = {0};
        socklen_t len = sizeof(ss);
        dns->udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(dns->udp_fd, (struct sockaddr *)&in, sizeof(in)), 0);
        assert_int_equal(getsockname(dns->udp_fd, (struct sockaddr *)&ss, &len), 0);
        leat_addr_from_sockaddr(&ss, &dns->addr);
        if (leat_addr_listen(&dns->addr, &dns->listener_fd, NULL) == LEAT_OK)
            return;
        (void)close(dns->udp_fd); /* another has that port of TCP */
    }
    fail_msg("no port is free");
}

void test_dns_open(struct test_dns *dns, struct leat_loop *loop)
{
    *dns = (struct test_dns){.loop = loop, .tcp_fd = -1};
    bind_both(dns);
    leat_io_init(&dns->tcp, loop);
    assert_int_equal(
        leat_io_open_watch(&dns->udp, loop, dns->udp_fd, LEAT_IO_READABLE, on_udp, dns), LEAT_OK);
    assert_int_equal(leat_io_open_watch(&dns->listener, loop, dns->listener_fd, LEAT_IO_READABLE,
                                        on_listener, dns),
                     LEAT_OK);
}

void test_dns_close(struct test_dns *dns)
{
    close_tcp(dns);
    leat_io_close(&dns->udp);
    leat_io_close(&dns->listener);
    (void)close(dns->udp_fd);
    (void)close(dns->listener_fd);
}
