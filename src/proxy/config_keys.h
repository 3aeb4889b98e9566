/*
 * config_keys.h - the tables of all keys, and setting one; for the parsers only
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_CONFIG_KEYS_H
#define LEAT_PROXY_CONFIG_KEYS_H

#include "base/text.h"
#include "proxy/config.h"

/* Longest name of a backend, farm or vhost, in bytes; AMQP has no longer vhosts. */
#define LEAT_CONFIG_NAME_MAX 255

enum leat_key_kind {
    LEAT_KEY_ENDPOINT, /* struct leat_endpoint */
    LEAT_KEY_FILE,     /* char *: the name of a file */
    LEAT_KEY_TEXT,     /* char * */
    LEAT_KEY_NAMES,    /* struct leat_names: a list; on the command line separated by commas */
    LEAT_KEY_FLAG,     /* bool: true or false; on the command line its mere presence */
    LEAT_KEY_CHOICE,   /* uint64_t: an index of the key's choices */
    LEAT_KEY_COUNT,    /* uint64_t */
    LEAT_KEY_SIZE,     /* uint64_t, bytes */
    LEAT_KEY_DURATION, /* uint64_t, milliseconds */
};

struct leat_key {
    const char *name;   /* in the file; "timeouts.tls" is the key tls of the section timeouts */
    const char *option; /* of the command line; NULL: the name; "": none */
    enum leat_key_kind kind;
    size_t offset;       /* of the value in what the table describes */
    const char *initial; /* the default as a person would write it; NULL: none */
    uint64_t min, max;   /* of COUNT, SIZE (bytes), DURATION (ms); of ENDPOINT the default ports,
                            with TLS and without */
    const char *help;
    const char *const *choices; /* of CHOICE, then NULL */
};

/* A table describes a struct: the whole configuration, or an item of a list or map. */
struct leat_key_table {
    size_t count;
    const struct leat_key *keys;
};

extern const struct leat_key_table leat_config_table;   /* struct leat_config */
extern const struct leat_key_table leat_short_table;    /* likewise: the command line's short form;
                                                           the names say where a file has it */
extern const struct leat_key_table leat_listener_table; /* struct leat_listener_config */
extern const struct leat_key_table leat_certificate_table;
extern const struct leat_key_table leat_backend_table;
extern const struct leat_key_table leat_farm_table;
extern const struct leat_key_table leat_route_table; /* of `vhosts`, and of `default` */

/* What the file has at its top, beside the keys of leat_config_table that have no section. */
enum leat_section_kind {
    LEAT_SECTION_LISTENERS,    /* a list of items */
    LEAT_SECTION_CERTIFICATES, /* maps of items by name */
    LEAT_SECTION_BACKENDS,
    LEAT_SECTION_FARMS,
    LEAT_SECTION_VHOSTS,
    LEAT_SECTION_DEFAULT, /* one item */
    LEAT_SECTION_KEYS,    /* keys of the configuration */
};

struct leat_section {
    const char *name;
    enum leat_section_kind kind;
    const struct leat_key_table *table;
    const char *help;
};

#define LEAT_SECTIONS 14

extern const struct leat_section leat_sections[LEAT_SECTIONS];

/* Whether KEY belongs to the section called SECTION, "" for none; *OUT_NAME is its name there. */
bool leat_key_is_of(const struct leat_key *key, const char *section, struct leat_str *out_name);

/* Sets all of TABLE in BASE, which is zeroed, to their defaults. LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status
leat_key_set_defaults(void *base, const struct leat_key_table *table, struct leat_error *err);

/* Frees what the keys of TABLE hold in BASE. */
void leat_key_free_all(void *base, const struct leat_key_table *table);

/* The line of KEY among KEY_LINES, those of the keys of an item, or else LINE, the item's. */
unsigned leat_key_line(const struct leat_key *key, const unsigned *key_lines, unsigned line);

/* The key that describes the member at OFFSET of what TABLE describes; there is one. */
const struct leat_key *leat_key_at(const struct leat_key_table *table, size_t offset);

/*
 * Sets KEY in BASE, the struct that its table describes, to VALUE, as it was written. On
 * LEAT_EUSAGE, ERR has what was expected and found, without the key's name, such as: expected
 * 100ms to 24h, got "0". LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status leat_key_set(void *base, const struct leat_key *key,
                                              struct leat_str value, struct leat_error *err);

/* Adds NAME to the list of KEY, of kind LEAT_KEY_NAMES, in BASE. */
LEAT_MUST_CHECK enum leat_status leat_key_add_name(void *base, const struct leat_key *key,
                                                   struct leat_str name, struct leat_error *err);

/* Returns AT, an array of COUNT elements of EACH bytes, or a larger copy (AT is freed then) so
 * that there is room for one more; NULL, leaving AT alone, if memory is short. */
void *leat_config_grow(void *at, size_t count, size_t each);

/* Empties the list of KEY, which may have its default. */
void leat_key_clear_names(void *base, const struct leat_key *key);

/* Appends AMOUNT, of a key of KIND, as a person writes it: "4 bytes", "64KiB", "10s". */
void leat_key_add_amount(struct leat_text *text, enum leat_key_kind kind, uint64_t amount);

/* Writes what KEY allows, such as "100ms to 24h" or "true or false", to BUF; returns BUF. */
const char *leat_key_allowed(const struct leat_key *key, char *buf, size_t cap);

/*
 * Add an item of defaults, that stands in LINE of the file; *OUT is valid until the next one of
 * its kind is added. NAME (of a backend or farm; the vhost of a route, whose ptr is NULL for
 * the default) is copied. LEAT_EUSAGE if the name can't be one, there are too many, or one of
 * that name is there already (of a route leat_config_finish() says so), with ERR saying so;
 * LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status leat_config_add_listener(struct leat_config *config, unsigned line,
                                                          struct leat_listener_config **out,
                                                          struct leat_error *err);
LEAT_MUST_CHECK enum leat_status leat_config_add_certificate(struct leat_config *config,
                                                             unsigned line, struct leat_str name,
                                                             struct leat_certificate_config **out,
                                                             struct leat_error *err);
LEAT_MUST_CHECK enum leat_status leat_config_add_backend(struct leat_config *config, unsigned line,
                                                         struct leat_str name,
                                                         struct leat_backend_config **out,
                                                         struct leat_error *err);
LEAT_MUST_CHECK enum leat_status leat_config_add_farm(struct leat_config *config, unsigned line,
                                                      struct leat_str name,
                                                      struct leat_farm_config **out,
                                                      struct leat_error *err);
LEAT_MUST_CHECK enum leat_status leat_config_add_route(struct leat_config *config, unsigned line,
                                                       struct leat_str vhost,
                                                       struct leat_route_config **out,
                                                       struct leat_error *err);

/* As leat_config_add_farm(), whatever other farm has that name. */
LEAT_MUST_CHECK enum leat_status leat_config_append_farm(struct leat_config *config, unsigned line,
                                                         struct leat_str name,
                                                         struct leat_farm_config **out,
                                                         struct leat_error *err);

#endif
