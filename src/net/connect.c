/* SPDX-License-Identifier: Apache-2.0 */
#include "net/connect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "net/resolver.h"

/* RFC 8305, 8. */
#define ATTEMPT_DELAY_MS 250u
#define RESOLUTION_DELAY_MS 50u

struct candidate {
    struct leat_addr addr;
    int sys; /* with which it failed; 0: it has not */
    bool is_named;
};

/* The addresses of one family; those of neither IPv4 nor IPv6 are among IPv6's. */
enum { V6, V4, QUEUES };

struct queue {
    bool is_known; /* no more will come */
    struct candidate *candidates;
    size_t count, next;
};

/* The first works in the caller's leat_io, so that nothing has to be moved if it is the only one;
 * those beside it in their own. */
struct attempt {
    struct leat_list link;
    struct leat_connect *connect;
    struct candidate *candidate;
    struct leat_io *io;
    bool is_running;
    struct leat_io own;
};

struct leat_connect {
    struct leat_loop *loop;
    struct leat_io *io;
    leat_connect_fn *fn;
    void *arg;
    uint64_t attempt_delay_ms;
    size_t turn;
    int preferred, last; /* queues: which is first, which was last taken from */
    struct queue queues[QUEUES];
    struct attempt first;
    struct leat_list others; /* all attempts beside the first, also those that have ended */
    unsigned running;        /* how many attempts are under way */
    bool has_begun;          /* with the first attempt */
    bool is_delay_over;      /* the preferred family has been waited for */
    bool is_resolving;
    bool is_done; /* the outcome is there, and is told once the lookup has ended */
    const struct candidate *winner;
    struct leat_error error;
    struct leat_timer timer; /* until the next attempt may begin */
    struct leat_task task;
    struct leat_lookup lookup;
    uint16_t port;
    char name[]; /* "": there is none */
};

static void run_done(void *arg)
{
    struct leat_connect *c = arg;

    c->fn(c->winner != NULL ? &c->winner->addr : NULL, c->winner != NULL ? NULL : &c->error,
          c->arg);
    while (!leat_list_is_empty(&c->others)) {
        struct attempt *attempt = LEAT_LIST_OBJECT(c->others.next, struct attempt, link);
        leat_list_remove(&attempt->link);
        leat_mem_free(attempt);
    }
    leat_mem_free(c->queues[V6].candidates);
    leat_mem_free(c->queues[V4].candidates);
    leat_mem_free(c);
}

static void stop(struct attempt *attempt)
{
    if (!attempt->is_running)
        return;
    attempt->is_running = false;
    attempt->connect->running--;
    leat_io_close(attempt->io);
}

/* Ends everything but the outcome, which is settled. */
static void finish(struct leat_connect *c)
{
    c->is_done = true;
    leat_timer_stop(c->loop, &c->timer);
    stop(&c->first);
    for (struct leat_list *link = c->others.next; link != &c->others; link = link->next)
        stop(LEAT_LIST_OBJECT(link, struct attempt, link));
    if (c->is_resolving)
        leat_lookup_cancel(&c->lookup);
    else
        leat_loop_defer(c->loop, &c->task);
}

void leat_connect_cancel(struct leat_connect *c)
{
    (void)leat_error_set(&c->error, LEAT_ECANCELLED, 0, "connecting was cancelled");
    if (c->winner != NULL)
        leat_io_close(c->io);
    c->winner = NULL;
    if (!c->is_done)
        finish(c);
}

/* Failing. */

/* How much SYS says of why no connection came about. */
static int weight(int sys)
{
    switch (sys) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:
        return 3;
    case EADDRNOTAVAIL:
        return 1;
    case ENETUNREACH:
    case EAFNOSUPPORT:
        return 0; /* as a rule this machine has no IPv6 */
    default:
        return 2;
    }
}

/* Adds to TEXT all candidates that failed with SYS and are not named yet, and why. */
static void name_all(struct leat_connect *c, int sys, struct leat_text *text)
{
    char addr[LEAT_ADDR_TEXT_MAX], reason[128];
    const char *divider = "";

    for (int q = 0; q < QUEUES; q++) {
        for (size_t i = 0; i < c->queues[q].count; i++) {
            struct candidate *candidate = &c->queues[q].candidates[i];
            if (candidate->sys != sys || candidate->is_named)
                continue;
            candidate->is_named = true;
            /* With a name the port stands behind it. */
            (void)(c->name[0] != '\0' ? leat_addr_host_text(&candidate->addr, addr)
                                      : leat_addr_text(&candidate->addr, addr));
            leat_text_add(text, "%s%s", divider, addr);
            divider = ", ";
        }
    }
    leat_text_add(text, ": %s",
                  sys == EADDRNOTAVAIL
                      ? "no local port is free, widen net.ipv4.ip_local_port_range "
                        "or spread over more addresses"
                      : strerror_r(sys, reason, sizeof(reason)));
}

/* Makes the error out of the candidates' failures. There is at least one. */
static void tell_failures(struct leat_connect *c)
{
    struct leat_text text;
    const char *divider = "";
    int worst = 0;

    c->error = (struct leat_error){.status = LEAT_EIO};
    leat_text_init(&text, c->error.text, sizeof(c->error.text));
    leat_text_add(&text, "connecting to ");
    if (c->name[0] != '\0')
        leat_text_add(&text, "%s:%u: ", c->name, (unsigned)c->port);
    for (int q = 0; q < QUEUES; q++) {
        for (size_t i = 0; i < c->queues[q].count; i++) {
            struct candidate *candidate = &c->queues[q].candidates[i];
            if (worst == 0 || weight(candidate->sys) > weight(worst))
                worst = candidate->sys;
            if (candidate->is_named)
                continue;
            leat_text_add(&text, "%s", divider);
            divider = "; ";
            name_all(c, candidate->sys, &text);
        }
    }
    c->error.sys = worst;
}

static void fail(struct leat_connect *c)
{
    if (c->queues[V6].count + c->queues[V4].count > 0)
        tell_failures(c);
    else if (c->error.status == LEAT_OK)
        (void)leat_error_set(&c->error, LEAT_EUSAGE, 0, "there is no address to connect to");
    finish(c);
}

/* Attempting. */

/* The next address to try, of the other family than the last if there is one. NULL if all have
 * been tried. */
static struct candidate *take_next(struct leat_connect *c)
{
    for (int i = 0; i < QUEUES; i++) {
        int q = i == 0 ? !c->last : c->last;
        struct queue *queue = &c->queues[q];
        if (queue->next < queue->count) {
            c->last = q;
            return &queue->candidates[(c->turn + queue->next++) % queue->count];
        }
    }
    return NULL;
}

static void on_attempt(struct leat_io *io, void *arg);

/* Begins to connect to CANDIDATE, or notes why that can't be. */
static void begin(struct leat_connect *c, struct candidate *candidate)
{
    struct attempt *attempt = &c->first;
    int sys = 0;

    c->has_begun = true;
    if (attempt->is_running) {
        attempt = leat_mem_zalloc(sizeof(*attempt));
        if (attempt == NULL) {
            candidate->sys = ENOMEM;
            return;
        }
        attempt->connect = c;
        attempt->io = &attempt->own;
        leat_list_append(&c->others, &attempt->link);
    }
    attempt->candidate = candidate;
    if (leat_io_connect(attempt->io, c->loop, (const struct sockaddr *)&candidate->addr.ss,
                        candidate->addr.len, &sys) != LEAT_OK) {
        candidate->sys = sys;
        return;
    }
    leat_io_set_fn(attempt->io, on_attempt, attempt);
    attempt->is_running = true;
    c->running++;
    leat_timer_start(c->loop, &c->timer, c->attempt_delay_ms);
}

/* Whether the next attempt is not yet due. */
static bool must_wait(struct leat_connect *c)
{
    if (c->running > 0)
        return leat_timer_is_running(&c->timer);
    /* RFC 8305, 3: the preferred family may be a moment late. */
    return !c->has_begun && !c->queues[c->preferred].is_known && !c->is_delay_over;
}

/* Begins what is due; ends it all when nothing is left. */
static void advance(struct leat_connect *c)
{
    struct candidate *candidate;

    while (!must_wait(c)) {
        candidate = take_next(c);
        if (candidate == NULL)
            break;
        begin(c, candidate);
    }
    if (c->running == 0 && !c->is_resolving)
        fail(c);
}

static void on_timer(void *arg)
{
    struct leat_connect *c = arg;

    c->is_delay_over = true;
    advance(c);
}

/* Moves the connection of ATTEMPT into the caller's leat_io. Returns 0 or errno. */
static int move_home(struct leat_connect *c, struct attempt *attempt)
{
    stop(&c->first);
    int fd = leat_io_release(attempt->io);
    if (leat_io_open(c->io, c->loop, fd, on_attempt, &c->first) == LEAT_OK)
        return 0;
    (void)close(fd);
    return ENOSPC;
}

static void on_attempt(struct leat_io *io, void *arg)
{
    struct attempt *attempt = arg;
    struct leat_connect *c = attempt->connect;

    if (!attempt->is_running || (io->ready & (LEAT_IO_WRITABLE | LEAT_IO_BROKEN)) == 0)
        return;
    int sys = leat_io_connect_result(io);
    if (sys == 0) {
        attempt->is_running = false;
        c->running--;
        if (io != c->io)
            sys = move_home(c, attempt);
    }
    if (sys == 0) {
        c->winner = attempt->candidate;
        finish(c);
        return;
    }
    attempt->candidate->sys = sys;
    stop(attempt);
    advance(c);
}

/* The addresses. */

/* Adds those of the COUNT addresses at ADDRS that belong to queue Q, with PORT unless it is 0.
 * False if memory is short. */
static bool add(struct leat_connect *c, int q, const struct leat_addr *addrs, size_t count,
                uint16_t port)
{
    struct queue *queue = &c->queues[q];

    queue->is_known = true;
    if (count == 0)
        return true;
    queue->candidates = leat_mem_zalloc_flex(0, count, sizeof(*queue->candidates));
    if (queue->candidates == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        if ((addrs[i].ss.ss_family == AF_INET) != (q == V4))
            continue;
        struct leat_addr *addr = &queue->candidates[queue->count++].addr;
        *addr = addrs[i];
        if (port != 0)
            leat_addr_set_port(addr, port);
    }
    return true;
}

static void on_lookup(const struct leat_lookup_answer *answer, void *arg)
{
    struct leat_connect *c = arg;
    bool is_short = false;

    c->is_resolving = !answer->is_last;
    if (c->is_done) {
        if (answer->is_last)
            run_done(c);
        return;
    }
    if (answer->v6.is_known && !c->queues[V6].is_known)
        is_short = !add(c, V6, answer->v6.addrs, answer->v6.count, c->port);
    if (answer->v4.is_known && !c->queues[V4].is_known)
        is_short = !add(c, V4, answer->v4.addrs, answer->v4.count, c->port) || is_short;
    if (is_short)
        (void)leat_error_set(&c->error, LEAT_ENOMEM, 0, "out of memory for the addresses of %s",
                             c->name);
    if (answer->err != NULL)
        c->error = *answer->err;
    bool is_preferred_late = !c->has_begun && !c->queues[c->preferred].is_known;
    if (is_preferred_late && c->queues[!c->preferred].count > 0)
        leat_timer_start(c->loop, &c->timer, RESOLUTION_DELAY_MS);
    advance(c);
}

/* Starting. */

static struct leat_connect *new_connect(struct leat_io *io, struct leat_loop *loop,
                                        const struct leat_connect_target *target)
{
    const char *name = target->addr_count == 0 && target->name != NULL ? target->name : "";
    struct leat_connect *c = leat_mem_zalloc_flex(sizeof(*c), strlen(name) + 1, 1);

    if (c == NULL)
        return NULL;
    c->loop = loop;
    c->io = io;
    c->preferred = target->is_ipv4_first ? V4 : V6;
    c->last = !c->preferred;
    c->port = target->port;
    c->turn = target->turn;
    c->attempt_delay_ms =
        target->attempt_delay_ms != 0 ? target->attempt_delay_ms : ATTEMPT_DELAY_MS;
    c->first.connect = c;
    c->first.io = io;
    leat_io_init(io, loop);
    leat_list_init(&c->first.link);
    leat_list_init(&c->others);
    leat_timer_init(&c->timer, on_timer, c);
    leat_task_init(&c->task, run_done, c);
    memcpy(c->name, name, strlen(name));
    return c;
}

/* Takes over the addresses of TARGET. False if memory is short. */
static bool take_addrs(struct leat_connect *c, const struct leat_connect_target *target)
{
    size_t counts[QUEUES] = {0};

    for (size_t i = 0; i < target->addr_count; i++)
        counts[target->addrs[i].ss.ss_family == AF_INET ? V4 : V6]++;
    /* One that has none needs no room. */
    for (int q = 0; q < QUEUES; q++)
        if (!add(c, q, target->addrs, counts[q] > 0 ? target->addr_count : 0, 0))
            return false;
    return true;
}

enum leat_status leat_connect_start(struct leat_io *io, struct leat_loop *loop,
                                    const struct leat_connect_target *target, leat_connect_fn *fn,
                                    void *arg, struct leat_connect **out)
{
    struct leat_connect *c = new_connect(io, loop, target);

    if (c == NULL)
        return LEAT_ENOMEM;
    c->fn = fn;
    c->arg = arg;
    if (c->name[0] != '\0' && target->resolver != NULL) {
        c->is_resolving = true;
        leat_lookup_start(&c->lookup, target->resolver, leat_str_of(c->name), on_lookup, c);
    } else if (take_addrs(c, target)) {
        advance(c);
    } else {
        leat_mem_free(c->queues[V6].candidates);
        leat_mem_free(c);
        return LEAT_ENOMEM;
    }
    *out = c;
    return LEAT_OK;
}
