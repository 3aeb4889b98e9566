/* What is said of DNS, of UNIX sockets and of proxies. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "proxy/config_check.h"

#define DNS_PORT 53
#define UNIX_WORD "unix"
#define LISTENER_KEY(member)                                                                       \
    leat_key_at(&leat_listener_table, offsetof(struct leat_listener_config, member))

enum leat_status leat_config_check_dns(struct leat_config *config, struct leat_error *err)
{
    const size_t offset = offsetof(struct leat_config, dns_server_names);
    const struct leat_names *names = &config->dns_server_names;
    struct leat_error why;

    if (names->count > LEAT_DNS_SERVERS_MAX)
        return leat_config_check_wrong_value(config, offset, err,
                                             "expected at most %d servers, got %zu",
                                             LEAT_DNS_SERVERS_MAX, names->count);
    for (size_t i = 0; i < names->count; i++) {
        struct leat_addr *server = &config->dns_servers[i];
        if (leat_addr_parse(leat_str_of(names->at[i]), DNS_PORT, server, &why) != LEAT_OK)
            return leat_config_check_wrong_value(config, offset, err, "%s", why.text);
        if (leat_addr_port(server) == 0)
            return leat_config_check_wrong_value(config, offset, err,
                                                 "a server has a port, got \"%s\"", names->at[i]);
    }
    config->dns_server_count = names->count;
    return LEAT_OK;
}

static bool is_mode(const char *text)
{
    size_t len = strlen(text);

    return (len == 3 || (len == 4 && text[0] == '0')) && strspn(text, "01234567") == len;
}

enum leat_status leat_config_check_socket(const struct leat_config_check *check,
                                          struct leat_listener_config *listener)
{
    const struct leat_key *key = LISTENER_KEY(proxy_names);
    const struct leat_names *names = &listener->proxy_names;
    bool is_unix = leat_endpoint_is_unix(&listener->endpoint);
    struct leat_error why;

    if (listener->mode != NULL && !is_unix)
        return leat_config_check_wrong(check, LISTENER_KEY(mode), "only a UNIX socket has one");
    if (listener->mode != NULL && !is_mode(listener->mode))
        return leat_config_check_wrong(check, LISTENER_KEY(mode),
                                       "expected three octal digits, such as 0660 or 0666");
    if (names->count > LEAT_CONFIG_NETWORKS_MAX)
        return leat_config_check_wrong(check, key, "expected at most %d networks, got %zu",
                                       LEAT_CONFIG_NETWORKS_MAX, names->count);
    for (size_t i = 0; i < names->count; i++) {
        bool is_word = strcmp(names->at[i], UNIX_WORD) == 0;
        if (is_word != is_unix)
            return leat_config_check_wrong(check, key,
                                           is_unix ? "over a UNIX socket it can only be [unix]"
                                                   : "unix is only for a UNIX socket");
        listener->has_unix_proxies = listener->has_unix_proxies || is_word;
        if (!is_word &&
            leat_cidr_parse(leat_str_of(names->at[i]), &listener->proxies[listener->proxy_count++],
                            &why) != LEAT_OK)
            return leat_config_check_wrong(check, key, "%s", why.text);
    }
    return LEAT_OK;
}

bool leat_config_expects_proxy(const struct leat_listener_config *listener)
{
    return listener->proxy_names.count > 0;
}

bool leat_config_is_proxy(const struct leat_listener_config *listener, const struct leat_addr *peer)
{
    bool is_proxy = listener->has_unix_proxies && peer->ss.ss_family == AF_UNIX;

    for (size_t i = 0; !is_proxy && i < listener->proxy_count; i++)
        is_proxy = leat_cidr_has(&listener->proxies[i], peer);
    return is_proxy;
}
