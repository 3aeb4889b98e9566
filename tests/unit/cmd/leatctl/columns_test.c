/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "columns.h"

/* Prints a table of the COUNT cells; the caller frees *OUT. */
static enum leat_status print(const char *const cells[], size_t count, char **out)
{
    struct leat_columns columns;
    size_t len;
    FILE *file = open_memstream(out, &len);
    enum leat_status status;

    leat_columns_init(&columns);
    leat_columns_add_head(&columns, "NAME", false);
    leat_columns_add_head(&columns, "N", true);
    leat_columns_add_head(&columns, "LAST", false);
    for (size_t i = 0; i < count; i++)
        leat_columns_add(&columns, leat_str_of(cells[i]));
    status = leat_columns_print(&columns, file);
    leat_columns_fini(&columns);
    (void)fclose(file);
    return status;
}

static void expect(const char *const cells[], size_t count, const char *expected)
{
    char *text;

    assert_int_equal(print(cells, count, &text), LEAT_OK);
    assert_string_equal(text, expected);
    free(text);
}

static void columns_are_aligned(void **state)
{
    static const char *const cells[] = {"a", "1", "x", "\xc3\xbc\xc3\xbcnf?", "1000", ""};

    (void)state;
    expect(NULL, 0, "NAME  N  LAST\n");
    expect(cells, 6,
           "NAME      N  LAST\n"
           "a         1  x\n"
           "\xc3\xbc\xc3\xbcnf?  1000  \n");
}

static void long_cells_are_cut(void **state)
{
    static const char *const fits[] = {"0123456789012345678901234567890123456789", "1", "x"};
    static const char long_cell[] = "\xc3\xbc"
                                    "12345678901234567890123456789012345678901234567890";
    static const char *const cut[] = {"x", "1", long_cell};

    (void)state;
    expect(fits, 3,
           "NAME                                      N  LAST\n"
           "0123456789012345678901234567890123456789  1  x\n");
    expect(cut, 3,
           "NAME  N  LAST\n"
           "x     1  \xc3\xbc"
           "123456789012345678901234567890123456...\n");
}

static void short_of_memory(void **state)
{
    static const char *cells[600];
    char *text;
    unsigned n = 0;
    enum leat_status status;

    (void)state;
    for (size_t i = 0; i < 600; i++)
        cells[i] = "cell";
    do {
        leat_mem_fail_after(++n);
        status = print(cells, 600, &text);
        if (status != LEAT_OK) {
            assert_int_equal(status, LEAT_ENOMEM);
            assert_string_equal(text, "");
        }
        free(text);
    } while (status != LEAT_OK);
    leat_mem_fail_after(0);
    assert_true(n > 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_aligned),
        cmocka_unit_test(long_cells_are_cut),
        cmocka_unit_test(short_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
