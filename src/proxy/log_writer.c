/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

#define CAPACITY (1024u * 1024u)

struct leat_log_writer {
    struct leat_log log;
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_cond_t done;
    bool stopping;
    bool ended;
    uint64_t dropped;
    size_t len;
    char *filling; /* what the callers append to */
    char *writing; /* what the thread writes from */
};

/* Appends "TIME LEVEL LINE\n". The lock is held. */
static void append(struct leat_log_writer *writer, const char *level, struct leat_str line)
{
    struct timespec now;
    struct tm utc;
    char head[64];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    size_t len = strftime(head, sizeof(head), "%Y-%m-%dT%H:%M:%S", &utc);
    len += (size_t)snprintf(head + len, sizeof(head) - len, ".%03dZ %s ",
                            (int)(now.tv_nsec / 1000000), level);
    if (CAPACITY - writer->len < len + line.len + 1) {
        writer->dropped++;
        return;
    }
    char *at = writer->filling + writer->len;
    memcpy(at, head, len);
    memcpy(at + len, line.ptr, line.len);
    at[len + line.len] = '\n';
    writer->len += len + line.len + 1;
}

static void take_line(void *arg, enum leat_log_level level, struct leat_str line)
{
    struct leat_log_writer *writer = arg;

    (void)pthread_mutex_lock(&writer->lock);
    append(writer, leat_log_level_name(level), line);
    (void)pthread_cond_signal(&writer->more);
    (void)pthread_mutex_unlock(&writer->lock);
}

/* Writes all LEN bytes, waiting as long as it takes; gives up if the descriptor is dead. */
static void write_out(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            (void)poll(&wait, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return;
        }
    }
}

/* Swaps the buffers when there is something to write. The lock is held. */
static size_t take(struct leat_log_writer *writer)
{
    size_t len;

    while (writer->len == 0 && !writer->stopping)
        (void)pthread_cond_wait(&writer->more, &writer->lock);
    len = writer->len;
    char *swap = writer->writing;
    writer->writing = writer->filling;
    writer->filling = swap;
    writer->len = 0;
    if (writer->dropped > 0) {
        char text[96];
        int n = snprintf(text, sizeof(text), "log lines dropped=%llu: nobody reads the log",
                         (unsigned long long)writer->dropped);
        writer->dropped = 0;
        append(writer, leat_log_level_name(LEAT_LOG_WARN), (struct leat_str){text, (size_t)n});
    }
    return len;
}

static void *run(void *arg)
{
    struct leat_log_writer *writer = arg;

    (void)pthread_mutex_lock(&writer->lock);
    for (;;) {
        size_t len = take(writer);
        if (len == 0)
            break;
        (void)pthread_mutex_unlock(&writer->lock);
        write_out(writer->fd, writer->writing, len);
        (void)pthread_mutex_lock(&writer->lock);
    }
    writer->ended = true;
    (void)pthread_cond_signal(&writer->done);
    (void)pthread_mutex_unlock(&writer->lock);
    return NULL;
}

/* The waits are measured with a clock that nobody sets. */
static void init_sync(struct leat_log_writer *writer)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&writer->lock, NULL);
    (void)pthread_cond_init(&writer->more, &attr);
    (void)pthread_cond_init(&writer->done, &attr);
    (void)pthread_condattr_destroy(&attr);
}

static void free_all(struct leat_log_writer *writer)
{
    (void)pthread_mutex_destroy(&writer->lock);
    (void)pthread_cond_destroy(&writer->more);
    (void)pthread_cond_destroy(&writer->done);
    leat_mem_free(writer->filling);
    leat_mem_free(writer->writing);
    leat_mem_free(writer);
}

enum leat_status leat_log_writer_new(int fd, enum leat_log_level level,
                                     struct leat_log_writer **out, struct leat_log **out_log)
{
    struct leat_log_writer *writer = leat_mem_zalloc(sizeof(*writer));

    if (writer == NULL)
        return LEAT_ENOMEM;
    writer->fd = fd;
    writer->log.level = (int)level;
    writer->log.write = take_line;
    writer->log.arg = writer;
    writer->filling = leat_mem_alloc(CAPACITY);
    writer->writing = leat_mem_alloc(CAPACITY);
    init_sync(writer);
    enum leat_status status = LEAT_OK;
    if (writer->filling == NULL || writer->writing == NULL)
        status = LEAT_ENOMEM;
    else if (pthread_create(&writer->thread, NULL, run, writer) != 0)
        status = LEAT_EIO;
    if (status != LEAT_OK) {
        free_all(writer);
        return status;
    }
    *out = writer;
    *out_log = &writer->log;
    return LEAT_OK;
}

void leat_log_writer_free(struct leat_log_writer *writer)
{
    struct timespec until;
    bool ended;

    if (writer == NULL)
        return;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 1;
    (void)pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    (void)pthread_cond_signal(&writer->more);
    while (!writer->ended && pthread_cond_timedwait(&writer->done, &writer->lock, &until) == 0) {
    }
    ended = writer->ended;
    (void)pthread_mutex_unlock(&writer->lock);
    if (!ended) {
        /* The thread hangs in write(): the process is about to exit and takes it along. */
        (void)pthread_detach(writer->thread);
        return;
    }
    (void)pthread_join(writer->thread, NULL);
    free_all(writer);
}
