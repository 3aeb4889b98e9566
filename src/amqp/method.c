/* SPDX-License-Identifier: Apache-2.0 */
#include "amqp/method.h"

#include <stddef.h>

/* Sorted by number. The specification's methods, and RabbitMQ's extensions where marked. */
static const struct {
    uint32_t method;
    const char *name;
} methods[] = {
    {LEAT_AMQP_METHOD(10, 10), "connection.start"},
    {LEAT_AMQP_METHOD(10, 11), "connection.start-ok"},
    {LEAT_AMQP_METHOD(10, 20), "connection.secure"},
    {LEAT_AMQP_METHOD(10, 21), "connection.secure-ok"},
    {LEAT_AMQP_METHOD(10, 30), "connection.tune"},
    {LEAT_AMQP_METHOD(10, 31), "connection.tune-ok"},
    {LEAT_AMQP_METHOD(10, 40), "connection.open"},
    {LEAT_AMQP_METHOD(10, 41), "connection.open-ok"},
    {LEAT_AMQP_METHOD(10, 50), "connection.close"},
    {LEAT_AMQP_METHOD(10, 51), "connection.close-ok"},
    {LEAT_AMQP_METHOD(10, 60), "connection.blocked"},          /* RabbitMQ */
    {LEAT_AMQP_METHOD(10, 61), "connection.unblocked"},        /* RabbitMQ */
    {LEAT_AMQP_METHOD(10, 70), "connection.update-secret"},    /* RabbitMQ */
    {LEAT_AMQP_METHOD(10, 71), "connection.update-secret-ok"}, /* RabbitMQ */
    {LEAT_AMQP_METHOD(20, 10), "channel.open"},
    {LEAT_AMQP_METHOD(20, 11), "channel.open-ok"},
    {LEAT_AMQP_METHOD(20, 20), "channel.flow"},
    {LEAT_AMQP_METHOD(20, 21), "channel.flow-ok"},
    {LEAT_AMQP_METHOD(20, 40), "channel.close"},
    {LEAT_AMQP_METHOD(20, 41), "channel.close-ok"},
    {LEAT_AMQP_METHOD(30, 10), "access.request"},    /* of 0-9, still answered by RabbitMQ */
    {LEAT_AMQP_METHOD(30, 11), "access.request-ok"}, /* likewise */
    {LEAT_AMQP_METHOD(40, 10), "exchange.declare"},
    {LEAT_AMQP_METHOD(40, 11), "exchange.declare-ok"},
    {LEAT_AMQP_METHOD(40, 20), "exchange.delete"},
    {LEAT_AMQP_METHOD(40, 21), "exchange.delete-ok"},
    {LEAT_AMQP_METHOD(40, 30), "exchange.bind"},      /* RabbitMQ */
    {LEAT_AMQP_METHOD(40, 31), "exchange.bind-ok"},   /* RabbitMQ */
    {LEAT_AMQP_METHOD(40, 40), "exchange.unbind"},    /* RabbitMQ */
    {LEAT_AMQP_METHOD(40, 51), "exchange.unbind-ok"}, /* RabbitMQ; 51, not 41 */
    {LEAT_AMQP_METHOD(50, 10), "queue.declare"},
    {LEAT_AMQP_METHOD(50, 11), "queue.declare-ok"},
    {LEAT_AMQP_METHOD(50, 20), "queue.bind"},
    {LEAT_AMQP_METHOD(50, 21), "queue.bind-ok"},
    {LEAT_AMQP_METHOD(50, 30), "queue.purge"},
    {LEAT_AMQP_METHOD(50, 31), "queue.purge-ok"},
    {LEAT_AMQP_METHOD(50, 40), "queue.delete"},
    {LEAT_AMQP_METHOD(50, 41), "queue.delete-ok"},
    {LEAT_AMQP_METHOD(50, 50), "queue.unbind"},
    {LEAT_AMQP_METHOD(50, 51), "queue.unbind-ok"},
    {LEAT_AMQP_METHOD(60, 10), "basic.qos"},
    {LEAT_AMQP_METHOD(60, 11), "basic.qos-ok"},
    {LEAT_AMQP_METHOD(60, 20), "basic.consume"},
    {LEAT_AMQP_METHOD(60, 21), "basic.consume-ok"},
    {LEAT_AMQP_METHOD(60, 30), "basic.cancel"},
    {LEAT_AMQP_METHOD(60, 31), "basic.cancel-ok"},
    {LEAT_AMQP_METHOD(60, 40), "basic.publish"},
    {LEAT_AMQP_METHOD(60, 50), "basic.return"},
    {LEAT_AMQP_METHOD(60, 60), "basic.deliver"},
    {LEAT_AMQP_METHOD(60, 70), "basic.get"},
    {LEAT_AMQP_METHOD(60, 71), "basic.get-ok"},
    {LEAT_AMQP_METHOD(60, 72), "basic.get-empty"},
    {LEAT_AMQP_METHOD(60, 80), "basic.ack"},
    {LEAT_AMQP_METHOD(60, 90), "basic.reject"},
    {LEAT_AMQP_METHOD(60, 100), "basic.recover-async"},
    {LEAT_AMQP_METHOD(60, 110), "basic.recover"},
    {LEAT_AMQP_METHOD(60, 111), "basic.recover-ok"},
    {LEAT_AMQP_METHOD(60, 120), "basic.nack"},       /* RabbitMQ */
    {LEAT_AMQP_METHOD(85, 10), "confirm.select"},    /* RabbitMQ */
    {LEAT_AMQP_METHOD(85, 11), "confirm.select-ok"}, /* RabbitMQ */
    {LEAT_AMQP_METHOD(90, 10), "tx.select"},
    {LEAT_AMQP_METHOD(90, 11), "tx.select-ok"},
    {LEAT_AMQP_METHOD(90, 20), "tx.commit"},
    {LEAT_AMQP_METHOD(90, 21), "tx.commit-ok"},
    {LEAT_AMQP_METHOD(90, 30), "tx.rollback"},
    {LEAT_AMQP_METHOD(90, 31), "tx.rollback-ok"},
};

const char *leat_amqp_method_name(uint32_t method)
{
    size_t low = 0, high = sizeof(methods) / sizeof(methods[0]);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (methods[middle].method == method)
            return methods[middle].name;
        if (methods[middle].method < method)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
