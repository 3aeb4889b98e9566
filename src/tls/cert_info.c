/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/cert_info.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/mem.h"
#include "base/str.h"

#define NAME_BYTES 512
#define HOST_BYTES 256

int64_t leat_tls_cert_seconds(const ASN1_TIME *time)
{
    struct tm tm = {0};

    return time != NULL && ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

void leat_tls_cert_narrow(const X509 *cert, int64_t *from, int64_t *until)
{
    int64_t cert_from = leat_tls_cert_seconds(X509_get0_notBefore(cert));
    int64_t cert_until = leat_tls_cert_seconds(X509_get0_notAfter(cert));

    if (cert_from > *from)
        *from = cert_from;
    if (cert_until < *until)
        *until = cert_until;
}

void leat_tls_cert_add_time(struct leat_text *text, const ASN1_TIME *time)
{
    struct tm utc = {0};

    if (time == NULL || ASN1_TIME_to_tm(time, &utc) != 1)
        leat_text_add(text, "an unknown time");
    else
        leat_text_add(text, "%04d-%02d-%02d %02d:%02d UTC", utc.tm_year + 1900, utc.tm_mon + 1,
                      utc.tm_mday, utc.tm_hour, utc.tm_min);
}

void leat_tls_cert_add_name(struct leat_text *text, const X509_NAME *name)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *data = NULL;

    if (bio != NULL && X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253) >= 0) {
        long len = BIO_get_mem_data(bio, &data);
        leat_text_add(text, "%.*s", len > NAME_BYTES ? NAME_BYTES : (int)len, data);
    }
    BIO_free(bio);
}

void leat_tls_cert_add_common_name(struct leat_text *text, const X509_NAME *name)
{
    int index = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    const X509_NAME_ENTRY *entry = index >= 0 ? X509_NAME_get_entry(name, index) : NULL;
    unsigned char *utf8 = NULL;
    int len = entry != NULL ? ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry)) : -1;

    if (len >= 0)
        leat_text_add(text, "%.*s", len > NAME_BYTES ? NAME_BYTES : len, (const char *)utf8);
    OPENSSL_free(utf8);
}

/* Writes the host or address that ALT is to BUF; false if it is neither. What does not belong into
 * a name becomes "?". */
static bool host_text(const GENERAL_NAME *alt, char buf[HOST_BYTES])
{
    int type = 0;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(alt, &type);
    const unsigned char *data =
        type == GEN_DNS || type == GEN_IPADD ? ASN1_STRING_get0_data(value) : NULL;
    if (data == NULL)
        return false;
    size_t len = (size_t)ASN1_STRING_length(value);
    if (type == GEN_IPADD)
        return (len == sizeof(struct in_addr) || len == sizeof(struct in6_addr)) &&
               inet_ntop(len == sizeof(struct in_addr) ? AF_INET : AF_INET6, data, buf,
                         HOST_BYTES) != NULL;
    if (len == 0 || len >= HOST_BYTES)
        return false;
    memcpy(buf, data, len);
    for (size_t i = 0; i < len; i++) {
        if (data[i] <= ' ' || data[i] >= 0x7f || data[i] == '"')
            buf[i] = '?';
    }
    buf[len] = '\0';
    return true;
}

static GENERAL_NAMES *alt_names(const X509 *cert)
{
    GENERAL_NAMES *alts = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);

    ERR_clear_error();
    return alts;
}

void leat_tls_cert_add_hosts(struct leat_text *text, const X509 *cert, size_t max)
{
    GENERAL_NAMES *alts = alt_names(cert);
    char buf[HOST_BYTES];
    size_t count = 0;

    for (int i = 0; i < sk_GENERAL_NAME_num(alts); i++) {
        if (!host_text(sk_GENERAL_NAME_value(alts, i), buf))
            continue;
        if (count < max)
            leat_text_add(text, "%s%s", count > 0 ? ", " : "", buf);
        count++;
    }
    if (count > max)
        leat_text_add(text, " and %zu more", count - max);
    if (count == 0)
        leat_text_add(text, "no name");
    GENERAL_NAMES_free(alts);
}

/* A copy of NAME as text, or NULL. */
static char *name_dup(const X509_NAME *name)
{
    char buf[NAME_BYTES];
    struct leat_text text;

    leat_text_init(&text, buf, sizeof(buf));
    leat_tls_cert_add_name(&text, name);
    return leat_mem_dup((struct leat_str){buf, text.len});
}

/* The serial number in hexadecimal, or NULL. */
static char *serial_dup(const X509 *cert)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
    char *hex = number != NULL ? BN_bn2hex(number) : NULL;
    char *copy = hex != NULL ? leat_mem_dup(leat_str_of(hex)) : NULL;

    OPENSSL_free(hex);
    BN_free(number);
    return copy;
}

static bool add_hosts(struct leat_tls_cert_info *info, const GENERAL_NAMES *alts)
{
    char buf[HOST_BYTES];
    int count = sk_GENERAL_NAME_num(alts); /* -1 if the extension is missing */

    info->hosts = leat_mem_zalloc_flex(0, count > 0 ? (size_t)count : 0, sizeof(char *));
    if (info->hosts == NULL)
        return false;
    for (int i = 0; i < count; i++) {
        if (!host_text(sk_GENERAL_NAME_value(alts, i), buf))
            continue;
        info->hosts[info->host_count] = leat_mem_dup(leat_str_of(buf));
        if (info->hosts[info->host_count] == NULL)
            return false;
        info->host_count++;
    }
    return true;
}

enum leat_status leat_tls_cert_info_new(X509 *cert, struct leat_tls_cert_info **out)
{
    struct leat_tls_cert_info *info = leat_mem_zalloc(sizeof(*info));
    if (info == NULL)
        return LEAT_ENOMEM;
    GENERAL_NAMES *alts = alt_names(cert);
    info->from = INT64_MIN;
    info->until = INT64_MAX;
    leat_tls_cert_narrow(cert, &info->from, &info->until);
    info->subject = name_dup(X509_get_subject_name(cert));
    info->issuer = name_dup(X509_get_issuer_name(cert));
    info->serial = serial_dup(cert);
    bool made = info->subject != NULL && info->issuer != NULL && info->serial != NULL &&
                add_hosts(info, alts);
    GENERAL_NAMES_free(alts);
    if (!made) {
        leat_tls_cert_info_free(info);
        return LEAT_ENOMEM;
    }
    *out = info;
    return LEAT_OK;
}

void leat_tls_cert_info_free(struct leat_tls_cert_info *info)
{
    if (info == NULL)
        return;
    leat_mem_free(info->subject);
    leat_mem_free(info->issuer);
    leat_mem_free(info->serial);
    for (size_t i = 0; i < info->host_count; i++)
        leat_mem_free(info->hosts[i]);
    leat_mem_free(info->hosts);
    leat_mem_free(info);
}
