/*
 * Fuzzes proxy/config_yaml.h. Input: a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "fuzz/config_judge.h"
#include "fuzz/fuzz.h"
#include "proxy/config_yaml.h"

static const struct leat_str mark = LEAT_STR_INIT("\xef\xbb\xbf"); /* the byte order mark */

/* Puts TEXT behind BEFORE into the one file, in memory, and names it. */
static const char *put(struct leat_str before, struct leat_str text)
{
    static char name[40];
    static int fd = -1;
    off_t len = (off_t)(before.len + text.len);

    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    LEAT_ASSERT(fd >= 0 && ftruncate(fd, len) == 0);
    LEAT_ASSERT(pwrite(fd, before.ptr, before.len, 0) == (ssize_t)before.len);
    LEAT_ASSERT(pwrite(fd, text.ptr, text.len, (off_t)before.len) == (ssize_t)text.len);
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    return name;
}

/* FAILS is the number of the allocation that fails, or 0. */
static enum leat_status run(const char *name, unsigned fails, struct leat_error *err)
{
    struct leat_config *config = NULL;

    LEAT_ASSERT(leat_config_new(&config, err) == LEAT_OK);
    leat_mem_fail_after(fails);
    enum leat_status status = leat_config_read_yaml(config, name, err);
    if (status == LEAT_OK) {
        config_judge_finish(config);
    } else {
        fuzz_check_error(status, err);
        LEAT_ASSERT(status == LEAT_EUSAGE || (status == LEAT_ENOMEM && fails > 0));
        LEAT_ASSERT(status != LEAT_EUSAGE || strncmp(err->text, name, strlen(name)) == 0);
    }
    leat_mem_fail_after(0);
    leat_config_free(config);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_error err = {.text = ""}, marked = {.text = ""}, failed = {.text = ""};
    struct leat_str text = {(const char *)data, size}, nothing = LEAT_STR_INIT("");
    enum leat_status status = run(put(nothing, text), 0, &err);

    (void)run(put(nothing, text), 1 + (unsigned)size % 64u, &failed);
    /* With the mark before it, it is the same file. */
    if (size < mark.len || memcmp(data, mark.ptr, mark.len) != 0) {
        LEAT_ASSERT(run(put(mark, text), 0, &marked) == status);
        LEAT_ASSERT(strcmp(err.text, marked.text) == 0);
    }
    return 0;
}
