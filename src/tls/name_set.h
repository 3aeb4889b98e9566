/*
 * name_set.h - which of several contexts a host name belongs to
 *
 * Ownership: a set owns its copies of names. It is complete before it is looked at.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_NAME_SET_H
#define LEAT_TLS_NAME_SET_H

#include <stdbool.h>
#include <stddef.h>

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

/* The longest host name (RFC 1035, 2.3.4). */
#define LEAT_TLS_NAME_MAX 255

/* All zero is an empty set. */
struct leat_tls_name_set {
    struct leat_tls_name *at; /* sorted by name */
    size_t count, cap;
};

/*
 * Adds NAME, exact or "*." and a name, for the context INDEX. LEAT_EUSAGE, with ERR, if it is
 * neither, or is there for another index already; LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status leat_tls_name_set_add(struct leat_tls_name_set *set,
                                                       const char *name, size_t index,
                                                       struct leat_error *err);

/* Finds the index that NAME belongs to: exactly, or else by the wildcard for its first label.
 * False, leaving *OUT alone, if there is none. */
bool leat_tls_name_set_find(const struct leat_tls_name_set *set, struct leat_str name, size_t *out);

void leat_tls_name_set_fini(struct leat_tls_name_set *set);

#endif
