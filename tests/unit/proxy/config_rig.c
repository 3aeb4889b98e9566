/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "config_rig.h"
#include "proxy/config_yaml.h"

static char directory[] = "/tmp/leat-config-XXXXXX";

int config_rig_enter(void **state)
{
    (void)state;
    return mkdtemp(directory) == NULL ? -1 : chdir(directory);
}

int config_rig_leave(void **state)
{
    (void)state;
    (void)unlink(NAME);
    return chdir("/") != 0 ? -1 : rmdir(directory);
}

void config_rig_write(const char *name, const char *text, size_t len)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

enum leat_status config_rig_load(const char *name, struct leat_config **out, struct leat_error *err)
{
    enum leat_status status = leat_config_new(out, err);

    if (status == LEAT_OK)
        status = leat_config_read_yaml(*out, name, err);
    if (status == LEAT_OK)
        status = leat_config_finish(*out, err);
    return status;
}

struct leat_config *config_rig_take_bytes(const char *text, size_t len)
{
    struct leat_config *config = NULL;
    struct leat_error err = {.text = ""};

    config_rig_write(NAME, text, len);
    if (config_rig_load(NAME, &config, &err) != LEAT_OK)
        fail_msg("%s", err.text);
    return config;
}

struct leat_config *config_rig_take(const char *text)
{
    return config_rig_take_bytes(text, strlen(text));
}

void config_rig_refuse(const char *text, size_t len, const char *sentence)
{
    struct leat_config *config = NULL;
    struct leat_error err = {.text = ""};

    config_rig_write(NAME, text, len);
    enum leat_status status = config_rig_load(NAME, &config, &err);
    leat_config_free(config);
    if (status != LEAT_EUSAGE || err.status != LEAT_EUSAGE || strcmp(err.text, sentence) != 0)
        fail_msg("\"%.*s\"\n%d: %s\ninstead of: %s", (int)(len < 300 ? len : 300), text, status,
                 err.text, sentence);
}

int config_rig_new(void **state)
{
    struct leat_config *config = NULL;
    struct leat_error err;

    if (leat_config_new(&config, &err) != LEAT_OK)
        return -1;
    *state = config;
    return 0;
}

int config_rig_free(void **state)
{
    leat_config_free(*state);
    return 0;
}

void config_rig_set(struct leat_config *config, const char *name, const char *value)
{
    struct leat_error err = {.text = ""};

    if (leat_config_set_option(config, leat_str_of(name), leat_str_of(value), &err) != LEAT_OK)
        fail_msg("%s", err.text);
}
