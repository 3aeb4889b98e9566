/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/bio.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: */
static struct leat_tls_bio *all;
static BIO_METHOD *method; /* exists while ALL is not empty */
static int method_type;    /* OpenSSL has only some hundred to give, so it is asked for once */

/* Hands out the input. At its end it says "again", never "end": whether the connection has
 * ended is for the stream to judge, since OpenSSL would take an end for an error. */
static int bio_read(BIO *bio, char *buf, size_t cap, size_t *out_len)
{
    struct leat_tls_bio *shared = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (shared->in_len == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t len = cap < shared->in_len ? cap : shared->in_len;
    memcpy(buf, shared->in, len);
    shared->in += len;
    shared->in_len -= len;
    *out_len = len;
    return 1;
}

static void send_out(struct leat_tls_bio *shared)
{
    struct iovec part = {.iov_base = shared->out, .iov_len = shared->out_len};

    shared->out_len = 0;
    if (part.iov_len == 0)
        return;
    enum leat_status status = leat_stream_push(shared->stream, &part, 1);
    if (shared->out_status == LEAT_OK)
        shared->out_status = status;
}

/* Takes everything: what the scratch cannot hold goes to the stream first, and what the kernel
 * cannot hold to the stream's queue. So OpenSSL never has to be called again for writing. */
static int bio_write(BIO *bio, const char *data, size_t len, size_t *out_len)
{
    struct leat_tls_bio *shared = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    *out_len = len;
    while (len > 0) {
        if (shared->out_len == LEAT_SCRATCH_SEND_SIZE)
            send_out(shared);
        size_t room = LEAT_SCRATCH_SEND_SIZE - shared->out_len;
        size_t part = len < room ? len : room;
        memcpy(shared->out + shared->out_len, data, part);
        shared->out_len += part;
        data += part;
        len -= part;
    }
    return 1;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    (void)bio;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH ? 1 : 0;
}

static int bio_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *new_method(void)
{
    if (method_type == 0) {
        int index = BIO_get_new_index();
        if (index < 0)
            return NULL;
        method_type = index | BIO_TYPE_SOURCE_SINK;
    }
    BIO_METHOD *made = BIO_meth_new(method_type, "leat");
    if (made == NULL)
        return NULL;
    if (BIO_meth_set_read_ex(made, bio_read) == 1 && BIO_meth_set_write_ex(made, bio_write) == 1 &&
        BIO_meth_set_ctrl(made, bio_ctrl) == 1 && BIO_meth_set_create(made, bio_create) == 1)
        return made;
    BIO_meth_free(made);
    return NULL;
}

/* Makes one more. The lock is held. */
static struct leat_tls_bio *new_shared(struct leat_loop *loop)
{
    struct leat_tls_bio *shared = leat_mem_zalloc(sizeof(*shared));
    if (shared == NULL)
        return NULL;
    if (method == NULL)
        method = new_method();
    shared->bio = method == NULL ? NULL : BIO_new(method);
    if (shared->bio == NULL) {
        leat_mem_free(shared);
        return NULL;
    }
    BIO_set_data(shared->bio, shared);
    shared->loop = loop;
    shared->out = leat_loop_scratch(loop, LEAT_SCRATCH_SEND);
    shared->next = all;
    all = shared;
    return shared;
}

struct leat_tls_bio *leat_tls_bio_get(struct leat_loop *loop)
{
    (void)pthread_mutex_lock(&lock);
    struct leat_tls_bio *shared = all;
    while (shared != NULL && shared->loop != loop)
        shared = shared->next;
    if (shared == NULL)
        shared = new_shared(loop);
    if (shared != NULL)
        shared->users++;
    (void)pthread_mutex_unlock(&lock);
    return shared;
}

/* Takes SHARED out of the list and frees it. The lock is held. */
static void free_shared(struct leat_tls_bio *shared)
{
    struct leat_tls_bio **link = &all;
    while (*link != shared)
        link = &(*link)->next;
    *link = shared->next;
    (void)BIO_free(shared->bio);
    leat_mem_free(shared);
    if (all == NULL) {
        BIO_meth_free(method);
        method = NULL;
    }
}

void leat_tls_bio_put(struct leat_tls_bio *shared)
{
    if (shared == NULL)
        return;
    (void)pthread_mutex_lock(&lock);
    if (--shared->users == 0)
        free_shared(shared);
    (void)pthread_mutex_unlock(&lock);
}

void leat_tls_bio_bind(struct leat_tls_bio *shared, struct leat_stream *stream, const uint8_t *in,
                       size_t in_len)
{
    shared->stream = stream;
    shared->in = in;
    shared->in_len = in_len;
    shared->out_len = 0;
    shared->out_status = LEAT_OK;
    shared->verdict[0] = '\0';
}

enum leat_status leat_tls_bio_flush(struct leat_tls_bio *shared)
{
    send_out(shared);
    shared->stream = NULL;
    return shared->out_status;
}
