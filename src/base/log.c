/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/str.h"
#include "base/text.h"

#define LINE_MAX_BYTES 1000
#define RATE_WINDOW_MS 10000

const char *const leat_log_levels[] = {"error", "warn", "info", "debug", "trace", NULL};

const char *leat_log_level_name(enum leat_log_level level)
{
    return leat_log_levels[level];
}

bool leat_log_level_find(struct leat_str name, enum leat_log_level *out)
{
    for (unsigned i = 0; leat_log_levels[i] != NULL; i++) {
        if (leat_str_equal(name, leat_str_of(leat_log_levels[i]))) {
            *out = (enum leat_log_level)i;
            return true;
        }
    }
    return false;
}

bool leat_log_is_on(const struct leat_log *log, enum leat_log_level level)
{
    return (int)level <= atomic_load_explicit(&log->level, memory_order_relaxed);
}

void leat_log_line(const struct leat_log *log, enum leat_log_level level, const char *format, ...)
{
    int saved_errno = errno;
    char line[LINE_MAX_BYTES + 1];
    struct leat_text text;
    va_list args;

    if (!leat_log_is_on(log, level))
        return;
    leat_text_init(&text, line, sizeof(line));
    va_start(args, format);
    leat_text_vadd(&text, format, args);
    va_end(args);
    log->write(log->arg, level, (struct leat_str){line, text.len});
    errno = saved_errno;
}

bool leat_log_rate_allows(struct leat_log_rate *rate, uint32_t burst, uint64_t now_ms,
                          uint32_t *out_held_back)
{
    uint32_t window = (uint32_t)(now_ms / RATE_WINDOW_MS);
    uint64_t seen = atomic_load(&rate->window_and_lines);
    uint64_t next;
    bool is_new;

    *out_held_back = 0;
    do {
        /* Later than the one seen: a thread whose clock lags does not go back. */
        is_new = (int32_t)(window - (uint32_t)(seen >> 32)) > 0;
        if (burst == 0 || (!is_new && (uint32_t)seen >= burst)) {
            atomic_fetch_add(&rate->held_back, 1);
            return false;
        }
        next = is_new ? ((uint64_t)window << 32) + 1 : seen + 1;
    } while (!atomic_compare_exchange_weak(&rate->window_and_lines, &seen, next));
    if (is_new)
        *out_held_back = atomic_exchange(&rate->held_back, 0);
    return true;
}
