/*
 * method.h - the methods of AMQP 0-9-1 and of RabbitMQ's extensions to it, by number and name
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_AMQP_METHOD_H
#define LEAT_AMQP_METHOD_H

#include <stdint.h>

/* Class and method as one number: the class in the upper 16 bits. */
#define LEAT_AMQP_METHOD(class_id, method_id) ((uint32_t)(class_id) << 16 | (uint32_t)(method_id))

#define LEAT_AMQP_CONNECTION_START LEAT_AMQP_METHOD(10, 10)
#define LEAT_AMQP_CONNECTION_START_OK LEAT_AMQP_METHOD(10, 11)
#define LEAT_AMQP_CONNECTION_SECURE LEAT_AMQP_METHOD(10, 20)
#define LEAT_AMQP_CONNECTION_TUNE LEAT_AMQP_METHOD(10, 30)
#define LEAT_AMQP_CONNECTION_TUNE_OK LEAT_AMQP_METHOD(10, 31)
#define LEAT_AMQP_CONNECTION_OPEN LEAT_AMQP_METHOD(10, 40)
#define LEAT_AMQP_CONNECTION_OPEN_OK LEAT_AMQP_METHOD(10, 41)
#define LEAT_AMQP_CONNECTION_CLOSE LEAT_AMQP_METHOD(10, 50)
#define LEAT_AMQP_CONNECTION_CLOSE_OK LEAT_AMQP_METHOD(10, 51)

/* Returns "basic.publish" and the like, or NULL if METHOD is none that is known. */
const char *leat_amqp_method_name(uint32_t method);

#endif
