/*
 * Fuzzes tls/reason.h: what the first bytes of a peer that does not speak TLS say it speaks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "fuzz/fuzz.h"
#include "tls/reason.h"

static void say(const uint8_t *data, size_t len, bool is_server, struct leat_error *out)
{
    uint8_t *first = fuzz_copy(data, len);

    LEAT_ASSERT(leat_tls_not_tls(first, len, is_server, out) == LEAT_EPROTOCOL);
    fuzz_check_error(LEAT_EPROTOCOL, out);
    free(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int is_server = 0; is_server <= 1; is_server++) {
        struct leat_error all, first;

        say(data, size, is_server, &all);
        LEAT_ASSERT(strlen(all.text) + 1 < sizeof(all.text)); /* nothing was cut */
        /* The first bytes decide. */
        say(data, size < LEAT_TLS_FIRST ? size : LEAT_TLS_FIRST, is_server, &first);
        LEAT_ASSERT(strcmp(all.text, first.text) == 0);
    }
    if (size > 0)
        LEAT_ASSERT(leat_tls_can_begin(data[0]) == (data[0] == 21 || data[0] == 22));
    return 0;
}
