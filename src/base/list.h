/*
 * list.h - intrusive doubly linked list
 *
 * A link lies inside the object it links; a head is a link too. Neither allocates.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BASE_LIST_H
#define LEAT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct leat_list {
    struct leat_list *prev, *next;
};

/* Makes LINK an empty head, or a link that is in no list. */
static inline void leat_list_init(struct leat_list *link)
{
    link->prev = link;
    link->next = link;
}

/* Whether the head LIST has no links; of a link, whether it is in no list. */
static inline bool leat_list_is_empty(const struct leat_list *list)
{
    return list->next == list;
}

/* Adds LINK, which must be in no list, at the end of LIST. */
static inline void leat_list_append(struct leat_list *list, struct leat_list *link)
{
    link->prev = list->prev;
    link->next = list;
    list->prev->next = link;
    list->prev = link;
}

/* Takes LINK out of its list, if it is in one. */
static inline void leat_list_remove(struct leat_list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    leat_list_init(link);
}

/* Moves all links of FROM to the empty head TO, in order. */
static inline void leat_list_move(struct leat_list *to, struct leat_list *from)
{
    if (leat_list_is_empty(from))
        return;
    *to = *from;
    to->next->prev = to;
    to->prev->next = to;
    leat_list_init(from);
}

/* The object of TYPE whose MEMBER is the link at LINK. */
#define LEAT_LIST_OBJECT(link, type, member)                                                       \
    ((type *)(void *)((char *)(link)-offsetof(type, member)))

#endif
