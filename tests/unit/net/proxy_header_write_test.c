/*
 * Tests of net/proxy_header.h: writing, and reading what was written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/str.h"
#include "buf/writer.h"
#include "header_side.h"

/* Writes HEADER to BYTES, of room for the longest. */
static struct leat_str write_whole(const struct leat_proxy_header *header, char *bytes)
{
    struct leat_writer writer;

    leat_writer_init(&writer, bytes, LEAT_PROXY_HEADER_MAX);
    leat_proxy_header_write(&writer, header);
    assert_false(writer.failed);
    return (struct leat_str){bytes, writer.len};
}

static void set_addr(struct leat_addr *out, const char *text)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    if (strncmp(text, "unix:", 5) != 0) {
        assert_int_equal(leat_addr_parse(leat_str_of(text), 0, out, NULL), LEAT_OK);
        return;
    }
    (void)stpcpy(un.sun_path, text + 5);
    *out = (struct leat_addr){.len = sizeof(un)};
    memcpy(&out->ss, &un, sizeof(un));
}

static void addresses_are_written_in_both_versions(void **state)
{
    static const struct {
        const char *source, *destination, *line, *binary;
    } cases[] = {
        {"192.0.2.7:40000", "192.0.2.8:5671", "PROXY TCP4 192.0.2.7 192.0.2.8 40000 5671\r\n",
         "v2 " PAIR_TEXT},
        {"[2001:db8::1]:1", "[::1]:2", "PROXY TCP6 2001:db8::1 ::1 1 2\r\n",
         "v2 [2001:db8::1]:1>[::1]:2"},
        {"[" DIGITS_39 "]:65535", "[" DIGITS_39 "]:65535",
         "PROXY TCP6 " DIGITS_39 " " DIGITS_39 " 65535 65535\r\n",
         "v2 [" DIGITS_39 "]:65535>[" DIGITS_39 "]:65535"},
        {"192.0.2.7:1", "[::1]:2", "PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n",
         "v2 192.0.2.7:1>[::1]:2"},
        {"[::1]:1", "192.0.2.8:2", "PROXY TCP6 ::1 ::ffff:192.0.2.8 1 2\r\n",
         "v2 [::1]:1>192.0.2.8:2"},
        {"unix:/a", "unix:/b", "PROXY UNKNOWN\r\n", "v2 unix:/a>unix:/b"},
        {"unix:/a", "192.0.2.8:2", "PROXY UNKNOWN\r\n", "v2 local"},
        {"192.0.2.8:2", "unix:/a", "PROXY UNKNOWN\r\n", "v2 local"},
    };
    char bytes[LEAT_PROXY_HEADER_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct leat_proxy_header header = {.version = 1};
        set_addr(&header.source, cases[i].source);
        set_addr(&header.destination, cases[i].destination);
        struct leat_str line = write_whole(&header, bytes);
        assert_int_equal(line.len, strlen(cases[i].line));
        assert_memory_equal(line.ptr, cases[i].line, line.len);
        header.version = 2;
        assert_good(&(struct example){write_whole(&header, bytes), cases[i].binary});
    }
}

/* The path of an accepted UNIX socket's peer is mostly not known. */
static void a_unix_address_may_lack_its_path(void **state)
{
    struct leat_proxy_header header = {.version = 2};
    char bytes[LEAT_PROXY_HEADER_MAX];

    (void)state;
    header.source = header.destination =
        (struct leat_addr){.ss = {.ss_family = AF_UNIX}, .len = sizeof(sa_family_t)};
    assert_good(&(struct example){write_whole(&header, bytes), "v2 unix:>unix:"});
}

static void a_local_header_says_nothing_else(void **state)
{
    struct leat_proxy_header header = {.version = 2, .is_local = true, .has_checksum = true};
    char bytes[LEAT_PROXY_HEADER_MAX];

    (void)state;
    set_addr(&header.source, "192.0.2.7:1");
    set_addr(&header.destination, "192.0.2.8:2");
    header.authority = leat_str_of("a.b");
    header.tls.is_used = true;
    struct leat_str whole = write_whole(&header, bytes);
    assert_int_equal(whole.len, 16);
    assert_memory_equal(whole.ptr, SIGNATURE "\x20\0\0\0", 16);
    header.version = 1;
    whole = write_whole(&header, bytes);
    assert_int_equal(whole.len, 15);
    assert_memory_equal(whole.ptr, "PROXY UNKNOWN\r\n", 15);
}

/* A header with all that version 2 can say. */
static struct leat_proxy_header full_header(void)
{
    struct leat_proxy_header header = {
        .version = 2,
        .has_checksum = true,
        .alpn = leat_str_of("amqp"),
        .netns = leat_str_of("ns"),
        .authority = leat_str_of("broker.example"),
        .unique_id = (struct leat_str){"\0\1\2", 3},
        .tls = {.is_used = true,
                .has_cert = true,
                .is_verified = true,
                .name = leat_str_of("client"),
                .version = leat_str_of("TLSv1.3"),
                .cipher = leat_str_of("TLS_AES_128_GCM_SHA256"),
                .sig_alg = leat_str_of("RSA-SHA256"),
                .key_alg = leat_str_of("RSA2048")},
    };

    set_addr(&header.source, "192.0.2.7:40000");
    set_addr(&header.destination, "192.0.2.8:5671");
    return header;
}

static void what_is_written_is_read(void **state)
{
    struct leat_proxy_header header = full_header();
    char bytes[LEAT_PROXY_HEADER_MAX], text[TEXT_MAX];

    (void)state;
    for (unsigned flags = 0; flags < 16; flags++) {
        header.has_checksum = (flags & 1) != 0;
        header.tls.has_cert = (flags & 6) != 0;
        header.tls.is_verified = (flags & 4) != 0;
        header.alpn.len = (flags & 8) != 0 ? 4 : 0;
        describe(&header, text);
        assert_good(&(struct example){write_whole(&header, bytes), text});
    }
}

static void writing_fails_without_room(void **state)
{
    struct leat_proxy_header header = full_header();
    char bytes[LEAT_PROXY_HEADER_MAX];

    (void)state;
    for (header.version = 1; header.version <= 2; header.version++) {
        size_t len = write_whole(&header, bytes).len;
        for (size_t cap = 0; cap < len; cap++) {
            struct leat_writer writer;
            char *exact = malloc(cap + 1);
            leat_writer_init(&writer, exact + 1, cap);
            leat_proxy_header_write(&writer, &header);
            assert_true(writer.failed);
            free(exact);
        }
    }
}

static void writing_fails_of_what_is_too_long(void **state)
{
    static const char many[LEAT_PROXY_HEADER_MAX] = {0};
    static char bytes[2 * LEAT_PROXY_HEADER_MAX];
    struct leat_proxy_header header = {.version = 2};
    struct {
        struct leat_str *text;
        size_t max;
    } limits[] = {
        {&header.authority, 255},
        {&header.unique_id, 128},
        {&header.netns, LEAT_PROXY_HEADER_MAX - 31},
    };

    (void)state;
    set_addr(&header.source, "192.0.2.7:1");
    set_addr(&header.destination, "192.0.2.8:2");
    for (size_t i = 0; i < COUNT(limits); i++) {
        for (size_t more = 0; more <= 1; more++) {
            struct leat_writer writer;
            *limits[i].text = (struct leat_str){many, limits[i].max + more};
            leat_writer_init(&writer, bytes, sizeof(bytes));
            leat_writer_u8(&writer, 0); /* what is there before does not count */
            leat_proxy_header_write(&writer, &header);
            assert_int_equal(writer.failed, more == 1);
        }
        limits[i].text->len = 0;
    }
}

/* Whether DAMAGED is still a header; then it does not say that it was checked. */
static bool is_read_unchecked(struct leat_str damaged)
{
    char text[TEXT_MAX];
    size_t used;

    if (parse(damaged, damaged.len, &used, text) != LEAT_OK)
        return false;
    assert_null(strstr(text, "checked"));
    return true;
}

/* Every change of one byte of a header with a checksum is noticed, unless it says that there is
 * no checksum, or nothing to check. */
static void damage_is_noticed(void **state)
{
    struct leat_proxy_header header = full_header();
    char bytes[LEAT_PROXY_HEADER_MAX];
    struct leat_str whole = write_whole(&header, bytes);
    unsigned good = 0;

    (void)state;
    for (size_t at = 0; at < whole.len; at++) {
        for (unsigned flip = 1; flip < 256; flip++) {
            bytes[at] = (char)(bytes[at] ^ (char)flip);
            if (is_read_unchecked(whole))
                good++;
            bytes[at] = (char)(bytes[at] ^ (char)flip);
        }
    }
    assert_true(good > 0); /* or the loop tests nothing */
}

/* Whatever comes is judged in the same way however it is cut, and within its bytes. */
static void mutations_are_judged(void **state)
{
    struct leat_proxy_header header = full_header();
    char bytes[LEAT_PROXY_HEADER_MAX], text[TEXT_MAX];
    uint32_t seed = 1;

    (void)state;
    header.has_checksum = false;
    for (unsigned round = 0; round < 600; round++) {
        size_t used = 0;
        header.version = 1 + round % 2;
        struct leat_str whole = write_whole(&header, bytes);
        for (unsigned change = 0; change <= round % 4; change++) {
            seed = seed * 1664525u + 1013904223u;
            size_t at = (seed >> 8) % whole.len;
            seed = seed * 1664525u + 1013904223u;
            bytes[at] = (char)(seed >> 16);
        }
        (void)parse_growing(whole, &used, text);
        assert_true(used <= whole.len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_written_in_both_versions),
        cmocka_unit_test(a_unix_address_may_lack_its_path),
        cmocka_unit_test(a_local_header_says_nothing_else),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(writing_fails_without_room),
        cmocka_unit_test(writing_fails_of_what_is_too_long),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(mutations_are_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
