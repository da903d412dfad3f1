/*
 * Decisions are polled from the API: the daemon has no push.
 */
#include "fire_after.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/tools/record_text.h>

#include "log_filter.h"

#define LOOK_EVERY_US (200 * AS_US_PER_MS)
#define PATIENCE_US   (30 * AS_US_PER_S)
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

static char *make_path(const char *path, const char *value)
{
    char *escaped = curl_easy_escape(NULL, value, 0);
    char *whole = as_xasprintf("%s%s", path, escaped ? escaped : "");
    curl_free(escaped);
    return whole;
}

/* The `data` of a path of the API as a new reference; NULL, after printing the problem if
 * `says_why`. */
static json_t *ask(const struct as_args *args, const char *path, bool says_why, int *status_out)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    json_t *json = http_call_ask(args, path, &problem, status_out);
    json_t *data = json_incref(json_object_get(json, "data"));
    if (!data && says_why)
        (void)as_cli_fail(args, "%s", problem);
    json_decref(json);
    return data;
}

int fire_after_begin(const struct as_args *args, struct fire_after *after_out)
{
    const bool is_needed = as_args_has(args, "wait");
    int status = AS_EXIT_OK;
    *after_out = (struct fire_after){.args = args};
    if (as_args_has(args, "for"))
        catch_interrupts();
    if (!is_needed)
        return AS_EXIT_OK;
    json_t *data = ask(args, "/api/v1/status", true, &status);
    if (!data)
        return status;
    after_out->since = as_xstrdup(as_record_get_text(data, "time"));
    after_out->expiry_s = json_integer_value(json_object_get(data, "incident_expiry_seconds"));
    after_out->targets = json_array();
    after_out->told = json_object();
    after_out->locked = json_object();
    json_decref(data);
    return AS_EXIT_OK;
}

void fire_after_deinit(struct fire_after *after)
{
    free(after->since);
    json_decref(after->targets);
    json_decref(after->told);
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

void fire_after_print(const struct fire_after *after)
{
    static const char *const same[] = {"receiver", "url", "token-file", "ca-file"};
    const struct as_args *args = after->args;
    int64_t expiry_s = after->expiry_s;
    char expiry[AS_DURATION_SIZE];
    int unused;
    if (expiry_s == 0) {
        json_t *data = ask(args, "/api/v1/status", false, &unused);
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
    json_t *incidents = ask(after->args, "/api/v1/incidents?limit=1000000", true, &unused);
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

static bool is_ours(const struct fire_after *after, const char *target)
{
    for (size_t i = 0; i < json_array_size(after->targets); i++) {
        if (strcmp(json_string_value(json_array_get(after->targets, i)), target) == 0)
            return true;
    }
    return false;
}

static void print_json(const json_t *json)
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

static void print_decision(const struct fire_after *after, const json_t *decision)
{
    const char *word = as_record_get_text(decision, "reason"),
               *rule = as_record_get_text(decision, "rule");
    const json_int_t from = json_integer_value(json_object_get(decision, "replicas"));
    const json_int_t to = json_integer_value(json_object_get(decision, "desired"));
    const json_t *would = json_object_get(decision, "would");
    enum as_reason reason;
    if (as_args_wants_json(after->args)) {
        print_json(decision);
        return;
    }
    as_safe_text_put(stdout, as_record_get_text(decision, "target_name"));
    if (from == to)
        printf(": stays at %" JSON_INTEGER_FORMAT ": %s", from, word);
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
    char *path = make_path("/api/v1/decisions?limit=1000&since=", after->since);
    int unused;
    json_t *list = ask(after->args, path, true, &unused);
    for (size_t i = json_array_size(list); i > 0; i--) {
        const json_t *decision = json_array_get(list, i - 1);
        const char *id = as_record_get_text(decision, "id");
        if (!is_ours(after, as_record_get_text(decision, "target")) ||
            json_object_get(after->told, id))
            continue;
        json_object_set(after->told, id, json_object_get(decision, "target"));
        note_lock(after, decision);
        print_decision(after, decision);
    }
    fflush(stdout);
    json_decref(list);
}

static bool is_told(const struct fire_after *after, const char *target)
{
    const char *id;
    json_t *value;
    json_object_foreach(after->told, id, value)
    {
        if (strcmp(json_string_value(value), target) == 0)
            return true;
    }
    return false;
}

static bool has_failed(const json_t *target)
{
    return *as_record_get_text(target, "failure") != '\0';
}

/* Whether nothing more is expected for this target for now. */
static bool is_settled(const struct fire_after *after, const json_t *target, int64_t waited_us)
{
    const json_t *ordered = json_object_get(target, "desired");
    if (has_failed(target))
        return waited_us >= FAILURE_US;
    return is_told(after, as_record_get_text(target, "id")) &&
           !json_is_true(json_object_get(target, "busy")) &&
           json_equal(json_object_get(target, "replicas"), ordered);
}

static void print_lock(const struct fire_after *after, const json_t *target)
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

static void print_target(const struct fire_after *after, const json_t *target)
{
    const char *name = as_record_get_text(target, "name"),
               *text = as_record_get_text(target, "failure_text");
    const json_t *size = json_object_get(target, "replicas");
    enum as_reason reason;
    if (as_args_wants_json(after->args)) {
        print_json(target);
        return;
    }
    as_safe_text_put(stdout, name);
    if (has_failed(target)) {
        const char *word = as_record_get_text(target, "failure");
        printf(": failed: %s. %s", word,
               as_reason_find(word, &reason) ? as_reason_get_meaning(reason) : "");
        fputs(*text ? " " : "", stdout);
        as_safe_text_put(stdout, text);
        putchar('\n');
    } else if (json_is_integer(size) && is_told(after, as_record_get_text(target, "id"))) {
        printf(": its size is %" JSON_INTEGER_FORMAT, json_integer_value(size));
        print_lock(after, target);
        putchar('\n');
    } else {
        fputs(": nothing was decided within 30s; see alertscaler status\n", stdout);
    }
}

static void sleep_a_look(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_US * 1000}, NULL);
}

static int wait_for(struct fire_after *after, const char *id, int64_t begin_us)
{
    AS_CLEANUP(as_free_p) char *path = make_path("/api/v1/targets/", id);
    for (;;) {
        int status;
        print_new(after);
        json_t *target = ask(after->args, path, true, &status);
        const int64_t waited_us = get_mono_us() - begin_us;
        if (!target)
            return status;
        if (is_interrupted || is_settled(after, target, waited_us) || waited_us >= PATIENCE_US) {
            print_target(after, target);
            const bool is_well = !has_failed(target) && is_told(after, id);
            json_decref(target);
            return is_well ? AS_EXIT_OK : AS_EXIT_NO;
        }
        json_decref(target);
        sleep_a_look();
    }
}

int fire_after_wait(struct fire_after *after, const char *digest)
{
    const int64_t begin_us = get_mono_us();
    fflush(stdout);
    int worst = AS_EXIT_OK;
    find_targets(after, digest);
    for (size_t i = 0; i < json_array_size(after->targets); i++) {
        const char *id = json_string_value(json_array_get(after->targets, i));
        const int status = wait_for(after, id, begin_us);
        worst = status > worst ? status : worst;
    }
    return worst;
}

void fire_after_hold(struct fire_after *after, int64_t us)
{
    const int64_t end_us = as_time_add(get_mono_us(), us);
    fflush(stdout);
    while (!is_interrupted && get_mono_us() < end_us) {
        if (after->told)
            print_new(after);
        sleep_a_look();
    }
}
