/* leatctl - asks a running leat. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/descriptors.h"
#include "fields.h"
#include "link.h"
#include "order.h"
#include "proxy/json_out.h"
#include "show.h"
#include "words.h"

/* Then leat's silence is told of. */
#define SILENCE_MS 5000

enum exit_status {
    EXIT_DONE = 0,
    EXIT_REFUSED = 1,
    EXIT_USAGE = 2,
    EXIT_LOST = 3,
    EXIT_NO_SESSION = 4,
};

static enum exit_status fail(enum exit_status code, const char *sentence)
{
    char buf[LEAT_WORDS_MAX];
    struct leat_text text;

    leat_text_init(&text, buf, sizeof(buf));
    leat_words_add_plain(&text, leat_str_of(sentence));
    (void)fprintf(stderr, "leatctl: %s\n", buf);
    return code;
}

/* What was printed is on its way, or why it is not. False ends the program with *OUT. */
static bool flush(enum exit_status *out)
{
    char buf[LEAT_WORDS_MAX], reason[128];
    struct leat_text text;

    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return true;
    *out = EXIT_DONE;
    /* Whoever read it has enough, such as head. */
    if (errno != EPIPE) {
        leat_text_init(&text, buf, sizeof(buf));
        leat_text_add(&text, "writing the output failed: %s",
                      strerror_r(errno, reason, sizeof(reason)));
        *out = fail(EXIT_LOST, buf);
    }
    return false;
}

static void on_interrupt(int number)
{
    (void)number;
    _exit(EXIT_DONE);
}

static enum exit_status fail_as(const struct leat_error *err)
{
    return fail(err->status == LEAT_EUSAGE ? EXIT_USAGE : EXIT_LOST, err->text);
}

static enum exit_status no_leat(const char *path)
{
    struct leat_error err;

    (void)leat_error_set(&err, LEAT_EPROTOCOL, 0,
                         "what listens at %s does not answer as this leatctl's leat does: see "
                         "leatctl --json, and whether both are of one version",
                         path);
    return fail_as(&err);
}

/* Leat has said no. */
static enum exit_status refused(const json_t *answer, const char *path)
{
    const char *kind = json_string_value(json_object_get(answer, "kind"));
    char text[LEAT_WORDS_MAX];

    if (kind == NULL || !json_is_string(json_object_get(answer, "error")))
        return no_leat(path);
    (void)fprintf(stderr, "leatctl: %s\n", leat_field_text(answer, "error", text));
    return strcmp(kind, "not_found") == 0 ? EXIT_NO_SESSION : EXIT_REFUSED;
}

static void print_line(struct leat_str line)
{
    (void)fwrite(line.ptr, 1, line.len, stdout);
    (void)fputc('\n', stdout);
}

/* The first line that comes. */
static enum exit_status take_answer(struct leat_link *link, const struct leat_order *order,
                                    const char *path)
{
    struct leat_str line;
    struct leat_error err;
    json_t *answer;
    enum leat_status status;
    enum exit_status code = EXIT_DONE;

    if (!leat_link_wait(link, SILENCE_MS))
        (void)fputs("leatctl: leat has accepted but does not answer yet\n", stderr);
    status = leat_link_take_line(link, &line, &err);
    if (status == LEAT_ECLOSED)
        return fail(EXIT_LOST, "leat has ended the connection without an answer");
    if (status != LEAT_OK)
        return fail_as(&err);
    answer = json_loadb(line.ptr, line.len, JSON_ALLOW_NUL, NULL);
    if (order->json && answer != NULL)
        print_line(line);
    if (!json_is_boolean(json_object_get(answer, "ok")))
        code = no_leat(path);
    else if (json_is_false(json_object_get(answer, "ok")))
        code = refused(answer, path);
    else if (!order->json)
        status = leat_show_answer(order, answer, stdout);
    if (status == LEAT_EPROTOCOL)
        code = no_leat(path);
    else if (status == LEAT_ENOMEM)
        code = fail(EXIT_LOST, "out of memory for what leat has answered");
    json_decref(answer);
    return code;
}

/* Whether EVENT is the last one: of a trace its session's end, else that leat ends. */
static bool is_last(const struct leat_order *order, const json_t *event)
{
    const char *kind = json_string_value(json_object_get(event, "event"));

    if (kind == NULL)
        return false;
    return strcmp(kind, "stopped") == 0 ||
           (order->verb->id == LEAT_VERB_SESSION && strcmp(kind, "ended") == 0);
}

/* Prints events as they come, until either side has enough. */
static enum exit_status watch(struct leat_link *link, const struct leat_order *order,
                              const char *path)
{
    enum exit_status code;
    enum leat_status status;
    struct leat_str line;
    struct leat_error err;
    bool is_over = false;

    (void)signal(SIGINT, on_interrupt);
    if (!order->json)
        (void)fputs("watching; Ctrl-C ends it\n", stderr);
    while ((status = leat_link_take_line(link, &line, &err)) == LEAT_OK) {
        json_t *event = json_loadb(line.ptr, line.len, JSON_ALLOW_NUL, NULL);
        if (event == NULL)
            return no_leat(path);
        is_over = is_last(order, event);
        if (order->json)
            print_line(line);
        else
            leat_show_event(event, stdout);
        json_decref(event);
        if (!flush(&code))
            return code;
    }
    return (status == LEAT_ECLOSED && is_over) ? EXIT_DONE : fail_as(&err);
}

static enum exit_status ask(const struct leat_order *order, const char *path)
{
    struct leat_link *link;
    struct leat_error err;
    enum exit_status code, written;
    enum leat_status status = leat_link_new(path, &link, &err);
    char *request;

    if (status != LEAT_OK)
        return fail_as(&err);
    request = json_dumps(order->request, JSON_COMPACT);
    if (request != NULL)
        status = leat_link_send(link, leat_str_of(request), &err);
    else
        status = leat_error_set(&err, LEAT_ENOMEM, 0, "out of memory");
    code = (status == LEAT_OK) ? take_answer(link, order, path) : fail_as(&err);
    if (!flush(&written))
        code = (code == EXIT_DONE) ? written : code;
    else if (code == EXIT_DONE && order->watches)
        code = watch(link, order, path);
    leat_mem_free(request);
    leat_link_free(link);
    return code;
}

static const char *socket_of(const struct leat_order *order)
{
    const char *named = secure_getenv("LEAT_SOCKET");

    if (order->socket != NULL)
        return order->socket;
    return (named != NULL && named[0] != '\0') ? named : LEAT_CTL_SOCKET;
}

int main(int argc, char **argv)
{
    struct leat_order order;
    struct leat_error err;
    enum exit_status code = EXIT_DONE;

    leat_open_standard_descriptors();
    leat_json_setup();
    (void)signal(SIGPIPE, SIG_IGN);
    if (leat_order_parse(argc, argv, &order, &err) != LEAT_OK)
        return (int)fail_as(&err);
    if (order.version)
        (void)printf("leatctl %s\n", LEAT_VERSION);
    else if (order.help)
        leat_verb_print_help(order.verb, stdout);
    else
        code = ask(&order, socket_of(&order));
    if (code == EXIT_DONE)
        (void)flush(&code);
    leat_order_fini(&order);
    return (int)code;
}
