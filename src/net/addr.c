/* SPDX-License-Identifier: Apache-2.0 */
#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"

#define BACKLOG 4096
#define HOST_MAX (INET6_ADDRSTRLEN + 1 + IF_NAMESIZE)

/* An address cut into its parts, which are not checked yet. */
struct parts {
    struct leat_str host; /* without brackets */
    struct leat_str port; /* without its colon */
    bool is_bracketed;
    bool has_port;
};

/* Cuts TEXT. False if it has neither form. */
static bool cut(struct leat_str text, struct parts *out)
{
    struct parts parts = {.host = text};
    if (text.len == 0)
        return false;
    const char *colon = memchr(text.ptr, ':', text.len);
    if (text.ptr[0] == '[') {
        const char *end = memchr(text.ptr, ']', text.len);
        if (end == NULL)
            return false;
        parts.is_bracketed = true;
        parts.host = (struct leat_str){text.ptr + 1, (size_t)(end - text.ptr) - 1};
        colon = end + 1;
        if (colon == text.ptr + text.len)
            colon = NULL;
        else if (*colon != ':')
            return false;
    } else if (colon != NULL) {
        parts.host.len = (size_t)(colon - text.ptr);
    }
    if (colon != NULL) {
        parts.has_port = true;
        parts.port = (struct leat_str){colon + 1, (size_t)(text.ptr + text.len - (colon + 1))};
    }
    *out = parts;
    return true;
}

/* Parses HOST, an IPv6 address that may name a zone: "fe80::1%eth0", "fe80::1%2". */
static bool parse_ipv6(char *host, struct sockaddr_in6 *out)
{
    char *zone = strchr(host, '%');
    if (zone != NULL) {
        *zone++ = '\0';
        uint64_t number;
        if (!leat_parse_u64((struct leat_str){zone, strlen(zone)}, &number))
            number = if_nametoindex(zone);
        if (number == 0 || number > UINT32_MAX)
            return false;
        out->sin6_scope_id = (uint32_t)number;
    }
    out->sin6_family = AF_INET6;
    return inet_pton(AF_INET6, host, &out->sin6_addr) == 1;
}

static bool parse_host(const struct parts *parts, uint16_t port, struct sockaddr_storage *out)
{
    char host[HOST_MAX + 1];
    if (parts->host.len > HOST_MAX || memchr(parts->host.ptr, '\0', parts->host.len) != NULL)
        return false;
    memcpy(host, parts->host.ptr, parts->host.len);
    host[parts->host.len] = '\0';
    if (parts->is_bracketed) {
        struct sockaddr_in6 in6 = {.sin6_port = htons(port)};
        bool is_valid = parse_ipv6(host, &in6);
        memcpy(out, &in6, sizeof(in6));
        return is_valid;
    }
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    bool is_valid = inet_pton(AF_INET, host, &in.sin_addr) == 1;
    memcpy(out, &in, sizeof(in));
    return is_valid;
}

enum leat_status leat_addr_parse(struct leat_str text, uint16_t default_port, struct leat_addr *out,
                                 struct leat_error *err)
{
    static const char form[] = "a numeric address like 127.0.0.1:5672 or [::1]:5672";
    struct parts parts;
    struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
    uint64_t port = default_port;
    if (!cut(text, &parts) || !parse_host(&parts, 0, &ss))
        return leat_error_set_expected(err, form, text);
    if (!parts.has_port && default_port == 0)
        return leat_error_set_expected(
            err, "an address with a port, like 127.0.0.1:5672 or [::1]:5672", text);
    if (parts.has_port && (!leat_parse_u64(parts.port, &port) || port > UINT16_MAX))
        return leat_error_set_expected(err, "a port from 1 to 65535 after the address", text);
    (void)parse_host(&parts, (uint16_t)port, &ss);
    leat_addr_from_sockaddr(&ss, out);
    return LEAT_OK;
}

enum leat_status leat_addr_from_path(struct leat_str path, struct leat_addr *out,
                                     struct leat_error *err)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    if (path.len == 0 || memchr(path.ptr, '\0', path.len) != NULL)
        return leat_error_set_expected(err, "the path of a UNIX socket", path);
    if (path.len > LEAT_ADDR_PATH_MAX)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "the path of a UNIX socket can have no more than %d bytes, this one "
                              "has %zu: choose a shorter one",
                              LEAT_ADDR_PATH_MAX, path.len);
    memcpy(un.sun_path, path.ptr, path.len);
    *out = (struct leat_addr){.len = sizeof(un)};
    memcpy(&out->ss, &un, sizeof(un));
    return LEAT_OK;
}

static void from_unix(const struct sockaddr_storage *ss, struct leat_addr *out)
{
    struct sockaddr_un un;

    memcpy(&un, ss, sizeof(un));
    un.sun_path[LEAT_ADDR_PATH_MAX] = '\0';
    if (un.sun_path[0] == '\0')
        return;
    out->len = sizeof(un);
    memcpy(&out->ss, &un, sizeof(un));
}

bool leat_addr_parse_host(struct leat_str host, struct leat_addr *out)
{
    struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
    struct parts parts = {.host = host};

    parts.is_bracketed = host.len > 0 && memchr(host.ptr, ':', host.len) != NULL;
    if (host.len == 0 || !parse_host(&parts, 0, &ss))
        return false;
    leat_addr_from_sockaddr(&ss, out);
    return true;
}

void leat_addr_from_sockaddr(const struct sockaddr_storage *ss, struct leat_addr *out)
{
    struct sockaddr_in6 in6;
    struct sockaddr_in in = {.sin_family = AF_INET};
    *out = (struct leat_addr){.ss = {.ss_family = ss->ss_family}, .len = sizeof(ss->ss_family)};
    if (ss->ss_family == AF_INET) {
        out->len = sizeof(in);
        memcpy(&out->ss, ss, sizeof(in));
        return;
    }
    if (ss->ss_family == AF_UNIX)
        from_unix(ss, out);
    if (ss->ss_family != AF_INET6)
        return;
    memcpy(&in6, ss, sizeof(in6));
    if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
        out->len = sizeof(in6);
        memcpy(&out->ss, &in6, sizeof(in6));
        return;
    }
    in.sin_port = in6.sin6_port;
    memcpy(&in.sin_addr, &in6.sin6_addr.s6_addr[12], sizeof(in.sin_addr));
    out->len = sizeof(in);
    memcpy(&out->ss, &in, sizeof(in));
}

const char *leat_addr_host_text(const struct leat_addr *addr, char buf[LEAT_ADDR_TEXT_MAX])
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    buf[0] = '\0';
    if (addr->ss.ss_family == AF_INET) {
        memcpy(&in, &addr->ss, sizeof(in));
        (void)inet_ntop(AF_INET, &in.sin_addr, buf, LEAT_ADDR_TEXT_MAX);
    } else if (addr->ss.ss_family == AF_INET6) {
        memcpy(&in6, &addr->ss, sizeof(in6));
        (void)inet_ntop(AF_INET6, &in6.sin6_addr, buf, LEAT_ADDR_TEXT_MAX);
    }
    return buf;
}

/* A path may hold any bytes, and a peer may have chosen it: it can neither end a log line nor forge
 * another. */
static void add_path(struct leat_text *text, const struct sockaddr_un *un)
{
    for (size_t i = 0; i < LEAT_ADDR_PATH_MAX && un->sun_path[i] != '\0'; i++) {
        unsigned char byte = (unsigned char)un->sun_path[i];
        bool is_plain = byte > ' ' && byte < 0x7f && byte != '"' && byte != '\\';
        leat_text_add(text, is_plain ? "%c" : "\\x%02x", byte);
    }
}

const char *leat_addr_text(const struct leat_addr *addr, char buf[LEAT_ADDR_TEXT_MAX])
{
    char host[LEAT_ADDR_TEXT_MAX];
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
    struct leat_text text;

    (void)leat_addr_host_text(addr, host);
    leat_text_init(&text, buf, LEAT_ADDR_TEXT_MAX);
    switch (addr->ss.ss_family) {
    case AF_INET:
        memcpy(&in, &addr->ss, sizeof(in));
        leat_text_add(&text, "%s:%u", host, ntohs(in.sin_port));
        break;
    case AF_INET6:
        memcpy(&in6, &addr->ss, sizeof(in6));
        leat_text_add(&text, "[%s", host);
        if (in6.sin6_scope_id != 0)
            leat_text_add(&text, "%%%u", in6.sin6_scope_id);
        leat_text_add(&text, "]:%u", ntohs(in6.sin6_port));
        break;
    case AF_UNIX:
        memcpy(&un, &addr->ss, sizeof(un));
        leat_text_add(&text, un.sun_path[0] == '\0' ? "unix" : "unix:");
        add_path(&text, &un);
        break;
    default:
        leat_text_add(&text, "unknown");
    }
    return buf;
}

const char *leat_addr_path(const struct leat_addr *addr, char buf[LEAT_ADDR_PATH_MAX + 1])
{
    struct sockaddr_un un = {.sun_path = ""};

    if (addr->ss.ss_family == AF_UNIX)
        memcpy(&un, &addr->ss, sizeof(un));
    memcpy(buf, un.sun_path, LEAT_ADDR_PATH_MAX);
    buf[LEAT_ADDR_PATH_MAX] = '\0';
    return buf;
}

uint16_t leat_addr_port(const struct leat_addr *addr)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    if (addr->ss.ss_family == AF_INET) {
        memcpy(&in, &addr->ss, sizeof(in));
        return ntohs(in.sin_port);
    }
    if (addr->ss.ss_family == AF_INET6) {
        memcpy(&in6, &addr->ss, sizeof(in6));
        return ntohs(in6.sin6_port);
    }
    return 0;
}

void leat_addr_set_port(struct leat_addr *addr, uint16_t port)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    if (addr->ss.ss_family == AF_INET) {
        memcpy(&in, &addr->ss, sizeof(in));
        in.sin_port = htons(port);
        memcpy(&addr->ss, &in, sizeof(in));
    } else if (addr->ss.ss_family == AF_INET6) {
        memcpy(&in6, &addr->ss, sizeof(in6));
        in6.sin6_port = htons(port);
        memcpy(&addr->ss, &in6, sizeof(in6));
    }
}

bool leat_addr_is_equal(const struct leat_addr *a, const struct leat_addr *b)
{
    char a_text[LEAT_ADDR_TEXT_MAX], b_text[LEAT_ADDR_TEXT_MAX];

    if (a->ss.ss_family != b->ss.ss_family)
        return false;
    if (a->ss.ss_family == AF_UNIX)
        return memcmp(&a->ss, &b->ss, sizeof(struct sockaddr_un)) == 0;
    /* Their structs have parts that do not matter. */
    return strcmp(leat_addr_text(a, a_text), leat_addr_text(b, b_text)) == 0;
}

bool leat_addr_is_served_by(const struct leat_addr *addr, const struct leat_addr *listener)
{
    char host[LEAT_ADDR_TEXT_MAX];

    if (leat_addr_is_equal(addr, listener))
        return true;
    (void)leat_addr_host_text(listener, host);
    return (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0) &&
           addr->ss.ss_family == listener->ss.ss_family &&
           leat_addr_port(addr) == leat_addr_port(listener) && leat_addr_is_loopback(addr);
}

bool leat_addr_leads_to(const struct leat_addr *peer, const struct leat_addr *local,
                        const struct leat_addr *listener)
{
    char host[LEAT_ADDR_TEXT_MAX], peer_host[LEAT_ADDR_TEXT_MAX];

    if (leat_addr_is_served_by(peer, listener))
        return true;
    (void)leat_addr_host_text(listener, host);
    if (strcmp(host, "0.0.0.0") != 0 && strcmp(host, "::") != 0)
        return false;
    (void)leat_addr_host_text(peer, peer_host);
    return peer->ss.ss_family == listener->ss.ss_family &&
           leat_addr_port(peer) == leat_addr_port(listener) &&
           strcmp(peer_host, leat_addr_host_text(local, host)) == 0;
}

bool leat_addr_is_loopback(const struct leat_addr *addr)
{
    struct leat_addr plain;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    leat_addr_from_sockaddr(&addr->ss, &plain);
    if (plain.ss.ss_family == AF_INET) {
        memcpy(&in, &plain.ss, sizeof(in));
        return ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    memcpy(&in6, &plain.ss, sizeof(in6));
    return plain.ss.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

/* What to do about SYS, the errno with which listening failed, in brackets; or nothing. */
static const char *advice(int sys)
{
    switch (sys) {
    case EADDRINUSE:
        return " (something listens there already: stop it or choose another port;"
               " `ss -ltnp` shows it)";
    case EADDRNOTAVAIL:
        return " (no interface of this machine has that address; `ip addr` lists them)";
    case EACCES:
        return " (a port below 1024 needs CAP_NET_BIND_SERVICE: grant it or choose a higher"
               " port)";
    case EAFNOSUPPORT:
        return " (this machine has no IPv6: listen on an IPv4 address)";
    default:
        return "";
    }
}

static const char *unix_advice(int sys)
{
    switch (sys) {
    case EADDRINUSE:
        return " (there is something of that name already)";
    case ENOENT:
        return " (its directory does not exist: make it or choose another)";
    case EACCES:
        return " (its directory must be writable for the user that leat runs as)";
    default:
        return "";
    }
}

/* Gives FD the options that it is to listen with. Returns 0 or errno. */
static int set_options(int fd, int family)
{
    const int on = 1;
    /* Before it is bound: what bind makes has this mode from the first moment on. */
    if (family == AF_UNIX)
        return fchmod(fd, S_IRUSR | S_IWUSR) != 0 ? errno : 0;
    /* Else a restart would have to wait for old connections to be forgotten. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0)
        return errno;
    /* Whatever the system's default says: so that 0.0.0.0 and [::] can stand side by side. */
    if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0)
        return errno;
    return 0;
}

/* Makes FD listen on ADDR. Returns 0 or errno. */
static int listen_on(int fd, const struct leat_addr *addr)
{
    int sys = set_options(fd, addr->ss.ss_family);

    if (sys == 0 &&
        (bind(fd, (const struct sockaddr *)&addr->ss, addr->len) != 0 || listen(fd, BACKLOG) != 0))
        sys = errno;
    return sys;
}

enum leat_status leat_addr_listen(const struct leat_addr *addr, int *out_fd, struct leat_error *err)
{
    char text[LEAT_ADDR_TEXT_MAX];
    int fd = socket(addr->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int sys = (fd < 0) ? errno : listen_on(fd, addr);
    if (sys == 0) {
        *out_fd = fd;
        return LEAT_OK;
    }
    if (fd >= 0)
        (void)close(fd);
    return leat_error_set(err, LEAT_EIO, sys, "cannot listen on %s%s", leat_addr_text(addr, text),
                          addr->ss.ss_family == AF_UNIX ? unix_advice(sys) : advice(sys));
}
