/*
 * leg.h - one side of a session: its stream, its heartbeats, and the relay of what it sends
 *
 * Heartbeats (AMQP 0-9-1 4.2.7) are each leg's own: something is sent when nothing was for
 * half the interval; the leg is dead after two intervals without a byte while it was read.
 *
 * Ownership: embedded in the session.
 * Threads: the worker's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_LEG_H
#define LEAT_PROXY_LEG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <leat/compiler.h>

#include "amqp/login.h"
#include "amqp/relay.h"
#include "loop/loop.h"
#include "net/stream.h"

struct leat_session;
struct leat_writer;

/* What reads fall back to when the other side does not keep up. */
#define LEAT_LEG_READ_MIN (16u * 1024u)

struct leat_leg {
    struct leat_session *session;
    struct leat_stream *stream; /* NULL once closed, and before there is one */
    bool is_opened;             /* the stream can be read and written */
    bool is_heard;              /* something has been read from it */
    bool is_dead;               /* two heartbeats long nothing came: it will take nothing either */
    struct leat_amqp_relay relay; /* of what comes from this leg */
    uint64_t bytes;               /* that came from it since the session is open */
    uint64_t counted_bytes, counted_frames, counted_heartbeats; /* by leat_leg_count() */
    size_t read_size;
    uint64_t heartbeat_ms; /* 0: off */
    uint64_t received_at, sent_at;
    struct leat_timer heartbeat;
};

void leat_leg_init(struct leat_leg *leg, struct leat_session *session);

/* Sends the parts of IOV. False if that broke for want of memory; the session is then to be
 * ended. A stream that is gone takes everything. */
LEAT_MUST_CHECK bool leat_leg_write(struct leat_leg *leg, const struct iovec *iov, int count);

/* Likewise, with whole frames of leat's own (or the protocol header), which are traced. */
LEAT_MUST_CHECK bool leat_leg_write_own(struct leat_leg *leg, const struct leat_writer *frames);

/* How many bytes wait to be sent. */
size_t leat_leg_queued(const struct leat_leg *leg);

/* Whether a frame of leat's own may be sent to LEG now: between two frames of the other side's. */
bool leat_leg_may_insert(struct leat_leg *leg);

/* Notes that LEN bytes came. */
void leat_leg_received(struct leat_leg *leg, size_t len);

/* Adds what came since it was last called to the worker's counters. */
void leat_leg_count(struct leat_leg *leg);

/* Stops and restarts reading; silence while stopped is not the peer's. */
void leat_leg_pause(struct leat_leg *leg);
void leat_leg_resume(struct leat_leg *leg);

/* Begins heartbeats once TUNE, what was agreed on this leg, is known: its frame_max is not 0 then.
 * They run from Tune-Ok on, also while a backend is sought. */
void leat_leg_tune(struct leat_leg *leg, const struct leat_amqp_tune *tune);

/* The stream has sent all that was queued: the other leg may be read again. */
void leat_leg_drained(struct leat_leg *leg);

/* Ends the stream: queued bytes first. Heartbeats stop. */
void leat_leg_finish(struct leat_leg *leg);

/* Closes the stream at once. Heartbeats stop. */
void leat_leg_close(struct leat_leg *leg);

/* Why LEG's stream, whose last read gave STATUS, has come to its end. */
const char *leat_leg_end_reason(const struct leat_leg *leg, enum leat_status status);

/* The other leg of the same session. */
struct leat_leg *leat_leg_other(struct leat_leg *leg);

#endif
