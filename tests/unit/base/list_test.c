/*
 * Tests of base/list.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

struct item {
    int id;
    struct leat_list link;
};

/* The ids along LIST as a decimal number, after checking that both directions agree. */
static int ids_of(const struct leat_list *list)
{
    int ids = 0;

    for (struct leat_list *link = list->next; link != list; link = link->next) {
        assert_ptr_equal(link->next->prev, link);
        assert_ptr_equal(link->prev->next, link);
        ids = ids * 10 + LEAT_LIST_OBJECT(link, struct item, link)->id;
    }
    return ids;
}

static void links_keep_their_order(void **state)
{
    struct item items[3] = {{.id = 1}, {.id = 2}, {.id = 3}};
    struct leat_list list;

    (void)state;
    leat_list_init(&list);
    assert_true(leat_list_is_empty(&list));
    for (int i = 0; i < 3; i++) {
        leat_list_init(&items[i].link);
        assert_true(leat_list_is_empty(&items[i].link));
        leat_list_append(&list, &items[i].link);
        assert_false(leat_list_is_empty(&items[i].link));
    }
    assert_false(leat_list_is_empty(&list));
    assert_int_equal(ids_of(&list), 123);
    leat_list_remove(&items[1].link);
    assert_int_equal(ids_of(&list), 13);
    leat_list_append(&list, &items[1].link);
    assert_int_equal(ids_of(&list), 132);
}

static void removing_twice_does_no_harm(void **state)
{
    struct item item = {.id = 1}, other = {.id = 2};
    struct leat_list list;

    (void)state;
    leat_list_init(&list);
    leat_list_append(&list, &item.link);
    leat_list_append(&list, &other.link);
    leat_list_remove(&item.link);
    assert_true(leat_list_is_empty(&item.link));
    leat_list_remove(&item.link);
    assert_int_equal(ids_of(&list), 2);
}

static void all_links_can_move(void **state)
{
    struct item items[2] = {{.id = 1}, {.id = 2}};
    struct leat_list from, to;

    (void)state;
    leat_list_init(&from);
    leat_list_init(&to);
    leat_list_move(&to, &from);
    assert_true(leat_list_is_empty(&to));
    leat_list_append(&from, &items[0].link);
    leat_list_append(&from, &items[1].link);
    leat_list_move(&to, &from);
    assert_true(leat_list_is_empty(&from));
    assert_int_equal(ids_of(&to), 12);
    assert_ptr_equal(to.prev, &items[1].link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_keep_their_order),
        cmocka_unit_test(removing_twice_does_no_harm),
        cmocka_unit_test(all_links_can_move),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
