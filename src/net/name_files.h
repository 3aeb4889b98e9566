/*
 * name_files.h - the system's files about names: /etc/hosts and /etc/resolv.conf
 *
 * Ownership: what was read is its maker's and never changes.
 * Threads: reading blocks, so it is not for the thread of a loop; what was read may be handed to
 * another thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_NAME_FILES_H
#define LEAT_NET_NAME_FILES_H

#include <time.h>

#include "net/hosts.h"
#include "net/resolv_conf.h"

/* By what a changed file is known. All 0 if there is none. */
struct leat_file_identity {
    uint64_t device, inode, size;
    struct timespec changed_at;
};

struct leat_name_files {
    struct leat_hosts *hosts;
    struct leat_resolv_conf resolv_conf;
    struct leat_file_identity hosts_identity, resolv_conf_identity;
};

/* Reads both files; blocks. One that is missing is as an empty one. LEAT_EIO, LEAT_ELIMIT (it is
 * larger than such a file can be) with ERR naming the file; LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_name_files_read(const char *hosts_path,
                                                      const char *resolv_conf_path,
                                                      struct leat_name_files **out,
                                                      struct leat_error *err);

/* Whether FILES is still what the paths lead to. Looks, but reads nothing. */
bool leat_name_files_is_current(const struct leat_name_files *files, const char *hosts_path,
                                const char *resolv_conf_path);

/* Whether A and B are of the same file in the same state. */
bool leat_file_identity_is_equal(const struct leat_file_identity *a,
                                 const struct leat_file_identity *b);

/* NULL is a no-op. */
void leat_name_files_free(struct leat_name_files *files);

#endif
