/*
 * settings.h - what a configuration sets on OpenSSL's objects, apart from files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_SETTINGS_H
#define LEAT_TLS_SETTINGS_H

#include <stdbool.h>

#include <openssl/ssl.h>

#include "tls/ctx.h"

/* Makes an SSL_CTX with all settings of CONFIG. NULL, with OpenSSL's error, if that fails. */
SSL_CTX *leat_tls_settings_new_ctx(const struct leat_tls_config *config);

/*
 * Makes SSL, which was made from FROM's settings, use those of TO, and TO's fingerprint as what
 * its tickets are for. SSL_set_SSL_CTX(), which is to be called before, carries certificates, trust
 * stores and the ciphers of TLS 1.2; this is the one place for all the rest. False if memory is
 * short.
 */
bool leat_tls_settings_switch(SSL *ssl, const struct leat_tls_config *from,
                              const struct leat_tls_ctx *to);

#endif
