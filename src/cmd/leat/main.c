/* leat - the proxy. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "loop/io.h"
#include "loop/loop.h"
#include "proxy/config.h"
#include "proxy/engine.h"
#include "proxy/log_writer.h"

#define EXIT_USAGE 2

struct program {
    struct leat_config *config;
    struct leat_log_writer *writer;
    struct leat_log *log;
    struct leat_loop *loop;
    struct leat_engine *engine;
    struct leat_io signals;
    bool draining;
};

static void print_help(void)
{
    (void)printf("leat - a TLS-first proxy for AMQP 0-9-1\n\n"
                 "usage: leat --listen URL --cert FILE --key FILE --backend URL [OPTION]...\n\n"
                 "  leat --listen amqps://0.0.0.0:5671 --cert cert.pem --key key.pem \\\n"
                 "       --backend amqp://127.0.0.1:5672\n\n"
                 "An option's value may also follow a '='. Times are such as 500ms, 10s, 2m, 1h; "
                 "sizes\nsuch as 4096, 64KiB, 1MiB. Defaults stand in brackets.\n\n");
    leat_config_print_help(stdout);
    (void)printf("  %-30s %s\n  %-30s %s\n\n"
                 "SIGUSR1 logs a line of counters. SIGTERM and SIGINT drain and stop; a second "
                 "one stops at\nonce. Exit status: 0 after a stop, 2 if leat could not start.\n",
                 "--version", "print the version", "--help", "print this");
}

static int fail(const char *sentence)
{
    (void)fprintf(stderr, "leat: %s\n", sentence);
    return EXIT_USAGE;
}

/* Takes the option at ARGV[*AT], and its value if it has one, advancing *AT past them. */
static enum leat_status take_option(struct leat_config *config, int argc, char **argv, int *at,
                                    struct leat_error *err)
{
    const char *arg = argv[*at];

    if (strncmp(arg, "--", 2) != 0 || arg[2] == '\0') {
        err->status = LEAT_EUSAGE;
        (void)snprintf(err->text, sizeof(err->text),
                       "unexpected argument \"%s\"; options begin with --, see leat --help", arg);
        return LEAT_EUSAGE;
    }
    struct leat_str name = leat_str_of(arg + 2), value = {"", 0};
    const char *equals = strchr(arg, '=');
    *at += 1;
    if (equals != NULL) {
        name.len = (size_t)(equals - name.ptr);
        value = leat_str_of(equals + 1);
    } else if (!leat_config_is_flag(name)) {
        if (*at < argc)
            value = leat_str_of(argv[(*at)++]);
        else if (leat_config_has(name)) {
            err->status = LEAT_EUSAGE;
            (void)snprintf(err->text, sizeof(err->text), "--%.*s: a value has to follow",
                           (int)name.len, name.ptr);
            return LEAT_EUSAGE;
        }
    }
    return leat_config_set(config, name, value, err);
}

static enum leat_status take_options(struct leat_config *config, int argc, char **argv,
                                     struct leat_error *err)
{
    for (int at = 1; at < argc;) {
        enum leat_status status = take_option(config, argc, argv, &at, err);
        if (status != LEAT_OK)
            return status;
    }
    return leat_config_finish(config, err);
}

static void on_drained(void *arg)
{
    struct program *program = arg;

    leat_loop_stop(program->loop);
}

static void on_stop_signal(struct program *program)
{
    if (program->draining) {
        leat_log_line(program->log, LEAT_LOG_WARN, "stopping at once: a second signal came");
        leat_loop_stop(program->loop);
        return;
    }
    program->draining = true;
    leat_engine_drain(program->engine, on_drained, program);
}

static void on_signals(struct leat_io *io, void *arg)
{
    struct program *program = arg;
    struct signalfd_siginfo info;

    while (read(io->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGUSR1)
            leat_engine_log_status(program->engine);
        else
            on_stop_signal(program);
    }
}

/* Signals are read from a descriptor: no worker is ever interrupted. */
static enum leat_status watch_signals(struct program *program, struct leat_error *err)
{
    sigset_t set;
    int fd;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd >= 0 &&
        leat_io_open(&program->signals, program->loop, fd, on_signals, program) == LEAT_OK)
        return LEAT_OK;
    err->status = LEAT_EIO;
    (void)snprintf(err->text, sizeof(err->text), "watching signals: %s", strerror(errno));
    return LEAT_EIO;
}

static enum leat_status start(struct program *program, struct leat_error *err)
{
    enum leat_status status = leat_loop_new(&program->loop, err);

    if (status == LEAT_OK)
        status = watch_signals(program, err);
    if (status != LEAT_OK)
        return status;
    status = leat_log_writer_new(STDERR_FILENO, (enum leat_log_level)program->config->log_level,
                                 &program->writer, &program->log);
    if (status != LEAT_OK) {
        (void)snprintf(err->text, sizeof(err->text), "starting the log: out of memory");
        return status;
    }
    status = leat_engine_new(program->config, program->log, program->loop, &program->engine, err);
    if (status != LEAT_OK)
        return status;
    return leat_engine_start(program->engine, err);
}

static int run(struct program *program, int argc, char **argv)
{
    struct leat_error err = {.status = LEAT_OK};
    enum leat_status status = leat_config_new(&program->config, &err);

    if (status == LEAT_OK)
        status = take_options(program->config, argc, argv, &err);
    if (status == LEAT_OK)
        status = start(program, &err);
    if (status != LEAT_OK)
        return fail(err.text);
    leat_loop_run(program->loop);
    return 0;
}

int main(int argc, char **argv)
{
    struct program program = {.signals = {.fd = -1}};
    int code;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            print_help();
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            (void)printf("leat %s\n", LEAT_VERSION);
            return 0;
        }
    }
    code = run(&program, argc, argv);
    leat_engine_free(program.engine);
    if (program.log != NULL && code == 0)
        leat_log_line(program.log, LEAT_LOG_INFO, "stopped");
    leat_log_writer_free(program.writer);
    leat_io_close(&program.signals);
    leat_loop_free(program.loop);
    leat_config_free(program.config);
    return code;
}
