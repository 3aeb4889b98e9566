/* SPDX-License-Identifier: Apache-2.0 */
#include "net/unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "loop/io.h"

static enum leat_status refuse_live(struct leat_io *io, const char *path, struct leat_error *err)
{
    struct ucred peer = {.pid = 0};
    socklen_t len = sizeof(peer);

    (void)getsockopt(io->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    leat_io_close(io);
    return leat_error_set(
        err, LEAT_EUSAGE, 0,
        "another process answers at %s, process %d: stop it or choose another name", path,
        (int)peer.pid);
}

/* Removes what a process that is gone has left at PATH, if there is such a thing. */
static enum leat_status clear_way(struct leat_loop *loop, const char *path,
                                  const struct leat_addr *addr, struct leat_error *err)
{
    struct leat_io io;
    struct stat info;
    int sys = 0;

    if (lstat(path, &info) != 0)
        return LEAT_OK; /* listening will tell what is wrong, if anything is */
    if (!S_ISSOCK(info.st_mode))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "%s is there and is no socket: remove it or choose another name",
                              path);
    /* Connecting to a UNIX socket succeeds or fails at once. */
    if (leat_io_connect(&io, loop, (const struct sockaddr *)&addr->ss, addr->len, &sys) == LEAT_OK)
        return refuse_live(&io, path, err);
    if (sys == ECONNREFUSED && unlink(path) != 0)
        sys = errno;
    else if (sys == ECONNREFUSED || sys == ENOENT)
        return LEAT_OK;
    return leat_error_set(err, LEAT_EUSAGE, sys,
                          "%s is there and can be neither asked nor replaced", path);
}

enum leat_status leat_unix_socket_listen(struct leat_loop *loop, const struct leat_addr *addr,
                                         mode_t mode, struct leat_unix_socket *out, int *out_fd,
                                         struct leat_error *err)
{
    struct leat_unix_socket made = {.path = ""};
    struct sockaddr_un un;
    struct stat info;
    int fd = -1;

    memcpy(&un, &addr->ss, sizeof(un));
    memcpy(made.path, un.sun_path, LEAT_ADDR_PATH_MAX);
    enum leat_status status = clear_way(loop, made.path, addr, err);
    if (status == LEAT_OK)
        status = leat_addr_listen(addr, &fd, err);
    if (status != LEAT_OK)
        return status;
    /* Only now: what bind makes is no more open than the umask. */
    if (chmod(made.path, mode) != 0 || lstat(made.path, &info) != 0) {
        status = leat_error_set(err, LEAT_EIO, errno, "%s cannot be given its mode", made.path);
        (void)close(fd);
        return status;
    }
    made.device = info.st_dev;
    made.inode = info.st_ino;
    *out = made;
    *out_fd = fd;
    return LEAT_OK;
}

bool leat_unix_socket_is_there(const struct leat_unix_socket *socket)
{
    struct stat info;

    return socket->path[0] != '\0' && lstat(socket->path, &info) == 0 &&
           info.st_dev == socket->device && info.st_ino == socket->inode;
}

void leat_unix_socket_remove(struct leat_unix_socket *socket)
{
    if (leat_unix_socket_is_there(socket))
        (void)unlink(socket->path);
    socket->path[0] = '\0';
}
