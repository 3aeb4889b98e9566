/* SPDX-License-Identifier: Apache-2.0 */
#include "connect_rig.h"

#include <fcntl.h>
#include <unistd.h>

static void on_io(struct leat_io *io, void *arg)
{
    (void)io;
    (void)arg;
}

void on_connect(const struct leat_addr *addr, const struct leat_error *err, void *arg)
{
    struct caller *caller = arg;
    assert_false(caller->in_call);
    assert_true((addr == NULL) != (err == NULL));
    caller->calls++;
    if (err != NULL) {
        caller->err = *err;
        assert_int_equal(caller->io.fd, -1);
        return;
    }
    (void)leat_addr_text(addr, caller->addr);
    leat_io_set_fn(&caller->io, on_io, caller);
}

void begin(struct rig *rig, struct caller *caller, const struct leat_connect_target *target)
{
    caller->in_call = true;
    assert_int_equal(
        leat_connect_start(&caller->io, rig->loop, target, on_connect, caller, &caller->connect),
        LEAT_OK);
    caller->in_call = false;
}

void end(struct caller *caller)
{
    assert_int_equal(caller->calls, 1);
    leat_io_close(&caller->io);
}

static struct leat_addr addr_of(const char *host, uint16_t port)
{
    struct leat_addr addr = {0};
    assert_true(leat_addr_parse_host(leat_str_of(host), &addr));
    leat_addr_set_port(&addr, port);
    return addr;
}

/* Listens on HOST and PORT, which may be 0. */
static int listen_on(const char *host, uint16_t port, struct leat_addr *out)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);
    int fd;
    *out = addr_of(host, port);
    if (leat_addr_listen(out, &fd, NULL) != LEAT_OK)
        return -1;
    assert_return_code(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
    leat_addr_from_sockaddr(&ss, out);
    return fd;
}

void require_ipv6(void)
{
    struct leat_addr addr;
    int fd = listen_on("::1", 0, &addr);
    if (fd < 0)
        fail_msg("this machine has no ::1, which this test needs");
    (void)close(fd);
}

void open_hosts(struct hosts *hosts, const char *first, const char *second)
{
    *hosts = (struct hosts){.fds = {-1, -1}, .fillers = {-1, -1, -1}};
    for (int tries = 0; tries < 100 && hosts->fds[1] < 0; tries++) {
        if (hosts->fds[0] >= 0)
            (void)close(hosts->fds[0]);
        hosts->fds[0] = listen_on(first, 0, &hosts->addrs[0]);
        assert_true(hosts->fds[0] >= 0);
        hosts->fds[1] = listen_on(second, leat_addr_port(&hosts->addrs[0]), &hosts->addrs[1]);
    }
    assert_true(hosts->fds[1] >= 0);
}

void close_host(struct hosts *hosts, int i)
{
    (void)close(hosts->fds[i]);
    hosts->fds[i] = -1;
}

void fill_host(struct hosts *hosts, int i)
{
    assert_return_code(listen(hosts->fds[i], 0), 0);
    for (int n = 0; n < 3; n++) {
        hosts->fillers[n] = socket(hosts->addrs[i].ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(hosts->fillers[n], (struct sockaddr *)&hosts->addrs[i].ss,
                      hosts->addrs[i].len);
    }
}

void close_hosts(struct hosts *hosts)
{
    for (int i = 0; i < 2; i++)
        if (hosts->fds[i] >= 0)
            (void)close(hosts->fds[i]);
    for (int i = 0; i < 3; i++)
        if (hosts->fillers[i] >= 0)
            (void)close(hosts->fillers[i]);
}

void assert_connected_to(const struct caller *caller, const struct leat_addr *addr)
{
    char text[LEAT_ADDR_TEXT_MAX];
    struct sockaddr_storage ss = {0};
    struct leat_addr peer;
    socklen_t len = sizeof(ss);
    assert_string_equal(caller->err.text, "");
    assert_string_equal(caller->addr, leat_addr_text(addr, text));
    assert_return_code(getpeername(caller->io.fd, (struct sockaddr *)&ss, &len), 0);
    leat_addr_from_sockaddr(&ss, &peer);
    assert_true(leat_addr_is_equal(&peer, addr));
}

uint64_t connects(const struct rig *rig)
{
    return atomic_load(&leat_loop_counters(rig->loop)->connects);
}

int free_fd(void)
{
    int fd = fcntl(0, F_DUPFD, 0);
    (void)close(fd);
    return fd;
}
