/*
 * control_rig.h - a control over a rig's worker, and those who ask it, all in one thread
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TEST_PROXY_CONTROL_RIG_H
#define LEAT_TEST_PROXY_CONTROL_RIG_H

#include <jansson.h>

#include "proxy/control.h"
#include "rig.h"

struct control_rig {
    struct rig rig;
    char dir[32], path[64]; /* of the socket */
    struct leat_control *control;
    unsigned reloads, drains;
    const char *reload_fails; /* why; NULL: it does not */
};

/* For a test: *STATE is a struct control_rig with one broker. */
int control_rig_setup(void **state);
int control_rig_teardown(void **state);

/* Makes a control for PATH. */
enum leat_status control_rig_start(struct control_rig *c, const char *path,
                                   struct leat_control **out, struct leat_error *err);

/* Who asks. */
struct asker {
    struct control_rig *c;
    int fd;
    struct wire in;
    bool has_ended;
};

struct asker asker_open(struct control_rig *c);
void asker_close(struct asker *asker);

void asker_send(struct asker *asker, const char *text);

/* A turn; then what has come is taken. */
void asker_turn(struct asker *asker);

/* Waits for a line, which must be JSON; the caller's to json_decref(). NULL at the end of stream.
 */
json_t *asker_line(struct asker *asker);

/* Sends REQUEST and a newline, and waits for the answer. */
json_t *asker_ask(struct asker *asker, const char *request);

/* Likewise; the answer must be ok. */
void asker_does(struct asker *asker, const char *request);

/* The answer to REQUEST must be an error of KIND with PART in its text. */
void asker_refused(struct asker *asker, const char *request, const char *kind, const char *part);

/* What VALUE, which is dropped, has at PATH ("session.client"): a text. */
void assert_text(json_t *value, const char *path, const char *expected);

/* The member at PATH, borrowed; NULL if there is none. */
json_t *member(const json_t *value, const char *path);

#endif
