/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/recheck.h"

#include <string.h>

#include "proxy/snapshot.h"
#include "proxy/tls_state.h"
#include "tls/server.h"

static bool has_changed(const struct leat_tls_server *server)
{
    for (size_t i = 0; server != NULL && i < leat_tls_server_count(server); i++) {
        if (leat_tls_ctx_has_changed(leat_tls_server_ctx(server, i)))
            return true;
    }
    return false;
}

/* On the pool. */
static void look(void *arg)
{
    struct leat_recheck *recheck = arg;
    const struct leat_snapshot *snapshot = recheck->snapshot;

    for (size_t i = 0; i < snapshot->config->listeners.count; i++)
        recheck->is_new[i] = !recheck->has_changed[i] && has_changed(snapshot->listener_tls[i]);
}

static void sleep_on(struct leat_recheck *recheck)
{
    leat_timer_start(recheck->loop, &recheck->timer, recheck->snapshot->config->tls_recheck_ms);
}

/* Looks at another snapshot from now on. */
static void adopt(struct leat_recheck *recheck, struct leat_snapshot *snapshot)
{
    leat_snapshot_unref(recheck->snapshot);
    recheck->snapshot = snapshot;
    recheck->next = NULL;
    memset(recheck->has_changed, 0, sizeof(recheck->has_changed));
    sleep_on(recheck);
}

static void tell(void *arg)
{
    struct leat_recheck *recheck = arg;

    recheck->is_at_work = false;
    if (recheck->next != NULL) { /* what was found is of a snapshot that is in force no more */
        adopt(recheck, recheck->next);
        return;
    }
    for (size_t i = 0; i < recheck->snapshot->config->listeners.count; i++) {
        if (recheck->is_new[i])
            leat_log_line(recheck->log, LEAT_LOG_WARN,
                          "files of TLS of listeners[%zu] have changed: they are in use once leat "
                          "is told to reload (leatctl reload, or SIGHUP)",
                          i);
        recheck->has_changed[i] = recheck->has_changed[i] || recheck->is_new[i];
    }
    sleep_on(recheck);
}

static void on_timer(void *arg)
{
    struct leat_recheck *recheck = arg;

    recheck->is_at_work = true;
    leat_offload_submit(recheck->snapshot->tls->offload, &recheck->work);
}

void leat_recheck_init(struct leat_recheck *recheck, struct leat_loop *loop,
                       const struct leat_log *log)
{
    *recheck = (struct leat_recheck){.loop = loop, .log = log};
    leat_timer_init(&recheck->timer, on_timer, recheck);
    recheck->work =
        (struct leat_work){.run = look, .done = tell, .arg = recheck, .loop = recheck->loop};
}

void leat_recheck_start(struct leat_recheck *recheck, struct leat_snapshot *snapshot)
{
    (void)leat_snapshot_ref(snapshot);
    if (!recheck->is_at_work) {
        adopt(recheck, snapshot);
        return;
    }
    /* The pool looks at the present one: it is let go when that is done. */
    leat_snapshot_unref(recheck->next);
    recheck->next = snapshot;
}

void leat_recheck_stop(struct leat_recheck *recheck)
{
    while (recheck->is_at_work)
        leat_loop_turn(recheck->loop, -1);
    leat_timer_stop(recheck->loop, &recheck->timer);
    leat_snapshot_unref(recheck->snapshot);
    recheck->snapshot = NULL;
}
