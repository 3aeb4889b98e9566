/*
 * Tests of net/addr.h; listening is on loopback and ports that the kernel chooses.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "net/addr.h"

/* Parses the LEN bytes at TEXT from memory of exactly that size, so that reading past it is
 * found. */
static enum leat_status parse_exact(const char *text, size_t len, uint16_t default_port,
                                    struct leat_addr *out, struct leat_error *err)
{
    char *exact = malloc(len + (len == 0));
    assert_non_null(exact);
    memcpy(exact, text, len);
    enum leat_status status =
        leat_addr_parse((struct leat_str){exact, len}, default_port, out, err);
    free(exact);
    return status;
}

static struct leat_addr parse(const char *text, uint16_t default_port)
{
    struct leat_addr addr;
    struct leat_error err = {0};
    assert_int_equal(parse_exact(text, strlen(text), default_port, &addr, &err), LEAT_OK);
    return addr;
}

static void assert_text(const struct leat_addr *addr, const char *expected)
{
    char buf[LEAT_ADDR_TEXT_MAX];
    assert_ptr_equal(leat_addr_text(addr, buf), buf);
    assert_string_equal(buf, expected);
}

static void addresses_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint16_t default_port;
        const char *expected;
        int family;
    } cases[] = {
        {"127.0.0.1:5672", 0, "127.0.0.1:5672", AF_INET},
        {"127.0.0.1:5672", 5671, "127.0.0.1:5672", AF_INET},
        {"127.0.0.1", 5671, "127.0.0.1:5671", AF_INET},
        {"0.0.0.0:0", 0, "0.0.0.0:0", AF_INET},
        {"255.255.255.255:65535", 0, "255.255.255.255:65535", AF_INET},
        {"[::1]:5671", 0, "[::1]:5671", AF_INET6},
        {"[::1]", 5672, "[::1]:5672", AF_INET6},
        {"[::]:1", 0, "[::]:1", AF_INET6},
        {"[2001:DB8:0:0::1]:5672", 0, "[2001:db8::1]:5672", AF_INET6},
        {"[fe80::1%lo]:5672", 0, "[fe80::1%1]:5672", AF_INET6},
        {"[fe80::1%4294967295]:5672", 0, "[fe80::1%4294967295]:5672", AF_INET6},
        {"[::ffff:10.1.2.3]:5672", 0, "10.1.2.3:5672", AF_INET},
        {"[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%4294967295]:65535", 0,
         "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535", AF_INET6},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct leat_addr addr = parse(cases[i].text, cases[i].default_port);
        assert_int_equal(addr.ss.ss_family, cases[i].family);
        assert_int_equal(addr.len, cases[i].family == AF_INET ? sizeof(struct sockaddr_in)
                                                              : sizeof(struct sockaddr_in6));
        assert_text(&addr, cases[i].expected);
    }
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        ":",
        ":5672",
        "localhost:5672",
        "127.0.0.1:",
        "127.0.0.1: 5672",
        "127.0.0.1:+5672",
        "127.0.0.1:-1",
        "127.0.0.1:0x10",
        "127.0.0.1:65536",
        "127.0.0.1:18446744073709551617",
        "127.0.0.1:amqp",
        "127.0.0.1:5672:5672",
        "127.0.0.1 :5672",
        " 127.0.0.1:5672",
        "127.0.0.1:5672\n",
        "127.1:5672",
        "127.0.0.256:5672",
        "0127.0.0.1:5672",
        "::1",
        "::1:5672",
        "fe80::1:5672",
        "[::1",
        "[::1]5672",
        "[::1]:",
        "[::1]]:5672",
        "[]:5672",
        "[127.0.0.1]:5672",
        "[::1%]:5672",
        "[fe80::1%0]:5672",
        "[fe80::1%4294967296]:5672",
        "[fe80::1%nosuchinterface0]:5672",
        "[fe80::1%lo%lo]:5672",
        "[00000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:1",
        "127.0.0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0:1",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct leat_addr addr = {.len = 77};
        struct leat_error err = {0};
        assert_int_equal(parse_exact(texts[i], strlen(texts[i]), 5672, &addr, &err), LEAT_EUSAGE);
        assert_int_equal(err.status, LEAT_EUSAGE);
        assert_memory_equal(err.text, "expected ", strlen("expected "));
        assert_int_equal(addr.len, 77); /* written only on success */
    }
}

static void a_nul_does_not_end_an_address(void **state)
{
    (void)state;
    static const char v4[] = "127.0.0.1\0x:5672";
    static const char v6[] = "[::1\0x]:5672";
    struct leat_addr addr;
    struct leat_error err;
    assert_int_equal(parse_exact(v4, sizeof(v4) - 1, 0, &addr, &err), LEAT_EUSAGE);
    assert_int_equal(parse_exact(v6, sizeof(v6) - 1, 0, &addr, &err), LEAT_EUSAGE);
    assert_int_equal(leat_addr_parse((struct leat_str){NULL, 0}, 0, &addr, &err), LEAT_EUSAGE);
}

static void errors_say_what_was_expected(void **state)
{
    (void)state;
    struct leat_addr addr;
    struct leat_error err;
    assert_int_equal(leat_addr_parse(leat_str_of("broker:5672"), 0, &addr, &err), LEAT_EUSAGE);
    assert_string_equal(err.text,
                        "expected a numeric address like 127.0.0.1:5672 or [::1]:5672, got "
                        "\"broker:5672\"");
    assert_int_equal(leat_addr_parse(leat_str_of("127.0.0.1"), 0, &addr, &err), LEAT_EUSAGE);
    assert_string_equal(err.text, "expected an address with a port, like 127.0.0.1:5672 or "
                                  "[::1]:5672, got \"127.0.0.1\"");
    assert_int_equal(leat_addr_parse(leat_str_of("127.0.0.1:70000"), 0, &addr, &err), LEAT_EUSAGE);
    assert_string_equal(err.text, "expected a port from 1 to 65535 after the address, got "
                                  "\"127.0.0.1:70000\"");
    assert_int_equal(leat_addr_parse(leat_str_of("127.0.0.1"), 0, &addr, NULL), LEAT_EUSAGE);
}

/* Random texts of an address's characters: none may do harm, and what is accepted must be
 * accepted again as it is written. */
static void what_is_accepted_reads_back_the_same(void **state)
{
    (void)state;
    static const char alphabet[] = "0012519af:::..[]%lo";
    uint32_t seed = 1;
    unsigned accepted = 0;
    for (int round = 0; round < 200000; round++) {
        char text[24];
        size_t len = 0;
        seed = seed * 1664525u + 1013904223u;
        bool is_bracketed = seed >> 31;
        size_t wanted = (seed >> 16) % 12;
        if (is_bracketed)
            text[len++] = '[';
        for (size_t i = 0; i < wanted; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[len++] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
        }
        if (is_bracketed)
            text[len++] = ']';
        struct leat_addr addr, again;
        char buf[LEAT_ADDR_TEXT_MAX];
        if (parse_exact(text, len, 1, &addr, NULL) != LEAT_OK)
            continue;
        accepted++;
        again = parse(leat_addr_text(&addr, buf), 0);
        assert_int_equal(again.len, addr.len);
        assert_memory_equal(&again.ss, &addr.ss, addr.len);
    }
    assert_true(accepted > 100);
}

static void mapped_addresses_become_what_they_stand_for(void **state)
{
    (void)state;
    struct sockaddr_storage ss = {0};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(5672)};
    struct leat_addr addr;
    assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.7", &in6.sin6_addr), 1);
    memcpy(&ss, &in6, sizeof(in6));
    leat_addr_from_sockaddr(&ss, &addr);
    assert_int_equal(addr.ss.ss_family, AF_INET);
    assert_int_equal(addr.len, sizeof(struct sockaddr_in));
    assert_text(&addr, "192.0.2.7:5672");
    assert_int_equal(inet_pton(AF_INET6, "::192.0.2.7", &in6.sin6_addr), 1);
    memcpy(&ss, &in6, sizeof(in6));
    leat_addr_from_sockaddr(&ss, &addr);
    assert_int_equal(addr.ss.ss_family, AF_INET6);
}

static void other_families_have_a_text(void **state)
{
    (void)state;
    struct sockaddr_storage ss = {.ss_family = AF_UNIX};
    struct leat_addr addr;
    leat_addr_from_sockaddr(&ss, &addr);
    assert_text(&addr, "unix");
    assert_false(leat_addr_is_loopback(&addr));
    ss.ss_family = AF_UNSPEC;
    leat_addr_from_sockaddr(&ss, &addr);
    assert_text(&addr, "unknown");
    assert_false(leat_addr_is_loopback(&addr));
}

static struct leat_addr unix_addr(const char *path)
{
    struct leat_addr addr;
    struct leat_error err = {0};
    assert_int_equal(leat_addr_from_path(leat_str_of(path), &addr, &err), LEAT_OK);
    return addr;
}

/* Nor can it be taken for what follows it in a line. */
static void a_path_forges_no_line_of_the_log(void **state)
{
    struct leat_addr addr = unix_addr("/a b\n\x1b[31m\"\\\x80"), other;
    char path[LEAT_ADDR_PATH_MAX + 1];

    (void)state;
    assert_text(&addr, "unix:/a\\x20b\\x0a\\x1b[31m\\x22\\x5c\\x80");
    assert_string_equal(leat_addr_path(&addr, path), "/a b\n\x1b[31m\"\\\x80");
    other = unix_addr("/a b\n\x1b[31m\"\\\x81");
    assert_false(leat_addr_is_equal(&addr, &other));
}

/* To a listener on all addresses every address of the machine leads. */
static void a_connection_to_oneself_is_known(void **state)
{
    static const struct {
        const char *peer, *local, *listener;
        bool leads;
    } cases[] = {
        {"127.0.0.1:5", "127.0.0.1:9", "127.0.0.1:5", true},
        {"127.0.0.1:5", "127.0.0.1:9", "0.0.0.0:5", true},
        {"192.0.2.1:5", "192.0.2.1:9", "0.0.0.0:5", true},
        {"192.0.2.1:5", "192.0.2.2:9", "0.0.0.0:5", false},
        {"192.0.2.1:6", "192.0.2.1:9", "0.0.0.0:5", false},
        {"192.0.2.1:5", "192.0.2.1:9", "192.0.2.2:5", false},
        {"[2001:db8::1]:5", "[2001:db8::1]:9", "[::]:5", true},
        {"[2001:db8::1]:5", "[2001:db8::1]:9", "0.0.0.0:5", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct leat_addr peer, local, listener;
        assert_int_equal(leat_addr_parse((struct leat_str){cases[i].peer, strlen(cases[i].peer)}, 0,
                                         &peer, NULL),
                         LEAT_OK);
        assert_int_equal(leat_addr_parse((struct leat_str){cases[i].local, strlen(cases[i].local)},
                                         0, &local, NULL),
                         LEAT_OK);
        assert_int_equal(
            leat_addr_parse((struct leat_str){cases[i].listener, strlen(cases[i].listener)}, 0,
                            &listener, NULL),
            LEAT_OK);
        assert_int_equal(leat_addr_leads_to(&peer, &local, &listener), cases[i].leads);
    }
}

static void a_path_is_an_address(void **state)
{
    char path[LEAT_ADDR_PATH_MAX + 2], expected[LEAT_ADDR_TEXT_MAX];
    struct leat_addr addr = unix_addr("/run/leat/leat.sock"), again, other;
    struct leat_error err = {0};

    (void)state;
    assert_int_equal(addr.ss.ss_family, AF_UNIX);
    assert_int_equal(leat_addr_port(&addr), 0);
    assert_false(leat_addr_is_loopback(&addr));
    assert_text(&addr, "unix:/run/leat/leat.sock");
    leat_addr_from_sockaddr(&addr.ss, &again);
    assert_true(leat_addr_is_equal(&addr, &again));
    other = unix_addr("/run/leat/leat.sockx");
    assert_false(leat_addr_is_equal(&addr, &other));

    memset(path, 'a', sizeof(path));
    path[LEAT_ADDR_PATH_MAX] = '\0';
    addr = unix_addr(path);
    (void)snprintf(expected, sizeof(expected), "unix:%s", path);
    assert_text(&addr, expected);
    leat_addr_from_sockaddr(&addr.ss, &again);
    assert_text(&again, expected);
    assert_int_equal(leat_addr_from_path((struct leat_str){path, 0}, &addr, &err), LEAT_EUSAGE);
    assert_int_equal(leat_addr_from_path((struct leat_str){"a\0b", 3}, &addr, &err), LEAT_EUSAGE);
    path[LEAT_ADDR_PATH_MAX] = 'a';
    assert_int_equal(
        leat_addr_from_path((struct leat_str){path, LEAT_ADDR_PATH_MAX + 1}, &addr, &err),
        LEAT_EUSAGE);
    assert_string_equal(err.text, "the path of a UNIX socket can have no more than 107 bytes, this "
                                  "one has 108: choose a shorter one");
}

static void a_listener_serves_its_address_or_all_of_this_machine(void **state)
{
    static const struct {
        const char *addr, *listener;
        bool is_served;
    } cases[] = {
        {"127.0.0.1:1", "127.0.0.1:1", true},  {"127.0.0.1:1", "127.0.0.1:2", false},
        {"127.0.0.2:1", "127.0.0.1:1", false}, {"127.0.0.2:1", "0.0.0.0:1", true},
        {"10.0.0.1:1", "0.0.0.0:1", false},    {"10.0.0.1:1", "10.0.0.1:1", true},
        {"[::1]:1", "[::]:1", true},           {"[::1]:1", "0.0.0.0:1", false},
        {"[::1]:1", "[::1]:1", true},          {"[::2]:1", "[::]:1", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct leat_addr addr = parse(cases[i].addr, 0), listener = parse(cases[i].listener, 0);
        assert_int_equal(leat_addr_is_served_by(&addr, &listener), cases[i].is_served);
    }
}

static void loopback_is_127_8_and_1(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_loopback;
    } cases[] = {
        {"127.0.0.1:1", true},          {"127.255.255.255:1", true}, {"[::1]:1", true},
        {"[::ffff:127.0.0.1]:1", true}, {"128.0.0.1:1", false},      {"126.0.0.1:1", false},
        {"0.0.0.0:1", false},           {"[::]:1", false},           {"[::2]:1", false},
        {"[::ffff:10.0.0.1]:1", false}, {"[::127.0.0.1]:1", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct leat_addr addr = parse(cases[i].text, 0);
        assert_int_equal(leat_addr_is_loopback(&addr), cases[i].is_loopback);
    }
    /* as the kernel writes it for a client of [::] */
    struct leat_addr raw = {.len = sizeof(struct sockaddr_in6)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &in6.sin6_addr), 1);
    memcpy(&raw.ss, &in6, sizeof(in6));
    assert_true(leat_addr_is_loopback(&raw));
}

/* Listens on TEXT and tells the port that the kernel chose. */
static int listen_text(const char *text, uint16_t *out_port)
{
    struct leat_addr addr = parse(text, 0);
    struct leat_error err = {0};
    struct sockaddr_in in;
    struct sockaddr_storage ss;
    socklen_t len = sizeof(ss);
    int fd = -1;
    assert_int_equal(leat_addr_listen(&addr, &fd, &err), LEAT_OK);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
    memcpy(&in, &ss, sizeof(in)); /* the port lies in the same place for IPv6 */
    *out_port = ntohs(in.sin_port);
    return fd;
}

static void connect_to(struct leat_addr addr)
{
    int fd = socket(addr.ss.ss_family, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr.ss, addr.len), 0);
    (void)close(fd);
}

static void listening_makes_a_non_blocking_socket(void **state)
{
    (void)state;
    uint16_t port = 0;
    int fd = listen_text("127.0.0.1:0", &port);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(accept4(fd, NULL, NULL, 0), -1);
    assert_int_equal(errno, EAGAIN);
    connect_to(parse("127.0.0.1", port));
    int accepted = accept4(fd, NULL, NULL, 0);
    assert_true(accepted >= 0);
    (void)close(accepted);
    (void)close(fd);
}

/* So that a program can listen on 0.0.0.0 and on [::] with one port. */
static void listening_on_any_ipv6_address_leaves_ipv4_alone(void **state)
{
    (void)state;
    uint16_t port = 0;
    struct leat_addr any = parse("[::]:0", 0);
    struct leat_error err = {0};
    int probe = -1;
    if (leat_addr_listen(&any, &probe, &err) != LEAT_OK) { /* a kernel without IPv6 */
        assert_int_equal(err.sys, EAFNOSUPPORT);
        return;
    }
    (void)close(probe);
    enum leat_status status = LEAT_EIO;
    /* Somebody else may have the port that was free for IPv6. */
    for (int tries = 0; tries < 20 && status != LEAT_OK; tries++) {
        int six = listen_text("[::]:0", &port), four = -1;
        struct leat_addr same = parse("0.0.0.0", port);
        status = leat_addr_listen(&same, &four, &err);
        if (status == LEAT_OK)
            (void)close(four);
        (void)close(six);
    }
    assert_int_equal(status, LEAT_OK);
}

static void assert_listen_fails(struct leat_addr addr, int sys, const char *part)
{
    char text[LEAT_ADDR_TEXT_MAX];
    struct leat_error err = {0};
    int fd = -1;
    assert_int_equal(leat_addr_listen(&addr, &fd, &err), LEAT_EIO);
    assert_int_equal(fd, -1);
    assert_int_equal(err.status, LEAT_EIO);
    assert_int_equal(err.sys, sys);
    assert_non_null(strstr(err.text, leat_addr_text(&addr, text)));
    assert_non_null(strstr(err.text, part));
    assert_non_null(strstr(err.text, strerror(sys)));
}

static void listening_fails_with_advice(void **state)
{
    (void)state;
    uint16_t port = 0;
    int fd = listen_text("127.0.0.1:0", &port);
    int before = fcntl(0, F_DUPFD, 0);
    (void)close(before);
    assert_listen_fails(parse("127.0.0.1", port), EADDRINUSE, "something listens there already");
    assert_listen_fails(parse("192.0.2.1:0", 0), EADDRNOTAVAIL, "no interface"); /* RFC 5737 */
    struct leat_addr odd = {.ss = {.ss_family = AF_UNSPEC}, .len = sizeof(sa_family_t)};
    assert_listen_fails(odd, EAFNOSUPPORT, "cannot listen on");
    int after = fcntl(0, F_DUPFD, 0);
    (void)close(after);
    assert_int_equal(after, before);
    (void)close(fd);
}

/* Whatever the umask says, and from the first moment on. */
static void a_unix_socket_is_its_owners_alone(void **state)
{
    char dir[] = "/tmp/leat-addr-XXXXXX", path[64];
    struct leat_error err = {0};
    struct stat info;
    int fd = -1;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/s", dir);
    mode_t mask = umask(0);
    struct leat_addr addr = unix_addr(path);
    assert_int_equal(leat_addr_listen(&addr, &fd, &err), LEAT_OK);
    (void)umask(mask);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    connect_to(addr);
    assert_listen_fails(addr, EADDRINUSE, "something of that name");
    (void)close(fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    assert_listen_fails(addr, ENOENT, "its directory does not exist");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_and_written),
        cmocka_unit_test(a_path_forges_no_line_of_the_log),
        cmocka_unit_test(a_connection_to_oneself_is_known),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_nul_does_not_end_an_address),
        cmocka_unit_test(errors_say_what_was_expected),
        cmocka_unit_test(what_is_accepted_reads_back_the_same),
        cmocka_unit_test(mapped_addresses_become_what_they_stand_for),
        cmocka_unit_test(other_families_have_a_text),
        cmocka_unit_test(a_path_is_an_address),
        cmocka_unit_test(loopback_is_127_8_and_1),
        cmocka_unit_test(a_listener_serves_its_address_or_all_of_this_machine),
        cmocka_unit_test(listening_makes_a_non_blocking_socket),
        cmocka_unit_test(listening_on_any_ipv6_address_leaves_ipv4_alone),
        cmocka_unit_test(listening_fails_with_advice),
        cmocka_unit_test(a_unix_socket_is_its_owners_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
