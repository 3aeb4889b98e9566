/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/config_place.h"
#include "proxy/config_yaml.h"
#include "proxy/snapshot.h"
#include "tls/server.h"

static const char file_option[] = "config";

/* An option as it stands on the command line: --NAME VALUE, --NAME=VALUE, --NAME or -c FILE. */
struct option {
    struct leat_str name;
    struct leat_str value;
};

static bool is_file_option(struct leat_str name)
{
    return leat_str_equal(name, leat_str_of(file_option));
}

static bool stands_alone(struct leat_str name)
{
    return leat_config_is_flag(name) || leat_str_equal(name, leat_str_of("help")) ||
           leat_str_equal(name, leat_str_of("version"));
}

static bool is_known(struct leat_str name)
{
    return is_file_option(name) || stands_alone(name) || leat_config_has_option(name);
}

/* Takes the option at ARGV[*AT], and its value if it has one, advancing *AT past them. */
static enum leat_status take_option(const struct leat_command *command, int *at, struct option *out,
                                    struct leat_error *err)
{
    const char *arg = command->argv[*at];
    const char *equals = strchr(arg, '=');

    *at += 1;
    *out = (struct option){.value = {"", 0}};
    if (strcmp(arg, "-c") == 0) {
        out->name = leat_str_of(file_option);
    } else if (strncmp(arg, "--", 2) == 0 && arg[2] != '\0') {
        out->name = leat_str_of(arg + 2);
    } else {
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "unexpected argument \"%s\"; options begin with --, a file is named "
                              "with -c, see leat --help",
                              arg);
    }
    if (equals != NULL) {
        out->name.len = (size_t)(equals - out->name.ptr);
        out->value = leat_str_of(equals + 1);
    } else if (!is_known(out->name)) {
        return LEAT_OK; /* refused when it is set */
    } else if (*at < command->argc && !stands_alone(out->name)) {
        out->value = leat_str_of(command->argv[(*at)++]);
    } else if (!stands_alone(out->name)) {
        return leat_error_set(err, LEAT_EUSAGE, 0, "%s: a value has to follow", arg);
    }
    return LEAT_OK;
}

enum leat_status leat_command_parse(int argc, char **argv, struct leat_command *out,
                                    struct leat_error *err)
{
    struct leat_command command = {.argc = argc - 1, .argv = argv + 1};
    struct option option;

    if (command.argc > 0 && strcmp(command.argv[0], "check") == 0) {
        command.check = true;
        command.argc--;
        command.argv++;
    }
    for (int at = 0; at < command.argc;) {
        enum leat_status status = take_option(&command, &at, &option, err);
        if (status != LEAT_OK)
            return status;
        command.help = command.help || leat_str_equal(option.name, leat_str_of("help"));
        command.version = command.version || leat_str_equal(option.name, leat_str_of("version"));
        if (is_file_option(option.name) && command.file != NULL)
            return leat_error_set(err, LEAT_EUSAGE, 0, "-c: there can be one file only");
        if (is_file_option(option.name))
            command.file = option.value.ptr; /* it reaches to the argument's end */
    }
    if (command.check && command.argc == 0)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "check: say what to check, such as leat check -c leat.yaml");
    *out = command;
    return LEAT_OK;
}

static enum leat_status set_options(const struct leat_command *command, struct leat_config *config,
                                    struct leat_error *err)
{
    struct option option;

    for (int at = 0; at < command->argc;) {
        enum leat_status status = take_option(command, &at, &option, err);
        if (status == LEAT_OK && !is_file_option(option.name))
            status = leat_config_set_option(config, option.name, option.value, err);
        if (status != LEAT_OK)
            return status;
    }
    return LEAT_OK;
}

enum leat_status leat_command_load(const struct leat_command *command,
                                   const struct leat_snapshot *old, struct leat_snapshot **out,
                                   struct leat_error *err)
{
    struct leat_config *config;
    enum leat_status status = leat_config_new(&config, err);

    if (status != LEAT_OK)
        return status;
    if (command->file != NULL)
        status = leat_config_read_yaml(config, command->file, err);
    if (status == LEAT_OK)
        status = set_options(command, config, err);
    if (status == LEAT_OK)
        status = leat_config_finish(config, err);
    if (status == LEAT_OK && old != NULL)
        status = leat_snapshot_may_replace(old->config, config, err);
    if (status == LEAT_OK)
        status = leat_snapshot_new(config, old, out, err);
    if (status != LEAT_OK)
        leat_config_free(config);
    return status;
}

static const char *date(int64_t seconds, char buf[32])
{
    time_t time = (time_t)seconds;
    struct tm utc;

    (void)gmtime_r(&time, &utc);
    (void)strftime(buf, 32, "%Y-%m-%d %H:%M UTC", &utc);
    return buf;
}

/* What `leat check` finds about certificates: the first that is not valid now. */
struct dates {
    const char *file;
    int64_t now;
    enum leat_status status;
    struct leat_error *err;
};

/* Notes that KEY of the item at PLACE, on LINE, is WRONG. */
static void note(struct dates *dates, const char *place, unsigned line, const char *key,
                 const char *wrong)
{
    char buf[400];
    struct leat_text text;

    leat_text_init(&text, buf, sizeof(buf));
    leat_place_add_file(&text, line > 0 ? dates->file : NULL, line);
    leat_text_add(&text, "%s.%s: %s", place, key, wrong);
    dates->status = leat_error_set(dates->err, LEAT_EUSAGE, 0, "%s", buf);
}

/* Looks at what CTX, configured at PLACE, verifies peers by. */
static void check_trust(struct dates *dates, const struct leat_snapshot_ctx_place *place,
                        const struct leat_tls_ctx *ctx)
{
    const struct leat_tls_trust_info *trust = leat_tls_ctx_trust(ctx);
    char day[32], wrong[100];

    if (leat_tls_ctx_trusts_only_expired(ctx, dates->now)) {
        note(dates, place->path, place->ca_line, place->ca_key,
             "all authorities in it have expired");
    } else if (trust != NULL && trust->crls > 0 && trust->crl_next_until < dates->now) {
        (void)snprintf(wrong, sizeof(wrong), "a revocation list is out of date since %s",
                       date(trust->crl_next_until, day));
        note(dates, place->path, place->crl_line, "crl", wrong);
    }
}

/* Looks at the certificate that CTX, configured at PLACE, shows. */
static void check_certificate(struct dates *dates, const struct leat_snapshot_ctx_place *place,
                              const struct leat_tls_ctx *ctx)
{
    const char *cert = leat_tls_config_cert_file(leat_tls_ctx_config(ctx));
    int64_t from, until;
    char day[32], wrong[300];

    if (!leat_tls_ctx_validity(ctx, &from, &until))
        return;
    if (dates->now >= from && dates->now <= until) {
        (void)printf("%s.cert: %s is valid until %s%s\n", place->path, cert, date(until, day),
                     until - dates->now < LEAT_TLS_RENEW_S ? ": renew it soon" : "");
        return;
    }
    bool is_early = dates->now < from;
    (void)snprintf(wrong, sizeof(wrong), "%s %s %s", cert,
                   is_early ? "is not valid before" : "has expired on",
                   date(is_early ? from : until, day));
    note(dates, place->path, place->cert_line, "cert", wrong);
}

static void check_dates(void *arg, const struct leat_snapshot_ctx_place *place,
                        struct leat_tls_ctx *ctx)
{
    struct dates *dates = arg;

    if (dates->status == LEAT_OK)
        check_trust(dates, place, ctx);
    if (dates->status == LEAT_OK)
        check_certificate(dates, place, ctx);
}

/* Says what would keep leat from making its control socket. The directory may be made by whoever
 * starts leat. */
static enum leat_status check_control(const char *path, struct leat_error *err)
{
    char dir[LEAT_ADDR_PATH_MAX + 1];
    const char *slash;
    struct stat info;

    if (path == NULL)
        return LEAT_OK;
    if (lstat(path, &info) == 0 && !S_ISSOCK(info.st_mode))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "control.socket: %s is there and is no socket: remove it or choose "
                              "another name",
                              path);
    slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return LEAT_OK;
    (void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
    if (stat(dir, &info) != 0)
        (void)printf("control.socket: its directory %s does not exist: it has to when leat "
                     "starts\n",
                     dir);
    else if (!S_ISDIR(info.st_mode))
        return leat_error_set(err, LEAT_EUSAGE, 0, "control.socket: %s is no directory", dir);
    return LEAT_OK;
}

enum leat_status leat_command_check(const struct leat_snapshot *snapshot, struct leat_error *err)
{
    const struct leat_config *config = snapshot->config;
    struct dates dates = {
        .file = config->file, .now = (int64_t)time(NULL), .status = LEAT_OK, .err = err};

    leat_snapshot_each_ctx(snapshot, check_dates, &dates);
    if (dates.status != LEAT_OK)
        return dates.status;
    enum leat_status status = check_control(config->control_socket, err);
    if (status != LEAT_OK)
        return status;
    (void)printf("%s: ok: listeners=%zu backends=%zu farms=%zu routes=%zu\n",
                 config->file != NULL ? config->file : "command line", config->listeners.count,
                 config->backends.count, config->farms.count, config->routes.count);
    return LEAT_OK;
}
