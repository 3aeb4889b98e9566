/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "proxy/config_suggest.h"
#include "proxy/json_out.h"

#define WORDS_MAX 3 /* the verb and what belongs to it */

static const char *const filters[] = {"--vhost",  "--user",     "--backend",
                                      "--client", "--listener", "--state"};
static const char *const actions[] = {"show", "close", "kill", "trace"};
static const char *const flags[] = {"--json", "--follow", "--help", "--version"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct parser {
    int argc, at;
    char **argv;
    const char *words[WORDS_MAX];
    size_t count; /* of words */
    bool follow;
    json_t *filters;
    struct leat_order order;
};

static enum leat_status set(json_t *object, const char *name, json_t *value, struct leat_error *err)
{
    if (json_object_set_new(object, name, value) == 0)
        return LEAT_OK;
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
}

static bool is_one_of(const char *const names[], size_t count, struct leat_str name,
                      struct leat_suggest *suggest)
{
    for (size_t i = 0; i < count; i++) {
        if (leat_str_equal(leat_str_of(names[i]), name))
            return true;
        leat_suggest_offer(suggest, leat_str_of(names[i]));
    }
    return false;
}

static void set_flag(struct parser *parser, struct leat_str name)
{
    if (leat_str_equal(name, leat_str_of("--json")))
        parser->order.json = true;
    else if (leat_str_equal(name, leat_str_of("--follow")))
        parser->follow = true;
    else if (leat_str_equal(name, leat_str_of("--help")))
        parser->order.help = true;
    else
        parser->order.version = true;
}

static enum leat_status set_filter(struct parser *parser, struct leat_str name, const char *value,
                                   struct leat_error *err)
{
    char key[16];
    struct leat_text text;

    leat_text_init(&text, key, sizeof(key));
    leat_text_add(&text, "%.*s", (int)name.len - 2, name.ptr + 2);
    if (json_object_get(parser->filters, key) != NULL)
        return leat_error_set(err, LEAT_EUSAGE, 0, "--%s: it can be given once only", key);
    return set(parser->filters, key, leat_json_str(leat_str_of(value)), err);
}

/* The value of the option ARG, which is behind its '=', or the next argument. */
static enum leat_status take_value(struct parser *parser, const char *arg, const char *equals,
                                   const char **out, struct leat_error *err)
{
    if (equals != NULL)
        *out = equals + 1;
    else if (parser->at < parser->argc)
        *out = parser->argv[parser->at++];
    else
        return leat_error_set(err, LEAT_EUSAGE, 0, "%s: a value has to follow", arg);
    return LEAT_OK;
}

/* ARG begins with "--". */
static enum leat_status take_long(struct parser *parser, const char *arg, struct leat_error *err)
{
    static const char *const socket[] = {"--socket"};
    const char *equals = strchr(arg, '='), *value = NULL;
    struct leat_str name = {arg, equals != NULL ? (size_t)(equals - arg) : strlen(arg)};
    struct leat_suggest suggest;
    enum leat_status status;

    leat_suggest_init(&suggest, name);
    if (is_one_of(flags, COUNT(flags), name, &suggest)) {
        if (equals != NULL)
            return leat_error_set(err, LEAT_EUSAGE, 0, "%s: this option takes no value", arg);
        set_flag(parser, name);
        return LEAT_OK;
    }
    if (is_one_of(socket, 1, name, &suggest))
        return take_value(parser, arg, equals, &parser->order.socket, err);
    if (!is_one_of(filters, COUNT(filters), name, &suggest))
        return leat_error_set(err, LEAT_EUSAGE, 0, "there is no option \"%.*s\"; %s", (int)name.len,
                              arg, leat_suggest_finish(&suggest));
    status = take_value(parser, arg, equals, &value, err);
    return (status == LEAT_OK) ? set_filter(parser, name, value, err) : status;
}

static enum leat_status take_argument(struct parser *parser, struct leat_error *err)
{
    const char *arg = parser->argv[parser->at++];

    if (strncmp(arg, "--", 2) == 0)
        return take_long(parser, arg, err);
    if (strcmp(arg, "-h") == 0) {
        parser->order.help = true;
        return LEAT_OK;
    }
    if (strcmp(arg, "-s") == 0)
        return take_value(parser, arg, NULL, &parser->order.socket, err);
    if (arg[0] == '-')
        return leat_error_set(err, LEAT_EUSAGE, 0, "there is no option \"%s\"; see leatctl --help",
                              arg);
    if (parser->count == WORDS_MAX)
        return leat_error_set(err, LEAT_EUSAGE, 0, "unexpected argument \"%s\"", arg);
    parser->words[parser->count++] = arg;
    return LEAT_OK;
}

/* Whether there are at most COUNT words. */
static enum leat_status end_words(const struct parser *parser, size_t count, struct leat_error *err)
{
    if (parser->count <= count)
        return LEAT_OK;
    return leat_error_set(err, LEAT_EUSAGE, 0, "%s: unexpected argument \"%s\"", parser->words[0],
                          parser->words[count]);
}

static enum leat_status take_session(struct parser *parser, struct leat_error *err)
{
    struct leat_suggest suggest;
    uint64_t id;
    enum leat_status status;

    if (parser->count < 2)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "session: say which one, such as leatctl session 17 show; leatctl "
                              "sessions lists them");
    if (!leat_parse_u64(leat_str_of(parser->words[1]), &id) || id > INT64_MAX)
        return leat_error_set(err, LEAT_EUSAGE, 0, "session: \"%s\" is no session's number",
                              parser->words[1]);
    if (parser->count < 3)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "session: say what to do with it: show, close, kill or trace");
    leat_suggest_init(&suggest, leat_str_of(parser->words[2]));
    if (!is_one_of(actions, COUNT(actions), leat_str_of(parser->words[2]), &suggest))
        return leat_error_set(err, LEAT_EUSAGE, 0, "session: there is no action \"%s\"; %s",
                              parser->words[2], leat_suggest_finish(&suggest));
    parser->order.watches = strcmp(parser->words[2], "trace") == 0;
    status = set(parser->order.request, "id", json_integer((json_int_t)id), err);
    if (status == LEAT_OK)
        status = set(parser->order.request, "action", json_string(parser->words[2]), err);
    return status;
}

static enum leat_status take_sessions(struct parser *parser, struct leat_error *err)
{
    enum leat_status status = end_words(parser, 1, err);

    if (status == LEAT_OK && json_object_update(parser->order.request, parser->filters) != 0)
        status = leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    if (status == LEAT_OK && parser->follow) {
        parser->order.watches = true;
        status = set(parser->order.request, "follow", json_true(), err);
    }
    return status;
}

static enum leat_status take_log(struct parser *parser, struct leat_error *err)
{
    enum leat_log_level level;
    enum leat_status status = end_words(parser, 2, err);

    if (status != LEAT_OK || parser->count < 2)
        return status;
    if (!leat_log_level_find(leat_str_of(parser->words[1]), &level))
        return leat_error_set(
            err, LEAT_EUSAGE, 0,
            "log: there is no level \"%s\"; there are error, warn, info, debug and "
            "trace",
            parser->words[1]);
    return set(parser->order.request, "level", json_string(parser->words[1]), err);
}

static enum leat_status take_config(struct parser *parser, struct leat_error *err)
{
    if (parser->count < 2 || strcmp(parser->words[1], "show") != 0)
        return leat_error_set(err, LEAT_EUSAGE, 0, "config: say leatctl config show");
    return end_words(parser, 2, err);
}

static enum leat_status take_help(struct parser *parser, struct leat_error *err)
{
    enum leat_status status = end_words(parser, 2, err);

    parser->order.help = true;
    if (status != LEAT_OK || parser->count == 2)
        return (status == LEAT_OK) ? leat_verb_find(parser->words[1], &parser->order.verb, err)
                                   : status;
    parser->order.verb = NULL;
    return LEAT_OK;
}

static enum leat_status take_words(struct parser *parser, struct leat_error *err)
{
    switch (parser->order.verb->id) {
    case LEAT_VERB_SESSIONS:
        return take_sessions(parser, err);
    case LEAT_VERB_SESSION:
        return take_session(parser, err);
    case LEAT_VERB_LOG:
        return take_log(parser, err);
    case LEAT_VERB_CONFIG:
        return take_config(parser, err);
    case LEAT_VERB_HELP:
        return take_help(parser, err);
    case LEAT_VERB_STATUS:
    case LEAT_VERB_BACKENDS:
    case LEAT_VERB_TLS:
    case LEAT_VERB_RELOAD:
    case LEAT_VERB_DRAIN:
        break;
    }
    return end_words(parser, 1, err);
}

static enum leat_status take_order(struct parser *parser, struct leat_error *err)
{
    struct leat_order *order = &parser->order;
    enum leat_status status;

    if (parser->count == 0)
        return (order->help || order->version)
                   ? LEAT_OK
                   : leat_error_set(err, LEAT_EUSAGE, 0,
                                    "say what to do, such as leatctl status; see leatctl --help");
    status = leat_verb_find(parser->words[0], &order->verb, err);
    if (status != LEAT_OK || order->help || order->version)
        return status;
    if (order->verb->id != LEAT_VERB_SESSIONS &&
        (parser->follow || json_object_size(parser->filters) > 0))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "%s: filters and --follow belong to leatctl sessions",
                              order->verb->name);
    status = set(order->request, "verb", json_string(order->verb->name), err);
    return (status == LEAT_OK) ? take_words(parser, err) : status;
}

enum leat_status leat_order_parse(int argc, char **argv, struct leat_order *out,
                                  struct leat_error *err)
{
    struct parser parser = {.argc = argc,
                            .argv = argv,
                            .at = 1,
                            .filters = json_object(),
                            .order.request = json_object()};
    enum leat_status status = LEAT_OK;

    if (parser.filters == NULL || parser.order.request == NULL)
        status = leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    while (status == LEAT_OK && parser.at < argc)
        status = take_argument(&parser, err);
    if (status == LEAT_OK)
        status = take_order(&parser, err);
    json_decref(parser.filters);
    if (status == LEAT_OK)
        *out = parser.order;
    else
        leat_order_fini(&parser.order);
    return status;
}

void leat_order_fini(struct leat_order *order)
{
    json_decref(order->request);
    order->request = NULL;
}
