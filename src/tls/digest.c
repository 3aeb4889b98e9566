/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/digest.h"

#include <openssl/evp.h>

static void fail(struct leat_tls_hash *hash)
{
    EVP_MD_CTX_free(hash->md);
    hash->md = NULL;
}

static void add_bytes(struct leat_tls_hash *hash, const void *data, size_t len)
{
    if (hash->md != NULL && EVP_DigestUpdate(hash->md, data, len) != 1)
        fail(hash);
}

void leat_tls_hash_begin(struct leat_tls_hash *hash)
{
    hash->md = EVP_MD_CTX_new();
    if (hash->md != NULL && EVP_DigestInit_ex(hash->md, EVP_sha256(), NULL) != 1)
        fail(hash);
}

void leat_tls_hash_add_number(struct leat_tls_hash *hash, uint64_t number)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(number >> (8 * (sizeof(bytes) - 1 - i)));
    add_bytes(hash, bytes, sizeof(bytes));
}

void leat_tls_hash_add(struct leat_tls_hash *hash, const void *data, size_t len)
{
    leat_tls_hash_add_number(hash, len);
    add_bytes(hash, data, len);
}

void leat_tls_hash_add_text(struct leat_tls_hash *hash, const char *text)
{
    if (text == NULL)
        leat_tls_hash_add_number(hash, UINT64_MAX);
    else
        leat_tls_hash_add(hash, text, strlen(text));
}

enum leat_status leat_tls_hash_end(struct leat_tls_hash *hash, struct leat_tls_digest *out)
{
    struct leat_tls_digest made;
    bool done = hash->md != NULL && EVP_DigestFinal_ex(hash->md, made.bytes, NULL) == 1;

    fail(hash);
    if (!done)
        return LEAT_ENOMEM;
    *out = made;
    return LEAT_OK;
}
