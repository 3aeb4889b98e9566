/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config_yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yaml.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/config_keys.h"
#include "proxy/config_place.h"
#include "proxy/config_suggest.h"

#define FILE_MAX_BYTES (1024u * 1024u)

/*
 * Reads events as the tables say what may come. Every function that reads a thing finds the
 * thing's first event in the reader and leaves its last one there; so nothing is nested deeper
 * than the tables are, whatever the file does.
 */
struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    struct leat_config *config;
    struct leat_error *err;
    struct leat_str text; /* the whole file */
    unsigned line;        /* of the event */
    char path_buf[160];
    struct leat_text path; /* of the key whose value is read, such as "farms.main", in PATH_BUF */
};

/* Reads one entry NAME of a map, that stands in LINE; its value is the reader's event. */
typedef enum leat_status entry_fn(struct reader *reader, void *ctx, struct leat_str name,
                                  unsigned line);

static enum leat_status no_memory(struct reader *reader)
{
    return leat_error_set(reader->err, LEAT_ENOMEM, 0, "out of memory");
}

static enum leat_status fail(struct reader *reader, unsigned line, const char *format, ...)
    LEAT_PRINTF(3, 4);

static enum leat_status fail(struct reader *reader, unsigned line, const char *format, ...)
{
    struct leat_error said;
    struct leat_text text;
    va_list args;

    leat_text_init(&text, said.text, sizeof(said.text));
    leat_place_add_file(&text, reader->config->file, line);
    if (reader->path.len > 0)
        leat_text_add(&text, "%s: ", reader->path_buf);
    va_start(args, format);
    leat_text_vadd(&text, format, args);
    va_end(args);
    return leat_error_set(reader->err, LEAT_EUSAGE, 0, "%s", said.text);
}

/* Gives WHY, of the value or item that is read, its place. */
static enum leat_status fail_for(struct reader *reader, unsigned line, enum leat_status status,
                                 const struct leat_error *why)
{
    return status == LEAT_EUSAGE ? fail(reader, line, "%s", why->text) : no_memory(reader);
}

static struct leat_str scalar(const struct reader *reader)
{
    return (struct leat_str){(const char *)reader->event.data.scalar.value,
                             reader->event.data.scalar.length};
}

/* Whether the event is what YAML takes for no value at all. */
static bool is_null(const struct reader *reader)
{
    static const struct leat_str nulls[] = {LEAT_STR_INIT(""), LEAT_STR_INIT("~"),
                                            LEAT_STR_INIT("null"), LEAT_STR_INIT("Null"),
                                            LEAT_STR_INIT("NULL")};

    if (reader->event.type != YAML_SCALAR_EVENT ||
        reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++) {
        if (leat_str_equal(scalar(reader), nulls[i]))
            return true;
    }
    return false;
}

static enum leat_status expected(struct reader *reader, const char *what)
{
    char got[120] = "nothing";
    struct leat_text text;

    if (reader->event.type == YAML_SEQUENCE_START_EVENT)
        return fail(reader, reader->line, "expected %s, got a list", what);
    if (reader->event.type == YAML_MAPPING_START_EVENT)
        return fail(reader, reader->line, "expected %s, got a map", what);
    if (reader->event.type == YAML_SCALAR_EVENT && is_null(reader)) {
        if (scalar(reader).len > 0)
            (void)snprintf(got, sizeof(got), "%s, which is nothing unless it is quoted",
                           reader->event.data.scalar.value);
    } else if (reader->event.type == YAML_SCALAR_EVENT) {
        leat_text_init(&text, got, sizeof(got));
        leat_place_add_value(&text, scalar(reader));
    }
    return fail(reader, reader->line, "expected %s, got %s", what, got);
}

/* The line in which the byte at OFFSET stands. */
static unsigned line_at(const struct reader *reader, size_t offset)
{
    unsigned line = 1;

    for (size_t i = 0; i < offset && i < reader->text.len; i++)
        line += reader->text.ptr[i] == '\n';
    return line;
}

static enum leat_status fail_in_yaml(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem != NULL ? parser->problem : "cannot be understood";

    if (parser->error == YAML_MEMORY_ERROR)
        return no_memory(reader);
    leat_text_init(&reader->path, reader->path_buf, sizeof(reader->path_buf));
    if (parser->error == YAML_READER_ERROR)
        return fail(reader, line_at(reader, parser->problem_offset), "not a text in UTF-8: %s",
                    problem);
    return fail(reader, (unsigned)parser->problem_mark.line + 1, "not valid YAML: %s%s%s%s",
                problem, parser->context != NULL ? " (" : "",
                parser->context != NULL ? parser->context : "", parser->context != NULL ? ")" : "");
}

/* Refuses what makes a file mean something else than it seems to say. */
static enum leat_status check_event(struct reader *reader)
{
    const yaml_event_t *event = &reader->event;
    const yaml_char_t *anchor = NULL, *tag = NULL;

    if (event->type == YAML_ALIAS_EVENT)
        return fail(reader, reader->line, "aliases (*name) are not taken: write it out");
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor != NULL)
        return fail(reader, reader->line, "anchors (&name) are not taken: write it out");
    if (tag != NULL)
        return fail(reader, reader->line, "tags (!name) are not taken");
    return LEAT_OK;
}

static enum leat_status next(struct reader *reader)
{
    yaml_event_delete(&reader->event);
    if (yaml_parser_parse(&reader->parser, &reader->event) == 0)
        return fail_in_yaml(reader);
    reader->line = (unsigned)reader->event.start_mark.line + 1;
    return check_event(reader);
}

static enum leat_status read_map(struct reader *reader, entry_fn *read_entry, void *ctx)
{
    char buf[LEAT_CONFIG_NAME_MAX];

    if (reader->event.type != YAML_MAPPING_START_EVENT)
        return expected(reader, "a map");
    for (;;) {
        struct leat_text above = reader->path;
        enum leat_status status = next(reader);
        if (status != LEAT_OK || reader->event.type == YAML_MAPPING_END_EVENT)
            return status;
        if (reader->event.type != YAML_SCALAR_EVENT || is_null(reader))
            return expected(reader, "a name");
        struct leat_str name = {buf, scalar(reader).len};
        unsigned line = reader->line;
        if (name.len > sizeof(buf))
            return fail(reader, line, "expected a name of at most %zu bytes, got %zu", sizeof(buf),
                        name.len);
        memcpy(buf, scalar(reader).ptr, name.len);
        leat_place_add_name(&reader->path, name);
        status = next(reader);
        if (status == LEAT_OK)
            status = read_entry(reader, ctx, name, line);
        if (status != LEAT_OK)
            return status;
        reader->path = above;
        reader->path_buf[above.len] = '\0';
    }
}

static enum leat_status fail_twice(struct reader *reader, unsigned line, unsigned first)
{
    return fail(reader, line, "is there already, in line %u", first);
}

static enum leat_status fail_unknown(struct reader *reader, unsigned line,
                                     struct leat_suggest *suggest)
{
    return fail(reader, line, "unknown key; %s", leat_suggest_finish(suggest));
}

static enum leat_status read_names(struct reader *reader, void *base, const struct leat_key *key)
{
    struct leat_error why;
    char allowed[80];

    (void)leat_key_allowed(key, allowed, sizeof(allowed));
    if (reader->event.type != YAML_SEQUENCE_START_EVENT)
        return expected(reader, allowed);
    leat_key_clear_names(base, key);
    for (;;) {
        enum leat_status status = next(reader);
        if (status != LEAT_OK || reader->event.type == YAML_SEQUENCE_END_EVENT)
            return status;
        if (reader->event.type != YAML_SCALAR_EVENT || is_null(reader))
            return expected(reader, "a name");
        status = leat_key_add_name(base, key, scalar(reader), &why);
        if (status != LEAT_OK)
            return fail_for(reader, reader->line, status, &why);
    }
}

/* Sets a name of a file, which is relative to the directory of the configuration's file. */
static enum leat_status set_file(struct reader *reader, void *base, const struct leat_key *key,
                                 struct leat_error *why)
{
    struct leat_str name = scalar(reader);
    const char *slash = strrchr(reader->config->file, '/');

    if (slash == NULL || name.len == 0 || name.ptr[0] == '/')
        return leat_key_set(base, key, name, why);
    size_t dir = (size_t)(slash - reader->config->file) + 1;
    char *joined = leat_mem_alloc(dir + name.len);
    if (joined == NULL)
        return no_memory(reader);
    memcpy(joined, reader->config->file, dir);
    memcpy(joined + dir, name.ptr, name.len);
    enum leat_status status =
        leat_key_set(base, key, (struct leat_str){joined, dir + name.len}, why);
    leat_mem_free(joined);
    return status;
}

static enum leat_status read_value(struct reader *reader, void *base, const struct leat_key *key)
{
    struct leat_error why = {.text = ""};
    char allowed[80];
    enum leat_status status;

    if (key->kind == LEAT_KEY_NAMES)
        return read_names(reader, base, key);
    if (reader->event.type != YAML_SCALAR_EVENT || is_null(reader))
        return expected(reader, leat_key_allowed(key, allowed, sizeof(allowed)));
    if (key->kind == LEAT_KEY_FILE)
        status = set_file(reader, base, key, &why);
    else
        status = leat_key_set(base, key, scalar(reader), &why);
    return status == LEAT_OK ? LEAT_OK : fail_for(reader, reader->line, status, &why);
}

/* A map that TABLE describes, or SECTION of it. */
struct item {
    void *base;
    const struct leat_key_table *table;
    const char *section;
    unsigned *lines; /* of the keys that were there already */
};

static enum leat_status read_key(struct reader *reader, void *ctx, struct leat_str name,
                                 unsigned line)
{
    const struct item *item = ctx;
    struct leat_suggest suggest;
    struct leat_str known;

    leat_suggest_init(&suggest, name);
    for (size_t i = 0; i < item->table->count; i++) {
        const struct leat_key *key = &item->table->keys[i];
        if (!leat_key_is_of(key, item->section, &known))
            continue;
        leat_suggest_offer(&suggest, known);
        if (!leat_str_equal(known, name))
            continue;
        if (item->lines[i] != 0)
            return fail_twice(reader, line, item->lines[i]);
        item->lines[i] = line;
        return read_value(reader, item->base, key);
    }
    return fail_unknown(reader, line, &suggest);
}

/* Reads the keys of BASE, an item that TABLE describes, and notes their LINES. */
static enum leat_status read_item(struct reader *reader, void *base,
                                  const struct leat_key_table *table, unsigned *lines)
{
    struct item item = {.base = base, .table = table, .section = "", .lines = lines};

    return read_map(reader, read_key, &item);
}

static enum leat_status read_listeners(struct reader *reader)
{
    struct leat_text above = reader->path;
    struct leat_listener_config *listener;
    struct leat_error why;

    if (reader->event.type != YAML_SEQUENCE_START_EVENT)
        return expected(reader, "a list");
    for (size_t i = 0;; i++) {
        enum leat_status status = next(reader);
        if (status != LEAT_OK || reader->event.type == YAML_SEQUENCE_END_EVENT)
            return status;
        leat_text_add(&reader->path, "[%zu]", i);
        status = leat_config_add_listener(reader->config, reader->line, &listener, &why);
        if (status != LEAT_OK)
            return fail_for(reader, reader->line, status, &why);
        status = read_item(reader, listener, &leat_listener_table, listener->key_lines);
        if (status != LEAT_OK)
            return status;
        reader->path = above;
        reader->path_buf[above.len] = '\0';
    }
}

static enum leat_status read_certificate(struct reader *reader, void *ctx, struct leat_str name,
                                         unsigned line)
{
    struct leat_certificate_config *certificate;
    struct leat_error why;
    enum leat_status status =
        leat_config_add_certificate(reader->config, line, name, &certificate, &why);

    (void)ctx;
    if (status != LEAT_OK)
        return fail_for(reader, line, status, &why);
    return read_item(reader, certificate, &leat_certificate_table, certificate->key_lines);
}

static enum leat_status read_backend(struct reader *reader, void *ctx, struct leat_str name,
                                     unsigned line)
{
    struct leat_backend_config *backend;
    struct leat_error why;
    enum leat_status status = leat_config_add_backend(reader->config, line, name, &backend, &why);

    (void)ctx;
    if (status != LEAT_OK)
        return fail_for(reader, line, status, &why);
    return read_item(reader, backend, &leat_backend_table, backend->key_lines);
}

static enum leat_status read_farm(struct reader *reader, void *ctx, struct leat_str name,
                                  unsigned line)
{
    struct leat_farm_config *farm;
    struct leat_error why;
    enum leat_status status = leat_config_add_farm(reader->config, line, name, &farm, &why);

    (void)ctx;
    if (status != LEAT_OK)
        return fail_for(reader, line, status, &why);
    return read_item(reader, farm, &leat_farm_table, farm->key_lines);
}

/* Also the default, whose VHOST is NULL. */
static enum leat_status read_route(struct reader *reader, void *ctx, struct leat_str vhost,
                                   unsigned line)
{
    struct leat_route_config *route;
    struct leat_error why;
    enum leat_status status = leat_config_add_route(reader->config, line, vhost, &route, &why);

    (void)ctx;
    if (status != LEAT_OK)
        return fail_for(reader, line, status, &why);
    return read_item(reader, route, &leat_route_table, route->key_lines);
}

static enum leat_status read_section(struct reader *reader, const struct leat_section *section,
                                     unsigned line)
{
    struct item item = {.base = reader->config,
                        .table = section->table,
                        .section = section->name,
                        .lines = reader->config->key_lines};

    switch (section->kind) {
    case LEAT_SECTION_LISTENERS:
        return read_listeners(reader);
    case LEAT_SECTION_CERTIFICATES:
        return read_map(reader, read_certificate, NULL);
    case LEAT_SECTION_BACKENDS:
        return read_map(reader, read_backend, NULL);
    case LEAT_SECTION_FARMS:
        return read_map(reader, read_farm, NULL);
    case LEAT_SECTION_VHOSTS:
        return read_map(reader, read_route, NULL);
    case LEAT_SECTION_DEFAULT:
        return read_route(reader, NULL, (struct leat_str){NULL, 0}, line);
    case LEAT_SECTION_KEYS:
        return read_map(reader, read_key, &item);
    }
    return LEAT_OK;
}

/* Reads what stands at the top of the file: a section, or a key that has none. */
static enum leat_status read_top(struct reader *reader, void *ctx, struct leat_str name,
                                 unsigned line)
{
    unsigned *lines = ctx;
    const struct leat_key_table *table = &leat_config_table;
    struct leat_suggest suggest;
    struct leat_str known;

    leat_suggest_init(&suggest, name);
    for (size_t i = 0; i < LEAT_SECTIONS; i++) {
        known = leat_str_of(leat_sections[i].name);
        leat_suggest_offer(&suggest, known);
        if (!leat_str_equal(known, name))
            continue;
        if (lines[i] != 0)
            return fail_twice(reader, line, lines[i]);
        lines[i] = line;
        return read_section(reader, &leat_sections[i], line);
    }
    for (size_t i = 0; i < table->count; i++) {
        if (!leat_key_is_of(&table->keys[i], "", &known))
            continue;
        leat_suggest_offer(&suggest, known);
        if (!leat_str_equal(known, name))
            continue;
        if (reader->config->key_lines[i] != 0)
            return fail_twice(reader, line, reader->config->key_lines[i]);
        reader->config->key_lines[i] = line;
        return read_value(reader, reader->config, &table->keys[i]);
    }
    return fail_unknown(reader, line, &suggest);
}

/* Reads the one document that the file has. */
static enum leat_status read_document(struct reader *reader)
{
    unsigned lines[LEAT_SECTIONS] = {0};
    enum leat_status status = next(reader);

    if (status == LEAT_OK) /* the beginning of the stream has come */
        status = next(reader);
    if (status != LEAT_OK)
        return status;
    if (reader->event.type == YAML_STREAM_END_EVENT)
        return fail(reader, reader->line, "there is no configuration in the file");
    status = next(reader);
    if (status == LEAT_OK)
        status = read_map(reader, read_top, lines);
    if (status == LEAT_OK)
        status = next(reader);
    if (status == LEAT_OK)
        status = next(reader);
    if (status == LEAT_OK && reader->event.type != YAML_STREAM_END_EVENT)
        return fail(reader, reader->line, "expected one document, got a second one");
    return status;
}

static enum leat_status parse(struct leat_config *config, struct leat_str text,
                              struct leat_error *err)
{
    static const struct leat_str mark = LEAT_STR_INIT("\xef\xbb\xbf");
    struct reader reader = {.config = config, .err = err, .text = text};
    enum leat_status status;

    /* libyaml would count the byte order mark as a column, when it is told the encoding. */
    if (leat_str_starts(text, mark))
        reader.text = (struct leat_str){text.ptr + mark.len, text.len - mark.len};

    if (yaml_parser_initialize(&reader.parser) == 0)
        return no_memory(&reader);
    leat_text_init(&reader.path, reader.path_buf, sizeof(reader.path_buf));
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)reader.text.ptr,
                                 reader.text.len);
    status = read_document(&reader);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    return status;
}

static enum leat_status fail_to_read(const struct leat_config *config, enum leat_status status,
                                     int sys, const char *what, struct leat_error *err)
{
    char buf[120];
    struct leat_text place;

    leat_text_init(&place, buf, sizeof(buf));
    leat_place_add_file(&place, config->file, 0);
    return leat_error_set(err, status, sys, "%s%s", buf, what);
}

/* Reads FD to its end into BUF; *OUT_LEN is above FILE_MAX_BYTES if there is more. Returns errno.
 */
static int read_all(int fd, char *buf, size_t *out_len)
{
    size_t len = 0;

    while (len <= FILE_MAX_BYTES) {
        ssize_t got = read(fd, buf + len, FILE_MAX_BYTES + 1 - len);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return errno;
        len += got > 0 ? (size_t)got : 0;
    }
    *out_len = len;
    return 0;
}

enum leat_status leat_config_read_yaml(struct leat_config *config, const char *name,
                                       struct leat_error *err)
{
    enum leat_status status;
    struct stat info;
    size_t len = 0;
    int sys, fd;

    config->file = leat_mem_dup(leat_str_of(name));
    char *buf = (config->file == NULL) ? NULL : leat_mem_alloc(FILE_MAX_BYTES + 1);
    if (buf == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    /* What is no file could keep the reader waiting for ever. */
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        sys = errno;
    else if (fstat(fd, &info) != 0 || S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode))
        sys = ESPIPE;
    else
        sys = read_all(fd, buf, &len);
    if (fd >= 0)
        (void)close(fd);
    if (sys != 0)
        status = fail_to_read(config, LEAT_EIO, sys, "cannot be read", err);
    else if (len > FILE_MAX_BYTES)
        status = fail_to_read(config, LEAT_EUSAGE, 0, "is larger than 1 MiB", err);
    else
        status = parse(config, (struct leat_str){buf, len}, err);
    leat_mem_free(buf);
    return status;
}
