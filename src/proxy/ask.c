/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/ask.h"

#include "proxy/worker.h"

static void on_control(void *arg)
{
    struct leat_ask *ask = arg;

    ask->done(ask, ask->worker);
}

static void on_worker(void *arg)
{
    struct leat_ask *ask = arg;

    ask->run(ask, ask->worker);
    ask->post = (struct leat_post){.fn = on_control, .arg = ask};
    leat_loop_post(ask->control, &ask->post);
}

void leat_ask(struct leat_ask *ask, struct leat_worker *worker)
{
    ask->worker = worker;
    ask->post = (struct leat_post){.fn = on_worker, .arg = ask};
    leat_loop_post(worker->loop, &ask->post);
}
