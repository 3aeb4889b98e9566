/*
 * session.h - one client's connection and the broker's that serves it
 *
 *   PROXY -> TLS -> HANDSHAKE -> SEARCH -> OPEN -> CLOSING -> ENDING
 *
 * Any state may go to ENDING. PROXY is left out unless the listener is one for proxies, TLS on a
 * plain listener.
 *   PROXY      the header in which a proxy says who the client is
 *   TLS        the client's TLS handshake
 *   HANDSHAKE  leat plays the broker, until the client's Open
 *   SEARCH     limits and access are judged, then backends are tried: connect, TLS, AMQP
 *              handshake; the client is not read, but gets heartbeats
 *   OPEN       frames are relayed
 *   CLOSING    a Close was passed on; its Close-Ok is awaited
 *   ENDING     the end is logged; queued bytes are sent, then both streams close
 *
 * Files: session.c (life and events), session_accept.c (the client's handshake),
 * session_search.c (finding a backend), session_login.c (the broker's handshake),
 * session_proxy.c (PROXY headers), session_relay.c, session_end.c (every way to end), leg.c (one
 * side: writing, heartbeats), session_log.c.
 *
 * Ownership: a session belongs to its worker and frees itself when both streams are closed.
 * Threads: its worker's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_SESSION_H
#define LEAT_PROXY_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <leat/compiler.h>

#include "amqp/client.h"
#include "amqp/relay.h"
#include "amqp/server.h"
#include "net/stream.h"
#include "proxy/farm.h"
#include "proxy/leg.h"
#include "proxy/snapshot.h"
#include "proxy/worker.h"
#include "tls/ctx_cache.h"

enum leat_session_state {
    LEAT_SESSION_PROXY,
    LEAT_SESSION_TLS,
    LEAT_SESSION_HANDSHAKE,
    LEAT_SESSION_SEARCH,
    LEAT_SESSION_OPEN,
    LEAT_SESSION_CLOSING,
    LEAT_SESSION_ENDING,
};

/* Who ended a session. */
enum leat_session_by { LEAT_BY_CLIENT, LEAT_BY_BROKER, LEAT_BY_LEAT };

/* What is needed only until the session is open. */
struct leat_session_handshake {
    struct leat_amqp_server_config server_config;
    struct leat_amqp_server server;
    struct leat_amqp_client_config client_config;
    struct leat_amqp_client client;
    struct leat_farm_search search;
    struct leat_tls_ctx_want want; /* for the TLS context of the present backend */
    struct leat_timer search_deadline;
    char last_failure[160]; /* of the backends that were tried, for the log */
    struct leat_amqp_relay seen_client, seen_broker; /* find the frames of both, for the trace */
    struct leat_addr destination;                    /* that the PROXY header names; len 0: none */
    size_t header_seen;                              /* bytes of the client's protocol header */
    uint64_t tried_at;                               /* when the present backend was begun */
    bool login_sent;                                 /* to the present backend */
    uint8_t properties[LEAT_AMQP_SERVER_PROPERTIES_MAX]; /* what the client is told of the broker */
    char peer[LEAT_ADDR_TEXT_MAX + 8];                   /* what the broker is told of the client */
    size_t early_len;
    uint8_t early[4096]; /* what the client sent right behind Open */
};

struct leat_session {
    struct leat_worker *worker;
    struct leat_list link;
    uint64_t id;
    enum leat_session_state state;
    bool was_open;
    bool trace;                      /* the frames are told, to the log or to who watches */
    bool logs_frames;                /* to the log: --trace */
    bool is_counted;                 /* against limits.sessions */
    enum leat_session_by closing_by; /* in CLOSING: whose Close it was */
    bool client_answered;           /* likewise, of a Close of leat's: the broker's turn has come */
    bool closed_with_200;           /* likewise: whether it was an ordinary one */
    char close_reason[120];         /* likewise: code and text, for the log */
    struct leat_addr peer;          /* the client */
    struct leat_addr via;           /* the proxy that said so, which is connected; len 0: none */
    bool has_no_client;             /* there was a PROXY header, but it names none */
    struct leat_snapshot *snapshot; /* the configuration that it began with */
    const struct leat_config *config; /* of the snapshot */
    size_t listener;                  /* index of config->listeners */
    struct leat_farm *farm;           /* that serves its vhost; NULL before SEARCH */
    struct leat_leg client, broker;
    struct leat_backend *backend;
    struct leat_addr backend_addr; /* that it was connected to at; len 0 before */
    struct leat_amqp_login login;  /* user and vhost; the secret only until the session is open */
    char *connection_name;         /* as the client calls itself; NULL: it does not */
    struct leat_session_handshake *handshake; /* NULL once open */
    struct leat_timer deadline;               /* of the present step */
    uint64_t began_at;
};

/* Whether the client is told of the end by a Close. */
enum leat_session_close {
    LEAT_CLOSE_NONE,
    LEAT_CLOSE_DUE,  /* to be sent, if it can be */
    LEAT_CLOSE_SENT, /* also: it has been sent already */
};

/* How a session ends. */
struct leat_session_end {
    enum leat_session_by by;
    bool orderly; /* as the protocol wants it, or silent: nothing to warn of */
    enum leat_session_close told;
    struct leat_amqp_close close; /* unless told is LEAT_CLOSE_NONE */
};

/* "proxy", "tls", "handshake" and so on; "client", "broker", "leat". */
const char *leat_session_state_name(enum leat_session_state state);
const char *leat_session_by_name(enum leat_session_by by);

/* session.c */

/* Takes over FD, accepted on the listener of that index from PEER; `load` and `handshakes` have
 * been raised for it. If memory is short the connection is closed, no more. */
void leat_session_start(struct leat_worker *worker, int fd, size_t listener,
                        const struct leat_addr *peer);

/* The only setter of the state; checks the transition. */
void leat_session_set_state(struct leat_session *session, enum leat_session_state state);

/* Gives the present step AFTER_MS to finish. */
void leat_session_set_deadline(struct leat_session *session, uint64_t after_ms);

/* What becomes of the session when both streams are gone. */
void leat_session_free(struct leat_session *session);

/* Frees what only the handshakes needed, credentials overwritten. NULL is a no-op. */
void leat_session_handshake_free(struct leat_session_handshake *handshake, struct leat_loop *loop);

/* Ends the session at once, whatever is under way. */
void leat_session_cut(struct leat_session *session, const char *reason);

/* session_accept.c: the client's handshake */
void leat_session_accept_opened(struct leat_session *session);
void leat_session_accept_readable(struct leat_session *session);

/* session_search.c: finding a backend */
void leat_session_search_begin(struct leat_session *session);
void leat_session_search_next(struct leat_session *session);

/* Waits no longer for the TLS context of the present backend. */
void leat_session_search_stop(struct leat_session *session);

/* The present backend is gone, or of no use, for REASON: a failure, unless it may be its way to
 * refuse the login. */
void leat_session_search_lost(struct leat_session *session, const char *reason);

/* The present backend failed for the reason given: it is noted, and the next one is tried. */
void leat_session_search_failed(struct leat_session *session, const char *format, ...)
    LEAT_PRINTF(2, 3);

/* Tries the next backend without holding anything against this one. */
void leat_session_search_pass_over(struct leat_session *session, const char *format, ...)
    LEAT_PRINTF(2, 3);

/* session_login.c: the broker's handshake */
void leat_session_login_opened(struct leat_session *session);
void leat_session_login_readable(struct leat_session *session);

/* session_relay.c */

/* Reads from LEG and passes on what came. */
void leat_session_relay_readable(struct leat_session *session, struct leat_leg *leg);

/* Passes LEN bytes of DATA, read from LEG, on. */
void leat_session_relay(struct leat_session *session, struct leat_leg *leg, const uint8_t *data,
                        size_t len);

/* session_end.c */
void leat_session_end(struct leat_session *session, const struct leat_session_end *how,
                      const char *format, ...) LEAT_PRINTF(3, 4);

/* Ends the session with a Close to the client. */
void leat_session_refuse(struct leat_session *session, enum leat_session_by by, uint16_t code,
                         struct leat_str text);

/* The peer of LEG is lost, for the reason given: the other side is told as it can be. */
void leat_session_leg_lost(struct leat_session *session, struct leat_leg *leg, const char *reason);

/* A Close, or Close-Ok, came from FROM (in FROM->relay). True if it is to be passed on. */
bool leat_session_got_close(struct leat_session *session, struct leat_leg *from);
bool leat_session_got_close_ok(struct leat_session *session, const struct leat_leg *from);

/* The Close-Ok that came from FROM has been passed on: if it answers, the session ends. */
void leat_session_passed_close_ok(struct leat_session *session, const struct leat_leg *from);

/* The Close that is under way will not be answered, and WHY. */
void leat_session_close_unanswered(struct leat_session *session, const char *why);

/*
 * Begins to end the session for a shutdown: an open one gets Close 320, what its client sends
 * before Close-Ok still goes to the broker, which then gets Close too. False if a frame to
 * the client is only half sent: to be tried again.
 */
bool leat_session_drain(struct leat_session *session);

/* Likewise, because the operator wants this one to end. */
bool leat_session_close_by_operator(struct leat_session *session);

/* What kind of end it is: "closed", of one that was open, "refused", told by a Close, or "failed".
 */
const char *leat_session_end_how(const struct leat_session *session,
                                 const struct leat_session_end *end);

#endif
