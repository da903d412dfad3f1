/*
 * `alertscaler fire`: sends the notification that Alertmanager would send for one alert, and prints
 * the decisions that follow.
 */
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/monitoring/payload.h>
#include <alertscaler/tools/record_text.h>

#include "cli.h"
#include "http_call.h"

struct fire_after {
    const struct as_args *args;
    char *since;      /* the daemon's time before the alert was sent; NULL: no permission to read */
    int64_t expiry_s; /* of the open incident; 0: unknown */
    json_t *targets;  /* ids of the incident's targets */
    json_t *locked;   /* targets whose lock prevented scaling: "up" or "down" by id */
    json_t *printed;  /* ids of printed decisions, as keys of an object */
};

/* --- the open incident, and the decisions that follow --- */

/* Decisions are polled from the API: the daemon has no push. */

#define LOOK_EVERY_US (200 * AS_US_PER_MS)
#define TIMEOUT_US    (30 * AS_US_PER_S)
#define FAILURE_US    (3 * AS_US_PER_S) /* an earlier failure may be another alert's */

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int number)
{
    is_interrupted = 1;
}

/* So that an interrupt still resolves the alert. */
static void catch_interrupts(void)
{
    const struct sigaction action = {.sa_handler = on_interrupt};
    if (sigaction(SIGINT, &action, NULL) != 0 || sigaction(SIGTERM, &action, NULL) != 0)
        abort(); /* only for signals that do not exist */
}

static int64_t get_mono_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000;
}

static char *fire_make_path(const char *path, const char *value)
{
    char *escaped = curl_easy_escape(NULL, value, 0);
    char *whole = as_xasprintf("%s%s", path, escaped ? escaped : "");
    curl_free(escaped);
    return whole;
}

/* The `data` of a path of the API as a new reference; NULL, after printing the problem if
 * `says_why`. */
static json_t *fire_ask(const struct as_args *args, const char *path, bool says_why,
                        int *status_out)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    json_t *json = http_call_ask(args, path, &problem, status_out);
    json_t *data = json_incref(json_object_get(json, "data"));
    if (!data && says_why)
        (void)as_cli_fail(args, "%s", problem);
    json_decref(json);
    return data;
}

/* Call before the alert is sent. Returns an exit status after printing the problem, if decisions
 * were requested and the daemon does not show them. */
static int fire_after_begin(const struct as_args *args, struct fire_after *after_out)
{
    const bool is_needed = as_args_has(args, "wait");
    int status = AS_EXIT_OK;
    *after_out = (struct fire_after){.args = args};
    if (as_args_has(args, "for"))
        catch_interrupts();
    if (!is_needed)
        return AS_EXIT_OK;
    json_t *data = fire_ask(args, "/api/v1/status", true, &status);
    if (!data)
        return status;
    after_out->since = as_xstrdup(as_record_get_text(data, "time"));
    after_out->expiry_s = json_integer_value(json_object_get(data, "incident_expiry_seconds"));
    after_out->targets = json_array();
    after_out->printed = json_object();
    after_out->locked = json_object();
    json_decref(data);
    return AS_EXIT_OK;
}

static void fire_after_deinit(struct fire_after *after)
{
    free(after->since);
    json_decref(after->targets);
    json_decref(after->printed);
    json_decref(after->locked);
}

/* An argument, quoted for a shell. */
static void print_argument(const char *text)
{
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=.,:/@%+";
    if (*text && strspn(text, plain) == strlen(text)) {
        printf(" %s", text);
        return;
    }
    fputs(" '", stdout);
    for (const char *at = text; *at; at++) {
        const char one[] = {*at, '\0'};
        if (*at == '\'')
            fputs("'\\''", stdout);
        else if ((unsigned char)*at < 0x80)
            as_safe_text_put(stdout, one);
        else
            fputc(*at, stdout);
    }
    fputc('\'', stdout);
}

/* Prints how long the incident stays open, and how to end it. */
static void fire_after_print(const struct fire_after *after)
{
    static const char *const same[] = {"receiver", "context", "url", "token-file", "ca-file"};
    const struct as_args *args = after->args;
    int64_t expiry_s = after->expiry_s;
    char expiry[AS_DURATION_SIZE];
    int unused;
    if (expiry_s == 0) {
        json_t *data = fire_ask(args, "/api/v1/status", false, &unused);
        expiry_s = json_integer_value(json_object_get(data, "incident_expiry_seconds"));
        json_decref(data);
    }
    as_duration_print(expiry_s * AS_US_PER_S, expiry);
    printf("Its incident stays open, and its rules go on, until it is resolved or %s%s passed "
           "without a repeat.\nTo end it: alertscaler fire --resolved",
           expiry_s > 0 ? expiry : "receiver.incident_expiry", expiry_s > 0 ? " have" : " has");
    for (size_t i = 0; i < AS_ARRAY_SIZE(same); i++) {
        if (as_args_has(args, same[i])) {
            AS_CLEANUP(as_free_p)
            char *option = as_xasprintf("--%s=%s", same[i], as_args_get(args, same[i]));
            print_argument(option);
        }
    }
    for (size_t i = 0; i < args->operand_count; i++)
        print_argument(args->operands[i]);
    putchar('\n');
}

/* --- the decisions that follow --- */

static void find_targets(struct fire_after *after, const char *digest)
{
    int unused;
    json_t *incidents = fire_ask(after->args, "/api/v1/incidents?limit=1000000", true, &unused);
    json_t *incident, *target;
    size_t i, k;
    json_array_foreach(incidents, i, incident)
    {
        if (strcmp(as_record_get_text(incident, "digest"), digest) != 0)
            continue;
        json_array_foreach(json_object_get(incident, "targets"), k, target)
            json_array_append(after->targets, json_object_get(target, "target"));
    }
    json_decref(incidents);
}

static bool fire_is_ours(const struct fire_after *after, const char *target)
{
    for (size_t i = 0; i < json_array_size(after->targets); i++) {
        if (strcmp(json_string_value(json_array_get(after->targets, i)), target) == 0)
            return true;
    }
    return false;
}

static void fire_print_json(const json_t *json)
{
    as_cli_print_json(json, JSON_COMPACT, stdout);
}

/* Which lock refused it, to print the lock's end later. */
static void note_lock(struct fire_after *after, const json_t *decision)
{
    const json_int_t from = json_integer_value(json_object_get(decision, "replicas"));
    const json_t *would = json_object_get(decision, "would");
    if (strcmp(as_record_get_text(decision, "reason"), as_reason_get_word(AS_REASON_COOLDOWN)) ==
            0 &&
        json_is_integer(would))
        json_object_set_new(after->locked, as_record_get_text(decision, "target"),
                            json_string(json_integer_value(would) > from ? "up" : "down"));
}

static void fire_print_decision(const struct fire_after *after, const json_t *decision)
{
    const char *word = as_record_get_text(decision, "reason"),
               *rule = as_record_get_text(decision, "rule");
    const json_int_t from = json_integer_value(json_object_get(decision, "replicas"));
    const json_int_t to = json_integer_value(json_object_get(decision, "desired"));
    const json_t *would = json_object_get(decision, "would");
    enum as_reason reason;
    if (as_args_wants_json(after->args)) {
        fire_print_json(decision);
        return;
    }
    as_safe_text_put(stdout, as_record_get_text(decision, "target_name"));
    if (from == to)
        printf(": stays at %" JSON_INTEGER_FORMAT ": %s", from, word);
    else if (strcmp(word, as_reason_get_word(AS_REASON_SCALED)) == 0) /* if the action succeeds */
        printf(": decided %" JSON_INTEGER_FORMAT " -> %" JSON_INTEGER_FORMAT, from, to);
    else
        printf(": %" JSON_INTEGER_FORMAT " -> %" JSON_INTEGER_FORMAT ": %s", from, to, word);
    if (json_is_integer(would))
        printf(", would be %" JSON_INTEGER_FORMAT, json_integer_value(would));
    fputs(*rule ? ", by rule " : "", stdout);
    as_safe_text_put(stdout, rule);
    printf(". %s\n", as_reason_find(word, &reason) ? as_reason_get_meaning(reason) : "");
}

/* Oldest first. */
static void print_new(struct fire_after *after)
{
    AS_CLEANUP(as_free_p)
    char *path = fire_make_path("/api/v1/decisions?limit=1000&since=", after->since);
    int unused;
    json_t *list = fire_ask(after->args, path, true, &unused);
    for (size_t i = json_array_size(list); i > 0; i--) {
        const json_t *decision = json_array_get(list, i - 1);
        const char *id = as_record_get_text(decision, "id");
        if (!fire_is_ours(after, as_record_get_text(decision, "target")) ||
            json_object_get(after->printed, id))
            continue;
        json_object_set(after->printed, id, json_object_get(decision, "target"));
        note_lock(after, decision);
        fire_print_decision(after, decision);
    }
    fflush(stdout);
    json_decref(list);
}

static bool fire_is_printed(const struct fire_after *after, const char *target)
{
    const char *id;
    json_t *value;
    json_object_foreach(after->printed, id, value)
    {
        if (strcmp(json_string_value(value), target) == 0)
            return true;
    }
    return false;
}

static bool fire_has_failed(const json_t *target)
{
    return *as_record_get_text(target, "failure") != '\0';
}

/* Whether nothing more is expected for this target for now. */
static bool is_settled(const struct fire_after *after, const json_t *target, int64_t waited_us)
{
    const json_t *ordered = json_object_get(target, "desired");
    if (fire_has_failed(target))
        return waited_us >= FAILURE_US;
    return fire_is_printed(after, as_record_get_text(target, "id")) &&
           !json_is_true(json_object_get(target, "busy")) &&
           json_equal(json_object_get(target, "replicas"), ordered);
}

static void fire_print_lock(const struct fire_after *after, const json_t *target)
{
    const char *way =
        json_string_value(json_object_get(after->locked, as_record_get_text(target, "id")));
    const char *until = way ? as_record_get_text(json_object_get(target, "locked_until"), way) : "";
    struct timespec now;
    as_wall_time end;
    if (as_wall_time_parse(until, strlen(until), &end) != 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t left_s = end.us / AS_US_PER_S - now.tv_sec;
    char left[AS_DURATION_SIZE];
    as_duration_print((left_s > 0 ? left_s : 0) * AS_US_PER_S, left);
    printf("; locked against scaling %s until %s, for %s more", way, until, left);
}

static void fire_print_target(const struct fire_after *after, const json_t *target)
{
    const char *name = as_record_get_text(target, "name"),
               *text = as_record_get_text(target, "failure_text");
    const json_t *size = json_object_get(target, "replicas");
    enum as_reason reason;
    if (as_args_wants_json(after->args)) {
        fire_print_json(target);
        return;
    }
    as_safe_text_put(stdout, name);
    if (fire_has_failed(target)) {
        const char *word = as_record_get_text(target, "failure");
        printf(": failed: %s. %s", word,
               as_reason_find(word, &reason) ? as_reason_get_meaning(reason) : "");
        fputs(*text ? " " : "", stdout);
        as_safe_text_put(stdout, text);
        putchar('\n');
    } else if (json_is_integer(size) && fire_is_printed(after, as_record_get_text(target, "id"))) {
        printf(": its size is %" JSON_INTEGER_FORMAT, json_integer_value(size));
        fire_print_lock(after, target);
        putchar('\n');
    } else {
        fputs(": nothing was decided within 30s; see alertscaler status\n", stdout);
    }
}

static void sleep_between_polls(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_US * 1000}, NULL);
}

static int fire_wait_for(struct fire_after *after, const char *id, int64_t begin_us)
{
    AS_CLEANUP(as_free_p) char *path = fire_make_path("/api/v1/targets/", id);
    for (;;) {
        int status;
        print_new(after);
        json_t *target = fire_ask(after->args, path, true, &status);
        const int64_t waited_us = get_mono_us() - begin_us;
        if (!target)
            return status;
        if (is_interrupted || is_settled(after, target, waited_us) || waited_us >= TIMEOUT_US) {
            fire_print_target(after, target);
            const bool is_well = !fire_has_failed(target) && fire_is_printed(after, id);
            json_decref(target);
            return is_well ? AS_EXIT_OK : AS_EXIT_NO;
        }
        json_decref(target);
        sleep_between_polls();
    }
}

/*
 * Prints the decisions that follow until all targets of the incident are settled, for at most 30 s.
 * AS_EXIT_NO if a target could not be read or set, or nothing was decided.
 */
static int fire_after_wait(struct fire_after *after, const char *digest)
{
    const int64_t begin_us = get_mono_us();
    fflush(stdout);
    int worst = AS_EXIT_OK;
    find_targets(after, digest);
    for (size_t i = 0; i < json_array_size(after->targets); i++) {
        const char *id = json_string_value(json_array_get(after->targets, i));
        const int status = fire_wait_for(after, id, begin_us);
        worst = status > worst ? status : worst;
    }
    return worst;
}

/* Waits this long, or until an interrupt. With --wait it prints the decisions meanwhile. */
static void fire_after_hold(struct fire_after *after, int64_t us)
{
    const int64_t end_us = as_time_add(get_mono_us(), us);
    fflush(stdout);
    while (!is_interrupted && get_mono_us() < end_us) {
        if (after->printed)
            print_new(after);
        sleep_between_polls();
    }
}

/* --- the notification --- */

#define BODY_MAX    ((size_t)16 * 1024 * 1024)
#define NEVER_ENDED ((as_wall_time){INT64_C(-62135596800) * AS_US_PER_S}) /* the year 1 */

static as_wall_time fire_get_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (as_wall_time){(int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static int fire_read_labels(const struct as_args *args, struct as_alert *alert,
                            struct as_error *error)
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
static int fire_read_times(const struct as_args *args, as_wall_time now, struct as_alert *alert,
                           struct as_error *error)
{
    const char *text = as_args_get(args, "starts-at");
    alert->starts_at = now;
    alert->ends_at = alert->status == AS_ALERT_RESOLVED ? fire_get_now() : NEVER_ENDED;
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
    int code = fire_read_labels(args, alert, error);
    if (code == 0)
        code = fire_read_times(args, now, alert, error);
    if (code != 0)
        return code;
    alert->fingerprint = as_labels_get_fingerprint(alert->labels);
    as_payload_encode(notification, body);
    code = as_buf_check(body);
    if (code != 0)
        as_error_set(error, "the notification would be longer than %zu bytes", BODY_MAX);
    return code;
}

static const char *fire_get_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void print_outcome(const json_t *alert)
{
    const json_t *rules = json_object_get(alert, "rules");
    const char *problem = fire_get_text(alert, "error");
    if (*problem) {
        printf("%s: %s\n", fire_get_text(alert, "outcome"), problem);
        return;
    }
    printf("%s %s: %s", fire_get_text(alert, "fingerprint"), fire_get_text(alert, "status"),
           fire_get_text(alert, "outcome"));
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
    if (!as_reason_find(fire_get_text(alert, "outcome"), &reason))
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
static int fire_follow(const struct as_args *args, struct fire_after *after, const json_t *alert,
                       as_wall_time now, int64_t for_us)
{
    int status = AS_EXIT_OK;
    if (!as_args_has(args, "for") && !as_args_wants_json(args))
        fire_after_print(after);
    if (as_args_has(args, "wait"))
        status = fire_after_wait(after, fire_get_text(alert, "digest"));
    if (!as_args_has(args, "for"))
        return status;
    const int64_t left_us = for_us - (fire_get_now().us - now.us);
    fire_after_hold(after, left_us);
    json_t *resolved = NULL;
    const int end = send_alert(args, AS_ALERT_RESOLVED, now, &resolved);
    json_decref(resolved);
    return end > status ? end : status;
}

/* --- after --resolved --- */

/* Targets of open incidents, by digest: the incident has no targets any more when it is resolved.
 * NULL: the credential may not read. */
static json_t *fire_list_incidents(const struct as_args *args)
{
    int unused;
    return fire_ask(args, "/api/v1/incidents?limit=1000000", false, &unused);
}

/* Once the target is idle again, for at most some seconds. */
static void fire_print_next_of(const struct as_args *args, const char *id)
{
    AS_CLEANUP(as_free_p) char *path = fire_make_path("/api/v1/targets/", id);
    const int64_t begin_us = get_mono_us();
    for (;;) {
        int unused;
        json_t *target = fire_ask(args, path, false, &unused);
        const bool is_idle = !json_is_true(json_object_get(target, "busy"));
        if (!target || is_idle || get_mono_us() - begin_us >= FAILURE_US) {
            http_print_next(target, stdout);
            json_decref(target);
            return;
        }
        json_decref(target);
        sleep_between_polls();
    }
}

static void fire_print_after(const struct as_args *args, const json_t *incidents,
                             const json_t *alert)
{
    const json_t *incident, *target;
    size_t i, k;
    fflush(stdout);
    json_array_foreach(incidents, i, incident)
    {
        if (strcmp(as_record_get_text(incident, "digest"), fire_get_text(alert, "digest")) != 0)
            continue;
        json_array_foreach(json_object_get(incident, "targets"), k, target)
            fire_print_next_of(args, as_record_get_text(target, "target"));
    }
}

static int fire(const struct as_args *args, struct fire_after *after, int64_t for_us)
{
    const bool is_firing = !as_args_has(args, "resolved");
    const as_wall_time now = fire_get_now();
    json_t *alert = NULL;
    json_t *incidents = is_firing || as_args_wants_json(args) ? NULL : fire_list_incidents(args);
    int status = send_alert(args, is_firing ? AS_ALERT_FIRING : AS_ALERT_RESOLVED, now, &alert);
    if (status != AS_EXIT_OK) {
        json_decref(incidents);
        return status;
    }
    const bool is_queued = strcmp(fire_get_text(alert, "outcome"), "queued") == 0;
    if (!is_queued && !as_args_wants_json(args))
        print_reason(alert);
    if (!is_queued && as_args_has(args, "wait"))
        status = AS_EXIT_NO; /* no effects to wait for */
    else if (is_queued && is_firing)
        status = fire_follow(args, after, alert, now, for_us);
    if (is_queued && incidents)
        fire_print_after(args, incidents, alert);
    json_decref(incidents);
    json_decref(alert);
    return status;
}

static int fire_run(const struct as_args *args)
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

static const struct as_option fire_options[] = {
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
    .options = fire_options,
    .operands_min = 1,
    .operands_max = LABEL_ARGUMENTS_MAX,
    .run = fire_run,
};
