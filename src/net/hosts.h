/*
 * hosts.h - the table of names that /etc/hosts gives (hosts(5))
 *
 * Made of the file's text, so that who may block reads it (name_files.h).
 *
 * Ownership: a table is its maker's and never changes.
 * Threads: made anywhere, read anywhere.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_HOSTS_H
#define LEAT_NET_HOSTS_H

#include "net/addr.h"

struct leat_hosts;

/* Makes a table of TEXT, which is not kept. Lines that are no such lines are passed over. NULL if
 * memory is short. */
struct leat_hosts *leat_hosts_new(struct leat_str text);

/* NULL is a no-op. */
void leat_hosts_free(struct leat_hosts *hosts);

/*
 * Finds the addresses of NAME, in any case of letters and with or without a dot at its end, in the
 * order of the file. Returns how many there are, and puts the first CAP of them, with port 0, in
 * OUT.
 */
size_t leat_hosts_find(const struct leat_hosts *hosts, struct leat_str name, struct leat_addr *out,
                       size_t cap);

#endif
