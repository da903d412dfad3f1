/*
 * `alertscaler replay --rules`: runs the log's notifications through a rehearsal of the engine
 * under other rules, and compares with the log's actions.
 *
 * The log has the inputs of a decision only after the notification that caused it. So records wait
 * for LOOK_AHEAD_US of the log's time and are then played by effective time: a decision's values
 * count from LOOK_AHEAD_US before it, but not before the target's previous decision. Memory grows
 * only with the records of that time, and with the number of targets and alerts.
 */
#include "replay_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/log/record.h>
#include <alertscaler/tools/record_text.h>

#include "log_reader.h"
#include "replay_notification.h"
#include "replay_rules.h"
#include "rules_option.h"

/* Longer than reading a size and querying Prometheus takes. */
#define LOOK_AHEAD_US (10 * AS_US_PER_S)

/* Longer than any pause in a log; a clock that starts in 1970 jumps further. */
#define GAP_MAX_US (366 * AS_US_PER_DAY)

#define WAITING_MAX 100000 /* records; with more, the look-ahead is shorter */

static int compare_items(const struct item *a, const struct item *b)
{
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

RB_GENERATE_INTERNAL(item_tree, item, by_time, compare_items, __attribute__((unused)) static)

/* The log's spelling may differ from the rules'. */
static struct logged *find_logged(const struct replay *replay, const char *id)
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id);
    struct logged *target;

    HASH_FIND_STR(replay->targets, key, target);
    return target;
}

static struct logged *get_logged(struct replay *replay, const char *id)
{
    struct logged *target = find_logged(replay, id);

    if (target)
        return target;
    target = as_xcalloc(1, sizeof(*target));
    target->id = as_xstrdup(id);
    target->key = as_target_key_make(id);
    target->decided = INT64_MIN;
    target->first = -1;
    HASH_ADD_KEYPTR(hh, replay->targets, target->key, strlen(target->key), target);
    return target;
}

/* --- what the rehearsal says --- */

static void on_decision(void *context, as_wall_time at, const struct as_decision_record *record)
{
    struct replay *replay = context;
    comparison_set_size(replay->comparison, COMPARISON_AFTER, record->target, record->target_name,
                        at, record->output->replicas, COMPARISON_LIMIT_OF_RULES);
    comparison_set_unit(replay->comparison, record->target, record->unit);
}

static void on_action(void *context, as_wall_time at, const struct as_action_record *record)
{
    struct replay *replay = context;
    if (!record->decision || record->outcome != AS_REASON_APPLIED)
        return;
    comparison_set_size(replay->comparison, COMPARISON_AFTER, record->target, record->target_name,
                        at, record->to, COMPARISON_LIMIT_OF_RULES);
    comparison_count_action(replay->comparison, COMPARISON_AFTER, record->target,
                            record->target_name, record->to > record->from);
}

static void on_approval(void *context, as_wall_time at, const struct as_approval_record *record)
{
    const struct replay *replay = context;
    comparison_note_request(replay->comparison, at, record);
}

static void on_incident(void *context, as_wall_time at, const struct as_incident_record *record)
{
    struct replay *replay = context;
    const char *alert = as_labels_get(record->labels, "alertname");
    const bool opens = record->event == AS_INCIDENT_OPENED;

    if (record->event == AS_INCIDENT_SILENCED || record->event == AS_INCIDENT_UNSILENCED)
        return;
    for (size_t i = 0; i < record->target_count; i++)
        comparison_set_alert(replay->comparison, record->targets[i].target, alert, at, opens);
}

/* Finds the first size of targets that the engine knows at the start: it would look again much
 * later at a target it could not find. */
static int take_first_size(void *context, const struct log_line *line, json_t *record,
                           struct as_error *error)
{
    struct replay *replay = context;
    const json_t *input = json_object_get(record, "input");
    const char *id = as_record_get_text(record, "target");
    struct logged *target;
    int32_t size;

    target = find_logged(replay, id);
    if (target && target->first < 0 &&
        as_record_get_size(json_object_get(input, "observed"), "replicas", &size)) {
        target->first = size;
        replay->unknown--;
    }
    return replay->unknown == 0;
}

static bool is_decision(void *context, const struct log_line *line)
{
    return log_line_has(line, "\"kind\":\"decision\"");
}

static int find_first_sizes(struct replay *replay, const struct log_files *files,
                            struct as_error *error)
{
    const struct as_ruleset *ruleset = replay->config->ruleset;
    const struct log_visitor visitor = {
        .wants = is_decision, .take = take_first_size, .context = replay};
    AS_CLEANUP(as_labels_free_p) struct as_labels *none = replay_values_make_annotations("");

    for (size_t i = 0; i < ruleset->target_count; i++) {
        AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
        if (!ruleset->targets[i].is_templated &&
            as_target_ref_new(&ruleset->targets[i], none, none, &ref, NULL) == AS_TARGET_OK) {
            (void)get_logged(replay, ref->id);
            replay->unknown++;
        }
    }
    const int status = replay->unknown > 0 ? log_walk(files, &visitor, error) : 0;
    return status < 0 ? status : 0;
}

static void set_first_sizes(struct replay *replay)
{
    struct logged *target, *next;

    HASH_ITER (hh, replay->targets, target, next) {
        if (target->first >= 0)
            as_rehearsal_set_size(replay->rehearsal, target->id, target->first);
    }
}

static void start(struct replay *replay, int64_t at)
{
    struct as_engine_config engine = rules_get_engine_config(replay->config);
    engine.scopes = replay->scopes.items;
    engine.scope_count = replay->scopes.count;
    const struct as_rehearsal_config config = {
        .ruleset = replay->config->ruleset,
        .engine = engine,
        .start = {at},
        .approves = strcmp(replay->approvals, "given") == 0,
        .callbacks = {.decision = on_decision,
                      .action = on_action,
                      .incident = on_incident,
                      .approval = on_approval,
                      .context = replay},
    };
    replay->rehearsal = as_rehearsal_new(&config);
    replay_values_begin(replay->values, replay->rehearsal);
    set_first_sizes(replay);
    replay->status =
        rules_set_replicas(replay->args, replay->config->ruleset, replay->rehearsal, replay->error);
}

/* --- what the log says, in its order --- */

static as_wall_time get_now(const struct replay *replay)
{
    return as_rehearsal_get_now(replay->rehearsal);
}

static void notify(struct replay *replay, const json_t *record)
{
    AS_CLEANUP(as_notification_free_p)
    struct as_notification *notification = replay_notification_make(record, &replay->scopes);

    if (notification->alert_count > 0)
        as_rehearsal_notify(replay->rehearsal, notification);
}

/* Reports from Alertmanager's list before this decision. */
static void play_reports(struct replay *replay, const json_t *input)
{
    const json_t *proposal;
    size_t i;

    json_array_foreach(json_object_get(input, "proposals"), i, proposal)
    {
        const json_t *opened = replay_reports_take(replay->reports, proposal);
        if (opened)
            notify(replay, opened);
    }
}

static void play_decision(struct replay *replay, const struct item *item)
{
    const char *id = as_record_get_text(item->record, "target");
    const char *name = as_record_get_text(item->record, "target_name");
    const json_t *input = json_object_get(item->record, "input");
    int32_t size = 0, limit = AS_SIZE_MAX;
    struct logged *target;

    replay_values_take(replay->values, replay->rehearsal, item->record);
    play_reports(replay, input);
    if (!as_record_get_size(json_object_get(input, "observed"), "replicas", &size))
        return;
    if (!as_record_get_size(json_object_get(input, "target"), "max", &limit))
        limit = AS_SIZE_MAX;
    comparison_set_size(replay->comparison, COMPARISON_BEFORE, id, name, get_now(replay), size,
                        limit);
    comparison_set_unit(replay->comparison, id, as_record_get_text(item->record, "unit"));
    target = find_logged(replay, id);
    const bool is_first = target && !target->is_known;
    if (target)
        target->is_known = true;
    if ((is_first && as_rehearsal_get_size(replay->rehearsal, id) < 0) || item->is_foreign)
        as_rehearsal_set_size(replay->rehearsal, id, size);
    if (is_first || item->is_foreign)
        comparison_set_size(replay->comparison, COMPARISON_AFTER, id, name, get_now(replay),
                            as_rehearsal_get_size(replay->rehearsal, id),
                            COMPARISON_LIMIT_OF_RULES);
}

/* Operators' orders do not depend on the rules. */
static void set_by_hand(struct replay *replay, const char *id, const char *name, int32_t size)
{
    as_rehearsal_set_size(replay->rehearsal, id, size);
    comparison_set_size(replay->comparison, COMPARISON_AFTER, id, name, get_now(replay), size,
                        COMPARISON_LIMIT_OF_RULES);
}

static void play_action(struct replay *replay, const struct item *item)
{
    const char *id = as_record_get_text(item->record, "target");
    const char *name = as_record_get_text(item->record, "target_name");
    int32_t from, to;

    if (!as_record_get_size(item->record, "from", &from) ||
        !as_record_get_size(item->record, "to", &to))
        return;
    comparison_set_size(replay->comparison, COMPARISON_BEFORE, id, name, get_now(replay), to,
                        COMPARISON_LIMIT_OF_RULES);
    comparison_count_action(replay->comparison, COMPARISON_BEFORE, id, name, to > from);
    if (*as_record_get_text(item->record, "command") &&
        strcmp(as_record_get_text(item->record, "outcome"), "applied") == 0)
        set_by_hand(replay, id, name, to);
}

static void play_notification(struct replay *replay, const struct item *item)
{
    replay_reports_note_notification(replay->reports, item->record);
    notify(replay, item->record);
}

static void play_incident(struct replay *replay, const struct item *item)
{
    const char *alert = as_record_get_text(json_object_get(item->record, "labels"), "alertname");
    const bool opens = strcmp(as_record_get_text(item->record, "event"), "opened") == 0;
    const json_t *target;
    size_t i;

    json_array_foreach(json_object_get(item->record, "targets"), i, target) comparison_set_alert(
        replay->comparison, as_record_get_text(target, "target"), alert, get_now(replay), opens);
    /* from Alertmanager's list: there was no notification */
    if (json_is_null(json_object_get(item->record, "notification")) &&
        (opens || strcmp(as_record_get_text(item->record, "event"), "closed") == 0))
        notify(replay, item->record);
    replay_reports_note_incident(replay->reports, item->record);
}

/* What a person answered in the log counts for what the same rule asks now. */
static void play_approval(struct replay *replay, const struct item *item)
{
    const char *event = as_record_get_text(item->record, "event");
    const bool is_yes = strcmp(event, "approved") == 0;
    if (is_yes || strcmp(event, "denied") == 0)
        (void)!as_rehearsal_answer(replay->rehearsal, as_record_get_text(item->record, "target"),
                                   as_record_get_text(item->record, "rule"), is_yes);
}

static void play(struct replay *replay, const struct item *item)
{
    static const struct {
        const char *kind;
        void (*play)(struct replay *replay, const struct item *item);
    } kinds[] = {{"notification", play_notification},
                 {"decision", play_decision},
                 {"action", play_action},
                 {"incident", play_incident},
                 {"approval", play_approval}};
    const char *kind = as_record_get_text(item->record, "kind");

    if (!replay->rehearsal)
        start(replay, item->at);
    if (item->at > get_now(replay).us)
        as_rehearsal_advance(replay->rehearsal, (as_wall_time){item->at});
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0)
            kinds[i].play(replay, item);
    }
}

/* Plays all records whose effective time is up to `until`. */
static void play_until(struct replay *replay, int64_t until)
{
    struct item *item;

    while ((item = RB_MIN(item_tree, &replay->waiting)) && item->at <= until) {
        RB_REMOVE(item_tree, &replay->waiting, item);
        replay->waiting_count--;
        play(replay, item);
        json_decref(item->record);
        free(item);
    }
}

/* --- the log --- */

static struct item *add_item(struct replay *replay, json_t *record, int64_t at)
{
    struct item *item = as_xcalloc(1, sizeof(*item));

    item->at = at;
    item->order = replay->order++;
    item->record = json_incref(record);
    RB_INSERT(item_tree, &replay->waiting, item);
    replay->waiting_count++;
    return item;
}

static void take_decision(struct replay *replay, json_t *record, int64_t at)
{
    struct logged *target = get_logged(replay, as_record_get_text(record, "target"));
    const json_t *observed = json_object_get(json_object_get(record, "input"), "observed");
    const bool is_first = target->decided == INT64_MIN;
    int64_t counts = as_time_add(at, -LOOK_AHEAD_US);
    int32_t size = target->size;

    if (counts < replay->first)
        counts = replay->first;
    if (!is_first && counts <= target->decided)
        counts = target->decided + 1;
    struct item *item = add_item(replay, record, counts < at ? counts : at);
    if (as_record_get_size(observed, "replicas", &size))
        item->is_foreign = !is_first && size != target->size;
    replay->foreign += item->is_foreign;
    target->decided = at;
    target->size = size;
}

static void take_action(struct replay *replay, json_t *record, int64_t at)
{
    struct logged *target = get_logged(replay, as_record_get_text(record, "target"));
    int32_t to;

    if (strcmp(as_record_get_text(record, "outcome"), "applied") != 0 ||
        !as_record_get_size(record, "to", &to))
        return;
    target->size = to;
    add_item(replay, record, at);
}

static void take_notification(struct replay *replay, json_t *record, int64_t at)
{
    replay->notifications++;
    replay->cut += replay_notification_is_cut(record);
    if (!replay_scopes_know(&replay->scopes, as_record_get_text(record, "credential")))
        replay->forbidden += replay_notification_count_forbidden(record);
    add_item(replay, record, at);
}

static void take_incident(struct replay *replay, json_t *record, int64_t at)
{
    const char *event = as_record_get_text(record, "event");

    if (strcmp(event, "silenced") == 0)
        replay->silenced++;
    else if (strcmp(event, "unsilenced") != 0)
        add_item(replay, record, at);
}

static void take_approval(struct replay *replay, json_t *record, int64_t at)
{
    if (strcmp(replay->approvals, "logged") == 0)
        add_item(replay, record, at);
}

static int take_record(void *context, const struct log_line *line, json_t *record,
                       struct as_error *error)
{
    static const struct {
        const char *kind;
        void (*take)(struct replay *replay, json_t *record, int64_t at);
    } kinds[] = {{"notification", take_notification},
                 {"decision", take_decision},
                 {"action", take_action},
                 {"incident", take_incident},
                 {"approval", take_approval}};
    const char *kind = as_record_get_text(record, "kind");
    struct replay *replay = context;
    as_wall_time time;

    int status = as_record_get_time(record, &time, error);
    if (status)
        return status;
    if (!replay->is_started)
        replay->first = replay->last = time.us;
    replay->is_started = true;
    const int64_t at = as_time_add(time.us, replay->shift);
    if (at < replay->last || at - replay->last > GAP_MAX_US) { /* continue from the last time */
        replay->shift = as_time_add(replay->last, -time.us);
        replay->clock_changes++;
    }
    replay->last = time.us + replay->shift;
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0)
            kinds[i].take(replay, record, replay->last);
    }
    play_until(replay, replay->last - LOOK_AHEAD_US);
    if (replay->waiting_count >= WAITING_MAX)
        play_until(replay, RB_MIN(item_tree, &replay->waiting)->at);
    return replay->status;
}

static void clear(struct replay *replay)
{
    struct logged *target, *next;
    struct item *item;

    while ((item = RB_MIN(item_tree, &replay->waiting))) {
        RB_REMOVE(item_tree, &replay->waiting, item);
        json_decref(item->record);
        free(item);
    }
    HASH_ITER (hh, replay->targets, target, next) {
        HASH_DEL(replay->targets, target);
        free(target->id);
        free(target->key);
        free(target);
    }
    json_decref(replay->warnings);
    as_rehearsal_free(replay->rehearsal);
    replay_scopes_deinit(&replay->scopes);
    comparison_free(replay->comparison);
    replay_values_free(replay->values);
    replay_reports_free(replay->reports);
    as_config_free(replay->config);
}

static int replay_all(struct replay *replay, const struct log_files *files, struct as_error *error)
{
    const struct log_visitor visitor = {.take = take_record,
                                        .context = replay,
                                        .unknown_repeats = &replay->unknown_repeats,
                                        .must_be_whole = true};
    int status = find_first_sizes(replay, files, error);

    if (!status)
        status = log_walk(files, &visitor, error);
    if (status)
        return status;
    play_until(replay, INT64_MAX);
    if (replay->status)
        return replay->status;
    if (replay->rehearsal)
        as_rehearsal_advance(replay->rehearsal, (as_wall_time){replay->last});
    comparison_end(replay->comparison, (as_wall_time){replay->last});
    return replay_rules_report(replay, error);
}

int replay_rules(const struct as_args *args, const struct log_files *files)
{
    struct replay replay = {.args = args,
                            .approvals = as_args_get(args, "approvals"),
                            .waiting = RB_INITIALIZER(&replay.waiting)};
    struct as_error error = AS_ERROR_INIT;
    replay.error = &error;
    int status = rules_load(args, as_args_get(args, "rules"), &replay.config);

    if (status)
        return status;
    replay.scopes = replay_scopes_make(&replay.config->settings.receiver);
    replay.values = replay_values_new(replay.config->ruleset);
    replay.reports = replay_reports_new();
    replay.comparison = comparison_new(replay.config->ruleset, as_args_has(args, "svg"));
    replay.warnings = json_array();
    status = replay_all(&replay, files, &error);
    clear(&replay);
    return status ? as_cli_fail(args, "%s", error.text) : AS_EXIT_OK;
}
