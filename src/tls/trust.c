/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/trust.h"

#include <pthread.h>
#include <stdatomic.h>

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "base/error.h"
#include "base/list.h"
#include "base/mem.h"
#include "tls/cert_info.h"
#include "tls/trust_read.h"

/* More names than this would make every handshake's request for a certificate large. */
#define NAMES_MAX 64

struct leat_tls_trusts {
    atomic_uint refs;
    pthread_mutex_t parsing; /* held while a store is made, so that equal ones are made once */
    pthread_mutex_t lock;    /* of what follows and the stores' counts; never held for long */
    struct leat_list stores;
    struct leat_tls_trusts_counters counters;
};

struct leat_tls_trust {
    struct leat_tls_trusts *set;
    struct leat_list link;
    size_t refs; /* under the set's lock */
    struct leat_tls_digest digest;
    struct leat_tls_trust_info info;
    bool has_its_crl; /* one of the revocation lists is of one of the authorities */
    X509_STORE *store;
    STACK_OF(X509_NAME) * names; /* NULL if they are too many */
};

enum leat_status leat_tls_trusts_new(struct leat_tls_trusts **out, struct leat_error *err)
{
    struct leat_tls_trusts *trusts = leat_mem_zalloc(sizeof(*trusts));
    if (trusts == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for trust stores");
    trusts->refs = 1;
    (void)pthread_mutex_init(&trusts->parsing, NULL);
    (void)pthread_mutex_init(&trusts->lock, NULL);
    leat_list_init(&trusts->stores);
    *out = trusts;
    return LEAT_OK;
}

struct leat_tls_trusts *leat_tls_trusts_ref(struct leat_tls_trusts *trusts)
{
    (void)atomic_fetch_add_explicit(&trusts->refs, 1, memory_order_relaxed);
    return trusts;
}

void leat_tls_trusts_unref(struct leat_tls_trusts *trusts)
{
    if (trusts == NULL || atomic_fetch_sub_explicit(&trusts->refs, 1, memory_order_acq_rel) > 1)
        return;
    (void)pthread_mutex_destroy(&trusts->lock);
    (void)pthread_mutex_destroy(&trusts->parsing);
    leat_mem_free(trusts);
}

void leat_tls_trusts_counters(struct leat_tls_trusts *trusts, struct leat_tls_trusts_counters *out)
{
    (void)pthread_mutex_lock(&trusts->lock);
    *out = trusts->counters;
    (void)pthread_mutex_unlock(&trusts->lock);
}

/* Adds CERT to what TRUST holds. */
static bool add_cert(struct leat_tls_trust *trust, X509 *cert)
{
    int64_t from = INT64_MIN, until = INT64_MAX;

    leat_tls_cert_narrow(cert, &from, &until);
    if (until > trust->info.last_until)
        trust->info.last_until = until;
    trust->info.authorities++;
    if (trust->names != NULL && trust->info.authorities > NAMES_MAX) {
        sk_X509_NAME_pop_free(trust->names, X509_NAME_free);
        trust->names = NULL;
    }
    if (X509_STORE_add_cert(trust->store, cert) != 1)
        return false;
    if (trust->names == NULL)
        return true;
    X509_NAME *name = X509_NAME_dup(X509_get_subject_name(cert));
    if (name != NULL && sk_X509_NAME_push(trust->names, name) > 0)
        return true;
    X509_NAME_free(name);
    return false;
}

/* Whether TRUST holds the authority that CRL is of. Only for who makes it: there is no lock. */
static bool has_issuer(const struct leat_tls_trust *trust, const X509_CRL *crl)
{
    return X509_OBJECT_retrieve_by_subject(X509_STORE_get0_objects(trust->store), X509_LU_X509,
                                           X509_CRL_get_issuer(crl)) != NULL;
}

static bool add_crl(struct leat_tls_trust *trust, X509_CRL *crl)
{
    int64_t until = leat_tls_cert_seconds(X509_CRL_get0_nextUpdate(crl));

    if (X509_CRL_get0_nextUpdate(crl) != NULL && until < trust->info.crl_next_until)
        trust->info.crl_next_until = until;
    trust->info.crls++;
    trust->has_its_crl = trust->has_its_crl || has_issuer(trust, crl);
    return X509_STORE_add_crl(trust->store, crl) == 1;
}

static enum leat_status out_of_memory(struct leat_error *err)
{
    ERR_clear_error();
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for certificate authorities");
}

static enum leat_status add_part(struct leat_tls_trust *trust,
                                 const struct leat_tls_trust_part *part, struct leat_error *err)
{
    const struct leat_tls_pem pem = {part->is_crl ? "CRL" : "CA", part->path, &part->file};
    STACK_OF(X509) *certs = NULL;
    STACK_OF(X509_CRL) *crls = NULL;
    enum leat_status status =
        part->is_crl ? leat_tls_pem_crls(&pem, &crls, err) : leat_tls_pem_certs(&pem, &certs, err);
    bool added = true;

    for (int i = 0; i < sk_X509_num(certs) && added; i++)
        added = add_cert(trust, sk_X509_value(certs, i));
    for (int i = 0; i < sk_X509_CRL_num(crls) && added; i++)
        added = add_crl(trust, sk_X509_CRL_value(crls, i));
    sk_X509_pop_free(certs, X509_free);
    sk_X509_CRL_pop_free(crls, X509_CRL_free);
    return added ? status : out_of_memory(err);
}

/* Frees what TRUST owns; any part may be lacking. */
static void discard(struct leat_tls_trust *trust)
{
    X509_STORE_free(trust->store);
    sk_X509_NAME_pop_free(trust->names, X509_NAME_free);
    leat_mem_free(trust);
}

static void insert(struct leat_tls_trusts *trusts, struct leat_tls_trust *trust)
{
    trust->set = leat_tls_trusts_ref(trusts);
    (void)pthread_mutex_lock(&trusts->lock);
    leat_list_append(&trusts->stores, &trust->link);
    trusts->counters.parses++;
    trusts->counters.stores++;
    (void)pthread_mutex_unlock(&trusts->lock);
}

/* Has lists, if there are any, looked at. Every chain ends at an authority of ours and needs its
 * list, so without one of those no certificate would be accepted. */
static enum leat_status use_crls(struct leat_tls_trust *trust,
                                 const struct leat_tls_trust_parts *parts, struct leat_error *err)
{
    size_t first = 0;

    if (trust->info.crls == 0)
        return LEAT_OK;
    if (X509_STORE_set_flags(trust->store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) != 1)
        return out_of_memory(err);
    if (trust->has_its_crl)
        return LEAT_OK;
    while (!parts->at[first].is_crl)
        first++;
    return leat_error_set(err, LEAT_EUSAGE, 0,
                          "CRL file %s: it has no revocation list of an authority that is trusted, "
                          "so no certificate would be accepted; it has to have one of each",
                          leat_tls_shown(parts->at[first].path));
}

/* Makes a store of PARTS and puts it into TRUSTS. */
static enum leat_status parse(struct leat_tls_trusts *trusts,
                              const struct leat_tls_trust_parts *parts, struct leat_tls_trust **out,
                              struct leat_error *err)
{
    struct leat_tls_trust *trust = leat_mem_zalloc(sizeof(*trust));
    if (trust == NULL)
        return out_of_memory(err);
    trust->refs = 1;
    trust->digest = parts->digest;
    trust->info =
        (struct leat_tls_trust_info){.last_until = INT64_MIN, .crl_next_until = INT64_MAX};
    ERR_clear_error();
    trust->store = X509_STORE_new();
    trust->names = sk_X509_NAME_new_null();
    enum leat_status status = LEAT_OK;
    if (trust->store == NULL || trust->names == NULL)
        status = out_of_memory(err);
    for (size_t i = 0; i < parts->count && status == LEAT_OK; i++)
        status = add_part(trust, &parts->at[i], err);
    if (status == LEAT_OK)
        status = use_crls(trust, parts, err);
    if (status != LEAT_OK) {
        discard(trust);
        return status;
    }
    insert(trusts, trust);
    *out = trust;
    return LEAT_OK;
}

/* Returns the store with DIGEST with one more reference, or NULL. */
static struct leat_tls_trust *find(struct leat_tls_trusts *trusts,
                                   const struct leat_tls_digest *digest)
{
    struct leat_tls_trust *found = NULL;

    (void)pthread_mutex_lock(&trusts->lock);
    for (struct leat_list *at = trusts->stores.next; at != &trusts->stores; at = at->next) {
        struct leat_tls_trust *trust = LEAT_LIST_OBJECT(at, struct leat_tls_trust, link);
        if (leat_tls_digest_equal(&trust->digest, digest))
            found = trust;
    }
    if (found != NULL) {
        found->refs++;
        trusts->counters.shared++;
    }
    (void)pthread_mutex_unlock(&trusts->lock);
    return found;
}

enum leat_status leat_tls_trusts_get(struct leat_tls_trusts *trusts,
                                     const struct leat_tls_config *config,
                                     struct leat_tls_sources *sources, struct leat_tls_trust **out,
                                     struct leat_error *err)
{
    struct leat_tls_trust_parts parts;
    enum leat_status status = leat_tls_trust_parts_read(config, sources, &parts, err);
    if (status != LEAT_OK)
        return status;
    (void)pthread_mutex_lock(&trusts->parsing);
    struct leat_tls_trust *trust = find(trusts, &parts.digest);
    if (trust == NULL)
        status = parse(trusts, &parts, &trust, err);
    (void)pthread_mutex_unlock(&trusts->parsing);
    leat_tls_trust_parts_fini(&parts);
    if (status == LEAT_OK)
        *out = trust;
    return status;
}

void leat_tls_trust_unref(struct leat_tls_trust *trust)
{
    if (trust == NULL)
        return;
    struct leat_tls_trusts *set = trust->set;
    (void)pthread_mutex_lock(&set->lock);
    bool is_last = --trust->refs == 0;
    if (is_last) {
        leat_list_remove(&trust->link);
        set->counters.stores--;
    }
    (void)pthread_mutex_unlock(&set->lock);
    if (!is_last)
        return;
    discard(trust);
    leat_tls_trusts_unref(set);
}

const struct leat_tls_trust_info *leat_tls_trust_info(const struct leat_tls_trust *trust)
{
    return &trust->info;
}

const struct leat_tls_digest *leat_tls_trust_digest(const struct leat_tls_trust *trust)
{
    return &trust->digest;
}

X509_STORE *leat_tls_trust_store(const struct leat_tls_trust *trust)
{
    return trust->store;
}

const STACK_OF(X509_NAME) * leat_tls_trust_names(const struct leat_tls_trust *trust)
{
    return trust->names;
}
