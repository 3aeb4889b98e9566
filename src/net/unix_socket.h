/*
 * unix_socket.h - listening on a UNIX socket, whose file outlives the process that made it
 *
 * What a process that is gone has left in the place is replaced; what another one answers at, or
 * what is no socket at all, is left alone. The file is removed only as long as it is the one that
 * was made here.
 *
 * Ownership: embedded; leat_unix_socket_remove() undoes the making.
 * Threads: any, one at a time. Touches the file system, which may block.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_UNIX_SOCKET_H
#define LEAT_NET_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

#include "loop/loop.h"
#include "net/addr.h"

struct leat_unix_socket {
    char path[LEAT_ADDR_PATH_MAX + 1]; /* "": none */
    dev_t device;                      /* which file it was made as */
    ino_t inode;
};

/*
 * Makes a non-blocking socket that listens on ADDR, a UNIX socket's, and whose file has MODE; the
 * caller closes *OUT_FD. LOOP is only borrowed to ask who answers there now. LEAT_EUSAGE, LEAT_EIO
 * with ERR saying what is in the way.
 */
LEAT_MUST_CHECK enum leat_status leat_unix_socket_listen(struct leat_loop *loop,
                                                         const struct leat_addr *addr, mode_t mode,
                                                         struct leat_unix_socket *out, int *out_fd,
                                                         struct leat_error *err);

/* Whether its file is where it was made: somebody may have removed or replaced it. */
bool leat_unix_socket_is_there(const struct leat_unix_socket *socket);

/* Removes the file, unless somebody has put another in its place. To be called while the descriptor
 * is still open: nobody replaces what answers. A second call, or of one that is zeroed, does
 * nothing. */
void leat_unix_socket_remove(struct leat_unix_socket *socket);

#endif
