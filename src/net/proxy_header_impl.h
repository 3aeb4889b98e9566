/*
 * proxy_header_impl.h - the PROXY protocol's numbers; for proxy_header*.c only
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_PROXY_HEADER_IMPL_H
#define LEAT_NET_PROXY_HEADER_IMPL_H

#include <stdint.h>

#include "net/proxy_header.h"

/* The bytes that the versions begin with; for initializers. */
#define LEAT_PROXY_BEGIN_V1 LEAT_STR_INIT("PROXY ")
#define LEAT_PROXY_BEGIN_V2 LEAT_STR_INIT("\r\n\r\n\0\r\nQUIT\n")

/* The longest line of version 1, its CRLF included (2.1). */
#define LEAT_PROXY_LINE_MAX 107u
/* The bytes of a UNIX socket's path in version 2. */
#define LEAT_PROXY_UNIX_PATH 108u

/* The high half of version 2's 13th byte is its version, the low half the command. */
enum leat_proxy_command {
    LEAT_PROXY_LOCAL = 0x20,
    LEAT_PROXY_PROXY = 0x21,
};

/* The high half of the 14th is the family, the low half the transport. */
enum leat_proxy_family {
    LEAT_PROXY_UNSPEC = 0,
    LEAT_PROXY_INET = 1,
    LEAT_PROXY_INET6 = 2,
    LEAT_PROXY_UNIX = 3,
};
enum leat_proxy_transport {
    LEAT_PROXY_ANY = 0,
    LEAT_PROXY_STREAM = 1,
    LEAT_PROXY_DGRAM = 2,
};

enum leat_proxy_tlv {
    LEAT_PROXY_ALPN = 0x01,
    LEAT_PROXY_AUTHORITY = 0x02,
    LEAT_PROXY_CRC32C = 0x03,
    LEAT_PROXY_UNIQUE_ID = 0x05,
    LEAT_PROXY_SSL = 0x20,
    LEAT_PROXY_SSL_VERSION = 0x21,
    LEAT_PROXY_SSL_CN = 0x22,
    LEAT_PROXY_SSL_CIPHER = 0x23,
    LEAT_PROXY_SSL_SIG_ALG = 0x24,
    LEAT_PROXY_SSL_KEY_ALG = 0x25,
    LEAT_PROXY_NETNS = 0x30,
};

/* The bits that LEAT_PROXY_SSL begins with. */
enum leat_proxy_client {
    LEAT_PROXY_CLIENT_SSL = 1,
    LEAT_PROXY_CLIENT_CERT_CONN = 2,
    LEAT_PROXY_CLIENT_CERT_SESS = 4,
};

/* A TLV that is a text of struct leat_proxy_header. */
struct leat_proxy_text {
    enum leat_proxy_tlv type;
    bool is_ssl; /* stands inside LEAT_PROXY_SSL */
    size_t max;  /* bytes */
    size_t place;
    const char *name;
};

#define LEAT_PROXY_TEXTS 9
extern const struct leat_proxy_text leat_proxy_texts[LEAT_PROXY_TEXTS];

/* The CRC32C of the LEN bytes of HEADER, of which the four at PLACE, where it stands itself, count
 * as zeros (2.2.3). */
uint32_t leat_proxy_checksum(const uint8_t *header, size_t len, size_t place);

#endif
