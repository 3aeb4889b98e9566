/*
 * log_writer.h - writes log lines to a descriptor from a thread of its own
 *
 * A worker never waits for whoever reads the log: lines go into a buffer of bounded size,
 * and when that is full they are dropped, counted, and the count is logged.
 *
 * Ownership: owns its thread and buffer, not the descriptor.
 * Threads: the log may be used from any thread between new and free.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_LOG_WRITER_H
#define LEAT_PROXY_LOG_WRITER_H

#include <leat/compiler.h>
#include <leat/error.h>

#include "base/log.h"

struct leat_log_writer;

/* Starts writing to FD what is logged to *OUT_LOG, which belongs to the writer. Lines begin
 * with the time (UTC, RFC 3339) and the level. LEAT_ENOMEM, LEAT_EIO. */
LEAT_MUST_CHECK enum leat_status leat_log_writer_new(int fd, enum leat_log_level level,
                                                     struct leat_log_writer **out,
                                                     struct leat_log **out_log);

/* Writes what is left, for at most a second if nobody reads it, and ends the thread. NULL is
 * a no-op. */
void leat_log_writer_free(struct leat_log_writer *writer);

#endif
