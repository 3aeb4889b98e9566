/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/tls_state.h"

#include "base/error.h"
#include "base/mem.h"
#include "proxy/config.h"
#include "tls/digest.h"

#define BUILD_THREADS 2
/* A file that is being replaced is whole again by then. */
#define BACKOFF_MS 2000

/* The files of CONFIG, for the log. */
static const char *file_of(const struct leat_tls_config *config)
{
    const char *authorities = leat_tls_config_authorities(config);

    return authorities != NULL ? authorities : "the system's authorities";
}

static void on_notice(void *arg, enum leat_tls_ctx_notice notice,
                      const struct leat_tls_config *config, const struct leat_error *err)
{
    const struct leat_tls_state *state = arg;
    const struct leat_log *log = state->log;

    if (log == NULL)
        return;
    switch (notice) {
    case LEAT_TLS_CTX_BUILT:
        break;
    case LEAT_TLS_CTX_FAILED:
        leat_log_line(log, LEAT_LOG_ERROR, "no TLS towards backends that need it: %s", err->text);
        break;
    case LEAT_TLS_CTX_RENEWED:
        leat_log_line(log, LEAT_LOG_INFO,
                      "TLS towards backends (%s) was renewed: its files had changed",
                      file_of(config));
        break;
    case LEAT_TLS_CTX_NOT_RENEWED:
        leat_log_line(log, LEAT_LOG_ERROR,
                      "TLS towards backends (%s) stays as it was: its files have changed, but %s",
                      file_of(config), err->text);
        break;
    }
}

static enum leat_status make_parts(struct leat_tls_state *state, const struct leat_config *config,
                                   struct leat_error *err)
{
    struct leat_tls_ctx_cache_options options = {
        .capacity = (size_t)config->tls_contexts,
        .recheck_ms = config->tls_recheck_ms,
        .backoff_ms = BACKOFF_MS,
        .notice = on_notice,
        .notice_arg = state,
    };
    enum leat_status status = leat_offload_new(BUILD_THREADS, &state->offload, err);

    if (status == LEAT_OK)
        status = leat_tls_trusts_new(&state->trusts, err);
    if (status == LEAT_OK)
        status = leat_tls_keyring_new(leat_clock_monotonic_ms, NULL, &state->keyring, err);
    options.offload = state->offload;
    options.trusts = state->trusts;
    if (status == LEAT_OK)
        status = leat_tls_ctx_cache_new(&options, &state->cache, err);
    return status;
}

enum leat_status leat_tls_state_new(const struct leat_config *config, struct leat_tls_state **out,
                                    struct leat_error *err)
{
    struct leat_tls_state *state = leat_mem_zalloc(sizeof(*state));

    if (state == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    state->refs = 1;
    enum leat_status status = make_parts(state, config, err);
    if (status != LEAT_OK) {
        leat_tls_state_unref(state);
        return status;
    }
    *out = state;
    return LEAT_OK;
}

struct leat_tls_state *leat_tls_state_ref(struct leat_tls_state *state)
{
    state->refs++;
    return state;
}

void leat_tls_state_unref(struct leat_tls_state *state)
{
    if (state == NULL || --state->refs > 0)
        return;
    leat_offload_free(state->offload);
    leat_tls_ctx_cache_unref(state->cache);
    leat_tls_keyring_unref(state->keyring);
    leat_tls_trusts_unref(state->trusts);
    leat_mem_free(state);
}

/* One that waits for a context on a loop of its own. */
struct waiting {
    bool is_over;
    struct leat_tls_ctx *ctx;
    struct leat_error err;
};

static void on_got(void *arg, struct leat_tls_ctx *ctx, const struct leat_error *err)
{
    struct waiting *waiting = arg;

    waiting->is_over = true;
    waiting->ctx = ctx;
    if (err != NULL)
        waiting->err = *err;
}

enum leat_status leat_tls_state_get_now(struct leat_tls_state *state,
                                        struct leat_tls_config *config, struct leat_tls_ctx **out,
                                        struct leat_error *err)
{
    struct waiting waiting = {.is_over = false};
    struct leat_tls_ctx_want want;
    struct leat_loop *loop;
    enum leat_status status = leat_loop_new(&loop, err);

    if (status != LEAT_OK)
        return status;
    leat_tls_ctx_want_init(&want, loop, on_got, &waiting);
    status = leat_tls_ctx_cache_get(state->cache, config, &want, out, err);
    while (status == LEAT_EAGAIN && !waiting.is_over)
        leat_loop_turn(loop, -1);
    leat_loop_free(loop);
    if (status != LEAT_EAGAIN)
        return status;
    if (waiting.ctx == NULL)
        return leat_error_set(err, waiting.err.status, 0, "%s", waiting.err.text);
    *out = waiting.ctx;
    return LEAT_OK;
}

/* One that looks for the entry of CONFIG. */
struct search {
    const struct leat_tls_config *config;
    struct leat_tls_ctx *ctx;
    struct leat_error *err;
};

static void look_at(void *arg, const struct leat_tls_ctx_cache_entry *entry)
{
    struct search *search = arg;

    if (!leat_tls_digest_equal(leat_tls_config_key(entry->config),
                               leat_tls_config_key(search->config)))
        return;
    if (entry->ctx != NULL)
        search->ctx = leat_tls_ctx_ref(entry->ctx);
    if (entry->err != NULL)
        *search->err = *entry->err;
}

struct leat_tls_ctx *leat_tls_state_find(struct leat_tls_state *state,
                                         const struct leat_tls_config *config,
                                         struct leat_error *err)
{
    struct search search = {.config = config, .err = err};

    *err = (struct leat_error){.status = LEAT_OK};
    leat_tls_ctx_cache_each(state->cache, look_at, &search);
    return search.ctx;
}
