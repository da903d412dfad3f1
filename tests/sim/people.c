/*
 * Receivers of `notify`, behind an unreliable network: they refuse, do not answer, take a message
 * whose answer is lost, and are away for a while. What they have got is held against the log at the
 * end: everything is told at least once, for each target in the order of the log, and nothing that
 * is not there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/notice.h>

#include "sim.h"

#define TIMEOUT (10 * SECOND)

struct arrival { /* of an event, for the first time */
    UT_hash_handle hh;
    size_t index; /* in the order of arrival */
    bool is_in_log;
    char subject[128], phase[8], type[48];
    char hash[AS_NOTICE_HASH_SIZE];
};

struct told { /* about one target */
    UT_hash_handle hh;
    size_t last; /* index of the arrival */
    bool has_last, is_at_max;
    size_t held;       /* rules that did not help */
    as_wall_time ends; /* of its AlertscalerAtMax; only at an Alertmanager */
    char target[128];
};

struct people {
    struct as_notify_settings receivers[SIM_RECEIVERS];
    struct arrival *arrivals[SIM_RECEIVERS];
    struct told *told[SIM_RECEIVERS];
    int64_t away_until[SIM_RECEIVERS];
    uint64_t last_messenger;
};

struct sim_messenger {
    struct as_messenger port;
    struct world *world;
    uint64_t generation, number;
};

struct sending {
    size_t receiver;
    char *body; /* NULL: it never arrives */
    uint64_t generation, messenger, call_id;
    const char *error;
    as_message_done_fn *done;
    void *context;
};

static struct told *get_told(struct people *people, size_t receiver, const char *target)
{
    struct told *told;
    HASH_FIND_STR(people->told[receiver], target, told);
    if (told)
        return told;
    told = as_xcalloc(1, sizeof(*told));
    (void)snprintf(told->target, sizeof(told->target), "%s", target);
    HASH_ADD_STR(people->told[receiver], target, told);
    return told;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void take_event(struct world *world, size_t receiver, const json_t *event)
{
    struct people *people = world->people;
    const char *hash = text_of(event, "id");
    struct arrival *arrival;
    HASH_FIND_STR(people->arrivals[receiver], hash, arrival);
    if (arrival)
        return;
    arrival = as_xcalloc(1, sizeof(*arrival));
    arrival->index = HASH_COUNT(people->arrivals[receiver]);
    (void)snprintf(arrival->hash, sizeof(arrival->hash), "%s", hash);
    (void)snprintf(arrival->subject, sizeof(arrival->subject), "%s", text_of(event, "subject"));
    (void)snprintf(arrival->type, sizeof(arrival->type), "%s", text_of(event, "type"));
    (void)snprintf(arrival->phase, sizeof(arrival->phase), "%s",
                   text_of(json_object_get(event, "data"), "phase"));
    HASH_ADD_STR(people->arrivals[receiver], hash, arrival);
}

static void take_alert(struct world *world, size_t receiver, const json_t *alert)
{
    const json_t *labels = json_object_get(alert, "labels");
    const char *ends = text_of(alert, "endsAt");
    if (strcmp(text_of(labels, "alertscaler_instance"), "sim") != 0)
        fail(world, "an alert does not say whose it is");
    if (strcmp(text_of(labels, "alertname"), "AlertscalerAtMax") != 0)
        return;
    struct told *told = get_told(world->people, receiver, text_of(labels, "target"));
    if (as_wall_time_parse(ends, strlen(ends), &told->ends) != 0)
        fail(world, "an alert ends at %s", ends);
    const char *starts = text_of(alert, "startsAt");
    as_wall_time began;
    if (as_wall_time_parse(starts, strlen(starts), &began) != 0)
        fail(world, "an alert starts at %s", starts);
}

static void on_arrival(struct world *world, void *subject, uint64_t argument)
{
    struct sending *sending = subject;
    json_t *body = json_loads(sending->body, 0, NULL), *alert;
    size_t at;
    (void)argument;
    if (!body)
        fail(world, "a message is no JSON: %s", sending->body);
    json_array_foreach(body, at, alert) take_alert(world, sending->receiver, alert);
    if (json_is_object(body))
        take_event(world, sending->receiver, body);
    json_decref(body);
    free(sending->body);
    sending->body = NULL;
}

static void on_answer(struct world *world, void *subject, uint64_t generation)
{
    struct sending *sending = subject;
    if (daemon_is_gone(world, generation)) {
        trouble_note(world, TROUBLE_TELL_FORGOTTEN);
    } else {
        if (!daemon_enter(world, generation, on_answer, subject, generation))
            return;
        const struct sim_messenger *messenger =
            (const struct sim_messenger *)world->daemon.messenger;
        if (messenger && messenger->number == sending->messenger)
            sending->done(sending->context, sending->call_id, sending->error);
        daemon_poll(world);
        daemon_leave(world);
    }
    free(sending);
}

/* What becomes of a message. */
static int64_t choose_fate(struct world *world, struct sending *sending, bool *arrives_out)
{
    struct people *people = world->people;
    int64_t *away = &people->away_until[sending->receiver];
    *arrives_out = true;
    if (world->story)
        return 1000;
    if (world->is_calm)
        return between(world, 500, 50000);
    if (*away < world->now && chance(world, 20))
        *away = world->now + between(world, 1, 20) * MINUTE;
    if (*away > world->now || chance(world, 100)) {
        trouble_note(world, TROUBLE_TELL_REFUSED);
        sending->error = "refused";
        *arrives_out = false;
        return between(world, 500, 50000);
    }
    if (chance(world, 60)) {
        *arrives_out = chance(world, 500);
        trouble_note(world, *arrives_out ? TROUBLE_TELL_ANSWER_LOST : TROUBLE_TELL_SILENT);
        sending->error = "timeout";
        return TIMEOUT;
    }
    return latency(world);
}

static void send_message(struct as_messenger *port, uint64_t call_id,
                         const struct as_message *message, as_message_done_fn *done, void *context)
{
    const struct sim_messenger *messenger = (const struct sim_messenger *)port;
    struct world *world = messenger->world;
    struct sending *sending = as_xmalloc(sizeof(*sending));
    bool arrives;
    *sending = (struct sending){.receiver = message->receiver,
                                .generation = messenger->generation,
                                .messenger = messenger->number,
                                .call_id = call_id,
                                .done = done,
                                .context = context};
    const int64_t delay = choose_fate(world, sending, &arrives);
    if (arrives) {
        sending->body = as_xstrndup(message->body, message->size);
        later(world, delay / 2, on_arrival, sending, 0);
    }
    later(world, delay, on_answer, sending, messenger->generation);
}

static void close_messenger(struct as_messenger *port)
{
    free(port);
}

struct as_messenger *people_open_messenger(struct world *world)
{
    struct sim_messenger *messenger = as_xmalloc(sizeof(*messenger));
    *messenger = (struct sim_messenger){
        .port = {send_message, close_messenger},
        .world = world,
        .generation = world->daemon.generation,
        .number = ++world->people->last_messenger,
    };
    return &messenger->port;
}

struct as_notifier_config people_get_config(const struct world *world)
{
    return (struct as_notifier_config){
        .receivers = world->people->receivers,
        .receiver_count = SIM_RECEIVERS,
        .messenger = world->daemon.messenger,
        .instance = "sim",
    };
}

void people_start(struct world *world)
{
    static const char *urls[] = {"http://people"};
    static const unsigned all = 1U << AS_NOTICE_SCALED | 1U << AS_NOTICE_FAILED |
                                1U << AS_NOTICE_AT_MAX | 1U << AS_NOTICE_INEFFECTIVE;
    world->people = as_xcalloc(1, sizeof(*world->people));
    for (size_t i = 0; i < SIM_RECEIVERS; i++)
        world->people->receivers[i] = (struct as_notify_settings){
            .name = (const char *const[]){"events", "others", "on-call"}[i],
            .is_webhook = i < SIM_RECEIVERS - 1,
            .urls = urls,
            .url_count = 1,
            .on = all,
            .max_age_us = AS_US_PER_H,
        };
}

void people_stop(struct world *world)
{
    struct people *people = world->people;
    struct event *event;
    RB_FOREACH (event, event_tree, &world->events) { /* each answer, the last event of a message */
        struct sending *sending = event->subject;
        if (event->happen != on_answer)
            continue;
        free(sending->body);
        free(sending);
    }
    for (size_t i = 0; i < SIM_RECEIVERS; i++) {
        struct arrival *arrival, *next;
        struct told *told, *later_told;
        HASH_ITER (hh, people->arrivals[i], arrival, next) {
            HASH_DEL(people->arrivals[i], arrival);
            free(arrival);
        }
        HASH_ITER (hh, people->told[i], told, later_told) {
            HASH_DEL(people->told[i], told);
            free(told);
        }
    }
    free(people);
    world->people = NULL;
}

/* --- against the log --- */

struct check {
    struct world *world;
    size_t receiver, missing, dropped, found, twice; /* dropped, as the log says it, maybe later */
};

static bool is_reported_of(const json_t *record)
{
    const char *outcome = text_of(record, "outcome");
    /* a rule that is held anew before its end was told stays held for people: no `effect` */
    return strcmp(text_of(record, "kind"), "action") == 0 && strcmp(outcome, "conflict") != 0 &&
           strcmp(outcome, "superseded") != 0;
}

static void check_order(struct check *check, struct arrival *arrival, const json_t *record)
{
    struct told *told = get_told(check->world->people, check->receiver, arrival->subject);
    if (told->has_last && arrival->index < told->last)
        fail(check->world, "%s was told of before what came before it", arrival->hash);
    if (strcmp(text_of(record, "target"), arrival->subject) != 0)
        fail(check->world, "%s was told of another target", arrival->hash);
    const bool begins = strcmp(arrival->phase, "begin") == 0;
    if (strcmp(arrival->type, "io.alertscaler.at_max.v1") == 0) {
        check->twice += begins == told->is_at_max;
        told->is_at_max = begins;
    } else if (strcmp(arrival->type, "io.alertscaler.ineffective.v1") == 0) {
        check->twice += !begins && told->held == 0;
        if (begins)
            told->held++;
        else if (told->held > 0)
            told->held--;
    }
    told->last = arrival->index;
    told->has_last = arrival->is_in_log = true;
    check->found++;
}

static void check_record(struct check *check, const json_t *record)
{
    struct people *people = check->world->people;
    struct arrival *arrival;
    if (strcmp(text_of(record, "event"), "dropped") == 0 &&
        strcmp(text_of(record, "receiver"), people->receivers[check->receiver].name) == 0)
        check->dropped += (size_t)json_integer_value(json_object_get(record, "count"));
    HASH_FIND_STR(people->arrivals[check->receiver], text_of(record, "hash"), arrival);
    if (arrival)
        check_order(check, arrival, record);
    else if (is_reported_of(record))
        check->missing++;
}

static int note_entry(void *context, const void *key, size_t key_size, const void *value,
                      size_t value_size)
{
    bool *waits = context;
    (void)value;
    (void)value_size;
    *waits = *waits || (key_size > 7 && memcmp(key, "notice/", 7) == 0);
    return 0;
}

bool people_wait(struct world *world)
{
    bool waits = false;
    if (world->daemon.peek->visit(world->daemon.peek, AS_STORE_META, note_entry, &waits, NULL) != 0)
        fail(world, "the store cannot be read");
    return waits;
}

/* What the store has of a target's states. */
struct holding {
    const char *target;
    bool is_at_max;
    size_t held;
};

static bool ends_with(const char *key, size_t size, const char *prefix, const char *target)
{
    const size_t start = strlen(prefix), end = strlen(target);
    return size >= start + end && memcmp(key, prefix, start) == 0 &&
           memcmp(key + size - end, target, end) == 0;
}

static int find_state(void *context, const void *key, size_t key_size, const void *value,
                      size_t value_size)
{
    static const char at_max[] = "notice_state/at_max/", held[] = "notice_state/ineffective/";
    struct holding *holding = context;
    (void)value;
    (void)value_size;
    holding->is_at_max =
        holding->is_at_max || (key_size == strlen(at_max) + strlen(holding->target) &&
                               ends_with(key, key_size, at_max, holding->target));
    /* "RULE/TARGET": targets have no names that end with another's behind a slash */
    holding->held += ends_with(key, key_size, held, holding->target);
    return 0;
}

static void check_states(struct world *world, size_t receiver)
{
    struct as_store *peek = world->daemon.peek;
    const struct as_clock *clock = &world->daemon.clock->clock;
    struct told *told, *next;
    HASH_ITER (hh, world->people->told[receiver], told, next) {
        struct holding holding = {.target = told->target};
        if (peek->visit(peek, AS_STORE_META, find_state, &holding, NULL) != 0)
            fail(world, "the store cannot be read");
        const bool is_webhook = world->people->receivers[receiver].is_webhook;
        const bool is_told =
            is_webhook ? told->is_at_max : told->ends.us > clock->get_wall(clock).us;
        if (is_webhook && told->held != holding.held)
            fail(world, "%s: receiver %zu was told of %zu rules that are held, and there are %zu",
                 told->target, receiver, told->held, holding.held);
        if (is_told != holding.is_at_max)
            fail(world, "%s: receiver %zu was told that it %s at its max", told->target, receiver,
                 is_told ? "is" : "is not");
    }
}

void people_check_end(struct world *world)
{
    size_t size;
    const char *lines = as_audit_memory_get_lines(world->daemon.log, &size);
    for (size_t i = 0; i < SIM_RECEIVERS && !world->is_failed; i++) {
        struct check check = {.world = world, .receiver = i};
        const char *end;
        for (const char *at = lines; at < lines + size; at = end + 1) {
            end = memchr(at, '\n', (size_t)(lines + size - at));
            json_t *record = json_loadb(at, (size_t)(end - at), 0, NULL);
            if (world->people->receivers[i].is_webhook)
                check_record(&check, record);
            json_decref(record);
        }
        if (check.missing > check.dropped)
            fail(world, "receiver %zu was not told of %zu records", i, check.missing);
        if (check.twice > check.dropped)
            fail(world, "receiver %zu: a state begins or ends twice, %zu times", i, check.twice);
        if (check.found != HASH_COUNT(world->people->arrivals[i]))
            fail(world, "receiver %zu was told of %u events, and the log has %zu of them", i,
                 HASH_COUNT(world->people->arrivals[i]), check.found);
        /* Alertmanager believes in the clock that the sender had at that time */
        const bool is_clear = world->people->receivers[i].is_webhook || !world->allows_jumps;
        if (check.dropped == 0 && is_clear)
            check_states(world, i);
    }
}
