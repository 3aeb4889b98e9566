/*
 * header_side.h - what the tests of PROXY headers share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_HEADER_SIDE_H
#define TEST_HEADER_SIDE_H

#include <leat/str.h>

#include "net/proxy_header.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT_MAX 2048

/* What version 2 begins with, and an address pair in text. */
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define PAIR_TEXT "192.0.2.7:40000>192.0.2.8:5671"
#define DIGITS_39 "1234:5678:9abc:def0:1234:5678:9abc:def0"

/* Bytes, and what is said of them. */
struct example {
    struct leat_str bytes;
    const char *says;
};

/* Tells everything that HEADER says. */
void describe(const struct leat_proxy_header *header, char buf[TEXT_MAX]);

/* Parses the first LEN of BYTES, from memory that ends there. BUF tells the header or the error. */
enum leat_status parse(struct leat_str bytes, size_t len, size_t *used, char buf[TEXT_MAX]);

/*
 * Parses BYTES as they come one by one: what is said at the first byte that decides stays so
 * whatever follows. Since nothing is kept between calls, all ways to cut them are among these.
 */
enum leat_status parse_growing(struct leat_str bytes, size_t *used, char buf[TEXT_MAX]);

/* EXAMPLE is a header that says what it says, and what comes after it is left. */
void assert_good(const struct example *example);

/* EXAMPLE is refused. */
void assert_bad(const struct example *example);

#endif
