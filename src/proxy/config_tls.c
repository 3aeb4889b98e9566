/* What a configuration says of TLS. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "proxy/config_check.h"
#include "proxy/config_suggest.h"

#define LISTENER_KEY(member)                                                                       \
    leat_key_at(&leat_listener_table, offsetof(struct leat_listener_config, member))
#define BACKEND_KEY(member)                                                                        \
    leat_key_at(&leat_backend_table, offsetof(struct leat_backend_config, member))

/* An item whose settings of TLS are looked at. */
struct item {
    const struct leat_key_table *table;
    size_t tls_at; /* where they are in what the table describes */
    const unsigned *key_lines;
    struct leat_tls_settings tls; /* as they hold in the end */
};

/* The key of ITEM for the MEMBER of its settings. */
#define KEY(item, member)                                                                          \
    leat_key_at((item)->table, (item)->tls_at + offsetof(struct leat_tls_settings, member))

static bool is_tls_key(const struct item *item, const struct leat_key *key)
{
    return key->offset >= item->tls_at && key->offset - item->tls_at < sizeof(item->tls);
}

/* Whether the file gives KEY, of ITEM's table. */
static bool is_given(const struct item *item, const struct leat_key *key)
{
    return item->key_lines[key - item->table->keys] != 0;
}

/* Who names the authorities of clients' certificates wants to see these. */
static void want_certificates(struct item *item)
{
    if (item->tls.ca != NULL && is_given(item, KEY(item, ca)) &&
        !is_given(item, KEY(item, client_certificate)) &&
        item->tls.client_certificate == LEAT_TLS_CLIENT_CERT_NONE)
        item->tls.client_certificate = LEAT_TLS_CLIENT_CERT_REQUIRED;
}

static struct item listener_item(const struct leat_listener_config *listener)
{
    struct item item = {.table = &leat_listener_table,
                        .tls_at = offsetof(struct leat_listener_config, tls),
                        .key_lines = listener->key_lines,
                        .tls = listener->tls};

    want_certificates(&item);
    return item;
}

/* Copies the value of KEY; a text stays its owner's. */
static void lend(void *to, const void *from, const struct leat_key *key)
{
    if (key->kind == LEAT_KEY_CHOICE)
        memcpy(to, from, sizeof(uint64_t));
    else if (key->kind == LEAT_KEY_FLAG)
        memcpy(to, from, sizeof(bool));
    else
        memcpy(to, from, sizeof(char *));
}

/* CERTIFICATE as it is on LISTENER. */
static struct item certificate_item(const struct leat_certificate_config *certificate,
                                    const struct leat_listener_config *listener)
{
    struct item item = {.table = &leat_certificate_table,
                        .tls_at = offsetof(struct leat_certificate_config, tls),
                        .key_lines = certificate->key_lines,
                        .tls = listener_item(listener).tls};

    /* These three belong to one another. */
    item.tls.cert = certificate->tls.cert;
    item.tls.key = certificate->tls.key;
    item.tls.key_passphrase = certificate->tls.key_passphrase;
    for (size_t i = 0; i < item.table->count; i++) {
        const struct leat_key *key = &item.table->keys[i];
        if (is_tls_key(&item, key) && is_given(&item, key))
            lend((char *)&item.tls + (key->offset - item.tls_at),
                 (const char *)certificate + key->offset, key);
    }
    want_certificates(&item);
    return item;
}

struct leat_tls_settings leat_config_tls_of(const struct leat_listener_config *listener,
                                            const struct leat_certificate_config *certificate)
{
    return certificate != NULL ? certificate_item(certificate, listener).tls
                               : listener_item(listener).tls;
}

/* Without TLS nothing may be said of it: somebody believes it to be there. */
static enum leat_status check_none(const struct leat_config_check *check, const struct item *item,
                                   const char *kind)
{
    for (size_t i = 0; i < item->table->count; i++) {
        const struct leat_key *key = &item->table->keys[i];
        if (is_tls_key(item, key) && is_given(item, key))
            return leat_config_check_wrong(check, key, "only an amqps:// %s has one", kind);
    }
    return LEAT_OK;
}

/* What holds on either side of TLS. */
static enum leat_status check_settings(const struct leat_config_check *check,
                                       const struct item *item)
{
    const struct leat_tls_settings *tls = &item->tls;

    if (tls->key_passphrase != NULL && tls->key == NULL)
        return leat_config_check_wrong(check, KEY(item, key_passphrase),
                                       "there is no %s that it could decrypt",
                                       KEY(item, key)->name);
    if (tls->min_version > tls->max_version)
        return leat_config_check_wrong(check, KEY(item, min_version),
                                       "is above %s: no version is left",
                                       KEY(item, max_version)->name);
    return LEAT_OK;
}

/* WHAT: who ITEM is, "an amqps:// listener". */
static enum leat_status check_server(const struct leat_config_check *check, const struct item *item,
                                     const char *what)
{
    const struct leat_tls_settings *tls = &item->tls;

    if (tls->cert == NULL)
        return leat_config_check_wrong(check, KEY(item, cert), "%s needs one", what);
    if (tls->key == NULL)
        return leat_config_check_wrong(check, KEY(item, key), "%s needs one", what);
    if (tls->client_certificate != LEAT_TLS_CLIENT_CERT_NONE && tls->ca == NULL)
        return leat_config_check_wrong(check, KEY(item, client_certificate),
                                       "needs a %s: the authorities of clients' certificates",
                                       KEY(item, ca)->name);
    if (tls->client_certificate == LEAT_TLS_CLIENT_CERT_NONE && is_given(item, KEY(item, crl)))
        return leat_config_check_wrong(check, KEY(item, crl),
                                       "has no effect where clients show no certificate; it needs "
                                       "a %s",
                                       KEY(item, ca)->name);
    return check_settings(check, item);
}

static enum leat_status no_such(const struct leat_config_check *check, const char *name)
{
    const struct leat_config *config = check->config;
    struct leat_suggest suggest;
    char buf[80];
    struct leat_text quoted;

    leat_text_init(&quoted, buf, sizeof(buf));
    leat_text_add_quoted(&quoted, leat_str_of(name));
    leat_suggest_init(&suggest, leat_str_of(name));
    for (size_t i = 0; i < config->certificates.count; i++)
        leat_suggest_offer(&suggest, leat_str_of(config->certificates.at[i].name));
    return leat_config_check_wrong(check, LISTENER_KEY(certificate_names),
                                   "no certificate is called %s; %s", buf,
                                   leat_suggest_finish(&suggest));
}

static void enter_listener(struct leat_config_check *check, size_t index)
{
    const struct leat_listener_config *listener = &check->config->listeners.at[index];

    leat_config_check_enter(check, LEAT_SECTION_LISTENERS, NULL, listener->line,
                            listener->key_lines);
    leat_text_add(&check->path, "[%zu]", index);
}

/* The further certificates of the listener at INDEX. */
static enum leat_status check_certificates(struct leat_config_check *check, size_t index)
{
    struct leat_config *config = check->config;
    const struct leat_listener_config *listener = &config->listeners.at[index];

    for (size_t i = 0; i < listener->certificate_names.count; i++) {
        const char *name = listener->certificate_names.at[i];
        const struct leat_certificate_config *certificate =
            leat_config_find_certificate(config, name);
        enter_listener(check, index);
        if (certificate == NULL)
            return no_such(check, name);
        config->certificates.at[certificate - config->certificates.at].is_used = true;
        struct item item = certificate_item(certificate, listener);
        leat_config_check_enter(check, LEAT_SECTION_CERTIFICATES, name, certificate->line,
                                certificate->key_lines);
        enum leat_status status = check_server(check, &item, "a certificate");
        if (status != LEAT_OK)
            return status;
    }
    return LEAT_OK;
}

static enum leat_status check_listener(struct leat_config_check *check, size_t index)
{
    const struct leat_listener_config *listener = &check->config->listeners.at[index];
    struct item item = listener_item(listener);
    enum leat_status status;

    enter_listener(check, index);
    if (listener->endpoint.tls) {
        status = check_server(check, &item, "an amqps:// listener");
        return status == LEAT_OK ? check_certificates(check, index) : status;
    }
    status = check_none(check, &item, "listener");
    if (status == LEAT_OK && listener->certificate_names.count > 0)
        return leat_config_check_wrong(check, LISTENER_KEY(certificate_names),
                                       "only an amqps:// listener has any");
    return status;
}

static enum leat_status check_plain_backend(const struct leat_config_check *check,
                                            const struct leat_backend_config *backend,
                                            const struct item *item)
{
    if (backend->verify_name != NULL)
        return leat_config_check_wrong(check, BACKEND_KEY(verify_name),
                                       "only an amqps:// backend has one");
    if (backend->insecure_skip_verify)
        return leat_config_check_wrong(check, BACKEND_KEY(insecure_skip_verify),
                                       "only an amqps:// backend has one");
    return check_none(check, item, "backend");
}

/* What leat verifies a backend by. */
static enum leat_status check_verification(const struct leat_config_check *check,
                                           const struct leat_backend_config *backend)
{
    struct leat_addr addr;

    if (backend->verify_name != NULL && !leat_endpoint_is_host(leat_str_of(backend->verify_name)) &&
        !leat_addr_parse_host(leat_str_of(backend->verify_name), &addr))
        return leat_config_check_wrong(check, BACKEND_KEY(verify_name),
                                       "expected a name that certificates can be for");
    if (backend->insecure_skip_verify && (backend->tls.ca != NULL || backend->tls.crl != NULL))
        return leat_config_check_wrong(check, BACKEND_KEY(insecure_skip_verify),
                                       "goes with neither %s nor %s, which say what to verify",
                                       BACKEND_KEY(tls.ca)->name, BACKEND_KEY(tls.crl)->name);
    if (leat_endpoint_is_unix(&backend->endpoint) && backend->verify_name == NULL &&
        !backend->insecure_skip_verify)
        return leat_config_check_wrong(check, BACKEND_KEY(verify_name),
                                       "is needed: a UNIX socket has no name that a certificate "
                                       "could be for");
    return LEAT_OK;
}

static enum leat_status check_backend(struct leat_config_check *check,
                                      const struct leat_backend_config *backend)
{
    const struct item item = {.table = &leat_backend_table,
                              .tls_at = offsetof(struct leat_backend_config, tls),
                              .key_lines = backend->key_lines,
                              .tls = backend->tls};

    leat_config_check_enter(check, LEAT_SECTION_BACKENDS, backend->name, backend->line,
                            backend->key_lines);
    if (!backend->endpoint.tls)
        return check_plain_backend(check, backend, &item);
    if (backend->tls.cert != NULL && backend->tls.key == NULL)
        return leat_config_check_wrong(check, BACKEND_KEY(tls.key), "is missing beside %s",
                                       BACKEND_KEY(tls.cert)->name);
    if (backend->tls.key != NULL && backend->tls.cert == NULL)
        return leat_config_check_wrong(check, BACKEND_KEY(tls.cert), "is missing beside %s",
                                       BACKEND_KEY(tls.key)->name);
    enum leat_status status = check_verification(check, backend);
    return status == LEAT_OK ? check_settings(check, &item) : status;
}

/* A certificate that no listener shows was meant for one. */
static enum leat_status check_all_used(struct leat_config_check *check)
{
    const struct leat_config *config = check->config;

    for (size_t i = 0; i < config->certificates.count; i++) {
        const struct leat_certificate_config *certificate = &config->certificates.at[i];
        leat_config_check_enter(check, LEAT_SECTION_CERTIFICATES, certificate->name,
                                certificate->line, certificate->key_lines);
        if (!certificate->is_used)
            return leat_config_check_wrong(check, NULL,
                                           "no listener shows it: name it in the %s of one",
                                           LISTENER_KEY(certificate_names)->name);
    }
    return LEAT_OK;
}

enum leat_status leat_config_check_listener_tls(struct leat_config_check *check)
{
    enum leat_status status = LEAT_OK;

    for (size_t i = 0; status == LEAT_OK && i < check->config->listeners.count; i++)
        status = check_listener(check, i);
    return status == LEAT_OK ? check_all_used(check) : status;
}

enum leat_status leat_config_check_backend_tls(struct leat_config_check *check)
{
    enum leat_status status = LEAT_OK;

    for (size_t i = 0; status == LEAT_OK && i < check->config->backends.count; i++)
        status = check_backend(check, &check->config->backends.at[i]);
    return status;
}
