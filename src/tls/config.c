/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/config.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "tls/config_impl.h"
#include "tls/list_check.h"

#define DEPTH_MAX 100

enum leat_status leat_tls_config_new(enum leat_tls_role role, struct leat_tls_config **out,
                                     struct leat_error *err)
{
    struct leat_tls_config *config = leat_mem_zalloc(sizeof(*config));
    if (config == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a TLS configuration");
    config->refs = 1;
    (void)pthread_mutex_init(&config->lock, NULL);
    config->role = role;
    config->depth = 10;
    config->min = LEAT_TLS_1_2;
    config->max = LEAT_TLS_1_3;
    config->tickets = true;
    *out = config;
    return LEAT_OK;
}

struct leat_tls_config *leat_tls_config_ref(struct leat_tls_config *config)
{
    (void)atomic_fetch_add_explicit(&config->refs, 1, memory_order_relaxed);
    return config;
}

void leat_tls_config_unref(struct leat_tls_config *config)
{
    if (config == NULL || atomic_fetch_sub_explicit(&config->refs, 1, memory_order_acq_rel) > 1)
        return;
    leat_mem_free(config->cert_file);
    leat_mem_free(config->key_file);
    leat_mem_free(config->passphrase_file);
    leat_mem_free(config->authorities);
    for (size_t i = 0; i < config->crl_count; i++)
        leat_mem_free(config->crl_files[i]);
    leat_mem_free(config->ciphers);
    leat_mem_free(config->ciphersuites);
    leat_mem_free(config->groups);
    (void)pthread_mutex_destroy(&config->lock);
    leat_mem_free(config);
}

static enum leat_status out_of_memory(struct leat_error *err)
{
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a TLS configuration");
}

/* Whether CONFIG may still be changed. */
static enum leat_status may_change(const struct leat_tls_config *config, struct leat_error *err)
{
    if (atomic_load_explicit(&config->is_frozen, memory_order_acquire))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "a TLS configuration in use can't be changed; make another one");
    return LEAT_OK;
}

static enum leat_status may_change_as(const struct leat_tls_config *config, enum leat_tls_role role,
                                      struct leat_error *err)
{
    if (config->role != role)
        return leat_error_set(err, LEAT_EUSAGE, 0, "this TLS setting is for %s only",
                              role == LEAT_TLS_CLIENT ? "clients" : "servers");
    return may_change(config, err);
}

/* Replaces the text at SLOT by a copy of VALUE, the name of a file or a list. */
static enum leat_status set_text(const struct leat_tls_config *config, char **slot,
                                 const char *value, struct leat_error *err)
{
    enum leat_status status = may_change(config, err);
    if (status != LEAT_OK)
        return status;
    if (value == NULL || value[0] == '\0')
        return leat_error_set(err, LEAT_EUSAGE, 0, "the name of a file for TLS is empty");
    char *copy = leat_mem_dup(leat_str_of(value));
    if (copy == NULL)
        return out_of_memory(err);
    leat_mem_free(*slot);
    *slot = copy;
    return LEAT_OK;
}

enum leat_status leat_tls_config_set_cert(struct leat_tls_config *config, const char *cert_file,
                                          const char *key_file, struct leat_error *err)
{
    char *cert = NULL;
    enum leat_status status = set_text(config, &cert, cert_file, err);
    if (status == LEAT_OK)
        status = set_text(config, &config->key_file, key_file, err);
    if (status != LEAT_OK) {
        leat_mem_free(cert);
        return status;
    }
    leat_mem_free(config->cert_file);
    config->cert_file = cert;
    return LEAT_OK;
}

enum leat_status leat_tls_config_set_passphrase_file(struct leat_tls_config *config,
                                                     const char *file, struct leat_error *err)
{
    return set_text(config, &config->passphrase_file, file, err);
}

enum leat_status leat_tls_config_set_authorities(struct leat_tls_config *config, const char *path,
                                                 struct leat_error *err)
{
    return set_text(config, &config->authorities, path, err);
}

enum leat_status leat_tls_config_add_crl(struct leat_tls_config *config, const char *file,
                                         struct leat_error *err)
{
    if (config->crl_count == LEAT_TLS_CRL_FILES_MAX)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "more than %d CRL files; one may hold several lists, put some of "
                              "them together",
                              LEAT_TLS_CRL_FILES_MAX);
    enum leat_status status = set_text(config, &config->crl_files[config->crl_count], file, err);
    if (status == LEAT_OK)
        config->crl_count++;
    return status;
}

enum leat_status leat_tls_config_set_client_cert(struct leat_tls_config *config,
                                                 enum leat_tls_client_cert mode,
                                                 struct leat_error *err)
{
    enum leat_status status = may_change_as(config, LEAT_TLS_SERVER, err);
    if (status == LEAT_OK)
        config->client_cert = mode;
    return status;
}

enum leat_status leat_tls_config_insecure_skip_verify(struct leat_tls_config *config,
                                                      struct leat_error *err)
{
    enum leat_status status = may_change_as(config, LEAT_TLS_CLIENT, err);
    if (status == LEAT_OK)
        config->skips_verify = true;
    return status;
}

enum leat_status leat_tls_config_set_depth(struct leat_tls_config *config, unsigned depth,
                                           struct leat_error *err)
{
    enum leat_status status = may_change(config, err);
    if (status != LEAT_OK)
        return status;
    if (depth > DEPTH_MAX)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "a chain of certificates may be up to %d deep, not %u", DEPTH_MAX,
                              depth);
    config->depth = depth;
    return LEAT_OK;
}

enum leat_status leat_tls_config_set_versions(struct leat_tls_config *config,
                                              enum leat_tls_version min, enum leat_tls_version max,
                                              struct leat_error *err)
{
    enum leat_status status = may_change(config, err);
    if (status != LEAT_OK)
        return status;
    if (min > max)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "the lowest version of TLS is above the highest; at least one must "
                              "be left");
    config->min = min;
    config->max = max;
    return LEAT_OK;
}

enum leat_status leat_tls_config_set_tickets(struct leat_tls_config *config, bool on,
                                             struct leat_error *err)
{
    enum leat_status status = may_change_as(config, LEAT_TLS_SERVER, err);
    if (status == LEAT_OK)
        config->tickets = on;
    return status;
}

static enum leat_status set_list(struct leat_tls_config *config, char **slot,
                                 enum leat_tls_list kind, const char *list, struct leat_error *err)
{
    enum leat_status status = may_change(config, err);
    if (status == LEAT_OK)
        status = leat_tls_list_check(kind, list, err);
    return status == LEAT_OK ? set_text(config, slot, list, err) : status;
}

enum leat_status leat_tls_config_set_ciphers(struct leat_tls_config *config, const char *list,
                                             struct leat_error *err)
{
    return set_list(config, &config->ciphers, LEAT_TLS_LIST_CIPHERS, list, err);
}

enum leat_status leat_tls_config_set_ciphersuites(struct leat_tls_config *config, const char *list,
                                                  struct leat_error *err)
{
    return set_list(config, &config->ciphersuites, LEAT_TLS_LIST_CIPHERSUITES, list, err);
}

enum leat_status leat_tls_config_set_groups(struct leat_tls_config *config, const char *list,
                                            struct leat_error *err)
{
    return set_list(config, &config->groups, LEAT_TLS_LIST_GROUPS, list, err);
}

/* Whether what was set goes together. */
static enum leat_status judge(const struct leat_tls_config *config, struct leat_error *err)
{
    const char *problem = NULL;

    if (config->role == LEAT_TLS_SERVER && config->cert_file == NULL)
        problem = "a TLS server needs a certificate and its key";
    else if (config->passphrase_file != NULL && config->key_file == NULL)
        problem = "there is a passphrase for a key, but no key";
    else if (config->role == LEAT_TLS_SERVER && leat_tls_config_verifies(config) &&
             config->authorities == NULL)
        problem = "client certificates are asked for, but no CA says whose are good";
    else if (config->crl_count > 0 && !leat_tls_config_verifies(config))
        problem = "there are revocation lists, but no certificates are verified";
    else if (config->skips_verify && config->authorities != NULL)
        problem = "there is a CA, but verification is switched off; choose one of the two";
    return problem == NULL ? LEAT_OK : leat_error_set(err, LEAT_EUSAGE, 0, "%s", problem);
}

static enum leat_status make_key(struct leat_tls_config *config)
{
    struct leat_tls_hash hash;

    leat_tls_hash_begin(&hash);
    leat_tls_hash_add_number(&hash, config->role);
    leat_tls_hash_add_text(&hash, config->cert_file);
    leat_tls_hash_add_text(&hash, config->key_file);
    leat_tls_hash_add_text(&hash, config->passphrase_file);
    leat_tls_hash_add_text(&hash, config->authorities);
    leat_tls_hash_add_number(&hash, config->crl_count);
    for (size_t i = 0; i < config->crl_count; i++)
        leat_tls_hash_add_text(&hash, config->crl_files[i]);
    leat_tls_hash_add_number(&hash, config->client_cert);
    leat_tls_hash_add_number(&hash, config->skips_verify);
    leat_tls_hash_add_number(&hash, config->depth);
    leat_tls_hash_add_number(&hash, config->min);
    leat_tls_hash_add_number(&hash, config->max);
    leat_tls_hash_add_text(&hash, leat_tls_config_ciphers(config));
    leat_tls_hash_add_text(&hash, leat_tls_config_ciphersuites(config));
    leat_tls_hash_add_text(&hash, leat_tls_config_groups(config));
    leat_tls_hash_add_number(&hash, config->tickets);
    return leat_tls_hash_end(&hash, &config->key);
}

enum leat_status leat_tls_config_freeze(struct leat_tls_config *config, struct leat_error *err)
{
    if (atomic_load_explicit(&config->is_frozen, memory_order_acquire))
        return LEAT_OK;
    (void)pthread_mutex_lock(&config->lock);
    enum leat_status status = LEAT_OK;
    if (!atomic_load_explicit(&config->is_frozen, memory_order_relaxed)) {
        status = judge(config, err);
        if (status == LEAT_OK && make_key(config) != LEAT_OK)
            status = out_of_memory(err);
        atomic_store_explicit(&config->is_frozen, status == LEAT_OK, memory_order_release);
    }
    (void)pthread_mutex_unlock(&config->lock);
    return status;
}

const struct leat_tls_digest *leat_tls_config_key(const struct leat_tls_config *config)
{
    LEAT_ASSERT(atomic_load_explicit(&config->is_frozen, memory_order_acquire));
    return &config->key;
}

const char *leat_tls_config_cert_file(const struct leat_tls_config *config)
{
    return config->cert_file;
}

const char *leat_tls_config_authorities(const struct leat_tls_config *config)
{
    return config->authorities;
}
