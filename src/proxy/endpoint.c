/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/endpoint.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/config_place.h"

const char leat_endpoint_forms[] = "amqp[s]://HOST:PORT or amqp[s]+unix:///PATH";

#define LABEL_MAX 63

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Whether LABEL is one of a host name (RFC 1123, 2.1); the underscore is met in practice. */
static bool is_label(struct leat_str label)
{
    if (label.len == 0 || label.len > LABEL_MAX || label.ptr[0] == '-' ||
        label.ptr[label.len - 1] == '-')
        return false;
    for (size_t i = 0; i < label.len; i++) {
        if (!is_letter_or_digit(label.ptr[i]) && label.ptr[i] != '-' && label.ptr[i] != '_')
            return false;
    }
    return true;
}

/* Whether LABEL, a name's last one, makes it look like an address: 127.0.0.256, 0x7f.1, 0x7f. */
static bool is_numeric(struct leat_str label)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    bool is_hex = label.len > 1 && label.ptr[0] == '0' && (label.ptr[1] | ' ') == 'x';
    size_t digits = 0, skipped = is_hex ? 2 : 0;

    while (skipped + digits < label.len &&
           memchr(hex, label.ptr[skipped + digits], is_hex ? sizeof(hex) - 1 : 10) != NULL)
        digits++;
    return skipped + digits == label.len;
}

bool leat_endpoint_is_host(struct leat_str host)
{
    struct leat_str label = {host.ptr, 0};

    if (host.len == 0 || host.len > LEAT_ENDPOINT_HOST_MAX)
        return false;
    if (host.ptr[host.len - 1] == '.') /* a name that is complete */
        host.len--;
    for (size_t i = 0; i < host.len; i++) {
        if (host.ptr[i] != '.') {
            label.len++;
            continue;
        }
        if (!is_label(label))
            return false;
        label = (struct leat_str){host.ptr + i + 1, 0};
    }
    return is_label(label) && !is_numeric(label);
}

/* "HOST" or "HOST:PORT" where HOST is a name. */
static enum leat_status parse_host(struct leat_str text, struct leat_endpoint *endpoint,
                                   struct leat_error *err)
{
    const char *colon = memchr(text.ptr, ':', text.len);
    struct leat_str host = {text.ptr, colon != NULL ? (size_t)(colon - text.ptr) : text.len};
    uint64_t port = endpoint->port;

    if (!leat_endpoint_is_host(host))
        return leat_place_refuse(
            "a host name, or a numeric address like 127.0.0.1:5672 or [::1]:5672", text, err);
    if (colon != NULL &&
        (!leat_parse_u64((struct leat_str){colon + 1, text.len - host.len - 1}, &port) ||
         port > UINT16_MAX))
        return leat_place_refuse("a port from 1 to 65535 after the host", text, err);
    endpoint->port = (uint16_t)port;
    endpoint->host = leat_mem_dup(host);
    return endpoint->host == NULL ? leat_error_set(err, LEAT_ENOMEM, 0, "out of memory") : LEAT_OK;
}

/* Whether TEXT can only be meant for an address: brackets, or digits and dots up to the port. */
static bool is_meant_numeric(struct leat_str text)
{
    size_t i = 0;

    while (i < text.len && ((text.ptr[i] >= '0' && text.ptr[i] <= '9') || text.ptr[i] == '.'))
        i++;
    return i == text.len || text.ptr[i] == ':' || text.ptr[0] == '[';
}

static enum leat_status parse_rest(struct leat_str text, bool is_unix,
                                   struct leat_endpoint *endpoint, struct leat_error *err)
{
    struct leat_error why;
    enum leat_status status;

    if (is_unix) {
        endpoint->port = 0;
        if (text.len > 0 && text.ptr[0] != '/')
            return leat_place_refuse("an absolute path, as in amqp+unix:///run/amqp.sock", text,
                                     err);
        return leat_addr_from_path(text, &endpoint->addr, err);
    }
    status = leat_addr_parse(text, endpoint->port, &endpoint->addr, &why);
    if (status == LEAT_OK) {
        endpoint->port = leat_addr_port(&endpoint->addr);
        return LEAT_OK;
    }
    if (is_meant_numeric(text))
        return leat_error_set(err, status, 0, "%s", why.text);
    return parse_host(text, endpoint, err);
}

enum leat_status leat_endpoint_parse(struct leat_str text, uint16_t tls_port, uint16_t plain_port,
                                     struct leat_endpoint *out, struct leat_error *err)
{
    static const struct {
        struct leat_str scheme;
        bool tls, is_unix;
    } schemes[] = {
        {LEAT_STR_INIT("amqp://"), false, false},
        {LEAT_STR_INIT("amqps://"), true, false},
        {LEAT_STR_INIT("amqp+unix://"), false, true},
        {LEAT_STR_INIT("amqps+unix://"), true, true},
    };

    /* Not to be repeated: a password may stand there. */
    if (text.len > 0 && memchr(text.ptr, '@', text.len) != NULL)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "no user or password belongs here, each client brings its own; "
                              "expected %s",
                              leat_endpoint_forms);
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        struct leat_str scheme = schemes[i].scheme;
        if (!leat_str_starts(text, scheme))
            continue;
        struct leat_endpoint endpoint = {.tls = schemes[i].tls,
                                         .port = schemes[i].tls ? tls_port : plain_port};
        enum leat_status status =
            parse_rest((struct leat_str){text.ptr + scheme.len, text.len - scheme.len},
                       schemes[i].is_unix, &endpoint, err);
        if (status == LEAT_OK)
            *out = endpoint;
        return status;
    }
    return leat_place_refuse(leat_endpoint_forms, text, err);
}

void leat_endpoint_fini(struct leat_endpoint *endpoint)
{
    leat_mem_free(endpoint->host);
    endpoint->host = NULL;
}

bool leat_endpoint_is_given(const struct leat_endpoint *endpoint)
{
    return endpoint->host != NULL || endpoint->addr.len > 0;
}

bool leat_endpoint_is_unix(const struct leat_endpoint *endpoint)
{
    return endpoint->addr.len > 0 && endpoint->addr.ss.ss_family == AF_UNIX;
}

bool leat_endpoint_is_equal(const struct leat_endpoint *a, const struct leat_endpoint *b)
{
    if (a->tls != b->tls || a->port != b->port || (a->host == NULL) != (b->host == NULL))
        return false;
    return a->host != NULL ? strcmp(a->host, b->host) == 0 : leat_addr_is_equal(&a->addr, &b->addr);
}

const char *leat_endpoint_text(const struct leat_endpoint *endpoint,
                               char buf[LEAT_ENDPOINT_TEXT_MAX])
{
    char addr[LEAT_ADDR_TEXT_MAX];
    struct leat_text text;

    leat_text_init(&text, buf, LEAT_ENDPOINT_TEXT_MAX);
    if (endpoint->host != NULL)
        leat_text_add(&text, "%s:%u", endpoint->host, endpoint->port);
    else
        leat_text_add(&text, "%s", leat_addr_text(&endpoint->addr, addr));
    return buf;
}

const char *leat_endpoint_scheme(const struct leat_endpoint *endpoint)
{
    if (leat_endpoint_is_unix(endpoint))
        return endpoint->tls ? "amqps+unix" : "amqp+unix";
    return endpoint->tls ? "amqps" : "amqp";
}

const char *leat_endpoint_url(const struct leat_endpoint *endpoint, const struct leat_addr *addr,
                              char buf[LEAT_ENDPOINT_URL_MAX])
{
    const char *text, *scheme = leat_endpoint_scheme(endpoint);
    char own[LEAT_ENDPOINT_TEXT_MAX];
    struct leat_text url;

    text = addr != NULL ? leat_addr_text(addr, own) : leat_endpoint_text(endpoint, own);
    if (leat_endpoint_is_unix(endpoint))
        text = leat_addr_path(&endpoint->addr, own); /* as it is read again */
    leat_text_init(&url, buf, LEAT_ENDPOINT_URL_MAX);
    leat_text_add(&url, "%s://%s", scheme, text);
    return buf;
}
