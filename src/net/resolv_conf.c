/* SPDX-License-Identifier: Apache-2.0 */
#include "net/resolv_conf.h"

#include <netinet/in.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "net/conf_words.h"

#define DNS_PORT 53

/* The bounds of glibc. */
#define NDOTS_MAX 15u
#define TIMEOUT_MAX_S 30u
#define TRIES_MAX 5u

static bool is_link_local(const struct leat_addr *addr)
{
    struct sockaddr_in6 in6;

    memcpy(&in6, &addr->ss, sizeof(in6));
    return addr->ss.ss_family == AF_INET6 && in6.sin6_scope_id != 0;
}

static void add_server(struct leat_resolv_conf *conf, struct leat_str line)
{
    struct leat_str word;
    struct leat_addr addr;

    /* One with a zone can't be asked: c-ares 1.18 knows none. */
    if (conf->server_count == LEAT_DNS_SERVERS_MAX || !leat_conf_words_next(&line, &word) ||
        !leat_addr_parse_host(word, &addr) || is_link_local(&addr))
        return;
    leat_addr_set_port(&addr, DNS_PORT);
    conf->servers[conf->server_count++] = addr;
}

/* The last line of its kind is in force. */
static void set_search(struct leat_resolv_conf *conf, struct leat_str line)
{
    struct leat_str word;

    conf->search_count = 0;
    while (conf->search_count < LEAT_DNS_SEARCH_MAX && leat_conf_words_next(&line, &word)) {
        if (word.ptr[word.len - 1] == '.')
            word.len--;
        if (word.len == 0 || word.len >= LEAT_DNS_NAME_MAX)
            continue;
        char *domain = conf->search[conf->search_count++];
        memcpy(domain, word.ptr, word.len);
        domain[word.len] = '\0';
    }
}

/* Takes the number behind PREFIX in WORD, at most MAX. */
static bool take_number(struct leat_str word, const char *prefix, unsigned max, unsigned *out)
{
    struct leat_str before = leat_str_of(prefix);
    uint64_t number;

    if (!leat_str_starts(word, before))
        return false;
    word = (struct leat_str){word.ptr + before.len, word.len - before.len};
    if (!leat_parse_u64(word, &number))
        return false;
    *out = number < max ? (unsigned)number : max;
    return true;
}

static void set_options(struct leat_resolv_conf *conf, struct leat_str line)
{
    struct leat_str word;
    unsigned number;

    while (leat_conf_words_next(&line, &word)) {
        if (take_number(word, "ndots:", NDOTS_MAX, &number))
            conf->ndots = number;
        else if (take_number(word, "timeout:", TIMEOUT_MAX_S, &number) && number > 0)
            conf->timeout_ms = number * 1000u;
        else if (take_number(word, "attempts:", TRIES_MAX, &number) && number > 0)
            conf->tries = number;
        else if (leat_str_equal(word, leat_str_of("rotate")))
            conf->rotates = true;
    }
}

void leat_resolv_conf_parse(struct leat_str text, struct leat_resolv_conf *out)
{
    struct leat_str line, key;

    memset(out, 0, sizeof(*out));
    out->ndots = 1;
    out->tries = 3;
    out->timeout_ms = 2000;
    while (leat_conf_words_line(&text, "#;", &line)) {
        if (!leat_conf_words_next(&line, &key))
            continue;
        if (leat_str_equal(key, leat_str_of("nameserver")))
            add_server(out, line);
        else if (leat_str_equal(key, leat_str_of("search")) ||
                 leat_str_equal(key, leat_str_of("domain")))
            set_search(out, line);
        else if (leat_str_equal(key, leat_str_of("options")))
            set_options(out, line);
    }
    if (out->server_count == 0)
        add_server(out, leat_str_of("127.0.0.1"));
}
