/*
 * Tests of net/proxy_header.h: reading.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "buf/writer.h"
#include "header_side.h"

/* What version 2 begins with for TCP over IPv4, and the 12 bytes of an address pair. */
#define TCP4 SIGNATURE "\x21\x11"
#define PAIR                                                                                       \
    "\xc0\0\2\7"                                                                                   \
    "\xc0\0\2\x8"                                                                                  \
    "\x9c\x40"                                                                                     \
    "\x16\x27"
/* The CRC32C of the header below that has it, computed elsewhere. */
#define CRC "\x6e\x1e\x6a\x17"
#define PATH_10 "/run/a/b/c"
#define A_49 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A_98 A_49 A_49
#define ZEROS_10 "\0\0\0\0\0\0\0\0\0\0"
#define ZEROS_98                                                                                   \
    ZEROS_10 ZEROS_10 ZEROS_10 ZEROS_10 ZEROS_10 ZEROS_10 ZEROS_10 ZEROS_10 ZEROS_10               \
        "\0\0\0\0\0\0\0\0"

#define EXAMPLE(bytes, says)                                                                       \
    {                                                                                              \
        LEAT_STR_INIT(bytes), says                                                                 \
    }

static void lines_are_read(void **state)
{
    static const struct example lines[] = {
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8 40000 5671\r\n", "v1 " PAIR_TEXT),
        EXAMPLE("PROXY TCP4 255.255.255.255 0.0.0.0 0 65535\r\n",
                "v1 255.255.255.255:0>0.0.0.0:65535"),
        EXAMPLE("PROXY TCP6 2001:db8::1 ::1 1 2\r\n", "v1 [2001:db8::1]:1>[::1]:2"),
        EXAMPLE("PROXY TCP6 2001:DB8::A ::ffff:192.0.2.8 1 2\r\n",
                "v1 [2001:db8::a]:1>192.0.2.8:2"),
        EXAMPLE("PROXY TCP6 " DIGITS_39 " " DIGITS_39 " 65535 65535\r\n",
                "v1 [" DIGITS_39 "]:65535>[" DIGITS_39 "]:65535"),
        EXAMPLE("PROXY UNKNOWN\r\n", "v1 local"),
        EXAMPLE("PROXY UNKNOWN \r\n", "v1 local"),
        EXAMPLE("PROXY UNKNOWN any\0thing  at all\xff\r\n", "v1 local"),
        EXAMPLE("PROXY UNKNOWN " DIGITS_39 " " DIGITS_39 " 65535 65535\r\n", "v1 local"), /* 107 */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_good(&lines[i]);
}

static void bad_lines_are_refused(void **state)
{
    static const struct example lines[] = {
        EXAMPLE("PROXY TCP5 192.0.2.7 192.0.2.8 1 2\r\n", "protocol \"TCP5\""),
        EXAMPLE("PROXY tcp4 192.0.2.7 192.0.2.8 1 2\r\n", "protocol \"tcp4\""),
        EXAMPLE("PROXY UDP4 192.0.2.7 192.0.2.8 1 2\r\n", "protocol \"UDP4\""),
        EXAMPLE("PROXY \r\n", "protocol \"\""),
        EXAMPLE("PROXY  TCP4 192.0.2.7 192.0.2.8 1 2\r\n", "protocol \"\""),
        EXAMPLE("PROXY UNKNOWN1\r\n", "protocol \"UNKNOWN1\""),
        EXAMPLE("PROXY TCP4\r\n", "IPv4 source but \"\""),
        EXAMPLE("PROXY TCP4  192.0.2.7 192.0.2.8 1 2\r\n", "IPv4 source but \"\""),
        EXAMPLE("PROXY TCP4 192.0.2.7\r\n", "IPv4 destination but \"\""),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8\r\n", "source port \"\""),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8 1\r\n", "destination port \"\""),
        EXAMPLE("PROXY TCP4 192.0.2 192.0.2.8 1 2\r\n", "IPv4 source but \"192.0.2\""),
        EXAMPLE("PROXY TCP4 192.0.2.07 192.0.2.8 1 2\r\n", "IPv4 source but \"192.0.2.07\""),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.256 1 2\r\n", "IPv4 destination but \"192.0.2.256\""),
        EXAMPLE("PROXY TCP4 ::1 192.0.2.8 1 2\r\n", "IPv4 source but \"::1\""),
        EXAMPLE("PROXY TCP4 192.0.2.7\0 192.0.2.8 1 2\r\n", "IPv4 source but \"192.0.2.7\\x00\""),
        EXAMPLE("PROXY TCP6 192.0.2.7 ::1 1 2\r\n", "IPv6 source but \"192.0.2.7\""),
        EXAMPLE("PROXY TCP6 ::1 ::1::2 1 2\r\n", "IPv6 destination but \"::1::2\""),
        EXAMPLE("PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", "IPv6 source but \"fe80::1%eth0\""),
        EXAMPLE("PROXY TCP6 [::1] ::1 1 2\r\n", "IPv6 source but \"[::1]\""),
        EXAMPLE("PROXY TCP6 " DIGITS_39 ":1234:5678 ::1 1 2\r\n", "IPv6 source but"),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8 01 2\r\n", "source port \"01\""),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8 65536 2\r\n", "source port \"65536\""),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8 +1 2\r\n", "source port \"+1\""),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8 1 00\r\n", "destination port \"00\""),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8 1 2 \r\n", "destination port \"2 \""),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8 1 2 3\r\n", "destination port \"2 3\""),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8 1 2\n", "does not end in CR and LF"),
        EXAMPLE("PROXY TCP4 192.0.2.7 192.0.2.8 1 2\rAMQP", "does not end in CR and LF"),
        EXAMPLE("PROXY UNKNOWN a\rb\r\n", "does not end in CR and LF"),
        EXAMPLE("PROXY UNKNOWN " DIGITS_39 " " DIGITS_39 " 65535 655350\r\n", "within 107 bytes"),
        EXAMPLE("PROXY UNKNOWN " DIGITS_39 DIGITS_39 DIGITS_39 DIGITS_39, "within 107 bytes"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_bad(&lines[i]);
}

static void what_is_no_header_is_refused_at_its_first_wrong_byte(void **state)
{
    static const struct example others[] = {
        EXAMPLE("AMQP\0\0\x9\1", "begins with \"A\" as AMQP does, but a PROXY header"),
        EXAMPLE("\x16\x3\1\2\0", "begins with \"\\x16\" as TLS does"),
        EXAMPLE("GET / HTTP/1.1\r\n", "begins with \"G\","),
        EXAMPLE("PROXX", "begins with \"PROXX\","),
        EXAMPLE("PROXY\r\n", "begins with \"PROXY\\x0d\","),
        EXAMPLE("proxy TCP4", "begins with \"p\","),
        EXAMPLE("\r\n\r\n\r", "begins with \"\\x0d\\x0a\\x0d\\x0a\\x0d\","),
        EXAMPLE("\r\n\r\n\0\r\nQUIT\r", "QUIT\\x0d\","),
        EXAMPLE("\0", "begins with \"\\x00\","),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(others); i++)
        assert_bad(&others[i]);
}

static void binary_headers_are_read(void **state)
{
    static const struct example headers[] = {
        EXAMPLE(TCP4 "\0\xc" PAIR, "v2 " PAIR_TEXT),
        EXAMPLE(SIGNATURE "\x21\x21\0\x24"
                          "\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
                          "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\x8"
                          "\0\1\xff\xff",
                "v2 [2001:db8::1]:1>192.0.2.8:65535"),
        EXAMPLE(SIGNATURE "\x21\x31\0\xd8" PATH_10 ZEROS_98 ZEROS_98 ZEROS_10,
                "v2 unix:" PATH_10 ">unix:"),
        /* Such a path has no NUL (7 of unix(7)); the last byte is no loss to anybody. */
        EXAMPLE(SIGNATURE "\x21\x31\0\xd8" A_98 PATH_10 ZEROS_98 ZEROS_10,
                "v2 unix:" A_98 "/run/a/b/"
                ">unix:"),
        EXAMPLE(SIGNATURE "\x20\0\0\0", "v2 local"),
        /* All that a local one says besides is discarded (2.2). */
        EXAMPLE(SIGNATURE "\x20\xff\0\5"
                          "\1\2\3\4\5",
                "v2 local"),
        EXAMPLE(SIGNATURE "\x20\x11\0\xc" PAIR, "v2 local"),
        EXAMPLE(SIGNATURE "\x21\0\0\0", "v2 local"),
        EXAMPLE(SIGNATURE "\x21\0\0\1"
                          "\1",
                "v2 local"),
        EXAMPLE(SIGNATURE "\x21\1\0\0", "v2 local"),
        EXAMPLE(SIGNATURE "\x21\x10\0\xc" PAIR, "v2 local"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(headers); i++)
        assert_good(&headers[i]);
}

static void bad_binary_headers_are_refused(void **state)
{
    static const struct example headers[] = {
        EXAMPLE(SIGNATURE "\x11", "version 1,"),
        EXAMPLE(SIGNATURE "\x31", "version 3,"),
        EXAMPLE(SIGNATURE "\x22", "command 2,"),
        EXAMPLE(SIGNATURE "\x21\x41", "family 4,"),
        EXAMPLE(SIGNATURE "\x21\xf0", "family 15,"),
        EXAMPLE(SIGNATURE "\x21\x12", "transport 2, datagrams"),
        EXAMPLE(SIGNATURE "\x21\x13", "transport 3, which is not known"),
        EXAMPLE(SIGNATURE "\x21\x11\x0f\xf1", "4097 bytes, more than the 4096"),
        EXAMPLE(SIGNATURE "\x20\0\xff\xff", "65551 bytes"),
        EXAMPLE(TCP4 "\0\xb"
                     "\xc0\0\2\7\xc0\0\2\x8\x9c\x40\x16",
                "too short for its addresses"),
        EXAMPLE(TCP4 "\0\0", "too short for its addresses"),
        EXAMPLE(SIGNATURE "\x21\x21\0\xc" PAIR, "too short for its addresses"),
        EXAMPLE(SIGNATURE "\x21\x31\0\xc" PAIR, "too short for its addresses"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(headers); i++)
        assert_bad(&headers[i]);
}

static void tlvs_are_read(void **state)
{
    static const struct example headers[] = {
        EXAMPLE(TCP4 "\0\x34" PAIR "\1\0\4amqp"
                     "\2\0\5a.b.c"
                     "\5\0\x3"
                     "i\0d"
                     "\x30\0\2ns"
                     "\4\0\1\0"
                     "\xe0\0\1\x7f"
                     "\x55\0\0"
                     "\4\0\0",
                "v2 " PAIR_TEXT " alpn=\"amqp\" authority=\"a.b.c\" id=\"i\\x00d\" netns=\"ns\""),
        EXAMPLE(TCP4 "\0\x3f" PAIR "\x20\0\x30"
                     "\7\0\0\0\0"
                     "\x21\0\7TLSv1.3"
                     "\x22\0\2me"
                     "\x23\0\3AES"
                     "\x24\0\3SHA"
                     "\x25\0\3RSA"
                     "\x26\0\1x"
                     "\1\0\3abc",
                "v2 " PAIR_TEXT
                " tls=111 version=\"TLSv1.3\" name=\"me\" cipher=\"AES\" sig=\"SHA\""
                " key=\"RSA\""),
        /* Without a certificate there was nothing to verify. */
        EXAMPLE(TCP4 "\0\x14" PAIR "\x20\0\5"
                     "\1\0\0\0\0",
                "v2 " PAIR_TEXT " tls=100"),
        EXAMPLE(TCP4 "\0\x14" PAIR "\x20\0\5"
                     "\3\0\0\0\1",
                "v2 " PAIR_TEXT " tls=110"),
        EXAMPLE(TCP4 "\0\x14" PAIR "\x20\0\5"
                     "\5\0\0\0\0",
                "v2 " PAIR_TEXT " tls=111"),
        EXAMPLE(TCP4 "\0\x14" PAIR "\x20\0\5"
                     "\0\0\0\0\0",
                "v2 " PAIR_TEXT),
        /* The types that SSL holds mean nothing beside it. */
        EXAMPLE(TCP4 "\0\x11" PAIR "\x22\0\2me", "v2 " PAIR_TEXT),
        EXAMPLE(TCP4 "\0\x18" PAIR "\3\0\4" CRC "\4\0\2\0\0", "v2 " PAIR_TEXT " checked"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(headers); i++)
        assert_good(&headers[i]);
}

static void bad_tlvs_are_refused(void **state)
{
    static const struct example headers[] = {
        EXAMPLE(TCP4 "\0\xd" PAIR "\4", "TLV that goes beyond its end"),
        EXAMPLE(TCP4 "\0\xe" PAIR "\4\0", "TLV that goes beyond its end"),
        EXAMPLE(TCP4 "\0\xf" PAIR "\4\0\1", "TLV that goes beyond its end"),
        EXAMPLE(TCP4 "\0\x10" PAIR "\4\xff\xff\0", "TLV that goes beyond its end"),
        EXAMPLE(TCP4 "\0\x17" PAIR "\2\0\1a"
                     "\2\0\1b"
                     "\4\0\0",
                "AUTHORITY comes twice"),
        EXAMPLE(TCP4 "\0\x13" PAIR "\x20\0\4"
                     "\1\0\0\0",
                "SSL is too short"),
        EXAMPLE(TCP4 "\0\x1c" PAIR "\x20\0\5"
                     "\1\0\0\0\0"
                     "\x20\0\5"
                     "\1\0\0\0\0",
                "SSL comes twice"),
        EXAMPLE(TCP4 "\0\x16" PAIR "\x20\0\7"
                     "\1\0\0\0\0"
                     "\x21\0",
                "SSL holds a TLV that goes beyond"),
        EXAMPLE(TCP4 "\0\x17" PAIR "\x20\0\x8"
                     "\1\0\0\0\0"
                     "\x21\0\1"
                     "x",
                "SSL holds a TLV that goes beyond"),
        EXAMPLE(TCP4 "\0\x1c" PAIR "\x20\0\xd"
                     "\1\0\0\0\0"
                     "\x22\0\1a"
                     "\x22\0\1b",
                "SSL_CN comes twice"),
        EXAMPLE(TCP4 "\0\x12" PAIR "\3\0\3"
                     "\0\0\0",
                "CRC32C has not 4 bytes"),
        EXAMPLE(TCP4 "\0\x14" PAIR "\3\0\5"
                     "\0\0\0\0\0",
                "CRC32C has not 4 bytes"),
        EXAMPLE(TCP4 "\0\x13" PAIR "\3\0\4"
                     "\0\0\0\0",
                "CRC32C does not match"),
        EXAMPLE(TCP4 "\0\x18" PAIR "\3\0\4" CRC "\4\0\2\0\1", "CRC32C does not match"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(headers); i++)
        assert_bad(&headers[i]);
}

/* Writes into BUF a header of LEN bytes whose last TLV, of TYPE, fills it. */
static struct leat_str header_of_length(char *buf, size_t len, uint8_t type)
{
    struct leat_writer writer;

    memset(buf, 'x', len);
    leat_writer_init(&writer, buf, len);
    leat_writer_bytes(&writer, (struct leat_str)LEAT_STR_INIT(TCP4));
    leat_writer_u16(&writer, (uint16_t)(len - 16));
    leat_writer_bytes(&writer, (struct leat_str)LEAT_STR_INIT(PAIR));
    leat_writer_u8(&writer, type);
    leat_writer_u16(&writer, (uint16_t)(len - 31));
    assert_false(writer.failed);
    return (struct leat_str){buf, len};
}

static void lengths_are_limited(void **state)
{
    static const struct {
        uint8_t type;
        size_t max; /* bytes of its value */
        const char *says;
    } limits[] = {
        {0x02, 255, "AUTHORITY is too long"},
        {0x05, 128, "UNIQUE_ID is too long"},
        {0x04, LEAT_PROXY_HEADER_MAX - 31, "more than the 4096"},
        {0x01, LEAT_PROXY_HEADER_MAX - 31, "more than the 4096"},
    };
    static char bytes[LEAT_PROXY_HEADER_MAX + 1];

    (void)state;
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct leat_proxy_header header;
        struct leat_error err = {0};
        size_t used = 0, len = limits[i].max + 31;
        struct leat_str whole = header_of_length(bytes, len, limits[i].type);
        assert_int_equal(leat_proxy_header_parse(whole.ptr, len - 1, &header, &used, &err),
                         LEAT_EAGAIN);
        assert_int_equal(leat_proxy_header_parse(whole.ptr, len, &header, &used, &err), LEAT_OK);
        assert_int_equal(used, len);
        whole = header_of_length(bytes, len + 1, limits[i].type);
        assert_int_equal(leat_proxy_header_parse(whole.ptr, len + 1, &header, &used, &err),
                         LEAT_EPROTOCOL);
        assert_non_null(strstr(err.text, limits[i].says));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_read),
        cmocka_unit_test(bad_lines_are_refused),
        cmocka_unit_test(what_is_no_header_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(binary_headers_are_read),
        cmocka_unit_test(bad_binary_headers_are_refused),
        cmocka_unit_test(tlvs_are_read),
        cmocka_unit_test(bad_tlvs_are_refused),
        cmocka_unit_test(lengths_are_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
