/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/source.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#define FILE_BYTES_MAX (64u * 1024u * 1024u)
#define SHOWN_MAX 80
#define SHOWN_BESIDE_MAX 60
#define HASH_DIGITS 8

/* The last bytes of PATH, at most MAX. */
static const char *end_of(const char *path, size_t max)
{
    size_t len = strlen(path);

    return len > max ? path + len - max : path;
}

const char *leat_tls_shown(const char *path)
{
    return end_of(path, SHOWN_MAX);
}

const char *leat_tls_shown_beside(const char *path)
{
    return end_of(path, SHOWN_BESIDE_MAX);
}

static struct leat_tls_identity identity_of(const struct stat *info)
{
    return (struct leat_tls_identity){
        .is_there = true,
        .is_dir = S_ISDIR(info->st_mode),
        .dev = info->st_dev,
        .ino = info->st_ino,
        .size = info->st_size,
        .mtime = info->st_mtim,
    };
}

static struct leat_tls_identity look(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? identity_of(&info) : (struct leat_tls_identity){0};
}

static bool is_same(const struct leat_tls_identity *a, const struct leat_tls_identity *b)
{
    return a->is_there == b->is_there && a->dev == b->dev && a->ino == b->ino &&
           a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
           a->mtime.tv_nsec == b->mtime.tv_nsec;
}

static enum leat_status out_of_memory(struct leat_error *err)
{
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for the files of a TLS context");
}

static bool grow(struct leat_tls_sources *sources)
{
    size_t cap = sources->cap > 0 ? 2 * sources->cap : 4;
    struct leat_tls_source *grown = leat_mem_zalloc_flex(0, cap, sizeof(*grown));

    if (grown == NULL)
        return false;
    if (sources->count > 0)
        memcpy(grown, sources->at, sources->count * sizeof(*grown));
    leat_mem_free(sources->at);
    sources->at = grown;
    sources->cap = cap;
    return true;
}

/* Takes over PATH, which may be NULL for lack of memory. */
static enum leat_status add(struct leat_tls_sources *sources, char *path, struct leat_error *err)
{
    if (path == NULL || (sources->count == sources->cap && !grow(sources))) {
        leat_mem_free(path);
        return out_of_memory(err);
    }
    sources->at[sources->count++] = (struct leat_tls_source){.path = path, .identity = look(path)};
    return LEAT_OK;
}

enum leat_status leat_tls_sources_add(struct leat_tls_sources *sources, const char *path,
                                      struct leat_error *err)
{
    return add(sources, leat_mem_dup(leat_str_of(path)), err);
}

/* "9d66eef0.0", as c_rehash names links. */
static bool is_hash(const char *name)
{
    for (int i = 0; i < HASH_DIGITS; i++) {
        if (!isxdigit((unsigned char)name[i]))
            return false;
    }
    return name[HASH_DIGITS] == '.' && isdigit((unsigned char)name[HASH_DIGITS + 1]);
}

static bool may_be_certificate(const char *name)
{
    const char *end = strrchr(name, '.');

    if (name[0] == '.' || end == NULL)
        return false;
    return strcmp(end, ".pem") == 0 || strcmp(end, ".crt") == 0 || strcmp(end, ".cer") == 0 ||
           is_hash(name);
}

static enum leat_status add_entry(struct leat_tls_sources *sources, const char *dir,
                                  const char *name, struct leat_error *err)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = leat_mem_alloc(size);

    if (path != NULL)
        (void)snprintf(path, size, "%s/%s", dir, name);
    return add(sources, path, err);
}

static int by_path(const void *a, const void *b)
{
    const struct leat_tls_source *left = a, *right = b;

    return strcmp(left->path, right->path);
}

enum leat_status leat_tls_sources_add_entries(struct leat_tls_sources *sources,
                                              struct leat_error *err)
{
    size_t first = sources->count;
    const char *path = sources->at[first - 1].path;
    enum leat_status status = LEAT_OK;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return leat_error_set(err, LEAT_EUSAGE, errno, "CA directory %s", leat_tls_shown(path));
    const struct dirent *entry;
    while (status == LEAT_OK && (entry = readdir(dir)) != NULL) {
        if (may_be_certificate(entry->d_name))
            status = add_entry(sources, path, entry->d_name, err);
    }
    (void)closedir(dir);
    /* The order must not depend on the directory's: it goes into digests. */
    if (status == LEAT_OK && sources->count > first)
        qsort(&sources->at[first], sources->count - first, sizeof(sources->at[0]), by_path);
    return status;
}

bool leat_tls_sources_have_changed(const struct leat_tls_sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        struct leat_tls_identity now = look(sources->at[i].path);
        if (!is_same(&now, &sources->at[i].identity))
            return true;
    }
    return false;
}

void leat_tls_sources_fini(struct leat_tls_sources *sources)
{
    for (size_t i = 0; i < sources->count; i++)
        leat_mem_free(sources->at[i].path);
    leat_mem_free(sources->at);
    *sources = (struct leat_tls_sources){0};
}

/* What is wrong with a file that INFO describes; NULL if it can be read whole. */
static const char *unfit(const struct stat *info)
{
    if (S_ISDIR(info->st_mode))
        return "it is a directory";
    if (S_ISFIFO(info->st_mode) || S_ISSOCK(info->st_mode))
        return "it is a pipe or socket, not a file";
    if (!S_ISREG(info->st_mode))
        return "it is a device, not a file";
    if (info->st_size == 0)
        return "it is empty";
    return info->st_size > (off_t)FILE_BYTES_MAX ? "it is larger than 64 MiB" : NULL;
}

/* Reads FD to its end into the CAP bytes at DATA. The number of bytes, or -1 with errno. */
static ssize_t read_all(int fd, char *data, size_t cap)
{
    size_t len = 0;

    while (len < cap) {
        ssize_t got = read(fd, data + len, cap - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        len += (size_t)got;
    }
    return (ssize_t)len;
}

static enum leat_status fail(const char *what, const char *path, int sys, const char *why,
                             struct leat_error *err)
{
    return leat_error_set(err, LEAT_EUSAGE, sys, "%s file %s%s%s", what, leat_tls_shown(path),
                          why != NULL ? ": " : "", why != NULL ? why : "");
}

static enum leat_status read_open(struct leat_tls_source *source, int fd, const char *what,
                                  struct leat_tls_file *out, struct leat_error *err)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return fail(what, source->path, errno, NULL, err);
    const char *why = unfit(&info);
    if (why != NULL)
        return fail(what, source->path, 0, why, err);
    source->identity = identity_of(&info);
    size_t size = (size_t)info.st_size;
    struct leat_tls_file file = {.data = leat_mem_alloc(size + 1)};
    if (file.data == NULL)
        return out_of_memory(err);
    ssize_t len = read_all(fd, file.data, size + 1);
    int sys = errno;
    file.len = len > 0 ? (size_t)len : 0;
    if (len < 0 || file.len != size) {
        file.len = size;
        leat_tls_file_free(&file);
        return fail(what, source->path, len < 0 ? sys : 0,
                    len < 0 ? NULL : "it was written while it was read; try again", err);
    }
    file.data[file.len] = '\0';
    *out = file;
    return LEAT_OK;
}

enum leat_status leat_tls_source_read(struct leat_tls_source *source, const char *what,
                                      struct leat_tls_file *out, struct leat_error *err)
{
    /* Opening a pipe would wait for its writer. */
    int fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    source->identity = (struct leat_tls_identity){0};
    if (fd < 0)
        return fail(what, source->path, errno == ENXIO ? 0 : errno,
                    errno == ENXIO ? "it is a pipe or socket, not a file" : NULL, err);
    enum leat_status status = read_open(source, fd, what, out, err);
    (void)close(fd);
    return status;
}

void leat_tls_file_free(struct leat_tls_file *file)
{
    leat_mem_free_secret(file->data, file->len);
    *file = (struct leat_tls_file){0};
}
