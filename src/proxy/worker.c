/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/worker.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "net/resolver.h"
#include "proxy/session.h"
#include "proxy/snapshot.h"

#define ACCEPTS_A_TURN 64
#define PAUSE_MS 200
#define DRAIN_TICK_MS 100
#define ACCEPT_BURST 2
#define LIMIT_BURST 5

/* A connection on its way from the worker that accepted it to the one that carries it. */
struct handover {
    struct leat_post post;
    struct leat_worker *worker;
    size_t listener;
    struct leat_addr peer;
    int fd;
};

struct leat_snapshot *leat_shared_snapshot(struct leat_shared *shared)
{
    struct leat_snapshot *snapshot;

    /* The reference has to be taken before another thread can drop the last one. */
    (void)pthread_mutex_lock(&shared->snapshot_lock);
    snapshot = leat_snapshot_ref(shared->snapshot);
    (void)pthread_mutex_unlock(&shared->snapshot_lock);
    return snapshot;
}

bool leat_worker_may_log(const struct leat_worker *worker, struct leat_log_rate *rate,
                         uint32_t burst)
{
    uint32_t held_back;

    if (!leat_log_rate_allows(rate, burst, leat_loop_now_ms(worker->loop), &held_back))
        return false;
    if (held_back > 0)
        leat_log_line(worker->shared->log, LEAT_LOG_WARN,
                      "lines like the next one were held back=%u", held_back);
    return true;
}

void leat_cursor_open(struct leat_cursor *cursor, struct leat_worker *worker)
{
    cursor->next = worker->sessions.next;
    leat_list_append(&worker->cursors, &cursor->link);
}

void leat_cursor_close(struct leat_cursor *cursor)
{
    leat_list_remove(&cursor->link);
}

void leat_worker_forget(struct leat_worker *worker, struct leat_session *session)
{
    struct leat_list *link;

    for (link = worker->cursors.next; link != &worker->cursors; link = link->next) {
        struct leat_cursor *cursor = LEAT_LIST_OBJECT(link, struct leat_cursor, link);
        if (cursor->next == &session->link)
            cursor->next = session->link.next;
    }
    leat_list_remove(&session->link);
}

static void on_handover(void *arg)
{
    struct handover *handover = arg;

    leat_session_start(handover->worker, handover->fd, handover->listener, &handover->peer);
    leat_mem_free(handover);
}

/* Raises the load of the worker with the fewest sessions and returns it. SELF wins a draw. */
static struct leat_worker *place(struct leat_worker *self)
{
    struct leat_shared *shared = self->shared;
    struct leat_worker *least = self;

    for (unsigned i = 0; i < shared->worker_count; i++) {
        if (shared->workers[i].count.load < least->count.load)
            least = &shared->workers[i];
    }
    least->count.load++;
    return least;
}

static void hand_over(struct leat_worker *self, int fd, size_t listener,
                      const struct leat_addr *peer)
{
    struct leat_worker *target = place(self);
    struct handover *handover;

    if (target == self) {
        leat_session_start(self, fd, listener, peer);
        return;
    }
    handover = leat_mem_zalloc(sizeof(*handover));
    if (handover == NULL) {
        (void)close(fd);
        target->count.load--;
        self->shared->handshakes--;
        self->count.failed++;
        return;
    }
    *handover = (struct handover){.post = {.fn = on_handover, .arg = handover},
                                  .worker = target,
                                  .listener = listener,
                                  .peer = *peer,
                                  .fd = fd};
    leat_loop_post(target->loop, &handover->post);
}

/* Whether one more connection may begin its handshake; if not it is closed. */
static bool may_begin(struct leat_worker *worker, int fd)
{
    struct leat_shared *shared = worker->shared;
    uint64_t most = shared->handshakes_max;

    /* Those that linger hold descriptors too, as many again as handshakes may. */
    if (++shared->handshakes <= most && shared->handshakes + shared->ending <= 2 * most)
        return true;
    shared->handshakes--;
    worker->count.turned_away++;
    (void)close(fd);
    if (leat_worker_may_log(worker, &shared->rate_limit, LIMIT_BURST))
        leat_log_line(shared->log, LEAT_LOG_WARN,
                      "connection turned away: %llu handshakes are under way, the most that "
                      "limits.handshakes and the limit of open files allow",
                      (unsigned long long)most);
    return false;
}

/* Accepting ends until descriptors may be free again; connections wait in the kernel. */
static void pause_accepting(struct leat_listener *listener, int sys)
{
    struct leat_shared *shared = listener->worker->shared;
    char reason[128];

    leat_io_close(&listener->io);
    leat_timer_start(listener->worker->loop, &listener->pause, PAUSE_MS);
    if (leat_worker_may_log(listener->worker, &shared->rate_accept, ACCEPT_BURST))
        leat_log_line(shared->log, LEAT_LOG_ERROR,
                      "connections wait to be accepted: %s; raise the limit of open files "
                      "(ulimit -n) or lower limits.sessions",
                      strerror_r(sys, reason, sizeof(reason)));
}

static void on_acceptable(struct leat_io *io, void *arg)
{
    struct leat_listener *listener = arg;
    struct sockaddr_storage ss;
    struct leat_addr peer;
    int fd, sys;

    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        enum leat_status status = leat_io_accept(io, &fd, &ss, &sys);
        if (status == LEAT_ELIMIT)
            pause_accepting(listener, sys);
        if (status != LEAT_OK)
            return;
        listener->worker->count.accepted++;
        leat_addr_from_sockaddr(&ss, &peer);
        if (may_begin(listener->worker, fd))
            hand_over(listener->worker, fd, listener->index, &peer);
    }
}

static enum leat_status watch(struct leat_listener *listener)
{
    struct leat_worker *worker = listener->worker;

    return leat_io_open_listener(&listener->io, worker->loop,
                                 worker->shared->listener_fds[listener->index], on_acceptable,
                                 listener);
}

static void on_pause_over(void *arg)
{
    struct leat_listener *listener = arg;

    if (watch(listener) != LEAT_OK)
        leat_timer_start(listener->worker->loop, &listener->pause, PAUSE_MS);
}

void leat_worker_close_sockets(struct leat_shared *shared)
{
    shared->listeners_closed = true;
    for (size_t i = 0; i < shared->listener_count; i++) {
        leat_unix_socket_remove(&shared->listener_sockets[i]);
        (void)close(shared->listener_fds[i]);
    }
}

static void stop_listening(struct leat_worker *worker)
{
    if (!worker->is_listening)
        return;
    worker->is_listening = false;
    for (size_t i = 0; i < worker->shared->listener_count; i++) {
        leat_timer_stop(worker->loop, &worker->listeners[i].pause);
        leat_io_close(&worker->listeners[i].io);
    }
}

static void on_close_listeners(void *arg)
{
    struct leat_worker *worker = arg;

    stop_listening(worker);
    /* While the sockets are open the kernel would go on to complete connections, which then
     * nobody accepts. */
    if (--worker->shared->listening == 0)
        leat_worker_close_sockets(worker->shared);
}

static uint64_t count_open(const struct leat_worker *worker)
{
    uint64_t open = 0;

    for (struct leat_list *link = worker->sessions.next; link != &worker->sessions;
         link = link->next)
        open += LEAT_LIST_OBJECT(link, struct leat_session, link)->state < LEAT_SESSION_CLOSING;
    return open;
}

/* Sends so many Closes that of the sessions there were at first as large a part is left as
 * of the time. */
static void on_drain(void *arg)
{
    struct leat_worker *worker = arg;
    uint64_t now = leat_loop_now_ms(worker->loop);
    uint64_t left = (worker->drain_until > now) ? worker->drain_until - now : 0;
    uint64_t may_stay = (left > 0) ? worker->drain_sessions * left / worker->drain_during_ms : 0;
    struct leat_list *link, *next;

    uint64_t open = count_open(worker);
    for (link = worker->sessions.next; link != &worker->sessions && open > may_stay; link = next) {
        struct leat_session *session = LEAT_LIST_OBJECT(link, struct leat_session, link);
        next = link->next;
        if (session->state < LEAT_SESSION_CLOSING && leat_session_drain(session))
            open--;
    }
    /* Also when none is left: one may have been on its way here. */
    leat_timer_start(worker->loop, &worker->drain, DRAIN_TICK_MS);
}

static void on_begin_drain(void *arg)
{
    struct leat_worker *worker = arg;

    worker->drain_sessions = count_open(worker);
    worker->drain_until = leat_loop_now_ms(worker->loop) + worker->drain_during_ms;
    on_drain(worker);
}

void leat_worker_cut(struct leat_worker *worker)
{
    struct leat_list *link, *next;

    stop_listening(worker);
    leat_timer_stop(worker->loop, &worker->drain);
    for (link = worker->sessions.next; link != &worker->sessions; link = next) {
        next = link->next;
        leat_session_cut(LEAT_LIST_OBJECT(link, struct leat_session, link), "leat has stopped");
    }
}

/* Cuts what is left and stops. */
static void on_finish(void *arg)
{
    struct leat_worker *worker = arg;

    leat_worker_cut(worker);
    leat_loop_stop(worker->loop);
}

static enum leat_status make_resolver(struct leat_worker *worker, struct leat_error *err)
{
    const struct leat_config *config = worker->shared->snapshot->config;
    const struct leat_resolver_config resolver = {.servers = config->dns_servers,
                                                  .server_count = config->dns_server_count,
                                                  .timeout_ms = config->dns_timeout_ms,
                                                  .tries = (unsigned)config->dns_tries,
                                                  .ttl_max_ms = config->dns_ttl_max_ms};

    return leat_resolver_new(worker->loop, &resolver, &worker->resolver, err);
}

enum leat_status leat_worker_init(struct leat_worker *worker, struct leat_shared *shared,
                                  struct leat_error *err)
{
    enum leat_status status;

    worker->shared = shared;
    leat_list_init(&worker->sessions);
    leat_list_init(&worker->watches);
    leat_list_init(&worker->cursors);
    leat_timer_init(&worker->drain, on_drain, worker);
    worker->close_listeners = (struct leat_post){.fn = on_close_listeners, .arg = worker};
    worker->begin_drain = (struct leat_post){.fn = on_begin_drain, .arg = worker};
    worker->finish = (struct leat_post){.fn = on_finish, .arg = worker};
    status = leat_loop_new(&worker->loop, err);
    if (status == LEAT_OK)
        status = make_resolver(worker, err);
    if (status != LEAT_OK)
        return status;
    for (size_t i = 0; i < shared->listener_count; i++) {
        struct leat_listener *listener = &worker->listeners[i];
        listener->worker = worker;
        listener->index = i;
        listener->io.fd = -1;
        leat_timer_init(&listener->pause, on_pause_over, listener);
        status = watch(listener);
        if (status != LEAT_OK)
            return leat_error_set(err, status, 0, "watching a listener: out of memory");
    }
    worker->is_listening = true;
    shared->listening++;
    return LEAT_OK;
}

static void *run(void *arg)
{
    struct leat_worker *worker = arg;

    leat_loop_run(worker->loop);
    return NULL;
}

enum leat_status leat_worker_start(struct leat_worker *worker, struct leat_error *err)
{
    int sys = pthread_create(&worker->thread, NULL, run, worker);

    if (sys != 0)
        return leat_error_set(err, LEAT_EIO, sys, "starting a worker");
    worker->is_started = true;
    return LEAT_OK;
}

void leat_worker_stop(struct leat_worker *worker)
{
    if (!worker->is_started) {
        stop_listening(worker);
        return;
    }
    leat_loop_post(worker->loop, &worker->finish);
    (void)pthread_join(worker->thread, NULL);
    worker->is_started = false;
}

void leat_worker_fini(struct leat_worker *worker)
{
    if (worker->loop == NULL)
        return;
    leat_loop_turn(worker->loop, 0);
    on_finish(worker);
    leat_resolver_free(worker->resolver);
    leat_loop_free(worker->loop);
    worker->loop = NULL;
}

void leat_worker_close_listeners(struct leat_worker *worker)
{
    leat_loop_post(worker->loop, &worker->close_listeners);
}

void leat_worker_drain(struct leat_worker *worker, uint64_t during_ms)
{
    worker->drain_during_ms = during_ms;
    leat_loop_post(worker->loop, &worker->begin_drain);
}
