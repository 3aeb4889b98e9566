/*
 * Tests of the timers of loop/loop.h, all under a fake clock: no test waits for time to pass.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "loop/loop.h"

struct fixture {
    struct leat_loop *loop;
    uint64_t now_ms;
    unsigned clock_reads;
};

struct probe {
    struct fixture *f;
    struct leat_timer timer;
    struct leat_timer *starts; /* started by the callback, with this delay */
    uint64_t starts_after_ms;
    struct leat_timer *stops; /* stopped by the callback */
    unsigned runs;
    bool was_running; /* inside its own callback */
};

static uint64_t fake_clock(void *arg)
{
    struct fixture *f = arg;
    f->clock_reads++;
    return f->now_ms;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    *state = f;
    if (f == NULL || leat_loop_new(&f->loop, NULL) != LEAT_OK)
        return 1;
    f->now_ms = 1000010;
    leat_loop_set_clock(f->loop, fake_clock, f);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    leat_loop_free(f->loop);
    free(f);
    return 0;
}

static void on_timer(void *arg)
{
    struct probe *probe = arg;
    probe->runs++;
    probe->was_running = leat_timer_is_running(&probe->timer);
    if (probe->starts != NULL)
        leat_timer_start(probe->f->loop, probe->starts, probe->starts_after_ms);
    if (probe->stops != NULL)
        leat_timer_stop(probe->f->loop, probe->stops);
}

static void probe_init(struct probe *probe, struct fixture *f)
{
    *probe = (struct probe){.f = f};
    leat_timer_init(&probe->timer, on_timer, probe);
}

/* Runs a turn AFTER_MS later that does not wait. */
static void turn_after(struct fixture *f, uint64_t after_ms)
{
    f->now_ms += after_ms;
    leat_loop_turn(f->loop, 0);
}

static void a_timer_runs_once_and_never_early(void **state)
{
    struct fixture *f = *state;
    struct probe probe;
    probe_init(&probe, f);
    leat_timer_start(f->loop, &probe.timer, 5);
    assert_true(leat_timer_is_running(&probe.timer));
    turn_after(f, 4);
    assert_int_equal(probe.runs, 0);
    turn_after(f, 1);
    assert_int_equal(probe.runs, 1);
    assert_false(probe.was_running);
    assert_false(leat_timer_is_running(&probe.timer));
    turn_after(f, 100);
    assert_int_equal(probe.runs, 1);
}

static void delays_of_a_second_or_more_share_ticks(void **state)
{
    struct fixture *f = *state;
    struct probe exact, first, second;
    probe_init(&exact, f);
    probe_init(&first, f);
    probe_init(&second, f);
    leat_timer_start(f->loop, &exact.timer, 999);
    leat_timer_start(f->loop, &first.timer, 1000);
    f->now_ms += 30;
    leat_timer_start(f->loop, &second.timer, 1000);
    assert_int_equal(exact.timer.at_ms, 1001009);
    assert_int_equal(first.timer.at_ms, 1001100);
    assert_int_equal(second.timer.at_ms, 1001100);
    leat_timer_start(f->loop, &first.timer, 1000060); /* just on a tick: not moved */
    assert_int_equal(first.timer.at_ms, 2000100);
    leat_timer_stop(f->loop, &exact.timer);
    leat_timer_stop(f->loop, &first.timer);
    leat_timer_stop(f->loop, &second.timer);
}

static void the_end_of_time_does_not_wrap(void **state)
{
    struct fixture *f = *state;
    struct probe probe;
    probe_init(&probe, f);
    leat_timer_start(f->loop, &probe.timer, UINT64_MAX);
    turn_after(f, 1000);
    assert_int_equal(probe.runs, 0);
    leat_timer_start(f->loop, &probe.timer, UINT64_MAX - f->now_ms - 1);
    turn_after(f, 1000);
    assert_int_equal(probe.runs, 0);
    leat_timer_stop(f->loop, &probe.timer);
}

static void starting_a_running_timer_moves_it(void **state)
{
    struct fixture *f = *state;
    struct probe probe;
    probe_init(&probe, f);
    leat_timer_start(f->loop, &probe.timer, 5);
    leat_timer_start(f->loop, &probe.timer, 50);
    turn_after(f, 49);
    assert_int_equal(probe.runs, 0);
    turn_after(f, 1);
    assert_int_equal(probe.runs, 1);
}

static void stopping_is_final_and_may_be_repeated(void **state)
{
    struct fixture *f = *state;
    struct probe probe;
    probe_init(&probe, f);
    leat_timer_stop(f->loop, &probe.timer);
    leat_timer_start(f->loop, &probe.timer, 5);
    leat_timer_stop(f->loop, &probe.timer);
    leat_timer_stop(f->loop, &probe.timer);
    turn_after(f, 100);
    assert_int_equal(probe.runs, 0);
}

static void law_1_a_timer_started_in_a_callback_waits_for_the_next_turn(void **state)
{
    struct fixture *f = *state;
    struct probe probe, other;
    probe_init(&probe, f);
    probe_init(&other, f);
    probe.starts = &probe.timer;
    leat_timer_start(f->loop, &probe.timer, 0);
    assert_int_equal(probe.runs, 0);
    for (unsigned turn = 1; turn < 4; turn++) {
        /* Without limit: had the timer of 0 ms let the loop sleep, this would hang. */
        leat_loop_turn(f->loop, -1);
        assert_int_equal(probe.runs, turn);
    }
    probe.starts = &other.timer;
    leat_loop_turn(f->loop, -1);
    assert_int_equal(other.runs, 0);
    leat_loop_turn(f->loop, -1);
    assert_int_equal(other.runs, 1);
    assert_int_equal(atomic_load(&leat_loop_counters(f->loop)->wakeups), 0);
}

static void law_2_an_expired_timer_stopped_by_another_does_not_run(void **state)
{
    struct fixture *f = *state;
    struct probe probes[5];
    for (size_t i = 0; i < 5; i++)
        probe_init(&probes[i], f);
    for (size_t i = 0; i < 5; i++)
        leat_timer_start(f->loop, &probes[i].timer, i);
    probes[0].stops = &probes[1].timer; /* the next one */
    probes[2].stops = &probes[4].timer; /* the last one */
    turn_after(f, 10);
    assert_int_equal(probes[0].runs, 1);
    assert_int_equal(probes[1].runs, 0);
    assert_int_equal(probes[2].runs, 1);
    assert_int_equal(probes[3].runs, 1);
    assert_int_equal(probes[4].runs, 0);
    assert_false(leat_timer_is_running(&probes[1].timer));
    turn_after(f, 10);
    assert_int_equal(probes[1].runs + probes[4].runs, 0);
}

static void an_expired_timer_moved_by_another_runs_later(void **state)
{
    struct fixture *f = *state;
    struct probe first, second;
    probe_init(&first, f);
    probe_init(&second, f);
    leat_timer_start(f->loop, &first.timer, 1);
    leat_timer_start(f->loop, &second.timer, 2);
    first.starts = &second.timer;
    first.starts_after_ms = 7;
    turn_after(f, 10);
    assert_int_equal(second.runs, 0);
    turn_after(f, 6);
    assert_int_equal(second.runs, 0);
    turn_after(f, 1);
    assert_int_equal(second.runs, 1);
}

struct owned {
    struct leat_timer timer;
    unsigned *runs;
};

static void free_itself(void *arg)
{
    struct owned *owned = arg;
    (*owned->runs)++;
    free(owned);
}

static void law_4_a_callback_may_free_its_timer(void **state)
{
    struct fixture *f = *state;
    unsigned runs = 0;
    for (int i = 0; i < 3; i++) {
        struct owned *owned = calloc(1, sizeof(*owned));
        assert_non_null(owned);
        owned->runs = &runs;
        leat_timer_init(&owned->timer, free_itself, owned);
        leat_timer_start(f->loop, &owned->timer, 1);
    }
    turn_after(f, 1);
    assert_int_equal(runs, 3);
}

static void law_8_time_is_read_once_a_turn(void **state)
{
    struct fixture *f = *state;
    struct probe probes[3];
    for (size_t i = 0; i < 3; i++) {
        probe_init(&probes[i], f);
        leat_timer_start(f->loop, &probes[i].timer, 1);
        probes[i].starts = &probes[i].timer;
        probes[i].starts_after_ms = 5;
    }
    unsigned reads = f->clock_reads;
    turn_after(f, 1);
    assert_int_equal(f->clock_reads - reads, 1);
    assert_int_equal(leat_loop_now_ms(f->loop), f->now_ms);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(probes[i].timer.at_ms, f->now_ms + 5);
        leat_timer_stop(f->loop, &probes[i].timer);
    }
}

/* The loop's time is that of the last turn, however long ago that was; a delay is not. */
static void a_timer_started_between_turns_is_not_early(void **state)
{
    struct fixture *f = *state;
    struct probe probe;
    probe_init(&probe, f);
    turn_after(f, 0);
    f->now_ms += 500;
    leat_timer_start(f->loop, &probe.timer, 100);
    turn_after(f, 99);
    assert_int_equal(probe.runs, 0);
    turn_after(f, 1);
    assert_int_equal(probe.runs, 1);
}

#define MODEL_TIMERS 40

struct model {
    struct leat_timer timer;
    struct model_run *run;
    uint64_t due_at; /* 0 while stopped */
    bool is_due;     /* in this turn */
};

struct model_run {
    struct leat_loop *loop;
    uint64_t now_ms;
    uint64_t last_due_at;
    uint32_t seed;
    unsigned ran;
    struct model timers[MODEL_TIMERS];
};

static uint32_t next_random(struct model_run *run)
{
    run->seed = run->seed * 1664525u + 1013904223u;
    return run->seed >> 8;
}

static uint64_t model_clock(void *arg)
{
    struct model_run *run = arg;
    return run->now_ms;
}

/* Starts or stops a random timer, in the heap and in the model. */
static void random_change(struct model_run *run)
{
    struct model *model = &run->timers[next_random(run) % MODEL_TIMERS];
    model->is_due = false;
    if (next_random(run) % 3 == 0) {
        leat_timer_stop(run->loop, &model->timer);
        model->due_at = 0;
        return;
    }
    uint64_t after_ms = next_random(run) % (next_random(run) % 2 ? 30 : 3000);
    leat_timer_start(run->loop, &model->timer, after_ms);
    model->due_at = run->now_ms + after_ms;
    while (after_ms >= 1000 && model->due_at % 100 != 0)
        model->due_at++;
}

static void on_model_timer(void *arg)
{
    struct model *model = arg;
    struct model_run *run = model->run;
    assert_true(model->is_due);
    assert_true(model->due_at >= run->last_due_at);
    run->last_due_at = model->due_at;
    run->ran++;
    model->is_due = false;
    model->due_at = 0;
    if (next_random(run) % 2)
        random_change(run);
}

static void behaves_like_a_sorted_list(void **state)
{
    (void)state;
    struct model_run run = {.seed = 1, .now_ms = 1};
    assert_int_equal(leat_loop_new(&run.loop, NULL), LEAT_OK);
    leat_loop_set_clock(run.loop, model_clock, &run);
    for (size_t i = 0; i < MODEL_TIMERS; i++) {
        run.timers[i].run = &run;
        leat_timer_init(&run.timers[i].timer, on_model_timer, &run.timers[i]);
    }
    for (int step = 0; step < 20000; step++) {
        random_change(&run);
        run.now_ms += next_random(&run) % 20;
        run.last_due_at = 0;
        for (size_t i = 0; i < MODEL_TIMERS; i++)
            run.timers[i].is_due = run.timers[i].due_at != 0 && run.timers[i].due_at <= run.now_ms;
        leat_loop_turn(run.loop, 0);
        for (size_t i = 0; i < MODEL_TIMERS; i++) {
            assert_false(run.timers[i].is_due);
            assert_int_equal(leat_timer_is_running(&run.timers[i].timer),
                             run.timers[i].due_at != 0);
        }
    }
    assert_true(run.ran > 5000);
    leat_loop_free(run.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_timer_runs_once_and_never_early, setup, teardown),
        cmocka_unit_test_setup_teardown(delays_of_a_second_or_more_share_ticks, setup, teardown),
        cmocka_unit_test_setup_teardown(the_end_of_time_does_not_wrap, setup, teardown),
        cmocka_unit_test_setup_teardown(starting_a_running_timer_moves_it, setup, teardown),
        cmocka_unit_test_setup_teardown(stopping_is_final_and_may_be_repeated, setup, teardown),
        cmocka_unit_test_setup_teardown(law_1_a_timer_started_in_a_callback_waits_for_the_next_turn,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(law_2_an_expired_timer_stopped_by_another_does_not_run,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_expired_timer_moved_by_another_runs_later, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(law_4_a_callback_may_free_its_timer, setup, teardown),
        cmocka_unit_test_setup_teardown(law_8_time_is_read_once_a_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(a_timer_started_between_turns_is_not_early, setup,
                                        teardown),
        cmocka_unit_test(behaves_like_a_sorted_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
