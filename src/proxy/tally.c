/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/tally.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "amqp/table.h"
#include "base/mem.h"
#include "base/str.h"
#include "proxy/json_out.h"

struct leat_tally {
    _Atomic unsigned refs;
    pthread_mutex_t lock; /* of what follows */
    struct leat_tally_report report;
};

struct leat_tally *leat_tally_new(void)
{
    struct leat_tally *tally = leat_mem_zalloc(sizeof(*tally));

    if (tally == NULL)
        return NULL;
    tally->refs = 1;
    pthread_mutex_init(&tally->lock, NULL);
    return tally;
}

struct leat_tally *leat_tally_ref(struct leat_tally *tally)
{
    tally->refs++;
    return tally;
}

void leat_tally_unref(struct leat_tally *tally)
{
    if (tally == NULL || --tally->refs > 0)
        return;
    (void)pthread_mutex_destroy(&tally->lock);
    leat_mem_free(tally);
}

void leat_tally_opened(struct leat_tally *tally)
{
    (void)pthread_mutex_lock(&tally->lock);
    tally->report.opened++;
    tally->report.sessions++;
    (void)pthread_mutex_unlock(&tally->lock);
}

void leat_tally_closed(struct leat_tally *tally)
{
    (void)pthread_mutex_lock(&tally->lock);
    tally->report.sessions--;
    (void)pthread_mutex_unlock(&tally->lock);
}

void leat_tally_failed(struct leat_tally *tally, const char *reason)
{
    struct leat_tally_report *report = &tally->report;

    (void)pthread_mutex_lock(&tally->lock);
    report->failures++;
    report->last_failure_at = leat_json_now_ms();
    (void)snprintf(report->last_failure, sizeof(report->last_failure), "%s", reason);
    (void)pthread_mutex_unlock(&tally->lock);
}

/* Copies the property called KEY to BUF; "" if there is none. */
static void copy(struct leat_str properties, const char *key, char buf[LEAT_TALLY_NAME_MAX + 1])
{
    struct leat_amqp_field field;
    struct leat_str value = {"", 0};

    if (leat_amqp_table_find(properties, leat_str_of(key), &field))
        value = leat_amqp_field_contents(&field);
    size_t len = value.len < LEAT_TALLY_NAME_MAX ? value.len : LEAT_TALLY_NAME_MAX;
    memcpy(buf, value.ptr, len);
    buf[len] = '\0';
}

void leat_tally_learn(struct leat_tally *tally, struct leat_str properties)
{
    (void)pthread_mutex_lock(&tally->lock);
    copy(properties, "product", tally->report.product);
    copy(properties, "version", tally->report.version);
    (void)pthread_mutex_unlock(&tally->lock);
}

void leat_tally_read(struct leat_tally *tally, struct leat_tally_report *out)
{
    (void)pthread_mutex_lock(&tally->lock);
    *out = tally->report;
    (void)pthread_mutex_unlock(&tally->lock);
}
