/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/peer_name.h"

#include <arpa/inet.h>
#include <string.h>

#include <openssl/x509v3.h>

#include "tls/const_cast.h"
#include "tls/name_set.h"

/* Makes the peer's certificate have to be for NAME, and sends NAME if it is no address. */
static bool set_host(SSL *ssl, const char *name)
{
    uint8_t address[sizeof(struct in6_addr)];

    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    /* A common name is no host name (RFC 9525, 2): authorities give clients any they like. */
    SSL_set_hostflags(ssl,
                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return SSL_set1_host(ssl, name) == 1 &&
           SSL_set_tlsext_host_name(ssl, leat_tls_taken(name)) == 1;
}

bool leat_tls_set_peer_name(SSL *ssl, const char *name)
{
    char host[LEAT_TLS_NAME_MAX + 1];
    size_t len = name != NULL ? strlen(name) : 0;

    if (len == 0 && SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE)
        return true;
    if (len > 0 && name[len - 1] == '.')
        len--;
    if (len == 0 || len > LEAT_TLS_NAME_MAX)
        return false;
    memcpy(host, name, len);
    host[len] = '\0';
    return set_host(ssl, host);
}
