/*
 * config_check.h - judging a configuration as a whole, and saying where it is wrong; for
 * leat_config_finish() only
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_CONFIG_CHECK_H
#define LEAT_PROXY_CONFIG_CHECK_H

#include "base/text.h"
#include "proxy/config.h"
#include "proxy/config_keys.h"

/* What is being checked, for messages. */
struct leat_config_check {
    struct leat_config *config;
    struct leat_error *err;
    size_t farms; /* that have a name in the file; those behind are of single backends */
    unsigned line;
    const unsigned *key_lines; /* of the item's keys; NULL: none is being checked */
    char buf[160];
    struct leat_text path; /* of the item, in BUF */
};

/* The item NAME (NULL: none, or one without a name) of SECTION is checked now. */
void leat_config_check_enter(struct leat_config_check *check, enum leat_section_kind section,
                             const char *name, unsigned line, const unsigned *key_lines);

/* Fills check->err with where and what is wrong, and returns LEAT_EUSAGE. KEY: of the table of
 * what was entered; NULL: none in particular. */
enum leat_status leat_config_check_wrong(const struct leat_config_check *check,
                                         const struct leat_key *key, const char *format, ...)
    LEAT_PRINTF(3, 4);

/* Fills ERR with where the value of the configuration itself at OFFSET was set, a line of the file
 * or an option, and what is wrong with it; returns LEAT_EUSAGE. */
enum leat_status leat_config_check_wrong_value(const struct leat_config *config, size_t offset,
                                               struct leat_error *err, const char *format, ...)
    LEAT_PRINTF(4, 5);

/* What is said of DNS, and of the listener at INDEX, which CHECK has entered, beside its address
 * and TLS: finds the networks and servers meant. LEAT_EUSAGE. */
LEAT_MUST_CHECK enum leat_status leat_config_check_dns(struct leat_config *config,
                                                       struct leat_error *err);
LEAT_MUST_CHECK enum leat_status leat_config_check_socket(const struct leat_config_check *check,
                                                          struct leat_listener_config *listener);

/* What is said of TLS: of the listeners, their further certificates, the backends. LEAT_EUSAGE. */
LEAT_MUST_CHECK enum leat_status leat_config_check_listener_tls(struct leat_config_check *check);
LEAT_MUST_CHECK enum leat_status leat_config_check_backend_tls(struct leat_config_check *check);

#endif
