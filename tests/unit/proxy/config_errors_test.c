/*
 * Tests of what proxy/config_yaml.h and leat_config_finish() refuse, word by word.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config_rig.h"

struct wrong {
    const char *text, *sentence;
};

static void refuse_all(const struct wrong *wrong, size_t count)
{
    for (size_t i = 0; i < count; i++)
        config_rig_refuse(wrong[i].text, strlen(wrong[i].text), wrong[i].sentence);
}

#define REFUSE_ALL(list) refuse_all(list, sizeof(list) / sizeof((list)[0]))

static void values_are_judged(void **state)
{
    static const struct wrong wrong[] = {
        {"\n\ntimeouts:\n  tls: '0'\n", "leat.yaml:4: timeouts.tls: expected 100ms to 24h, got "
                                        "\"0\""},
        {"timeouts: {tls: 25h}\n", "leat.yaml:1: timeouts.tls: expected 100ms to 24h, got \"25h\""},
        {"timeouts: {tls: }\n", "leat.yaml:1: timeouts.tls: expected 100ms to 24h, got nothing"},
        {"timeouts: {tls: ~}\n", "leat.yaml:1: timeouts.tls: expected 100ms to 24h, got ~, which "
                                 "is nothing unless it is quoted"},
        {"timeouts: {tls: [5s]}\n", "leat.yaml:1: timeouts.tls: expected 100ms to 24h, got a list"},
        {"timeouts: {tls: {a: b}}\n",
         "leat.yaml:1: timeouts.tls: expected 100ms to 24h, got a map"},
        {NEEDED "control: {socket: "
                "/123456789/123456789/123456789/123456789/123456789/123456789/123456789/123456789/"
                "123456789/123456789/1234567}\n",
         "leat.yaml:4: control.socket: the path of a UNIX socket can have no more than 107 bytes, "
         "this one has 108: choose a shorter one"},
        {"tune: {frame_max: 1KiB}\n",
         "leat.yaml:1: tune.frame_max: expected 4KiB to 16MiB, got \"1KiB\""},
        {"workers: 257\n", "leat.yaml:1: workers: expected 1 to 256, got \"257\""},
        {"workers: \"a\\nb\\\"\"\n", "leat.yaml:1: workers: expected 1 to 256, got "
                                     "\"a\\x0ab\\\"\""},
        {"workers:\n\n\n  0\n", "leat.yaml:4: workers: expected 1 to 256, got \"0\""},
        {"logging: {level: loud}\n",
         "leat.yaml:1: logging.level: expected error, warn, info, debug or trace, got \"loud\""},
        {"logging: {trace: yes}\n",
         "leat.yaml:1: logging.trace: expected true or false, got \"yes\""},
        {"loopback_users: guest\n",
         "leat.yaml:1: loopback_users: expected a list of names, got \"guest\""},
        {"loopback_users: [a,\n  [b]]\n",
         "leat.yaml:2: loopback_users: expected a name, got a list"},
        {"loopback_users: ['']\n", "leat.yaml:1: loopback_users: expected a name, got \"\""},
        {"loopback_users: [null]\n", "leat.yaml:1: loopback_users: expected a name, got null, "
                                     "which is nothing unless it is quoted"},
        {"loopback_users: ['a ']\n",
         "leat.yaml:1: loopback_users: expected a name without spaces around it, got \"a \""},
        {"loopback_users: [\"a\\0b\"]\n",
         "leat.yaml:1: loopback_users: expected a name, got \"a\\x00b\""},
        {"listeners:\n- address: http://x\n",
         "leat.yaml:2: listeners[0].address: expected amqp[s]://HOST:PORT or "
         "amqp[s]+unix:///PATH, got \"http://x\""},
        {"listeners:\n- address: amqp://127.0.0.1\n- address: amqp://localhost\n",
         "leat.yaml:3: listeners[1].address: a listener has a numeric address, such as 0.0.0.0, "
         "127.0.0.1 or [::], and no name, got \"localhost\""},
        {"listeners: [{cert: ''}]\n",
         "leat.yaml:1: listeners[0].cert: expected the name of a file, got \"\""},
        {"listeners: [{cert: \"\\0\"}]\n",
         "leat.yaml:1: listeners[0].cert: expected the name of a file, got \"\\x00\""},
        {"backends:\n  r1:\n    weight: 0\n",
         "leat.yaml:3: backends.r1.weight: expected 1 to 100, got \"0\""},
        {"backends: {r1: {weight: 101}}\n",
         "leat.yaml:1: backends.r1.weight: expected 1 to 100, got \"101\""},
    };

    (void)state;
    REFUSE_ALL(wrong);
}

static void unknown_keys_are_refused(void **state)
{
    static const struct wrong wrong[] = {
        {"timeouts:\n\n\n  tsl: 5s\n", "leat.yaml:4: timeouts.tsl: unknown key; did you mean "
                                       "\"tls\"?"},
        {"timeout: {}\n", "leat.yaml:1: timeout: unknown key; did you mean \"timeouts\"?"},
        {"worker: 1\n", "leat.yaml:1: worker: unknown key; did you mean \"workers\"?"},
        {"drain: {anything: 1s}\n", "leat.yaml:1: drain.anything: unknown key; known: "
                                    "\"close_after\", \"close_until\", \"end\""},
        {"x: 1\n", "leat.yaml:1: x: unknown key; docs/configuration.md has those there are"},
        {"timeouts.tls: 5s\n",
         "leat.yaml:1: \"timeouts.tls\": unknown key; did you mean \"timeouts\"?"},
        {"logging: {log-level: info}\n",
         "leat.yaml:1: logging.log-level: unknown key; known: \"level\", \"trace\""},
        {"listeners: [{adress: x}]\n",
         "leat.yaml:1: listeners[0].adress: unknown key; did you mean \"address\"?"},
        {"backends:\n  r1: {wieght: 1}\n",
         "leat.yaml:2: backends.r1.wieght: unknown key; did you mean \"weight\"?"},
        {"farms: {main: {backend: [a]}}\n",
         "leat.yaml:1: farms.main.backend: unknown key; did you mean \"backends\"?"},
        {"vhosts: {\"logs of all\": {farms: a}}\n",
         "leat.yaml:1: vhosts.\"logs of all\".farms: unknown key; did you mean \"farm\"?"},
        {"default: {\"\\x1b\": a}\n",
         "leat.yaml:1: default.\"\\x1b\": unknown key; known: \"farm\", \"backend\""},
    };

    (void)state;
    REFUSE_ALL(wrong);
}

static void nothing_is_there_twice(void **state)
{
    static const struct wrong wrong[] = {
        {"workers: 1\nworkers: 1\n", "leat.yaml:2: workers: is there already, in line 1"},
        {"tune: {}\ndrain: {}\ntune: {}\n", "leat.yaml:3: tune: is there already, in line 1"},
        {"timeouts:\n  tls: 5s\n  close: 5s\n  tls: 6s\n",
         "leat.yaml:4: timeouts.tls: is there already, in line 2"},
        {"listeners:\n  - cert: a\n    cert: b\n",
         "leat.yaml:3: listeners[0].cert: is there already, in line 2"},
        {"backends:\n  a: {}\n  a: {}\n", "leat.yaml:3: backends.a: is there already, in line 2"},
        {"farms:\n  a: {}\n  b: {}\n  a: {}\n",
         "leat.yaml:4: farms.a: is there already, in line 2"},
        {NEEDED "vhosts:\n  a: {backend: r1}\n  b: {backend: r1}\n  a: {backend: r1}\n",
         "leat.yaml:7: vhosts.a: is there already, in line 5"},
        {"default: {farm: a}\ndefault: {farm: b}\n",
         "leat.yaml:2: default: is there already, in line 1"},
        {"default: {farm: a,\n farm: b}\n",
         "leat.yaml:2: default.farm: is there already, in line 1"},
    };

    (void)state;
    REFUSE_ALL(wrong);
}

static void kinds_are_told_apart(void **state)
{
    static const struct wrong wrong[] = {
        {"- a\n", "leat.yaml:1: expected a map, got a list"},
        {"hello\n", "leat.yaml:1: expected a map, got \"hello\""},
        {"---\n", "leat.yaml:2: expected a map, got nothing"},
        {"", "leat.yaml:1: there is no configuration in the file"},
        {"# nothing\n", "leat.yaml:2: there is no configuration in the file"},
        {"timeouts: []\n", "leat.yaml:1: timeouts: expected a map, got a list"},
        {"timeouts:\n", "leat.yaml:1: timeouts: expected a map, got nothing"},
        {"timeouts: 5s\n", "leat.yaml:1: timeouts: expected a map, got \"5s\""},
        {"listeners: {}\n", "leat.yaml:1: listeners: expected a list, got a map"},
        {"listeners:\n- amqp://127.0.0.1\n",
         "leat.yaml:2: listeners[0]: expected a map, got \"amqp://127.0.0.1\""},
        {"backends: [a]\n", "leat.yaml:1: backends: expected a map, got a list"},
        {"backends:\n  r1: amqp://127.0.0.1\n",
         "leat.yaml:2: backends.r1: expected a map, got \"amqp://127.0.0.1\""},
        {"backends:\n  r1:\n", "leat.yaml:2: backends.r1: expected a map, got nothing"},
        {"default: main\n", "leat.yaml:1: default: expected a map, got \"main\""},
        {"? [a]\n: b\n", "leat.yaml:1: expected a name, got a list"},
        {"? {a: b}\n: b\n", "leat.yaml:1: expected a name, got a map"},
        {"~: b\n", "leat.yaml:1: expected a name, got ~, which is nothing unless it is quoted"},
        {"?\n: b\n", "leat.yaml:1: expected a name, got nothing"},
        {"vhosts: {null: {}}\n", "leat.yaml:1: vhosts: expected a name, got null, which is "
                                 "nothing unless it is quoted"},
        {"backends: {'': {}}\n", "leat.yaml:1: backends.\"\": expected a name, got \"\""},
        {"farms: {\"a\\0\": {}}\n",
         "leat.yaml:1: farms.\"a\\x00\": expected a name without a NUL byte"},
        {"vhosts: {\"a\\0\": {}}\n",
         "leat.yaml:1: vhosts.\"a\\x00\": expected a name without a NUL byte"},
        {"workers: "
         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
         "leat.yaml:1: workers: expected 1 to 256, got a list"},
    };

    (void)state;
    REFUSE_ALL(wrong);
}

static void tricks_of_yaml_are_refused(void **state)
{
    static const struct wrong wrong[] = {
        {"workers: &a 1\n", "leat.yaml:1: workers: anchors (&name) are not taken: write it out"},
        {"tune: &a {}\n", "leat.yaml:1: tune: anchors (&name) are not taken: write it out"},
        {"loopback_users: &a []\n",
         "leat.yaml:1: loopback_users: anchors (&name) are not taken: write it out"},
        {"\nworkers: *a\n", "leat.yaml:2: workers: aliases (*name) are not taken: write it out"},
        {"workers: !!int 1\n", "leat.yaml:1: workers: tags (!name) are not taken"},
        {"tune: !x {}\n", "leat.yaml:1: tune: tags (!name) are not taken"},
        {"loopback_users: ! []\n", "leat.yaml:1: loopback_users: tags (!name) are not taken"},
        {"<<: {workers: 1}\n",
         "leat.yaml:1: \"<<\": unknown key; docs/configuration.md has those there are"},
        {NEEDED "---\nworkers: 1\n", "leat.yaml:4: expected one document, got a second one"},
        {"workers: 1\n\ttune: {}\n",
         "leat.yaml:2: not valid YAML: found a tab character that violates indentation (while "
         "scanning a plain scalar)"},
        {"tune: {frame_max: 4KiB\n",
         "leat.yaml:2: not valid YAML: did not find expected ',' or '}' (while parsing a flow "
         "mapping)"},
        {"workers: \"1\n",
         "leat.yaml:2: not valid YAML: found unexpected end of stream (while scanning a quoted "
         "scalar)"},
        {"%YAML 3.0\n---\nworkers: 1\n",
         "leat.yaml:1: not valid YAML: found incompatible YAML document"},
        {"workers: 1\n]\n",
         "leat.yaml:2: not valid YAML: did not find expected key (while parsing a block mapping)"},
    };

    (void)state;
    REFUSE_ALL(wrong);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    static const char nul[] = "workers: 1\n# \0\n", latin[] = "workers: 1\n\n# \xfc\n",
                      wide[] = "\xff\xfew\0", bell[] = "workers: \a\n";

    (void)state;
    config_rig_refuse(nul, sizeof(nul) - 1,
                      "leat.yaml:2: not a text in UTF-8: control characters are not allowed");
    config_rig_refuse(latin, sizeof(latin) - 1,
                      "leat.yaml:3: not a text in UTF-8: invalid leading UTF-8 octet");
    config_rig_refuse(wide, sizeof(wide) - 1,
                      "leat.yaml:1: not a text in UTF-8: invalid leading UTF-8 octet");
    config_rig_refuse(bell, sizeof(bell) - 1,
                      "leat.yaml:1: not a text in UTF-8: control characters are not allowed");
}

#define BIG (1024u * 1024u)

static void sizes_are_bounded(void **state)
{
    static char text[BIG + 1];

    (void)state;
    memset(text, '#', BIG + 1);
    memcpy(text, NEEDED, sizeof(NEEDED) - 1);
    leat_config_free(config_rig_take_bytes(text, BIG));
    config_rig_refuse(text, BIG + 1, "leat.yaml: is larger than 1 MiB");
    memset(text, '[', BIG);
    config_rig_refuse(text, BIG, "leat.yaml:1: expected a map, got a list");
    memcpy(text, "vhosts: {", 9);
    memset(text + 9, 'x', 256);
    memcpy(text + 9 + 256, ": {}}", 6);
    config_rig_refuse(text, strlen(text),
                      "leat.yaml:1: vhosts: expected a name of at most 255 bytes, got 256");
}

static void lists_are_bounded(void **state)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    (void)state;
    (void)fputs("backends:\n", file);
    for (int i = 0; i <= LEAT_CONFIG_BACKENDS_MAX; i++)
        (void)fprintf(file, "  r%d: {}\n", i);
    assert_int_equal(fclose(file), 0);
    config_rig_refuse(text, len, "leat.yaml:66: backends.r64: at most 64 are allowed");
    free(text);
    file = open_memstream(&text, &len);
    (void)fputs("listeners:\n", file);
    for (int i = 0; i <= LEAT_CONFIG_LISTENERS_MAX; i++)
        (void)fputs("- {}\n", file);
    assert_int_equal(fclose(file), 0);
    config_rig_refuse(text, len, "leat.yaml:66: listeners[64]: at most 64 are allowed");
    free(text);
}

static void files_that_are_none_are_refused(void **state)
{
    struct leat_config *config = NULL;
    struct leat_error err;

    (void)state;
    assert_int_equal(config_rig_load("none.yaml", &config, &err), LEAT_EIO);
    assert_string_equal(err.text, "none.yaml: cannot be read: No such file or directory");
    leat_config_free(config);
    assert_int_equal(config_rig_load(".", &config, &err), LEAT_EIO);
    assert_string_equal(err.text, ".: cannot be read: Is a directory");
    leat_config_free(config);
    assert_int_equal(config_rig_load("a\nb", &config, &err), LEAT_EIO);
    assert_string_equal(err.text, "a?b: cannot be read: No such file or directory");
    leat_config_free(config);
}

static void the_whole_is_judged(void **state)
{
    static const struct wrong wrong[] = {
        {"workers: 1\n", "leat.yaml: listeners: expected at least one: say where clients connect"},
        {"listeners: []\n",
         "leat.yaml: listeners: expected at least one: say where clients connect"},
        {"listeners: [{address: 'amqp://127.0.0.1'}]\n",
         "leat.yaml: backends: expected at least one: say where the broker is"},
        {"listeners:\n- address: amqp://127.0.0.1\n\n-\n  key: k\n",
         "leat.yaml:5: listeners[1].address: is missing"},
        {"listeners:\n- address: amqps://127.0.0.1\n  key: k\n",
         "leat.yaml:2: listeners[0].cert: an amqps:// listener needs one"},
        {"listeners:\n- address: amqps://127.0.0.1\n  cert: k\n",
         "leat.yaml:2: listeners[0].key: an amqps:// listener needs one"},
        {"listeners:\n- address: amqp://127.0.0.1\n  cert: k\n",
         "leat.yaml:3: listeners[0].cert: only an amqps:// listener has one"},
        {"listeners:\n- address: amqp://127.0.0.1\n  key: k\n",
         "leat.yaml:3: listeners[0].key: only an amqps:// listener has one"},
        {NEEDED "  r2: {}\n", "leat.yaml:4: backends.r2.address: is missing"},
        {"listeners:\n- address: amqp://127.0.0.1\n- address: amqps://127.0.0.1:5672\n",
         "leat.yaml:3: listeners[1].address: 127.0.0.1:5672 is there twice"},
        {NEEDED "  r2: {address: 'amqp://127.0.0.1'}\n",
         "leat.yaml:4: backends.r2.address: it is a listener of this leat: sessions would go "
         "round in a circle"},
        {"listeners: [{address: 'amqp://0.0.0.0:7'}]\nbackends:\n  a: {address: "
         "'amqp://127.0.0.3:7'}\n",
         "leat.yaml:3: backends.a.address: it is a listener of this leat: sessions would go "
         "round in a circle"},
        {NEEDED "  r2: {address: 'amqp://guest:secret@10.0.0.2'}\n",
         "leat.yaml:4: backends.r2.address: no user or password belongs here, each client "
         "brings its own; expected amqp[s]://HOST:PORT or amqp[s]+unix:///PATH"},
        {"listeners:\n- address: rabbit://guest:secret@10.0.0.2\n",
         "leat.yaml:2: listeners[0].address: no user or password belongs here, each client "
         "brings its own; expected amqp[s]://HOST:PORT or amqp[s]+unix:///PATH"},
        {"backends: {b: 'amqp://guest:secret@10.0.0.2'}\n",
         "leat.yaml:1: backends.b: expected a map, got a URL with a user"},
        {NEEDED "  r2: {address: 'amqp://127.0.0.1:0'}\n",
         "leat.yaml:4: backends.r2.address: a backend has a port, got 0"},
        {NEEDED "  r2: {address: 'amqp://rabbit.example:0'}\n",
         "leat.yaml:4: backends.r2.address: a backend has a port, got 0"},
        {NEEDED "  r2: {address: 'amqps+unix:///run/x'}\n",
         "leat.yaml:4: backends.r2.name: is needed: a UNIX socket has no name that a certificate "
         "could be for"},
        {NEEDED "  r2: {address: 'amqp://10.0.0.2', ca: a}\n",
         "leat.yaml:4: backends.r2.ca: only an amqps:// backend has one"},
        {NEEDED "  r2: {address: 'amqp://10.0.0.2', name: a}\n",
         "leat.yaml:4: backends.r2.name: only an amqps:// backend has one"},
        {NEEDED "  r2: {address: 'amqps://127.0.0.1', name: ''}\n",
         "leat.yaml:4: backends.r2.name: expected a name that certificates can be for"},
        {NEEDED "tune: {heartbeat: 1500ms}\n",
         "leat.yaml:4: tune.heartbeat: expected whole seconds, got 1500ms"},
        {NEEDED "drain:\n  end: 1s\n",
         "leat.yaml:5: expected drain.close_after <= drain.close_until <= drain.end, "
         "got 10000ms, 25000ms, 1000ms"},
    };

    (void)state;
    REFUSE_ALL(wrong);
}

static void names_lead_somewhere(void **state)
{
    static const struct wrong wrong[] = {
        {NEEDED "farms:\n  main: {backends: [r1, rr1]}\n",
         "leat.yaml:5: farms.main.backends: no backend is called \"rr1\"; did you mean \"r1\"?"},
        {NEEDED "farms:\n  main: {backends: [elsewhere]}\n",
         "leat.yaml:5: farms.main.backends: no backend is called \"elsewhere\"; known: \"r1\""},
        {NEEDED "farms:\n  main: {backends: []}\n",
         "leat.yaml:5: farms.main.backends: expected at least one"},
        {NEEDED "farms:\n  main: {}\n", "leat.yaml:5: farms.main.backends: expected at least one"},
        {NEEDED "farms:\n  main: {backends: [r1, r1]}\n",
         "leat.yaml:5: farms.main.backends: \"r1\" is there twice; a weight gives it more "
         "sessions"},
        {NEEDED "farms:\n  main: {backends: [r1]}\n",
         "leat.yaml: vhosts: no farm serves any vhost: name vhosts, or a default"},
        {NEEDED "farms:\n  main: {backends: [r1]}\nvhosts:\n  a: {farm: man}\n",
         "leat.yaml:7: vhosts.a.farm: no farm is called \"man\"; did you mean \"main\"?"},
        {NEEDED "default:\n  farm: main\n",
         "leat.yaml:5: default.farm: no farm is called \"main\"; there is none"},
        {NEEDED "default:\n  backend: r2\n",
         "leat.yaml:5: default.backend: no backend is called \"r2\"; did you mean \"r1\"?"},
        {NEEDED "vhosts:\n  a: {}\n",
         "leat.yaml:5: vhosts.a: expected either farm or backend, got none"},
        {NEEDED "vhosts:\n  a b: {farm: r1, backend: r1}\n",
         "leat.yaml:5: vhosts.\"a b\": expected either farm or backend, got both"},
        /* The farm that r1 gets has no name that a file could use. */
        {NEEDED "vhosts:\n  a: {backend: r1}\n  b: {farm: r1}\n",
         "leat.yaml:6: vhosts.b.farm: no farm is called \"r1\", but a backend: use backend"},
        {NEEDED "farms: {main: {backends: [r1]}}\ndefault: {backend: main}\n",
         "leat.yaml:5: default.backend: no backend is called \"main\", but a farm: use farm"},
    };

    (void)state;
    REFUSE_ALL(wrong);
}

#define LISTENER(keys) "backends: {r: {address: 'amqp://10.0.0.1'}}\nlisteners:\n- {" keys "}\n"

static void names_proxies_and_sockets_are_judged(void **state)
{
    static const struct wrong wrong[] = {
        {NEEDED "dns: {servers: [ns.example]}\n",
         "leat.yaml:4: dns.servers: expected a numeric address like 127.0.0.1:5672 or "
         "[::1]:5672, got \"ns.example\""},
        {NEEDED "dns: {servers: ['10.0.0.1:0']}\n",
         "leat.yaml:4: dns.servers: a server has a port, got \"10.0.0.1:0\""},
        {NEEDED "dns: {servers: [a, a, a, a, a, a, a, a, a]}\n",
         "leat.yaml:4: dns.servers: expected at most 8 servers, got 9"},
        {LISTENER("address: 'amqp://127.0.0.1:1', proxy_protocol: [unix]"),
         "leat.yaml:3: listeners[0].proxy_protocol: unix is only for a UNIX socket"},
        {LISTENER("address: 'amqp+unix:///a', proxy_protocol: [10.0.0.1]"),
         "leat.yaml:3: listeners[0].proxy_protocol: over a UNIX socket it can only be [unix]"},
        {LISTENER("address: 'amqp://127.0.0.1:1', mode: 0600"),
         "leat.yaml:3: listeners[0].mode: only a UNIX socket has one"},
        {LISTENER("address: 'amqp+unix:///a', mode: 0668"),
         "leat.yaml:3: listeners[0].mode: expected three octal digits, such as 0660 or 0666"},
        {LISTENER("address: 'amqp+unix:///a', mode: 1777"),
         "leat.yaml:3: listeners[0].mode: expected three octal digits, such as 0660 or 0666"},
        {NEEDED "  r2: {address: 'amqp://10.0.0.2', proxy_protocol: v3}\n",
         "leat.yaml:4: backends.r2.proxy_protocol: expected none, v1 or v2, got \"v3\""},
    };

    (void)state;
    REFUSE_ALL(wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_judged),
        cmocka_unit_test(names_proxies_and_sockets_are_judged),
        cmocka_unit_test(unknown_keys_are_refused),
        cmocka_unit_test(nothing_is_there_twice),
        cmocka_unit_test(kinds_are_told_apart),
        cmocka_unit_test(tricks_of_yaml_are_refused),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(files_that_are_none_are_refused),
        cmocka_unit_test(the_whole_is_judged),
        cmocka_unit_test(names_lead_somewhere),
    };

    return cmocka_run_group_tests(tests, config_rig_enter, config_rig_leave);
}
