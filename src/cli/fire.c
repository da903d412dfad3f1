/*
 * `alertscaler fire`: sends the notification that Alertmanager would send for one alert.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/monitoring/payload.h>

#include "cli.h"
#include "fire_after.h"
#include "http_call.h"

#define BODY_MAX    ((size_t)16 * 1024 * 1024)
#define NEVER_ENDED ((as_wall_time){INT64_C(-62135596800) * AS_US_PER_S}) /* the year 1 */

static as_wall_time get_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (as_wall_time){(int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static int read_labels(const struct as_args *args, struct as_alert *alert, struct as_error *error)
{
    const char **annotations = as_xcalloc(args->given_count + 1, sizeof(*annotations));
    size_t count = 0, at = 0;
    const char *text;
    while ((text = as_args_find_next(args, "annotation", &at)))
        annotations[count++] = text;
    int status =
        label_arguments_parse(args->operands, args->operand_count, "label", &alert->labels, error);
    if (status == 0)
        status =
            label_arguments_parse(annotations, count, "annotation", &alert->annotations, error);
    as_free_p(&annotations);
    return status;
}

/* Firing and resolved alert of this command have the same start. */
static int read_times(const struct as_args *args, as_wall_time now, struct as_alert *alert,
                      struct as_error *error)
{
    const char *text = as_args_get(args, "starts-at");
    alert->starts_at = now;
    alert->ends_at = alert->status == AS_ALERT_RESOLVED ? get_now() : NEVER_ENDED;
    if (text && as_wall_time_parse(text, strlen(text), &alert->starts_at) != 0) {
        as_error_set(error, "--starts-at: expected a time as 2026-11-20T10:00:00Z");
        return -EINVAL;
    }
    return 0;
}

static int make_body(const struct as_args *args, enum as_alert_status status, as_wall_time now,
                     struct as_buf *body, struct as_error *error)
{
    AS_CLEANUP(as_notification_free_p)
    struct as_notification *notification = as_xcalloc(1, sizeof(*notification));
    notification->receiver = as_xstrdup(as_args_get(args, "receiver"));
    notification->group_key = as_xstrdup("{}:{}");
    notification->reason = as_xstrdup("");
    notification->remote = as_xstrdup("");
    notification->credential = as_xstrdup("");
    notification->traceparent = as_xstrdup("");
    notification->alerts = as_xcalloc(1, sizeof(*notification->alerts));
    notification->alert_count = 1;
    struct as_alert *alert = &notification->alerts[0];
    alert->status = status;
    int code = read_labels(args, alert, error);
    if (code == 0)
        code = read_times(args, now, alert, error);
    if (code != 0)
        return code;
    alert->fingerprint = as_labels_get_fingerprint(alert->labels);
    as_payload_encode(notification, body);
    code = as_buf_check(body);
    if (code != 0)
        as_error_set(error, "the notification would be longer than %zu bytes", BODY_MAX);
    return code;
}

static const char *get_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void print_outcome(const json_t *alert)
{
    const json_t *rules = json_object_get(alert, "rules");
    const char *problem = get_text(alert, "error");
    if (*problem) {
        printf("%s: %s\n", get_text(alert, "outcome"), problem);
        return;
    }
    printf("%s %s: %s", get_text(alert, "fingerprint"), get_text(alert, "status"),
           get_text(alert, "outcome"));
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const char *rule = json_string_value(json_array_get(rules, i));
        printf("%s%s", i == 0 ? ", by rule " : ", ", rule ? rule : "");
    }
    putchar('\n');
}

/* Why an alert was not queued: it has no effect. */
static void print_reason(const json_t *alert)
{
    enum as_reason reason;
    if (!as_reason_find(get_text(alert, "outcome"), &reason))
        return;
    puts(as_reason_get_meaning(reason));
    if (reason == AS_REASON_NO_RULE)
        puts("Which rules almost match: alertscaler explain NAME=VALUE...");
}

static int print_answer(const struct as_args *args, const struct http_answer *answer,
                        json_t **alert_out)
{
    json_t *json = http_answer_load(args, answer);
    json_t *alert = json_incref(json_array_get(json_object_get(json, "alerts"), 0));
    json_decref(json);
    if (!alert)
        return as_cli_fail(args, "the answer is not alertscaler's");
    if (as_args_wants_json(args))
        as_safe_json_put(stdout, answer->body.data, answer->body.size);
    else
        print_outcome(alert);
    *alert_out = alert;
    return AS_EXIT_OK;
}

/* The answer's alert as a new reference; NULL after printing the problem. */
static int send_alert(const struct as_args *args, enum as_alert_status status, as_wall_time now,
                      json_t **alert_out)
{
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(BODY_MAX);
    AS_CLEANUP(http_answer_deinit) struct http_answer answer = {0};
    if (make_body(args, status, now, &body, &error) != 0 ||
        http_call_run(args, "/webhook", &body, &answer, &error) != 0)
        return as_cli_fail(args, "%s", error.text);
    if (answer.status != 200)
        return http_answer_refuse(args, &answer);
    return print_answer(args, &answer, alert_out);
}

/* After an alert was queued: waits for decisions, and resolves it. */
static int follow(const struct as_args *args, struct fire_after *after, const json_t *alert,
                  as_wall_time now, int64_t for_us)
{
    int status = AS_EXIT_OK;
    if (!as_args_has(args, "for") && !as_args_wants_json(args))
        fire_after_print(after);
    if (as_args_has(args, "wait"))
        status = fire_after_wait(after, get_text(alert, "digest"));
    if (!as_args_has(args, "for"))
        return status;
    const int64_t left_us = for_us - (get_now().us - now.us);
    fire_after_hold(after, left_us);
    json_t *resolved = NULL;
    const int end = send_alert(args, AS_ALERT_RESOLVED, now, &resolved);
    json_decref(resolved);
    return end > status ? end : status;
}

static int fire(const struct as_args *args, struct fire_after *after, int64_t for_us)
{
    const bool is_firing = !as_args_has(args, "resolved");
    const as_wall_time now = get_now();
    json_t *alert = NULL;
    int status = send_alert(args, is_firing ? AS_ALERT_FIRING : AS_ALERT_RESOLVED, now, &alert);
    if (status != AS_EXIT_OK)
        return status;
    const bool is_queued = strcmp(get_text(alert, "outcome"), "queued") == 0;
    if (!is_queued && !as_args_wants_json(args))
        print_reason(alert);
    if (!is_queued && as_args_has(args, "wait"))
        status = AS_EXIT_NO; /* no effects to wait for */
    else if (is_queued && is_firing)
        status = follow(args, after, alert, now, for_us);
    json_decref(alert);
    return status;
}

static int run(const struct as_args *args)
{
    const char *duration = as_args_get(args, "for");
    AS_CLEANUP(fire_after_deinit) struct fire_after after = {0};
    struct as_error error = AS_ERROR_INIT;
    int64_t for_us = 0;
    if (as_args_has(args, "resolved") && (duration || as_args_has(args, "wait")))
        return as_cli_fail(args, "--for and --wait are about an alert that fires: not --resolved");
    if (duration && as_duration_parse(duration, &for_us, &error) != 0)
        return as_cli_fail(args, "--for: %s", error.text);
    const int status = fire_after_begin(args, &after);
    return status == AS_EXIT_OK ? fire(args, &after, for_us) : status;
}

static const struct as_option options[] = {
    {.name = "resolved", .help = "the alert has ended (default: it is firing)"},
    {.name = "for",
     .value = "DURATION",
     .help = "Resolves the alert automatically after this time (2m), or at Ctrl-C"},
    {.name = "wait", .help = "Prints the decisions that follow, with their reasons"},
    {.name = "annotation",
     .value = "NAME=VALUE",
     .repeats = true,
     .help = "an annotation of the alert; may be repeated"},
    {.name = "starts-at",
     .value = "TIME",
     .help = "since when it fires (default: now); the same time again is a repeat"},
    {.name = "receiver",
     .value = "NAME",
     .fallback = "alertscaler",
     .help = "Alertmanager's receiver"},
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_fire = {
    .name = "fire",
    .operands = "NAME=VALUE...",
    .summary = "Sends the notification of one alert with these labels to a daemon, to try rules.",
    .help =
        "For example: alertscaler fire alertname=CheckoutLatencyHigh severity=page\n"
        "It has the same effects as a real alert (see dry_run). The alert stays open until it is\n"
        "resolved: by --for, or by the same command with --resolved.\n"
        "With --wait, exit status 1 if a target could not be read or set, or nothing was "
        "decided within 30s;\n"
        "the token needs the permission read.",
    .options = options,
    .operands_min = 1,
    .operands_max = LABEL_ARGUMENTS_MAX,
    .run = run,
};
