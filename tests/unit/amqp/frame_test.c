/*
 * Tests of amqp/frame.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "amqp/frame.h"
#include "amqp/method.h"
#include "base/str.h"
#include "buf/writer.h"
#include "wire.h"

static void check_written(const struct leat_writer *writer, const struct wire *expected)
{
    assert_false(writer->failed);
    assert_int_equal(writer->len, expected->len);
    assert_memory_equal(writer->buf, expected->buf, expected->len);
}

static void a_head_is_read_as_it_is_written(void **state)
{
    static const uint8_t bytes[] = {3, 0x01, 0x02, 0xFE, 0xDC, 0xBA, 0x98};
    uint8_t buf[LEAT_AMQP_FRAME_HEAD_SIZE];
    struct leat_writer writer;

    (void)state;
    struct leat_amqp_frame_head head = leat_amqp_frame_head_parse(bytes);
    assert_int_equal(head.type, 3);
    assert_int_equal(head.channel, 0x0102);
    assert_int_equal(head.size, 0xFEDCBA98u);
    leat_writer_init(&writer, buf, sizeof(buf));
    leat_amqp_frame_head_write(&writer, &head);
    assert_int_equal(writer.len, sizeof(bytes));
    assert_memory_equal(buf, bytes, sizeof(bytes));
}

static void own_frames_are_as_specified(void **state)
{
    uint8_t buf[LEAT_AMQP_CLOSE_MAX];
    struct leat_writer writer;
    struct wire expected = {0}, arguments = {0};

    (void)state;
    leat_writer_init(&writer, buf, sizeof(buf));
    leat_amqp_write_heartbeat(&writer);
    wire_frame(&expected, 8, 0, NULL, 0);
    check_written(&writer, &expected);
    leat_amqp_write_close_ok(&writer);
    wire_method(&expected, 0, LEAT_AMQP_CONNECTION_CLOSE_OK, NULL);
    check_written(&writer, &expected);

    leat_writer_init(&writer, buf, LEAT_AMQP_OPEN_OK_SIZE);
    leat_amqp_write_open_ok(&writer);
    expected.len = 0;
    wire_str8(&arguments, "");
    wire_method(&expected, 0, LEAT_AMQP_CONNECTION_OPEN_OK, &arguments);
    check_written(&writer, &expected);
    wire_free(&expected);
    wire_free(&arguments);
}

static void a_close_is_cut_to_255_bytes(void **state)
{
    uint8_t buf[LEAT_AMQP_CLOSE_MAX];
    char text[300];
    struct leat_writer writer;
    struct leat_amqp_close close;

    (void)state;
    memset(text, 'x', sizeof(text));
    leat_writer_init(&writer, buf, sizeof(buf));
    leat_amqp_write_close(&writer, 530, (struct leat_str){text, sizeof(text)});
    assert_false(writer.failed);
    assert_int_equal(writer.len, sizeof(buf));
    struct leat_str arguments = {(const char *)buf + 11, writer.len - 12};
    assert_true(leat_amqp_close_parse(arguments, &close));
    assert_int_equal(close.code, 530);
    assert_int_equal(close.text.len, 255);
    for (size_t len = 0; len < arguments.len; len++)
        assert_false(leat_amqp_close_parse((struct leat_str){arguments.ptr, len}, &close));
    arguments.len++;
    assert_false(leat_amqp_close_parse(arguments, &close));
}

static void an_error_begins_with_the_name_of_its_code(void **state)
{
    static const uint16_t codes[] = {200, 320, 403, 501, 502, 503, 505, 530, 540, 541};
    static const char *const names[] = {"REPLY_SUCCESS",    "CONNECTION_FORCED", "ACCESS_REFUSED",
                                        "FRAME_ERROR",      "SYNTAX_ERROR",      "COMMAND_INVALID",
                                        "UNEXPECTED_FRAME", "NOT_ALLOWED",       "NOT_IMPLEMENTED",
                                        "INTERNAL_ERROR"};
    struct leat_error err;
    char text[500];

    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        assert_string_equal(leat_amqp_reply_name(codes[i]), names[i]);
    assert_string_equal(leat_amqp_reply_name(1), "ERROR");
    leat_amqp_reply_error(&err, 530, "no more than %d", 7);
    assert_string_equal(err.text, "NOT_ALLOWED - no more than 7");
    assert_int_equal(err.status, LEAT_EPROTOCOL);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    leat_amqp_reply_error(&err, 320, "%s", text);
    assert_true(strlen(err.text) < sizeof(err.text));
    assert_int_equal(strncmp(err.text, "CONNECTION_FORCED - xxx", 23), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read_as_it_is_written),
        cmocka_unit_test(own_frames_are_as_specified),
        cmocka_unit_test(a_close_is_cut_to_255_bytes),
        cmocka_unit_test(an_error_begins_with_the_name_of_its_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
