/*
 * Tests of proxy/control.h: the socket, requests and what the control loop answers by itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "control_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"

static void a_request_may_come_in_pieces(void **state)
{
    struct asker asker = asker_open(*state);
    const char *request = "{\"verb\":\"status\"}\n";

    for (const char *at = request; *at != '\0'; at++) {
        asker_send(&asker, (const char[]){*at, '\0'});
        asker_turn(&asker);
    }
    assert_text(asker_line(&asker), "version", LEAT_VERSION);
    asker_close(&asker);
}

static void requests_are_answered_in_order(void **state)
{
    struct asker asker = asker_open(*state);

    asker_send(&asker, "{\"verb\":\"log\",\"level\":\"warn\"}\n{\"verb\":\"sessions\"}\n"
                       "{\"verb\":\"session\",\"id\":1,\"action\":\"show\"}\n{\"verb\":\"log\"}\n"
                       "{\"verb\":\"log\",\"level\":\"trace\"}\n");
    assert_text(asker_line(&asker), "level", "warn");
    json_t *sessions = asker_line(&asker);
    assert_int_equal(json_array_size(json_object_get(sessions, "sessions")), 0);
    json_decref(sessions);
    assert_text(asker_line(&asker), "kind", "not_found");
    assert_text(asker_line(&asker), "level", "warn");
    assert_text(asker_line(&asker), "level", "trace");
    asker_close(&asker);
}

/* As a pipe does that sends its requests and then waits. */
static void what_was_asked_before_the_end_is_answered(void **state)
{
    struct asker asker = asker_open(*state);

    asker_send(&asker, "{\"verb\":\"sessions\"}\n{\"verb\":\"log\"}\n{\"verb\":\"half");
    assert_int_equal(shutdown(asker.fd, SHUT_WR), 0);
    json_decref(asker_line(&asker));
    assert_text(asker_line(&asker), "level", "debug");
    assert_text(asker_line(&asker), "error", "the line has no end");
    assert_null(asker_line(&asker));
    asker_close(&asker);
}

static void bad_requests_are_told_what_is_known(void **state)
{
    static const struct {
        const char *request, *part;
    } cases[] = {
        {"hello", "an object of JSON"},
        {"", "an object of JSON"},
        {" {\"verb\":\"status\"}", "an object of JSON"},
        {"[]", "an object of JSON"},
        {"{\"verb\":", "no JSON"},
        {"{\"verb\":\"status\"} x", "no JSON"},
        {"{\"verb\":\"status\",\"verb\":\"drain\"}", "duplicate"},
        {"{\"verb\":\"\xff\"}", "no JSON"},
        {"{}", "has no verb, which is a text; known: \"status\", \"sessions\""},
        {"{\"verb\":7}", "has no verb"},
        {"{\"verb\":\"stauts\"}", "unknown verb \"stauts\"; did you mean \"status\"?"},
        {"{\"verb\":\"nothing like it\"}", "known: \"status\", "},
        {"{\"verb\":\"status\",\"x\":1}", "status takes no members, got \"x\""},
        {"{\"verb\":\"log\",\"levle\":\"x\"}", "did you mean \"level\"?"},
        {"{\"verb\":\"log\",\"level\":\"waarn\"}", "unknown level; did you mean \"warn\"?"},
        {"{\"verb\":\"log\",\"level\":null}", "expected a text as level"},
        {"{\"verb\":\"sessions\",\"follow\":1}", "expected true or false as follow"},
        {"{\"verb\":\"sessions\",\"state\":\"opne\"}", "unknown state; did you mean \"open\"?"},
        {"{\"verb\":\"session\",\"action\":\"show\"}", "session: id is missing"},
        {"{\"verb\":\"session\",\"id\":1}", "session: action is missing"},
        {"{\"verb\":\"session\",\"id\":\"1\",\"action\":\"show\"}",
         "expected a whole number as id"},
        {"{\"verb\":\"session\",\"id\":1,\"action\":\"clsoe\"}", "did you mean \"close\"?"},
    };
    struct asker asker = asker_open(*state);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        asker_refused(&asker, cases[i].request, "usage", cases[i].part);
    asker_does(&asker, "{\"verb\":\"status\"}"); /* and it goes on */
    asker_close(&asker);
}

static void assert_too_long(struct control_rig *c, size_t len)
{
    struct asker asker = asker_open(c);
    char *line = malloc(len + 1);

    assert_non_null(line);
    memset(line, ' ', len);
    line[0] = '{';
    line[len] = '\0';
    asker_send(&asker, line);
    assert_text(asker_line(&asker), "error", "a request is a line of at most 64 KiB");
    assert_null(asker_line(&asker));
    asker_close(&asker);
    free(line);
}

static void an_endless_line_is_refused(void **state)
{
    const size_t most = 65536;
    struct asker asker = asker_open(*state);
    char *line = malloc(most + 2);

    assert_too_long(*state, most + 1);
    assert_too_long(*state, 100000);
    assert_non_null(line);
    (void)snprintf(line, most + 2, "{\"verb\":\"status\"%*s}\n", (int)(most - 17), "");
    assert_int_equal(strlen(line), most + 1);
    asker_send(&asker, line);
    assert_text(asker_line(&asker), "state", "running");
    asker_close(&asker);
    free(line);
}

static void one_connection_too_many_is_told_so(void **state)
{
    struct asker askers[33];

    for (size_t i = 0; i < 33; i++) {
        askers[i] = asker_open(*state);
        if (i < 32)
            asker_does(&askers[i], "{\"verb\":\"log\"}");
    }
    assert_text(asker_line(&askers[32]), "kind", "limit");
    assert_null(asker_line(&askers[32]));
    asker_close(&askers[32]);
    asker_close(&askers[0]);
    asker_does(&askers[1], "{\"verb\":\"log\"}");
    askers[0] = asker_open(*state);
    asker_does(&askers[0], "{\"verb\":\"log\"}");
    for (size_t i = 0; i < 32; i++)
        asker_close(&askers[i]);
}

static void who_does_not_read_is_not_read(void **state)
{
    struct asker asker = asker_open(*state);
    unsigned answered = 0;

    (void)fcntl(asker.fd, F_SETFL, O_NONBLOCK);
    /* So many answers do not fit into the socket. */
    for (unsigned i = 0; i < 2000; i++) {
        static const char request[] = "{\"verb\":\"config\"}\n";
        if (send(asker.fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0)
            answered++;
        if (i % 100 == 0)
            rig_turn(&asker.c->rig);
    }
    assert_true(answered > 200);
    for (unsigned i = 0; i < answered; i++) {
        json_t *answer = asker_line(&asker);
        assert_true(json_is_object(json_object_get(answer, "config")));
        json_decref(answer);
    }
    asker_close(&asker);
}

static void reload_and_drain_are_the_programs(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);

    asker_does(&asker, "{\"verb\":\"reload\"}");
    c->reload_fails = "leat.yaml:7: it is all wrong";
    asker_refused(&asker, "{\"verb\":\"reload\"}", "failed", c->reload_fails);
    assert_int_equal(c->reloads, 2);
    json_t *answer = asker_ask(&asker, "{\"verb\":\"drain\"}");
    assert_int_equal(json_integer_value(member(answer, "connections")), 0);
    json_decref(answer);
    asker_refused(&asker, "{\"verb\":\"drain\"}", "failed", "already");
    asker_close(&asker);
}

static void the_level_of_the_log_is_set(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);

    assert_text(asker_ask(&asker, "{\"verb\":\"log\"}"), "level", "debug");
    assert_text(asker_ask(&asker, "{\"verb\":\"log\",\"level\":\"error\"}"), "level", "error");
    assert_int_equal(c->rig.log.level, LEAT_LOG_ERROR);
    assert_text(asker_ask(&asker, "{\"verb\":\"status\"}"), "log_level", "error");
    asker_close(&asker);
}

/* The socket. */

static void assert_refused(struct control_rig *c, const char *path, const char *part)
{
    struct leat_control *control = NULL;
    struct leat_error err = {.text = ""};

    assert_int_equal(control_rig_start(c, path, &control, &err), LEAT_EUSAGE);
    assert_null(control);
    if (strstr(err.text, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", err.text, part);
}

static void another_leat_is_left_alone(void **state)
{
    struct control_rig *c = *state;
    struct asker asker = asker_open(c);
    char part[60];

    (void)snprintf(part, sizeof(part), "process %d: stop it", (int)getpid());
    assert_refused(c, c->path, part);
    asker_does(&asker, "{\"verb\":\"log\"}");
    asker_close(&asker);
    asker = asker_open(c);
    asker_does(&asker, "{\"verb\":\"log\"}");
    asker_close(&asker);
}

static void what_is_no_socket_is_never_removed(void **state)
{
    struct control_rig *c = *state;
    char path[80], link[80];

    (void)snprintf(path, sizeof(path), "%s/file", c->dir);
    (void)snprintf(link, sizeof(link), "%s/link", c->dir);
    (void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(symlink(c->path, link), 0);
    assert_refused(c, path, "is there and is no socket");
    assert_refused(c, link, "is there and is no socket");
    assert_refused(c, c->dir, "is there and is no socket");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(link), 0);
}

static void what_a_dead_leat_has_left_is_replaced(void **state)
{
    struct control_rig *c = *state;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct leat_control *control = NULL;
    struct leat_error err = {.text = ""};
    struct stat info;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(un.sun_path, sizeof(un.sun_path), "%s/stale", c->dir);
    assert_int_equal(bind(fd, (const struct sockaddr *)&un, sizeof(un)), 0);
    (void)close(fd);
    assert_int_equal(control_rig_start(c, un.sun_path, &control, &err), LEAT_OK);
    assert_int_equal(stat(un.sun_path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    leat_control_free(control);
    assert_int_equal(access(un.sun_path, F_OK), -1);
}

static void the_socket_of_another_is_not_removed_at_the_end(void **state)
{
    struct control_rig *c = *state;
    struct leat_control *control = NULL;
    char path[80];

    (void)snprintf(path, sizeof(path), "%s/other", c->dir);
    assert_int_equal(control_rig_start(c, path, &control, NULL), LEAT_OK);
    assert_int_equal(unlink(path), 0);
    (void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    leat_control_free(control);
    assert_int_equal(unlink(path), 0);
}

static void a_missing_directory_is_named(void **state)
{
    struct leat_control *control = NULL;
    struct leat_error err = {.text = ""};

    assert_int_equal(control_rig_start(*state, "/nonexistent/dir/s", &control, &err), LEAT_EIO);
    assert_non_null(strstr(err.text, "unix:/nonexistent/dir/s"));
    assert_non_null(strstr(err.text, "its directory does not exist"));
}

/* Every verb, with the first, second, ... allocation failing: it is answered, or told that memory
 * is short, or the connection ends; and the next one is answered. */
static void running_out_of_memory_costs_one_connection(void **state)
{
    static const char *const requests[] = {
        "{\"verb\":\"status\"}\n",
        "{\"verb\":\"backends\"}\n",
        "{\"verb\":\"tls\"}\n",
        "{\"verb\":\"config\"}\n",
        "{\"verb\":\"log\"}\n",
        "{\"verb\":\"reload\"}\n",
        "{\"verb\":\"sessions\"}\n",
        "nonsense\n",
        "{\"verb\":\"session\",\"id\":3,\"action\":\"show\"}\n",
        "{\"verb\":\"session\",\"id\":3,\"action\":\"trace\"}\n",
        "{\"verb\":\"sessions\",\"follow\":true}\n",
    };
    struct control_rig *c = *state;

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        for (unsigned n = 1; n < 60; n++) {
            struct asker asker = asker_open(c);
            leat_mem_fail_after(n);
            asker_send(&asker, requests[i]);
            for (int turns = 0; turns < 6; turns++)
                rig_turn(&c->rig);
            leat_mem_fail_after(0);
            json_t *answer = asker_line(&asker);
            const json_t *kind = json_object_get(answer, "kind");
            if (kind == NULL && answer != NULL)
                assert_true(json_is_true(json_object_get(answer, "ok")));
            json_decref(answer);
            asker_close(&asker);
        }
    }
    struct asker asker = asker_open(c);
    asker_does(&asker, "{\"verb\":\"status\"}");
    asker_close(&asker);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, control_rig_setup, control_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_may_come_in_pieces),
        TEST(requests_are_answered_in_order),
        TEST(what_was_asked_before_the_end_is_answered),
        TEST(bad_requests_are_told_what_is_known),
        TEST(an_endless_line_is_refused),
        TEST(one_connection_too_many_is_told_so),
        TEST(who_does_not_read_is_not_read),
        TEST(reload_and_drain_are_the_programs),
        TEST(the_level_of_the_log_is_set),
        TEST(another_leat_is_left_alone),
        TEST(what_is_no_socket_is_never_removed),
        TEST(what_a_dead_leat_has_left_is_replaced),
        TEST(the_socket_of_another_is_not_removed_at_the_end),
        TEST(a_missing_directory_is_named),
        TEST(running_out_of_memory_costs_one_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
