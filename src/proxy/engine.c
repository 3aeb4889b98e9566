/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/engine.h"

#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "proxy/ask.h"
#include "proxy/json_out.h"
#include "proxy/recheck.h"
#include "proxy/snapshot.h"
#include "proxy/tls_state.h"
#include "proxy/worker.h"
#include "tls/server.h"

/* Descriptors that are for anything but sessions: logs, loops, listeners. */
#define SPARE_DESCRIPTORS 64u
#define DRAIN_POLL_MS 100
/* Fewer than these are hardly meant. */
#define FEW_SESSIONS 1000u

struct leat_engine {
    struct leat_shared shared;
    struct leat_loop *control;
    struct leat_timer drain_close, drain_end; /* when the Closes begin, when the rest is cut */
    struct leat_timer drain_poll;
    struct leat_recheck recheck;
    void (*drained)(void *arg);
    void *drained_arg;
};

static struct leat_addr address_of(int fd)
{
    struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(ss);
    struct leat_addr addr;

    (void)getsockname(fd, (struct sockaddr *)&ss, &len);
    leat_addr_from_sockaddr(&ss, &addr);
    return addr;
}

static enum leat_status listen_on(struct leat_engine *engine, size_t index, struct leat_error *err)
{
    struct leat_shared *shared = &engine->shared;
    const struct leat_listener_config *listener = &shared->snapshot->config->listeners.at[index];
    const char *mode = listener->mode != NULL ? listener->mode : LEAT_LISTENER_MODE;

    if (!leat_endpoint_is_unix(&listener->endpoint))
        return leat_addr_listen(&listener->endpoint.addr, &shared->listener_fds[index], err);
    return leat_unix_socket_listen(engine->control, &listener->endpoint.addr,
                                   (mode_t)strtoul(mode, NULL, 8), &shared->listener_sockets[index],
                                   &shared->listener_fds[index], err);
}

static enum leat_status listen_all(struct leat_engine *engine, struct leat_error *err)
{
    struct leat_shared *shared = &engine->shared;
    const struct leat_config *config = shared->snapshot->config;

    for (size_t i = 0; i < config->listeners.count; i++) {
        enum leat_status status = listen_on(engine, i, err);
        if (status != LEAT_OK)
            return status;
        shared->listener_addrs[i] = address_of(shared->listener_fds[i]);
        shared->listener_count++;
    }
    return LEAT_OK;
}

/* Raises the limit of open files as far as it goes; returns it. */
static uint64_t raise_file_limit(void)
{
    struct rlimit files = {.rlim_cur = 1024, .rlim_max = 1024};

    (void)getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < files.rlim_max) {
        struct rlimit most = {.rlim_cur = files.rlim_max, .rlim_max = files.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &most) == 0)
            files = most;
    }
    return files.rlim_cur;
}

/* Takes the parts of CONFIG into use that are no session's; derives from the limit of open files
 * what fits: two descriptors a session, and one for every connection that has not got so far or
 * still lingers. */
static void apply(struct leat_shared *shared, const struct leat_config *config)
{
    uint64_t files = raise_file_limit(), fit = 1, handshakes = config->limit_handshakes;

    if (handshakes > files / 8)
        handshakes = files / 8;
    if (files > SPARE_DESCRIPTORS + 2 * handshakes + 2)
        fit = (files - SPARE_DESCRIPTORS - 2 * handshakes) / 2;
    if (config->limit_sessions > fit || fit < FEW_SESSIONS)
        leat_log_line(shared->log, LEAT_LOG_WARN,
                      "%llu open files allow no more than %llu sessions; raise the limit of open "
                      "files (ulimit -n, LimitNOFILE)",
                      (unsigned long long)files, (unsigned long long)fit);
    shared->handshakes_max = handshakes;
    shared->sessions_max = (config->limit_sessions != 0 && config->limit_sessions < fit)
                               ? config->limit_sessions
                               : fit;
    shared->account.limit = config->limit_queue_bytes;
    shared->tracing = config->trace;
    shared->log->level = (int)config->log_level;
}

static unsigned workers_wanted(const struct leat_config *config)
{
    cpu_set_t cores;

    if (config->workers != 0)
        return (unsigned)config->workers;
    if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
        return 1;
    return (unsigned)CPU_COUNT(&cores);
}

static enum leat_status make_workers(struct leat_shared *shared, struct leat_error *err)
{
    unsigned wanted = workers_wanted(shared->snapshot->config);

    shared->workers = leat_mem_zalloc_flex(0, wanted, sizeof(shared->workers[0]));
    if (shared->workers == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    for (unsigned i = 0; i < wanted; i++) {
        shared->worker_count++;
        enum leat_status status = leat_worker_init(&shared->workers[i], shared, err);
        if (status != LEAT_OK)
            return status;
    }
    return LEAT_OK;
}

static void note_loaded(struct leat_shared *shared, const struct leat_snapshot *snapshot)
{
    shared->life.loaded_at = leat_json_now_ms();
    for (size_t i = 0; i < snapshot->config->listeners.count; i++) {
        if (snapshot->listener_tls[i] != NULL)
            shared->life.contexts += leat_tls_server_count(snapshot->listener_tls[i]);
    }
}

static void on_drain_close(void *arg);
static void on_drain_end(void *arg);
static void on_drain_poll(void *arg);

enum leat_status leat_engine_new(struct leat_snapshot *snapshot, struct leat_log *log,
                                 struct leat_loop *control, struct leat_engine **out,
                                 struct leat_error *err)
{
    struct leat_engine *engine = leat_mem_zalloc(sizeof(*engine));
    enum leat_status status;

    if (engine == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    engine->control = control;
    snapshot->tls->log = log;
    leat_recheck_init(&engine->recheck, control, log);
    leat_timer_init(&engine->drain_close, on_drain_close, engine);
    leat_timer_init(&engine->drain_end, on_drain_end, engine);
    leat_timer_init(&engine->drain_poll, on_drain_poll, engine);
    pthread_mutex_init(&engine->shared.snapshot_lock, NULL);
    engine->shared.snapshot = leat_snapshot_ref(snapshot);
    engine->shared.log = log;
    engine->shared.next_id = 1;
    note_loaded(&engine->shared, snapshot);
    engine->shared.life.started_at = engine->shared.life.loaded_at;
    apply(&engine->shared, snapshot->config);
    status = listen_all(engine, err);
    if (status == LEAT_OK)
        status = make_workers(&engine->shared, err);
    if (status != LEAT_OK) {
        leat_engine_free(engine);
        return status;
    }
    *out = engine;
    return LEAT_OK;
}

/* Says if all that CTX, configured at PLACE, trusts is out of its time at NOW, or a revocation list
 * is: then it accepts no certificate. */
static void warn_of_trust(const struct leat_log *log, const char *place,
                          const struct leat_tls_ctx *ctx, int64_t now)
{
    const struct leat_tls_trust_info *trust = leat_tls_ctx_trust(ctx);

    if (leat_tls_ctx_trusts_only_expired(ctx, now))
        leat_log_line(
            log, LEAT_LOG_WARN,
            "all authorities that %s trusts have expired: no certificate will be accepted", place);
    if (trust != NULL && trust->crls > 0 && trust->crl_next_until < now)
        leat_log_line(log, LEAT_LOG_WARN,
                      "a revocation list of %s is out of date: certificates that need it will not "
                      "be accepted",
                      place);
}

/* Says if the certificate that CTX, configured at PLACE, shows is out of its time, or soon will be;
 * and what it verifies others by. */
static void warn_of_dates(void *arg, const struct leat_snapshot_ctx_place *place,
                          struct leat_tls_ctx *ctx)
{
    const struct leat_log *log = arg;
    const char *cert = leat_tls_config_cert_file(leat_tls_ctx_config(ctx));
    int64_t from, until, now = (int64_t)time(NULL);

    warn_of_trust(log, place->path, ctx, now);
    if (!leat_tls_ctx_validity(ctx, &from, &until))
        return;
    if (now > until || now < from)
        leat_log_line(log, LEAT_LOG_WARN,
                      "certificate file %s of %s %s: whoever verifies it will refuse it", cert,
                      place->path, now > until ? "has expired" : "is not valid yet");
    else if (until - now < LEAT_TLS_RENEW_S)
        leat_log_line(log, LEAT_LOG_WARN, "certificate file %s of %s expires in %d days", cert,
                      place->path, (int)((until - now) / (24 * 3600)));
}

const struct leat_snapshot *leat_engine_snapshot(const struct leat_engine *engine)
{
    return engine->shared.snapshot;
}

void leat_engine_replace(struct leat_engine *engine, struct leat_snapshot *snapshot)
{
    struct leat_shared *shared = &engine->shared;
    struct leat_snapshot *old = shared->snapshot;

    apply(shared, snapshot->config);
    leat_snapshot_each_ctx(snapshot, warn_of_dates, shared->log);
    (void)leat_snapshot_ref(snapshot);
    (void)pthread_mutex_lock(&shared->snapshot_lock);
    shared->snapshot = snapshot;
    (void)pthread_mutex_unlock(&shared->snapshot_lock);
    leat_recheck_start(&engine->recheck, snapshot);
    leat_snapshot_unref(old);
    note_loaded(shared, snapshot);
    shared->life.reloads++;
}

void leat_engine_reload_failed(struct leat_engine *engine, const char *reason)
{
    struct leat_life *life = &engine->shared.life;

    life->failed_reloads++;
    life->last_failure_at = leat_json_now_ms();
    (void)snprintf(life->last_failure, sizeof(life->last_failure), "%s", reason);
}

struct leat_shared *leat_engine_shared(struct leat_engine *engine)
{
    return &engine->shared;
}

static void log_backends(const struct leat_shared *shared)
{
    const struct leat_snapshot *snapshot = shared->snapshot;

    for (size_t i = 0; i < snapshot->config->backends.count; i++)
        leat_log_line(shared->log, LEAT_LOG_INFO, "backend=%s tls=%s", snapshot->backends[i].text,
                      snapshot->backend_ctx[i] != NULL ? "yes" : "no");
}

static void log_listeners(const struct leat_shared *shared)
{
    for (size_t i = 0; i < shared->listener_count; i++) {
        const struct leat_endpoint *endpoint = &shared->snapshot->config->listeners.at[i].endpoint;
        char url[LEAT_ENDPOINT_URL_MAX];

        leat_log_line(shared->log, LEAT_LOG_INFO, "listening on=%s",
                      leat_endpoint_url(endpoint, &shared->listener_addrs[i], url));
    }
}

enum leat_status leat_engine_start(struct leat_engine *engine, struct leat_error *err)
{
    struct leat_shared *shared = &engine->shared;

    for (unsigned i = 0; i < shared->worker_count; i++) {
        enum leat_status status = leat_worker_start(&shared->workers[i], err);
        if (status != LEAT_OK)
            return status;
    }
    leat_log_line(shared->log, LEAT_LOG_INFO, "started version=%s workers=%u sessions_max=%llu",
                  LEAT_VERSION, shared->worker_count, (unsigned long long)shared->sessions_max);
    leat_snapshot_each_ctx(shared->snapshot, warn_of_dates, shared->log);
    log_backends(shared);
    log_listeners(shared);
    leat_recheck_start(&engine->recheck, shared->snapshot);
    return LEAT_OK;
}

/* What is counted, under the names of the log. */
struct counter {
    const char *name;
    size_t offset;
};

#define OF_WORKER(member)                                                                          \
    {                                                                                              \
#member, offsetof(struct leat_worker_counters, member)                                     \
    }
#define OF_LOOP(member)                                                                            \
    {                                                                                              \
#member, offsetof(struct leat_loop_counters, member)                                       \
    }

static const struct counter worker_counters[] = {
    OF_WORKER(accepted),
    OF_WORKER(closed),
    OF_WORKER(opened),
    OF_WORKER(refused),
    OF_WORKER(failed),
    OF_WORKER(silent),
    OF_WORKER(turned_away),
    OF_WORKER(bytes_in),
    OF_WORKER(bytes_out),
    OF_WORKER(frames_in),
    OF_WORKER(frames_out),
    OF_WORKER(heartbeats_sent),
    OF_WORKER(heartbeats_received),
    OF_WORKER(tls_handshakes),
    OF_WORKER(tls_resumed),
};
static const struct counter loop_counters[] = {
    OF_LOOP(wakeups), OF_LOOP(polls),   OF_LOOP(recvs),
    OF_LOOP(sends),   OF_LOOP(accepts), OF_LOOP(connects),
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t counter_at(const void *counters, size_t offset)
{
    return *(const _Atomic uint64_t *)(const void *)((const char *)counters + offset);
}

void leat_shared_each_counter(const struct leat_shared *shared, leat_counter_fn *fn, void *arg)
{
    for (size_t c = 0; c < LENGTH(worker_counters); c++) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < shared->worker_count; i++)
            sum += counter_at(&shared->workers[i].count, worker_counters[c].offset);
        fn(arg, worker_counters[c].name, sum);
    }
    for (size_t c = 0; c < LENGTH(loop_counters); c++) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < shared->worker_count; i++)
            sum += counter_at(leat_loop_counters(shared->workers[i].loop), loop_counters[c].offset);
        fn(arg, loop_counters[c].name, sum);
    }
}

static void add_counter(void *arg, const char *name, uint64_t value)
{
    leat_text_add(arg, " %s=%llu", name, (unsigned long long)value);
}

uint64_t leat_shared_connections(const struct leat_shared *shared)
{
    uint64_t load = 0;

    for (unsigned i = 0; i < shared->worker_count; i++)
        load += shared->workers[i].count.load;
    return load;
}

uint64_t leat_shared_sessions(const struct leat_shared *shared)
{
    uint64_t closed = 0, opened = 0;

    /* In this order: a session that ends meanwhile must not be counted as closed only. */
    for (unsigned i = 0; i < shared->worker_count; i++)
        closed += shared->workers[i].count.closed;
    for (unsigned i = 0; i < shared->worker_count; i++)
        opened += shared->workers[i].count.opened;
    return opened - closed;
}

void leat_engine_log_status(const struct leat_engine *engine)
{
    const struct leat_shared *shared = &engine->shared;
    char buf[1000];
    struct leat_text line;

    leat_text_init(&line, buf, sizeof(buf));
    leat_text_add(&line, "status connections=%llu sessions=%llu handshakes=%llu queued=%zu",
                  (unsigned long long)leat_shared_connections(shared),
                  (unsigned long long)leat_shared_sessions(shared),
                  (unsigned long long)shared->handshakes, (size_t)shared->account.held);
    leat_shared_each_counter(shared, add_counter, &line);
    leat_log_line(shared->log, LEAT_LOG_INFO, "%s", buf);
}

/* Draining. */

static void stop_drain_timers(struct leat_engine *engine)
{
    leat_timer_stop(engine->control, &engine->drain_close);
    leat_timer_stop(engine->control, &engine->drain_end);
    leat_timer_stop(engine->control, &engine->drain_poll);
}

static void finish_drain(struct leat_engine *engine)
{
    stop_drain_timers(engine);
    engine->drained(engine->drained_arg);
}

static void on_drain_poll(void *arg)
{
    struct leat_engine *engine = arg;

    if (leat_shared_connections(&engine->shared) == 0) {
        leat_log_line(engine->shared.log, LEAT_LOG_INFO, "drained: no session is left");
        finish_drain(engine);
        return;
    }
    leat_timer_start(engine->control, &engine->drain_poll, DRAIN_POLL_MS);
}

static void on_drain_close(void *arg)
{
    struct leat_engine *engine = arg;
    const struct leat_config *config = engine->shared.snapshot->config;

    for (unsigned i = 0; i < engine->shared.worker_count; i++)
        leat_worker_drain(&engine->shared.workers[i],
                          config->drain_close_until_ms - config->drain_close_after_ms);
}

static void on_drain_end(void *arg)
{
    struct leat_engine *engine = arg;

    leat_log_line(engine->shared.log, LEAT_LOG_WARN,
                  "draining took too long (drain.end): connections=%llu are cut",
                  (unsigned long long)leat_shared_connections(&engine->shared));
    finish_drain(engine);
}

void leat_engine_drain(struct leat_engine *engine, void (*done)(void *arg), void *arg)
{
    engine->shared.life.is_draining = true;
    engine->drained = done;
    engine->drained_arg = arg;
    for (unsigned i = 0; i < engine->shared.worker_count; i++)
        leat_worker_close_listeners(&engine->shared.workers[i]);
    leat_log_line(
        engine->shared.log, LEAT_LOG_INFO,
        "draining: no new connections; connections=%llu may end by themselves for "
        "%llu s",
        (unsigned long long)leat_shared_connections(&engine->shared),
        (unsigned long long)(engine->shared.snapshot->config->drain_close_after_ms / 1000));
    leat_timer_start(engine->control, &engine->drain_close,
                     engine->shared.snapshot->config->drain_close_after_ms);
    leat_timer_start(engine->control, &engine->drain_end,
                     engine->shared.snapshot->config->drain_end_ms);
    leat_timer_start(engine->control, &engine->drain_poll, 0);
}

/* Cutting all sessions, with the workers still there to tell of it. */
struct cut {
    struct leat_ask ask;
    bool is_done;
};

static void run_cut(struct leat_ask *ask, struct leat_worker *worker)
{
    (void)ask;
    leat_worker_cut(worker);
}

static void cut_done(struct leat_ask *ask, struct leat_worker *worker)
{
    (void)worker;
    LEAT_LIST_OBJECT(ask, struct cut, ask)->is_done = true;
}

void leat_engine_cut(struct leat_engine *engine)
{
    struct leat_shared *shared;

    if (engine == NULL)
        return;
    shared = &engine->shared;
    for (unsigned i = 0; i < shared->worker_count && shared->workers[i].is_started; i++) {
        struct cut cut = {.ask = {.control = engine->control, .run = run_cut, .done = cut_done}};
        leat_ask(&cut.ask, &shared->workers[i]);
        while (!cut.is_done)
            leat_loop_turn(engine->control, -1);
    }
}

void leat_engine_free(struct leat_engine *engine)
{
    struct leat_shared *shared;

    if (engine == NULL)
        return;
    shared = &engine->shared;
    stop_drain_timers(engine);
    leat_recheck_stop(&engine->recheck);
    /* All have to be at rest before one goes: they hand connections to each other. */
    for (unsigned i = 0; i < shared->worker_count; i++)
        leat_worker_stop(&shared->workers[i]);
    for (unsigned i = 0; i < shared->worker_count; i++)
        leat_worker_fini(&shared->workers[i]);
    leat_mem_free(shared->workers);
    if (!shared->listeners_closed)
        leat_worker_close_sockets(shared);
    leat_snapshot_unref(shared->snapshot);
    (void)pthread_mutex_destroy(&shared->snapshot_lock);
    leat_mem_free(engine);
}
