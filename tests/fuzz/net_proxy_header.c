/*
 * Fuzz target of net/proxy_header.h: a header's first bytes are judged as the whole is, what is
 * read lies in the header, and written again it says the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "buf/writer.h"
#include "fuzz.h"
#include "net/proxy_header.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* As leat_proxy_header_parse(), which says why it refuses, and of what it has not read nothing. */
static enum leat_status parse(const void *data, size_t len, struct leat_proxy_header *out,
                              size_t *out_used)
{
    struct leat_error err = {0};
    enum leat_status status = leat_proxy_header_parse(data, len, out, out_used, &err);

    check(status == LEAT_OK || status == LEAT_EAGAIN || status == LEAT_EPROTOCOL);
    check(err.status == (status == LEAT_EPROTOCOL ? LEAT_EPROTOCOL : LEAT_OK));
    check((err.text[0] != '\0') == (status == LEAT_EPROTOCOL));
    return status;
}

/* The first N bytes of what STATUS was said of. */
static void check_beginning(const uint8_t *data, size_t n, enum leat_status status, size_t used)
{
    struct leat_proxy_header header;
    size_t used_again = 0;
    enum leat_status before = parse(data, n, &header, &used_again);

    if (status == LEAT_OK && n >= used)
        check(before == LEAT_OK && used_again == used);
    else
        check(before == LEAT_EAGAIN || (status == LEAT_EPROTOCOL && before == status));
}

static void check_text(struct leat_str text, struct leat_str again, const uint8_t *data,
                       size_t used)
{
    const uint8_t *ptr = (const uint8_t *)text.ptr;

    check(text.len == 0 || (ptr >= data && text.len <= (size_t)(data + used - ptr)));
    check(leat_str_equal(text, again));
}

/* HEADER, read from DATA, is the same when it is written and read again. */
static void check_again(struct leat_proxy_header *header, const uint8_t *data, size_t used)
{
    static uint8_t buf[LEAT_PROXY_HEADER_MAX];
    struct leat_proxy_header again;
    struct leat_writer writer;
    const struct leat_proxy_tls *tls = &header->tls, *tls_again = &again.tls;
    size_t used_again = 0;

    header->tls.is_used = true; /* else the rest of it is not written */
    header->has_checksum = used < LEAT_PROXY_HEADER_MAX - 16;
    leat_writer_init(&writer, buf, sizeof(buf));
    leat_proxy_header_write(&writer, header);
    if (writer.failed) {
        check(used >= LEAT_PROXY_HEADER_MAX - 16);
        return;
    }
    check(parse(buf, writer.len, &again, &used_again) == LEAT_OK && used_again == writer.len);
    check(again.version == header->version && again.is_local == header->is_local);
    if (header->is_local)
        return;
    check(leat_addr_is_equal(&header->source, &again.source));
    check(leat_addr_is_equal(&header->destination, &again.destination));
    if (header->version == 1)
        return;
    check(again.has_checksum == header->has_checksum);
    check(tls_again->is_used && tls_again->has_cert == tls->has_cert);
    check(tls_again->is_verified == tls->is_verified);
    check_text(header->alpn, again.alpn, data, used);
    check_text(header->netns, again.netns, data, used);
    check_text(header->authority, again.authority, data, used);
    check_text(header->unique_id, again.unique_id, data, used);
    check_text(tls->name, tls_again->name, data, used);
    check_text(tls->version, tls_again->version, data, used);
    check_text(tls->cipher, tls_again->cipher, data, used);
    check_text(tls->sig_alg, tls_again->sig_alg, data, used);
    check_text(tls->key_alg, tls_again->key_alg, data, used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_proxy_header header;
    size_t used = 0;
    enum leat_status status = parse(data, size, &header, &used);

    check(status != LEAT_EAGAIN || size < LEAT_PROXY_HEADER_MAX);
    check(used <= size && used <= LEAT_PROXY_HEADER_MAX && (used > 0) == (status == LEAT_OK));
    for (size_t n = 0; n < size && n < 128; n++)
        check_beginning(data, n, status, used);
    if (size > 0)
        check_beginning(data, size - 1, status, used);
    if (status != LEAT_OK)
        return 0;
    check_beginning(data, used - 1, status, used);
    check_beginning(data, used, status, used);
    check_again(&header, data, used);
    return 0;
}
