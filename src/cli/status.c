/*
 * `alertscaler status`: a running daemon's targets as a table, below what holds all of them; once,
 * or repeated.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>
#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/reason.h>

#include "cli.h"
#include "http_call.h"

/* --- the table --- */

#define REASON_SHOWN 40   /* bytes of a pause's reason in the table */
#define CAUSES_MAX   4096 /* bytes of what the bounds come from */

enum {
    COLUMN_TARGET,
    COLUMN_SIZE,
    COLUMN_BOUNDS,
    COLUMN_LOCKED,
    COLUMN_PAUSED,
    COLUMN_OPEN,
    COLUMN_LAST,
    COLUMNS
};

static const char *const titles[COLUMNS] = {
    [COLUMN_TARGET] = "TARGET",      [COLUMN_SIZE] = "SIZE",     [COLUMN_BOUNDS] = "BOUNDS",
    [COLUMN_LOCKED] = "LOCKED",      [COLUMN_PAUSED] = "PAUSED", [COLUMN_OPEN] = "INCIDENTS",
    [COLUMN_LAST] = "LAST DECISION",
};

struct row {
    char *cells[COLUMNS];
};

static int64_t get_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000;
}

static const char *status_get_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Time since, in one unit: "45s", "9m", "3h"; time until, in two: "9m40s". False: absent. */
static bool describe_span(const json_t *object, const char *key, bool is_ago, int64_t now_us,
                          char *text_out, size_t size)
{
    static const struct {
        int64_t us;
        const char *unit;
    } units[] = {
        {AS_US_PER_DAY, "d"}, {AS_US_PER_H, "h"}, {AS_US_PER_MIN, "m"}, {AS_US_PER_S, "s"}};
    const char *text = status_get_text(object, key);
    as_wall_time time;
    if (as_wall_time_parse(text, strlen(text), &time) != 0)
        return false;
    int64_t us = is_ago ? now_us - time.us : time.us - now_us;
    us = us > 0 ? us : 0;
    size_t i = 0;
    while (i + 1 < AS_ARRAY_SIZE(units) && us < 2 * units[i].us)
        i++;
    int used = snprintf(text_out, size, "%" PRId64 "%s", us / units[i].us, units[i].unit);
    const int64_t rest = i + 1 < AS_ARRAY_SIZE(units) ? us % units[i].us / units[i + 1].us : 0;
    if (!is_ago && rest > 0)
        (void)snprintf(text_out + used, size - (size_t)used, "%" PRId64 "%s", rest,
                       units[i + 1].unit);
    return true;
}

/* "40 (40Gi)" */
static const char *status_print_size(const json_t *target, json_int_t size,
                                     char text_out[AS_SIZE_TEXT_SIZE])
{
    const int32_t count = size < 0 ? 0 : size > INT32_MAX ? INT32_MAX : (int32_t)size;
    return as_unit_print_size(status_get_text(target, "unit"), count, text_out);
}

static char *describe_size(const json_t *target)
{
    char from[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];
    const json_t *replicas = json_object_get(target, "replicas");
    const json_t *ordered = json_object_get(target, "ordered");
    const json_int_t desired =
        json_integer_value(json_is_integer(ordered) ? ordered : json_object_get(target, "desired"));
    if (!json_is_integer(replicas))
        return as_xstrdup("?");
    if (desired == json_integer_value(replicas))
        return as_xstrdup(status_print_size(target, desired, to));
    return as_xasprintf("%s->%s", status_print_size(target, json_integer_value(replicas), from),
                        status_print_size(target, desired, to));
}

static void append_cause(struct as_buf *out, const char *name, const json_t *of, const char *end,
                         int64_t now_us)
{
    char left[64];
    const bool has_end = describe_span(of, end, false, now_us, left, sizeof(left));
    as_buf_printf(out, "%s%s%s%s", out->size > 0 ? ", " : "", name, has_end ? " " : "",
                  has_end ? left : "");
}

/* "12-40 (floor 2h0m, office 5h10m)": what has made the bounds, and for how long still */
static char *describe_bounds(const json_t *target, int64_t now_us)
{
    const json_t *min = json_object_get(target, "min"), *max = json_object_get(target, "max");
    const json_t *floor = json_object_get(target, "floor"), *schedule;
    AS_CLEANUP(as_buf_deinit) struct as_buf causes = AS_BUF_INIT(CAUSES_MAX);
    size_t i;
    if (!json_is_integer(min))
        return as_xstrdup("-");
    if (json_is_object(floor))
        append_cause(&causes, "floor", floor, "until", now_us);
    json_array_foreach(json_object_get(target, "schedules"), i, schedule)
    {
        if (json_is_true(json_object_get(schedule, "in_force")))
            append_cause(&causes, status_get_text(schedule, "name"), schedule, "changes", now_us);
    }
    const bool is_plain = causes.size == 0 || as_buf_check(&causes) < 0;
    return as_xasprintf("%" JSON_INTEGER_FORMAT "-%" JSON_INTEGER_FORMAT "%s%s%s",
                        json_integer_value(min), json_integer_value(max), is_plain ? "" : " (",
                        is_plain ? "" : causes.data, is_plain ? "" : ")");
}

static char *describe_locks(const json_t *target, int64_t now_us)
{
    const json_t *locks = json_object_get(target, "locked_until");
    char up[64], down[64];
    const bool is_up = describe_span(locks, "up", false, now_us, up, sizeof(up));
    const bool is_down = describe_span(locks, "down", false, now_us, down, sizeof(down));
    if (!is_up && !is_down)
        return as_xstrdup("-");
    return as_xasprintf("%s%s%s%s%s", is_up ? "up " : "", is_up ? up : "",
                        is_up && is_down ? ", " : "", is_down ? "down " : "", is_down ? down : "");
}

/* Left alone, as others set its size back: "58m: contended by kube-controller-manager" */
static char *describe_contended(const json_t *contended, int64_t now_us)
{
    const json_t *reverted_changes = json_object_get(contended, "set_backs");
    const json_t *last = json_array_get(reverted_changes, json_array_size(reverted_changes) - 1);
    const char *by = status_get_text(last, "by");
    char left[64] = "?";
    (void)describe_span(contended, "until", false, now_us, left, sizeof(left));
    return as_xasprintf("%s: contended%s%s", left, *by ? " by " : "", by);
}

/* "down, 5h10m: held by schedule sale"; "down: held by rule upstream" */
static char *describe_hold(const json_t *holds, int64_t now_us)
{
    const json_t *first = json_array_get(holds, 0);
    char left[64];
    const bool has_end = describe_span(first, "until", false, now_us, left, sizeof(left));
    const char *name = status_get_text(first, "name");
    return as_xasprintf("%s%s%s: held by %s%s%s%s", status_get_text(first, "direction"),
                        has_end ? ", " : "", has_end ? left : "", status_get_text(first, "by"),
                        *name ? " " : "", name, json_array_size(holds) > 1 ? ", ..." : "");
}

/* "58m: load test"; "until resumed: ..." */
static char *describe_pause(const json_t *target, int64_t now_us)
{
    const json_t *pause = json_object_get(target, "paused");
    const json_t *holds = json_object_get(target, "holds");
    const char *reason = status_get_text(pause, "reason");
    char left[64];
    if (!json_is_object(pause) && json_is_object(json_object_get(target, "contended")))
        return describe_contended(json_object_get(target, "contended"), now_us);
    if (!json_is_object(pause))
        return json_array_size(holds) > 0 ? describe_hold(holds, now_us) : as_xstrdup("-");
    if (!describe_span(pause, "until", false, now_us, left, sizeof(left)))
        memcpy(left, "until resumed", sizeof("until resumed"));
    const size_t size = strlen(reason), shown = as_str_cut_utf8(reason, size, REASON_SHOWN);
    const char *direction = status_get_text(pause, "direction");
    const bool is_one_way = *direction && strcmp(direction, "both") != 0;
    return as_xasprintf("%s%s%s: %.*s%s", is_one_way ? direction : "", is_one_way ? ", " : "", left,
                        (int)shown, reason, shown < size ? "..." : "");
}

static char *describe_last(const json_t *target, int64_t now_us)
{
    const json_t *last = json_object_get(target, "last_decision");
    const char *failure = status_get_text(target, "failure");
    const char *rule = status_get_text(last, "rule");
    char ago[64];
    if (!describe_span(last, "time", true, now_us, ago, sizeof(ago)))
        return as_xstrdup(*failure ? failure : "-");
    char would[AS_SIZE_TEXT_SIZE + 16] = "", size[AS_SIZE_TEXT_SIZE];
    if (json_is_integer(json_object_get(last, "would")))
        (void)snprintf(
            would, sizeof(would), " would be %s",
            status_print_size(target, json_integer_value(json_object_get(last, "would")), size));
    /* a change that was not carried out is not "scaled" */
    const bool is_undone = *failure && strcmp(status_get_text(last, "reason"),
                                              as_reason_get_word(AS_REASON_SCALED)) == 0;
    return as_xasprintf("%s%s%s%s, %s ago%s%s",
                        is_undone ? "wanted another size" : status_get_text(last, "reason"), would,
                        *rule ? " by " : "", rule, ago, *failure ? "; failed: " : "", failure);
}

static struct row make_row(const json_t *target, int64_t now_us)
{
    const char *name = status_get_text(target, "name");
    const bool has_own_name = *name && !json_is_true(json_object_get(target, "templated"));
    const json_t *open = json_object_get(target, "open_incidents");
    return (struct row){.cells = {
                            as_xstrdup(has_own_name ? name : status_get_text(target, "id")),
                            describe_size(target),
                            describe_bounds(target, now_us),
                            describe_locks(target, now_us),
                            describe_pause(target, now_us),
                            as_xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(open)),
                            describe_last(target, now_us),
                        }};
}

static void status_print_cells(const char *const *cells, const size_t *widths, FILE *out)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        const int width = i + 1 < COLUMNS ? (int)widths[i] + 2 : 0;
        fprintf(out, "%-*s", width, cells[i]);
    }
    fputc('\n', out);
}

static void status_print_table(const json_t *targets, FILE *out)
{
    const size_t count = json_array_size(targets);
    const int64_t now_us = get_now_us();
    struct row *rows = as_xcalloc(count + 1, sizeof(*rows));
    size_t widths[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++)
        widths[i] = strlen(titles[i]);
    for (size_t k = 0; k < count; k++) {
        rows[k] = make_row(json_array_get(targets, k), now_us);
        for (size_t i = 0; i < COLUMNS; i++) {
            rows[k].cells[i] = as_safe_text_take(rows[k].cells[i]);
            const size_t width = strlen(rows[k].cells[i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    status_print_cells(titles, widths, out);
    for (size_t k = 0; k < count; k++) {
        status_print_cells((const char *const *)rows[k].cells, widths, out);
        for (size_t i = 0; i < COLUMNS; i++)
            free(rows[k].cells[i]);
    }
    free(rows);
}

/* What holds all targets, and which replica leads. */
static void print_above(const json_t *status, FILE *out)
{
    const json_t *pause = json_object_get(status, "paused");
    const char *who = status_get_text(pause, "who");
    const char *leader = status_get_text(json_object_get(status, "leadership"), "holder");
    char left[64];
    if (*leader) {
        fputs("Leader: ", out);
        as_safe_text_put(out, leader);
        fputc('\n', out);
    }
    if (json_is_true(json_object_get(status, "dry_run")))
        fputs("Dry run: nothing is changed.\n", out);
    if (!json_is_object(pause))
        return;
    if (json_is_true(json_object_get(pause, "kill_switch")))
        fputs("The kill switch is set: nothing is scaled", out);
    else
        fputs("Everything is paused", out);
    fprintf(out, "%s", *who ? ", by " : "");
    as_safe_text_put(out, who);
    if (describe_span(pause, "until", false, get_now_us(), left, sizeof(left)))
        fprintf(out, ", for another %s", left);
    fputs(": ", out);
    as_safe_text_put(out, status_get_text(pause, "reason"));
    fputc('\n', out);
}

static char *status_make_path(const struct as_args *args)
{
    if (args->operand_count == 0)
        return as_xstrdup("/api/v1/targets");
    char *escaped = curl_easy_escape(NULL, args->operands[0], 0);
    char *path = as_xasprintf("/api/v1/targets/%s", escaped ? escaped : "");
    curl_free(escaped);
    return path;
}

/* "5 tries since 3m, next in 40s" */
static void status_print_tries(const json_t *target, FILE *out)
{
    const json_int_t tries = json_integer_value(json_object_get(target, "tries"));
    const int64_t now_us = get_now_us();
    char span[64];
    if (tries <= 0)
        return;
    fprintf(out, " (%" JSON_INTEGER_FORMAT " %s", tries, tries == 1 ? "try" : "tries");
    if (describe_span(target, "failing_since", true, now_us, span, sizeof(span)))
        fprintf(out, " for %s", span);
    if (describe_span(target, "next_try", false, now_us, span, sizeof(span)))
        fprintf(out, ", next in %s", span);
    fputc(')', out);
}

/* Why targets failed: too long for the table. */
static void print_failures(const json_t *targets, FILE *out)
{
    const json_t *target;
    size_t i;
    json_array_foreach(targets, i, target)
    {
        const char *failure = status_get_text(target, "failure");
        const char *text = status_get_text(target, "failure_text");
        if (!*failure)
            continue;
        as_safe_text_put(out, status_get_text(target, "name"));
        fprintf(out, ": %s%s", failure, *text ? ": " : "");
        as_safe_text_put(out, text);
        status_print_tries(target, out);
        fputc('\n', out);
    }
}

/* What happens after an incident. */
static void status_print_next(const json_t *targets, FILE *out)
{
    const json_t *target;
    size_t i;
    json_array_foreach(targets, i, target) http_print_next(target, out);
}

/* HPAs and ScaledObjects that aim at targets. */
static void status_print_others(const json_t *targets, FILE *out)
{
    const json_t *target, *other;
    size_t i, k;
    json_array_foreach(targets, i, target)
    {
        json_array_foreach(json_object_get(target, "others"), k, other)
        {
            as_safe_text_put(out, status_get_text(target, "name"));
            fprintf(out, ": the %s ", status_get_text(other, "kind"));
            as_safe_text_put(out, status_get_text(other, "name"));
            fputs(json_is_true(json_object_get(other, "paused")) ? " sizes it too (paused)\n"
                                                                 : " sizes it too\n",
                  out);
        }
    }
}

/* Rules that did not help. */
static void status_print_ineffective(const json_t *targets, FILE *out)
{
    const json_t *target, *rule;
    size_t i, k;
    json_array_foreach(targets, i, target)
    {
        json_array_foreach(json_object_get(target, "ineffective"), k, rule)
        {
            char left[64] = "0s";
            (void)describe_span(rule, "until", false, get_now_us(), left, sizeof(left));
            as_safe_text_put(out, status_get_text(target, "name"));
            fputs(": the rule ", out);
            as_safe_text_put(out, status_get_text(rule, "rule"));
            fprintf(out, " did not help: held for another %s, or until resume\n", left);
        }
    }
}

/* Rules with queries that the server refuses, of the targets shown; all of them if all targets are
 * shown, since a rule may have no target yet. */
static void status_print_query_errors(const json_t *status, const json_t *targets, bool is_all,
                                      FILE *out)
{
    const json_t *rule, *target;
    size_t i, k;
    json_array_foreach(json_object_get(json_object_get(status, "data"), "query_errors"), i, rule)
    {
        bool is_shown = is_all;
        json_array_foreach(targets, k, target) is_shown =
            is_shown ||
            strcmp(status_get_text(target, "name"), status_get_text(rule, "target")) == 0;
        if (!is_shown)
            continue;
        as_safe_text_put(out, status_get_text(rule, "target"));
        fputs(": the server refuses a query of the rule ", out);
        as_safe_text_put(out, status_get_text(rule, "rule"));
        fputs(": ", out);
        as_safe_text_put(out, status_get_text(rule, "error"));
        fputc('\n', out);
    }
}

static bool status_has_target(const json_t *targets, const char *id)
{
    const json_t *target;
    size_t i;
    json_array_foreach(targets, i, target)
    {
        if (strcmp(status_get_text(target, "id"), id) == 0)
            return true;
    }
    return false;
}

static void status_print_request(const json_t *request, FILE *out)
{
    const char *name = status_get_text(request, "target_name");
    const bool is_approved = strcmp(status_get_text(request, "answer"), "approved") == 0;
    char left[64] = "0s", from[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];
    (void)describe_span(request, "until", false, get_now_us(), left, sizeof(left));
    as_safe_text_put(out, *name ? name : status_get_text(request, "target"));
    fputs(is_approved ? ": approved: " : ": needs an approval: ", out);
    as_safe_text_put(out, status_get_text(request, "rule"));
    fprintf(out, " from %s to %s",
            status_print_size(request, json_integer_value(json_object_get(request, "from")), from),
            status_print_size(request, json_integer_value(json_object_get(request, "to")), to));
    fprintf(out, ", for another %s: alertscaler %s ", left, is_approved ? "deny" : "approve");
    as_safe_text_put(out, status_get_text(request, "id"));
    fputc('\n', out);
}

/* What people are asked, of the targets shown. */
static void print_requests(const struct as_args *args, const json_t *targets, FILE *out)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    int unused;
    json_t *json = http_call_ask(args, "/api/v1/approvals", &problem, &unused);
    const json_t *request;
    size_t i;
    if (!json) { /* silence would say that nothing waits */
        fputs("It is not known what waits for an approval: ", out);
        as_safe_text_put(out, problem);
        fputc('\n', out);
    }
    json_array_foreach(json_object_get(json, "data"), i, request)
    {
        const char *answer = status_get_text(request, "answer");
        if ((strcmp(answer, "waiting") == 0 || strcmp(answer, "approved") == 0) &&
            status_has_target(targets, status_get_text(request, "target")))
            status_print_request(request, out);
    }
    json_decref(json);
}

static void status_print_text(const struct as_args *args, json_t *data, FILE *out)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    int unused;
    json_t *status = http_call_ask(args, "/api/v1/status", &problem, &unused);
    print_above(json_object_get(status, "data"), out); /* the table is printed in any case */
    json_t *targets = json_is_array(data) ? json_incref(data) : json_pack("[O]", data);
    status_print_table(targets, out);
    print_failures(targets, out);
    status_print_next(targets, out);
    status_print_others(targets, out);
    status_print_ineffective(targets, out);
    status_print_query_errors(status, targets, json_is_array(data), out);
    json_decref(status);
    print_requests(args, targets, out);
    json_decref(targets);
}

/* Prints the status once. Returns the exit status, with the problem, for free(); with 0 the problem
 * is only a warning, or NULL. */
static int status_print(const struct as_args *args, FILE *out, char **problem_out)
{
    AS_CLEANUP(as_free_p) char *path = status_make_path(args);
    int status;
    json_t *json = http_call_ask(args, path, problem_out, &status);
    if (!json)
        return status;
    json_t *data = json_object_get(json, "data");
    const char *warning = json_string_value(json_array_get(json_object_get(json, "warnings"), 0));
    if (as_args_wants_json(args)) {
        as_cli_print_json(data, JSON_INDENT(2), out);
    } else {
        status_print_text(args, data, out);
    }
    if (warning)
        *problem_out = as_safe_text_take(as_xstrdup(warning));
    json_decref(json);
    return AS_EXIT_OK;
}

/* --- status --watch --- */

/*
 * On a terminal it redraws the table, else it prints one after the other. If the daemon does not
 * answer, it says so above the last table, and tries again.
 */

#define INTERVAL_MIN_US (100 * AS_US_PER_MS)

static volatile sig_atomic_t is_interrupted;

static void status_on_signal(int number)
{
    is_interrupted = 1;
}

/* A second signal ends the program, even while it waits. */
static void catch_signals(void)
{
    const struct sigaction action = {.sa_handler = status_on_signal, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static void wait_us(int64_t us)
{
    const struct timespec delay = {us / AS_US_PER_S, us % AS_US_PER_S * 1000};
    (void)nanosleep(&delay, NULL); /* a signal ends it early, as intended */
}

/* Overwrites line by line, cut to the window: no flicker, no wrapping. */
static void status_draw(const char *text)
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
static char *status_print_time(void)
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

static void status_fetch(const struct as_args *args, struct picture *picture)
{
    char *text = NULL, *problem = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort(); /* only without memory */
    const int status = status_print(args, out, &problem);
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
    picture->fetched_at = status_print_time();
}

static void show_on_terminal(const struct picture *picture)
{
    AS_CLEANUP(as_free_p) char *now = status_print_time();
    AS_CLEANUP(as_free_p)
    char *head = picture->problem ? as_xasprintf("%s  %s", now, picture->problem) : as_xstrdup(now);
    AS_CLEANUP(as_free_p)
    char *below = picture->is_old && picture->fetched_at
                      ? as_xasprintf("as it was at %s:\n%s", picture->fetched_at, picture->text)
                      : as_xstrdup(picture->text ? picture->text : "");
    AS_CLEANUP(as_free_p) char *whole = as_xasprintf("%s\n\n%s", head, below);
    status_draw(whole);
}

static void status_show(const struct as_args *args, const struct picture *picture, bool is_terminal)
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

/* Repeats until interrupted. */
static int status_watch(const struct as_args *args)
{
    AS_CLEANUP(picture_deinit) struct picture picture = {0};
    struct as_error error = AS_ERROR_INIT;
    const bool is_terminal = isatty(STDOUT_FILENO) && !as_args_wants_json(args);
    int64_t interval;
    if (as_duration_parse(as_args_get(args, "interval"), &interval, &error) != 0)
        return as_cli_fail(args, "--interval: %s", error.text);
    if (interval < INTERVAL_MIN_US)
        return as_cli_fail(args, "--interval: expected at least 100ms");
    catch_signals();
    if (is_terminal)
        fputs("\033[2J", stdout);
    while (!is_interrupted) {
        status_fetch(args, &picture);
        if (!is_interrupted)
            status_show(args, &picture, is_terminal);
        if (ferror(stdout))
            return AS_EXIT_USAGE;
        if (!is_interrupted)
            wait_us(interval);
    }
    return AS_EXIT_OK;
}

/* --- the command --- */

static int status_run(const struct as_args *args)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    if (as_args_has(args, "watch"))
        return status_watch(args);
    const int status = status_print(args, stdout, &problem);
    if (problem)
        (void)as_cli_fail(args, "%s", problem);
    if (status == AS_EXIT_NO && args->operand_count > 0)
        http_suggest_target(args, args->operands[0]);
    return status;
}

static const struct as_option status_options[] = {
    {.name = "watch", .letter = 'w', .help = "Refreshes the table until it is interrupted"},
    {.name = "interval",
     .value = "DURATION",
     .fallback = "2s",
     .help = "With --watch: time between refreshes"},
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_status = {
    .name = "status",
    .operands = "[TARGET]",
    .summary = "Shows a running daemon's targets: size, bounds, locks, pauses, last decision.",
    .help = "TARGET is a name in the rule files, or an id. What holds all targets, such as a pause "
            "of all,\n"
            "is shown above the table.",
    .options = status_options,
    .operands_max = 1,
    .run = status_run,
};
