/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/keyring.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include "base/error.h"
#include "base/mem.h"

#define IV_SIZE 16

struct key {
    unsigned char name[16];
    unsigned char cipher[32];
    unsigned char mac[32];
};

struct leat_tls_keyring {
    atomic_uint refs;
    leat_clock_fn *clock;
    void *clock_arg;
    EVP_CIPHER *aes; /* fetched once: it is a search through OpenSSL's providers */
    pthread_mutex_t lock;
    uint64_t made_at; /* when the newest key was; under the lock, as is: */
    struct key newest, older;
    bool has_older;
};

static bool draw(struct key *key)
{
    return RAND_bytes(key->name, sizeof(key->name)) == 1 &&
           RAND_priv_bytes(key->cipher, sizeof(key->cipher)) == 1 &&
           RAND_priv_bytes(key->mac, sizeof(key->mac)) == 1;
}

enum leat_status leat_tls_keyring_new(leat_clock_fn *clock, void *arg,
                                      struct leat_tls_keyring **out, struct leat_error *err)
{
    struct leat_tls_keyring *ring = leat_mem_zalloc(sizeof(*ring));
    if (ring == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for the keys of tickets");
    ring->refs = 1;
    ring->clock = clock;
    ring->clock_arg = arg;
    (void)pthread_mutex_init(&ring->lock, NULL);
    ring->made_at = clock(arg);
    ring->aes = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    if (ring->aes == NULL || !draw(&ring->newest)) {
        ERR_clear_error();
        leat_tls_keyring_unref(ring);
        return leat_error_set(err, LEAT_ETLS, 0,
                              "OpenSSL can't make keys for tickets: no AES-256-CBC, or no random "
                              "numbers");
    }
    *out = ring;
    return LEAT_OK;
}

struct leat_tls_keyring *leat_tls_keyring_ref(struct leat_tls_keyring *ring)
{
    (void)atomic_fetch_add_explicit(&ring->refs, 1, memory_order_relaxed);
    return ring;
}

void leat_tls_keyring_unref(struct leat_tls_keyring *ring)
{
    if (ring == NULL || atomic_fetch_sub_explicit(&ring->refs, 1, memory_order_acq_rel) > 1)
        return;
    EVP_CIPHER_free(ring->aes);
    (void)pthread_mutex_destroy(&ring->lock);
    leat_mem_free_secret(ring, sizeof(*ring));
}

/* Replaces keys whose time is over at NOW. The lock is held. */
static void rotate(struct leat_tls_keyring *ring, uint64_t now)
{
    struct key fresh;

    if (now < ring->made_at + LEAT_TLS_KEYRING_MS || !draw(&fresh))
        return;
    ring->older = ring->newest;
    /* If nobody looked for long the newest would have become the older one, and gone too. */
    ring->has_older = now < ring->made_at + 2 * LEAT_TLS_KEYRING_MS;
    ring->newest = fresh;
    ring->made_at = now;
    OPENSSL_cleanse(&fresh, sizeof(fresh));
}

static bool is_named(const struct key *key, const unsigned char *name)
{
    return memcmp(key->name, name, sizeof(key->name)) == 0;
}

/* Copies the key to seal with, or the one called NAME, to *OUT. The result is as the callback's. */
static int find(struct leat_tls_keyring *ring, const unsigned char *name, bool is_sealing,
                struct key *out)
{
    uint64_t now = ring->clock(ring->clock_arg);
    int found = 0;

    (void)pthread_mutex_lock(&ring->lock);
    rotate(ring, now);
    if (is_sealing || is_named(&ring->newest, name)) {
        *out = ring->newest;
        found = 1;
    } else if (ring->has_older && is_named(&ring->older, name)) {
        *out = ring->older;
        found = 2;
    }
    (void)pthread_mutex_unlock(&ring->lock);
    return found;
}

static bool set_mac(EVP_MAC_CTX *mac, struct key *key)
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac, sizeof(key->mac)),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, sizeof(digest) - 1),
        OSSL_PARAM_construct_end(),
    };

    return EVP_MAC_CTX_set_params(mac, params) == 1;
}

int leat_tls_keyring_ready(struct leat_tls_keyring *ring, unsigned char *name, unsigned char *iv,
                           EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, bool is_sealing)
{
    struct key key;
    int found = find(ring, name, is_sealing, &key);

    if (found == 0)
        return 0;
    bool is_ready = set_mac(mac, &key);
    if (is_sealing) {
        memcpy(name, key.name, sizeof(key.name));
        is_ready = is_ready && RAND_bytes(iv, IV_SIZE) == 1;
    }
    is_ready = is_ready &&
               EVP_CipherInit_ex(cipher, ring->aes, NULL, key.cipher, iv, is_sealing ? 1 : 0) == 1;
    OPENSSL_cleanse(&key, sizeof(key));
    return is_ready ? found : -1;
}
