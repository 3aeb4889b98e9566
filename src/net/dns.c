/* SPDX-License-Identifier: Apache-2.0 */
#include "net/dns.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <ares.h>
#include <arpa/nameser.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"
#include "loop/io.h"

/* How many addresses of one name are taken. */
#define ADDRS_MAX 64
/* A channel of one server has at most a socket of UDP and one of TCP. */
#define SOCKETS 2

/* One server. */
struct channel {
    struct leat_loop *loop;
    ares_channel ares;
    struct leat_io sockets[SOCKETS];
    struct leat_timer timer; /* of questions that were given up: it closes their sockets */
};

struct leat_dns {
    struct leat_loop *loop;
    unsigned refs;
    unsigned next_server;  /* where the next query begins, if they rotate */
    struct leat_task task; /* of freeing: no channel may go inside a callback of its own */
    struct leat_resolv_conf conf;
    struct channel channels[]; /* one for each of conf.servers */
};

/* One question to one server. c-ares answers each once, but can't take one back: it may outlive its
 * query. */
struct attempt {
    struct leat_list link;
    struct leat_dns_query *query; /* NULL when nobody waits any more */
    unsigned server;
};

/* How telling a failure is, in rising order. */
enum blame {
    BLAME_NONE,
    BLAME_SILENT,
    BLAME_UNREACHABLE,
    BLAME_ANSWER, /* the server said something, but nothing of use */
    BLAME_OURS,   /* memory or descriptors are short */
};

/* Channels. */

static void set_timer(struct channel *channel)
{
    struct timeval room;
    const struct timeval *wait = ares_timeout(channel->ares, NULL, &room);

    if (wait == NULL)
        leat_timer_stop(channel->loop, &channel->timer);
    else
        leat_timer_start(channel->loop, &channel->timer,
                         (uint64_t)wait->tv_sec * 1000u + (uint64_t)wait->tv_usec / 1000u + 1u);
}

static void on_timer(void *arg)
{
    struct channel *channel = arg;

    ares_process_fd(channel->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    set_timer(channel);
}

static void on_socket(struct leat_io *io, void *arg)
{
    struct channel *channel = arg;
    ares_socket_t fd = io->fd;

    ares_process_fd(channel->ares, (io->ready & LEAT_IO_READABLE) ? fd : ARES_SOCKET_BAD,
                    (io->ready & LEAT_IO_WRITABLE) ? fd : ARES_SOCKET_BAD);
    set_timer(channel);
}

/* c-ares says what it wants to know of its socket FD; nothing before it closes it. */
static void on_socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct channel *channel = arg;
    struct leat_io *slot = NULL;
    unsigned events =
        (readable ? (unsigned)LEAT_IO_READABLE : 0u) | (writable ? (unsigned)LEAT_IO_WRITABLE : 0u);

    for (size_t i = 0; i < SOCKETS; i++) {
        struct leat_io *socket = &channel->sockets[i];
        if (socket->fd == fd)
            leat_io_close(socket);
        if (socket->fd < 0)
            slot = socket;
    }
    if (events == 0 || slot == NULL)
        return;
    /* One that can't be watched is as silent as its server: the query goes on to the next. */
    enum leat_status status =
        leat_io_open_watch(slot, channel->loop, fd, events, on_socket, channel);
    (void)status;
}

/* Makes CHANNEL for SERVER. Everything is set, so that c-ares reads no file and nothing of the
 * environment. Returns what c-ares says. */
static int open_channel(struct channel *channel, const struct leat_addr *server,
                        const struct leat_resolv_conf *conf)
{
    static char lookups[] = "b";
    uint64_t all_ms = conf->timeout_ms * conf->tries * conf->server_count;
    struct ares_options options = {
        .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_NOCHECKRESP,
        .timeout = all_ms < INT32_MAX ? (int)all_ms : INT32_MAX,
        .tries = 1,
        .ndots = 1,
        .lookups = lookups,
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = channel,
    };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
               ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_SERVERS | ARES_OPT_DOMAINS |
               ARES_OPT_SORTLIST | ARES_OPT_NOROTATE;
    struct ares_addr_port_node node = {.family = server->ss.ss_family};
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    if (node.family == AF_INET) {
        memcpy(&in, &server->ss, sizeof(in));
        node.addr.addr4 = in.sin_addr;
    } else {
        memcpy(&in6, &server->ss, sizeof(in6));
        memcpy(&node.addr.addr6, &in6.sin6_addr, sizeof(node.addr.addr6));
    }
    node.udp_port = leat_addr_port(server);
    node.tcp_port = node.udp_port;
    int status = ares_init_options(&channel->ares, &options, mask);
    if (status != ARES_SUCCESS) {
        channel->ares = NULL;
        return status;
    }
    return ares_set_servers_ports(channel->ares, &node);
}

static void free_dns(void *arg)
{
    struct leat_dns *dns = arg;

    for (size_t i = 0; i < dns->conf.server_count; i++) {
        struct channel *channel = &dns->channels[i];
        leat_timer_stop(dns->loop, &channel->timer);
        if (channel->ares != NULL)
            ares_destroy(channel->ares);
    }
    leat_mem_free(dns);
}

enum leat_status leat_dns_new(struct leat_loop *loop, const struct leat_resolv_conf *conf,
                              struct leat_dns **out, struct leat_error *err)
{
    LEAT_ASSERT(conf->server_count > 0 && conf->server_count <= LEAT_DNS_SERVERS_MAX);
    struct leat_dns *dns =
        leat_mem_zalloc_flex(sizeof(*dns), conf->server_count, sizeof(dns->channels[0]));
    if (dns == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for the DNS servers");
    dns->loop = loop;
    dns->refs = 1;
    dns->conf = *conf;
    leat_task_init(&dns->task, free_dns, dns);
    /* ares_library_init() does nothing on this system but to count in a variable that all threads
     * would share. */
    int status = ARES_SUCCESS;
    for (size_t i = 0; i < conf->server_count; i++) {
        struct channel *channel = &dns->channels[i];
        channel->loop = loop;
        leat_timer_init(&channel->timer, on_timer, channel);
        for (size_t j = 0; j < SOCKETS; j++)
            leat_io_init(&channel->sockets[j], loop);
        if (status == ARES_SUCCESS)
            status = open_channel(channel, &conf->servers[i], conf);
    }
    if (status != ARES_SUCCESS) {
        free_dns(dns);
        return leat_error_set(err, status == ARES_ENOMEM ? LEAT_ENOMEM : LEAT_EIO, 0,
                              "preparing to ask DNS servers: %s", ares_strerror(status));
    }
    *out = dns;
    return LEAT_OK;
}

struct leat_dns *leat_dns_ref(struct leat_dns *dns)
{
    dns->refs++;
    return dns;
}

void leat_dns_unref(struct leat_dns *dns)
{
    if (dns != NULL && --dns->refs == 0)
        leat_loop_defer(dns->loop, &dns->task);
}

const struct leat_resolv_conf *leat_dns_conf(const struct leat_dns *dns)
{
    return &dns->conf;
}

/* Queries. */

/* Ends Q's part in everything; what was asked is answered to nobody. */
static void close_query(struct leat_dns_query *q)
{
    leat_timer_stop(q->dns->loop, &q->timer);
    leat_task_cancel(&q->task);
    while (!leat_list_is_empty(&q->attempts)) {
        struct attempt *attempt = LEAT_LIST_OBJECT(q->attempts.next, struct attempt, link);
        leat_list_remove(&attempt->link);
        attempt->query = NULL;
    }
    leat_dns_unref(q->dns);
    q->dns = NULL;
}

void leat_dns_query_stop(struct leat_dns_query *q)
{
    if (q->dns != NULL)
        close_query(q);
}

/* Has RESULT told at the end of the turn. */
static void answer(struct leat_dns_query *q, enum leat_dns_result result)
{
    q->result = result;
    q->is_done = true;
    leat_loop_defer(q->dns->loop, &q->task);
}

/* Notes what came of asking SERVER, unless something more telling is known. */
static void note(struct leat_dns_query *q, enum blame blame, unsigned server, int sys,
                 const char *what)
{
    static const enum leat_status kinds[] = {
        [BLAME_SILENT] = LEAT_ETIMEOUT,
        [BLAME_UNREACHABLE] = LEAT_EIO,
        [BLAME_ANSWER] = LEAT_EIO,
        [BLAME_OURS] = LEAT_EIO,
    };
    char text[LEAT_ADDR_TEXT_MAX];

    if ((unsigned)blame <= q->blame)
        return;
    q->blame = blame;
    (void)leat_error_set(&q->error, sys == ENOMEM ? LEAT_ENOMEM : kinds[blame], sys,
                         "%s: DNS server %s %s", q->name,
                         leat_addr_text(&q->dns->conf.servers[server], text), what);
}

/* Says that nobody has answered, and how long it took. */
static void note_silence(struct leat_dns_query *q)
{
    const struct leat_resolv_conf *conf = &q->dns->conf;
    uint64_t ms = leat_loop_now_ms(q->dns->loop) - q->begun_at;
    char list[160], addr[LEAT_ADDR_TEXT_MAX];
    struct leat_text text;

    leat_text_init(&text, list, sizeof(list));
    for (size_t i = 0; i < conf->server_count; i++)
        leat_text_add(&text, "%s%s", i > 0 ? ", " : "", leat_addr_text(&conf->servers[i], addr));
    (void)leat_error_set(&q->error, LEAT_ETIMEOUT, 0, "%s: %s %s did not answer in %llu %s",
                         q->name, conf->server_count > 1 ? "the DNS servers" : "DNS server", list,
                         (unsigned long long)(ms % 1000 != 0 ? ms : ms / 1000),
                         ms % 1000 != 0 ? "ms" : "s");
}

/* Makes OUT an address of 4 or 16 bytes at BYTES. */
static void set_addr(struct leat_addr *out, int family, const void *bytes)
{
    struct sockaddr_storage ss = {0};
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    if (family == AF_INET) {
        memcpy(&in.sin_addr, bytes, sizeof(in.sin_addr));
        memcpy(&ss, &in, sizeof(in));
    } else {
        memcpy(&in6.sin6_addr, bytes, sizeof(in6.sin6_addr));
        memcpy(&ss, &in6, sizeof(in6));
    }
    leat_addr_from_sockaddr(&ss, out);
}

/* Keeps the addresses of the answer of LEN bytes at BUF. Returns what c-ares says. */
static int take_addrs(struct leat_dns_query *q, const unsigned char *buf, int len)
{
    struct ares_addrttl v4[ADDRS_MAX];
    struct ares_addr6ttl v6[ADDRS_MAX];
    int count = ADDRS_MAX, least = INT32_MAX;
    bool is_v4 = q->family == AF_INET;
    int status = is_v4 ? ares_parse_a_reply(buf, len, NULL, v4, &count)
                       : ares_parse_aaaa_reply(buf, len, NULL, v6, &count);

    if (status != ARES_SUCCESS)
        return status;
    if (count <= 0)
        return ARES_ENODATA;
    q->addrs = leat_mem_zalloc_flex(0, (size_t)count, sizeof(*q->addrs));
    if (q->addrs == NULL)
        return ARES_ENOMEM;
    for (int i = 0; i < count; i++) {
        int ttl = is_v4 ? v4[i].ttl : v6[i].ttl;
        set_addr(&q->addrs[i], q->family,
                 is_v4 ? (const void *)&v4[i].ipaddr : (const void *)&v6[i].ip6addr);
        least = ttl < least ? ttl : least;
    }
    q->addr_count = (size_t)count;
    q->ttl_s = least > 0 ? (uint32_t)least : 0u; /* RFC 2181, 8: a negative one is 0 */
    return ARES_SUCCESS;
}

/* Notes the failure STATUS of asking SERVER. */
static void take_failure(struct leat_dns_query *q, unsigned server, int status)
{
    /* c-ares does not say why it could not open a socket; errno still does. */
    int sys = q->is_asking ? errno : 0;

    switch (status) {
    case ARES_ETIMEOUT:
        note(q, BLAME_SILENT, server, 0, "did not answer");
        return;
    case ARES_ESERVFAIL:
        note(q, BLAME_ANSWER, server, 0, "could not find out (SERVFAIL)");
        break;
    case ARES_EREFUSED:
        note(q, BLAME_ANSWER, server, 0, "does not answer this machine (REFUSED)");
        break;
    case ARES_EFORMERR:
    case ARES_ENOTIMP:
        note(q, BLAME_ANSWER, server, 0, "does not understand the question");
        break;
    case ARES_ENOMEM:
        note(q, BLAME_OURS, server, ENOMEM, "was of no use");
        break;
    case ARES_ECONNREFUSED:
    case ARES_ECANCELLED: /* another query has found out */
        if (sys == EMFILE || sys == ENFILE || sys == ENOBUFS || sys == ENOMEM)
            note(q, BLAME_OURS, server, sys, "could not be asked");
        else
            note(q, BLAME_UNREACHABLE, server, sys == ECONNREFUSED ? 0 : sys, "cannot be reached");
        break;
    default:
        note(q, BLAME_ANSWER, server, 0, "sent a malformed answer");
        break;
    }
    q->spent |= 1u << server;
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *buf, int len)
{
    struct attempt *attempt = arg;
    struct leat_dns_query *q = attempt->query;
    unsigned server = attempt->server;
    bool is_newest = q != NULL && q->attempts.prev == &attempt->link;

    (void)timeouts;
    leat_list_remove(&attempt->link);
    leat_mem_free(attempt);
    if (q == NULL || q->is_done)
        return;
    if (status == ARES_SUCCESS)
        status = take_addrs(q, buf, len);
    switch (status) {
    case ARES_SUCCESS:
        answer(q, LEAT_DNS_FOUND);
        break;
    case ARES_ENOTFOUND:
    case ARES_EBADNAME: /* longer than any: a domain was put behind it */
        answer(q, LEAT_DNS_NO_NAME);
        break;
    case ARES_ENODATA:
        answer(q, LEAT_DNS_NO_ADDRESS);
        break;
    default:
        take_failure(q, server, status);
        /* If it is just late another server has been asked since. */
        if (is_newest)
            leat_loop_defer(q->dns->loop, &q->task);
    }
}

/* Asks SERVER. */
static void ask(struct leat_dns_query *q, unsigned server)
{
    struct channel *channel = &q->dns->channels[server];
    struct attempt *attempt = leat_mem_zalloc(sizeof(*attempt));
    int saved = errno;

    if (attempt == NULL) {
        take_failure(q, server, ARES_ENOMEM);
        leat_loop_defer(q->dns->loop, &q->task);
        return;
    }
    attempt->query = q;
    attempt->server = server;
    leat_list_append(&q->attempts, &attempt->link);
    leat_timer_start(q->dns->loop, &q->timer, q->dns->conf.timeout_ms);
    q->is_asking = true;
    errno = 0;
    ares_query(channel->ares, q->name, C_IN, q->family == AF_INET ? T_A : T_AAAA, on_answer,
               attempt);
    errno = saved;
    q->is_asking = false;
    /* Sending has heard, instead of those who wait, that nobody is there. */
    if ((q->spent & (1u << server)) != 0 && q->blame == BLAME_UNREACHABLE)
        ares_cancel(channel->ares);
    set_timer(channel);
}

/* Takes Q on: to the next server that is still of use, or to its end. */
static void ask_next(struct leat_dns_query *q)
{
    const struct leat_resolv_conf *conf = &q->dns->conf;
    unsigned count = (unsigned)conf->server_count;

    while (q->step < count * conf->tries) {
        unsigned server = (q->first + q->step++) % count;
        if ((q->spent & (1u << server)) == 0) {
            ask(q, server);
            return;
        }
    }
    if (q->blame <= BLAME_SILENT)
        note_silence(q);
    answer(q, q->blame == BLAME_ANSWER ? LEAT_DNS_REFUSED : LEAT_DNS_SILENT);
}

static void on_timeout(void *arg)
{
    struct leat_dns_query *q = arg;

    if (!q->is_done)
        ask_next(q);
}

static void run_query(void *arg)
{
    struct leat_dns_query *q = arg;

    if (q->is_done) {
        close_query(q);
        q->fn(q, q->arg);
        return;
    }
    ask_next(q);
}

void leat_dns_query_start(struct leat_dns *dns, struct leat_dns_query *q, const char *name,
                          int family, leat_dns_fn *fn, void *arg)
{
    *q = (struct leat_dns_query){
        .dns = leat_dns_ref(dns), .name = name, .family = family, .fn = fn, .arg = arg};
    q->begun_at = leat_loop_now_ms(dns->loop);
    leat_timer_init(&q->timer, on_timeout, q);
    leat_task_init(&q->task, run_query, q);
    leat_list_init(&q->attempts);
    if (dns->conf.rotates)
        q->first = dns->next_server++ % (unsigned)dns->conf.server_count;
    ask_next(q);
}
