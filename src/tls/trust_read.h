/*
 * trust_read.h - the files that hold what a configuration trusts, as they are read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_TRUST_READ_H
#define LEAT_TLS_TRUST_READ_H

#include "tls/pem.h"
#include "tls/trust.h"

/* One file's contents. */
struct leat_tls_trust_part {
    struct leat_tls_file file;
    const char *path; /* the source's */
    bool is_crl;
};

/* All zero is empty. */
struct leat_tls_trust_parts {
    struct leat_tls_trust_part *at;
    size_t count;
    struct leat_tls_digest digest; /* over the contents of all, in order */
};

/* Reads what CONFIG says to trust. The names of the files go to SOURCES, which must outlive
 * the parts. Errors as leat_tls_trusts_get(); then there is nothing to free. */
LEAT_MUST_CHECK enum leat_status leat_tls_trust_parts_read(const struct leat_tls_config *config,
                                                           struct leat_tls_sources *sources,
                                                           struct leat_tls_trust_parts *out,
                                                           struct leat_error *err);

void leat_tls_trust_parts_fini(struct leat_tls_trust_parts *parts);

#endif
