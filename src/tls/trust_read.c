/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/trust_read.h"

#include <stdlib.h>
#include <unistd.h>

#include <openssl/x509.h>

#include "base/error.h"
#include "base/mem.h"
#include "tls/config_impl.h"

/* Where OpenSSL looks for the system's authorities: a file, or else a directory. NULL if there is
 * neither. */
static const char *system_authorities(void)
{
    const char *file = secure_getenv(X509_get_default_cert_file_env());
    const char *dir = secure_getenv(X509_get_default_cert_dir_env());

    if (file == NULL)
        file = X509_get_default_cert_file();
    if (dir == NULL)
        dir = X509_get_default_cert_dir();
    if (access(file, R_OK) == 0)
        return file;
    return access(dir, R_OK | X_OK) == 0 ? dir : NULL;
}

static enum leat_status add_sources(const struct leat_tls_config *config,
                                    struct leat_tls_sources *sources, size_t *out_crls,
                                    struct leat_error *err)
{
    const char *path = config->authorities;
    if (path == NULL)
        path = system_authorities();
    if (path == NULL)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "the system has no certificate authorities (ca-certificates); name a "
                              "CA file");
    enum leat_status status = leat_tls_sources_add(sources, path, err);
    if (status == LEAT_OK && sources->at[sources->count - 1].identity.is_dir)
        status = leat_tls_sources_add_entries(sources, err);
    *out_crls = sources->count;
    for (size_t i = 0; i < config->crl_count && status == LEAT_OK; i++)
        status = leat_tls_sources_add(sources, config->crl_files[i], err);
    return status;
}

/* Whether the entry at INDEX of a directory, the first of which is at FIRST, is not to be read: a
 * link that leads nowhere, a directory, or another name of a file before it, as links by hash
 * are. */
static bool is_to_skip(const struct leat_tls_sources *sources, size_t first, size_t index)
{
    const struct leat_tls_identity *entry = &sources->at[index].identity;

    if (!entry->is_there || entry->is_dir)
        return true;
    for (size_t i = first; i < index; i++) {
        const struct leat_tls_identity *other = &sources->at[i].identity;
        if (other->is_there && other->dev == entry->dev && other->ino == entry->ino)
            return true;
    }
    return false;
}

/* Reads the sources from FIRST on; from CRLS on they are revocation lists. */
static enum leat_status read_sources(struct leat_tls_sources *sources, size_t first, size_t crls,
                                     struct leat_tls_trust_parts *parts, struct leat_error *err)
{
    bool from_dir = sources->at[first].identity.is_dir;
    enum leat_status status = LEAT_OK;

    for (size_t i = from_dir ? first + 1 : first; i < sources->count && status == LEAT_OK; i++) {
        struct leat_tls_source *source = &sources->at[i];
        bool is_crl = i >= crls;
        if (from_dir && !is_crl && is_to_skip(sources, first + 1, i))
            continue;
        struct leat_tls_trust_part *part = &parts->at[parts->count];
        *part = (struct leat_tls_trust_part){.path = source->path, .is_crl = is_crl};
        status = leat_tls_source_read(source, is_crl ? "CRL" : "CA", &part->file, err);
        if (status == LEAT_OK)
            parts->count++;
    }
    if (status == LEAT_OK && from_dir && (parts->count == 0 || parts->at[0].is_crl))
        status = leat_error_set(err, LEAT_EUSAGE, 0,
                                "CA directory %s: no file in it ends in .pem, .crt or .cer, or is "
                                "named by c_rehash",
                                leat_tls_shown(sources->at[first].path));
    return status;
}

static enum leat_status digest(struct leat_tls_trust_parts *parts, struct leat_error *err)
{
    struct leat_tls_hash hash;

    leat_tls_hash_begin(&hash);
    for (size_t i = 0; i < parts->count; i++) {
        leat_tls_hash_add_number(&hash, parts->at[i].is_crl);
        leat_tls_hash_add(&hash, parts->at[i].file.data, parts->at[i].file.len);
    }
    if (leat_tls_hash_end(&hash, &parts->digest) == LEAT_OK)
        return LEAT_OK;
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a digest");
}

enum leat_status leat_tls_trust_parts_read(const struct leat_tls_config *config,
                                           struct leat_tls_sources *sources,
                                           struct leat_tls_trust_parts *out, struct leat_error *err)
{
    struct leat_tls_trust_parts parts = {0};
    size_t first = sources->count, crls = 0;
    enum leat_status status = add_sources(config, sources, &crls, err);
    if (status != LEAT_OK)
        return status;
    parts.at = leat_mem_zalloc_flex(0, sources->count - first, sizeof(parts.at[0]));
    if (parts.at == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for certificate authorities");
    status = read_sources(sources, first, crls, &parts, err);
    if (status == LEAT_OK)
        status = digest(&parts, err);
    if (status != LEAT_OK) {
        leat_tls_trust_parts_fini(&parts);
        return status;
    }
    *out = parts;
    return LEAT_OK;
}

void leat_tls_trust_parts_fini(struct leat_tls_trust_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        leat_tls_file_free(&parts->at[i].file);
    leat_mem_free(parts->at);
    *parts = (struct leat_tls_trust_parts){0};
}
