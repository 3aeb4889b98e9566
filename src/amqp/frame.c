/* SPDX-License-Identifier: Apache-2.0 */
#include "amqp/frame.h"

#include <stdarg.h>
#include <stdio.h>

#include "amqp/method.h"
#include "base/str.h"
#include "buf/reader.h"
#include "buf/writer.h"

const uint8_t leat_amqp_protocol[LEAT_AMQP_PROTOCOL_SIZE] = {'A', 'M', 'Q', 'P', 0, 0, 9, 1};

const char *leat_amqp_reply_name(uint16_t code)
{
    switch (code) {
    case LEAT_AMQP_REPLY_SUCCESS:
        return "REPLY_SUCCESS";
    case LEAT_AMQP_CONNECTION_FORCED:
        return "CONNECTION_FORCED";
    case LEAT_AMQP_ACCESS_REFUSED:
        return "ACCESS_REFUSED";
    case LEAT_AMQP_FRAME_ERROR:
        return "FRAME_ERROR";
    case LEAT_AMQP_SYNTAX_ERROR:
        return "SYNTAX_ERROR";
    case LEAT_AMQP_COMMAND_INVALID:
        return "COMMAND_INVALID";
    case LEAT_AMQP_UNEXPECTED_FRAME:
        return "UNEXPECTED_FRAME";
    case LEAT_AMQP_NOT_ALLOWED:
        return "NOT_ALLOWED";
    case LEAT_AMQP_NOT_IMPLEMENTED:
        return "NOT_IMPLEMENTED";
    case LEAT_AMQP_INTERNAL_ERROR:
        return "INTERNAL_ERROR";
    }
    return "ERROR";
}

void leat_amqp_reply_error(struct leat_error *err, uint16_t code, const char *format, ...)
{
    char sentence[sizeof(err->text)];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    err->status = LEAT_EPROTOCOL;
    err->sys = 0;
    (void)snprintf(err->text, sizeof(err->text), "%s - %.200s", leat_amqp_reply_name(code),
                   sentence);
}

void leat_amqp_frame_head_write(struct leat_writer *writer, const struct leat_amqp_frame_head *head)
{
    leat_writer_u8(writer, head->type);
    leat_writer_u16(writer, head->channel);
    leat_writer_u32(writer, head->size);
}

size_t leat_amqp_begin_method(struct leat_writer *writer, uint32_t method)
{
    leat_writer_u8(writer, LEAT_AMQP_FRAME_METHOD);
    leat_writer_u16(writer, 0);
    size_t place = leat_writer_begin32(writer);
    leat_writer_u32(writer, method);
    return place;
}

void leat_amqp_end_method(struct leat_writer *writer, size_t place)
{
    leat_writer_end32(writer, place);
    leat_writer_u8(writer, LEAT_AMQP_FRAME_END);
}

void leat_amqp_write_close(struct leat_writer *writer, uint16_t code, struct leat_str text)
{
    if (text.len > UINT8_MAX)
        text.len = UINT8_MAX;
    size_t place = leat_amqp_begin_method(writer, LEAT_AMQP_CONNECTION_CLOSE);
    leat_writer_u16(writer, code);
    leat_writer_str8(writer, text);
    leat_writer_u32(writer, 0); /* the class and method that caused it: none */
    leat_amqp_end_method(writer, place);
}

void leat_amqp_write_close_ok(struct leat_writer *writer)
{
    leat_amqp_end_method(writer, leat_amqp_begin_method(writer, LEAT_AMQP_CONNECTION_CLOSE_OK));
}

void leat_amqp_write_heartbeat(struct leat_writer *writer)
{
    const struct leat_amqp_frame_head head = {.type = LEAT_AMQP_FRAME_HEARTBEAT};

    leat_amqp_frame_head_write(writer, &head);
    leat_writer_u8(writer, LEAT_AMQP_FRAME_END);
}

void leat_amqp_write_open_ok(struct leat_writer *writer)
{
    size_t place = leat_amqp_begin_method(writer, LEAT_AMQP_CONNECTION_OPEN_OK);

    leat_writer_u8(writer, 0); /* reserved, once known-hosts: an empty short string */
    leat_amqp_end_method(writer, place);
}

bool leat_amqp_close_parse(struct leat_str arguments, struct leat_amqp_close *out)
{
    struct leat_reader reader;
    struct leat_amqp_close close;

    leat_reader_init(&reader, arguments.ptr, arguments.len);
    close.code = leat_reader_u16(&reader);
    close.text = leat_reader_str8(&reader);
    (void)leat_reader_u32(&reader); /* class and method */
    if (reader.failed || leat_reader_left(&reader) > 0)
        return false;
    *out = close;
    return true;
}
