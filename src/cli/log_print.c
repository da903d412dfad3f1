/*
 * One function per kind of record; kinds and members of other versions are printed in a plain form.
 * Missing members are left out: the log may be older or newer than this program.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/tools/record_text.h>

#include "log_reader.h"

#define ALERTS_SHOWN 4
#define KIND_WIDTH   13

struct print {
    FILE *out;
    bool colors;
    json_t *details;
    json_t *ids; /* last printed id by name; NULL: always print ids */
};

enum color { PLAIN, DIM, BOLD, RED, GREEN, YELLOW };
static const char *const sequences[] = {"",         "\033[2m",  "\033[1m",
                                        "\033[31m", "\033[32m", "\033[33m"};

static void set_color(const struct print *print, enum color color)
{
    if (print->colors && color != PLAIN)
        fputs(sequences[color], print->out);
}

static void end_color(const struct print *print, enum color color)
{
    if (print->colors && color != PLAIN)
        fputs("\033[0m", print->out);
}

static void log_put_text(const struct print *print, const char *text)
{
    as_safe_text_put(print->out, text);
}

static void put_colored(const struct print *print, enum color color, const char *text)
{
    set_color(print, color);
    log_put_text(print, text);
    end_color(print, color);
}

static void put_text_after(const struct print *print, const char *before, const char *text)
{
    if (*text) {
        fputs(before, print->out);
        log_put_text(print, text);
    }
}

static enum color get_word_color(const char *word)
{
    static const char *const good[] = {"scaled", "applied", "queued", "approved", "used"};
    static const char *const bad[] = {"conflict",    "target_not_found",   "forbidden",
                                      "unreachable", "throttled",          "rejected",
                                      "timeout",     "metric_unavailable", "target_not_allowed"};

    for (size_t i = 0; i < AS_ARRAY_SIZE(good); i++)
        if (strcmp(word, good[i]) == 0)
            return GREEN;
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++)
        if (strcmp(word, bad[i]) == 0)
            return RED;
    return YELLOW;
}

static void put_word(const struct print *print, const char *word)
{
    put_colored(print, get_word_color(word), word);
}

static long long get_number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static bool has_number(const json_t *object, const char *key)
{
    return json_is_integer(json_object_get(object, key));
}

/* HighCPU{deployment="web"} */
static void put_labels(const struct print *print, json_t *labels)
{
    put_colored(print, BOLD, as_record_get_text(labels, "alertname"));
    as_record_print_other_labels(labels, print->out);
}

/* Whether the name's id has changed: usually printing it once is enough. */
static bool is_news(const struct print *print, const char *name, const char *id)
{
    const char *last = json_string_value(json_object_get(print->ids, name));
    if (last && strcmp(last, id) == 0)
        return false;
    if (print->ids)
        json_object_set_new(print->ids, name, json_string(id));
    return true;
}

static void put_target(const struct print *print, json_t *record)
{
    const char *name = as_record_get_text(record, "target_name");
    const char *id = as_record_get_text(record, "target");

    put_colored(print, BOLD, *name ? name : id);
    if (*name && *id && is_news(print, name, id)) {
        fputs(" (", print->out);
        log_put_text(print, id);
        fputc(')', print->out);
    }
}

static void put_texts(const struct print *print, const char *before, const json_t *list)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        fputs(i ? ", " : before, print->out);
        log_put_text(print, json_is_string(item) ? json_string_value(item) : "?");
    }
}

/* They are repeats of the record before, not of this one. */
static void put_repeats(const struct print *print, json_t *record, const char *what)
{
    const long long repeats = get_number(record, "repeats");
    if (repeats > 0)
        fprintf(print->out, " (the %s before came %lld more time%s)", what, repeats,
                repeats == 1 ? "" : "s");
}

static void print_notification(const struct print *print, json_t *record)
{
    const json_t *alerts = json_object_get(record, "alerts");
    size_t count = json_array_size(alerts);

    log_put_text(print, as_record_get_text(record, "receiver"));
    put_text_after(print, " from ", as_record_get_text(record, "remote"));
    put_text_after(print, " as ", as_record_get_text(record, "credential"));
    put_text_after(print, ", ", as_record_get_text(record, "notification_reason"));
    fprintf(print->out, ", %zu alert%s:", count, count == 1 ? "" : "s");
    for (size_t i = 0; i < count && i < ALERTS_SHOWN; i++) {
        const json_t *alert = json_array_get(alerts, i);
        fputs(i ? "; " : " ", print->out);
        if (json_object_get(alert, "error")) {
            log_put_text(print, as_record_get_text(alert, "error"));
            put_text_after(print, " ", as_record_get_text(alert, "outcome"));
            continue;
        }
        put_labels(print, json_object_get(alert, "labels"));
        fputc(' ', print->out);
        log_put_text(print, as_record_get_text(alert, "status"));
        fputc(' ', print->out);
        put_word(print, as_record_get_text(alert, "outcome"));
        put_texts(print, " for ", json_object_get(alert, "rules"));
    }
    if (count > ALERTS_SHOWN)
        fprintf(print->out, "; and %zu more", count - ALERTS_SHOWN);
    if (get_number(record, "truncated") > 0)
        fprintf(print->out, "; %lld more were cut off by Alertmanager",
                get_number(record, "truncated"));
}

/* scaler from 10.1.2.3:41234 as alertmanager, 1 alert: ...; the same as 01K... */
static void print_repeat(const struct print *print, json_t *record)
{
    const char *same_as = as_record_get_text(record, "same_as"), *separator = "", *outcome;
    json_t *count;

    if (print->details) {
        print_notification(print, print->details);
        put_text_after(print, "; the same as ", same_as);
        return;
    }
    put_text_after(print, "from ", as_record_get_text(record, "remote"));
    put_text_after(print, " as ", as_record_get_text(record, "credential"));
    fputs(", alerts: ", print->out);
    json_object_foreach(json_object_get(record, "outcomes"), outcome, count)
    {
        fprintf(print->out, "%s%lld ", separator, (long long)json_integer_value(count));
        put_word(print, outcome);
        separator = ", ";
    }
    put_text_after(print, "; the details are in record ", same_as);
    fputs(", which is not in these files", print->out);
}

static void put_pause(const struct print *print, const json_t *pause)
{
    if (!pause)
        return;
    fputs(json_is_true(json_object_get(pause, "all")) ? ", all are paused" : ", paused",
          print->out);
    put_text_after(print, " by ", as_record_get_text(pause, "who"));
    put_text_after(print, " until ", as_record_get_text(pause, "until"));
    put_text_after(print, ": ", as_record_get_text(pause, "reason"));
}

/* pause web (kubernetes/...) by ada until ...: the big move
 * An answer to a request that is not known has no target. */
static void print_command(const struct print *print, json_t *record)
{
    const char *outcome = as_record_get_text(record, "outcome");
    const char *request = as_record_get_text(record, "request");
    const bool has_target = *as_record_get_text(record, "target") != '\0';
    put_colored(print, BOLD, as_record_get_text(record, "command"));
    fputc(' ', print->out);
    if (has_target)
        put_target(print, record);
    else if (!*request)
        put_colored(print, BOLD, "all");
    if (has_number(record, "replicas"))
        fprintf(print->out, " to %lld%s", get_number(record, "replicas"),
                json_is_true(json_object_get(record, "force")) ? " by force" : "");
    put_text_after(print, has_target ? ", request " : "request ", request);
    put_text_after(print, " by ", as_record_get_text(record, "who"));
    put_text_after(print, " from ", as_record_get_text(record, "remote"));
    put_text_after(print, " until ", as_record_get_text(record, "until"));
    put_text_after(print, ": ", as_record_get_text(record, "reason"));
    if (strcmp(outcome, "done") == 0)
        return;
    fputs(": ", print->out);
    if (strcmp(outcome, "refused") != 0)
        put_colored(print, RED, "refused, ");
    put_colored(print, RED, outcome);
    put_text_after(print, ": ", as_record_get_text(record, "message"));
}

/* Of a pool: what its groups are to do, and which nodes leave. */
static void put_groups(const struct print *print, const json_t *output)
{
    const json_t *groups = json_object_get(output, "groups"), *group;
    size_t i;

    json_array_foreach(groups, i, group)
    {
        put_text_after(print, ", ", as_record_get_text(group, "name"));
        fprintf(print->out, " %lld -> %lld", get_number(group, "from"), get_number(group, "to"));
    }
    put_texts(print, ", leaving: ", json_object_get(output, "take"));
}

/* "40 (40Gi)", in the record's unit. */
static void put_size(const struct print *print, const json_t *record, const json_t *object,
                     const char *key)
{
    char text[AS_SIZE_TEXT_SIZE];
    int32_t size;
    if (as_record_get_size(object, key, &size))
        fputs(as_unit_print_size(as_record_get_text(record, "unit"), size, text), print->out);
    else
        fprintf(print->out, "%lld", get_number(object, key));
}

static void put_change(const struct print *print, const json_t *record, const json_t *object,
                       const char *from, const char *to)
{
    fputs(": ", print->out);
    put_size(print, record, object, from);
    fputs(" -> ", print->out);
    put_size(print, record, object, to);
    fputs(": ", print->out);
}

static void print_decision(const struct print *print, json_t *record)
{
    const json_t *output = json_object_get(record, "output");
    long long from = get_number(output, "replicas"), to = get_number(output, "desired");
    const char *rule = as_record_get_text(output, "rule");

    put_target(print, record);
    if (from == to) {
        fputs(": stays at ", print->out);
        put_size(print, record, output, "desired");
        fputs(": ", print->out);
    } else if (strcmp(as_record_get_text(output, "reason"), as_reason_get_word(AS_REASON_SCALED)) ==
               0) {
        /* the record of the action says whether it was scaled */
        fputs(": decided ", print->out);
        put_size(print, record, output, "replicas");
        fputs(" -> ", print->out);
        put_size(print, record, output, "desired");
    } else {
        put_change(print, record, output, "replicas", "desired");
    }
    if (from == to ||
        strcmp(as_record_get_text(output, "reason"), as_reason_get_word(AS_REASON_SCALED)) != 0)
        put_word(print, as_record_get_text(output, "reason"));
    if (has_number(output, "would")) {
        fputs(", would be ", print->out);
        put_size(print, record, output, "would");
    }
    put_text_after(print, ", rule ", rule);
    put_texts(print, ", limited by ", json_object_get(output, "limited_by"));
    put_groups(print, output);
    put_text_after(print, ", for decision ", as_record_get_text(record, "pool_decision"));
    put_text_after(print, ", again at ", as_record_get_text(output, "next_evaluation"));
    put_pause(print, json_object_get(record, "pause"));
    put_text_after(print, ", left alone until ",
                   as_record_get_text(json_object_get(record, "contended"), "until"));
    if (*as_record_get_text(record, "former_uid"))
        fputs(", of another object than before", print->out);
    put_repeats(print, record, "decision");
}

static void log_print_action(const struct print *print, json_t *record)
{
    const json_t *duration = json_object_get(record, "duration_seconds");

    put_target(print, record);
    if (has_number(record, "from") && has_number(record, "to"))
        put_change(print, record, record, "from", "to");
    else
        fputs(": reading its size: ", print->out);
    put_word(print, as_record_get_text(record, "outcome"));
    if (json_is_true(json_object_get(record, "late")))
        fputs(" (seen at a later look)", print->out);
    put_text_after(print, ", rule ", as_record_get_text(record, "rule"));
    put_text_after(print, ", ordered by command ", as_record_get_text(record, "command"));
    if (get_number(record, "http_status") > 0)
        fprintf(print->out, ", HTTP %lld", get_number(record, "http_status"));
    if (json_is_number(duration))
        fprintf(print->out, ", %.0f ms", json_number_value(duration) * 1000);
    put_text_after(print, ": ", as_record_get_text(record, "message"));
    put_repeats(print, record, "failure");
}

/* web: 4 -> 14: approved by ada, rule big, request 01K..., until ...: the sale */
static void print_approval(const struct print *print, json_t *record)
{
    const char *event = as_record_get_text(record, "event");
    const bool is_answer = *as_record_get_text(record, "command") != '\0';

    put_target(print, record);
    put_change(print, record, record, "from", "to");
    put_word(print, event);
    put_text_after(print, " by ", is_answer ? as_record_get_text(record, "who") : "");
    put_text_after(print, " by action ", as_record_get_text(record, "action"));
    put_text_after(print, ", rule ", as_record_get_text(record, "rule"));
    put_text_after(print, ", request ", as_record_get_text(record, "id"));
    put_text_after(print, ", until ", as_record_get_text(record, "until"));
    put_text_after(print, ": ", as_record_get_text(record, "message"));
}

static void print_incident(const struct print *print, json_t *record)
{
    const json_t *targets = json_object_get(record, "targets"), *target;
    size_t i;

    put_labels(print, json_object_get(record, "labels"));
    fputc(' ', print->out);
    log_put_text(print, as_record_get_text(record, "event"));
    put_text_after(print, ", firing since ", as_record_get_text(record, "startsAt"));
    json_array_foreach(targets, i, target)
    {
        put_text_after(print, i ? "; " : ": ", as_record_get_text(target, "target"));
        if (has_number(target, "replicas"))
            fprintf(print->out, " at %lld", get_number(target, "replicas"));
        put_text_after(print, " by rule ", as_record_get_text(target, "rule"));
    }
}

static void print_start(const struct print *print, json_t *record)
{
    static const struct {
        const char *key, *one;
    } counts[] = {{"rules", "rule"},
                  {"targets", "target"},
                  {"incidents", "open incident"},
                  {"intents", "unfinished action"}};
    const json_t *each;
    size_t leader;
    put_text_after(print, "alertscaler ", as_record_get_text(record, "version"));
    put_text_after(print, " on ", as_record_get_text(record, "instance"));
    for (size_t i = 0; i < AS_ARRAY_SIZE(counts); i++) {
        const long long count = get_number(record, counts[i].key);
        fprintf(print->out, "%s%lld %s%s", i == 0 ? ": " : ", ", count, counts[i].one,
                count == 1 ? "" : "s");
    }
    json_array_foreach(json_object_get(record, "leaders"), leader, each)
    {
        put_text_after(print, leader ? ", " : "; before led ", as_record_get_text(each, "replica"));
        put_text_after(print, " from ", as_record_get_text(each, "since"));
        put_text_after(print, " to ", as_record_get_text(each, "until"));
    }
}

static void print_reload(const struct print *print, json_t *record)
{
    const char *error = as_record_get_text(record, "error");

    if (*error)
        put_colored(print, RED, "failed");
    else
        put_colored(print, GREEN, "done");
    put_text_after(print, ", asked by ", as_record_get_text(record, "credential"));
    put_text_after(print, ": ", error);
    if (!*error)
        fprintf(print->out, ": rules %.12s, configuration %.12s",
                as_record_get_text(record, "rules_digest"),
                as_record_get_text(record, "config_digest"));
}

static void print_denied(const struct print *print, json_t *record)
{
    log_put_text(print, as_record_get_text(record, "remote"));
    put_text_after(print, " at ", as_record_get_text(record, "handler"));
    fprintf(print->out, ": HTTP %lld", get_number(record, "status"));
    put_text_after(print, ": ", as_record_get_text(record, "error"));
    if (get_number(record, "count") > 1)
        fprintf(print->out, " (%lld times)", get_number(record, "count"));
}

/* workers: kept n1, n2, chosen by 01K...: taken back */
static void print_nodes(const struct print *print, json_t *record)
{
    put_target(print, record);
    put_text_after(print, ": ", as_record_get_text(record, "event"));
    put_texts(print, " ", json_object_get(record, "nodes"));
    put_text_after(print, ", chosen by ", as_record_get_text(record, "decision"));
    put_text_after(print, ": ", as_record_get_text(record, "message"));
}

/* web: 4 -> 6: ready after 12 s, resolved after 90 s, rule slow */
static void print_effect(const struct print *print, json_t *record)
{
    static const struct {
        const char *key, *text;
    } times[] = {{"ready_after", "ready"}, {"resolved_after", "resolved"}};
    const char *ended = as_record_get_text(record, "ended");

    put_target(print, record);
    fprintf(print->out, ": %lld -> %lld: ", get_number(record, "from"), get_number(record, "to"));
    put_word(print, ended);
    for (size_t i = 0; i < AS_ARRAY_SIZE(times); i++) {
        const json_t *seconds = json_object_get(record, times[i].key);
        if (json_is_number(seconds))
            fprintf(print->out, ", %s after %.1f s", times[i].text, json_number_value(seconds));
    }
    put_text_after(print, ", rule ", as_record_get_text(record, "rule"));
    put_text_after(print, ", which is ineffective and held until ",
                   as_record_get_text(record, "held_until"));
}

/* on-call: dropped 100 notices: overflow; checkout: at_max is over */
static void print_notify(const struct print *print, json_t *record)
{
    if (strcmp(as_record_get_text(record, "event"), "dropped") != 0) {
        put_target(print, record);
        put_text_after(print, ": ", as_record_get_text(record, "state"));
        put_text_after(print, " of rule ", as_record_get_text(record, "rule"));
        fputs(" is over", print->out);
        return;
    }
    log_put_text(print, as_record_get_text(record, "receiver"));
    const long long count = get_number(record, "count");
    fprintf(print->out, ": dropped %lld notice%s", count, count == 1 ? "" : "s");
    put_text_after(print, ": ", as_record_get_text(record, "cause"));
}

static void put_reverted_changes(const struct print *print, const json_t *reverted_changes)
{
    const json_t *each;
    size_t i;
    json_array_foreach(reverted_changes, i, each)
    {
        fprintf(print->out, "%s%lld set back to %lld", i ? "; " : ": ", get_number(each, "to"),
                get_number(each, "found"));
        put_text_after(print, " by ", as_record_get_text(each, "by"));
    }
}

/* web: found HorizontalPodAutoscaler web, 2 to 10; web: contended until ...: 6 set back to 4 by ...
 */
static void log_print_others(const struct print *print, json_t *record)
{
    const json_t *found = json_object_get(record, "found"), *other;
    size_t i;
    put_target(print, record);
    fputs(": ", print->out);
    put_word(print, as_record_get_text(record, "event"));
    json_array_foreach(found, i, other)
    {
        put_text_after(print, i ? "; " : " ", as_record_get_text(other, "kind"));
        put_text_after(print, " ", as_record_get_text(other, "name"));
        if (has_number(other, "min") && has_number(other, "max"))
            fprintf(print->out, ", %lld to %lld", get_number(other, "min"),
                    get_number(other, "max"));
        if (json_is_true(json_object_get(other, "paused")))
            fputs(" (paused)", print->out);
    }
    if (found && json_array_size(found) == 0)
        fputs(" nobody any more", print->out);
    put_text_after(print, " until ", as_record_get_text(record, "until"));
    put_reverted_changes(print, json_object_get(record, "set_backs"));
    put_text_after(print, ": ", as_record_get_text(record, "message"));
}

/* shop/web: refused, generation 3: Invalid: spec.target.mox: ... */
static void log_print_policy(const struct print *print, json_t *record)
{
    log_put_text(print, as_record_get_text(record, "namespace"));
    put_text_after(print, "/", as_record_get_text(record, "name"));
    fputs(": ", print->out);
    put_word(print, as_record_get_text(record, "event"));
    fprintf(print->out, ", generation %lld", get_number(record, "generation"));
    put_text_after(print, ": ", as_record_get_text(record, "reason"));
    put_text_after(print, ": ", as_record_get_text(record, "message"));
}

/* Everything but the chain's members and those of all records. */
static void print_other(const struct print *print, json_t *record)
{
    static const char *const common[] = {"hash", "instance", "kind", "prev", "seq", "time"};
    const char *key, *separator = "";
    json_t *value;

    json_object_foreach(record, key, value)
    {
        bool skip = json_is_null(value);
        for (size_t i = 0; i < AS_ARRAY_SIZE(common); i++)
            skip = skip || strcmp(key, common[i]) == 0;
        if (skip)
            continue;
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        fputs(separator, print->out);
        log_put_text(print, key);
        fputc('=', print->out);
        log_put_text(print, text ? text : "?");
        free(text);
        separator = ", ";
    }
}

static const struct {
    const char *kind;
    void (*print)(const struct print *print, json_t *record);
} kinds[] = {
    {"action", log_print_action},
    {"approval", print_approval},
    {"command", print_command},
    {"decision", print_decision},
    {"denied", print_denied},
    {"effect", print_effect},
    {"incident", print_incident},
    {"nodes", print_nodes},
    {"notification", print_notification},
    {"notify", print_notify},
    {"others", log_print_others},
    {"policy", log_print_policy},
    {"reload", print_reload},
    {"repeat", print_repeat},
    {"start", print_start},
    {"stop", print_start},
};

void log_print(json_t *record, json_t *details, bool colors, json_t *ids, FILE *out)
{
    const struct print print = {.out = out, .colors = colors, .details = details, .ids = ids};
    const char *kind = as_record_get_text(record, "kind"),
               *time = as_record_get_text(record, "time");
    size_t i = 0;

    set_color(&print, DIM);
    /* Milliseconds are enough for people; the log has microseconds. */
    if (strlen(time) == strlen("2026-11-20T14:03:12.123456Z"))
        fprintf(out, "%.23sZ", time);
    else
        log_put_text(&print, time);
    end_color(&print, DIM);
    fprintf(out, "  ");
    log_put_text(&print, kind);
    fprintf(out, "%*s", strlen(kind) < KIND_WIDTH ? (int)(KIND_WIDTH - strlen(kind)) : 1, "");
    while (i < AS_ARRAY_SIZE(kinds) && strcmp(kinds[i].kind, kind) != 0)
        i++;
    (i < AS_ARRAY_SIZE(kinds) ? kinds[i].print : print_other)(&print, record);
    fputc('\n', out);
}
