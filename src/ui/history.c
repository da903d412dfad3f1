/*
 * The history of sizes: events of each target in one array, filled by effects of the engine and by
 * records of the action log, and drawn as charts. What is dropped of an array leaves behind what
 * still holds: the size, and alerts that have begun and not ended. Nothing is decided by it.
 */
#include <alertscaler/ui/history.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/tools/record_text.h>

#define HISTORY_NAMES_MAX 1000 /* of alerts and rules; further ones share "others" */
#define HISTORY_NAME_SIZE 121

enum history_kind {
    HISTORY_SIZE,     /* value: the size, or AS_TIMELINE_UNKNOWN */
    HISTORY_ACTION,   /* other: from; value: to; name: rule */
    HISTORY_ALERT,    /* value: how many began, or (below 0) ended; name: alert */
    HISTORY_UP_LOCK,  /* value: seconds until it ends */
    HISTORY_DOWN_LOCK /* the same */
};

struct history_event {
    int64_t at; /* microseconds of wall time */
    int32_t value, other;
    uint16_t name;
    uint8_t kind;   /* of enum history_kind */
    uint8_t reason; /* of enum as_reason */
};

struct history_line {  /* of one target */
    UT_hash_handle hh; /* those heard of last come last */
    char *id;
    struct history_event *events; /* ascending by time */
    size_t count, capacity;
    int32_t up_s, down_s, up_after_down_s, down_after_down_s; /* the last known cooldown */
};

struct history_name {
    UT_hash_handle hh;
    char *text;
    uint16_t number;
};

struct as_history {
    size_t bytes, bytes_max;
    int64_t started_us; /* sizes before and after it are told apart */
    struct history_line *lines;
    struct history_name *names;               /* by text */
    const char *texts[HISTORY_NAMES_MAX + 1]; /* by number; 0: "" */
    size_t name_count;
};

#define FEW_EVENTS  16
#define FORGET_PART 16 /* one of so many targets, when all have few events */
#define JOIN_WITHIN AS_US_PER_S
#define LOOK_BACK   64 /* events */
#define OTHERS      "others"

struct as_history *as_history_new(size_t bytes_max)
{
    struct as_history *history = as_xcalloc(1, sizeof(*history));
    history->bytes_max = bytes_max;
    history->bytes = sizeof(*history);
    history->texts[0] = "";
    return history;
}

static size_t history_measure(const struct history_line *line)
{
    return sizeof(*line) + strlen(line->id) + 1 + line->capacity * sizeof(*line->events);
}

static void forget_line(struct as_history *history, struct history_line *line)
{
    history->bytes -= history_measure(line);
    HASH_DELETE(hh, history->lines, line);
    free(line->id);
    free(line->events);
    free(line);
}

void as_history_clear(struct as_history *history)
{
    while (history->lines)
        forget_line(history, history->lines);
}

struct as_history *as_history_free(struct as_history *history)
{
    if (!history)
        return NULL;
    as_history_clear(history);
    while (history->names) {
        struct history_name *name = history->names;
        HASH_DELETE(hh, history->names, name);
        free(name->text);
        free(name);
    }
    free(history);
    return NULL;
}

size_t as_history_get_bytes(const struct as_history *history)
{
    return history->bytes;
}

static uint16_t history_get_name(struct as_history *history, const char *text)
{
    char cut[HISTORY_NAME_SIZE];
    struct history_name *name;
    if (as_str_is_empty(text))
        return 0;
    as_str_copy_line(text, cut, sizeof(cut));
    HASH_FIND_STR(history->names, cut, name);
    if (!name && history->name_count >= HISTORY_NAMES_MAX - 1) {
        (void)snprintf(cut, sizeof(cut), "%s", OTHERS);
        HASH_FIND_STR(history->names, cut, name);
    }
    if (name)
        return name->number;
    name = as_xcalloc(1, sizeof(*name));
    name->text = as_xstrdup(cut);
    name->number = (uint16_t)++history->name_count;
    history->texts[name->number] = name->text;
    HASH_ADD_KEYPTR(hh, history->names, name->text, strlen(name->text), name);
    history->bytes += sizeof(*name) + strlen(name->text) + 1;
    return name->number;
}

/* The target's line, as the one heard of last; a new one if needed. */
static struct history_line *history_get_line(struct as_history *history, const char *id)
{
    struct history_line *line;
    HASH_FIND_STR(history->lines, id, line);
    if (line) {
        HASH_DELETE(hh, history->lines, line);
    } else {
        line = as_xcalloc(1, sizeof(*line));
        line->id = as_xstrdup(id);
        history->bytes += history_measure(line);
    }
    HASH_ADD_KEYPTR(hh, history->lines, line->id, strlen(line->id), line);
    return line;
}

/* --- what is forgotten --- */

/* Alerts of the first `count` events that are still open after them. */
static void count_open(const struct history_line *line, size_t count,
                       int32_t open_out[HISTORY_NAMES_MAX + 1])
{
    memset(open_out, 0, (HISTORY_NAMES_MAX + 1) * sizeof(*open_out));
    for (size_t i = 0; i < count; i++) {
        const struct history_event *event = &line->events[i];
        if (event->kind != HISTORY_ALERT)
            continue;
        open_out[event->name] += event->value;
        if (open_out[event->name] < 0)
            open_out[event->name] = 0;
    }
}

/* Drops the first `count` events but for the last size and the last beginning of each open alert,
 * which then counts for all of that name. Returns how many are gone. */
static size_t drop_first(struct history_line *line, size_t count)
{
    int32_t open[HISTORY_NAMES_MAX + 1];
    bool has_size = false;
    size_t kept = count;
    count_open(line, count, open);
    for (size_t i = count; i-- > 0;) {
        struct history_event event = line->events[i];
        const bool is_size = event.kind == HISTORY_SIZE && !has_size;
        const bool is_open = event.kind == HISTORY_ALERT && event.value > 0 && open[event.name] > 0;
        if (!is_size && !is_open)
            continue;
        has_size = has_size || is_size;
        if (is_open) {
            event.value = open[event.name];
            open[event.name] = 0;
        }
        line->events[--kept] = event;
    }
    memmove(line->events, line->events + kept, (line->count - kept) * sizeof(*line->events));
    line->count -= kept;
    return kept;
}

static void fit(struct as_history *history, struct history_line *line)
{
    history->bytes -= line->capacity * sizeof(*line->events);
    line->capacity = line->count;
    line->events = as_xrealloc_array(line->events, line->capacity > 0 ? line->capacity : 1,
                                     sizeof(*line->events));
    history->bytes += line->capacity * sizeof(*line->events);
}

static void forget_some(struct as_history *history)
{
    size_t count = HASH_COUNT(history->lines) / FORGET_PART + 1;
    while (count-- > 0 && history->lines)
        forget_line(history, history->lines); /* the first: heard of least lately */
}

static void history_make_room(struct as_history *history)
{
    while (history->bytes > history->bytes_max && history->lines) {
        struct history_line *longest = history->lines;
        for (struct history_line *line = longest; line; line = line->hh.next) {
            if (line->capacity > longest->capacity)
                longest = line;
        }
        if (longest->capacity <= FEW_EVENTS)
            forget_some(history);
        else if (longest->count < longest->capacity / 2 ||
                 drop_first(longest, longest->count / 2) > 0)
            fit(history, longest);
        else
            forget_line(history, longest);
    }
}

static void drop_old(struct history_line *line, int64_t before)
{
    size_t count = 0;
    while (count < line->count && line->events[count].at < before)
        count++;
    if (count > line->count / 4)
        (void)drop_first(line, count);
}

/* --- what is added --- */

/* Whether the event before `place` says it already, or can say it too. */
static bool joins(const struct as_history *history, struct history_line *line, size_t place,
                  const struct history_event *event)
{
    for (size_t i = place; i-- > 0 && place - i <= LOOK_BACK;) {
        struct history_event *before = &line->events[i];
        if (before->kind != event->kind)
            continue;
        if (event->kind == HISTORY_SIZE)
            return before->value == event->value &&
                   (before->at > history->started_us) == (event->at > history->started_us);
        if (event->kind != HISTORY_ALERT || before->name != event->name ||
            event->at - before->at > JOIN_WITHIN || (before->value > 0) != (event->value > 0))
            return false;
        before->value += event->value;
        return true;
    }
    return false;
}

/* Behind all events up to this time. */
static size_t history_find_place(const struct history_line *line, int64_t at)
{
    size_t place = line->count;
    while (place > 0 && line->events[place - 1].at > at)
        place--;
    return place;
}

/* Frees as much as needed afterwards, also of this line: use no line or event after it. */
static void history_add(struct as_history *history, struct history_line *line,
                        const struct history_event *event)
{
    if (joins(history, line, history_find_place(line, event->at), event))
        return;
    if (line->count > 0 && line->count == line->capacity)
        drop_old(line, line->events[line->count - 1].at - AS_HISTORY_SPAN_US);
    const size_t place = history_find_place(line, event->at);
    const size_t capacity = line->capacity;
    line->events = as_xgrow(line->events, line->count, &line->capacity, sizeof(*line->events));
    history->bytes += (line->capacity - capacity) * sizeof(*line->events);
    memmove(line->events + place + 1, line->events + place,
            (line->count - place) * sizeof(*line->events));
    line->events[place] = *event;
    line->count++;
    history_make_room(history);
}

void as_history_interrupt(struct as_history *history, as_wall_time at)
{
    const struct history_event event = {
        .at = at.us + 1, /* the size that was found at this moment still counts */
        .kind = HISTORY_SIZE,
        .value = AS_TIMELINE_UNKNOWN,
    };
    struct history_line *next;
    for (struct history_line *line = history->lines; line; line = next) {
        next = line->hh.next;
        /* nothing may be forgotten while this goes from line to line */
        const size_t needed = 2 * (line->capacity + 1) * FEW_EVENTS * sizeof(event);
        if (history->bytes + needed < history->bytes_max)
            history_add(history, line, &event);
        else
            forget_line(history, line);
    }
}

/*
 * What was so at the chart's beginning is drawn from its beginning on.
 */

static const struct history_line *find_line(const struct as_history *history, const char *target)
{
    const struct history_line *line;
    HASH_FIND_STR(history->lines, target, line);
    return line;
}

static int64_t history_cut(int64_t at, as_wall_time from, as_wall_time to)
{
    return at < from.us ? from.us : at > to.us ? to.us : at;
}

static void trace(const struct history_line *line, as_wall_time from, as_wall_time to,
                  struct as_timeline *line_out)
{
    as_timeline_add(line_out, from.us, AS_TIMELINE_UNKNOWN);
    for (size_t i = 0; line && i < line->count && line->events[i].at <= to.us; i++) {
        const struct history_event *event = &line->events[i];
        if (event->kind == HISTORY_SIZE)
            as_timeline_add(line_out, history_cut(event->at, from, to), event->value);
    }
}

void as_history_trace(const struct as_history *history, const char *target, as_wall_time from,
                      as_wall_time to, struct as_timeline *line_out)
{
    *line_out = (struct as_timeline){0};
    trace(find_line(history, target), from, to, line_out);
}

/* Beyond the last band, names share it. */
static struct as_timeline_band *get_band(struct as_history_chart *chart, const char *name)
{
    for (size_t i = 0; i < chart->alert_count; i++) {
        if (strcmp(chart->alerts[i].name, name) == 0)
            return &chart->alerts[i];
    }
    if (chart->alert_count == AS_TIMELINE_BANDS_MAX)
        return &chart->alerts[AS_TIMELINE_BANDS_MAX - 1];
    struct as_timeline_band *band = &chart->alerts[chart->alert_count++];
    band->name = as_xstrdup(chart->alert_count == AS_TIMELINE_BANDS_MAX ? "further alerts" : name);
    return band;
}

static void draw_alert(struct as_history_chart *chart, const char *name, int32_t change, int64_t at)
{
    struct as_timeline_band *band = get_band(chart, *name ? name : "alerts without a name");
    for (; change > 0; change--)
        as_timeline_band_begin(band, at);
    for (; change < 0; change++)
        as_timeline_band_end(band, at);
}

/* Bands that ended before the chart begins are not shown. */
static void end_bands(struct as_history_chart *chart, as_wall_time from, as_wall_time to)
{
    size_t kept = 0;
    for (size_t i = 0; i < chart->alert_count; i++) {
        struct as_timeline_band *band = &chart->alerts[i];
        as_timeline_band_close(band, to.us);
        if (band->count > 0 && band->intervals[band->count - 1].to > from.us)
            chart->alerts[kept++] = *band;
        else
            as_timeline_band_deinit(band);
    }
    chart->alert_count = kept;
}

static struct as_chart_mark make_mark(const struct as_history_action *action)
{
    const bool is_failed = action->outcome != AS_REASON_APPLIED;
    const char *rule = action->rule;
    char time[AS_RFC3339_SIZE];
    as_wall_time_print(action->at, time);
    return (struct as_chart_mark){
        .at = action->at.us,
        .size = is_failed && action->from >= 0 ? action->from : action->to,
        .is_failed = is_failed,
        .text = as_xasprintf("%.8s: %" PRId32 " to %" PRId32 ": %s%s%s", time + 11, action->from,
                             action->to, as_reason_get_word(action->outcome),
                             *rule ? ", rule " : "", rule),
    };
}

static void draw_mark(const struct as_history *history, struct as_history_chart *chart,
                      const struct history_event *event)
{
    if (chart->mark_count == AS_HISTORY_MARKS_MAX) {
        free((char *)chart->marks[0].text);
        memmove(chart->marks, chart->marks + 1, --chart->mark_count * sizeof(*chart->marks));
    }
    chart->marks[chart->mark_count++] = make_mark(&(struct as_history_action){
        .rule = history->texts[event->name],
        .at = {event->at},
        .from = event->other,
        .to = event->value,
        .outcome = (enum as_reason)event->reason,
    });
}

static void draw_locks(struct as_history_chart *chart, const struct history_line *line,
                       enum history_kind kind, const char *name, as_wall_time from, as_wall_time to)
{
    struct as_timeline_band *band = &chart->locks[chart->lock_count];
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < line->count && line->events[i].at <= to.us; i++) {
        const struct history_event *event = &line->events[i];
        if (event->kind != kind)
            continue;
        if (band->open > 0)
            as_timeline_band_end(band, history_cut(end < event->at ? end : event->at, from, to));
        end = event->at + event->value * AS_US_PER_S;
        if (event->value > 0 && end > from.us)
            as_timeline_band_begin(band, history_cut(event->at, from, to));
    }
    if (band->open > 0)
        as_timeline_band_end(band, history_cut(end, from, to));
    if (band->count == 0)
        return;
    band->name = as_xstrdup(name);
    chart->lock_count++;
}

void as_history_draw(const struct as_history *history, const char *target, as_wall_time from,
                     as_wall_time to, struct as_history_chart *chart_out)
{
    const struct history_line *line = find_line(history, target);
    *chart_out = (struct as_history_chart){0};
    trace(line, from, to, &chart_out->line);
    if (!line)
        return;
    chart_out->marks = as_xcalloc(AS_HISTORY_MARKS_MAX, sizeof(*chart_out->marks));
    for (size_t i = 0; i < line->count && line->events[i].at <= to.us; i++) {
        const struct history_event *event = &line->events[i];
        if (event->kind == HISTORY_ALERT)
            draw_alert(chart_out, history->texts[event->name], event->value,
                       history_cut(event->at, from, to));
        else if (event->kind == HISTORY_ACTION && event->at >= from.us)
            draw_mark(history, chart_out, event);
    }
    end_bands(chart_out, from, to);
    draw_locks(chart_out, line, HISTORY_UP_LOCK, "locked against growing", from, to);
    draw_locks(chart_out, line, HISTORY_DOWN_LOCK, "locked against shrinking", from, to);
}

static void extend_line(struct as_timeline *line, const struct as_timeline *older, int64_t known)
{
    const int64_t from = line->points[0].at; /* as_history_draw has made it */
    struct as_timeline whole = {0};
    as_timeline_add(&whole, from, AS_TIMELINE_UNKNOWN);
    for (size_t i = 0; i < older->count && older->points[i].at < known; i++)
        as_timeline_add(&whole, older->points[i].at < from ? from : older->points[i].at,
                        older->points[i].size);
    for (size_t i = 0; i < line->count; i++) {
        if (line->points[i].at >= known)
            as_timeline_add(&whole, line->points[i].at, line->points[i].size);
    }
    as_timeline_deinit(line);
    *line = whole;
}

void as_history_chart_extend(struct as_history_chart *chart, const struct as_timeline *older,
                             const struct as_history_action *actions, size_t action_count)
{
    const struct as_timeline *line = &chart->line;
    const int64_t from = line->points[0].at;
    const size_t room = AS_HISTORY_MARKS_MAX - chart->mark_count;
    struct as_chart_mark *marks = as_xcalloc(AS_HISTORY_MARKS_MAX, sizeof(*marks));
    size_t known = 0, count = 0;
    while (known < line->count && line->points[known].size == AS_TIMELINE_UNKNOWN)
        known++;
    const int64_t before = known < line->count ? line->points[known].at : INT64_MAX;
    while (action_count > 0 && actions[action_count - 1].at.us >= before)
        action_count--;
    for (size_t i = action_count > room ? action_count - room : 0; i < action_count; i++) {
        if (actions[i].at.us >= from)
            marks[count++] = make_mark(&actions[i]);
    }
    for (size_t i = 0; i < chart->mark_count; i++)
        marks[count++] = chart->marks[i];
    free(chart->marks);
    chart->marks = marks;
    chart->mark_count = count;
    extend_line(&chart->line, older, before);
}

void as_history_chart_deinit(struct as_history_chart *chart)
{
    as_timeline_deinit(&chart->line);
    for (size_t i = 0; i < chart->alert_count; i++)
        as_timeline_band_deinit(&chart->alerts[i]);
    for (size_t i = 0; i < chart->lock_count; i++)
        as_timeline_band_deinit(&chart->locks[i]);
    for (size_t i = 0; i < chart->mark_count; i++)
        free((char *)chart->marks[i].text);
    free(chart->marks);
    *chart = (struct as_history_chart){0};
}

void as_history_visit_actions(const struct as_history *history, as_history_action_fn *visit,
                              void *context)
{
    for (const struct history_line *line = history->lines; line; line = line->hh.next) {
        for (size_t i = 0; i < line->count; i++) {
            const struct history_event *event = &line->events[i];
            if (event->kind != HISTORY_ACTION)
                continue;
            visit(context, &(struct as_history_action){
                               .target = line->id,
                               .rule = history->texts[event->name],
                               .at = {event->at},
                               .from = event->other,
                               .to = event->value,
                               .outcome = (enum as_reason)event->reason,
                           });
        }
    }
}

/*
 * The same facts come as effects of the engine, and as records of the action log.
 */

static int32_t to_seconds(int64_t us)
{
    const int64_t seconds = us / AS_US_PER_S;
    return seconds < 0 ? 0 : seconds > INT32_MAX ? INT32_MAX : (int32_t)seconds;
}

static void add_size(struct as_history *history, const char *target, int64_t at, int32_t size)
{
    history_add(history, history_get_line(history, target),
                &(struct history_event){.at = at, .kind = HISTORY_SIZE, .value = size});
}

static void add_lock(struct as_history *history, const char *target, int64_t at,
                     enum history_kind kind, int32_t seconds)
{
    history_add(history, history_get_line(history, target),
                &(struct history_event){.at = at, .kind = (uint8_t)kind, .value = seconds});
}

static void add_action(struct as_history *history, const struct as_history_action *action)
{
    const struct history_line *line = history_get_line(history, action->target);
    const bool is_up = action->to > action->from;
    const int32_t up_s = is_up ? line->up_s : line->up_after_down_s;
    const int32_t down_s = is_up ? line->down_s : line->down_after_down_s;
    const struct history_event event = {
        .at = action->at.us,
        .kind = HISTORY_ACTION,
        .value = action->to,
        .other = action->from,
        .name = history_get_name(history, action->rule),
        .reason = (uint8_t)action->outcome,
    };
    history_add(history, history_get_line(history, action->target), &event);
    if (action->outcome != AS_REASON_APPLIED)
        return;
    add_size(history, action->target, action->at.us, action->to);
    if (up_s > 0)
        add_lock(history, action->target, action->at.us, HISTORY_UP_LOCK, up_s);
    if (down_s > 0)
        add_lock(history, action->target, action->at.us, HISTORY_DOWN_LOCK, down_s);
}

static bool begins(const char *event)
{
    return strcmp(event, as_incident_event_get_word(AS_INCIDENT_OPENED)) == 0;
}

static void history_add_alert(struct as_history *history, const char *target, const char *alert,
                              int64_t at, bool begins)
{
    const uint16_t name = history_get_name(history, alert);
    history_add(history, history_get_line(history, target),
                &(struct history_event){
                    .at = at, .kind = HISTORY_ALERT, .value = begins ? 1 : -1, .name = name});
}

static void history_unlock(struct as_history *history, const char *target, int64_t at)
{
    add_lock(history, target, at, HISTORY_UP_LOCK, 0);
    add_lock(history, target, at, HISTORY_DOWN_LOCK, 0);
}

/* --- effects --- */

static void history_add_decision(struct as_history *history,
                                 const struct as_decision_record *record)
{
    const struct as_cooldown *cooldown = &record->input->config.cooldown;
    struct history_line *line = history_get_line(history, record->target);
    line->up_s = to_seconds(cooldown->up_us);
    line->down_s = to_seconds(cooldown->down_us);
    line->up_after_down_s = to_seconds(cooldown->up_after_down_us);
    line->down_after_down_s = to_seconds(as_cooldown_get_down_after_down(cooldown));
    add_size(history, record->target, record->input->now.us, record->output->replicas);
}

static bool ends(const char *event)
{
    return strcmp(event, as_incident_event_get_word(AS_INCIDENT_CLOSED)) == 0 ||
           strcmp(event, as_incident_event_get_word(AS_INCIDENT_EXPIRED)) == 0 ||
           strcmp(event, as_incident_event_get_word(AS_INCIDENT_SUPERSEDED)) == 0;
}

static void history_add_incident(struct as_history *history,
                                 const struct as_incident_record *record, as_wall_time now)
{
    const char *alert = as_labels_get(record->labels, "alertname");
    const char *event = as_incident_event_get_word(record->event);
    if (!begins(event) && !ends(event))
        return;
    for (size_t i = 0; i < record->target_count; i++)
        history_add_alert(history, record->targets[i].target, alert, now.us, begins(event));
}

void as_history_on_effect(struct as_history *history, const struct as_effect *effect,
                          as_wall_time now)
{
    if (effect->kind == AS_EFFECT_RECORD_DECISION) {
        history_add_decision(history, effect->decision);
    } else if (effect->kind == AS_EFFECT_RECORD_INCIDENT) {
        history_add_incident(history, effect->incident_record, now);
    } else if (effect->kind == AS_EFFECT_RECORD_ACTION && effect->action->to >= 0) {
        const struct as_action_record *record = effect->action;
        add_action(history, &(struct as_history_action){record->target, record->rule, now,
                                                        record->from, record->to, record->outcome});
    } else if (effect->kind == AS_EFFECT_RECORD_COMMAND && effect->order->target &&
               effect->order->order->kind == AS_OPERATOR_COMMAND_UNLOCK &&
               effect->order->outcome == AS_OPERATOR_COMMAND_DONE) {
        history_unlock(history, effect->order->target, now.us);
    }
}

/* --- records --- */

static int32_t history_get_seconds(const json_t *cooldown, const char *key)
{
    const double seconds = json_number_value(json_object_get(cooldown, key));
    return seconds > 0 && seconds < INT32_MAX ? (int32_t)seconds : 0;
}

static void history_add_decision_record(struct as_history *history, const json_t *record,
                                        as_wall_time at)
{
    const char *target = as_record_get_text(record, "target");
    const json_t *input = json_object_get(record, "input");
    const json_t *cooldown = json_object_get(json_object_get(input, "target"), "cooldown");
    int32_t size;
    if (!*target || !as_record_get_size(json_object_get(record, "output"), "replicas", &size))
        return;
    struct history_line *line = history_get_line(history, target);
    line->up_s = history_get_seconds(cooldown, "up");
    line->down_s = history_get_seconds(cooldown, "down");
    line->up_after_down_s = history_get_seconds(cooldown, "up_after_down");
    line->down_after_down_s = json_object_get(cooldown, "down_after_down")
                                  ? history_get_seconds(cooldown, "down_after_down")
                                  : line->down_s;
    add_size(history, target, at.us, size);
}

static void history_add_action_record(struct as_history *history, const json_t *record,
                                      as_wall_time at)
{
    struct as_history_action action = {
        .target = as_record_get_text(record, "target"),
        .rule = as_record_get_text(record, "rule"),
        .at = at,
    };
    if (*action.target && as_record_get_size(record, "to", &action.to) &&
        as_reason_find(as_record_get_text(record, "outcome"), &action.outcome)) {
        if (!as_record_get_size(record, "from", &action.from))
            action.from = AS_TIMELINE_UNKNOWN;
        add_action(history, &action);
    }
}

static void history_add_incident_record(struct as_history *history, const json_t *record,
                                        as_wall_time at)
{
    const char *event = as_record_get_text(record, "event");
    const char *alert = as_record_get_text(json_object_get(record, "labels"), "alertname");
    const json_t *target;
    size_t i;
    if (!begins(event) && !ends(event))
        return;
    json_array_foreach(json_object_get(record, "targets"), i, target)
    {
        const char *id = as_record_get_text(target, "target");
        if (*id)
            history_add_alert(history, id, alert, at.us, begins(event));
    }
}

static void history_add_command_record(struct as_history *history, const json_t *record,
                                       as_wall_time at)
{
    const char *target = as_record_get_text(record, "target");
    if (*target &&
        strcmp(as_record_get_text(record, "command"),
               as_operator_command_kind_get_word(AS_OPERATOR_COMMAND_UNLOCK)) == 0 &&
        strcmp(as_record_get_text(record, "outcome"),
               as_operator_command_outcome_get_word(AS_OPERATOR_COMMAND_DONE)) == 0)
        history_unlock(history, target, at.us);
}

void as_history_add_record(struct as_history *history, const json_t *record, as_wall_time at,
                           as_wall_time previous)
{
    static const struct {
        enum as_record_kind kind;
        void (*add)(struct as_history *history, const json_t *record, as_wall_time at);
    } rows[] = {
        {AS_RECORD_DECISION, history_add_decision_record},
        {AS_RECORD_ACTION, history_add_action_record},
        {AS_RECORD_INCIDENT, history_add_incident_record},
        {AS_RECORD_COMMAND, history_add_command_record},
    };
    const char *kind = as_record_get_text(record, "kind");
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(kind, as_record_kind_get_word(rows[i].kind)) == 0)
            rows[i].add(history, record, at);
    }
    if (strcmp(kind, as_record_kind_get_word(AS_RECORD_START)) == 0 ||
        strcmp(kind, as_record_kind_get_word(AS_RECORD_STOP)) == 0)
        as_history_interrupt(history, previous);
}

/*
 * The older file first. Times never go back: a record that claims an earlier time than the one
 * before it counts as of that one's time, and one that claims a time after the start is skipped.
 */

#define PIECE    ((size_t)64 * 1024)   /* read in one turn */
#define LINE_MAX ((size_t)1024 * 1024) /* a longer one is skipped */
#define PAUSE_US 1000                  /* between turns */
#define FILES    2

struct log_part {
    int fd; /* -1: none */
    uint64_t at, end;
    bool is_cut; /* it begins within a line */
};

struct as_history_fill {
    struct as_history *history;
    struct event *timer;
    struct log_part parts[FILES]; /* ascending by time */
    size_t part;                  /* the present one; FILES: done */
    struct as_buf rest;           /* a line whose end is not read yet */
    bool skips;                   /* up to the line's end */
    as_wall_time started, previous;
    uint64_t records, unreadable;
};

static uint64_t open_part(struct log_part *part, const char *path, uint64_t bytes_max)
{
    struct stat st;
    if (as_file_open(path, AS_FILE_OWN, O_RDONLY, &part->fd, &st) != 0)
        return 0;
    part->end = (uint64_t)st.st_size;
    part->at = part->end > bytes_max ? part->end - bytes_max : 0;
    part->is_cut = part->at > 0;
    return part->end - part->at;
}

static void close_part(struct log_part *part)
{
    if (part->fd >= 0)
        close(part->fd);
    part->fd = -1;
}

static void history_read_line(struct as_history_fill *fill, const char *line, size_t size)
{
    as_wall_time at;
    struct as_error error;
    json_t *record = json_loadb(line, size, 0, NULL);
    if (!record || as_record_get_time(record, &at, &error) != 0 || at.us > fill->started.us) {
        fill->unreadable++;
    } else {
        at.us = at.us < fill->previous.us ? fill->previous.us : at.us;
        as_history_add_record(fill->history, record, at, fill->previous);
        fill->previous = at;
        fill->records++;
    }
    json_decref(record);
}

static void history_read_piece(struct as_history_fill *fill, const char *piece, size_t size)
{
    while (size > 0) {
        const char *newline = memchr(piece, '\n', size);
        const size_t length = newline ? (size_t)(newline - piece) : size;
        if (!fill->skips)
            as_buf_append(&fill->rest, piece, length);
        if (newline && !fill->skips && as_buf_check(&fill->rest) == 0 && fill->rest.size > 0)
            history_read_line(fill, fill->rest.data, fill->rest.size);
        else if (as_buf_check(&fill->rest) != 0)
            fill->skips = true;
        if (newline) {
            fill->skips = false;
            as_buf_clear(&fill->rest);
        }
        size -= newline ? length + 1 : length;
        piece += newline ? length + 1 : length;
    }
}

static void history_end(struct as_history_fill *fill)
{
    if (fill->records > 0)
        as_history_interrupt(fill->history, fill->previous);
    as_buf_deinit(&fill->rest);
    as_log(AS_LOG_DEBUG, "history filled from the action log",
           AS_FI("records", (int64_t)fill->records),
           AS_FI("unreadable", (int64_t)fill->unreadable));
}

/* A torn last line is dropped with the rest. */
static void next_part(struct as_history_fill *fill)
{
    close_part(&fill->parts[fill->part]);
    as_buf_clear(&fill->rest);
    fill->part++;
    fill->skips = fill->part < FILES && fill->parts[fill->part].is_cut;
}

static void history_arm(struct as_history_fill *fill)
{
    static const struct timeval pause = {.tv_usec = PAUSE_US};
    if (evtimer_add(fill->timer, &pause) != 0)
        abort(); /* only without memory */
}

static void history_on_timer(evutil_socket_t fd, short what, void *context)
{
    struct as_history_fill *fill = context;
    char piece[PIECE];
    struct log_part *part = &fill->parts[fill->part];
    const uint64_t left = part->fd >= 0 ? part->end - part->at : 0;
    const ssize_t count =
        left > 0 ? pread(part->fd, piece, left < PIECE ? left : PIECE, (off_t)part->at) : 0;
    if (count > 0) {
        part->at += (uint64_t)count;
        history_read_piece(fill, piece, (size_t)count);
    } else if (count == 0 || errno != EINTR) {
        next_part(fill);
    }
    if (as_history_fill_is_done(fill))
        history_end(fill);
    else
        history_arm(fill);
}

struct as_history_fill *as_history_fill_new(struct as_history *history, struct event_base *base,
                                            const char *path, uint64_t bytes_max)
{
    struct as_history_fill *fill = as_xcalloc(1, sizeof(*fill));
    fill->history = history;
    fill->rest = AS_BUF_INIT_OPEN(LINE_MAX);
    fill->started = as_system_clock.get_wall(&as_system_clock);
    history->started_us = fill->started.us;
    fill->parts[0].fd = fill->parts[1].fd = -1;
    if (path) {
        AS_CLEANUP(as_free_p) char *rotated = as_xasprintf("%s.1", path);
        const uint64_t bytes = open_part(&fill->parts[1], path, bytes_max);
        if (bytes < bytes_max)
            (void)open_part(&fill->parts[0], rotated, bytes_max - bytes);
    }
    fill->skips = fill->parts[0].is_cut;
    fill->timer = evtimer_new(base, history_on_timer, fill);
    if (!fill->timer)
        abort();
    history_arm(fill);
    return fill;
}

struct as_history_fill *as_history_fill_free(struct as_history_fill *fill)
{
    if (!fill)
        return NULL;
    for (size_t i = 0; i < FILES; i++)
        close_part(&fill->parts[i]);
    event_free(fill->timer);
    as_buf_deinit(&fill->rest);
    free(fill);
    return NULL;
}

bool as_history_fill_is_done(const struct as_history_fill *fill)
{
    return fill->part == FILES;
}
