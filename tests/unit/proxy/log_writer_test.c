/*
 * Tests of proxy/log_writer.h. Reads from the pipe wait for what must come; a test that fails
 * may hang instead, and is ended by the runner.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "proxy/log_writer.h"

struct sink {
    int fds[2];
    struct leat_log_writer *writer;
    struct leat_log *log;
    FILE *lines; /* the reading end */
};

static int setup(void **state)
{
    struct sink *sink = calloc(1, sizeof(*sink));

    if (sink == NULL || pipe2(sink->fds, O_CLOEXEC) != 0)
        return -1;
    sink->lines = fdopen(sink->fds[0], "r");
    *state = sink;
    return leat_log_writer_new(sink->fds[1], LEAT_LOG_INFO, &sink->writer, &sink->log) != LEAT_OK;
}

/* Ends the writer and then the pipe, so that a reader comes to its end. */
static void finish(struct sink *sink)
{
    leat_log_writer_free(sink->writer);
    sink->writer = NULL;
    (void)close(sink->fds[1]);
    sink->fds[1] = -1;
}

static int teardown(void **state)
{
    struct sink *sink = *state;

    if (sink->fds[1] >= 0)
        finish(sink);
    (void)fclose(sink->lines);
    free(sink);
    return 0;
}

/* Reads a line without its newline. False at the end. */
static bool next_line(struct sink *sink, char *buf, size_t cap)
{
    if (fgets(buf, (int)cap, sink->lines) == NULL)
        return false;
    size_t len = strlen(buf);
    assert_true(len > 0 && buf[len - 1] == '\n');
    buf[len - 1] = '\0';
    return true;
}

/* LINE is "2024-01-31T12:00:00.000Z LEVEL REST". */
static void assert_line(const char *line, const char *rest)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ ";

    for (size_t i = 0; form[i] != '\0'; i++) {
        if (form[i] == 'd')
            assert_in_range(line[i], '0', '9');
        else
            assert_int_equal(line[i], form[i]);
    }
    assert_string_equal(line + sizeof(form) - 1, rest);
}

static void lines_have_time_and_level(void **state)
{
    struct sink *sink = *state;
    char line[256];

    leat_log_line(sink->log, LEAT_LOG_INFO, "hello=%d", 1);
    assert_true(next_line(sink, line, sizeof(line)));
    assert_line(line, "info hello=1");
    leat_log_line(sink->log, LEAT_LOG_DEBUG, "not shown");
    leat_log_line(sink->log, LEAT_LOG_ERROR, "%s", "");
    leat_log_line(sink->log, LEAT_LOG_WARN, "last");
    assert_true(next_line(sink, line, sizeof(line)));
    assert_line(line, "error ");
    assert_true(next_line(sink, line, sizeof(line)));
    assert_line(line, "warn last");
}

static void what_is_left_is_written_at_the_end(void **state)
{
    struct sink *sink = *state;
    char line[256], expected[64], last_time[32] = "";

    /* Less than a pipe holds, so nobody has to read meanwhile. */
    for (int i = 0; i < 1000; i++)
        leat_log_line(sink->log, LEAT_LOG_INFO, "line=%d", i);
    finish(sink);
    for (int i = 0; i < 1000; i++) {
        assert_true(next_line(sink, line, sizeof(line)));
        (void)snprintf(expected, sizeof(expected), "info line=%d", i);
        assert_line(line, expected);
        line[24] = '\0';
        assert_true(strcmp(line, last_time) >= 0);
        (void)snprintf(last_time, sizeof(last_time), "%.24s", line);
    }
    assert_false(next_line(sink, line, sizeof(line)));
}

static void *read_all(void *arg)
{
    struct sink *sink = arg;
    char line[2048];
    unsigned *told = calloc(2, sizeof(*told)); /* lines that came, and that were told lost */

    while (told != NULL && next_line(sink, line, sizeof(line))) {
        const char *dropped = strstr(line, "warn log lines dropped=");
        if (dropped == NULL)
            told[0]++;
        else
            told[1] += (unsigned)strtoul(strchr(dropped, '=') + 1, NULL, 10);
    }
    return told;
}

static void a_flood_is_dropped_counted_and_told(void **state)
{
    struct sink *sink = *state;
    char filler[900];
    pthread_t reader;
    void *result = NULL;

    memset(filler, 'x', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    /* Nobody reads: 9 MB go nowhere, and this loop does not wait for anybody. */
    for (int i = 0; i < 10000; i++)
        leat_log_line(sink->log, LEAT_LOG_INFO, "%s", filler);
    assert_int_equal(pthread_create(&reader, NULL, read_all, sink), 0);
    finish(sink);
    assert_int_equal(pthread_join(reader, &result), 0);
    assert_non_null(result);
    const unsigned *told = result;
    /* Two buffers and what a pipe holds. */
    assert_in_range(told[0], 1000, 3000);
    assert_int_equal(told[0] + told[1], 10000);
    free(result);
}

#define THREADS 8
#define LINES_EACH 2000

struct author {
    const struct leat_log *log;
    pthread_t thread;
    int id;
};

static void *write_lines(void *arg)
{
    struct author *author = arg;

    for (int i = 0; i < LINES_EACH; i++)
        leat_log_line(author->log, LEAT_LOG_INFO, "author=%d line=%d", author->id, i);
    return NULL;
}

static void threads_do_not_mix_their_lines(void **state)
{
    struct sink *sink = *state;
    struct author authors[THREADS];
    int next[THREADS] = {0}, id, number;
    char line[256];

    for (int i = 0; i < THREADS; i++) {
        authors[i] = (struct author){.log = sink->log, .id = i};
        assert_int_equal(pthread_create(&authors[i].thread, NULL, write_lines, &authors[i]), 0);
    }
    /* 16,000 lines of 50 bytes are less than a buffer: none is dropped, however late we read. */
    for (int i = 0; i < THREADS * LINES_EACH; i++) {
        assert_true(next_line(sink, line, sizeof(line)));
        assert_int_equal(sscanf(line + 25, "info author=%d line=%d", &id, &number), 2);
        assert_in_range(id, 0, THREADS - 1);
        assert_int_equal(number, next[id]++);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(authors[i].thread, NULL), 0);
}

static void a_slow_descriptor_that_does_not_block_is_waited_for(void **state)
{
    struct sink *sink = *state;
    char filler[900];
    void *result;

    assert_int_equal(fcntl(sink->fds[1], F_SETFL, O_NONBLOCK), 0);
    memset(filler, 'x', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    for (int i = 0; i < 500; i++) /* more than a pipe holds, less than a buffer */
        leat_log_line(sink->log, LEAT_LOG_INFO, "%s", filler);
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_all, sink), 0);
    finish(sink);
    assert_int_equal(pthread_join(reader, &result), 0);
    assert_non_null(result);
    assert_int_equal(((const unsigned *)result)[0], 500);
    free(result);
}

static void a_reader_that_is_gone_harms_nobody(void **state)
{
    struct sink *sink = *state;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)close(sink->fds[0]);
    for (int i = 0; i < 5000; i++)
        leat_log_line(sink->log, LEAT_LOG_INFO, "nobody hears this");
    finish(sink);
}

/* Frees while the thread hangs in write(). The writer is left to it, so this comes last. */
static void free_does_not_wait_for_ever(void **state)
{
    static struct sink *kept; /* the thread may still use the pipe: so it stays */
    char filler[900];

    kept = *state;
    memset(filler, 'x', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    for (int i = 0; i < 2000; i++)
        leat_log_line(kept->log, LEAT_LOG_INFO, "%s", filler);
    leat_log_writer_free(kept->writer);
    kept->writer = NULL;
}

static int leave(void **state)
{
    (void)state;
    return 0;
}

static void want_of_memory_is_told(void **state)
{
    struct leat_log_writer *writer = NULL;
    struct leat_log *log = NULL;

    (void)state;
    for (unsigned n = 1; n <= 3; n++) {
        leat_mem_fail_after(n);
        assert_int_equal(leat_log_writer_new(STDERR_FILENO, LEAT_LOG_INFO, &writer, &log),
                         LEAT_ENOMEM);
        assert_null(writer);
    }
    leat_mem_fail_after(4);
    assert_int_equal(leat_log_writer_new(STDERR_FILENO, LEAT_LOG_INFO, &writer, &log), LEAT_OK);
    leat_mem_fail_after(0);
    leat_log_writer_free(writer);
    leat_log_writer_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_have_time_and_level),
        TEST(what_is_left_is_written_at_the_end),
        TEST(a_flood_is_dropped_counted_and_told),
        TEST(threads_do_not_mix_their_lines),
        TEST(a_slow_descriptor_that_does_not_block_is_waited_for),
        TEST(a_reader_that_is_gone_harms_nobody),
        cmocka_unit_test(want_of_memory_is_told),
        cmocka_unit_test_setup_teardown(free_does_not_wait_for_ever, setup, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
