/* leat - the proxy. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "cmd/descriptors.h"
#include "load.h"
#include "loop/io.h"
#include "loop/loop.h"
#include "proxy/config.h"
#include "proxy/control.h"
#include "proxy/engine.h"
#include "proxy/log_writer.h"
#include "proxy/snapshot.h"

#define EXIT_USAGE 2

struct program {
    struct leat_command command;
    struct leat_log_writer *writer;
    struct leat_log *log;
    struct leat_loop *loop;
    struct leat_engine *engine;
    struct leat_control *control; /* NULL without control.socket */
    struct leat_io signals;
    bool draining;
};

static void print_help(void)
{
    (void)printf("leat - a TLS-first proxy for AMQP 0-9-1\n\n"
                 "usage: leat --listen URL --cert FILE --key FILE --backend URL [OPTION]...\n"
                 "       leat -c FILE [OPTION]...         configured by a file, see the reference\n"
                 "       leat check -c FILE [OPTION]...   validate it, open every file it names\n\n"
                 "  leat --listen amqps://0.0.0.0:5671 --cert cert.pem --key key.pem \\\n"
                 "       --backend amqp://127.0.0.1:5672\n\n"
                 "An option's value may also follow a '='. Times are such as 500ms, 10s, 2m, 1h; "
                 "sizes\nsuch as 4096, 64KiB, 1MiB. Defaults stand in brackets.\n\n");
    leat_config_print_help(stdout);
    (void)printf(
        "  %-30s %s\n  %-30s %s\n\n"
        "SIGHUP reads file and certificates again and changes over, or changes nothing and "
        "says\nwhy. SIGUSR1 logs a line of counters. SIGTERM and SIGINT drain and stop; a "
        "second one\nstops at once. Exit status: 0 after a stop, 2 if leat could not "
        "start.\n",
        "--version", "print the version", "--help", "print this");
}

static int fail(const struct leat_error *err)
{
    (void)fprintf(stderr, "leat: %s\n", err->text);
    return EXIT_USAGE;
}

static void renew_control(struct program *program)
{
    struct leat_error err;

    if (leat_control_renew(program->control, &err) != LEAT_OK)
        leat_log_line(program->log, LEAT_LOG_ERROR, "no control socket: %s", err.text);
}

/* All or nothing: what is wrong leaves the configuration in force as it is. */
static enum leat_status reload(void *arg, struct leat_error *err)
{
    struct program *program = arg;
    struct leat_snapshot *snapshot;

    if (program->draining) {
        leat_log_line(program->log, LEAT_LOG_WARN, "no reload: leat is draining");
        return leat_error_set(err, LEAT_EUSAGE, 0, "no reload: leat is draining");
    }
    enum leat_status status =
        leat_command_load(&program->command, leat_engine_snapshot(program->engine), &snapshot, err);
    if (status != LEAT_OK) {
        leat_engine_reload_failed(program->engine, err->text);
        leat_log_line(program->log, LEAT_LOG_ERROR,
                      "reload failed, the configuration in force stays: %s", err->text);
        return status;
    }
    leat_engine_replace(program->engine, snapshot);
    leat_snapshot_unref(snapshot);
    renew_control(program);
    /* Whoever asked for it wants to know, also if the new level is above this. */
    program->log->write(program->log->arg, LEAT_LOG_INFO,
                        leat_str_of("reloaded: new connections have it from now on"));
    return LEAT_OK;
}

static void on_drained(void *arg)
{
    struct program *program = arg;

    leat_loop_stop(program->loop);
}

/* False if it is under way. */
static bool drain(void *arg)
{
    struct program *program = arg;

    if (program->draining)
        return false;
    program->draining = true;
    leat_engine_drain(program->engine, on_drained, program);
    return true;
}

static void on_stop_signal(struct program *program)
{
    if (drain(program))
        return;
    leat_log_line(program->log, LEAT_LOG_WARN, "stopping at once: a second signal came");
    leat_loop_stop(program->loop);
}

static void on_signal(struct program *program, uint32_t number)
{
    struct leat_error err;

    switch (number) {
    case SIGUSR1:
        leat_engine_log_status(program->engine);
        break;
    case SIGHUP:
        (void)reload(program, &err); /* what is wrong is logged */
        break;
    default:
        on_stop_signal(program);
        break;
    }
}

static void on_signals(struct leat_io *io, void *arg)
{
    struct signalfd_siginfo info;

    while (read(io->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        on_signal(arg, info.ssi_signo);
}

static void collect_signals(sigset_t *set)
{
    static const int numbers[] = {SIGUSR1, SIGHUP, SIGTERM, SIGINT};

    (void)sigemptyset(set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        (void)sigaddset(set, numbers[i]);
}

/* From here on signals wait until they are read: none ends a leat that is starting. */
static void hold_signals(void)
{
    sigset_t set;

    collect_signals(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGUSR2, SIG_IGN);
}

/* Signals are read from a descriptor: no worker is ever interrupted. */
static enum leat_status watch_signals(struct program *program, struct leat_error *err)
{
    sigset_t set;
    int fd;

    collect_signals(&set);
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd >= 0 &&
        leat_io_open(&program->signals, program->loop, fd, on_signals, program) == LEAT_OK)
        return LEAT_OK;
    return leat_error_set(err, LEAT_EIO, errno, "watching signals");
}

static enum leat_status start_control(struct program *program, const char *path,
                                      struct leat_error *err)
{
    const struct leat_control_ops ops = {.reload = reload, .drain = drain, .arg = program};

    if (path == NULL)
        return LEAT_OK;
    return leat_control_new(program->loop, leat_engine_shared(program->engine), path, &ops,
                            &program->control, err);
}

/* Starts the engine with SNAPSHOT. */
static enum leat_status start(struct program *program, struct leat_snapshot *snapshot,
                              struct leat_error *err)
{
    enum leat_status status = leat_loop_new(&program->loop, err);

    if (status == LEAT_OK)
        status = watch_signals(program, err);
    if (status != LEAT_OK)
        return status;
    status = leat_log_writer_new(STDERR_FILENO, (enum leat_log_level)snapshot->config->log_level,
                                 &program->writer, &program->log);
    if (status != LEAT_OK)
        return leat_error_set(err, status, 0, "starting the log: %s", leat_status_name(status));
    status = leat_engine_new(snapshot, program->log, program->loop, &program->engine, err);
    if (status == LEAT_OK)
        status = start_control(program, snapshot->config->control_socket, err);
    if (status == LEAT_OK)
        status = leat_engine_start(program->engine, err);
    return status;
}

static int run(struct program *program)
{
    struct leat_snapshot *snapshot;
    struct leat_error err;
    enum leat_status status = leat_command_load(&program->command, NULL, &snapshot, &err);

    if (status != LEAT_OK)
        return fail(&err);
    if (program->command.check)
        status = leat_command_check(snapshot, &err);
    else
        status = start(program, snapshot, &err);
    leat_snapshot_unref(snapshot);
    if (status != LEAT_OK)
        return fail(&err);
    if (!program->command.check)
        leat_loop_run(program->loop);
    return 0;
}

int main(int argc, char **argv)
{
    struct program program = {.signals = {.fd = -1}};
    struct leat_error err;
    int code;

    leat_open_standard_descriptors();
    if (leat_command_parse(argc, argv, &program.command, &err) != LEAT_OK)
        return fail(&err);
    if (program.command.help || program.command.version) {
        if (program.command.help)
            print_help();
        else
            (void)printf("leat %s\n", LEAT_VERSION);
        return 0;
    }
    if (!program.command.check)
        hold_signals();
    code = run(&program);
    leat_io_close(&program.signals);
    leat_engine_cut(program.engine);
    leat_control_free(program.control);
    leat_engine_free(program.engine);
    if (program.log != NULL && code == 0)
        leat_log_line(program.log, LEAT_LOG_INFO, "stopped");
    leat_log_writer_free(program.writer);
    leat_loop_free(program.loop);
    return code;
}
