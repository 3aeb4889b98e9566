/* The tables of all keys: what a configuration can say. SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "proxy/config_keys.h"

#define DAY_MS (24u * 3600u * 1000u)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define AT(member) offsetof(struct leat_config, member)
static const struct leat_key config_keys[] = {
    {"workers", NULL, LEAT_KEY_COUNT, AT(workers), NULL, 1, 256,
     "threads that carry sessions; default: one a core"},
    {"logging.level", "log-level", LEAT_KEY_CHOICE, AT(log_level), "info", 0, 0, "what is logged",
     leat_log_levels},
    {"logging.trace", "trace", LEAT_KEY_FLAG, AT(trace), NULL, 0, 0,
     "log a line for every frame, without payloads"},
    {"control.socket", "control-socket", LEAT_KEY_FILE, AT(control_socket), NULL, 0, 0,
     "the socket that leatctl asks over, its owner's only; none without; no reload changes it"},
    {"tls.recheck", NULL, LEAT_KEY_DURATION, AT(tls_recheck_ms), "10s", 100, DAY_MS,
     "how long files of TLS count as unchanged; those of backends are then read again"},
    {"tls.contexts", NULL, LEAT_KEY_COUNT, AT(tls_contexts), "64", 1, 1024,
     "TLS contexts for backends that are kept"},
    {"loopback_users", NULL, LEAT_KEY_NAMES, AT(loopback_users), "guest", 0, 0,
     "users let in from this machine only"},
    {"dns.servers", NULL, LEAT_KEY_NAMES, AT(dns_server_names), NULL, 0, 0,
     "who is asked, as 10.0.0.2 or 127.0.0.1:5353, at most 8; default: those of /etc/resolv.conf"},
    {"dns.timeout", NULL, LEAT_KEY_DURATION, AT(dns_timeout_ms), "1s", 100, 60000,
     "for a server to answer, before the next one is asked"},
    {"dns.tries", NULL, LEAT_KEY_COUNT, AT(dns_tries), "2", 1, 10,
     "how often each server is asked before the name can't be looked up"},
    {"dns.ttl_max", NULL, LEAT_KEY_DURATION, AT(dns_ttl_max_ms), "1h", 1000, DAY_MS,
     "how long an answer is used at most, whatever it says itself"},
    {"tune.frame_max", NULL, LEAT_KEY_SIZE, AT(frame_max), "128KiB", 4096, 16u * 1024u * 1024u,
     "largest frame offered to clients"},
    {"tune.channel_max", NULL, LEAT_KEY_COUNT, AT(channel_max), "2047", 1, 65535,
     "channels offered to clients"},
    {"tune.heartbeat", NULL, LEAT_KEY_DURATION, AT(heartbeat_ms), "60s", 0, 65535u * 1000u,
     "heartbeat interval offered to clients, whole seconds; 0 is off"},
    {"timeouts.proxy", NULL, LEAT_KEY_DURATION, AT(timeout_proxy_ms), "3s", 100, DAY_MS,
     "for the PROXY header of a client that has to send one"},
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
     "a broker: amqp://HOST:PORT or amqps://HOST:PORT; repeatable, taken in turn"},
    {"backends.NAME.ca", "backend-ca", LEAT_KEY_FILE, AT(backend_ca), NULL, 0, 0,
     "certificates (PEM) that amqps:// backends are verified against; default: the system's"},
    {"backends.NAME.name", "backend-name", LEAT_KEY_TEXT, AT(backend_name), NULL, 0, 0,
     "name that the backends' certificates must be for, sent as SNI; default: the address"},
};
#undef AT

static const char *const tls_versions[] = {"TLSv1.2", "TLSv1.3", NULL};
static const char *const proxy_versions[] = {"none", "v1", "v2", NULL};
static const char *const client_certificates[] = {"none", "optional", "required", NULL};

/* What every item with TLS has: struct leat_tls_settings. */
/* clang-format off */
#define TLS_KEYS                                                                                   \
    {"cert", "", LEAT_KEY_FILE, AT(tls.cert), NULL, 0, 0,                                          \
     "certificate and chain (PEM) that is shown; goes with `key`"},                                \
    {"key", "", LEAT_KEY_FILE, AT(tls.key), NULL, 0, 0,                                            \
     "private key (PEM) of the certificate"},                                                      \
    {"key_passphrase", "", LEAT_KEY_FILE, AT(tls.key_passphrase), NULL, 0, 0,                      \
     "the file whose first line decrypts the key"},                                                \
    {"crl", "", LEAT_KEY_FILE, AT(tls.crl), NULL, 0, 0,                                            \
     "revocation lists (PEM), one of every authority in the other side's chain"},                  \
    {"min_version", "", LEAT_KEY_CHOICE, AT(tls.min_version), "TLSv1.2", 0, 0,                     \
     "oldest version of TLS", tls_versions},                                                       \
    {"max_version", "", LEAT_KEY_CHOICE, AT(tls.max_version), "TLSv1.3", 0, 0,                     \
     "newest version of TLS", tls_versions},                                                       \
    {"ciphersuites", "", LEAT_KEY_TEXT, AT(tls.ciphersuites), NULL, 0, 0,                          \
     "of TLS 1.3, separated by colons; default: AES-128-GCM, AES-256-GCM, ChaCha20"},              \
    {"ciphers", "", LEAT_KEY_TEXT, AT(tls.ciphers), NULL, 0, 0,                                    \
     "of TLS 1.2, as in openssl-ciphers(1); default: ECDHE with AES-GCM or ChaCha20"},             \
    {"groups", "", LEAT_KEY_TEXT, AT(tls.groups), NULL, 0, 0,                                      \
     "for the exchange of keys, separated by colons; default: `X25519:P-256`"}

/* What every certificate of a listener has. */
#define SERVER_TLS_KEYS                                                                            \
    TLS_KEYS,                                                                                      \
    {"tickets", "", LEAT_KEY_FLAG, AT(tls.tickets), "true", 0, 0,                                  \
     "whether clients may resume a session; never where they show certificates"},                  \
    {"client_ca", "", LEAT_KEY_FILE, AT(tls.ca), NULL, 0, 0,                                       \
     "authorities (PEM) of clients' certificates"},                                                \
    {"client_certificate", "", LEAT_KEY_CHOICE, AT(tls.client_certificate), NULL, 0, 0,            \
     "whether clients show a certificate; default: required if there is a `client_ca`",            \
     client_certificates}
/* clang-format on */

#define AT(member) offsetof(struct leat_listener_config, member)
static const struct leat_key listener_keys[] = {
    {"address", "", LEAT_KEY_ENDPOINT, AT(endpoint), NULL, 5671, 5672,
     "where clients connect, with TLS (amqps) or without; port 0 is any that is free"},
    SERVER_TLS_KEYS,
    {"certificates", "", LEAT_KEY_NAMES, AT(certificate_names), NULL, 0, 0,
     "further ones, under their names in `certificates`, for clients that ask for another name"},
    {"mode", "", LEAT_KEY_TEXT, AT(mode), NULL, 0, 0,
     "who may connect to a UNIX socket, as in chmod(1); default: `0660`, its user and group"},
    {"proxy_protocol", "", LEAT_KEY_NAMES, AT(proxy_names), NULL, 0, 0,
     "the proxies that connect here, as 10.0.0.0/8, 192.0.2.1 or, over a UNIX socket, `unix`: they "
     "must send a PROXY header, and nobody else is let in"},
};
#undef AT
_Static_assert(COUNT_OF(listener_keys) <= LEAT_CONFIG_TLS_KEYS_MAX, "room for their lines");

#define AT(member) offsetof(struct leat_certificate_config, member)
static const struct leat_key certificate_keys[] = {
    SERVER_TLS_KEYS,
    {"names", "", LEAT_KEY_NAMES, AT(server_names), NULL, 0, 0,
     "names that clients ask for (SNI) to get it, also `*.example.com`; default: those in the "
     "certificate"},
};
#undef AT
_Static_assert(COUNT_OF(certificate_keys) <= LEAT_CONFIG_TLS_KEYS_MAX, "room for their lines");

#define AT(member) offsetof(struct leat_backend_config, member)
static const struct leat_key backend_keys[] = {
    {"address", "", LEAT_KEY_ENDPOINT, AT(endpoint), NULL, 5671, 5672,
     "where the broker is, with TLS (amqps) or without"},
    {"ca", "", LEAT_KEY_FILE, AT(tls.ca), NULL, 0, 0,
     "certificates (PEM) that an amqps:// backend is verified against; default: the system's"},
    {"name", "", LEAT_KEY_TEXT, AT(verify_name), NULL, 0, 0,
     "name that the certificate of an amqps:// backend must be for, sent as SNI; default: the "
     "address"},
    TLS_KEYS,
    {"insecure_skip_verify", "", LEAT_KEY_FLAG, AT(insecure_skip_verify), NULL, 0, 0,
     "take any certificate of the backend: whoever can reroute traffic reads the passwords"},
    {"weight", "", LEAT_KEY_COUNT, AT(weight), "1", 1, 100,
     "how many sessions it gets in a round of its farm"},
    {"proxy_protocol", "", LEAT_KEY_CHOICE, AT(proxy_protocol), "none", 0, 0,
     "the PROXY header that tells the broker who the client is", proxy_versions},
};
#undef AT
_Static_assert(COUNT_OF(backend_keys) <= LEAT_CONFIG_TLS_KEYS_MAX, "room for their lines");

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
const struct leat_key_table leat_certificate_table = {COUNT_OF(certificate_keys), certificate_keys};
const struct leat_key_table leat_backend_table = {COUNT_OF(backend_keys), backend_keys};
const struct leat_key_table leat_farm_table = {COUNT_OF(farm_keys), farm_keys};
const struct leat_key_table leat_route_table = {COUNT_OF(route_keys), route_keys};

const struct leat_section leat_sections[LEAT_SECTIONS] = {
    {"listeners", LEAT_SECTION_LISTENERS, &leat_listener_table,
     "A list of where clients connect, at least one."},
    {"certificates", LEAT_SECTION_CERTIFICATES, &leat_certificate_table,
     "Further certificates for listeners with TLS, each under a name of your choice. What one does "
     "not say is as its listener says. A name is no boundary: clients that ask for another one, or "
     "for "
     "none, meet that one's rules and reach the same vhosts."},
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
    {"tls", LEAT_SECTION_KEYS, &leat_config_table, "What holds for all TLS; no reload changes it."},
    {"dns", LEAT_SECTION_KEYS, &leat_config_table,
     "How the names of backends are looked up. No reload changes it."},
    {"tune", LEAT_SECTION_KEYS, &leat_config_table,
     "What clients are offered in Tune; a broker that offers less lowers it."},
    {"timeouts", LEAT_SECTION_KEYS, &leat_config_table, "How long leat waits."},
    {"limits", LEAT_SECTION_KEYS, &leat_config_table, "What clients can make leat hold."},
    {"drain", LEAT_SECTION_KEYS, &leat_config_table, "How leat stops."},
};
