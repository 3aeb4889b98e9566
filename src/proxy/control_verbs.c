/* Which request is whose. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/config_suggest.h"
#include "proxy/control_impl.h"
#include "proxy/session.h"

#define MEMBERS_MAX 8
#define NAME_SHOWN_MAX 60

struct member {
    const char *name;
    json_type type; /* JSON_TRUE: true or false */
    bool is_needed;
};

struct verb {
    const char *name;
    leat_control_verb_fn *fn;
    struct member members[MEMBERS_MAX]; /* up to one without a name */
};

static const struct verb verbs[] = {
    {.name = "status", .fn = leat_control_status},
    {.name = "sessions",
     .fn = leat_control_sessions,
     .members = {{"vhost", JSON_STRING, false},
                 {"user", JSON_STRING, false},
                 {"backend", JSON_STRING, false},
                 {"client", JSON_STRING, false},
                 {"listener", JSON_STRING, false},
                 {"state", JSON_STRING, false},
                 {"follow", JSON_TRUE, false}}},
    {.name = "session",
     .fn = leat_control_session,
     .members = {{"id", JSON_INTEGER, true}, {"action", JSON_STRING, true}}},
    {.name = "backends", .fn = leat_control_backends},
    {.name = "tls", .fn = leat_control_tls},
    {.name = "reload", .fn = leat_control_reload},
    {.name = "drain", .fn = leat_control_drain},
    {.name = "log", .fn = leat_control_log, .members = {{"level", JSON_STRING, false}}},
    {.name = "config", .fn = leat_control_config},
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

/* Writes NAME, which somebody has sent, quoted and perhaps cut, to BUF. */
static const char *quote(const char *name, char *buf, size_t cap)
{
    struct leat_text text;

    leat_text_init(&text, buf, cap);
    leat_text_add_quoted(&text, leat_str_of(name));
    return buf;
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

static const struct member *find_member(const struct verb *verb, const char *name)
{
    for (size_t i = 0; i < MEMBERS_MAX && verb->members[i].name != NULL; i++) {
        if (strcmp(verb->members[i].name, name) == 0)
            return &verb->members[i];
    }
    return NULL;
}

static void refuse_verb(struct leat_control_conn *conn, const json_t *name)
{
    const char *text = json_is_string(name) ? json_string_value(name) : "";
    char buf[NAME_SHOWN_MAX];
    struct leat_suggest suggest;

    leat_suggest_init(&suggest, leat_str_of(text));
    for (size_t i = 0; i < VERBS; i++)
        leat_suggest_offer(&suggest, leat_str_of(verbs[i].name));
    if (*text == '\0')
        leat_control_fail(conn, "usage", "the request has no verb, which is a text; %s",
                          leat_suggest_finish(&suggest));
    else
        leat_control_fail(conn, "usage", "unknown verb %s; %s", quote(text, buf, sizeof(buf)),
                          leat_suggest_finish(&suggest));
}

static void refuse_member(struct leat_control_conn *conn, const struct verb *verb, const char *name)
{
    char buf[NAME_SHOWN_MAX];
    struct leat_suggest suggest;

    if (verb->members[0].name == NULL) {
        leat_control_fail(conn, "usage", "%s takes no members, got %s", verb->name,
                          quote(name, buf, sizeof(buf)));
        return;
    }
    leat_suggest_init(&suggest, leat_str_of(name));
    for (size_t i = 0; i < MEMBERS_MAX && verb->members[i].name != NULL; i++)
        leat_suggest_offer(&suggest, leat_str_of(verb->members[i].name));
    leat_control_fail(conn, "usage", "%s: unknown member %s; %s", verb->name,
                      quote(name, buf, sizeof(buf)), leat_suggest_finish(&suggest));
}

static bool has_type(const struct member *member, const json_t *value)
{
    return member->type == JSON_TRUE ? json_is_boolean(value) : json_typeof(value) == member->type;
}

static const char *type_name(const struct member *member)
{
    return member->type == JSON_TRUE      ? "true or false"
           : member->type == JSON_INTEGER ? "a whole number"
                                          : "a text";
}

/* Whether REQUEST has what VERB takes, and that only; if not CONN is told. */
static bool is_fit(struct leat_control_conn *conn, const struct verb *verb, json_t *request)
{
    const char *name;
    json_t *value;

    json_object_foreach(request, name, value)
    {
        const struct member *member = find_member(verb, name);
        if (strcmp(name, "verb") == 0)
            continue;
        if (member == NULL) {
            refuse_member(conn, verb, name);
            return false;
        }
        if (!has_type(member, value)) {
            leat_control_fail(conn, "usage", "%s: expected %s as %s", verb->name, type_name(member),
                              name);
            return false;
        }
    }
    for (size_t i = 0; i < MEMBERS_MAX && verb->members[i].name != NULL; i++) {
        if (verb->members[i].is_needed && json_object_get(request, verb->members[i].name) == NULL) {
            leat_control_fail(conn, "usage", "%s: %s is missing", verb->name,
                              verb->members[i].name);
            return false;
        }
    }
    return true;
}

void leat_control_handle(struct leat_control_conn *conn, struct leat_str line)
{
    json_error_t error;
    json_t *request;

    if (line.len == 0 || line.ptr[0] != '{') {
        leat_control_fail(
            conn, "usage",
            "a request is an object of JSON on a line, such as {\"verb\":\"status\"}");
        return;
    }
    request = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES, &error);
    if (request == NULL && json_error_code(&error) == json_error_out_of_memory) {
        leat_control_send(conn, NULL, 0);
    } else if (request == NULL) {
        leat_control_fail(conn, "usage", "the request is no JSON: %s, column %d", error.text,
                          error.column);
    } else {
        const json_t *name = json_object_get(request, "verb");
        const struct verb *verb = json_is_string(name) ? find_verb(json_string_value(name)) : NULL;
        if (verb == NULL)
            refuse_verb(conn, name);
        else if (is_fit(conn, verb, request))
            verb->fn(conn, request);
    }
    json_decref(request);
}
