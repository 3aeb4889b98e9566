/* SPDX-License-Identifier: Apache-2.0 */
#include "header_side.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/text.h"

/* Adds NAME and VALUE, if there is one. */
static void add_value(struct leat_text *text, const char *name, struct leat_str value)
{
    if (value.len == 0)
        return;
    leat_text_add(text, " %s=", name);
    leat_text_add_quoted(text, value);
}

static void add_addr(struct leat_text *text, const struct leat_addr *addr)
{
    struct sockaddr_un un;
    char buf[LEAT_ADDR_TEXT_MAX];

    if (addr->ss.ss_family == AF_UNIX) {
        memcpy(&un, &addr->ss, sizeof(un));
        assert_int_equal(addr->len, sizeof(un));
        leat_text_add(text, "unix:%.108s", un.sun_path);
    } else {
        leat_text_add(text, "%s", leat_addr_text(addr, buf));
    }
}

void describe(const struct leat_proxy_header *header, char buf[TEXT_MAX])
{
    const struct leat_proxy_tls *tls = &header->tls;
    struct leat_text text;

    leat_text_init(&text, buf, TEXT_MAX);
    leat_text_add(&text, "v%u ", header->version);
    if (header->is_local) {
        leat_text_add(&text, "local");
    } else {
        add_addr(&text, &header->source);
        leat_text_add(&text, ">");
        add_addr(&text, &header->destination);
    }
    add_value(&text, "alpn", header->alpn);
    add_value(&text, "authority", header->authority);
    add_value(&text, "id", header->unique_id);
    add_value(&text, "netns", header->netns);
    if (tls->is_used || tls->has_cert || tls->is_verified)
        leat_text_add(&text, " tls=%d%d%d", tls->is_used, tls->has_cert, tls->is_verified);
    add_value(&text, "version", tls->version);
    add_value(&text, "name", tls->name);
    add_value(&text, "cipher", tls->cipher);
    add_value(&text, "sig", tls->sig_alg);
    add_value(&text, "key", tls->key_alg);
    if (header->has_checksum)
        leat_text_add(&text, " checked");
    assert_false(text.is_cut);
}

enum leat_status parse(struct leat_str bytes, size_t len, size_t *used, char buf[TEXT_MAX])
{
    struct leat_error err = {0};
    struct leat_proxy_header header;
    char *data = malloc(len + 1);

    assert_non_null(data);
    memcpy(data + 1, bytes.ptr, len);
    enum leat_status status = leat_proxy_header_parse(data + 1, len, &header, used, &err);
    buf[0] = '\0';
    if (status == LEAT_OK)
        describe(&header, buf);
    else
        (void)stpcpy(buf, err.text);
    assert_int_equal(err.status, status == LEAT_EAGAIN ? LEAT_OK : status);
    free(data);
    return status;
}

enum leat_status parse_growing(struct leat_str bytes, size_t *used, char buf[TEXT_MAX])
{
    enum leat_status decided = LEAT_EAGAIN;
    char again[TEXT_MAX];

    for (size_t len = 0; len <= bytes.len; len++) {
        size_t used_now = 0;
        enum leat_status status = parse(bytes, len, &used_now, again);
        if (decided == LEAT_EAGAIN && status != LEAT_EAGAIN) {
            decided = status;
            *used = used_now;
            (void)stpcpy(buf, again);
            assert_true(status != LEAT_OK || used_now == len);
        }
        assert_int_equal(status, decided);
        if (decided != LEAT_EAGAIN) {
            assert_string_equal(again, buf);
            assert_int_equal(used_now, *used);
        }
    }
    return decided;
}

void assert_good(const struct example *example)
{
    size_t used = 0;
    char text[TEXT_MAX], bytes[TEXT_MAX];
    struct leat_str longer = {bytes, example->bytes.len + 8};

    memcpy(bytes, example->bytes.ptr, example->bytes.len);
    memcpy(bytes + example->bytes.len, "AMQP\0\0\x9\1", 8);
    if (parse_growing(longer, &used, text) != LEAT_OK)
        fail_msg("%s: %s", example->says, text);
    assert_string_equal(text, example->says);
    assert_int_equal(used, example->bytes.len);
}

void assert_bad(const struct example *example)
{
    size_t used = 0;
    char text[TEXT_MAX];

    assert_int_equal(parse_growing(example->bytes, &used, text), LEAT_EPROTOCOL);
    if (strstr(text, example->says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", text, example->says);
    assert_int_equal(used, 0);
}
