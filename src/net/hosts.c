/* SPDX-License-Identifier: Apache-2.0 */
#include "net/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/conf_words.h"

/* One name of one line. Files that block advertisements have a hundred thousand, so no more is kept
 * than where in the text it stands. */
struct host {
    struct leat_str name;
    struct leat_str addr;
};

struct leat_hosts {
    size_t count;
    struct host *hosts; /* sorted by name, then as in the file */
    char text[];
};

static int compare(struct leat_str a, struct leat_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = strncasecmp(a.ptr, b.ptr, len);

    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

static int compare_hosts(const void *left, const void *right)
{
    const struct host *a = left, *b = right;
    int order = compare(a->name, b->name);

    /* The names lie in one text, in the order of the file. */
    return order != 0 ? order : (a->name.ptr > b->name.ptr) - (a->name.ptr < b->name.ptr);
}

static struct leat_str without_dot(struct leat_str name)
{
    if (name.len > 1 && name.ptr[name.len - 1] == '.')
        name.len--;
    return name;
}

/* Puts the names of TEXT in OUT, unless that is NULL; returns how many there are. */
static size_t collect(struct leat_str text, struct host *out)
{
    struct leat_str line, addr, name;
    struct leat_addr parsed;
    size_t count = 0;

    while (leat_conf_words_line(&text, "#", &line)) {
        if (!leat_conf_words_next(&line, &addr) || !leat_addr_parse_host(addr, &parsed))
            continue;
        while (leat_conf_words_next(&line, &name)) {
            if (out != NULL)
                out[count] = (struct host){.name = without_dot(name), .addr = addr};
            count++;
        }
    }
    return count;
}

struct leat_hosts *leat_hosts_new(struct leat_str text)
{
    struct leat_hosts *hosts = leat_mem_zalloc_flex(sizeof(*hosts), text.len, 1);

    if (hosts == NULL)
        return NULL;
    if (text.len > 0)
        memcpy(hosts->text, text.ptr, text.len);
    text.ptr = hosts->text;
    hosts->count = collect(text, NULL);
    hosts->hosts = leat_mem_zalloc_flex(0, hosts->count, sizeof(*hosts->hosts));
    if (hosts->hosts == NULL) {
        leat_mem_free(hosts);
        return NULL;
    }
    (void)collect(text, hosts->hosts);
    qsort(hosts->hosts, hosts->count, sizeof(*hosts->hosts), compare_hosts);
    return hosts;
}

void leat_hosts_free(struct leat_hosts *hosts)
{
    if (hosts == NULL)
        return;
    leat_mem_free(hosts->hosts);
    leat_mem_free(hosts);
}

/* The index of the first that is not before NAME. */
static size_t find_first(const struct leat_hosts *hosts, struct leat_str name)
{
    size_t low = 0, high = hosts->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(hosts->hosts[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t leat_hosts_find(const struct leat_hosts *hosts, struct leat_str name, struct leat_addr *out,
                       size_t cap)
{
    size_t count = 0;

    name = without_dot(name);
    for (size_t i = find_first(hosts, name);
         i < hosts->count && compare(hosts->hosts[i].name, name) == 0; i++) {
        struct leat_addr addr;
        /* A zone may be gone since it was counted. */
        if (!leat_addr_parse_host(hosts->hosts[i].addr, &addr))
            continue;
        if (count < cap)
            out[count] = addr;
        count++;
    }
    return count;
}
