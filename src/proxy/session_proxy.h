/*
 * session_proxy.h - PROXY headers of a session's two sides: who the client is, telling the broker
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_SESSION_PROXY_H
#define LEAT_PROXY_SESSION_PROXY_H

#include <stdbool.h>

#include <leat/compiler.h>
#include <leat/error.h>

struct leat_proxy_header;
struct leat_session;

/* Takes over what HEADER says of the client. */
void leat_session_proxied(struct leat_session *session, const struct leat_proxy_header *header);

/* Whether the client is on this machine; if a proxy speaks for it, both are. */
bool leat_session_is_local(const struct leat_session *session);

/* Makes the broker's stream, which has just connected, begin with the PROXY header that its backend
 * is to get. LEAT_ENOMEM, LEAT_ELIMIT. */
LEAT_MUST_CHECK enum leat_status leat_session_send_proxy(struct leat_session *session);

#endif
