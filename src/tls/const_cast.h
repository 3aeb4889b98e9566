/*
 * const_cast.h - for macros of OpenSSL that take what they only read as not const
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_CONST_CAST_H
#define LEAT_TLS_CONST_CAST_H

/* TEXT as OpenSSL's macros for SSL_ctrl() want it. */
static inline char *leat_tls_taken(const char *text)
{
    union {
        const char *lent;
        char *taken;
    } both = {.lent = text};

    return both.taken;
}

#endif
