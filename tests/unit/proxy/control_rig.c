/* SPDX-License-Identifier: Apache-2.0 */
#include "control_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"

static enum leat_status reload(void *arg, struct leat_error *err)
{
    struct control_rig *c = arg;

    c->reloads++;
    if (c->reload_fails == NULL)
        return LEAT_OK;
    return leat_error_set(err, LEAT_EUSAGE, 0, "%s", c->reload_fails);
}

static bool drain(void *arg)
{
    struct control_rig *c = arg;

    return c->drains++ == 0;
}

enum leat_status control_rig_start(struct control_rig *c, const char *path,
                                   struct leat_control **out, struct leat_error *err)
{
    const struct leat_control_ops ops = {.reload = reload, .drain = drain, .arg = c};

    return leat_control_new(c->rig.worker->loop, c->rig.shared, path, &ops, out, err);
}

int control_rig_setup(void **state)
{
    struct control_rig *c = calloc(1, sizeof(*c));
    struct leat_error err = {.text = ""};

    assert_non_null(c);
    rig_init(&c->rig, 1, NULL);
    (void)snprintf(c->dir, sizeof(c->dir), "/tmp/leat-control-XXXXXX");
    assert_non_null(mkdtemp(c->dir));
    (void)snprintf(c->path, sizeof(c->path), "%s/s", c->dir);
    if (control_rig_start(c, c->path, &c->control, &err) != LEAT_OK)
        fail_msg("%s", err.text);
    *state = c;
    return 0;
}

int control_rig_teardown(void **state)
{
    struct control_rig *c = *state;

    leat_control_free(c->control);
    assert_int_equal(access(c->path, F_OK), -1);
    rig_fini(&c->rig);
    assert_int_equal(rmdir(c->dir), 0);
    free(c);
    return 0;
}

struct asker asker_open(struct control_rig *c)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct asker asker = {.c = c, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    assert_true(asker.fd >= 0);
    (void)snprintf(un.sun_path, sizeof(un.sun_path), "%s", c->path);
    assert_int_equal(connect(asker.fd, (const struct sockaddr *)&un, sizeof(un)), 0);
    return asker;
}

void asker_close(struct asker *asker)
{
    (void)close(asker->fd);
    wire_free(&asker->in);
}

void asker_send(struct asker *asker, const char *text)
{
    size_t len = strlen(text);

    assert_int_equal(send(asker->fd, text, len, MSG_NOSIGNAL), len);
}

void asker_turn(struct asker *asker)
{
    uint8_t buf[65536];
    ssize_t n;

    rig_turn(&asker->c->rig);
    n = recv(asker->fd, buf, sizeof(buf), MSG_DONTWAIT);
    if (n > 0)
        wire_add(&asker->in, buf, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        asker->has_ended = true;
}

json_t *asker_line(struct asker *asker)
{
    json_error_t error;
    uint8_t *end = NULL;
    json_t *value;

    for (int turns = 0; end == NULL; turns++) {
        if (asker->in.len > 0)
            end = memchr(asker->in.buf, '\n', asker->in.len);
        if (end == NULL && asker->has_ended) {
            assert_int_equal(asker->in.len, 0);
            return NULL;
        }
        assert_true(turns < RIG_TURNS_MAX);
        if (end == NULL)
            asker_turn(asker);
    }
    size_t len = (size_t)(end - asker->in.buf);
    value = json_loadb((const char *)asker->in.buf, len, JSON_REJECT_DUPLICATES, &error);
    if (value == NULL)
        fail_msg("%s: %.*s", error.text, (int)len, (const char *)asker->in.buf);
    wire_drop(&asker->in, len + 1);
    return value;
}

json_t *asker_ask(struct asker *asker, const char *request)
{
    json_t *answer;

    asker_send(asker, request);
    asker_send(asker, "\n");
    answer = asker_line(asker);
    assert_non_null(answer);
    return answer;
}

void asker_does(struct asker *asker, const char *request)
{
    json_t *answer = asker_ask(asker, request);

    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
}

void asker_refused(struct asker *asker, const char *request, const char *kind, const char *part)
{
    json_t *answer = asker_ask(asker, request);

    assert_true(json_is_false(json_object_get(answer, "ok")));
    assert_string_equal(json_string_value(json_object_get(answer, "kind")), kind);
    const char *text = json_string_value(json_object_get(answer, "error"));
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", text, part);
    json_decref(answer);
}

json_t *member(const json_t *value, const char *path)
{
    const char *dot = strchr(path, '.');
    char name[64];

    if (dot == NULL)
        return json_object_get(value, path);
    (void)snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
    return member(json_object_get(value, name), dot + 1);
}

void assert_text(json_t *value, const char *path, const char *expected)
{
    const char *text = json_string_value(member(value, path));

    assert_non_null(text);
    assert_string_equal(text, expected);
    json_decref(value);
}
