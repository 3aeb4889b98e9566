/* SPDX-License-Identifier: Apache-2.0 */
#include "amqp/login.h"

#include <string.h>

#include "amqp/table.h"
#include "base/mem.h"
#include "base/str.h"
#include "buf/reader.h"

/* RFC 4616: authzid NUL authcid NUL passwd. Brokers split at every NUL, so a third one would
 * let them and us see different users. */
static bool find_plain_user(struct leat_str response, struct leat_str *out)
{
    const char *first = response.len > 0 ? memchr(response.ptr, '\0', response.len) : NULL;

    if (first == NULL)
        return false;
    const char *user = first + 1;
    const char *end = response.ptr + response.len;
    const char *second = memchr(user, '\0', (size_t)(end - user));
    if (second == NULL || second == user)
        return false;
    const char *password = second + 1;
    if (memchr(password, '\0', (size_t)(end - password)) != NULL)
        return false;
    *out = (struct leat_str){user, (size_t)(second - user)};
    return true;
}

static unsigned count_fields(struct leat_str table, const char *key)
{
    struct leat_amqp_field field;
    struct leat_reader reader;
    unsigned count = 0;

    leat_reader_init(&reader, table.ptr, table.len);
    while (leat_amqp_table_next(&reader, &field))
        count += leat_str_equal(field.key, leat_str_of(key));
    return count;
}

/* AMQPLAIN: a table's contents, without the table's length, with LOGIN and PASSWORD. */
static bool find_amqplain_user(struct leat_str response, struct leat_str *out)
{
    struct leat_amqp_field login, password;

    if (!leat_amqp_table_is_valid(response) ||
        !leat_amqp_table_find(response, leat_str_of("LOGIN"), &login) ||
        !leat_amqp_table_find(response, leat_str_of("PASSWORD"), &password) || login.type != 'S' ||
        password.type != 'S')
        return false;
    /* Which of two would count is the broker's choice: leat must not judge by the other. */
    if (count_fields(response, "LOGIN") != 1 || count_fields(response, "PASSWORD") != 1)
        return false;
    *out = leat_amqp_field_contents(&login);
    return out->len > 0;
}

/* Reads ARGUMENTS into LOGIN, borrowing. */
static enum leat_status parse(struct leat_amqp_login *login, struct leat_str arguments)
{
    struct leat_reader reader;
    bool has_user;

    leat_reader_init(&reader, arguments.ptr, arguments.len);
    login->client_properties = leat_reader_str32(&reader);
    login->mechanism = leat_reader_str8(&reader);
    login->response = leat_reader_str32(&reader);
    login->locale = leat_reader_str8(&reader);
    if (reader.failed || leat_reader_left(&reader) > 0 ||
        !leat_amqp_table_is_valid(login->client_properties))
        return LEAT_EPROTOCOL;
    if (leat_str_equal(login->mechanism, leat_str_of("PLAIN")))
        has_user = find_plain_user(login->response, &login->user);
    else if (leat_str_equal(login->mechanism, leat_str_of("AMQPLAIN")))
        has_user = find_amqplain_user(login->response, &login->user);
    else
        return LEAT_EUSAGE;
    return has_user ? LEAT_OK : LEAT_EPROTOCOL;
}

enum leat_status leat_amqp_login_from_start_ok(struct leat_amqp_login *login,
                                               struct leat_str arguments)
{
    struct leat_amqp_login made = {0};

    /* Judged before it is copied: nothing is held for a client that is refused. */
    enum leat_status status = parse(&made, arguments);
    if (status != LEAT_OK)
        return status;
    made.payload_len = arguments.len;
    made.payload = leat_mem_alloc(arguments.len);
    made.user_copy = leat_mem_dup(made.user);
    if (made.payload == NULL || made.user_copy == NULL) {
        leat_mem_free(made.payload);
        leat_mem_free(made.user_copy);
        return LEAT_ENOMEM;
    }
    memcpy(made.payload, arguments.ptr, arguments.len);
    /* The copy is equal, so this succeeds; it makes the strings borrow from the copy. */
    status = parse(&made, (struct leat_str){(const char *)made.payload, made.payload_len});
    made.user.ptr = made.user_copy;
    *login = made;
    return status;
}

enum leat_status leat_amqp_login_set_vhost(struct leat_amqp_login *login, struct leat_str vhost)
{
    char *copy = leat_mem_dup(vhost);

    if (copy == NULL)
        return LEAT_ENOMEM;
    leat_mem_free(login->vhost_copy);
    login->vhost_copy = copy;
    login->vhost = (struct leat_str){copy, vhost.len};
    return LEAT_OK;
}

void leat_amqp_login_forget_secret(struct leat_amqp_login *login)
{
    leat_mem_free_secret(login->payload, login->payload_len);
    login->payload = NULL;
    login->payload_len = 0;
    login->client_properties = (struct leat_str){0};
    login->mechanism = (struct leat_str){0};
    login->response = (struct leat_str){0};
    login->locale = (struct leat_str){0};
}

void leat_amqp_login_fini(struct leat_amqp_login *login)
{
    leat_amqp_login_forget_secret(login);
    leat_mem_free(login->user_copy);
    leat_mem_free(login->vhost_copy);
    *login = (struct leat_amqp_login){0};
}
