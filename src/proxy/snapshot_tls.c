/* The TLS of a snapshot: made of what the configuration says. SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/config_keys.h"
#include "proxy/config_place.h"
#include "proxy/snapshot.h"
#include "proxy/tls_state.h"
#include "tls/server.h"

/* An item of the configuration, as messages name it. */
struct item {
    const struct leat_config *config;
    char path[300]; /* "listeners[0]" */
    unsigned line;
    const unsigned *key_lines;
    const struct leat_key_table *table;
    size_t tls_at; /* where its settings of TLS are in what TABLE describes */
};

static struct item item_of_listener(const struct leat_config *config, size_t index)
{
    const struct leat_listener_config *listener = &config->listeners.at[index];
    struct item item = {.config = config,
                        .line = listener->line,
                        .key_lines = listener->key_lines,
                        .table = &leat_listener_table,
                        .tls_at = offsetof(struct leat_listener_config, tls)};

    (void)snprintf(item.path, sizeof(item.path), "listeners[%zu]", index);
    return item;
}

static void set_path(struct item *item, const char *section, const char *name)
{
    struct leat_text path;

    leat_text_init(&path, item->path, sizeof(item->path));
    leat_text_add(&path, "%s", section);
    leat_place_add_name(&path, leat_str_of(name));
}

static struct item item_of_certificate(const struct leat_config *config,
                                       const struct leat_certificate_config *certificate)
{
    struct item item = {.config = config,
                        .line = certificate->line,
                        .key_lines = certificate->key_lines,
                        .table = &leat_certificate_table,
                        .tls_at = offsetof(struct leat_certificate_config, tls)};

    set_path(&item, "certificates", certificate->name);
    return item;
}

static struct item item_of_backend(const struct leat_config *config, size_t index)
{
    const struct leat_backend_config *backend = &config->backends.at[index];
    struct item item = {.config = config,
                        .line = backend->line,
                        .key_lines = backend->key_lines,
                        .table = &leat_backend_table,
                        .tls_at = offsetof(struct leat_backend_config, tls)};

    set_path(&item, "backends", backend->name);
    return item;
}

#define MEMBER(name) offsetof(struct leat_tls_settings, name)

/* The file that ITEM is from, for a message of which REST bytes follow: if there is no room for the
 * whole path its end has to do, since what is wrong comes last. */
static const char *file_shown(const struct item *item, size_t rest)
{
    const char *file = item->config->file, *slash = strrchr(file, '/');
    const size_t line_max = sizeof(":4294967295: ");
    struct leat_error err;

    if (slash == NULL || strlen(file) + line_max + rest < sizeof(err.text))
        return file;
    return slash + 1;
}

/* Puts before ERR's text, of LEAT_EUSAGE, where ITEM is, and KEY of it if not NULL. */
static enum leat_status at_key(const struct item *item, const struct leat_key *key,
                               struct leat_error *err)
{
    char buf[sizeof(err->text)], rest[2 * sizeof(err->text)];
    struct leat_text text;

    if (item->config->file == NULL || err->status == LEAT_ENOMEM)
        return err->status;
    leat_text_init(&text, rest, sizeof(rest));
    leat_text_add(&text, "%s%s%s: %s", item->path, key != NULL ? "." : "",
                  key != NULL ? key->name : "", err->text);
    size_t rest_len = text.len;
    leat_text_init(&text, buf, sizeof(buf));
    leat_place_add_file(&text, file_shown(item, rest_len),
                        key != NULL ? leat_key_line(key, item->key_lines, item->line) : item->line);
    leat_text_add(&text, "%s", rest);
    return leat_error_set(err, err->status, 0, "%s", buf);
}

static enum leat_status at_setting(const struct item *item, size_t member, struct leat_error *err)
{
    return at_key(item, leat_key_at(item->table, item->tls_at + member), err);
}

/* Likewise, of the file that ERR speaks of first. */
static enum leat_status at_file(const struct item *item, struct leat_error *err)
{
    static const struct {
        const char *what;
        size_t member;
    } files[] = {
        {"certificate file ", MEMBER(cert)}, {"key file ", MEMBER(key)},
        {"the key in ", MEMBER(cert)},       {"passphrase file ", MEMBER(key_passphrase)},
        {"CRL file ", MEMBER(crl)},          {"CA ", MEMBER(ca)},
        {"the system ", MEMBER(ca)},
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strncmp(err->text, files[i].what, strlen(files[i].what)) == 0)
            return at_setting(item, files[i].member, err);
    }
    return at_key(item, NULL, err);
}

/* Making a configuration of TLS by one setting after the other, until one fails. */
struct making {
    const struct item *item;
    const struct leat_tls_settings *says;
    struct leat_tls_config *tls;
    struct leat_error *err;
    enum leat_status status;
};

typedef enum leat_status set_text_fn(struct leat_tls_config *config, const char *text,
                                     struct leat_error *err);

static void set_text(struct making *making, size_t member, set_text_fn *set)
{
    const char *text;

    memcpy(&text, (const char *)making->says + member, sizeof(text));
    if (making->status != LEAT_OK || text == NULL)
        return;
    making->status = set(making->tls, text, making->err);
    if (making->status != LEAT_OK)
        (void)at_setting(making->item, member, making->err);
}

/* What both sides have. */
static void set_common(struct making *making)
{
    const struct leat_tls_settings *says = making->says;

    if (making->status == LEAT_OK && says->cert != NULL) {
        making->status = leat_tls_config_set_cert(making->tls, says->cert, says->key, making->err);
        if (making->status != LEAT_OK)
            (void)at_setting(making->item, MEMBER(cert), making->err);
    }
    set_text(making, MEMBER(key_passphrase), leat_tls_config_set_passphrase_file);
    set_text(making, MEMBER(ca), leat_tls_config_set_authorities);
    set_text(making, MEMBER(crl), leat_tls_config_add_crl);
    if (making->status == LEAT_OK) {
        making->status =
            leat_tls_config_set_versions(making->tls, (enum leat_tls_version)says->min_version,
                                         (enum leat_tls_version)says->max_version, making->err);
        if (making->status != LEAT_OK)
            (void)at_setting(making->item, MEMBER(min_version), making->err);
    }
    set_text(making, MEMBER(ciphersuites), leat_tls_config_set_ciphersuites);
    set_text(making, MEMBER(ciphers), leat_tls_config_set_ciphers);
    set_text(making, MEMBER(groups), leat_tls_config_set_groups);
}

/* Freezes and gives what was made, or frees it. */
static enum leat_status finish(struct making *making, struct leat_tls_config **out)
{
    if (making->status == LEAT_OK) {
        making->status = leat_tls_config_freeze(making->tls, making->err);
        if (making->status != LEAT_OK)
            (void)at_key(making->item, NULL, making->err);
    }
    if (making->status == LEAT_OK)
        *out = making->tls;
    else
        leat_tls_config_unref(making->tls);
    return making->status;
}

static enum leat_status make_server_config(const struct item *item,
                                           const struct leat_tls_settings *says,
                                           struct leat_tls_config **out, struct leat_error *err)
{
    struct making making = {.item = item, .says = says, .err = err};
    /* A ticket would outlive the certificate that was shown for it. */
    bool tickets = says->tickets && says->client_certificate == LEAT_TLS_CLIENT_CERT_NONE;

    making.status = leat_tls_config_new(LEAT_TLS_SERVER, &making.tls, err);
    set_common(&making);
    if (making.status == LEAT_OK)
        making.status = leat_tls_config_set_client_cert(
            making.tls, (enum leat_tls_client_cert)says->client_certificate, err);
    if (making.status == LEAT_OK)
        making.status = leat_tls_config_set_tickets(making.tls, tickets, err);
    return finish(&making, out);
}

static enum leat_status make_client_config(const struct item *item,
                                           const struct leat_backend_config *backend,
                                           struct leat_tls_config **out, struct leat_error *err)
{
    struct making making = {.item = item, .says = &backend->tls, .err = err};

    making.status = leat_tls_config_new(LEAT_TLS_CLIENT, &making.tls, err);
    set_common(&making);
    if (making.status == LEAT_OK && backend->insecure_skip_verify)
        making.status = leat_tls_config_insecure_skip_verify(making.tls, err);
    return finish(&making, out);
}

/* Builds the context of ITEM, a server that says SAYS. */
static enum leat_status build_ctx(struct leat_tls_state *state, const struct item *item,
                                  const struct leat_tls_settings *says, struct leat_tls_ctx **out,
                                  struct leat_error *err)
{
    struct leat_tls_config *tls;
    enum leat_status status = make_server_config(item, says, &tls, err);

    if (status != LEAT_OK)
        return status;
    status = leat_tls_ctx_build(tls, state->trusts, out, err);
    leat_tls_config_unref(tls);
    return status == LEAT_OK ? LEAT_OK : at_file(item, err);
}

/* Fills ENTRIES, one for the listener at INDEX and one for each further certificate. */
static enum leat_status build_entries(const struct leat_snapshot *snapshot, size_t index,
                                      struct leat_tls_server_entry *entries, struct leat_error *err)
{
    const struct leat_config *config = snapshot->config;
    const struct leat_listener_config *listener = &config->listeners.at[index];
    struct item item = item_of_listener(config, index);
    struct leat_tls_settings says = leat_config_tls_of(listener, NULL);
    enum leat_status status = build_ctx(snapshot->tls, &item, &says, &entries[0].ctx, err);

    for (size_t i = 0; status == LEAT_OK && i < listener->certificate_names.count; i++) {
        const struct leat_certificate_config *certificate =
            leat_config_find_certificate(config, listener->certificate_names.at[i]);
        item = item_of_certificate(config, certificate);
        says = leat_config_tls_of(listener, certificate);
        status = build_ctx(snapshot->tls, &item, &says, &entries[i + 1].ctx, err);
        entries[i + 1].names = (const char *const *)certificate->server_names.at;
        entries[i + 1].count = certificate->server_names.count;
    }
    return status;
}

static enum leat_status build_listener(struct leat_snapshot *snapshot, size_t index,
                                       struct leat_error *err)
{
    const struct leat_config *config = snapshot->config;
    size_t count = 1 + config->listeners.at[index].certificate_names.count;
    struct leat_tls_server_entry *entries = leat_mem_zalloc_flex(0, count, sizeof(entries[0]));
    enum leat_status status;

    if (entries == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    status = build_entries(snapshot, index, entries, err);
    if (status == LEAT_OK) {
        struct item item = item_of_listener(config, index);
        status = leat_tls_server_new(entries, count, snapshot->tls->keyring,
                                     &snapshot->listener_tls[index], err);
        if (status != LEAT_OK)
            (void)at_key(&item, NULL, err);
    }
    for (size_t i = 0; i < count; i++)
        leat_tls_ctx_unref(entries[i].ctx);
    leat_mem_free(entries);
    return status;
}

/* The cache is asked now, so that what is wrong shows, and the first session finds it ready. Where
 * files have changed but can't be used the cache goes on with the old, which is not what was asked
 * for. */
static enum leat_status get_ctx(struct leat_tls_state *state, struct leat_tls_config *tls,
                                struct leat_tls_ctx **out, struct leat_error *err)
{
    struct leat_error failure;
    struct leat_tls_ctx *ctx;
    enum leat_status status = leat_tls_state_get_now(state, tls, &ctx, err);

    if (status != LEAT_OK)
        return status;
    leat_tls_ctx_unref(leat_tls_state_find(state, tls, &failure));
    if (failure.status == LEAT_OK) {
        *out = ctx;
        return LEAT_OK;
    }
    leat_tls_ctx_unref(ctx);
    return leat_error_set(err, failure.status, 0, "%s", failure.text);
}

static enum leat_status build_backend(struct leat_snapshot *snapshot, size_t index,
                                      struct leat_error *err)
{
    struct item item = item_of_backend(snapshot->config, index);
    enum leat_status status = make_client_config(&item, &snapshot->config->backends.at[index],
                                                 &snapshot->backend_tls[index], err);

    if (status != LEAT_OK)
        return status;
    status =
        get_ctx(snapshot->tls, snapshot->backend_tls[index], &snapshot->backend_ctx[index], err);
    return status == LEAT_OK ? LEAT_OK : at_file(&item, err);
}

enum leat_status leat_snapshot_build_tls(struct leat_snapshot *snapshot, struct leat_error *err)
{
    const struct leat_config *config = snapshot->config;
    enum leat_status status = LEAT_OK;

    for (size_t i = 0; status == LEAT_OK && i < config->listeners.count; i++) {
        if (config->listeners.at[i].endpoint.tls)
            status = build_listener(snapshot, i, err);
    }
    /* Whoever has us reload may have exchanged files just before. */
    if (status == LEAT_OK)
        leat_tls_ctx_cache_expire(snapshot->tls->cache);
    for (size_t i = 0; status == LEAT_OK && i < config->backends.count; i++) {
        if (config->backends.at[i].endpoint.tls)
            status = build_backend(snapshot, i, err);
    }
    return status;
}

/* The line of the key of ITEM for the MEMBER of its settings. */
static unsigned line_of(const struct item *item, size_t member)
{
    const struct leat_key *key = leat_key_at(item->table, item->tls_at + member);

    return item->config->file != NULL ? leat_key_line(key, item->key_lines, item->line) : 0;
}

/* Calls FN for CTX, which ITEM is about. */
static void tell_ctx(const struct item *item, const char *failure, leat_snapshot_ctx_fn *fn,
                     void *arg, struct leat_tls_ctx *ctx)
{
    const struct leat_snapshot_ctx_place place = {
        .path = item->path,
        .is_backend = item->table == &leat_backend_table,
        .ca_key = leat_key_at(item->table, item->tls_at + MEMBER(ca))->name,
        .cert_line = line_of(item, MEMBER(cert)),
        .ca_line = line_of(item, MEMBER(ca)),
        .crl_line = line_of(item, MEMBER(crl)),
        .failure = failure,
    };

    fn(arg, &place, ctx);
}

/* Those of the listener at INDEX. */
static void tell_listener(const struct leat_snapshot *snapshot, size_t index,
                          leat_snapshot_ctx_fn *fn, void *arg)
{
    const struct leat_config *config = snapshot->config;
    const struct leat_tls_server *server = snapshot->listener_tls[index];
    const struct leat_listener_config *listener = &config->listeners.at[index];
    size_t count = server != NULL ? leat_tls_server_count(server) : 0;

    for (size_t i = 0; i < count; i++) {
        struct item item = item_of_listener(config, index);
        if (i > 0)
            item = item_of_certificate(config, leat_config_find_certificate(
                                                   config, listener->certificate_names.at[i - 1]));
        tell_ctx(&item, NULL, fn, arg, leat_tls_server_ctx(server, i));
    }
}

/* That of the backend at INDEX, as the cache has it by now. */
static void tell_backend(const struct leat_snapshot *snapshot, size_t index,
                         leat_snapshot_ctx_fn *fn, void *arg)
{
    struct item item = item_of_backend(snapshot->config, index);
    struct leat_tls_ctx *now;
    struct leat_error err;

    if (snapshot->backend_ctx[index] == NULL)
        return;
    now = leat_tls_state_find(snapshot->tls, snapshot->backend_tls[index], &err);
    tell_ctx(&item, err.status != LEAT_OK ? err.text : NULL, fn, arg,
             now != NULL ? now : snapshot->backend_ctx[index]);
    leat_tls_ctx_unref(now);
}

void leat_snapshot_each_ctx(const struct leat_snapshot *snapshot, leat_snapshot_ctx_fn *fn,
                            void *arg)
{
    const struct leat_config *config = snapshot->config;

    for (size_t i = 0; i < config->listeners.count; i++)
        tell_listener(snapshot, i, fn, arg);
    for (size_t i = 0; i < config->backends.count; i++)
        tell_backend(snapshot, i, fn, arg);
}
