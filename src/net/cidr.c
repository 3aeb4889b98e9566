/* SPDX-License-Identifier: Apache-2.0 */
#include "net/cidr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"

/* The bits of an IPv6 address before the IPv4 address that it maps. */
#define MAPPED 96u

static unsigned address_bits(int family)
{
    return family == AF_INET ? 32 : 128;
}

static bool parse_ip(struct leat_str text, struct leat_cidr *out)
{
    char ip[INET6_ADDRSTRLEN];

    if (text.len >= sizeof(ip) || memchr(text.ptr, '\0', text.len) != NULL)
        return false;
    memcpy(ip, text.ptr, text.len);
    ip[text.len] = '\0';
    out->family = memchr(ip, ':', text.len) == NULL ? AF_INET : AF_INET6;
    out->prefix = address_bits(out->family);
    return inet_pton(out->family, ip, out->ip) == 1;
}

static bool is_mapped(const uint8_t ip[16])
{
    struct in6_addr in6;

    memcpy(&in6, ip, sizeof(in6));
    return IN6_IS_ADDR_V4MAPPED(&in6);
}

/* Clears the bits of IP behind the first PREFIX. */
static void mask(uint8_t ip[16], unsigned prefix)
{
    for (unsigned bit = prefix; bit < 128; bit++)
        ip[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
}

/* Refuses TEXT, whose address has bits behind its prefix, and names the network meant. */
static enum leat_status refuse_bits(struct leat_str text, const struct leat_cidr *meant,
                                    struct leat_error *err)
{
    char ip[INET6_ADDRSTRLEN], expected[sizeof(ip) + 120];
    struct leat_text buf;

    leat_text_init(&buf, expected, sizeof(expected));
    leat_text_add(&buf,
                  "no address bits behind the prefix: %s/%u for the network, or the address alone",
                  inet_ntop(meant->family, meant->ip, ip, sizeof(ip)), meant->prefix);
    return leat_error_set_expected(err, expected, text);
}

enum leat_status leat_cidr_parse(struct leat_str text, struct leat_cidr *out,
                                 struct leat_error *err)
{
    const char *slash = text.len == 0 ? NULL : memchr(text.ptr, '/', text.len);
    struct leat_str ip = text;
    struct leat_cidr cidr = {0};

    if (slash != NULL)
        ip.len = (size_t)(slash - text.ptr);
    if (text.len == 0 || !parse_ip(ip, &cidr))
        return leat_error_set_expected(err, "a network like 10.0.0.0/8 or fd00::/8, or an address",
                                       text);
    if (slash != NULL) {
        struct leat_str digits = {slash + 1, text.len - ip.len - 1};
        uint64_t prefix;
        if (!leat_parse_u64(digits, &prefix) || prefix > cidr.prefix)
            return leat_error_set_expected(err,
                                           cidr.family == AF_INET
                                               ? "a prefix from 0 to 32 behind the slash"
                                               : "a prefix from 0 to 128 behind the slash",
                                           text);
        cidr.prefix = (unsigned)prefix;
    }
    struct leat_cidr network = cidr;
    mask(network.ip, network.prefix);
    if (memcmp(network.ip, cidr.ip, sizeof(cidr.ip)) != 0)
        return refuse_bits(text, &network, err);
    if (cidr.family == AF_INET6 && cidr.prefix >= MAPPED && is_mapped(cidr.ip)) {
        cidr.family = AF_INET;
        cidr.prefix -= MAPPED;
        memmove(cidr.ip, cidr.ip + MAPPED / 8, 4);
        mask(cidr.ip, 32);
    }
    *out = cidr;
    return LEAT_OK;
}

bool leat_cidr_has(const struct leat_cidr *cidr, const struct leat_addr *addr)
{
    struct leat_addr plain;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    uint8_t ip[16] = {0};

    leat_addr_from_sockaddr(&addr->ss, &plain);
    if (plain.ss.ss_family != cidr->family)
        return false;
    if (cidr->family == AF_INET) {
        memcpy(&in, &plain.ss, sizeof(in));
        memcpy(ip, &in.sin_addr, sizeof(in.sin_addr));
    } else {
        memcpy(&in6, &plain.ss, sizeof(in6));
        memcpy(ip, &in6.sin6_addr, sizeof(in6.sin6_addr));
    }
    mask(ip, cidr->prefix);
    return memcmp(ip, cidr->ip, sizeof(ip)) == 0;
}
