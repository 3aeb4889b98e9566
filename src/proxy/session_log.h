/*
 * session_log.h - what is logged of a session, and told to who watches it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_SESSION_LOG_H
#define LEAT_PROXY_SESSION_LOG_H

#include <stddef.h>
#include <stdint.h>

struct leat_leg;
struct leat_session;
struct leat_session_end;

/* Logs that the session is open. */
void leat_session_log_opened(const struct leat_session *session);

/* Logs the end, once. */
void leat_session_log_end(const struct leat_session *session, const struct leat_session_end *end,
                          const char *reason);

/*
 * The trace, for the log (--trace) and for who watches, a line a frame: of the relay, where one
 * begins at FROM; of the LEN bytes of frames at DATA that leat itself sends to TO; of the LEN bytes
 * that FROM sends to leat before the session is open, which are to be given also when there is no
 * trace: one may begin in the middle.
 */
void leat_session_log_frame(const struct leat_session *session, const struct leat_leg *from);
void leat_session_log_own_frames(const struct leat_session *session, const struct leat_leg *to,
                                 const uint8_t *data, size_t len);
void leat_session_log_handshake(struct leat_session *session, struct leat_leg *from,
                                const uint8_t *data, size_t len);

/* Logs what a turn of FROM's stream did (level trace), SENT bytes to the other side or, before the
 * session is open, back. */
void leat_session_log_turn(const struct leat_session *session, const struct leat_leg *from,
                           size_t sent);

#endif
