/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/pem.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/error.h"
#include "tls/reason.h"

/* What is wrong with the file of PEM, in which OpenSSL did not find a WANTED ("CERTIFICATE",
 * "PRIVATE KEY", "CRL"): OpenSSL's own words say little. NULL if it is nothing that shows in the
 * text. */
static const char *diagnose(const struct leat_tls_pem *pem, const char *wanted)
{
    if (memmem(pem->file->data, pem->file->len, "-----BEGIN ", 11) == NULL)
        return "it is not in PEM; convert it with openssl x509, openssl pkey, openssl crl or "
               "openssl pkcs12";
    if (memmem(pem->file->data, pem->file->len, wanted, strlen(wanted)) != NULL)
        return NULL;
    if (strcmp(wanted, "PRIVATE KEY") == 0)
        return "it holds no private key; is it the certificate that stands there?";
    return strcmp(wanted, "CERTIFICATE") == 0
               ? "it holds no certificate; is it the key that stands there?"
               : "it holds no revocation list";
}

static enum leat_status refuse(const struct leat_tls_pem *pem, const char *wanted,
                               struct leat_error *err)
{
    char why[LEAT_TLS_REASON_MAX];
    const char *found = diagnose(pem, wanted);

    (void)leat_tls_reason_text(why);
    return leat_error_set(err, LEAT_EUSAGE, 0, "%s file %s: %s", pem->what,
                          leat_tls_shown(pem->path), found != NULL ? found : why);
}

static enum leat_status out_of_memory(const struct leat_tls_pem *pem, struct leat_error *err)
{
    ERR_clear_error();
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for %s file %s", pem->what,
                          leat_tls_shown(pem->path));
}

static BIO *open_pem(const struct leat_tls_pem *pem)
{
    ERR_clear_error();
    return BIO_new_mem_buf(pem->file->data, (int)pem->file->len);
}

/* Whether parsing stopped at the end and not at something damaged. */
static bool is_at_end(void)
{
    unsigned long code = ERR_peek_last_error();

    return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

enum leat_status leat_tls_pem_certs(const struct leat_tls_pem *pem, STACK_OF(X509) * *out,
                                    struct leat_error *err)
{
    BIO *bio = open_pem(pem);
    STACK_OF(X509) *certs = sk_X509_new_null();
    X509 *cert = NULL;
    bool pushed = bio != NULL && certs != NULL;

    while (pushed && (cert = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL)) != NULL) {
        /* Extensions are parsed now rather than in a handshake. */
        (void)X509_check_purpose(cert, -1, 0);
        pushed = sk_X509_push(certs, cert) > 0;
        if (!pushed)
            X509_free(cert);
    }
    BIO_free(bio);
    enum leat_status status = LEAT_OK;
    if (!pushed)
        status = out_of_memory(pem, err);
    else if (!is_at_end() || sk_X509_num(certs) == 0)
        status = refuse(pem, "CERTIFICATE", err);
    ERR_clear_error();
    if (status != LEAT_OK) {
        sk_X509_pop_free(certs, X509_free);
        return status;
    }
    *out = certs;
    return LEAT_OK;
}

enum leat_status leat_tls_pem_crls(const struct leat_tls_pem *pem, STACK_OF(X509_CRL) * *out,
                                   struct leat_error *err)
{
    BIO *bio = open_pem(pem);
    STACK_OF(X509_CRL) *crls = sk_X509_CRL_new_null();
    X509_CRL *crl = NULL;
    bool pushed = bio != NULL && crls != NULL;

    while (pushed && (crl = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL)) != NULL) {
        pushed = sk_X509_CRL_push(crls, crl) > 0;
        if (!pushed)
            X509_CRL_free(crl);
    }
    BIO_free(bio);
    enum leat_status status = LEAT_OK;
    if (!pushed)
        status = out_of_memory(pem, err);
    else if (!is_at_end() || sk_X509_CRL_num(crls) == 0)
        status = refuse(pem, "CRL", err);
    ERR_clear_error();
    if (status != LEAT_OK) {
        sk_X509_CRL_pop_free(crls, X509_CRL_free);
        return status;
    }
    *out = crls;
    return LEAT_OK;
}

struct asked {
    const struct leat_tls_pem *passphrase;
    bool is_asked;
    bool is_too_long;
};

/* Gives the first line of the passphrase's file. OpenSSL's own would ask on the terminal, for
 * ever. */
static int give_passphrase(char *buf, int size, int is_writing, void *arg)
{
    struct asked *asked = arg;

    (void)is_writing;
    asked->is_asked = true;
    if (asked->passphrase == NULL)
        return -1;
    size_t len = strcspn(asked->passphrase->file->data, "\r\n");
    asked->is_too_long = len > (size_t)size;
    if (len == 0 || asked->is_too_long)
        return -1;
    memcpy(buf, asked->passphrase->file->data, len);
    return (int)len;
}

static enum leat_status refuse_locked(const struct leat_tls_pem *pem, const struct asked *asked,
                                      struct leat_error *err)
{
    ERR_clear_error();
    if (asked->passphrase == NULL)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "key file %s is encrypted; name a file with its passphrase, or store "
                              "it decrypted (openssl pkey -in ... -out ...)",
                              leat_tls_shown(pem->path));
    const char *path = leat_tls_shown(asked->passphrase->path);
    if (asked->is_too_long)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "passphrase file %s: its first line is longer than a passphrase "
                              "can be",
                              path);
    if (strcspn(asked->passphrase->file->data, "\r\n") == 0)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "passphrase file %s: its first line, which is to be the passphrase, "
                              "is empty",
                              path);
    return leat_error_set(
        err, LEAT_EUSAGE, 0, "key file %s is encrypted, and the passphrase in %s does not open it",
        leat_tls_shown_beside(pem->path), leat_tls_shown_beside(asked->passphrase->path));
}

enum leat_status leat_tls_pem_key(const struct leat_tls_pem *pem,
                                  const struct leat_tls_pem *passphrase, EVP_PKEY **out,
                                  struct leat_error *err)
{
    struct asked asked = {.passphrase = passphrase};
    BIO *bio = open_pem(pem);
    if (bio == NULL)
        return out_of_memory(pem, err);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, give_passphrase, &asked);
    BIO_free(bio);
    if (key == NULL)
        return asked.is_asked ? refuse_locked(pem, &asked, err) : refuse(pem, "PRIVATE KEY", err);
    ERR_clear_error();
    *out = key;
    return LEAT_OK;
}
