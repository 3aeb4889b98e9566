/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "base/str.h"
#include "base/text.h"
#include "buf/writer.h"
#include "net/proxy_header_impl.h"

static const struct leat_str begin_v1 = LEAT_PROXY_BEGIN_V1;
static const struct leat_str begin_v2 = LEAT_PROXY_BEGIN_V2;

static bool is_inet(const struct leat_addr *addr)
{
    return addr->ss.ss_family == AF_INET || addr->ss.ss_family == AF_INET6;
}

/* The family that both ends of HEADER have a form in. */
static enum leat_proxy_family common_family(const struct leat_proxy_header *header)
{
    const struct leat_addr *source = &header->source, *destination = &header->destination;

    if (header->is_local)
        return LEAT_PROXY_UNSPEC;
    if (source->ss.ss_family == AF_INET && destination->ss.ss_family == AF_INET)
        return LEAT_PROXY_INET;
    if (is_inet(source) && is_inet(destination))
        return LEAT_PROXY_INET6;
    if (source->ss.ss_family == AF_UNIX && destination->ss.ss_family == AF_UNIX)
        return LEAT_PROXY_UNIX;
    return LEAT_PROXY_UNSPEC;
}

/* What ADDR is in FAMILY, in BUF. */
static struct leat_str address_bytes(const struct leat_addr *addr, enum leat_proxy_family family,
                                     uint8_t buf[LEAT_PROXY_UNIX_PATH])
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;

    memset(buf, 0, LEAT_PROXY_UNIX_PATH);
    switch (addr->ss.ss_family) {
    case AF_INET:
        memcpy(&in, &addr->ss, sizeof(in));
        if (family == LEAT_PROXY_INET) {
            memcpy(buf, &in.sin_addr, sizeof(in.sin_addr));
        } else {
            memset(buf + 10, 0xff, 2);
            memcpy(buf + 12, &in.sin_addr, sizeof(in.sin_addr));
        }
        break;
    case AF_INET6:
        memcpy(&in6, &addr->ss, sizeof(in6));
        memcpy(buf, &in6.sin6_addr, sizeof(in6.sin6_addr));
        break;
    default:
        memcpy(&un, &addr->ss, sizeof(un));
        memcpy(buf, un.sun_path, sizeof(un.sun_path));
    }
    size_t len = family == LEAT_PROXY_INET    ? sizeof(in.sin_addr)
                 : family == LEAT_PROXY_INET6 ? sizeof(in6.sin6_addr)
                                              : LEAT_PROXY_UNIX_PATH;
    return (struct leat_str){(const char *)buf, len};
}

static void write_v1(struct leat_writer *writer, const struct leat_proxy_header *header)
{
    enum leat_proxy_family family = common_family(header);
    int inet = family == LEAT_PROXY_INET ? AF_INET : AF_INET6;
    uint8_t buf[LEAT_PROXY_UNIX_PATH];
    char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN];
    char line[LEAT_PROXY_LINE_MAX + 1];
    struct leat_text text;

    leat_text_init(&text, line, sizeof(line));
    if (family == LEAT_PROXY_INET || family == LEAT_PROXY_INET6) {
        (void)inet_ntop(inet, address_bytes(&header->source, family, buf).ptr, source,
                        sizeof(source));
        (void)inet_ntop(inet, address_bytes(&header->destination, family, buf).ptr, destination,
                        sizeof(destination));
        leat_text_add(&text, "%s %s %s %u %u\r\n", inet == AF_INET ? "TCP4" : "TCP6", source,
                      destination, leat_addr_port(&header->source),
                      leat_addr_port(&header->destination));
    } else {
        leat_text_add(&text, "UNKNOWN\r\n");
    }
    leat_writer_bytes(writer, begin_v1);
    leat_writer_bytes(writer, leat_str_of(line));
}

/* Writes the texts of HEADER that are not empty: those inside LEAT_PROXY_SSL, or the others. */
static void write_texts(struct leat_writer *writer, const struct leat_proxy_header *header,
                        bool is_ssl)
{
    struct leat_str value;

    for (size_t i = 0; i < LEAT_PROXY_TEXTS; i++) {
        const struct leat_proxy_text *text = &leat_proxy_texts[i];
        memcpy(&value, (const char *)header + text->place, sizeof(value));
        if (text->is_ssl != is_ssl || value.len == 0)
            continue;
        if (value.len > text->max)
            writer->failed = true;
        leat_writer_u8(writer, (uint8_t)text->type);
        leat_writer_u16(writer, (uint16_t)value.len);
        leat_writer_bytes(writer, value);
    }
}

static void write_ssl(struct leat_writer *writer, const struct leat_proxy_header *header)
{
    uint8_t client = LEAT_PROXY_CLIENT_SSL;

    if (header->tls.has_cert)
        client |= LEAT_PROXY_CLIENT_CERT_CONN | LEAT_PROXY_CLIENT_CERT_SESS;
    leat_writer_u8(writer, LEAT_PROXY_SSL);
    size_t len = leat_writer_begin16(writer);
    leat_writer_u8(writer, client);
    leat_writer_u32(writer, header->tls.is_verified ? 0 : 1);
    write_texts(writer, header, true);
    leat_writer_end16(writer, len);
}

static void write_addresses(struct leat_writer *writer, const struct leat_proxy_header *header,
                            enum leat_proxy_family family)
{
    uint8_t buf[LEAT_PROXY_UNIX_PATH];

    leat_writer_bytes(writer, address_bytes(&header->source, family, buf));
    leat_writer_bytes(writer, address_bytes(&header->destination, family, buf));
    if (family == LEAT_PROXY_UNIX)
        return;
    leat_writer_u16(writer, leat_addr_port(&header->source));
    leat_writer_u16(writer, leat_addr_port(&header->destination));
}

static void write_v2(struct leat_writer *writer, const struct leat_proxy_header *header)
{
    enum leat_proxy_family family = common_family(header);
    size_t start = writer->len, crc = 0;

    leat_writer_bytes(writer, begin_v2);
    leat_writer_u8(writer, header->is_local ? LEAT_PROXY_LOCAL : LEAT_PROXY_PROXY);
    leat_writer_u8(writer, family == LEAT_PROXY_UNSPEC
                               ? LEAT_PROXY_UNSPEC
                               : (uint8_t)((unsigned)family << 4 | LEAT_PROXY_STREAM));
    size_t len = leat_writer_begin16(writer);
    if (family != LEAT_PROXY_UNSPEC) {
        write_addresses(writer, header, family);
        write_texts(writer, header, false);
        if (header->tls.is_used)
            write_ssl(writer, header);
        if (header->has_checksum) {
            leat_writer_u8(writer, LEAT_PROXY_CRC32C);
            leat_writer_u16(writer, 4);
            crc = writer->len;
            leat_writer_u32(writer, 0);
        }
    }
    leat_writer_end16(writer, len);
    if (crc == 0 || writer->failed)
        return;
    struct leat_writer place;
    leat_writer_init(&place, writer->buf + crc, 4);
    leat_writer_u32(&place,
                    leat_proxy_checksum(writer->buf + start, writer->len - start, crc - start));
}

void leat_proxy_header_write(struct leat_writer *writer, const struct leat_proxy_header *header)
{
    size_t start = writer->len;

    if (header->version == 1)
        write_v1(writer, header);
    else
        write_v2(writer, header);
    if (writer->len - start > LEAT_PROXY_HEADER_MAX)
        writer->failed = true;
}
