/*
 * `alertscaler fire`: sends the notification that Alertmanager would send for one alert.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/wire/payload.h>

#include "http_call.h"

#define BODY_MAX    ((size_t)16 * 1024 * 1024)
#define LABELS_MAX  1000
#define NEVER_ENDED ((as_wall_time){INT64_C(-62135596800) * AS_US_PER_S}) /* the year 1 */

static as_wall_time get_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (as_wall_time){(int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

struct pairs {
    struct as_label *items;
    char **texts; /* what the items point into */
    size_t count, capacity, text_capacity;
};

static void pairs_deinit(struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++)
        free(pairs->texts[i]);
    free(pairs->texts);
    free(pairs->items);
}

/* "name=value"; the value may be empty and hold further '='. */
static int add_pair(struct pairs *pairs, const char *text, const char *what, struct as_error *error)
{
    const size_t size = strcspn(text, "=");
    if (size == 0 || text[size] == '\0') {
        as_error_set(error, "\"%s\" is not %s: expected NAME=VALUE", text, what);
        return -EINVAL;
    }
    if (!as_str_is_utf8(text, strlen(text))) {
        as_error_set(error, "%s is not UTF-8", what);
        return -EINVAL;
    }
    pairs->items = as_xgrow(pairs->items, pairs->count, &pairs->capacity, sizeof(*pairs->items));
    pairs->texts = as_xgrow(pairs->texts, pairs->count, &pairs->text_capacity, sizeof(char *));
    char *copy = as_xstrdup(text);
    copy[size] = '\0';
    pairs->texts[pairs->count] = copy;
    pairs->items[pairs->count++] = (struct as_label){copy, copy + size + 1};
    return 0;
}

static int make_labels(const struct pairs *pairs, const char *what, struct as_labels **labels_out,
                       struct as_error *error)
{
    const int r = as_labels_new(pairs->items, pairs->count, labels_out);
    if (r != 0)
        as_error_set(error, r == -EEXIST ? "a %s is given twice" : "the %ss are too large", what);
    return r;
}

static int read_labels(const struct as_args *args, struct as_alert *alert, struct as_error *error)
{
    AS_CLEANUP(pairs_deinit) struct pairs labels = {0};
    AS_CLEANUP(pairs_deinit) struct pairs annotations = {0};
    int r = 0;
    for (size_t i = 0; i < args->operand_count && r == 0; i++)
        r = add_pair(&labels, args->operands[i], "a label", error);
    size_t at = 0;
    const char *text;
    while (r == 0 && (text = as_args_find_next(args, "annotation", &at)))
        r = add_pair(&annotations, text, "an annotation", error);
    if (r == 0)
        r = make_labels(&labels, "label", &alert->labels, error);
    if (r == 0)
        r = make_labels(&annotations, "annotation", &alert->annotations, error);
    return r;
}

static int read_times(const struct as_args *args, struct as_alert *alert, struct as_error *error)
{
    const as_wall_time now = get_now();
    const char *text = as_args_get(args, "starts-at");
    alert->starts_at = now;
    alert->ends_at = alert->status == AS_ALERT_RESOLVED ? now : NEVER_ENDED;
    if (text && as_wall_time_parse(text, strlen(text), &alert->starts_at) != 0) {
        as_error_set(error, "--starts-at: expected a time as 2026-11-20T10:00:00Z");
        return -EINVAL;
    }
    return 0;
}

static int make_body(const struct as_args *args, struct as_buf *body, struct as_error *error)
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
    alert->status = as_args_has(args, "resolved") ? AS_ALERT_RESOLVED : AS_ALERT_FIRING;
    int r = read_labels(args, alert, error);
    if (r == 0)
        r = read_times(args, alert, error);
    if (r != 0)
        return r;
    alert->fingerprint = as_labels_get_fingerprint(alert->labels);
    as_payload_encode(notification, body);
    r = as_buf_check(body);
    if (r != 0)
        as_error_set(error, "the notification would be longer than %zu bytes", BODY_MAX);
    return r;
}

static void print_outcome(const json_t *alert)
{
    const char *fingerprint = json_string_value(json_object_get(alert, "fingerprint"));
    const char *status = json_string_value(json_object_get(alert, "status"));
    const char *outcome = json_string_value(json_object_get(alert, "outcome"));
    const char *problem = json_string_value(json_object_get(alert, "error"));
    const json_t *rules = json_object_get(alert, "rules");
    if (problem) {
        printf("%s: %s\n", outcome ? outcome : "", problem);
        return;
    }
    printf("%s %s: %s", fingerprint ? fingerprint : "", status ? status : "",
           outcome ? outcome : "");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const char *rule = json_string_value(json_array_get(rules, i));
        printf("%s%s", i == 0 ? ", by rule " : ", ", rule ? rule : "");
    }
    putchar('\n');
}

static int print_answer(const struct as_args *args, const struct http_answer *answer)
{
    if (as_args_wants_json(args)) {
        fwrite(answer->body.data, 1, answer->body.size, stdout);
        return AS_EXIT_OK;
    }
    json_t *json =
        json_loadb(answer->body.data ? answer->body.data : "", answer->body.size, 0, NULL);
    const json_t *alerts = json_object_get(json, "alerts");
    for (size_t i = 0; i < json_array_size(alerts); i++)
        print_outcome(json_array_get(alerts, i));
    const bool is_understood = json_array_size(alerts) > 0;
    json_decref(json);
    return is_understood ? AS_EXIT_OK : as_cli_fail(args, "the answer is not alertscaler's");
}

static int run(const struct as_args *args)
{
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(BODY_MAX);
    AS_CLEANUP(http_answer_deinit) struct http_answer answer = {0};
    if (make_body(args, &body, &error) != 0 ||
        http_call_run(args, "/webhook", &body, &answer, &error) != 0)
        return as_cli_fail(args, "%s", error.text);
    if (answer.status != 200)
        return http_answer_refuse(args, &answer);
    return print_answer(args, &answer);
}

static const struct as_option options[] = {
    {.name = "resolved", .help = "the alert has ended (default: it is firing)"},
    {.name = "annotation", .value = "NAME=VALUE", .repeats = true, .help = "may be repeated"},
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
    .help = "For example: alertscaler fire alertname=CheckoutLatencyHigh severity=page\n"
            "What it causes is as real as any alert: see dry_run.",
    .options = options,
    .operands_min = 1,
    .operands_max = LABELS_MAX,
    .run = run,
};
