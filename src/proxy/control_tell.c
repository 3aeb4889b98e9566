/* The verbs that the control loop answers by itself. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "proxy/config_json.h"
#include "proxy/config_suggest.h"
#include "proxy/control_impl.h"
#include "proxy/engine.h"
#include "proxy/json_out.h"
#include "proxy/snapshot.h"
#include "proxy/tally.h"
#include "proxy/worker.h"

/* status */

static json_t *failure_json(int64_t time, const char *reason)
{
    struct leat_json json;

    if (time == 0)
        return json_null();
    leat_json_begin(&json);
    leat_json_add_time(&json, "time", time);
    leat_json_add_text(&json, "reason", reason);
    return leat_json_end(&json);
}

static json_t *configuration_json(const struct leat_shared *shared)
{
    const struct leat_life *life = &shared->life;
    struct leat_json json;

    leat_json_begin(&json);
    leat_json_add_text(&json, "file", shared->snapshot->config->file);
    leat_json_add_time(&json, "loaded_at", life->loaded_at);
    leat_json_add_count(&json, "reloads", life->reloads);
    leat_json_add_count(&json, "failed_reloads", life->failed_reloads);
    leat_json_add(&json, "last_failure", failure_json(life->last_failure_at, life->last_failure));
    return leat_json_end(&json);
}

static void add_counter(void *arg, const char *name, uint64_t value)
{
    leat_json_add_count(arg, name, value);
}

static json_t *counters_json(const struct leat_shared *shared)
{
    struct leat_json json;

    leat_json_begin(&json);
    leat_shared_each_counter(shared, add_counter, &json);
    return leat_json_end(&json);
}

static json_t *worker_json(const struct leat_worker *worker)
{
    const struct leat_loop_counters *loop = leat_loop_counters(worker->loop);
    struct leat_json json;

    leat_json_begin(&json);
    leat_json_add_count(&json, "sessions", worker->count.load);
    leat_json_add_count(&json, "wakeups", loop->wakeups);
    leat_json_add_count(&json, "polls", loop->polls);
    leat_json_add_count(&json, "recvs", loop->recvs);
    leat_json_add_count(&json, "sends", loop->sends);
    leat_json_add_count(&json, "accepts", loop->accepts);
    leat_json_add_count(&json, "connects", loop->connects);
    return leat_json_end(&json);
}

static json_t *workers_json(const struct leat_shared *shared)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < shared->worker_count; i++) {
        if (leat_json_append(array, worker_json(&shared->workers[i])))
            continue;
        json_decref(array);
        return NULL;
    }
    return array;
}

static void add_level(struct leat_json *json, const char *key, const struct leat_log *log)
{
    leat_json_add_text(json, key, leat_log_level_name((enum leat_log_level)log->level));
}

void leat_control_status(struct leat_control_conn *conn, json_t *request)
{
    const struct leat_shared *shared = conn->control->shared;
    int64_t uptime_ms = leat_json_now_ms() - shared->life.started_at;
    struct leat_json json;

    (void)request;
    leat_control_begin_answer(&json);
    leat_json_add_text(&json, "version", LEAT_VERSION);
    leat_json_add_count(&json, "pid", (uint64_t)getpid());
    leat_json_add_text(&json, "state", shared->life.is_draining ? "draining" : "running");
    leat_json_add_time(&json, "started_at", shared->life.started_at);
    leat_json_add_count(&json, "uptime_s", uptime_ms > 0 ? (uint64_t)uptime_ms / 1000 : 0);
    leat_json_add(&json, "configuration", configuration_json(shared));
    add_level(&json, "log_level", shared->log);
    leat_json_add_count(&json, "connections", leat_shared_connections(shared));
    leat_json_add_count(&json, "sessions", leat_shared_sessions(shared));
    leat_json_add_count(&json, "sessions_max", shared->sessions_max);
    leat_json_add_count(&json, "handshakes", shared->handshakes);
    leat_json_add_count(&json, "handshakes_max", shared->handshakes_max);
    leat_json_add_count(&json, "queued", shared->account.held);
    leat_json_add(&json, "counters", counters_json(shared));
    leat_json_add(&json, "workers", workers_json(shared));
    leat_control_end_answer(conn, &json);
}

/* backends */

/* The names of the farms that have BACKEND; not of those that leat makes of a single one. */
static json_t *farms_json(const struct leat_config *config, size_t backend)
{
    json_t *array = json_array();

    for (size_t i = 0; i < config->farms.count; i++) {
        const struct leat_farm_config *farm = &config->farms.at[i];
        if (farm->backend_names.count == 0 ||
            memchr(farm->backends, (int)backend, farm->count) == NULL)
            continue;
        if (leat_json_append(array, leat_json_str(leat_str_of(farm->name))))
            continue;
        json_decref(array);
        return NULL;
    }
    return array;
}

/* Adds whether sessions go to BACKEND. After a failure that is not known until one has. */
static void add_state(struct leat_json *json, const struct leat_backend *backend,
                      const struct leat_tally_report *report, uint64_t now_ms)
{
    uint64_t retry_at = backend->retry_at_ms;
    const char *state = "up";

    if (report->opened == 0 && report->failures == 0)
        state = "unknown";
    else if (backend->backoff_ms != 0)
        state = "back-off";
    leat_json_add_text(json, "state", state);
    leat_json_add_count(json, "retry_in_s",
                        retry_at > now_ms ? (retry_at - now_ms + 999) / 1000 : 0);
    leat_json_add_count(json, "backoff_s", backend->backoff_ms / 1000);
}

static json_t *backend_json(const struct leat_snapshot *snapshot, size_t index, uint64_t now_ms)
{
    const struct leat_backend *backend = &snapshot->backends[index];
    struct leat_tally_report report;
    struct leat_json json;

    leat_tally_read(backend->tally, &report);
    leat_json_begin(&json);
    leat_json_add_text(&json, "name", backend->config->name);
    leat_json_add_text(&json, "address", backend->text);
    leat_json_add(&json, "tls", json_boolean(backend->config->endpoint.tls));
    leat_json_add_count(&json, "weight", backend->config->weight);
    leat_json_add(&json, "farms", farms_json(snapshot->config, index));
    add_state(&json, backend, &report, now_ms);
    leat_json_add_count(&json, "sessions", report.sessions);
    leat_json_add_count(&json, "opened", report.opened);
    leat_json_add_count(&json, "failures", report.failures);
    leat_json_add(&json, "last_failure", failure_json(report.last_failure_at, report.last_failure));
    leat_json_add_text(&json, "product", report.product[0] != '\0' ? report.product : NULL);
    leat_json_add_text(&json, "version", report.version[0] != '\0' ? report.version : NULL);
    return leat_json_end(&json);
}

void leat_control_backends(struct leat_control_conn *conn, json_t *request)
{
    const struct leat_snapshot *snapshot = conn->control->shared->snapshot;
    uint64_t now_ms = leat_loop_now_ms(conn->control->loop);
    json_t *array = json_array();
    struct leat_json json;

    (void)request;
    leat_control_begin_answer(&json);
    for (size_t i = 0; i < snapshot->config->backends.count; i++) {
        if (!leat_json_append(array, backend_json(snapshot, i, now_ms))) {
            json_decref(array);
            array = NULL;
        }
    }
    leat_json_add(&json, "backends", array);
    leat_control_end_answer(conn, &json);
}

/* reload, drain, log, config */

void leat_control_reload(struct leat_control_conn *conn, json_t *request)
{
    const struct leat_control_ops *ops = &conn->control->ops;
    struct leat_error err = {.text = ""};
    struct leat_json json;

    (void)request;
    if (ops->reload(ops->arg, &err) != LEAT_OK) {
        leat_control_fail(conn, "failed", "%s", err.text);
        return;
    }
    leat_control_begin_answer(&json);
    leat_control_end_answer(conn, &json);
}

void leat_control_drain(struct leat_control_conn *conn, json_t *request)
{
    const struct leat_control_ops *ops = &conn->control->ops;
    struct leat_json json;

    (void)request;
    if (!ops->drain(ops->arg)) {
        leat_control_fail(conn, "failed", "leat is draining already");
        return;
    }
    leat_control_begin_answer(&json);
    leat_json_add_count(&json, "connections", leat_shared_connections(conn->control->shared));
    leat_control_end_answer(conn, &json);
}

static void refuse_level(struct leat_control_conn *conn, const char *name)
{
    struct leat_suggest suggest;

    leat_suggest_init(&suggest, leat_str_of(name));
    for (int level = LEAT_LOG_ERROR; level <= LEAT_LOG_TRACE; level++)
        leat_suggest_offer(&suggest, leat_str_of(leat_log_level_name((enum leat_log_level)level)));
    leat_control_fail(conn, "usage", "log: unknown level; %s", leat_suggest_finish(&suggest));
}

void leat_control_log(struct leat_control_conn *conn, json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "level"));
    struct leat_log *log = conn->control->shared->log;
    enum leat_log_level level;
    struct leat_json json;

    if (name != NULL && !leat_log_level_find(leat_str_of(name), &level)) {
        refuse_level(conn, name);
        return;
    }
    if (name != NULL)
        log->level = (int)level;
    leat_control_begin_answer(&json);
    add_level(&json, "level", log);
    leat_control_end_answer(conn, &json);
}

void leat_control_config(struct leat_control_conn *conn, json_t *request)
{
    struct leat_json json;

    (void)request;
    leat_control_begin_answer(&json);
    leat_json_add(&json, "config", leat_config_json(conn->control->shared->snapshot->config));
    leat_control_end_answer(conn, &json);
}
