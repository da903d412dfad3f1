/*
 * `--watch` of a command. On a terminal it redraws the output, else it prints one after the other.
 * If the daemon does not answer, it says so above the last output, and tries again.
 */
#include "watch.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#define INTERVAL_MIN_US (100 * AS_US_PER_MS)

static volatile sig_atomic_t is_interrupted;

static void watch_on_signal(int number)
{
    is_interrupted = 1;
}

/* A second signal ends the program, even while it waits. */
static void catch_signals(void)
{
    const struct sigaction action = {.sa_handler = watch_on_signal, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static void wait_us(int64_t us)
{
    const struct timespec delay = {us / AS_US_PER_S, us % AS_US_PER_S * 1000};
    (void)nanosleep(&delay, NULL); /* a signal ends it early, as intended */
}

/* Overwrites line by line, cut to the window: no flicker, no wrapping. */
static void watch_draw(const char *text)
{
    struct winsize window = {.ws_row = 24, .ws_col = 80};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0)
        window = (struct winsize){.ws_row = 24, .ws_col = 80};
    fputs("\033[H", stdout);
    for (unsigned row = 1; *text && row < window.ws_row; row++) {
        const size_t size = strcspn(text, "\n");
        const size_t shown = as_str_cut_utf8(text, size, window.ws_col);
        printf("%.*s\033[K\n", (int)shown, text);
        text += size + (text[size] == '\n');
    }
    if (*text)
        fputs("...", stdout);
    fputs("\033[J", stdout);
    (void)fflush(stdout);
}

/* UTC, in seconds, as in all output of alertscaler. */
static char *watch_print_time(void)
{
    struct timespec now;
    char text[AS_RFC3339_SIZE];
    clock_gettime(CLOCK_REALTIME, &now);
    as_wall_time_print_short((as_wall_time){(int64_t)now.tv_sec * AS_US_PER_S}, text);
    return as_xstrdup(text);
}

struct picture {
    char *text;       /* last answer; NULL: none yet */
    char *fetched_at; /* its time */
    char *problem;    /* the last attempt's; NULL: none */
    bool is_old;      /* the last attempt got no answer */
};

static void picture_deinit(struct picture *picture)
{
    free(picture->text);
    free(picture->fetched_at);
    free(picture->problem);
}

static void watch_fetch(const struct as_args *args, watch_print_fn *print, struct picture *picture)
{
    char *text = NULL, *problem = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort(); /* only without memory */
    const int status = print(args, out, &problem);
    (void)fclose(out);
    free(picture->problem);
    picture->problem = problem;
    picture->is_old = status != AS_EXIT_OK;
    if (picture->is_old) {
        free(text);
        return;
    }
    free(picture->text);
    free(picture->fetched_at);
    picture->text = text;
    picture->fetched_at = watch_print_time();
}

static void show_on_terminal(const struct picture *picture)
{
    AS_CLEANUP(as_free_p) char *now = watch_print_time();
    AS_CLEANUP(as_free_p)
    char *head = picture->problem ? as_xasprintf("%s  %s", now, picture->problem) : as_xstrdup(now);
    AS_CLEANUP(as_free_p)
    char *below = picture->is_old && picture->fetched_at
                      ? as_xasprintf("as it was at %s:\n%s", picture->fetched_at, picture->text)
                      : as_xstrdup(picture->text ? picture->text : "");
    AS_CLEANUP(as_free_p) char *whole = as_xasprintf("%s\n\n%s", head, below);
    watch_draw(whole);
}

static void watch_show(const struct as_args *args, const struct picture *picture, bool is_terminal)
{
    if (is_terminal) {
        show_on_terminal(picture);
        return;
    }
    if (picture->problem)
        (void)as_cli_fail(args, "%s", picture->problem);
    if (!picture->is_old)
        printf("%s\n", picture->text);
    (void)fflush(stdout);
}

/* Formats for programs are not redrawn. */
static bool watch_is_for_people(const struct as_args *args)
{
    const char *format = as_args_get(args, "output");
    return strcmp(format, "text") == 0 || strcmp(format, "wide") == 0;
}

int watch_run(const struct as_args *args, watch_print_fn *print)
{
    AS_CLEANUP(picture_deinit) struct picture picture = {0};
    struct as_error error = AS_ERROR_INIT;
    const bool is_terminal = isatty(STDOUT_FILENO) && watch_is_for_people(args);
    int64_t interval;
    if (as_duration_parse(as_args_get(args, "interval"), &interval, &error) != 0)
        return as_cli_fail(args, "--interval: %s", error.text);
    if (interval < INTERVAL_MIN_US)
        return as_cli_fail(args, "--interval: expected at least 100ms");
    catch_signals();
    if (is_terminal)
        fputs("\033[2J", stdout);
    while (!is_interrupted) {
        watch_fetch(args, print, &picture);
        if (!is_interrupted)
            watch_show(args, &picture, is_terminal);
        if (ferror(stdout))
            return AS_EXIT_USAGE;
        if (!is_interrupted)
            wait_us(interval);
    }
    return AS_EXIT_OK;
}
