/*
 * Fuzzes the options of the command line, proxy/config.h. Input: lines, NAME=VALUE each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "fuzz/config_judge.h"
#include "fuzz/fuzz.h"

/* Cuts the next part, up to END, off *REST. */
static struct leat_str cut(struct leat_str *rest, char end)
{
    const char *found = rest->len > 0 ? memchr(rest->ptr, end, rest->len) : NULL;
    struct leat_str part = *rest;

    if (found != NULL)
        part.len = (size_t)(found - rest->ptr);
    size_t used = part.len + (found != NULL);
    *rest = (struct leat_str){rest->ptr + used, rest->len - used};
    return part;
}

/* Sets one option, from memory that ends where the texts do. */
static enum leat_status set(struct leat_config *config, struct leat_str line)
{
    struct leat_error err = {.text = ""};
    struct leat_str value = line, name = cut(&value, '=');
    uint8_t *name_copy = fuzz_copy(name.ptr, name.len);
    uint8_t *value_copy = fuzz_copy(value.ptr, value.len);
    enum leat_status status =
        leat_config_set_option(config, (struct leat_str){(char *)name_copy, name.len},
                               (struct leat_str){(char *)value_copy, value.len}, &err);

    if (status != LEAT_OK) {
        LEAT_ASSERT(status == LEAT_EUSAGE || status == LEAT_ENOMEM);
        fuzz_check_error(status, &err);
    }
    LEAT_ASSERT(status != LEAT_OK || leat_config_has_option(name));
    free(name_copy);
    free(value_copy);
    return status;
}

/* FAILS is the number of the allocation that fails, or 0. */
static void run(struct leat_str lines, unsigned fails)
{
    struct leat_config *config = NULL;
    struct leat_error err;

    LEAT_ASSERT(leat_config_new(&config, &err) == LEAT_OK);
    leat_mem_fail_after(fails);
    /* A program ends at the first option that is refused; this one goes on. */
    while (lines.len > 0)
        (void)set(config, cut(&lines, '\n'));
    config_judge_finish(config);
    leat_mem_fail_after(0);
    leat_config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_str lines = {(const char *)data, size};

    run(lines, 0);
    run(lines, 1 + (unsigned)size % 32u);
    return 0;
}
