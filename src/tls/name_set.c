/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/name_set.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

struct leat_tls_name {
    char *text; /* in lower case, without a dot at the end */
    size_t index;
};

static bool may_stand_in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* Writes NAME in lower case, without a dot at its end, to BUF. False if it can't be a host name. */
static bool normalize(struct leat_str name, char buf[LEAT_TLS_NAME_MAX + 1])
{
    if (name.len > 0 && name.ptr[name.len - 1] == '.')
        name.len--;
    if (name.len == 0 || name.len > LEAT_TLS_NAME_MAX || name.ptr[0] == '.')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        buf[i] = name.ptr[i];
        if (buf[i] >= 'A' && buf[i] <= 'Z')
            buf[i] |= 'a' ^ 'A';
        if (!may_stand_in_name(buf[i]))
            return false;
    }
    buf[name.len] = '\0';
    return true;
}

/* Returns the place of TEXT: where it is, or where it would have to be. */
static size_t place_of(const struct leat_tls_name_set *set, const char *text, bool *out_is_there)
{
    size_t low = 0, high = set->count;

    *out_is_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(set->at[middle].text, text);
        if (order == 0) {
            *out_is_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow(struct leat_tls_name_set *set)
{
    size_t cap = set->cap > 0 ? 2 * set->cap : 8;
    struct leat_tls_name *grown = leat_mem_zalloc_flex(0, cap, sizeof(*grown));

    if (grown == NULL)
        return false;
    if (set->count > 0)
        memcpy(grown, set->at, set->count * sizeof(*grown));
    leat_mem_free(set->at);
    set->at = grown;
    set->cap = cap;
    return true;
}

static enum leat_status insert(struct leat_tls_name_set *set, size_t place, const char *text,
                               size_t index)
{
    char *copy = leat_mem_dup((struct leat_str){text, strlen(text)});
    if (copy == NULL || (set->count == set->cap && !grow(set))) {
        leat_mem_free(copy);
        return LEAT_ENOMEM;
    }
    memmove(&set->at[place + 1], &set->at[place], (set->count - place) * sizeof(set->at[0]));
    set->at[place] = (struct leat_tls_name){.text = copy, .index = index};
    set->count++;
    return LEAT_OK;
}

enum leat_status leat_tls_name_set_add(struct leat_tls_name_set *set, const char *name,
                                       size_t index, struct leat_error *err)
{
    /* A wildcard is kept with its "*", which stands in no host name. */
    char text[2 + LEAT_TLS_NAME_MAX + 1] = "*.";
    bool is_wildcard = strncmp(name, "*.", 2) == 0;
    const char *rest = is_wildcard ? name + 2 : name;
    char *normal = is_wildcard ? text + 2 : text;
    bool is_there;

    if (!normalize((struct leat_str){rest, strlen(rest)}, normal))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "\"%.80s\" is no host name, nor \"*.\" and a host name", name);
    size_t place = place_of(set, text, &is_there);
    if (is_there && set->at[place].index == index)
        return LEAT_OK;
    if (is_there)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "\"%.80s\" is the name of two certificates of one listener", name);
    if (insert(set, place, text, index) != LEAT_OK)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for the names of a listener");
    return LEAT_OK;
}

bool leat_tls_name_set_find(const struct leat_tls_name_set *set, struct leat_str name, size_t *out)
{
    char normal[LEAT_TLS_NAME_MAX + 1];
    bool is_there;

    if (!normalize(name, normal))
        return false;
    size_t place = place_of(set, normal, &is_there);
    char *dot = strchr(normal, '.');
    if (!is_there && dot != NULL) {
        dot[-1] = '*';
        place = place_of(set, dot - 1, &is_there);
    }
    if (is_there)
        *out = set->at[place].index;
    return is_there;
}

void leat_tls_name_set_fini(struct leat_tls_name_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        leat_mem_free(set->at[i].text);
    leat_mem_free(set->at);
    *set = (struct leat_tls_name_set){0};
}
