/*
 * Fuzzes amqp/login.h. Input: the arguments of a Start-Ok.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "amqp/login.h"
#include "amqp/table.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/str.h"
#include "buf/writer.h"
#include "fuzz/fuzz.h"

/* Written again, LOGIN is ARGUMENTS byte for byte. */
static void check_again(const struct leat_amqp_login *login, struct leat_str arguments)
{
    uint8_t *buf = malloc(arguments.len);
    struct leat_writer writer;

    LEAT_ASSERT(buf != NULL);
    leat_writer_init(&writer, buf, arguments.len);
    leat_writer_str32(&writer, login->client_properties);
    leat_writer_str8(&writer, login->mechanism);
    leat_writer_str32(&writer, login->response);
    leat_writer_str8(&writer, login->locale);
    LEAT_ASSERT(!writer.failed);
    LEAT_ASSERT(leat_str_equal((struct leat_str){(const char *)buf, writer.len}, arguments));
    free(buf);
}

/* The user is the one that a broker finds in the response. */
static void check_user(const struct leat_amqp_login *login)
{
    struct leat_amqp_field field;
    const char *nul;

    LEAT_ASSERT(login->user.len > 0 && login->user.len < login->response.len);
    if (leat_str_equal(login->mechanism, leat_str_of("AMQPLAIN"))) {
        LEAT_ASSERT(leat_amqp_table_find(login->response, leat_str_of("LOGIN"), &field));
        LEAT_ASSERT(leat_str_equal(leat_amqp_field_contents(&field), login->user));
        return;
    }
    LEAT_ASSERT(leat_str_equal(login->mechanism, leat_str_of("PLAIN")));
    nul = memchr(login->response.ptr, '\0', login->response.len);
    LEAT_ASSERT(nul != NULL);
    if (nul == NULL) /* for cppcheck, which takes an assertion for a remark */
        return;
    LEAT_ASSERT(memchr(login->user.ptr, '\0', login->user.len) == NULL);
    LEAT_ASSERT(memcmp(nul + 1, login->user.ptr, login->user.len) == 0);
    LEAT_ASSERT(nul[1 + login->user.len] == '\0');
    const char *password = nul + 1 + login->user.len + 1;
    const char *end = login->response.ptr + login->response.len;
    LEAT_ASSERT(memchr(password, '\0', (size_t)(end - password)) == NULL);
}

static void check(struct leat_amqp_login *login, struct leat_str arguments)
{
    struct leat_str vhost = {arguments.ptr, arguments.len < 255 ? arguments.len : 255};
    char user[256];
    size_t len = login->user.len < sizeof(user) ? login->user.len : sizeof(user);

    LEAT_ASSERT(leat_amqp_table_is_valid(login->client_properties));
    check_again(login, arguments);
    check_user(login);
    memcpy(user, login->user.ptr, len);
    LEAT_ASSERT(leat_amqp_login_set_vhost(login, vhost) == LEAT_OK);
    leat_amqp_login_forget_secret(login);
    LEAT_ASSERT(login->response.len == 0 && login->payload == NULL);
    LEAT_ASSERT(memcmp(user, login->user.ptr, len) == 0);
    LEAT_ASSERT(leat_str_equal(login->vhost, vhost));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy(data, size);
    struct leat_str arguments = {(const char *)copy, size};
    struct leat_amqp_login login = {0};
    enum leat_status status = leat_amqp_login_from_start_ok(&login, arguments);

    LEAT_ASSERT(status == LEAT_OK || status == LEAT_EPROTOCOL || status == LEAT_EUSAGE);
    LEAT_ASSERT(status == LEAT_OK || login.payload == NULL);
    if (status == LEAT_OK)
        check(&login, arguments);
    leat_amqp_login_fini(&login);
    for (unsigned n = 1; n <= 2; n++) {
        leat_mem_fail_after(n);
        enum leat_status short_of_memory = leat_amqp_login_from_start_ok(&login, arguments);
        leat_mem_fail_after(0);
        LEAT_ASSERT(short_of_memory == (status == LEAT_OK ? LEAT_ENOMEM : status));
        LEAT_ASSERT(login.payload == NULL && login.user_copy == NULL);
    }
    free(copy);
    return 0;
}
