/*
 * session_info.h - a session as control shows it, and which sessions somebody means
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_SESSION_INFO_H
#define LEAT_PROXY_SESSION_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct leat_session;

/* Returns SESSION as JSON (see docs/control.md), or NULL if memory is short. On its worker. */
json_t *leat_session_json(const struct leat_session *session);

/* What a session has to be. Members that are NULL do not matter. */
struct leat_session_filter {
    const char *vhost, *user;
    const char *backend;  /* its name or its address */
    const char *client;   /* its address, with or without the port */
    const char *listener; /* with or without the scheme */
    const char *state;
};

/* Whether SESSION is what FILTER says. On its worker. */
bool leat_session_matches(const struct leat_session *session,
                          const struct leat_session_filter *filter);

#endif
