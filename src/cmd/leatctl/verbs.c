/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "proxy/config_suggest.h"

static const struct leat_verb verbs[] = {
    {"status", LEAT_VERB_STATUS, "", "what leat is doing: sessions, limits, counters, workers",
     "State, configuration in force, and the counters that SIGUSR1 logs.\n"},
    {"sessions", LEAT_VERB_SESSIONS, "[FILTER]... [--follow]", "list sessions",
     "All sessions, or those that match every FILTER:\n\n"
     "  --vhost V      of this vhost\n"
     "  --user U       logged in as this user\n"
     "  --backend B    at this backend: its name, or its address\n"
     "  --client C     from this address, with or without the port\n"
     "  --listener L   that came to this listener\n"
     "  --state S      proxy, tls, handshake, search, open, closing or ending\n\n"
     "  --follow       instead of the list: a line when a session opens or ends, until Ctrl-C\n"},
    {"session", LEAT_VERB_SESSION, "ID show|close|kill|trace", "look at one session, or end it",
     "  show    all that is known about it\n"
     "  close   end it in an orderly way: Close 320, which clients retry, and nothing is lost\n"
     "  kill    cut both its connections at once\n"
     "  trace   a line for each of its frames, until it ends or Ctrl-C; never a payload\n"},
    {"backends", LEAT_VERB_BACKENDS, "", "the brokers: which work, and what was wrong last",
     "State, sessions and failures of each backend.\n"},
    {"tls", LEAT_VERB_TLS, "", "the certificates in use, and when they expire",
     "Every TLS context of the configuration in force, and what uses it.\n"},
    {"reload", LEAT_VERB_RELOAD, "", "read file and certificates again, as SIGHUP does",
     "Returns once the new configuration is in force for the very next connection. If anything in\n"
     "it is wrong nothing changes, and what is wrong is said.\n"},
    {"drain", LEAT_VERB_DRAIN, "", "end all sessions gently and stop, as SIGTERM does",
     "Returns once the drain has begun.\n"},
    {"log", LEAT_VERB_LOG, "[LEVEL]", "the level of the log, or set it until the next reload",
     "LEVEL is error, warn, info, debug or trace.\n"},
    {"config", LEAT_VERB_CONFIG, "show", "the configuration in force, defaults included",
     "Prints YAML that leat -c takes.\n"},
    {"help", LEAT_VERB_HELP, "[VERB]", "print this, or the help for VERB",
     "leatctl VERB --help does the same.\n"},
};

#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

enum leat_status leat_verb_find(const char *name, const struct leat_verb **out,
                                struct leat_error *err)
{
    struct leat_suggest suggest;

    leat_suggest_init(&suggest, leat_str_of(name));
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            *out = &verbs[i];
            return LEAT_OK;
        }
        leat_suggest_offer(&suggest, leat_str_of(verbs[i].name));
    }
    return leat_error_set(err, LEAT_EUSAGE, 0, "there is no verb \"%s\"; %s", name,
                          leat_suggest_finish(&suggest));
}

static void print_all(FILE *out)
{
    (void)fputs("leatctl - asks a running leat, and tells it what to do\n\n"
                "usage: leatctl [-s SOCKET] [--json] VERB ...\n\n",
                out);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        const char *space = (verbs[i].arguments[0] != '\0') ? " " : "";
        int width = (int)(strlen(verbs[i].name) + strlen(space) + strlen(verbs[i].arguments));
        (void)fprintf(out, "  %s%s%s%*s  %s\n", verbs[i].name, space, verbs[i].arguments,
                      width < 32 ? 32 - width : 0, "", verbs[i].summary);
    }
    (void)fputs(
        "\n"
        "  -s, --socket SOCKET  where leat listens, its control.socket; otherwise what\n"
        "                       LEAT_SOCKET says, otherwise " LEAT_CTL_SOCKET "\n"
        "  --json               print what leat answers, one line of JSON each\n"
        "  --version            print the version\n"
        "  --help               print this, or after a verb the help for it\n\n"
        "Exit status: 0 done; 1 leat said no; 2 the command line is wrong; 3 leat can't be\n"
        "reached, or the connection was lost; 4 there is no such session.\n",
        out);
}

void leat_verb_print_help(const struct leat_verb *verb, FILE *out)
{
    if (verb == NULL)
        print_all(out);
    else
        (void)fprintf(out, "usage: leatctl [-s SOCKET] [--json] %s%s%s\n\n%s: %s.\n\n%s",
                      verb->name, verb->arguments[0] != '\0' ? " " : "", verb->arguments,
                      verb->name, verb->summary, verb->details);
}
