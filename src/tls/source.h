/*
 * source.h - the files that a context is made of: read whole, and remembered
 *
 * A context is built of exactly the bytes that were read, so that a digest over them says what
 * it is; and whether the files are still the same is found by their identities alone: device,
 * inode, size and time of change.
 *
 * Ownership: sources own their paths. A file's contents are its reader's.
 * Threads: reading and looking block: never on a loop. Once complete a list may be looked at
 * by any.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_SOURCE_H
#define LEAT_TLS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include <leat/compiler.h>
#include <leat/error.h>

/* What tells whether a file or directory has changed. */
struct leat_tls_identity {
    bool is_there;
    bool is_dir;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
};

struct leat_tls_source {
    char *path;
    struct leat_tls_identity identity; /* from before it was read */
};

/* All zero is an empty list. */
struct leat_tls_sources {
    struct leat_tls_source *at;
    size_t count, cap;
};

struct leat_tls_file {
    char *data; /* ended by a NUL that LEN does not count */
    size_t len;
};

/* Adds PATH and notes its identity, without reading it. LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_tls_sources_add(struct leat_tls_sources *sources,
                                                      const char *path, struct leat_error *err);

/* Adds, sorted, the entries of the directory that was added last which may be certificates:
 * their names end in .pem, .crt or .cer, or are a hash as c_rehash makes them. LEAT_EUSAGE, with
 * ERR, if it cannot be read. */
LEAT_MUST_CHECK enum leat_status leat_tls_sources_add_entries(struct leat_tls_sources *sources,
                                                              struct leat_error *err);

/* Whether any of SOURCES is not what it was when it was read. */
bool leat_tls_sources_have_changed(const struct leat_tls_sources *sources);

void leat_tls_sources_fini(struct leat_tls_sources *sources);

/*
 * Reads SOURCE, a WHAT ("certificate", "key"), and notes its identity anew. LEAT_EUSAGE, with ERR
 * naming the file and what is wrong with it, if it can't be read, is no regular file (which
 * might keep its reader waiting for ever) or larger than 64 MiB. The caller frees *OUT.
 */
LEAT_MUST_CHECK enum leat_status leat_tls_source_read(struct leat_tls_source *source,
                                                      const char *what, struct leat_tls_file *out,
                                                      struct leat_error *err);

/* Frees FILE's contents, which may be secret. */
void leat_tls_file_free(struct leat_tls_file *file);

/* The end of a file's name, as much of it as leaves room for what is wrong with the file. */
const char *leat_tls_shown(const char *path);

/* The same in a sentence that names two files. */
const char *leat_tls_shown_beside(const char *path);

#endif
