/*
 * The promises that can be read in the action log: it is whole, everything is in it exactly once,
 * what was acknowledged is in it, and it agrees with the state.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/log/log_chain.h>

#include "sim.h"

#define KEY_SIZE   64
#define OUTPUT_MAX ((size_t)1 << 24)

struct whole { /* a notification with all details */
    char id[AS_ULID_SIZE];
    uint64_t digest, record, starts; /* of its alerts; records and starts up to it */
    as_wall_time time;
};

struct keys { /* texts that must not come twice, or must be there */
    char (*items)[KEY_SIZE];
    size_t count, capacity;
};

struct log_reader {
    struct as_chain *chain;
    struct as_chain_verify verify;
    size_t at; /* what was read stays as it is */
    struct log_summary summary;
    struct whole *whole;
    size_t whole_count, whole_capacity;
    uint64_t starts;
    struct keys notifications, decisions, actions, applied, opened, queued, ordered;
    struct keys of_alerts, effects, followed; /* ids of actions: intended, with an effect; applied
                                                 and of an alert */
    struct keys commands, answers, sizes, heard, set; /* of orders: ids; with their outcomes;
                                                         accepted sizes; with an action; with one
                                                         that is applied */
    struct keys paused;                               /* ids of targets; "" is all */
};

static void keys_add(struct keys *keys, const char *format, ...) AS_PRINTF(2, 3);
static void keys_add(struct keys *keys, const char *format, ...)
{
    va_list list;
    keys->items = as_xgrow(keys->items, keys->count, &keys->capacity, KEY_SIZE);
    va_start(list, format);
    (void)vsnprintf(keys->items[keys->count++], KEY_SIZE, format, list);
    va_end(list);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void keys_sort(struct keys *keys)
{
    if (keys->count > 0)
        qsort(keys->items, keys->count, KEY_SIZE, compare_keys);
}

static bool keys_have(const struct keys *keys, const char *key)
{
    return keys->count > 0 && bsearch(key, keys->items, keys->count, KEY_SIZE, compare_keys);
}

static void keys_check_unique(struct world *world, struct keys *keys, const char *what)
{
    keys_sort(keys);
    for (size_t i = 1; i < keys->count; i++) {
        if (strcmp(keys->items[i - 1], keys->items[i]) == 0)
            fail(world, "%s %s is twice in the log", what, keys->items[i]);
    }
}

static void keys_check_all_in(struct world *world, const struct keys *keys, const struct keys *in,
                              const char *what)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (!keys_have(in, keys->items[i]))
            fail(world, "%s: %s", what, keys->items[i]);
    }
}

const char *log_text(const json_t *record, const char *name)
{
    const char *text = json_string_value(json_object_get(record, name));
    return text ? text : "";
}

static as_wall_time time_of(const json_t *record)
{
    const char *text = log_text(record, "time");
    as_wall_time time;
    return as_wall_time_parse(text, strlen(text), &time) == 0 ? time : (as_wall_time){0};
}

static void keep_whole(struct world *world, struct log_reader *reader, const json_t *record)
{
    reader->whole = as_xgrow(reader->whole, reader->whole_count, &reader->whole_capacity,
                             sizeof(*reader->whole));
    struct whole *whole = &reader->whole[reader->whole_count++];
    *whole = (struct whole){.digest = bodies_digest(json_object_get(record, "alerts")),
                            .record = reader->summary.records,
                            .starts = reader->starts,
                            .time = time_of(record)};
    (void)snprintf(whole->id, sizeof(whole->id), "%s", log_text(record, "id"));
    bodies_check(world, whole->id, whole->digest);
}

/* Whatever it leaves out is near, and true of it. */
static void read_repeat(struct world *world, struct log_reader *reader, const json_t *record)
{
    const char *id = log_text(record, "id"), *same_as = log_text(record, "same_as");
    size_t at = reader->whole_count;
    keys_add(&reader->notifications, "%s", id);
    reader->summary.notifications++;
    reader->summary.repeats++;
    while (at > 0 && strcmp(reader->whole[at - 1].id, same_as) != 0)
        at--;
    if (at == 0) {
        fail(world, "%s names %s, which is no notification before it", id, same_as);
        return;
    }
    const struct whole *whole = &reader->whole[at - 1];
    const int64_t age = time_of(record).us - whole->time.us;
    if (whole->starts != reader->starts || age < 0 || age > AS_REPEAT_REACH_US ||
        reader->summary.records - whole->record > AS_REPEAT_REACH_RECORDS)
        fail(world, "%s names %s, which is too far back", id, same_as);
    bodies_check(world, id, whole->digest);
}

static void read_notification(struct world *world, struct log_reader *reader, const json_t *record)
{
    const json_t *alerts = json_object_get(record, "alerts");
    const char *id = log_text(record, "id");
    keep_whole(world, reader, record);
    keys_add(&reader->notifications, "%s", id);
    reader->summary.notifications++;
    for (size_t i = 0; i < json_array_size(alerts); i++) {
        const json_t *alert = json_array_get(alerts, i);
        if (strcmp(log_text(alert, "outcome"), "queued") == 0 &&
            strcmp(log_text(alert, "status"), "firing") == 0)
            keys_add(&reader->queued, "%s %s", id, log_text(alert, "fingerprint"));
    }
}

static void forget_pause(struct keys *paused, const char *target)
{
    size_t at = 0;
    while (at < paused->count && strcmp(paused->items[at], target) != 0)
        at++;
    if (at < paused->count)
        memcpy(paused->items[at], paused->items[--paused->count], KEY_SIZE);
}

static void read_command(struct log_reader *reader, const json_t *record)
{
    const char *id = log_text(record, "id"), *command = log_text(record, "command");
    const char *target = log_text(record, "target"), *outcome = log_text(record, "outcome");
    const bool is_ordered = log_text(record, "remote")[0] != '\0';
    const bool is_switch = !is_ordered && log_text(record, "who")[0] != '\0';
    keys_add(&reader->commands, "%s", id);
    if (is_ordered)
        keys_add(&reader->answers, "%s %s", log_text(record, "reason"), outcome);
    if (is_switch || strcmp(outcome, "done") != 0)
        return;
    if (strcmp(command, "scale") == 0)
        keys_add(&reader->sizes, "%s", id);
    if (strcmp(command, "pause") == 0 || strcmp(command, "resume") == 0)
        forget_pause(&reader->paused, target);
    if (strcmp(command, "pause") == 0)
        keys_add(&reader->paused, "%s", target);
}

static void read_action(struct world *world, struct log_reader *reader, const json_t *record)
{
    const char *id = log_text(record, "id"), *outcome = log_text(record, "outcome");
    const bool is_late = json_is_true(json_object_get(record, "late"));
    reader->summary.actions++;
    log_approved_action(world, record);
    keys_add(&reader->actions, "%s %s%s", id, outcome, is_late ? " late" : "");
    const bool is_taken_back = strstr(log_text(record, "message"), "takes the request back");
    if (!is_taken_back && json_is_string(json_object_get(record, "command"))) {
        keys_add(&reader->heard, "%s", log_text(record, "command"));
        if (strcmp(outcome, "applied") == 0)
            keys_add(&reader->set, "%s", log_text(record, "command"));
    }
    if (!json_is_string(json_object_get(record, "decision")))
        return;
    keys_add(&reader->ordered, "%s", log_text(record, "decision"));
    if (strcmp(outcome, "applied") == 0) {
        keys_add(&reader->applied, "%s", id);
        reader->summary.applied++;
        for (size_t i = 0; i < reader->of_alerts.count; i++) {
            if (strcmp(reader->of_alerts.items[i], id) == 0) {
                keys_add(&reader->followed, "%s", id);
                break;
            }
        }
    }
}

static void read_incident(struct world *world, struct log_reader *reader, const json_t *record)
{
    struct log_summary *summary = &reader->summary;
    const char *event = log_text(record, "event");
    const uint64_t fingerprint = strtoull(log_text(record, "fingerprint"), NULL, 16);
    size_t at = 0;
    while (at < summary->open_count && summary->open[at] != fingerprint)
        at++;
    const bool is_open = at < summary->open_count;
    const bool opens = strcmp(event, "opened") == 0;
    const bool holds = strcmp(event, "silenced") == 0 || strcmp(event, "unsilenced") == 0;
    if (opens == is_open)
        fail(world, "incident %016llx: %s, but it was %s", (unsigned long long)fingerprint, event,
             is_open ? "open" : "not open");
    else if (opens && summary->open_count < AS_ARRAY_SIZE(summary->open))
        summary->open[summary->open_count++] = fingerprint;
    else if (!opens && !holds)
        summary->open[at] = summary->open[--summary->open_count];
    if (!holds)
        log_approvals_note_incident(world, fingerprint, opens);
    if (opens || strcmp(event, "unsilenced") == 0)
        keys_add(&reader->opened, "%s %s", log_text(record, "notification"),
                 log_text(record, "fingerprint"));
}

static void read_record(struct world *world, struct log_reader *reader, const json_t *record)
{
    const char *kind = log_text(record, "kind");
    if (strcmp(kind, "notification") == 0)
        read_notification(world, reader, record);
    else if (strcmp(kind, "repeat") == 0)
        read_repeat(world, reader, record);
    else if (strcmp(kind, "start") == 0)
        reader->starts++;
    else if (strcmp(kind, "action") == 0)
        read_action(world, reader, record);
    else if (strcmp(kind, "approval") == 0)
        log_approval(world, record);
    else if (strcmp(kind, "effect") == 0)
        keys_add(&reader->effects, "%s", log_text(record, "action"));
    else if (strcmp(kind, "incident") == 0)
        read_incident(world, reader, record);
    else if (strcmp(kind, "command") == 0)
        read_command(reader, record);
}

/* The logged output is to the byte what `decide` says of the logged input, as in `replay`. */
static void decide_again(struct world *world, const char *id, const char *line, size_t size)
{
    static const char input[] = "\"input\":", after[] = ",\"instance\":", output[] = "\"output\":";
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = NULL;
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(OUTPUT_MAX);
    struct as_decision decision;
    const char *begin = memmem(line, size, input, sizeof(input) - 1);
    const char *end = memmem(line, size, after, sizeof(after) - 1);
    if (!begin || !end || end < begin) {
        fail(world, "decision %.26s has no input", id);
        return;
    }
    begin += sizeof(input) - 1;
    if (as_decision_decode_input(begin, (size_t)(end - begin), &document, &error) != 0) {
        fail(world, "the input of decision %.26s: %s", id, error.text);
        return;
    }
    as_decide_document_decide(document, &decision);
    as_buf_append_str(&text, output);
    as_decision_encode_output(&document->input, document->results, &decision, &text);
    if (as_buf_check(&text) == 0 && memmem(line, size, text.data, text.size))
        return;
    const char *logged = memmem(line, size, output, sizeof(output) - 1);
    size_t same = 0;
    while (logged && text.data[same] && logged[same] == text.data[same])
        same++;
    fail(world, "decision %.26s is computed again as %.150s, but logged as %.150s", id,
         text.data + same, logged ? logged + same : "");
}

/* Decisions are many and long: most of them are not read as JSON. True: that was all. */
static bool read_decision(struct world *world, struct log_reader *reader, const char *line,
                          size_t size)
{
    static const char kind[] = "\"kind\":\"decision\"", id[] = "\"id\":\"";
    const char *at = memmem(line, size, id, sizeof(id) - 1);
    if (!memmem(line, size, kind, sizeof(kind) - 1) || !at)
        return false;
    at += sizeof(id) - 1;
    keys_add(&reader->decisions, "%.26s", at);
    decide_again(world, at, line, size);
    return reader->summary.decisions++ % 16 > 0;
}

static void read_line(struct world *world, struct log_reader *reader, const char *line, size_t size)
{
    struct as_error error = AS_ERROR_INIT;
    if (as_chain_verify_line(&reader->verify, line, size, &error) != AS_CHAIN_OK) {
        fail(world, "the log is broken after record %llu: %s",
             (unsigned long long)reader->verify.head.seq, error.text);
        return;
    }
    reader->summary.records++;
    if (read_decision(world, reader, line, size))
        return;
    json_t *record = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    if (record)
        read_record(world, reader, record);
    else
        fail(world, "record %llu is not JSON", (unsigned long long)reader->verify.head.seq);
    json_decref(record);
}

static struct log_reader *get_reader(struct world *world)
{
    struct log_reader *reader = world->reader;
    if (reader)
        return reader;
    reader = world->reader = as_xcalloc(1, sizeof(*reader));
    reader->chain = as_chain_new();
    reader->verify = AS_CHAIN_VERIFY_INIT(reader->chain);
    return reader;
}

/* Reads on from where it was: the log only grows, and what a crash cut off comes back the same. */
static struct log_reader *read_on(struct world *world)
{
    struct log_reader *reader = get_reader(world);
    size_t size;
    const char *lines = as_audit_memory_get_lines(world->daemon.log, &size);
    if (size < reader->at)
        fail(world, "the log has become shorter");
    while (reader->at < size && !world->is_failed) {
        const char *line = lines + reader->at;
        const char *end = memchr(line, '\n', size - reader->at);
        if (!end) {
            fail(world, "the log ends in the middle of a line");
            break;
        }
        read_line(world, reader, line, (size_t)(end - line));
        reader->at = (size_t)(end + 1 - lines);
    }
    if (reader->verify.started && reader->verify.first_seq != 1)
        fail(world, "the log begins with record %llu",
             (unsigned long long)reader->verify.first_seq);
    return reader;
}

void check_log_on_intent(struct world *world, const struct as_intent_state *intent)
{
    if (intent->is_of_alert && !intent->in_doubt)
        keys_add(&get_reader(world)->of_alerts, "%s", intent->action_id);
}

static int find_follows(void *context, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    struct keys *waiting = context;
    json_t *state = json_loadb(value, value_size, 0, NULL);
    const json_t *follow;
    size_t i;
    (void)key;
    (void)key_size;
    json_array_foreach(json_object_get(state, "follows"), i, follow)
        keys_add(waiting, "%s", log_text(follow, "action"));
    json_decref(state);
    return 0;
}

/* Each action of an alert has one effect, or the state still has it to be followed. */
static void check_effects(struct world *world, struct log_reader *reader)
{
    struct keys waiting = {0};
    keys_check_unique(world, &reader->effects, "effect");
    keys_sort(&reader->followed);
    keys_check_all_in(world, &reader->effects, &reader->followed, "an effect of no action");
    if (world->daemon.peek->visit(world->daemon.peek, AS_STORE_TARGET, find_follows, &waiting,
                                  NULL) != 0)
        fail(world, "the state cannot be read");
    keys_sort(&waiting);
    for (size_t i = 0; i < reader->followed.count; i++) {
        const char *id = reader->followed.items[i];
        if (keys_have(&reader->effects, id) == keys_have(&waiting, id))
            fail(world, "action %s: %s", id,
                 keys_have(&reader->effects, id) ? "its effect is known, but it is followed"
                                                 : "it has no effect");
    }
    free(waiting.items);
}

/* Each order once, as it was answered; of each accepted size what became of it, and set once. */
static void check_commands(struct world *world, struct log_reader *reader)
{
    keys_check_unique(world, &reader->commands, "command");
    keys_check_unique(world, &reader->answers, "order");
    keys_check_unique(world, &reader->set, "applied command");
    keys_sort(&reader->heard);
    keys_check_all_in(world, &reader->sizes, &reader->heard, "ordered, but nothing came of it");
    keys_check_all_in(world, &reader->heard, &reader->commands, "acted without a command");
    for (size_t i = 0; i < world->order_count; i++) {
        const struct sim_order *order = world->orders[i];
        char key[KEY_SIZE];
        (void)snprintf(key, sizeof(key), "%s %s", order->reason,
                       as_operator_command_outcome_get_word(order->outcome));
        if (order->is_answered && !keys_have(&reader->answers, key))
            fail(world, "answered, but not in the log: %s", key);
    }
}

void check_log(struct world *world, struct log_summary *summary_out)
{
    struct log_reader *reader = read_on(world);
    keys_check_unique(world, &reader->notifications, "notification");
    keys_check_unique(world, &reader->decisions, "decision");
    keys_check_unique(world, &reader->actions, "action");
    keys_check_unique(world, &reader->applied, "applied action");
    keys_sort(&reader->opened);
    keys_check_all_in(world, &reader->queued, &reader->opened, "queued, but nothing was opened");
    keys_check_all_in(world, &reader->ordered, &reader->decisions, "acted without a decision");
    check_commands(world, reader);
    check_effects(world, reader);
    for (size_t i = 0; i < world->acknowledged.count; i++) {
        const struct acknowledgement *item = &world->acknowledged.items[i];
        if (!item->may_be_lost && !keys_have(&reader->notifications, item->id))
            fail(world, "acknowledged, but not in the log: %s", item->id);
    }
    *summary_out = reader->summary;
    memcpy(summary_out->hash, reader->verify.head.hash, sizeof(summary_out->hash));
}

void check_log_end(struct world *world)
{
    struct log_reader *reader = world->reader;
    if (!reader)
        return;
    as_chain_free(reader->chain);
    free(reader->whole);
    free(reader->notifications.items);
    free(reader->decisions.items);
    free(reader->actions.items);
    free(reader->applied.items);
    free(reader->of_alerts.items);
    free(reader->effects.items);
    free(reader->followed.items);
    free(reader->opened.items);
    free(reader->queued.items);
    free(reader->ordered.items);
    free(reader->commands.items);
    free(reader->answers.items);
    free(reader->sizes.items);
    free(reader->heard.items);
    free(reader->set.items);
    free(reader->paused.items);
    free(reader);
    world->reader = NULL;
}

struct comparison {
    struct world *world;
    const struct log_summary *summary;
    size_t open;
    const struct keys *paused; /* by the log */
    size_t paused_count;       /* in the engine */
};

static void compare_pause(struct comparison *comparison, const char *target, bool is_set)
{
    const struct keys *paused = comparison->paused;
    bool is_in_log = false;
    for (size_t i = 0; i < paused->count; i++)
        is_in_log = is_in_log || strcmp(paused->items[i], target) == 0;
    if (is_set != is_in_log)
        fail(comparison->world, "%s is paused by %s alone", target[0] ? target : "all",
             is_set ? "the engine" : "the log");
    comparison->paused_count += is_set;
}

static void compare_target(void *context, const struct as_target_view *view)
{
    const bool is_declared = view->pause.is_set && strcmp(view->pause.who, "annotation") == 0;
    compare_pause(context, view->id, view->pause.is_set && !is_declared);
}

static void compare_incident(void *context, const struct as_incident_state *state,
                             const struct as_incident_target *targets, size_t count)
{
    struct comparison *comparison = context;
    (void)targets;
    (void)count;
    if (!state->is_open)
        return;
    comparison->open++;
    for (size_t i = 0; i < comparison->summary->open_count; i++) {
        if (comparison->summary->open[i] == state->fingerprint)
            return;
    }
    fail(comparison->world, "incident %016llx is open, but not in the log",
         (unsigned long long)state->fingerprint);
}

static void compare_pauses(struct comparison *comparison)
{
    const struct daemon *daemon = &comparison->world->daemon;
    const struct as_engine *engine = as_shell_get_engine(daemon->shell);
    const struct as_clock *clock = &daemon->clock->clock;
    const as_mono_time now = clock->get_mono(clock);
    const as_wall_time wall = clock->get_wall(clock);
    const struct as_pause_view all = as_engine_get_pause(engine, now, wall);
    if (all.is_halt)
        return; /* it hides the other one */
    compare_pause(comparison, "", all.is_set);
    as_engine_visit_targets(engine, now, wall, compare_target, comparison);
    if (comparison->paused_count != comparison->paused->count)
        fail(comparison->world, "%zu pauses by the log, %zu in the engine",
             comparison->paused->count, comparison->paused_count);
}

/* Promise 1: what is open by the log is open in the engine, and nothing else; and so with pauses.
 * To be asked when nothing waits to be committed. */
void check_state_against_log(struct world *world)
{
    const struct log_reader *reader = read_on(world);
    const struct log_summary *summary = &reader->summary;
    struct comparison comparison = {.world = world, .summary = summary, .paused = &reader->paused};
    compare_pauses(&comparison);
    log_approvals_compare(world);
    as_engine_visit_incidents(as_shell_get_engine(world->daemon.shell), compare_incident,
                              &comparison);
    if (comparison.open != summary->open_count)
        fail(world, "%zu incidents are open by the log, %zu in the engine", summary->open_count,
             comparison.open);
}
