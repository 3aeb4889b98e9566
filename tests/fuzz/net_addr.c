/*
 * Fuzzes net/addr.h: addresses as people write them. Input: the default port, the text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "net/addr.h"

/* What is written for ADDR is read as ADDR again, and each text says the same. */
static void check(const struct leat_addr *addr)
{
    char text[LEAT_ADDR_TEXT_MAX], again_text[LEAT_ADDR_TEXT_MAX], host[LEAT_ADDR_TEXT_MAX];
    struct leat_error err;
    struct leat_addr again;

    LEAT_ASSERT(addr->ss.ss_family == AF_INET || addr->ss.ss_family == AF_INET6);
    LEAT_ASSERT(fuzz_is_line(leat_addr_text(addr, text)));
    LEAT_ASSERT(leat_addr_parse(leat_str_of(text), 0, &again, &err) == LEAT_OK);
    LEAT_ASSERT(leat_addr_is_equal(addr, &again));
    LEAT_ASSERT(addr->len == again.len && memcmp(&addr->ss, &again.ss, addr->len) == 0);
    LEAT_ASSERT(leat_addr_port(addr) == leat_addr_port(&again));
    LEAT_ASSERT(leat_addr_is_loopback(addr) == leat_addr_is_loopback(&again));
    LEAT_ASSERT(leat_addr_is_served_by(addr, &again));
    LEAT_ASSERT(strcmp(leat_addr_text(&again, again_text), text) == 0);
    LEAT_ASSERT(strstr(text, leat_addr_host_text(addr, host)) != NULL);
    LEAT_ASSERT(strpbrk(host, "[]%") == NULL && strlen(host) > 0);
    leat_addr_from_sockaddr(&addr->ss, &again);
    LEAT_ASSERT(leat_addr_is_equal(addr, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_error err = {.text = ""};
    struct leat_addr addr, other;

    if (size < 2)
        return 0;
    uint16_t default_port = (uint16_t)(data[0] << 8 | data[1]);
    uint8_t *copy = fuzz_copy(data + 2, size - 2);
    struct leat_str text = {(const char *)copy, size - 2};
    enum leat_status status = leat_addr_parse(text, default_port, &addr, &err);
    if (status == LEAT_OK) {
        check(&addr);
        /* A port that stands there is taken whatever the default; else it is the default. */
        if (leat_addr_parse(text, 0, &other, &err) == LEAT_OK)
            LEAT_ASSERT(leat_addr_is_equal(&addr, &other));
        else
            LEAT_ASSERT(default_port != 0 && leat_addr_port(&addr) == default_port);
    } else {
        LEAT_ASSERT(status == LEAT_EUSAGE);
        fuzz_check_error(status, &err);
    }
    free(copy);
    return 0;
}
