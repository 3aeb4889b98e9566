/* SPDX-License-Identifier: Apache-2.0 */
#include "net/name_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"

#define FILE_MAX ((off_t)64 * 1024 * 1024)

static struct leat_file_identity identity_of(const struct stat *st)
{
    return (struct leat_file_identity){
        .device = st->st_dev,
        .inode = st->st_ino,
        .size = (uint64_t)st->st_size,
        .changed_at = st->st_mtim,
    };
}

/* Reads what FD has, at most CAP bytes. Returns 0 or errno. */
static int read_all(int fd, char *buf, size_t cap, size_t *out_len)
{
    size_t len = 0;
    ssize_t n = 1;

    while (n != 0 && len < cap) {
        n = read(fd, buf + len, cap - len);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            len += (size_t)n;
    }
    *out_len = len;
    return 0;
}

/* Reads FD, the file PATH, into new memory. */
static enum leat_status read_open(int fd, const char *path, struct leat_str *out,
                                  struct leat_file_identity *out_identity, struct leat_error *err)
{
    struct stat st;
    size_t len = 0;

    if (fstat(fd, &st) != 0)
        return leat_error_set(err, LEAT_EIO, errno, "reading %s", path);
    if (st.st_size > FILE_MAX)
        return leat_error_set(err, LEAT_ELIMIT, 0, "%s is larger than 64 MiB", path);
    char *buf = leat_mem_alloc((size_t)st.st_size);
    if (buf == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for %s", path);
    int sys = read_all(fd, buf, (size_t)st.st_size, &len);
    if (sys != 0) {
        leat_mem_free(buf);
        return leat_error_set(err, LEAT_EIO, sys, "reading %s", path);
    }
    *out = (struct leat_str){buf, len};
    *out_identity = identity_of(&st);
    return LEAT_OK;
}

/* Reads the file PATH. OUT->ptr is for the caller to free, also if it is NULL. */
static enum leat_status read_file(const char *path, struct leat_str *out,
                                  struct leat_file_identity *out_identity, struct leat_error *err)
{
    *out = (struct leat_str){NULL, 0};
    *out_identity = (struct leat_file_identity){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? LEAT_OK : leat_error_set(err, LEAT_EIO, errno, "opening %s", path);
    enum leat_status status = read_open(fd, path, out, out_identity, err);
    (void)close(fd);
    return status;
}

static void free_text(struct leat_str text)
{
    /* It is ours, so it may be written to. */
    union {
        const char *lent;
        char *own;
    } ptr = {.lent = text.ptr};

    leat_mem_free(ptr.own);
}

static enum leat_status read_hosts(const char *path, struct leat_name_files *files,
                                   struct leat_error *err)
{
    struct leat_str text;
    enum leat_status status = read_file(path, &text, &files->hosts_identity, err);

    if (status != LEAT_OK)
        return status;
    files->hosts = leat_hosts_new(text);
    free_text(text);
    if (files->hosts == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for %s", path);
    return LEAT_OK;
}

static enum leat_status read_resolv_conf(const char *path, struct leat_name_files *files,
                                         struct leat_error *err)
{
    struct leat_str text;
    enum leat_status status = read_file(path, &text, &files->resolv_conf_identity, err);

    if (status != LEAT_OK)
        return status;
    leat_resolv_conf_parse(text, &files->resolv_conf);
    free_text(text);
    return LEAT_OK;
}

enum leat_status leat_name_files_read(const char *hosts_path, const char *resolv_conf_path,
                                      struct leat_name_files **out, struct leat_error *err)
{
    struct leat_name_files *files = leat_mem_zalloc(sizeof(*files));

    if (files == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for %s", hosts_path);
    enum leat_status status = read_hosts(hosts_path, files, err);
    if (status == LEAT_OK)
        status = read_resolv_conf(resolv_conf_path, files, err);
    if (status != LEAT_OK) {
        leat_name_files_free(files);
        return status;
    }
    *out = files;
    return LEAT_OK;
}

static struct leat_file_identity look_at(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? identity_of(&st) : (struct leat_file_identity){0};
}

bool leat_file_identity_is_equal(const struct leat_file_identity *a,
                                 const struct leat_file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed_at.tv_sec == b->changed_at.tv_sec &&
           a->changed_at.tv_nsec == b->changed_at.tv_nsec;
}

bool leat_name_files_is_current(const struct leat_name_files *files, const char *hosts_path,
                                const char *resolv_conf_path)
{
    struct leat_file_identity hosts = look_at(hosts_path);
    struct leat_file_identity resolv_conf = look_at(resolv_conf_path);

    return leat_file_identity_is_equal(&hosts, &files->hosts_identity) &&
           leat_file_identity_is_equal(&resolv_conf, &files->resolv_conf_identity);
}

void leat_name_files_free(struct leat_name_files *files)
{
    if (files == NULL)
        return;
    leat_hosts_free(files->hosts);
    leat_mem_free(files);
}
