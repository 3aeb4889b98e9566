/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "proxy/config.h"
#include "proxy/config_keys.h"

static const char *placeholder(enum leat_key_kind kind)
{
    switch (kind) {
    case LEAT_KEY_ENDPOINT:
        return " URL";
    case LEAT_KEY_FILE:
        return " FILE";
    case LEAT_KEY_TEXT:
        return " TEXT";
    case LEAT_KEY_NAMES:
        return " NAMES";
    case LEAT_KEY_FLAG:
        return "";
    case LEAT_KEY_CHOICE:
        return " WORD";
    case LEAT_KEY_COUNT:
        return " N";
    case LEAT_KEY_SIZE:
        return " SIZE";
    case LEAT_KEY_DURATION:
        return " TIME";
    }
    return "";
}

static const char *option_of(const struct leat_key *key)
{
    return key->option != NULL ? key->option : key->name;
}

static void print_option(FILE *file, const struct leat_key *key)
{
    char option[64], allowed[80];

    (void)snprintf(option, sizeof(option), "--%s%s", option_of(key), placeholder(key->kind));
    (void)fprintf(file, "  %-30s %s", option, key->help);
    if (key->kind == LEAT_KEY_CHOICE)
        (void)fprintf(file, ": %s", leat_key_allowed(key, allowed, sizeof(allowed)));
    else if (key->kind == LEAT_KEY_NAMES)
        (void)fprintf(file, ", separated by commas; \"\": none");
    if (key->initial != NULL)
        (void)fprintf(file, " [%s]", key->initial);
    (void)fputc('\n', file);
}

void leat_config_print_help(FILE *file)
{
    for (size_t i = 0; i < leat_short_table.count; i++)
        print_option(file, &leat_short_table.keys[i]);
    for (size_t i = 0; i < leat_config_table.count; i++)
        print_option(file, &leat_config_table.keys[i]);
}

static const char intro[] =
    "# Configuration\n"
    "\n"
    "leat takes its configuration from a file of YAML, from options of the command line, or from "
    "both.\n"
    "`leat -c FILE` runs with a file, `leat check -c FILE` only says what is wrong with it, and "
    "where:\n"
    "`leat.yaml:35: timeouts.tls: expected 100ms to 24h, got \"0\"`.\n"
    "\n"
    "```yaml\n"
    "listeners:\n"
    "  - address: amqps://0.0.0.0:5671\n"
    "    cert: cert.pem\n"
    "    key: key.pem\n"
    "  - address: amqp://127.0.0.1:5672\n"
    "backends:\n"
    "  rabbit1: { address: amqp://10.0.0.11:5672 }\n"
    "  rabbit2: { address: amqps://10.0.0.12:5671, ca: ca.pem, name: rabbit2.example, weight: 2 "
    "}\n"
    "farms:\n"
    "  main: { backends: [rabbit1, rabbit2] }\n"
    "vhosts:\n"
    "  orders: { farm: main }\n"
    "  \"logs of all\": { backend: rabbit1 }\n"
    "default: { farm: main }     # for vhosts that are not named; without it they are refused\n"
    "loopback_users: [guest]\n"
    "logging: { level: info }\n"
    "timeouts: { connect: 2s }\n"
    "```\n"
    "\n"
    "All that is not given has its default. A key that leat does not know is an error, and so is "
    "one\n"
    "that is there twice. Aliases, anchors and tags of YAML are not taken; names and values that "
    "mean\n"
    "something else in YAML, such as `~` or `*`, are to be quoted. A file has at most 1 MiB.\n"
    "\n"
    "How values are written:\n"
    "\n"
    "- a time is a whole number and `ms`, `s`, `m` or `h`: `500ms`, `10s`, `2m`, `1h`; `0` needs "
    "no unit\n"
    "- a size is a whole number of bytes, or one and `KiB`, `MiB` or `GiB`: `4096`, `64KiB`, "
    "`1MiB`\n"
    "- an address is `amqp://HOST:PORT` without TLS, `amqps://HOST:PORT` with TLS; HOST is "
    "numeric, "
    "IPv6\n"
    "  in brackets, or, for a backend, a name; without PORT it is 5672, with TLS 5671. A UNIX "
    "socket "
    "is\n"
    "  `amqp+unix:///PATH`, with TLS `amqps+unix:///PATH`\n"
    "- the name of a file is relative to the directory of the file that it stands in; on the "
    "command line\n"
    "  to the current directory\n";

static void print_row(FILE *file, const char *name, const struct leat_key *key)
{
    char allowed[80];

    (void)fprintf(file, "| `%s` | %s | %s | ", name, key->help,
                  leat_key_allowed(key, allowed, sizeof(allowed)));
    if (key->initial == NULL)
        (void)fprintf(file, "|\n");
    else if (key->kind == LEAT_KEY_NAMES)
        (void)fprintf(file, "`[%s]` |\n", key->initial);
    else
        (void)fprintf(file, "`%s` |\n", key->initial);
}

/* The keys of TABLE that are of SECTION, shown after PREFIX. */
static void print_keys(FILE *file, const struct leat_key_table *table, const char *section,
                       const char *prefix)
{
    struct leat_str name;
    char shown[64];

    (void)fprintf(file, "\n| key | what | allowed | default |\n|---|---|---|---|\n");
    for (size_t i = 0; i < table->count; i++) {
        if (!leat_key_is_of(&table->keys[i], section, &name))
            continue;
        (void)snprintf(shown, sizeof(shown), "%s%.*s", prefix, (int)name.len, name.ptr);
        print_row(file, shown, &table->keys[i]);
    }
}

static void print_section(FILE *file, const struct leat_section *section)
{
    char prefix[40] = "";
    bool is_of_all = section->kind == LEAT_SECTION_KEYS;

    (void)fprintf(file, "\n## %s\n\n%s\n", section->name, section->help);
    switch (section->kind) {
    case LEAT_SECTION_LISTENERS:
        (void)snprintf(prefix, sizeof(prefix), "%s[].", section->name);
        break;
    case LEAT_SECTION_CERTIFICATES:
    case LEAT_SECTION_BACKENDS:
    case LEAT_SECTION_FARMS:
    case LEAT_SECTION_VHOSTS:
        (void)snprintf(prefix, sizeof(prefix), "%s.NAME.", section->name);
        break;
    case LEAT_SECTION_DEFAULT:
    case LEAT_SECTION_KEYS:
        (void)snprintf(prefix, sizeof(prefix), "%s.", section->name);
    }
    print_keys(file, section->table, is_of_all ? section->name : "", prefix);
}

static void print_options(FILE *file)
{
    (void)fprintf(file, "\n## The command line\n\n"
                        "Every key that has one value is also an option, called as the key is: "
                        "`--timeouts.connect 2s`.\n"
                        "An option is over what the file says. Only these are called otherwise:\n\n"
                        "| key | option |\n|---|---|\n");
    for (size_t i = 0; i < leat_config_table.count; i++) {
        const struct leat_key *key = &leat_config_table.keys[i];
        if (key->option != NULL)
            (void)fprintf(file, "| `%s` | `--%s%s` |\n", key->name, key->option,
                          placeholder(key->kind));
    }
    (void)fprintf(file, "\nNames in a list are separated by commas there: "
                        "`--loopback_users guest,monitor`; `\"\"` is an empty list.\n\n"
                        "Without a file these say what is needed. All backends form one farm for "
                        "all vhosts.\nThey are not taken beside a file.\n\n"
                        "| option | what | in a file |\n|---|---|---|\n");
    for (size_t i = 0; i < leat_short_table.count; i++) {
        const struct leat_key *key = &leat_short_table.keys[i];
        (void)fprintf(file, "| `--%s%s` | %s | `%s` |\n", key->option, placeholder(key->kind),
                      key->help, key->name);
    }
}

void leat_config_print_reference(FILE *file)
{
    (void)fputs(intro, file);
    for (size_t i = 0; i < LEAT_SECTIONS; i++)
        print_section(file, &leat_sections[i]);
    (void)fprintf(file, "\n## Without a section\n");
    print_keys(file, &leat_config_table, "", "");
    print_options(file);
}
