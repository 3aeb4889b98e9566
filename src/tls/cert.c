/* What a context's certificate says of itself. SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/str.h"
#include "tls/ctx.h"
#include "tls/ctx_impl.h"

const char *leat_tls_ctx_subject(const struct leat_tls_ctx *ctx, char *buf, size_t cap)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx->ssl_ctx);
    BIO *bio = (cert != NULL) ? BIO_new(BIO_s_mem()) : NULL;
    /* Names in other alphabets as they are, in UTF-8. */
    unsigned long flags = XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB;
    char *text;

    if (bio == NULL)
        return NULL;
    (void)X509_NAME_print_ex(bio, X509_get_subject_name(cert), 0, flags);
    long len = BIO_get_mem_data(bio, &text);
    size_t shown = (size_t)len < cap ? (size_t)len : cap - 1;
    if (shown > 0)
        memcpy(buf, text, shown);
    buf[shown] = '\0';
    BIO_free(bio);
    ERR_clear_error();
    return buf;
}

/* Tells the address that IP holds, if it is one. */
static void tell_address(const ASN1_OCTET_STRING *ip, leat_tls_name_fn *fn, void *arg)
{
    int len = ASN1_STRING_length(ip), family = (len == 4) ? AF_INET : AF_INET6;
    char text[INET6_ADDRSTRLEN];

    if ((len == 4 || len == 16) &&
        inet_ntop(family, ASN1_STRING_get0_data(ip), text, sizeof(text)) != NULL)
        fn(arg, leat_str_of(text));
}

void leat_tls_ctx_each_name(const struct leat_tls_ctx *ctx, leat_tls_name_fn *fn, void *arg)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx->ssl_ctx);
    GENERAL_NAMES *names = NULL;

    if (cert != NULL)
        names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        int type;
        const void *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
        if (type == GEN_IPADD)
            tell_address(value, fn, arg);
        else if (type == GEN_DNS)
            fn(arg, (struct leat_str){(const char *)ASN1_STRING_get0_data(value),
                                      (size_t)ASN1_STRING_length(value)});
    }
    GENERAL_NAMES_free(names);
    ERR_clear_error();
}
