/*
 * http/loop.h: on a real loop, timers and child processes keep the promises of their ports: a later
 * turn, exactly once, nothing after a cancel, an end to every program.
 */
#include <alertscaler/http/loop.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <criterion/criterion.h>
#include <event2/event.h>

#include <alertscaler/base/time.h>

#include "teardown.h"

static struct event_base *base;
static struct as_event_loop *loop;
static struct as_event_processes *processes;
static unsigned told;
static struct as_process_result last;
static char output[4096], error_output[4096];

static void setup(void)
{
    base = event_base_new();
    loop = as_event_loop_new(base);
    processes = as_event_processes_new(base);
}

static void teardown(void)
{
    as_event_processes_free(processes);
    as_event_loop_free(loop);
    event_base_free(base);
    libevent_global_shutdown();
    teardown_expect(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child was left behind");
}

TestSuite(loop, .init = setup, .fini = teardown, .timeout = 30);

static void count(void *context)
{
    told++;
    if (context)
        event_base_loopbreak(base);
}

Test(loop, a_timer_expires_once_in_a_later_turn)
{
    struct as_loop *port = as_event_loop_get_port(loop);
    struct as_timer *now = port->start_timer(port, 0, count, NULL);
    struct as_timer *never = port->start_timer(port, 0, count, NULL);
    struct as_timer *later = port->start_timer(port, 20 * AS_US_PER_MS, count, base);
    cr_expect_eq(told, 0);
    cr_expect(now && later);
    port->cancel_timer(port, never);
    port->cancel_timer(port, NULL);
    event_base_dispatch(base);
    cr_expect_eq(told, 2);
}

Test(loop, freeing_cancels_the_timers)
{
    struct as_loop *port = as_event_loop_get_port(loop);
    struct as_timer *timer = port->start_timer(port, AS_US_PER_DAY, count, NULL);
    cr_expect(timer != NULL);
}

static void ended(void *context, const struct as_process_result *result)
{
    told++;
    last = *result;
    snprintf(output, sizeof(output), "%s", result->output);
    snprintf(error_output, sizeof(error_output), "%s", result->error_output);
    if (context)
        event_base_loopbreak(base);
}

static struct as_process *start(const char *script, const char *const *env, int64_t timeout_us,
                                size_t max_output)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct as_process_runner *port = as_event_processes_get_port(processes);
    struct as_process_request request = {argv, env, timeout_us, max_output};
    return port->start(port, &request, ended, base);
}

static void run(const char *script, const char *const *env, int64_t timeout_us, size_t max_output)
{
    struct as_process *process = start(script, env, timeout_us, max_output);
    cr_assert(process != NULL);
    cr_assert_eq(told, 0);
    event_base_dispatch(base);
    cr_assert_eq(told, 1);
}

Test(loop, a_program_gives_output_and_status)
{
    run("echo out; echo err >&2; exit 3", NULL, 10 * AS_US_PER_S, 100);
    cr_expect_eq(last.outcome, AS_PROCESS_EXITED);
    cr_expect_eq(last.status, 3);
    cr_expect_eq(last.output_size, 4);
    cr_expect_str_eq(output, "out\n");
    cr_expect_str_eq(error_output, "err\n");
}

Test(loop, a_program_gets_our_environment_and_more_and_no_input)
{
    static const char *const env[] = {"PLUGIN_TEST=a b", "HOME=/elsewhere", NULL};
    setenv("PLUGIN_OURS", "kept", 1);
    run("cat; echo \"$PLUGIN_TEST $HOME $PLUGIN_OURS\"", env, 10 * AS_US_PER_S, 100);
    cr_expect_str_eq(output, "a b /elsewhere kept\n");
}

Test(loop, ignored_signals_are_default_again_in_a_program)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    run("kill -PIPE $$; sleep 5", NULL, 10 * AS_US_PER_S, 100);
    cr_expect_eq(last.outcome, AS_PROCESS_KILLED);
    cr_expect_eq(last.status, SIGPIPE);
}

Test(loop, a_program_that_is_not_there)
{
    const char *const argv[] = {"/nonexistent/plugin", NULL};
    struct as_process_runner *port = as_event_processes_get_port(processes);
    struct as_process_request request = {argv, NULL, AS_US_PER_S, 100};
    struct as_process *process = port->start(port, &request, ended, base);
    cr_expect(process != NULL);
    cr_expect_eq(told, 0);
    event_base_dispatch(base);
    cr_expect_eq(last.outcome, AS_PROCESS_NOT_STARTED);
    cr_expect_eq(last.status, ENOENT);
}

/* Its own children, too, which hold the pipe open. */
Test(loop, a_program_that_hangs_is_killed_with_all_it_started)
{
    run("echo part; sleep 1000 & sleep 1000", NULL, 50 * AS_US_PER_MS, 100);
    cr_expect_eq(last.outcome, AS_PROCESS_TIMEOUT);
    cr_expect_str_eq(output, "part\n");
}

Test(loop, exactly_the_maximum_of_output_fits)
{
    run("printf 0123456789", NULL, 10 * AS_US_PER_S, 10);
    cr_expect_eq(last.outcome, AS_PROCESS_EXITED);
    cr_expect_str_eq(output, "0123456789");
}

Test(loop, a_program_that_talks_too_much_is_killed)
{
    run("yes", NULL, 10 * AS_US_PER_S, 1000);
    cr_expect_eq(last.outcome, AS_PROCESS_TOO_LARGE);
}

Test(loop, too_much_on_standard_error_is_cut)
{
    run("yes | head -c 100000 >&2; echo fine", NULL, 10 * AS_US_PER_S, 1000);
    cr_expect_eq(last.outcome, AS_PROCESS_EXITED);
    cr_expect_str_eq(output, "fine\n");
    cr_expect_eq(strlen(error_output), 1024);
}

/* Output closed long before the end: the exit is still waited for. */
Test(loop, a_program_that_closes_its_output_early_is_waited_for)
{
    run("exec >&- 2>&-; sleep 0.1; exit 7", NULL, 10 * AS_US_PER_S, 100);
    cr_expect_eq(last.outcome, AS_PROCESS_EXITED);
    cr_expect_eq(last.status, 7);
}

Test(loop, a_program_that_closes_its_output_and_hangs_is_killed)
{
    run("exec >&- 2>&-; sleep 1000", NULL, 50 * AS_US_PER_MS, 100);
    cr_expect_eq(last.outcome, AS_PROCESS_TIMEOUT);
}

Test(loop, nothing_is_told_after_a_cancel)
{
    struct as_process_runner *port = as_event_processes_get_port(processes);
    struct as_loop *timers = as_event_loop_get_port(loop);
    struct as_process *process = start("sleep 1000", NULL, AS_US_PER_DAY, 100);
    port->cancel(port, process);
    struct as_timer *end = timers->start_timer(timers, 100 * AS_US_PER_MS, count, base);
    cr_expect(end != NULL);
    event_base_dispatch(base);
    cr_expect_eq(told, 1); /* the timer */
}

Test(loop, freeing_kills_what_still_runs)
{
    struct as_process *process = start("sleep 1000", NULL, AS_US_PER_DAY, 100);
    cr_expect(process != NULL);
}
