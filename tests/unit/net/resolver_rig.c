/* SPDX-License-Identifier: Apache-2.0 */
#include "resolver_rig.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"

static int make_file(char path[64])
{
    int fd = memfd_create("names", MFD_CLOEXEC);
    assert_true(fd >= 0);
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

void rig_write(int fd, const char *text)
{
    assert_return_code(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
}

int rig_setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    rig->now_ms = 1000000;
    assert_int_equal(leat_loop_new(&rig->loop, NULL), LEAT_OK);
    leat_loop_set_clock(rig->loop, test_clock, &rig->now_ms);
    for (int i = 0; i < 2; i++) {
        test_dns_open(&rig->dns[i], rig->loop);
        rig->servers[i] = rig->dns[i].addr;
    }
    rig->hosts_fd = make_file(rig->hosts_path);
    rig->resolv_conf_fd = make_file(rig->resolv_conf_path);
    rig->config = (struct leat_resolver_config){
        .servers = rig->servers,
        .server_count = 1,
        .hosts_path = rig->hosts_path,
        .resolv_conf_path = rig->resolv_conf_path,
    };
    *state = rig;
    return 0;
}

int rig_teardown(void **state)
{
    struct rig *rig = *state;
    leat_resolver_free(rig->resolver);
    test_settle(rig->loop);
    for (int i = 0; i < 2; i++)
        test_dns_close(&rig->dns[i]);
    leat_loop_free(rig->loop);
    (void)close(rig->hosts_fd);
    (void)close(rig->resolv_conf_fd);
    free(rig);
    return 0;
}

void rig_open(struct rig *rig)
{
    if (rig->resolver == NULL)
        assert_int_equal(leat_resolver_new(rig->loop, &rig->config, &rig->resolver, NULL), LEAT_OK);
}

static void take(const struct leat_lookup_addrs *addrs, char out[256])
{
    char buf[LEAT_ADDR_TEXT_MAX];
    if (!addrs->is_known) {
        assert_int_equal(addrs->count, 0);
        return;
    }
    if (strcmp(out, "?") == 0)
        out[0] = '\0';
    struct leat_text text = {.buf = out, .cap = 256, .len = strlen(out)};
    for (size_t i = 0; i < addrs->count; i++) {
        assert_int_equal(leat_addr_port(&addrs->addrs[i]), 0);
        leat_text_add(&text, "%s ", leat_addr_host_text(&addrs->addrs[i], buf));
    }
}

static void on_lookup(const struct leat_lookup_answer *answer, void *arg)
{
    struct asker *asker = arg;
    assert_false(asker->in_call);
    assert_int_equal(asker->lasts, 0);
    asker->calls++;
    take(&answer->v6, asker->v6);
    take(&answer->v4, asker->v4);
    asker->lasts += answer->is_last;
    if (answer->err != NULL) {
        assert_true(answer->is_last);
        asker->err = *answer->err;
    }
    if (asker->cancels) {
        asker->cancels = false;
        leat_lookup_cancel(&asker->lookup);
    }
    if (asker->frees) {
        asker->frees = false;
        leat_resolver_free(asker->rig->resolver);
        asker->rig->resolver = NULL;
    }
}

void look_up(struct rig *rig, struct asker *asker, const char *name)
{
    rig_open(rig);
    asker->rig = rig;
    (void)strcpy(asker->v6, "?");
    (void)strcpy(asker->v4, "?");
    asker->in_call = true;
    leat_lookup_start(&asker->lookup, rig->resolver, leat_str_of(name), on_lookup, asker);
    asker->in_call = false;
}

void await(struct asker *asker)
{
    TURN_UNTIL(asker->rig->loop, asker->lasts > 0);
}

void assert_found(struct rig *rig, const char *name, const char *v6, const char *v4)
{
    struct asker asker = {0};
    look_up(rig, &asker, name);
    await(&asker);
    assert_string_equal(asker.err.text, "");
    assert_string_equal(asker.v6, v6);
    assert_string_equal(asker.v4, v4);
}

void assert_error(struct rig *rig, const char *name, enum leat_status status, const char *text)
{
    struct asker asker = {0};
    look_up(rig, &asker, name);
    await(&asker);
    assert_string_equal(asker.err.text, text);
    assert_int_equal(asker.err.status, status);
}

void await_asked(struct rig *rig, int i, unsigned count)
{
    TURN_UNTIL(rig->loop, rig->dns[i].asked >= count);
    assert_int_equal(rig->dns[i].asked, count);
}

void go_by(struct rig *rig, uint64_t ms)
{
    rig->now_ms += ms;
    for (int i = 0; i < 4; i++)
        test_poll(rig->loop);
}
