/* SPDX-License-Identifier: Apache-2.0 */
#include "net/proxy_header.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/text.h"
#include "buf/reader.h"
#include "net/proxy_header_impl.h"

/* What version 2 has before its addresses (2.2). */
#define FIXED_V2 16u
/* Bounded by the header's own length. */
#define ANY LEAT_PROXY_HEADER_MAX
#define PLACE(field) offsetof(struct leat_proxy_header, field)

static const struct leat_str begin_v1 = LEAT_PROXY_BEGIN_V1;
static const struct leat_str begin_v2 = LEAT_PROXY_BEGIN_V2;

const struct leat_proxy_text leat_proxy_texts[LEAT_PROXY_TEXTS] = {
    {LEAT_PROXY_ALPN, false, ANY, PLACE(alpn), "ALPN"},
    {LEAT_PROXY_AUTHORITY, false, 255, PLACE(authority), "AUTHORITY"},
    {LEAT_PROXY_UNIQUE_ID, false, 128, PLACE(unique_id), "UNIQUE_ID"},
    {LEAT_PROXY_NETNS, false, ANY, PLACE(netns), "NETNS"},
    {LEAT_PROXY_SSL_VERSION, true, ANY, PLACE(tls.version), "SSL_VERSION"},
    {LEAT_PROXY_SSL_CN, true, ANY, PLACE(tls.name), "SSL_CN"},
    {LEAT_PROXY_SSL_CIPHER, true, ANY, PLACE(tls.cipher), "SSL_CIPHER"},
    {LEAT_PROXY_SSL_SIG_ALG, true, ANY, PLACE(tls.sig_alg), "SSL_SIG_ALG"},
    {LEAT_PROXY_SSL_KEY_ALG, true, ANY, PLACE(tls.key_alg), "SSL_KEY_ALG"},
};

/* Adds the LEN bytes at DATA to a CRC32C that began as UINT32_MAX (RFC 4960, appendix B). */
static uint32_t crc32c_add(uint32_t crc, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? UINT32_C(0x82f63b78) : 0);
    }
    return crc;
}

uint32_t leat_proxy_checksum(const uint8_t *header, size_t len, size_t place)
{
    static const uint8_t zeros[4];
    uint32_t crc = crc32c_add(UINT32_MAX, header, place);
    crc = crc32c_add(crc, zeros, sizeof(zeros));
    return ~crc32c_add(crc, header + place + sizeof(zeros), len - place - sizeof(zeros));
}

static void set_inet(int family, const void *ip, uint16_t port, struct leat_addr *out)
{
    struct sockaddr_storage ss = {0};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    if (family == AF_INET) {
        memcpy(&in.sin_addr, ip, sizeof(in.sin_addr));
        memcpy(&ss, &in, sizeof(in));
    } else {
        memcpy(&in6.sin6_addr, ip, sizeof(in6.sin6_addr));
        memcpy(&ss, &in6, sizeof(in6));
    }
    leat_addr_from_sockaddr(&ss, out);
}

/* Refuses a WHAT that is VALUE. */
static enum leat_status bad_value(const char *what, struct leat_str value, struct leat_error *err)
{
    char buf[128];
    struct leat_text quoted;

    leat_text_init(&quoted, buf, sizeof(buf));
    leat_text_add_quoted(&quoted, value);
    return leat_error_set(err, LEAT_EPROTOCOL, 0, "the PROXY header has %s %s", what, buf);
}

/* Version 1. */

/* Cuts the first word off LINE, and the space behind it. */
static struct leat_str next_word(struct leat_str *line)
{
    const char *space = memchr(line->ptr, ' ', line->len);
    struct leat_str word = {line->ptr, space == NULL ? line->len : (size_t)(space - line->ptr)};
    size_t used = space == NULL ? word.len : word.len + 1;

    *line = (struct leat_str){line->ptr + used, line->len - used};
    return word;
}

static bool parse_ip(struct leat_str text, int family, uint8_t out[sizeof(struct in6_addr)])
{
    char ip[INET6_ADDRSTRLEN];

    if (text.len >= sizeof(ip) || memchr(text.ptr, '\0', text.len) != NULL)
        return false;
    memcpy(ip, text.ptr, text.len);
    ip[text.len] = '\0';
    return inet_pton(family, ip, out) == 1;
}

static bool parse_port(struct leat_str text, uint16_t *out)
{
    uint64_t port;

    if (!leat_parse_u64(text, &port) || port > UINT16_MAX || (text.len > 1 && text.ptr[0] == '0'))
        return false;
    *out = (uint16_t)port;
    return true;
}

/* Parses LINE without "PROXY " and CRLF. */
static enum leat_status parse_line(struct leat_str line, struct leat_proxy_header *out,
                                   struct leat_error *err)
{
    uint8_t source[sizeof(struct in6_addr)], destination[sizeof(struct in6_addr)];
    uint16_t source_port, destination_port;
    struct leat_str protocol = next_word(&line);

    if (leat_str_equal(protocol, leat_str_of("UNKNOWN"))) {
        out->is_local = true; /* whatever the rest says (2.1) */
        return LEAT_OK;
    }
    bool is_tcp4 = leat_str_equal(protocol, leat_str_of("TCP4"));
    if (!is_tcp4 && !leat_str_equal(protocol, leat_str_of("TCP6")))
        return bad_value("the protocol", protocol, err);
    int family = is_tcp4 ? AF_INET : AF_INET6;
    struct leat_str word = next_word(&line);
    if (!parse_ip(word, family, source))
        return bad_value(is_tcp4 ? "no IPv4 source but" : "no IPv6 source but", word, err);
    word = next_word(&line);
    if (!parse_ip(word, family, destination))
        return bad_value(is_tcp4 ? "no IPv4 destination but" : "no IPv6 destination but", word,
                         err);
    word = next_word(&line);
    if (!parse_port(word, &source_port))
        return bad_value("the source port", word, err);
    if (!parse_port(line, &destination_port))
        return bad_value("the destination port", line, err);
    set_inet(family, source, source_port, &out->source);
    set_inet(family, destination, destination_port, &out->destination);
    return LEAT_OK;
}

static enum leat_status parse_v1(struct leat_str data, struct leat_proxy_header *out,
                                 size_t *out_used, struct leat_error *err)
{
    size_t end = 0;

    while (end < data.len && end + 1 < LEAT_PROXY_LINE_MAX && data.ptr[end] != '\r' &&
           data.ptr[end] != '\n')
        end++;
    if (end + 1 == LEAT_PROXY_LINE_MAX)
        return leat_error_set(err, LEAT_EPROTOCOL, 0,
                              "the PROXY header's line does not end within %u bytes",
                              LEAT_PROXY_LINE_MAX);
    if (end == data.len || (data.ptr[end] == '\r' && end + 1 == data.len))
        return LEAT_EAGAIN;
    if (data.ptr[end] != '\r' || data.ptr[end + 1] != '\n')
        return leat_error_set(err, LEAT_EPROTOCOL, 0,
                              "the PROXY header's line does not end in CR and LF");
    struct leat_str line = {data.ptr + begin_v1.len, end - begin_v1.len};
    out->version = 1;
    *out_used = end + 2;
    return parse_line(line, out, err);
}

/* Version 2. */

/* A header of version 2 that is there as a whole. */
struct whole {
    const uint8_t *data;
    size_t len;
    struct leat_proxy_header *out;
    uint64_t seen; /* a bit for each type of TLV that may come once */
    struct leat_error *err;
};

static const struct leat_proxy_text *find_text(uint8_t type, bool is_ssl)
{
    for (size_t i = 0; i < LEAT_PROXY_TEXTS; i++) {
        if (leat_proxy_texts[i].type == type && leat_proxy_texts[i].is_ssl == is_ssl)
            return &leat_proxy_texts[i];
    }
    return NULL;
}

static enum leat_status bad_tlv(struct whole *whole, const char *name, const char *what)
{
    return leat_error_set(whole->err, LEAT_EPROTOCOL, 0, "the PROXY header's %s %s", name, what);
}

/* What comes twice could be read in two ways. */
static bool is_first(struct whole *whole, enum leat_proxy_tlv type)
{
    uint64_t bit = UINT64_C(1) << type;
    bool is_first = (whole->seen & bit) == 0;

    whole->seen |= bit;
    return is_first;
}

static enum leat_status check_crc32c(struct whole *whole, struct leat_str value)
{
    struct leat_reader reader;

    if (value.len != 4)
        return bad_tlv(whole, "CRC32C", "has not 4 bytes");
    leat_reader_init(&reader, value.ptr, value.len);
    size_t place = (size_t)((const uint8_t *)value.ptr - whole->data);
    if (leat_reader_u32(&reader) != leat_proxy_checksum(whole->data, whole->len, place))
        return bad_tlv(whole, "CRC32C", "does not match: it was damaged on its way");
    whole->out->has_checksum = true;
    return LEAT_OK;
}

static enum leat_status set_text(struct whole *whole, const struct leat_proxy_text *tlv,
                                 struct leat_str value)
{
    if (!is_first(whole, tlv->type))
        return bad_tlv(whole, tlv->name, "comes twice");
    if (value.len > tlv->max)
        return bad_tlv(whole, tlv->name, "is too long");
    memcpy((char *)whole->out + tlv->place, &value, sizeof(value));
    return LEAT_OK;
}

/* Takes the next TLV. False if it goes beyond the end. */
static bool next_tlv(struct leat_reader *reader, uint8_t *out_type, struct leat_str *out_value)
{
    *out_type = leat_reader_u8(reader);
    *out_value = leat_reader_bytes(reader, leat_reader_u16(reader));
    return !reader->failed;
}

static enum leat_status parse_ssl(struct whole *whole, struct leat_str value)
{
    struct leat_proxy_tls *tls = &whole->out->tls;
    struct leat_reader reader;
    enum leat_status status = LEAT_OK;
    uint8_t type;

    if (!is_first(whole, LEAT_PROXY_SSL))
        return bad_tlv(whole, "SSL", "comes twice");
    leat_reader_init(&reader, value.ptr, value.len);
    uint8_t client = leat_reader_u8(&reader);
    uint32_t verify = leat_reader_u32(&reader);
    if (reader.failed)
        return bad_tlv(whole, "SSL", "is too short");
    tls->is_used = (client & LEAT_PROXY_CLIENT_SSL) != 0;
    tls->has_cert = (client & (LEAT_PROXY_CLIENT_CERT_CONN | LEAT_PROXY_CLIENT_CERT_SESS)) != 0;
    /* Proxies also say 0 when there was nothing to verify. */
    tls->is_verified = tls->has_cert && verify == 0;
    while (status == LEAT_OK && leat_reader_left(&reader) > 0) {
        if (!next_tlv(&reader, &type, &value))
            return bad_tlv(whole, "SSL", "holds a TLV that goes beyond its end");
        const struct leat_proxy_text *tlv = find_text(type, true);
        if (tlv != NULL)
            status = set_text(whole, tlv, value);
    }
    return status;
}

static enum leat_status parse_tlvs(struct whole *whole, struct leat_reader *reader)
{
    enum leat_status status = LEAT_OK;
    struct leat_str value;
    uint8_t type;

    while (status == LEAT_OK && leat_reader_left(reader) > 0) {
        if (!next_tlv(reader, &type, &value))
            return leat_error_set(whole->err, LEAT_EPROTOCOL, 0,
                                  "the PROXY header has a TLV that goes beyond its end");
        const struct leat_proxy_text *tlv = find_text(type, false);
        if (type == LEAT_PROXY_CRC32C)
            status = check_crc32c(whole, value);
        else if (type == LEAT_PROXY_SSL)
            status = parse_ssl(whole, value);
        else if (tlv != NULL)
            status = set_text(whole, tlv, value);
    }
    return status;
}

static void set_unix(struct leat_str path, struct leat_addr *out)
{
    struct sockaddr_storage ss = {.ss_family = AF_UNIX};

    _Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == LEAT_PROXY_UNIX_PATH,
                   "as the protocol has it");
    memcpy((char *)&ss + offsetof(struct sockaddr_un, sun_path), path.ptr, path.len);
    leat_addr_from_sockaddr(&ss, out); /* which ends a path that has no NUL */
    out->len = sizeof(struct sockaddr_un);
}

/* Takes both addresses, and the ports that follow them. */
static enum leat_status parse_addresses(struct whole *whole, unsigned family,
                                        struct leat_reader *reader)
{
    size_t len = family == LEAT_PROXY_INET    ? sizeof(struct in_addr)
                 : family == LEAT_PROXY_INET6 ? sizeof(struct in6_addr)
                                              : LEAT_PROXY_UNIX_PATH;
    struct leat_str source = leat_reader_bytes(reader, len);
    struct leat_str destination = leat_reader_bytes(reader, len);
    uint16_t source_port = family == LEAT_PROXY_UNIX ? 0 : leat_reader_u16(reader);
    uint16_t destination_port = family == LEAT_PROXY_UNIX ? 0 : leat_reader_u16(reader);

    if (reader->failed)
        return leat_error_set(whole->err, LEAT_EPROTOCOL, 0,
                              "the PROXY header is too short for its addresses");
    if (family == LEAT_PROXY_UNIX) {
        set_unix(source, &whole->out->source);
        set_unix(destination, &whole->out->destination);
        return LEAT_OK;
    }
    int inet = family == LEAT_PROXY_INET ? AF_INET : AF_INET6;
    set_inet(inet, source.ptr, source_port, &whole->out->source);
    set_inet(inet, destination.ptr, destination_port, &whole->out->destination);
    return LEAT_OK;
}

/* Judges the bytes that say what comes, as far as they are there. */
static enum leat_status check_fixed(const uint8_t *data, size_t len, struct leat_error *err)
{
    if (len > 12 && data[12] >> 4 != 2)
        return leat_error_set(err, LEAT_EPROTOCOL, 0,
                              "the PROXY header has version %d, which is not known", data[12] >> 4);
    if (len > 12 && data[12] != LEAT_PROXY_LOCAL && data[12] != LEAT_PROXY_PROXY)
        return leat_error_set(err, LEAT_EPROTOCOL, 0,
                              "the PROXY header has command %d, which is not known", data[12] & 15);
    if (len > 13 && data[12] == LEAT_PROXY_PROXY && data[13] >> 4 > LEAT_PROXY_UNIX)
        return leat_error_set(err, LEAT_EPROTOCOL, 0,
                              "the PROXY header has address family %d, which is not known",
                              data[13] >> 4);
    if (len > 13 && data[12] == LEAT_PROXY_PROXY && (data[13] & 15) > LEAT_PROXY_STREAM)
        return leat_error_set(
            err, LEAT_EPROTOCOL, 0, "the PROXY header has transport %d, %s", data[13] & 15,
            (data[13] & 15) == LEAT_PROXY_DGRAM ? "datagrams: only streams are taken"
                                                : "which is not known");
    return len < FIXED_V2 ? LEAT_EAGAIN : LEAT_OK;
}

static enum leat_status parse_v2(const uint8_t *data, size_t len, struct leat_proxy_header *out,
                                 size_t *out_used, struct leat_error *err)
{
    struct leat_reader reader;
    enum leat_status status = check_fixed(data, len, err);
    if (status != LEAT_OK)
        return status;

    leat_reader_init(&reader, data + FIXED_V2 - 2, len - (FIXED_V2 - 2));
    struct whole whole = {.data = data, .len = FIXED_V2, .out = out, .err = err};
    whole.len += leat_reader_u16(&reader);
    if (whole.len > LEAT_PROXY_HEADER_MAX)
        return leat_error_set(err, LEAT_EPROTOCOL, 0,
                              "the PROXY header has %zu bytes, more than the %d that are taken",
                              whole.len, LEAT_PROXY_HEADER_MAX);
    if (len < whole.len)
        return LEAT_EAGAIN;
    out->version = 2;
    *out_used = whole.len;
    unsigned family = data[13] >> 4;
    out->is_local = data[12] == LEAT_PROXY_LOCAL || family == LEAT_PROXY_UNSPEC ||
                    (data[13] & 15) == LEAT_PROXY_ANY;
    if (out->is_local)
        return LEAT_OK; /* what it says besides is discarded (2.2) */
    leat_reader_init(&reader, data + FIXED_V2, whole.len - FIXED_V2);
    status = parse_addresses(&whole, family, &reader);
    return status == LEAT_OK ? parse_tlvs(&whole, &reader) : status;
}

/* Either. */

/* How many bytes DATA and BEGIN have in common at their beginning. */
static size_t common(struct leat_str data, struct leat_str begin)
{
    size_t len = 0;

    while (len < data.len && len < begin.len && data.ptr[len] == begin.ptr[len])
        len++;
    return len;
}

/* Refuses what begins with DATA, of which the last byte is the first wrong one. */
static enum leat_status not_a_header(struct leat_str data, struct leat_error *err)
{
    char buf[64];
    struct leat_text quoted;
    const char *what = data.ptr[0] == 0x16  ? " as TLS does"
                       : data.ptr[0] == 'A' ? " as AMQP does"
                                            : "";

    leat_text_init(&quoted, buf, sizeof(buf));
    leat_text_add_quoted(&quoted, data);
    return leat_error_set(err, LEAT_EPROTOCOL, 0,
                          "the peer begins with %s%s, but a PROXY header must come first: let the"
                          " proxy before it send one",
                          buf, what);
}

enum leat_status leat_proxy_header_parse(const void *data, size_t len,
                                         struct leat_proxy_header *out, size_t *out_used,
                                         struct leat_error *err)
{
    struct leat_str all = {data, len};
    struct leat_proxy_header header = {0};
    size_t v1 = common(all, begin_v1), v2 = common(all, begin_v2), used = 0;
    enum leat_status status;

    if (v1 == begin_v1.len)
        status = parse_v1(all, &header, &used, err);
    else if (v2 == begin_v2.len)
        status = parse_v2(data, len, &header, &used, err);
    else if (v1 == len || v2 == len)
        status = LEAT_EAGAIN;
    else
        status = not_a_header((struct leat_str){data, (v1 > v2 ? v1 : v2) + 1}, err);
    if (status != LEAT_OK)
        return status;
    *out = header;
    *out_used = used;
    return LEAT_OK;
}
