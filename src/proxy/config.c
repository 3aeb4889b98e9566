/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config.h"

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

enum kind { ENDPOINTS, FILE_NAME, TEXT, FLAG, LEVEL, COUNT, SIZE, DURATION };

struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    const char *initial; /* the default as a person would write it; NULL: none */
    uint64_t min, max;   /* COUNT; SIZE in bytes; DURATION in ms */
    const char *help;
};

#define AT(member) offsetof(struct leat_config, member)
#define DAY_MS (24u * 3600u * 1000u)

static const struct key keys[] = {
    {"listen", ENDPOINTS, AT(listeners), NULL, 5671, 5672,
     "where clients connect: amqps://ADDRESS:PORT or amqp://ADDRESS:PORT; repeatable"},
    {"cert", FILE_NAME, AT(cert), NULL, 0, 0,
     "certificate and chain (PEM) that amqps:// listeners show"},
    {"key", FILE_NAME, AT(key), NULL, 0, 0, "private key (PEM) of the certificate"},
    {"backend", ENDPOINTS, AT(backends), NULL, 5671, 5672,
     "a broker: amqp://ADDRESS:PORT or amqps://ADDRESS:PORT; repeatable, taken in turn"},
    {"backend-ca", FILE_NAME, AT(backend_ca), NULL, 0, 0,
     "certificates (PEM) that amqps:// backends are verified against; default: the system's"},
    {"backend-name", TEXT, AT(backend_name), NULL, 0, 0,
     "name that the backends' certificates must be for, sent as SNI; default: the address"},
    {"workers", COUNT, AT(workers), NULL, 1, 256,
     "threads that carry sessions; default: one a core"},
    {"log-level", LEVEL, AT(log_level), "info", 0, 0, "error, warn, info, debug or trace"},
    {"trace", FLAG, AT(trace), NULL, 0, 0, "log a line for every frame, without payloads"},
    {"loopback_users", TEXT, AT(loopback_users), "guest", 0, 0,
     "users let in from this machine only, separated by commas; \"\": none"},
    {"tune.frame_max", SIZE, AT(frame_max), "128KiB", 4096, 16u * 1024u * 1024u,
     "largest frame offered to clients"},
    {"tune.channel_max", COUNT, AT(channel_max), "2047", 1, 65535, "channels offered to clients"},
    {"tune.heartbeat", DURATION, AT(heartbeat_ms), "60s", 0, 65535u * 1000u,
     "heartbeat interval offered to clients, whole seconds; 0 is off"},
    {"timeouts.tls", DURATION, AT(timeout_tls_ms), "5s", 100, DAY_MS,
     "for the TLS handshake, with a client and with a backend"},
    {"timeouts.handshake", DURATION, AT(timeout_handshake_ms), "10s", 100, DAY_MS,
     "for the AMQP handshake, with a client and with a backend"},
    {"timeouts.connect", DURATION, AT(timeout_connect_ms), "5s", 100, DAY_MS,
     "for connecting to one backend"},
    {"timeouts.search", DURATION, AT(timeout_search_ms), "12s", 100, DAY_MS,
     "for finding a backend, all attempts together"},
    {"timeouts.close", DURATION, AT(timeout_close_ms), "10s", 100, DAY_MS,
     "for the answer to a Close, before leat answers in its place"},
    {"timeouts.linger", DURATION, AT(timeout_linger_ms), "5s", 100, DAY_MS,
     "for a peer to end the connection after the last frame it was sent"},
    {"timeouts.flush", DURATION, AT(timeout_flush_ms), "60s", 100, DAY_MS,
     "for a peer to take what is queued for it when the other side has ended"},
    {"limits.sessions", COUNT, AT(limit_sessions), "0", 0, 10000000,
     "sessions at once; 0: as many as descriptors allow"},
    {"limits.handshakes", COUNT, AT(limit_handshakes), "4096", 1, 10000000,
     "connections at once that have not yet opened a session"},
    {"limits.initial_frame", SIZE, AT(limit_initial_frame_bytes), "8KiB", 4096, 1024u * 1024u,
     "largest frame before a client is let in; large tokens need more"},
    {"limits.initial_frames", COUNT, AT(limit_initial_frames), "16", 3, 10000,
     "frames that a client may send before it is let in"},
    {"limits.session_queue", SIZE, AT(limit_session_queue_bytes), "512KiB", 16u * 1024u,
     512u * 1024u, "bytes read at once, and so queued when the other side does not take them"},
    {"limits.queue", SIZE, AT(limit_queue_bytes), "256MiB", 1024u * 1024u,
     1024ull * 1024u * 1024u * 1024u, "bytes queued in all, from where on reads are kept short"},
    {"drain.close_after", DURATION, AT(drain_close_after_ms), "10s", 0, DAY_MS,
     "after SIGTERM sessions may end by themselves for this long"},
    {"drain.close_until", DURATION, AT(drain_close_until_ms), "25s", 0, DAY_MS,
     "when the last session has been sent Close, counted from SIGTERM"},
    {"drain.end", DURATION, AT(drain_end_ms), "30s", 0, DAY_MS,
     "when what is left is cut, counted from SIGTERM"},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static const struct key *find(struct leat_str name)
{
    for (size_t i = 0; i < KEYS; i++) {
        if (leat_str_equal(leat_str_of(keys[i].name), name))
            return &keys[i];
    }
    return NULL;
}

bool leat_config_has(struct leat_str name)
{
    return find(name) != NULL;
}

bool leat_config_is_flag(struct leat_str name)
{
    const struct key *key = find(name);
    return key != NULL && key->kind == FLAG;
}

/* The member of CONFIG that KEY describes; its type follows from the key's kind. */
static void *member(struct leat_config *config, const struct key *key)
{
    return (char *)config + key->offset;
}

static enum leat_status add_endpoint(struct leat_config *config, const struct key *key,
                                     struct leat_str value, struct leat_error *err)
{
    static const struct leat_str plain = LEAT_STR_INIT("amqp://"), tls = LEAT_STR_INIT("amqps://");
    struct leat_endpoints *list = member(config, key);
    struct leat_endpoint endpoint = {.tls = leat_str_starts(value, tls)};

    if (!endpoint.tls && !leat_str_starts(value, plain))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "--%s: expected amqp://ADDRESS:PORT or amqps://ADDRESS:PORT, "
                              "got \"%.*s\"",
                              key->name, (int)value.len, value.ptr);
    if (list->count == LEAT_CONFIG_ENDPOINTS_MAX)
        return leat_error_set(err, LEAT_EUSAGE, 0, "--%s: at most %d are allowed", key->name,
                              LEAT_CONFIG_ENDPOINTS_MAX);
    size_t scheme = endpoint.tls ? tls.len : plain.len;
    struct leat_str address = {value.ptr + scheme, value.len - scheme};
    uint16_t port = (uint16_t)(endpoint.tls ? key->min : key->max);
    struct leat_error why;
    if (leat_addr_parse(address, port, &endpoint.addr, &why) != LEAT_OK)
        return leat_error_set(err, LEAT_EUSAGE, 0, "--%s \"%.*s\": %s", key->name, (int)value.len,
                              value.ptr, why.text);
    if (list == &config->backends && leat_addr_port(&endpoint.addr) == 0)
        return leat_error_set(err, LEAT_EUSAGE, 0, "--%s \"%.*s\": a backend has a port", key->name,
                              (int)value.len, value.ptr);
    list->at[list->count++] = endpoint;
    return LEAT_OK;
}

static enum leat_status set_text(struct leat_config *config, const struct key *key,
                                 struct leat_str value, struct leat_error *err)
{
    char **text = member(config, key);
    char *copy;

    if ((value.len > 0 && memchr(value.ptr, '\0', value.len) != NULL) ||
        (key->kind == FILE_NAME && value.len == 0))
        return leat_error_set(err, LEAT_EUSAGE, 0, "--%s: expected %s", key->name,
                              key->kind == FILE_NAME ? "the name of a file" : "text");
    copy = leat_mem_dup(value);
    if (copy == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    leat_mem_free(*text);
    *text = copy;
    return LEAT_OK;
}

/* A value is refused rather than ignored: "--trace=off" would switch it on. */
static enum leat_status set_flag(struct leat_config *config, const struct key *key,
                                 struct leat_str value, struct leat_error *err)
{
    if (value.len > 0)
        return leat_error_set(err, LEAT_EUSAGE, 0, "--%s: takes no value, got \"%.*s\"", key->name,
                              (int)value.len, value.ptr);
    *(bool *)member(config, key) = true;
    return LEAT_OK;
}

static enum leat_status set_level(struct leat_config *config, const struct key *key,
                                  struct leat_str value, struct leat_error *err)
{
    enum leat_log_level level;

    if (!leat_log_level_find(value, &level))
        return leat_error_set(err, LEAT_EUSAGE, 0, "--%s: expected %s, got \"%.*s\"", key->name,
                              key->help, (int)value.len, value.ptr);
    *(uint64_t *)member(config, key) = level;
    return LEAT_OK;
}

static void write_amount(char *buf, size_t cap, enum kind kind, uint64_t amount)
{
    const char *unit = "";

    if (kind == SIZE) {
        static const char *const units[] = {" bytes", "KiB", "MiB", "GiB"};
        size_t u = 0;
        for (; u < 3 && amount != 0 && amount % 1024 == 0; u++)
            amount /= 1024;
        unit = units[u];
    } else if (kind == DURATION) {
        unit = (amount % 1000 != 0) ? "ms" : (amount % 3600000 != 0 || amount == 0) ? "s" : "h";
        amount /= (*unit == 'm') ? 1 : (*unit == 's') ? 1000 : 3600000;
    }
    (void)snprintf(buf, cap, "%llu%s", (unsigned long long)amount, unit);
}

static enum leat_status set_number(struct leat_config *config, const struct key *key,
                                   struct leat_str value, struct leat_error *err)
{
    uint64_t number = 0;
    bool parsed;

    if (key->kind == DURATION)
        parsed = leat_parse_duration_ms(value, &number);
    else if (key->kind == SIZE)
        parsed = leat_parse_size(value, &number);
    else
        parsed = leat_parse_u64(value, &number);
    if (!parsed || number < key->min || number > key->max) {
        char min[32], max[32];
        write_amount(min, sizeof(min), key->kind, key->min);
        write_amount(max, sizeof(max), key->kind, key->max);
        return leat_error_set(err, LEAT_EUSAGE, 0, "--%s: expected %s to %s, got \"%.*s\"",
                              key->name, min, max, (int)value.len, value.ptr);
    }
    *(uint64_t *)member(config, key) = number;
    return LEAT_OK;
}

static enum leat_status set(struct leat_config *config, const struct key *key,
                            struct leat_str value, struct leat_error *err)
{
    switch (key->kind) {
    case ENDPOINTS:
        return add_endpoint(config, key, value, err);
    case FILE_NAME:
    case TEXT:
        return set_text(config, key, value, err);
    case FLAG:
        return set_flag(config, key, value, err);
    case LEVEL:
        return set_level(config, key, value, err);
    case COUNT:
    case SIZE:
    case DURATION:
        return set_number(config, key, value, err);
    }
    return leat_error_set(err, LEAT_EUSAGE, 0, "--%s: unknown kind", key->name);
}

enum leat_status leat_config_new(struct leat_config **out, struct leat_error *err)
{
    struct leat_config *config = leat_mem_zalloc(sizeof(*config));

    if (config == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    for (size_t i = 0; i < KEYS; i++) {
        if (keys[i].initial == NULL)
            continue;
        enum leat_status status = set(config, &keys[i], leat_str_of(keys[i].initial), err);
        if (status != LEAT_OK) {
            leat_config_free(config);
            return status;
        }
    }
    *out = config;
    return LEAT_OK;
}

void leat_config_free(struct leat_config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < KEYS; i++) {
        if (keys[i].kind == FILE_NAME || keys[i].kind == TEXT)
            leat_mem_free(*(char **)member(config, &keys[i]));
    }
    leat_mem_free(config);
}

enum leat_status leat_config_set(struct leat_config *config, struct leat_str name,
                                 struct leat_str value, struct leat_error *err)
{
    const struct key *key = find(name);

    if (key == NULL)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "unknown option --%.*s; see leat --help for those there are",
                              (int)name.len, name.ptr);
    return set(config, key, value, err);
}

static bool any_tls(const struct leat_endpoints *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->at[i].tls)
            return true;
    }
    return false;
}

/* Whether a name in LIST begins or ends with a space, which is hardly a part of it: such a user
 * would be let in from everywhere. */
static bool has_spaced_name(const char *list)
{
    size_t len = strlen(list);

    return strstr(list, ", ") != NULL || strstr(list, " ,") != NULL || *list == ' ' ||
           (len > 0 && list[len - 1] == ' ');
}

enum leat_status leat_config_finish(const struct leat_config *config, struct leat_error *err)
{
    if (config->listeners.count == 0)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "no --listen: say where clients connect, such as "
                              "--listen amqps://0.0.0.0:5671");
    if (config->backends.count == 0)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "no --backend: say where the broker is, such as "
                              "--backend amqp://127.0.0.1:5672");
    if (any_tls(&config->listeners) && (config->cert == NULL || config->key == NULL))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "an amqps:// listener needs --cert FILE and --key FILE");
    if ((config->cert == NULL) != (config->key == NULL))
        return leat_error_set(err, LEAT_EUSAGE, 0, "--cert FILE and --key FILE need each other");
    if (!any_tls(&config->backends) && (config->backend_ca != NULL || config->backend_name != NULL))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "--backend-ca and --backend-name need an amqps:// --backend");
    if (config->backend_name != NULL && *config->backend_name == '\0')
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "--backend-name: expected a name that certificates can be for");
    if (has_spaced_name(config->loopback_users))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "--loopback_users: expected names separated by commas, without "
                              "spaces around these, got \"%s\"",
                              config->loopback_users);
    if (config->heartbeat_ms % 1000 != 0)
        return leat_error_set(err, LEAT_EUSAGE, 0, "--tune.heartbeat: expected whole seconds");
    if (config->drain_close_until_ms < config->drain_close_after_ms ||
        config->drain_end_ms < config->drain_close_until_ms)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "expected --drain.close_after <= --drain.close_until <= --drain.end");
    return LEAT_OK;
}

static const char *placeholder(enum kind kind)
{
    switch (kind) {
    case ENDPOINTS:
        return " URL";
    case FILE_NAME:
        return " FILE";
    case TEXT:
        return " TEXT";
    case FLAG:
        return "";
    case LEVEL:
        return " LEVEL";
    case COUNT:
        return " N";
    case SIZE:
        return " SIZE";
    case DURATION:
        return " TIME";
    }
    return "";
}

void leat_config_print_help(FILE *file)
{
    for (size_t i = 0; i < KEYS; i++) {
        char option[64];
        (void)snprintf(option, sizeof(option), "--%s%s", keys[i].name, placeholder(keys[i].kind));
        (void)fprintf(file, "  %-30s %s", option, keys[i].help);
        if (keys[i].initial != NULL)
            (void)fprintf(file, " [%s]", keys[i].initial);
        (void)fputc('\n', file);
    }
}

bool leat_config_is_loopback_user(const struct leat_config *config, struct leat_str user)
{
    const char *at = config->loopback_users;

    while (*at != '\0') {
        size_t len = strcspn(at, ",");
        if (leat_str_equal((struct leat_str){at, len}, user))
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}
