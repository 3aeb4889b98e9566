/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config_keys.h"
#include "proxy/config_place.h"

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/text.h"

#define DAY_MS (24u * 3600u * 1000u)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define AT(member) offsetof(struct leat_config, member)
static const struct leat_key config_keys[] = {
    {"workers", NULL, LEAT_KEY_COUNT, AT(workers), NULL, 1, 256,
     "threads that carry sessions; default: one a core"},
    {"logging.level", "log-level", LEAT_KEY_LEVEL, AT(log_level), "info", 0, 0, "what is logged"},
    {"logging.trace", "trace", LEAT_KEY_FLAG, AT(trace), NULL, 0, 0,
     "log a line for every frame, without payloads"},
    {"control.socket", "control-socket", LEAT_KEY_FILE, AT(control_socket), NULL, 0, 0,
     "the socket that leatctl asks over, its owner's only; none without; no reload changes it"},
    {"loopback_users", NULL, LEAT_KEY_NAMES, AT(loopback_users), "guest", 0, 0,
     "users let in from this machine only"},
    {"tune.frame_max", NULL, LEAT_KEY_SIZE, AT(frame_max), "128KiB", 4096, 16u * 1024u * 1024u,
     "largest frame offered to clients"},
    {"tune.channel_max", NULL, LEAT_KEY_COUNT, AT(channel_max), "2047", 1, 65535,
     "channels offered to clients"},
    {"tune.heartbeat", NULL, LEAT_KEY_DURATION, AT(heartbeat_ms), "60s", 0, 65535u * 1000u,
     "heartbeat interval offered to clients, whole seconds; 0 is off"},
    {"timeouts.tls", NULL, LEAT_KEY_DURATION, AT(timeout_tls_ms), "5s", 100, DAY_MS,
     "for the TLS handshake, with a client and with a backend"},
    {"timeouts.handshake", NULL, LEAT_KEY_DURATION, AT(timeout_handshake_ms), "10s", 100, DAY_MS,
     "for the AMQP handshake, with a client and with a backend"},
    {"timeouts.connect", NULL, LEAT_KEY_DURATION, AT(timeout_connect_ms), "5s", 100, DAY_MS,
     "for connecting to one backend"},
    {"timeouts.search", NULL, LEAT_KEY_DURATION, AT(timeout_search_ms), "12s", 100, DAY_MS,
     "for finding a backend, all attempts together"},
    {"timeouts.close", NULL, LEAT_KEY_DURATION, AT(timeout_close_ms), "10s", 100, DAY_MS,
     "for the answer to a Close, before leat answers in its place"},
    {"timeouts.linger", NULL, LEAT_KEY_DURATION, AT(timeout_linger_ms), "5s", 100, DAY_MS,
     "for a peer to end the connection after the last frame it was sent"},
    {"timeouts.flush", NULL, LEAT_KEY_DURATION, AT(timeout_flush_ms), "60s", 100, DAY_MS,
     "for a peer to take what is queued for it when the other side has ended"},
    {"limits.sessions", NULL, LEAT_KEY_COUNT, AT(limit_sessions), "0", 0, 10000000,
     "sessions at once; 0: as many as descriptors allow"},
    {"limits.handshakes", NULL, LEAT_KEY_COUNT, AT(limit_handshakes), "4096", 1, 10000000,
     "connections at once that have not yet opened a session"},
    {"limits.initial_frame", NULL, LEAT_KEY_SIZE, AT(limit_initial_frame_bytes), "8KiB", 4096,
     1024u * 1024u, "largest frame before a client is let in; large tokens need more"},
    {"limits.initial_frames", NULL, LEAT_KEY_COUNT, AT(limit_initial_frames), "16", 3, 10000,
     "frames that a client may send before it is let in"},
    {"limits.session_queue", NULL, LEAT_KEY_SIZE, AT(limit_session_queue_bytes), "512KiB",
     16u * 1024u, 512u * 1024u,
     "bytes read at once, and so queued when the other side does not take them"},
    {"limits.queue", NULL, LEAT_KEY_SIZE, AT(limit_queue_bytes), "256MiB", 1024u * 1024u,
     1024ull * 1024u * 1024u * 1024u, "bytes queued in all, from where on reads are kept short"},
    {"drain.close_after", NULL, LEAT_KEY_DURATION, AT(drain_close_after_ms), "10s", 0, DAY_MS,
     "after SIGTERM sessions may end by themselves for this long"},
    {"drain.close_until", NULL, LEAT_KEY_DURATION, AT(drain_close_until_ms), "25s", 0, DAY_MS,
     "when the last session has been sent Close, counted from SIGTERM"},
    {"drain.end", NULL, LEAT_KEY_DURATION, AT(drain_end_ms), "30s", 0, DAY_MS,
     "when what is left is cut, counted from SIGTERM"},
};
_Static_assert(COUNT_OF(config_keys) <= LEAT_CONFIG_KEYS_MAX, "room for the line of each key");

static const struct leat_key short_keys[] = {
    {"listeners[].address", "listen", LEAT_KEY_ENDPOINT, AT(listeners), NULL, 5671, 5672,
     "where clients connect: amqps://ADDRESS:PORT or amqp://ADDRESS:PORT; repeatable"},
    {"listeners[].cert", "cert", LEAT_KEY_FILE, AT(cert), NULL, 0, 0,
     "certificate and chain (PEM) that amqps:// listeners show"},
    {"listeners[].key", "key", LEAT_KEY_FILE, AT(key), NULL, 0, 0,
     "private key (PEM) of the certificate"},
    {"backends.NAME.address", "backend", LEAT_KEY_ENDPOINT, AT(backends), NULL, 5671, 5672,
     "a broker: amqp://ADDRESS:PORT or amqps://ADDRESS:PORT; repeatable, taken in turn"},
    {"backends.NAME.ca", "backend-ca", LEAT_KEY_FILE, AT(backend_ca), NULL, 0, 0,
     "certificates (PEM) that amqps:// backends are verified against; default: the system's"},
    {"backends.NAME.name", "backend-name", LEAT_KEY_TEXT, AT(backend_name), NULL, 0, 0,
     "name that the backends' certificates must be for, sent as SNI; default: the address"},
};
#undef AT

#define AT(member) offsetof(struct leat_listener_config, member)
static const struct leat_key listener_keys[] = {
    {"address", "", LEAT_KEY_ENDPOINT, AT(endpoint), NULL, 5671, 5672,
     "where clients connect, with TLS (amqps) or without; port 0 is any that is free"},
    {"cert", "", LEAT_KEY_FILE, AT(cert), NULL, 0, 0,
     "certificate and chain (PEM) that an amqps:// listener shows; needed there, only there"},
    {"key", "", LEAT_KEY_FILE, AT(key), NULL, 0, 0, "private key (PEM) of the certificate"},
};
#undef AT

#define AT(member) offsetof(struct leat_backend_config, member)
static const struct leat_key backend_keys[] = {
    {"address", "", LEAT_KEY_ENDPOINT, AT(endpoint), NULL, 5671, 5672,
     "where the broker is, with TLS (amqps) or without"},
    {"ca", "", LEAT_KEY_FILE, AT(ca), NULL, 0, 0,
     "certificates (PEM) that an amqps:// backend is verified against; default: the system's"},
    {"name", "", LEAT_KEY_TEXT, AT(verify_name), NULL, 0, 0,
     "name that the certificate of an amqps:// backend must be for, sent as SNI; default: the "
     "address"},
    {"weight", "", LEAT_KEY_COUNT, AT(weight), "1", 1, 100,
     "how many sessions it gets in a round of its farm"},
};
#undef AT

#define AT(member) offsetof(struct leat_farm_config, member)
static const struct leat_key farm_keys[] = {
    {"backends", "", LEAT_KEY_NAMES, AT(backend_names), NULL, 0, 0,
     "the backends that take the farm's sessions in turn, at least one"},
};
#undef AT

#define AT(member) offsetof(struct leat_route_config, member)
static const struct leat_key route_keys[] = {
    {"farm", "", LEAT_KEY_TEXT, AT(farm_name), NULL, 0, 0, "the farm that serves the vhost"},
    {"backend", "", LEAT_KEY_TEXT, AT(backend_name), NULL, 0, 0,
     "in place of a farm: the one backend that serves the vhost"},
};
#undef AT

const struct leat_key_table leat_config_table = {COUNT_OF(config_keys), config_keys};
const struct leat_key_table leat_short_table = {COUNT_OF(short_keys), short_keys};
const struct leat_key_table leat_listener_table = {COUNT_OF(listener_keys), listener_keys};
const struct leat_key_table leat_backend_table = {COUNT_OF(backend_keys), backend_keys};
const struct leat_key_table leat_farm_table = {COUNT_OF(farm_keys), farm_keys};
const struct leat_key_table leat_route_table = {COUNT_OF(route_keys), route_keys};

const struct leat_section leat_sections[LEAT_SECTIONS] = {
    {"listeners", LEAT_SECTION_LISTENERS, &leat_listener_table,
     "A list of where clients connect, at least one."},
    {"backends", LEAT_SECTION_BACKENDS, &leat_backend_table,
     "The brokers, each under a name of your choice, at least one."},
    {"farms", LEAT_SECTION_FARMS, &leat_farm_table,
     "Backends that serve the same vhosts, each farm under a name of your choice."},
    {"vhosts", LEAT_SECTION_VHOSTS, &leat_route_table,
     "Who serves a vhost, under the vhost's name: a farm or a single backend."},
    {"default", LEAT_SECTION_DEFAULT, &leat_route_table,
     "Who serves the vhosts that `vhosts` does not name; without it they are refused. A file "
     "without `farms`, `vhosts` and `default` means one farm of all backends for all vhosts."},
    {"logging", LEAT_SECTION_KEYS, &leat_config_table, "What is written to standard error."},
    {"control", LEAT_SECTION_KEYS, &leat_config_table,
     "How a running leat is asked and told, see [control.md](control.md)."},
    {"tune", LEAT_SECTION_KEYS, &leat_config_table,
     "What clients are offered in Tune; a broker that offers less lowers it."},
    {"timeouts", LEAT_SECTION_KEYS, &leat_config_table, "How long leat waits."},
    {"limits", LEAT_SECTION_KEYS, &leat_config_table, "What clients can make leat hold."},
    {"drain", LEAT_SECTION_KEYS, &leat_config_table, "How leat stops."},
};

unsigned leat_key_line(const struct leat_key *key, const unsigned *key_lines, unsigned line)
{
    static const struct leat_key_table *const tables[] = {&leat_listener_table, &leat_backend_table,
                                                          &leat_farm_table, &leat_route_table};

    for (size_t t = 0; key != NULL && t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (size_t i = 0; i < tables[t]->count && i < LEAT_CONFIG_ITEM_KEYS_MAX; i++) {
            if (&tables[t]->keys[i] == key && key_lines[i] != 0)
                return key_lines[i];
        }
    }
    return line;
}

const struct leat_key *leat_key_find(const struct leat_key_table *table, struct leat_str name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (leat_str_equal(leat_str_of(table->keys[i].name), name))
            return &table->keys[i];
    }
    return NULL;
}

bool leat_key_is_of(const struct leat_key *key, const char *section, struct leat_str *out_name)
{
    struct leat_str name = leat_str_of(key->name);
    size_t len = strlen(section);

    if (len == 0) {
        *out_name = name;
        return strchr(key->name, '.') == NULL;
    }
    if (name.len <= len || name.ptr[len] != '.' || memcmp(name.ptr, section, len) != 0)
        return false;
    *out_name = (struct leat_str){name.ptr + len + 1, name.len - len - 1};
    return true;
}

/* The member of BASE that KEY describes; its type follows from the key's kind. */
static void *member(void *base, const struct leat_key *key)
{
    return (char *)base + key->offset;
}

static void add_size(struct leat_text *text, unsigned long long bytes)
{
    static const char *const units[] = {" bytes", "KiB", "MiB", "GiB"};
    size_t u = 0;

    for (; u < 3 && bytes != 0 && bytes % 1024 == 0; u++)
        bytes /= 1024;
    leat_text_add(text, "%llu%s", bytes, units[u]);
}

static void add_duration(struct leat_text *text, unsigned long long ms)
{
    if (ms % 1000 != 0)
        leat_text_add(text, "%llums", ms);
    else if (ms % 3600000 != 0 || ms == 0)
        leat_text_add(text, "%llus", ms / 1000);
    else
        leat_text_add(text, "%lluh", ms / 3600000);
}

void leat_key_add_amount(struct leat_text *text, enum leat_key_kind kind, uint64_t amount)
{
    if (kind == LEAT_KEY_SIZE)
        add_size(text, amount);
    else if (kind == LEAT_KEY_DURATION)
        add_duration(text, amount);
    else
        leat_text_add(text, "%llu", (unsigned long long)amount);
}

static void add_levels(struct leat_text *text)
{
    for (int level = LEAT_LOG_ERROR; level <= LEAT_LOG_TRACE; level++)
        leat_text_add(text, "%s%s",
                      level == LEAT_LOG_ERROR   ? ""
                      : level == LEAT_LOG_TRACE ? " or "
                                                : ", ",
                      leat_log_level_name((enum leat_log_level)level));
}

const char *leat_key_allowed(const struct leat_key *key, char *buf, size_t cap)
{
    struct leat_text text;

    leat_text_init(&text, buf, cap);
    switch (key->kind) {
    case LEAT_KEY_ENDPOINT:
        leat_text_add(&text, "amqp://ADDRESS:PORT or amqps://ADDRESS:PORT");
        break;
    case LEAT_KEY_FILE:
        leat_text_add(&text, "the name of a file");
        break;
    case LEAT_KEY_TEXT:
        leat_text_add(&text, "text");
        break;
    case LEAT_KEY_NAMES:
        leat_text_add(&text, "a list of names");
        break;
    case LEAT_KEY_FLAG:
        leat_text_add(&text, "true or false");
        break;
    case LEAT_KEY_LEVEL:
        add_levels(&text);
        break;
    case LEAT_KEY_COUNT:
    case LEAT_KEY_SIZE:
    case LEAT_KEY_DURATION:
        leat_key_add_amount(&text, key->kind, key->min);
        leat_text_add(&text, " to ");
        leat_key_add_amount(&text, key->kind, key->max);
    }
    return buf;
}

static enum leat_status no_memory(struct leat_error *err)
{
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
}

static enum leat_status refuse(const char *expected, struct leat_str got, struct leat_error *err)
{
    char buf[120];
    struct leat_text quoted;

    leat_text_init(&quoted, buf, sizeof(buf));
    leat_place_add_value(&quoted, got);
    return leat_error_set(err, LEAT_EUSAGE, 0, "expected %s, got %s", expected, buf);
}

static enum leat_status refuse_value(const struct leat_key *key, struct leat_str value,
                                     struct leat_error *err)
{
    char allowed[80];

    return refuse(leat_key_allowed(key, allowed, sizeof(allowed)), value, err);
}

static bool has_nul(struct leat_str text)
{
    return text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL;
}

static enum leat_status set_endpoint(struct leat_endpoint *out, const struct leat_key *key,
                                     struct leat_str value, struct leat_error *err)
{
    static const struct leat_str plain = LEAT_STR_INIT("amqp://"), tls = LEAT_STR_INIT("amqps://");
    struct leat_endpoint endpoint = {.tls = leat_str_starts(value, tls)};

    /* Not to be repeated: a password may stand there. */
    if (value.len > 0 && memchr(value.ptr, '@', value.len) != NULL)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "no user or password belongs here, each client brings its own; "
                              "expected amqp://ADDRESS:PORT or amqps://ADDRESS:PORT");
    if (!endpoint.tls && !leat_str_starts(value, plain))
        return refuse_value(key, value, err);
    size_t scheme = endpoint.tls ? tls.len : plain.len;
    struct leat_str address = {value.ptr + scheme, value.len - scheme};
    uint16_t port = (uint16_t)(endpoint.tls ? key->min : key->max);
    enum leat_status status = leat_addr_parse(address, port, &endpoint.addr, err);
    if (status == LEAT_OK)
        *out = endpoint;
    return status;
}

static enum leat_status set_text(char **text, const struct leat_key *key, struct leat_str value,
                                 struct leat_error *err)
{
    char *copy;

    if (has_nul(value) || (key->kind == LEAT_KEY_FILE && value.len == 0))
        return refuse_value(key, value, err);
    copy = leat_mem_dup(value);
    if (copy == NULL)
        return no_memory(err);
    leat_mem_free(*text);
    *text = copy;
    return LEAT_OK;
}

static enum leat_status set_flag(bool *flag, const struct leat_key *key, struct leat_str value,
                                 struct leat_error *err)
{
    static const struct leat_str yes = LEAT_STR_INIT("true"), no = LEAT_STR_INIT("false");

    if (!leat_str_equal(value, yes) && !leat_str_equal(value, no))
        return refuse_value(key, value, err);
    *flag = leat_str_equal(value, yes);
    return LEAT_OK;
}

static enum leat_status set_level(uint64_t *out, const struct leat_key *key, struct leat_str value,
                                  struct leat_error *err)
{
    enum leat_log_level level;

    if (!leat_log_level_find(value, &level))
        return refuse_value(key, value, err);
    *out = level;
    return LEAT_OK;
}

static enum leat_status set_number(uint64_t *out, const struct leat_key *key, struct leat_str value,
                                   struct leat_error *err)
{
    uint64_t number = 0;
    bool parsed;

    if (key->kind == LEAT_KEY_DURATION)
        parsed = leat_parse_duration_ms(value, &number);
    else if (key->kind == LEAT_KEY_SIZE)
        parsed = leat_parse_size(value, &number);
    else
        parsed = leat_parse_u64(value, &number);
    if (!parsed || number < key->min || number > key->max)
        return refuse_value(key, value, err);
    *out = number;
    return LEAT_OK;
}

void *leat_config_grow(void *at, size_t count, size_t each)
{
    /* There is room for the next power of two. */
    if (count != 0 && (count & (count - 1)) != 0)
        return at;
    void *larger = leat_mem_zalloc_flex(0, count == 0 ? 1 : 2 * count, each);
    if (larger == NULL)
        return NULL;
    if (count > 0)
        memcpy(larger, at, count * each);
    leat_mem_free(at);
    return larger;
}

static void clear(struct leat_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        leat_mem_free(names->at[i]);
    leat_mem_free(names->at);
    *names = (struct leat_names){0};
}

/* A name that begins or ends with a space is hardly meant: such a user would be let in from
 * everywhere. */
static bool is_spaced(struct leat_str name)
{
    return name.len > 0 && (name.ptr[0] == ' ' || name.ptr[name.len - 1] == ' ');
}

static enum leat_status add_name(struct leat_names *names, struct leat_str name,
                                 struct leat_error *err)
{
    void *at;

    if (name.len == 0 || has_nul(name))
        return refuse("a name", name, err);
    if (is_spaced(name))
        return refuse("a name without spaces around it", name, err);
    at = leat_config_grow(names->at, names->count, sizeof(names->at[0]));
    if (at == NULL)
        return no_memory(err);
    names->at = at;
    names->at[names->count] = leat_mem_dup(name);
    if (names->at[names->count] == NULL)
        return no_memory(err);
    names->count++;
    return LEAT_OK;
}

/* Sets NAMES to those in VALUE, separated by commas. */
static enum leat_status set_names(struct leat_names *names, struct leat_str value,
                                  struct leat_error *err)
{
    struct leat_names made = {0};
    enum leat_status status = LEAT_OK;

    for (size_t from = 0, end; status == LEAT_OK && from < value.len; from = end + 1) {
        const char *comma = memchr(value.ptr + from, ',', value.len - from);
        end = (comma == NULL) ? value.len : (size_t)(comma - value.ptr);
        if (end > from)
            status = add_name(&made, (struct leat_str){value.ptr + from, end - from}, err);
    }
    if (status == LEAT_EUSAGE)
        status = refuse("names separated by commas, without spaces around these", value, err);
    if (status != LEAT_OK) {
        clear(&made);
        return status;
    }
    clear(names);
    *names = made;
    return LEAT_OK;
}

enum leat_status leat_key_add_name(void *base, const struct leat_key *key, struct leat_str name,
                                   struct leat_error *err)
{
    return add_name(member(base, key), name, err);
}

void leat_key_clear_names(void *base, const struct leat_key *key)
{
    clear(member(base, key));
}

enum leat_status leat_key_set(void *base, const struct leat_key *key, struct leat_str value,
                              struct leat_error *err)
{
    switch (key->kind) {
    case LEAT_KEY_ENDPOINT:
        return set_endpoint(member(base, key), key, value, err);
    case LEAT_KEY_FILE:
    case LEAT_KEY_TEXT:
        return set_text(member(base, key), key, value, err);
    case LEAT_KEY_NAMES:
        return set_names(member(base, key), value, err);
    case LEAT_KEY_FLAG:
        return set_flag(member(base, key), key, value, err);
    case LEAT_KEY_LEVEL:
        return set_level(member(base, key), key, value, err);
    case LEAT_KEY_COUNT:
    case LEAT_KEY_SIZE:
    case LEAT_KEY_DURATION:
        return set_number(member(base, key), key, value, err);
    }
    return leat_error_set(err, LEAT_EUSAGE, 0, "unknown kind");
}

enum leat_status leat_key_set_defaults(void *base, const struct leat_key_table *table,
                                       struct leat_error *err)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct leat_key *key = &table->keys[i];
        if (key->initial == NULL)
            continue;
        enum leat_status status = leat_key_set(base, key, leat_str_of(key->initial), err);
        if (status != LEAT_OK)
            return status;
    }
    return LEAT_OK;
}

void leat_key_free_all(void *base, const struct leat_key_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct leat_key *key = &table->keys[i];
        if (key->kind == LEAT_KEY_FILE || key->kind == LEAT_KEY_TEXT)
            leat_mem_free(*(char **)member(base, key));
        else if (key->kind == LEAT_KEY_NAMES)
            clear(member(base, key));
    }
}
