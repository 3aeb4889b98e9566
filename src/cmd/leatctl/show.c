/* SPDX-License-Identifier: Apache-2.0 */
#include "show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "document.h"
#include "fields.h"
#include "words.h"

/* What fields of a kind have in common. */
#define FORM(label, path, form)                                                                    \
    {                                                                                              \
        label, path, LEAT_FIELD_##form, NULL                                                       \
    }
#define TEXT(label, path)                                                                          \
    {                                                                                              \
        label, path, LEAT_FIELD_TEXT, NULL                                                         \
    }
#define TEXT_OR(label, path, absent)                                                               \
    {                                                                                              \
        label, path, LEAT_FIELD_TEXT, absent                                                       \
    }

static const struct leat_field status_fields[] = {
    TEXT("version", "version"),
    TEXT("pid", "pid"),
    TEXT("state", "state"),
    TEXT("started at", "started_at"),
    FORM("running for", "uptime_s", DURATION),
    TEXT_OR("configuration", "configuration.file", "the command line"),
    TEXT("loaded at", "configuration.loaded_at"),
    TEXT("reloads", "configuration.reloads"),
    TEXT("failed reloads", "configuration.failed_reloads"),
    TEXT_OR("last failure", "configuration.last_failure", "none"),
    TEXT("log level", "log_level"),
    TEXT("connections", "connections"),
    FORM("sessions", "sessions", OF),
    FORM("handshakes", "handshakes", OF),
    FORM("queued", "queued", SIZE),
};

static const struct leat_field worker_fields[] = {
    FORM("WORKER", "", INDEX),          FORM("SESSIONS", "sessions", NUMBER),
    FORM("WAKEUPS", "wakeups", NUMBER), FORM("POLLS", "polls", NUMBER),
    FORM("RECVS", "recvs", NUMBER),     FORM("SENDS", "sends", NUMBER),
    FORM("ACCEPTS", "accepts", NUMBER), FORM("CONNECTS", "connects", NUMBER),
};

static const struct leat_field sessions_fields[] = {
    FORM("ID", "id", NUMBER),         TEXT("STATE", "state"),
    TEXT("CLIENT", "client"),         TEXT("USER", "user"),
    TEXT("VHOST", "vhost"),           TEXT("BACKEND", "backend"),
    FORM("FOR", "seconds", DURATION), FORM("IN", "bytes_in", SIZE),
    FORM("OUT", "bytes_out", SIZE),   TEXT("WAITS FOR", "waits"),
    TEXT("NAME", "connection_name"),
};

static const struct leat_field session_fields[] = {
    TEXT("session", "id"),
    TEXT("state", "state"),
    TEXT("client", "client"),
    TEXT("listener", "listener"),
    TEXT("user", "user"),
    TEXT("vhost", "vhost"),
    TEXT("name", "connection_name"),
    TEXT("farm", "farm"),
    TEXT("backend", "backend"),
    TEXT("its address", "backend_address"),
    FORM("for", "seconds", DURATION),
    TEXT_OR("tls", "tls", "none"),
    TEXT_OR("tls to broker", "backend_tls", "none"),
    TEXT("heartbeat, s", "heartbeat_s"),
    TEXT("frame_max", "frame_max"),
    TEXT("channel_max", "channel_max"),
    FORM("from client", "bytes_in", SIZE),
    TEXT("frames", "frames_in"),
    FORM("from broker", "bytes_out", SIZE),
    TEXT("frames", "frames_out"),
    FORM("queued to client", "queued_to_client", SIZE),
    FORM("queued to broker", "queued_to_broker", SIZE),
    TEXT_OR("waits for", "waits", "nobody"),
};

static const struct leat_field backend_fields[] = {
    TEXT("NAME", "name"),
    TEXT("ADDRESS", "address"),
    TEXT("TLS", "tls"),
    FORM("WEIGHT", "weight", NUMBER),
    TEXT("FARMS", "farms"),
    TEXT("STATE", "state"),
    FORM("RETRY IN", "retry_in_s", DURATION),
    FORM("SESSIONS", "sessions", NUMBER),
    FORM("OPENED", "opened", NUMBER),
    FORM("FAILURES", "failures", NUMBER),
    TEXT("PRODUCT", "product"),
    TEXT("VERSION", "version"),
};

static const struct leat_field context_fields[] = {
    TEXT("used by", "used_by"),
    TEXT_OR("certificate", "cert", ""),
    TEXT_OR("subject", "subject", ""),
    TEXT_OR("issuer", "issuer", ""),
    TEXT_OR("names", "names", ""),
    TEXT_OR("valid from", "not_before", ""),
    TEXT_OR("valid until", "not_after", ""),
    TEXT_OR("days left", "days_left", ""),
};

/* Of contexts that verify the other side. */
static const struct leat_field trust_fields[] = {
    TEXT_OR("trusts", "ca", "the system's authorities"), TEXT("authorities", "authorities"),
    TEXT("the last until", "authorities_until"),         TEXT_OR("revocation lists", "crls", ""),
    TEXT_OR("next update", "crl_next_update", ""),
};

/* Of backends' contexts, which are made when they are first needed. */
static const struct leat_field cache_fields[] = {
    TEXT("for backends", "cache.entries"),   TEXT("found ready", "cache.hits"),
    TEXT("had to wait", "cache.misses"),     TEXT("built", "cache.builds"),
    TEXT("failed builds", "cache.failures"), TEXT("files looked at", "cache.rechecks"),
    TEXT("put out", "cache.evictions"),      TEXT("trust stores", "trust_stores"),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static enum leat_status show_status(const struct leat_order *order, const json_t *answer, FILE *out)
{
    const json_t *workers = json_object_get(answer, "workers");
    enum leat_status status;

    (void)order;
    status = leat_fields_print(status_fields, COUNT(status_fields), answer, out);
    if (status != LEAT_OK || !json_is_array(workers))
        return LEAT_EPROTOCOL;
    (void)fputs("\n", out);
    status = leat_fields_print_members(json_object_get(answer, "counters"), out);
    if (status != LEAT_OK)
        return status;
    (void)fputs("\n", out);
    return leat_fields_print_rows(worker_fields, COUNT(worker_fields), workers, out);
}

static int compare_ids(const void *a, const void *b)
{
    json_int_t left = json_integer_value(json_object_get(*(json_t *const *)a, "id"));
    json_int_t right = json_integer_value(json_object_get(*(json_t *const *)b, "id"));

    return (left > right) - (left < right);
}

/* Makes an array of LIST's elements in the order of their ids. NULL if memory is short. */
static json_t *sort(const json_t *list)
{
    size_t count = json_array_size(list);
    const json_t **at = leat_mem_zalloc_flex(0, count + 1, sizeof(json_t *));
    json_t *sorted = json_array();
    bool failed = at == NULL || sorted == NULL;

    for (size_t i = 0; !failed && i < count; i++)
        at[i] = json_array_get(list, i);
    if (!failed)
        qsort(at, count, sizeof(*at), compare_ids);
    for (size_t i = 0; !failed && i < count; i++)
        failed = json_array_append(sorted, (json_t *)(uintptr_t)at[i]) != 0;
    leat_mem_free(at);
    if (!failed)
        return sorted;
    json_decref(sorted);
    return NULL;
}

static enum leat_status show_sessions(const struct leat_order *order, const json_t *answer,
                                      FILE *out)
{
    const json_t *sessions = json_object_get(answer, "sessions");
    json_t *sorted;
    size_t count = json_array_size(sessions);
    enum leat_status status = LEAT_OK;

    if (order->watches)
        return LEAT_OK;
    if (!json_is_array(sessions))
        return LEAT_EPROTOCOL;
    sorted = sort(sessions);
    if (sorted == NULL)
        return LEAT_ENOMEM;
    if (count > 0)
        status = leat_fields_print_rows(sessions_fields, COUNT(sessions_fields), sorted, out);
    if (status == LEAT_OK)
        (void)fprintf(out, "%zu session%s\n", count, count == 1 ? "" : "s");
    json_decref(sorted);
    return status;
}

static enum leat_status show_session(const struct leat_order *order, const json_t *answer,
                                     FILE *out)
{
    const char *action = json_string_value(json_object_get(order->request, "action"));
    json_int_t id = json_integer_value(json_object_get(order->request, "id"));

    if (strcmp(action, "show") == 0)
        return leat_fields_print(session_fields, COUNT(session_fields),
                                 json_object_get(answer, "session"), out);
    if (strcmp(action, "close") == 0)
        (void)fprintf(out, "session %" JSON_INTEGER_FORMAT " is being closed\n", id);
    else if (strcmp(action, "kill") == 0)
        (void)fprintf(out, "session %" JSON_INTEGER_FORMAT " was cut\n", id);
    return LEAT_OK;
}

static enum leat_status show_backends(const struct leat_order *order, const json_t *answer,
                                      FILE *out)
{
    const json_t *backends = json_object_get(answer, "backends");
    enum leat_status status =
        leat_fields_print_rows(backend_fields, COUNT(backend_fields), backends, out);

    (void)order;
    for (size_t i = 0; status == LEAT_OK && i < json_array_size(backends); i++) {
        const json_t *backend = json_array_get(backends, i);
        char name[LEAT_WORDS_MAX], time[LEAT_WORDS_MAX], reason[LEAT_WORDS_MAX];
        if (json_is_object(json_object_get(backend, "last_failure")))
            (void)fprintf(out, "%s failed last at %s: %s\n", leat_field_text(backend, "name", name),
                          leat_field_text(backend, "last_failure.time", time),
                          leat_field_text(backend, "last_failure.reason", reason));
    }
    return status;
}

static enum leat_status show_context(const json_t *context, FILE *out)
{
    char failure[LEAT_WORDS_MAX];
    enum leat_status status =
        leat_fields_print(context_fields, COUNT(context_fields), context, out);

    if (status == LEAT_OK && json_object_get(context, "authorities") != NULL)
        status = leat_fields_print(trust_fields, COUNT(trust_fields), context, out);
    else if (json_is_true(json_object_get(context, "insecure_skip_verify")))
        (void)fputs("trusts              anyone: insecure_skip_verify\n", out);
    if (json_is_string(json_object_get(context, "failure")))
        (void)fprintf(out, "not read again      %s\n",
                      leat_field_text(context, "failure", failure));
    (void)fputs("\n", out);
    return status;
}

static enum leat_status show_tls(const struct leat_order *order, const json_t *answer, FILE *out)
{
    const json_t *contexts = json_object_get(answer, "contexts");
    enum leat_status status = json_is_array(contexts) ? LEAT_OK : LEAT_EPROTOCOL;

    (void)order;
    for (size_t i = 0; status == LEAT_OK && i < json_array_size(contexts); i++)
        status = show_context(json_array_get(contexts, i), out);
    if (status == LEAT_OK && json_is_object(json_object_get(answer, "cache"))) {
        status = leat_fields_print(cache_fields, COUNT(cache_fields), answer, out);
        (void)fputs("\n", out);
    }
    if (status == LEAT_OK)
        (void)fprintf(out, "%zu context%s, %" JSON_INTEGER_FORMAT " built since the start\n",
                      json_array_size(contexts), json_array_size(contexts) == 1 ? "" : "s",
                      json_integer_value(json_object_get(answer, "builds")));
    return status;
}

static enum leat_status show_reload(const struct leat_order *order, const json_t *answer, FILE *out)
{
    (void)order;
    (void)answer;
    (void)fputs("reloaded: new connections have it from now on\n", out);
    return LEAT_OK;
}

static enum leat_status show_drain(const struct leat_order *order, const json_t *answer, FILE *out)
{
    json_int_t count = json_integer_value(json_object_get(answer, "connections"));

    (void)order;
    (void)fprintf(out, "draining: %" JSON_INTEGER_FORMAT " connection%s left\n", count,
                  count == 1 ? " is" : "s are");
    return LEAT_OK;
}

static enum leat_status show_log(const struct leat_order *order, const json_t *answer, FILE *out)
{
    char level[LEAT_WORDS_MAX];

    (void)order;
    (void)fprintf(out, "%s\n", leat_field_text(answer, "level", level));
    return LEAT_OK;
}

static enum leat_status show_config(const struct leat_order *order, const json_t *answer, FILE *out)
{
    const json_t *config = json_object_get(answer, "config");

    (void)order;
    return json_is_object(config) ? leat_document_print(config, out) : LEAT_EPROTOCOL;
}

enum leat_status leat_show_answer(const struct leat_order *order, const json_t *answer, FILE *out)
{
    typedef enum leat_status show_fn(const struct leat_order *order, const json_t *answer,
                                     FILE *out);
    static show_fn *const fns[] = {
        [LEAT_VERB_STATUS] = show_status,   [LEAT_VERB_SESSIONS] = show_sessions,
        [LEAT_VERB_SESSION] = show_session, [LEAT_VERB_BACKENDS] = show_backends,
        [LEAT_VERB_TLS] = show_tls,         [LEAT_VERB_RELOAD] = show_reload,
        [LEAT_VERB_DRAIN] = show_drain,     [LEAT_VERB_LOG] = show_log,
        [LEAT_VERB_CONFIG] = show_config,
    };

    return fns[order->verb->id](order, answer, out);
}

static void show_opened(const json_t *event, FILE *out)
{
    char id[LEAT_WORDS_MAX], client[LEAT_WORDS_MAX], user[LEAT_WORDS_MAX];
    char vhost[LEAT_WORDS_MAX], backend[LEAT_WORDS_MAX];

    (void)fprintf(out, "session %s opened: client %s, user %s, vhost %s, backend %s\n",
                  leat_field_text(event, "session.id", id),
                  leat_field_text(event, "session.client", client),
                  leat_field_text(event, "session.user", user),
                  leat_field_text(event, "session.vhost", vhost),
                  leat_field_text(event, "session.backend", backend));
}

static void show_ended(const json_t *event, FILE *out)
{
    char id[LEAT_WORDS_MAX], how[LEAT_WORDS_MAX], by[LEAT_WORDS_MAX];
    char reason[LEAT_WORDS_MAX], client[LEAT_WORDS_MAX];

    (void)fprintf(out, "session %s %s by %s: %s; client %s\n",
                  leat_field_text(event, "session.id", id), leat_field_text(event, "how", how),
                  leat_field_text(event, "by", by), leat_field_text(event, "reason", reason),
                  leat_field_text(event, "session.client", client));
}

static void show_frame(const json_t *event, FILE *out)
{
    char from[LEAT_WORDS_MAX], to[LEAT_WORDS_MAX], channel[LEAT_WORDS_MAX];
    char method[LEAT_WORDS_MAX], size[LEAT_WORDS_MAX];

    (void)fprintf(out, "%s->%s channel %s %s %s bytes\n", leat_field_text(event, "from", from),
                  leat_field_text(event, "to", to), leat_field_text(event, "channel", channel),
                  leat_field_text(event, "method", method), leat_field_text(event, "size", size));
}

void leat_show_event(const json_t *event, FILE *out)
{
    const char *kind = json_string_value(json_object_get(event, "event"));
    json_int_t lines = json_integer_value(json_object_get(event, "lines"));
    char time[LEAT_WORDS_MAX];

    if (kind == NULL)
        kind = "";
    if (strcmp(kind, "lost") == 0) {
        (void)fprintf(out, "lost %" JSON_INTEGER_FORMAT " line%s, not read in time\n", lines,
                      lines == 1 ? "" : "s");
        return;
    }
    if (strcmp(kind, "stopped") == 0) {
        (void)fputs("leat has stopped\n", out);
        return;
    }
    (void)fprintf(out, "%s ", leat_field_text(event, "time", time));
    if (strcmp(kind, "opened") == 0)
        show_opened(event, out);
    else if (strcmp(kind, "ended") == 0)
        show_ended(event, out);
    else if (strcmp(kind, "frame") == 0)
        show_frame(event, out);
    else
        (void)fputs("an event that this leatctl does not know, see --json\n", out);
}
