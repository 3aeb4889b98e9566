/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "net/stream_impl.h"

static enum leat_status plain_advance(struct leat_stream *s)
{
    (void)s;
    return LEAT_OK;
}

static void plain_nothing(struct leat_stream *s)
{
    (void)s;
}

static struct leat_stream_tls plain_tls(const struct leat_stream *s)
{
    (void)s;
    return (struct leat_stream_tls){.version = "", .cipher = ""};
}

static void plain_set_secret(struct leat_stream *s, bool is_secret)
{
    (void)s;
    (void)is_secret; /* nothing is kept in between */
}

static const struct leat_stream_ops plain_ops = {
    .read = leat_stream_pull,
    .write = leat_stream_push,
    .advance = plain_advance,
    .send_end = plain_nothing,
    .fini = plain_nothing,
    .tls = plain_tls,
    .set_secret = plain_set_secret,
};

enum leat_status leat_stream_accept(struct leat_loop *loop, int fd,
                                    const struct leat_stream_user *user, struct leat_stream **out)
{
    struct leat_stream *s = leat_mem_zalloc(sizeof(*s));
    enum leat_status status = LEAT_ENOMEM;

    if (s != NULL) {
        leat_stream_init(s, &plain_ops, user);
        status = leat_stream_start(s, loop, fd);
    }
    if (status != LEAT_OK) {
        leat_mem_free(s);
        (void)close(fd);
        return status;
    }
    *out = s;
    return LEAT_OK;
}

enum leat_status leat_stream_connect(struct leat_loop *loop,
                                     const struct leat_connect_target *target,
                                     const struct leat_stream_user *user, struct leat_stream **out,
                                     struct leat_error *err)
{
    struct leat_stream *s = leat_mem_zalloc(sizeof(*s));

    if (s == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a connection");
    leat_stream_init(s, &plain_ops, user);
    enum leat_status status = leat_stream_start_connect(s, loop, target, err);
    if (status != LEAT_OK) {
        leat_mem_free(s);
        return status;
    }
    *out = s;
    return LEAT_OK;
}
