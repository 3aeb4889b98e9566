/*
 * Tests of tls/ctx.h: what can be wrong with the files, and what the error says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/err.h>

#include "base/mem.h"
#include "support/certs.h"
#include "tls/ctx.h"

static struct test_certs certs;

static int setup(void **state)
{
    (void)state;
    test_certs_init(&certs);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_certs_fini(&certs);
    return 0;
}

static void good_files_make_contexts(void **state)
{
    struct leat_tls_ctx *ctx = NULL;
    (void)state;
    assert_int_equal(leat_tls_ctx_new_server(certs.cert, certs.key, &ctx, NULL), LEAT_OK);
    assert_ptr_equal(leat_tls_ctx_ref(ctx), ctx);
    leat_tls_ctx_unref(ctx);
    leat_tls_ctx_unref(ctx);
    assert_int_equal(leat_tls_ctx_new_client(certs.ca, &ctx, NULL), LEAT_OK);
    leat_tls_ctx_unref(ctx);
    leat_tls_ctx_unref(NULL);
}

/* A context cannot be built of these, and ERR says SAYS about the file NAMED. */
static void assert_bad(const char *cert, const char *key, const char *named, const char *says)
{
    struct leat_tls_ctx *ctx = NULL;
    struct leat_error err;
    enum leat_status status = key != NULL ? leat_tls_ctx_new_server(cert, key, &ctx, &err)
                                          : leat_tls_ctx_new_client(cert, &ctx, &err);
    assert_int_equal(status, LEAT_EUSAGE);
    assert_int_equal(err.status, LEAT_EUSAGE);
    assert_null(ctx);
    if (strstr(err.text, named) == NULL || strstr(err.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\" of %s", err.text, says, named);
    assert_int_equal(ERR_peek_error(), 0);
}

static void errors_name_the_file(void **state)
{
    (void)state;
    assert_bad("/none/cert.pem", certs.key, "/none/cert.pem", "No such file");
    assert_bad(certs.cert, "/none/key.pem", "/none/key.pem", "No such file");
    assert_bad("/none/ca.pem", NULL, "/none/ca.pem", "No such file");
    assert_bad(certs.nonsense, certs.key, certs.nonsense, "PEM");
    assert_bad(certs.cert, certs.nonsense, certs.nonsense, "PEM");
    assert_bad(certs.nonsense, NULL, certs.nonsense, "PEM");
    assert_bad(certs.cert, certs.other_key, certs.other_key, "does not belong to");
    assert_bad(certs.cert, certs.other_key, certs.cert, "does not belong to");
    assert_bad(certs.cert, certs.locked_key, certs.locked_key, "encrypted");
}

static void running_out_of_memory_is_an_error(void **state)
{
    struct leat_tls_ctx *ctx = NULL;
    (void)state;
    leat_mem_fail_after(1);
    assert_int_equal(leat_tls_ctx_new_client(certs.ca, &ctx, NULL), LEAT_ENOMEM);
    leat_mem_fail_after(1);
    assert_int_equal(leat_tls_ctx_new_server(certs.cert, certs.key, &ctx, NULL), LEAT_ENOMEM);
    assert_null(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_make_contexts),
        cmocka_unit_test(errors_name_the_file),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
