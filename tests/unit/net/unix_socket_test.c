/*
 * Tests of net/unix_socket.h: what is in the way, and whose file it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "net/unix_socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"

struct place {
    struct leat_loop *loop;
    char dir[32], path[48];
    struct leat_addr addr;
};

static int make_place(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    assert_non_null(place);
    (void)snprintf(place->dir, sizeof(place->dir), "/tmp/leat-unix-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    (void)snprintf(place->path, sizeof(place->path), "%s/s", place->dir);
    assert_int_equal(leat_addr_from_path(leat_str_of(place->path), &place->addr, NULL), LEAT_OK);
    assert_int_equal(leat_loop_new(&place->loop, NULL), LEAT_OK);
    *state = place;
    return 0;
}

static int leave_place(void **state)
{
    struct place *place = *state;

    (void)unlink(place->path);
    (void)rmdir(place->path);
    assert_int_equal(rmdir(place->dir), 0);
    leat_loop_free(place->loop);
    free(place);
    return 0;
}

static int listen_there(const struct place *place, mode_t mode, struct leat_unix_socket *out)
{
    struct leat_error err = {.text = ""};
    int fd = -1;

    if (leat_unix_socket_listen(place->loop, &place->addr, mode, out, &fd, &err) != LEAT_OK)
        fail_msg("%s", err.text);
    return fd;
}

static void assert_refused(const struct place *place, const char *words)
{
    struct leat_unix_socket made = {.path = ""};
    struct leat_error err = {.text = ""};
    int fd = -1;

    assert_int_not_equal(leat_unix_socket_listen(place->loop, &place->addr, 0600, &made, &fd, &err),
                         LEAT_OK);
    assert_int_equal(fd, -1);
    assert_string_equal(made.path, "");
    if (strstr(err.text, words) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", err.text, words);
}

static void it_has_its_mode_and_goes_with_who_made_it(void **state)
{
    const struct place *place = *state;
    struct leat_unix_socket made;
    struct stat info;

    const mode_t before = umask(077);
    int fd = listen_there(place, 0666, &made);
    (void)umask(before);
    assert_int_equal(lstat(place->path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0666);
    leat_unix_socket_remove(&made);
    assert_int_not_equal(lstat(place->path, &info), 0);
    leat_unix_socket_remove(&made);
    (void)close(fd);
}

static void what_is_left_over_is_replaced(void **state)
{
    const struct place *place = *state;
    struct leat_unix_socket made;

    (void)close(listen_there(place, 0600, &made));
    assert_int_equal(access(place->path, F_OK), 0);
    int fd = listen_there(place, 0600, &made);
    leat_unix_socket_remove(&made);
    (void)close(fd);
}

static void what_answers_is_left_alone(void **state)
{
    const struct place *place = *state;
    struct leat_unix_socket made;
    char words[128];

    int fd = listen_there(place, 0600, &made);
    (void)snprintf(words, sizeof(words), "answers at %s, process %d: stop it", place->path,
                   (int)getpid());
    assert_refused(place, words);
    assert_int_equal(access(place->path, F_OK), 0);
    leat_unix_socket_remove(&made);
    (void)close(fd);
}

static void what_is_no_socket_is_left_alone(void **state)
{
    const struct place *place = *state;

    assert_int_equal(mkdir(place->path, 0700), 0);
    assert_refused(place, "is there and is no socket");
    assert_int_equal(access(place->path, F_OK), 0);
}

static void another_in_its_place_is_left_alone(void **state)
{
    const struct place *place = *state;
    struct leat_unix_socket made, other;

    int fd = listen_there(place, 0600, &made);
    assert_int_equal(unlink(place->path), 0);
    int other_fd = listen_there(place, 0600, &other);
    /* The same inode may have been given again; then it can't be told. */
    if (other.inode != made.inode) {
        leat_unix_socket_remove(&made);
        assert_int_equal(access(place->path, F_OK), 0);
    }
    leat_unix_socket_remove(&other);
    (void)close(fd);
    (void)close(other_fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, leave_place)
    const struct CMUnitTest tests[] = {
        TEST(it_has_its_mode_and_goes_with_who_made_it),
        TEST(what_is_left_over_is_replaced),
        TEST(what_answers_is_left_alone),
        TEST(what_is_no_socket_is_left_alone),
        TEST(another_in_its_place_is_left_alone),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
