/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/list_check.h"

#include <stdbool.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/error.h"
#include "tls/const_cast.h"

#define NAME_MAX_LEN 80

static const struct {
    const char *what;
    const char *help; /* the command that lists what there is */
} kinds[] = {
    [LEAT_TLS_LIST_CIPHERS] = {"cipher of TLS 1.2", "openssl ciphers -s -tls1_2"},
    [LEAT_TLS_LIST_CIPHERSUITES] = {"cipher suite of TLS 1.3", "openssl ciphers -s -tls1_3"},
    [LEAT_TLS_LIST_GROUPS] = {"group", "openssl ecparam -list_curves, and X25519, X448"},
};

/* Whether a suite of SSL_CTX's is called NAME. */
static bool has_suite(SSL_CTX *ssl_ctx, const char *name)
{
    const STACK_OF(SSL_CIPHER) *suites = SSL_CTX_get_ciphers(ssl_ctx);

    for (int i = 0; i < sk_SSL_CIPHER_num(suites); i++) {
        if (strcmp(SSL_CIPHER_get_name(sk_SSL_CIPHER_value(suites, i)), name) == 0)
            return true;
    }
    return false;
}

/* Sets NAME, a single one, on SSL_CTX. */
static bool try_name(SSL_CTX *ssl_ctx, enum leat_tls_list kind, const char *name)
{
    switch (kind) {
    case LEAT_TLS_LIST_CIPHERS:
        return SSL_CTX_set_cipher_list(ssl_ctx, name) == 1;
    case LEAT_TLS_LIST_CIPHERSUITES:
        /* OpenSSL passes over an unknown one in silence. */
        return SSL_CTX_set_ciphersuites(ssl_ctx, name) == 1 && has_suite(ssl_ctx, name);
    case LEAT_TLS_LIST_GROUPS:
        return SSL_CTX_set1_groups_list(ssl_ctx, leat_tls_taken(name)) == 1;
    }
    return false;
}

/* Whether the LEN bytes at NAME are one that OpenSSL knows. */
static bool is_known(SSL_CTX *ssl_ctx, enum leat_tls_list kind, const char *name, size_t len)
{
    char copy[NAME_MAX_LEN + 1];

    if (kind == LEAT_TLS_LIST_CIPHERS && len > 0 &&
        (*name == '!' || *name == '-' || *name == '+')) {
        name++;
        len--;
    }
    /* "@SECLEVEL=0" would let in what the security level keeps out: it is no name. */
    if (len == 0 || len > NAME_MAX_LEN || *name == '@')
        return false;
    memcpy(copy, name, len);
    copy[len] = '\0';
    return try_name(ssl_ctx, kind, copy);
}

static enum leat_status check(SSL_CTX *ssl_ctx, enum leat_tls_list kind, const char *list,
                              struct leat_error *err)
{
    const char *name = list;

    for (;;) {
        size_t len = strcspn(name, ":");
        if (!is_known(ssl_ctx, kind, name, len))
            return leat_error_set(err, LEAT_EUSAGE, 0, "\"%.*s\" is no %s that is known; %s",
                                  len > NAME_MAX_LEN ? NAME_MAX_LEN : (int)len, name,
                                  kinds[kind].what, kinds[kind].help);
        if (name[len] == '\0')
            return LEAT_OK;
        name += len + 1;
    }
}

enum leat_status leat_tls_list_check(enum leat_tls_list kind, const char *list,
                                     struct leat_error *err)
{
    ERR_clear_error();
    SSL_CTX *ssl_ctx = SSL_CTX_new(TLS_method());
    if (ssl_ctx == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a list of %ss",
                              kinds[kind].what);
    enum leat_status status = check(ssl_ctx, kind, list != NULL ? list : "", err);
    /* Exclusions may have left nothing over. */
    if (status == LEAT_OK && kind == LEAT_TLS_LIST_CIPHERS &&
        SSL_CTX_set_cipher_list(ssl_ctx, list) != 1)
        status =
            leat_error_set(err, LEAT_EUSAGE, 0, "\"%s\" leaves no %s over", list, kinds[kind].what);
    SSL_CTX_free(ssl_ctx);
    ERR_clear_error();
    return status;
}
