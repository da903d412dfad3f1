/*
 * State documents: the rows of each, for both directions (doc/rows.h), and the types of their own
 * structs. A document of another form is damage and is refused whole. Unknown members are ignored.
 */
#include <alertscaler/engine/state.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cluster/node_template.h>
#include <alertscaler/cluster/nodes_seen.h>
#include <alertscaler/decide/incident.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/rows.h>
#include <alertscaler/model/labels.h>

/*
 * Types of the state's own structs.
 */

/* A document that is being read. */
struct state_reader {
    struct as_rows_input input; /* its context is the reader */
    struct as_reader document;
    const struct as_state_clock *clock;
    bool same_boot;
    struct tree tree; /* of the document; its arena has the lists and objects too */
};

#define AS_ROW_TYPE_moment struct as_moment
#define AS_ROW_TYPE_begun  struct as_moment
#define AS_ROW_TYPE_pairs  struct state_pairs

struct state_pairs {
    const struct as_target_field *fields; /* NULL: no list */
    size_t count;
};

static bool moment_is_unset(const struct as_row *row, const void *base)
{
    return !as_moment_is_set(*(const struct as_moment *)as_row_at(row, base));
}

static void moment_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_moment *moment = as_row_at(row, base);
    if (moment_is_unset(row, base)) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_array(json);
    as_json_write_i64(json, moment->mono.us);
    as_json_write_i64(json, moment->wall.us);
    as_json_end_array(json);
}

static bool stored_read_time(const struct tree_value *value, int64_t *us_out)
{
    return tree_get_i64(value, AS_ROW_TIME_MIN_US, AS_ROW_TIME_MAX_US, us_out);
}

static bool moment_parse(const struct state_reader *reader, const struct tree_value *value,
                         struct as_moment *moment_out)
{
    const struct as_state_clock *clock = reader->clock;
    struct as_moment moment;
    if (!tree_is(value, TREE_ARRAY) || value->size != 2 ||
        !stored_read_time(value->first, &moment.mono.us) ||
        !stored_read_time(value->first->next, &moment.wall.us))
        return false;
    if (!reader->same_boot) {
        const int64_t age = clock->wall.us - moment.wall.us;
        moment.mono.us = clock->mono.us - (age > 0 ? age : 0);
    }
    if (moment.mono.us > clock->mono.us)
        moment.mono = clock->mono;
    *moment_out = moment;
    return true;
}

static void moment_read(struct as_rows_input *input, struct as_reader *object,
                        const struct as_row *row, void *base)
{
    const struct tree_value *value = tree_find(object->object, row->name);
    struct as_moment *moment = as_row_to(row, base);
    if (tree_is(value, TREE_NULL))
        *moment = AS_MOMENT_NEVER;
    else if (!moment_parse(input->context, value, moment))
        as_read_fail(object, row->name, "expected two times in microseconds");
}

/* null: it is unset */
static const struct as_row_type as_row_moment = {
    .is_nullable = true, .write = moment_write, .read = moment_read, .is_unset = moment_is_unset};
/* never unset */
static const struct as_row_type as_row_begun = {.write = moment_write, .read = moment_read};

static void pairs_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct state_pairs *pairs = as_row_at(row, base);
    if (!pairs->fields) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_array(json);
    for (size_t i = 0; i < pairs->count; i++) {
        as_json_begin_array(json);
        as_json_write_string(json, pairs->fields[i].key);
        as_json_write_string(json, pairs->fields[i].value);
        as_json_end_array(json);
    }
    as_json_end_array(json);
}

static void pairs_read(struct as_rows_input *input, struct as_reader *object,
                       const struct as_row *row, void *base)
{
    struct state_pairs *pairs = as_row_to(row, base);
    const struct tree_value *pair = as_read_list(object, row->name, &pairs->count);
    if (!as_read_has(object, row->name))
        return;
    struct as_target_field *fields = as_arena_alloc(input->arena, pairs->count, sizeof(*fields));
    pairs->fields = fields;
    for (; pair; pair = pair->next, fields++) {
        const struct tree_value *key = tree_get_first(pair);
        fields->key = tree_get_text(key);
        fields->value = key ? tree_get_text(key->next) : NULL;
        if (!fields->key || !fields->value)
            as_read_fail(object, row->name, "expected pairs of strings");
    }
}

/* null: no list */
static const struct as_row_type as_row_pairs = {
    .is_nullable = true, .write = pairs_write, .read = pairs_read};

/* A whole document; some members differ from the struct's. */
struct document {
    const char *boot, *id, *key, *kind, *outcome, *uid;
    struct state_pairs address;
    union {
        struct as_incident_state incident;
        struct as_target_state target;
        struct as_intent_state intent;
        const struct as_pause_state *pause;
    };
};

static const struct as_row progress_rows[] = {
    {AS_ROW("applied", moment, as_progress, applied, REQUIRED)},
    {AS_ROW("origin", i32, as_progress, origin, REQUIRED), .min = -1},
    {AS_ROW("rule", text, as_progress, rule, REQUIRED)},
    {AS_ROW("steps", u32, as_progress, steps, REQUIRED)},
    {AS_ROW("target", text, as_progress, target, REQUIRED)},
    {.name = NULL},
};

static const struct as_row incident_rows[] = {
    {AS_ROW("annotations", label_map, document, incident.annotations, REQUIRED)},
    {AS_ROW("boot", text, document, boot, REQUIRED)},
    {AS_ROW("credentials", texts, document, incident.credentials, REQUIRED),
     .count_at = offsetof(struct document, incident.credential_count)},
    {AS_ROW("digest", digest, document, incident.key.digest, REQUIRED)},
    {AS_ROW("external_url", text, document, incident.external_url, OPTIONAL)},
    {AS_ROW("fingerprint", hex, document, incident.fingerprint, REQUIRED)},
    {AS_ROW("generator_url", text, document, incident.generator_url, OPTIONAL)},
    {AS_ROW("labels", label_map, document, incident.labels, REQUIRED)},
    {AS_ROW("open", flag, document, incident.is_open, REQUIRED)},
    {AS_ROW("opened", moment, document, incident.opened, REQUIRED)},
    {AS_ROW("owner", text, document, incident.key.owner, REQUIRED)},
    {AS_ROW_OF("progress", list, document, incident.progress, REQUIRED, progress_rows),
     .count_at = offsetof(struct document, incident.progress_count)},
    {AS_ROW("receivers", texts, document, incident.receivers, REQUIRED),
     .count_at = offsetof(struct document, incident.receiver_count)},
    {AS_ROW("resolved", moment, document, incident.resolved, REQUIRED)},
    {AS_ROW("seen", moment, document, incident.seen, REQUIRED)},
    {AS_ROW("silenced", moment, document, incident.silenced, REQUIRED)},
    {AS_ROW("starts_at", i64, document, incident.starts_at.us, REQUIRED), .min = INT64_MIN,
     .max = INT64_MAX},
    {AS_ROW("undated", flag, document, incident.is_undated, OPTIONAL)},
    {.name = NULL},
};

const struct as_row as_asked_rows[] = {
    {AS_ROW("at", i64, as_asked, at.us, REQUIRED), .min = INT64_MIN, .max = INT64_MAX},
    {AS_ROW("group", text, as_asked, group, REQUIRED)},
    {AS_ROW("in_vain", flag, as_asked, is_in_vain, REQUIRED)},
    {AS_ROW("shape", hex, as_asked, pod_class, REQUIRED)},
    {AS_ROW("template", hex, as_asked, template_, REQUIRED)},
    {.name = NULL},
};

AS_ROW_WORDS(approval_answer_get_word, enum as_approval_answer, AS_APPROVAL_ANSWER_COUNT,
             as_approval_answer_get_word)

const struct as_row as_approval_rows[] = {
    {AS_ROW("answer", word, as_approval_state, answer, REQUIRED),
     .get_word = approval_answer_get_word},
    {AS_ROW("answered", moment, as_approval_state, answered, REQUIRED)},
    {AS_ROW("asked", begun, as_approval_state, asked, REQUIRED)},
    {AS_ROW("decision", text, as_approval_state, decision, REQUIRED), .size = AS_ULID_SIZE},
    {AS_ROW("digest", digest, as_approval_state, digest, REQUIRED)},
    {AS_ROW("for_us", i64, as_approval_state, for_us, REQUIRED), .max = AS_APPROVAL_FOR_MAX_US},
    {AS_ROW("from", i32, as_approval_state, from, REQUIRED)},
    {AS_ROW("id", text, as_approval_state, id, REQUIRED), .size = AS_ULID_SIZE},
    {AS_ROW("incident", text, as_approval_state, incident, REQUIRED), .size = AS_DIGEST_TEXT_SIZE},
    {AS_ROW("rule", text, as_approval_state, rule, REQUIRED)},
    {AS_ROW("to", i32, as_approval_state, to, REQUIRED)},
    {AS_ROW("uid", text, as_approval_state, uid, REQUIRED), .size = AS_UID_SIZE},
    {AS_ROW("up", flag, as_approval_state, is_up, REQUIRED)},
    {AS_ROW("who", text, as_approval_state, who, REQUIRED)},
    {.name = NULL},
};

const struct as_row as_free_step_rows[] = {
    {AS_ROW("at", begun, as_free_step, at, REQUIRED)},
    {AS_ROW("change", i32, as_free_step, change, REQUIRED), .min = -INT32_MAX},
    {AS_ROW("rule", text, as_free_step, rule, REQUIRED)},
    {.name = NULL},
};

const struct as_row as_ending_rows[] = {
    {AS_ROW("applied", moment, as_ending_state, applied, REQUIRED)},
    {AS_ROW("ended", moment, as_ending_state, ended, REQUIRED)},
    {AS_ROW("guard", text, as_ending_state, guard, REQUIRED)},
    {AS_ROW("incident", text, as_ending_state, incident, REQUIRED)},
    {AS_ROW("last", i32, as_ending_state, last, REQUIRED), .min = -1},
    {AS_ROW("origin", i32, as_ending_state, origin, REQUIRED)},
    {AS_ROW("peak", i32, as_ending_state, peak, REQUIRED), .min = -1},
    {AS_ROW("rule", text, as_ending_state, rule, REQUIRED)},
    {.name = NULL},
};

static const struct as_row event_rows[] = {
    {AS_ROW("at", moment, as_past_event, at, REQUIRED)},
    {AS_ROW("change", i32, as_past_event, change, REQUIRED), .min = -INT32_MAX},
    {.name = NULL},
};

const struct as_row as_evaluation_rows[] = {
    {AS_ROW("action", text, as_evaluation_state, action_id, REQUIRED)},
    {AS_ROW("applied", begun, as_evaluation_state, applied, REQUIRED)},
    {AS_ROW("at", begun, as_evaluation_state, at, REQUIRED)},
    {AS_ROW("awaits_ready", flag, as_evaluation_state, awaits_ready, REQUIRED)},
    {AS_ROW("decision", text, as_evaluation_state, decision_id, REQUIRED)},
    {AS_ROW("from", i32, as_evaluation_state, from, REQUIRED)},
    {AS_ROW("missing", i32, as_evaluation_state, missing, REQUIRED)},
    {AS_ROW("ready_us", i64, as_evaluation_state, ready_us, REQUIRED), .min = -1,
     .max = INT64_MAX / 4},
    {AS_ROW("resolved_us", i64, as_evaluation_state, resolved_us, REQUIRED), .min = -1,
     .max = INT64_MAX / 4},
    {AS_ROW("rule", text, as_evaluation_state, rule, REQUIRED)},
    {AS_ROW("to", i32, as_evaluation_state, to, REQUIRED)},
    {.name = NULL},
};

const struct as_row as_rule_effect_rows[] = {
    {AS_ROW("held", moment, as_rule_effect_state, held, REQUIRED)},
    {AS_ROW("in_vain", u32, as_rule_effect_state, in_vain, REQUIRED)},
    {AS_ROW("rule", text, as_rule_effect_state, rule, REQUIRED)},
    {.name = NULL},
};

const struct as_row as_floor_rows[] = {
    {AS_ROW("for_us", i64, as_floor_state, for_us, REQUIRED), .max = INT64_MAX / 4},
    {AS_ROW("reason", text, as_floor_state, reason, REQUIRED)},
    {AS_ROW("since", begun, as_floor_state, since, REQUIRED)},
    {AS_ROW("size", i32, as_floor_state, size, REQUIRED), .min = 1},
    {AS_ROW("who", text, as_floor_state, who, REQUIRED)},
    {.name = NULL},
};

AS_ROW_WORDS(get_schedule_end, enum as_schedule_end, AS_SCHEDULE_END_COUNT,
             as_schedule_end_get_word)

const struct as_row as_schedule_size_rows[] = {
    {AS_ROW("before", i32, as_schedule_size_state, before, REQUIRED)},
    {AS_ROW("end", word, as_schedule_size_state, at_end, REQUIRED), .get_word = get_schedule_end},
    {AS_ROW("schedule", text, as_schedule_size_state, schedule, REQUIRED)},
    {AS_ROW("size", i32, as_schedule_size_state, size, REQUIRED)},
    {AS_ROW("version", text, as_schedule_size_state, version, REQUIRED), .size = AS_VERSION_SIZE},
    {AS_ROW("void", flag, as_schedule_size_state, is_void, OPTIONAL)},
    {AS_ROW("zero", flag, as_schedule_size_state, is_zero, OPTIONAL)},
    {.name = NULL},
};

const struct as_row as_rollout_rows[] = {
    {AS_ROW_CHARS("revision", as_rollout_state, revision, REQUIRED)},
    {AS_ROW("since", begun, as_rollout_state, since, REQUIRED)},
    {.name = NULL},
};

static const struct as_row scaleup_rows[] = {
    {AS_ROW("back_off_us", i64, as_scaleup_state, back_off_us, REQUIRED), .max = INT64_MAX / 4},
    {AS_ROW("did_not_come", flag, as_scaleup_state, did_not_come, OPTIONAL)},
    {AS_ROW("failed", moment, as_scaleup_state, failed, REQUIRED)},
    {AS_ROW("from", i32, as_scaleup_state, from, REQUIRED)},
    {AS_ROW_CHARS("id", as_scaleup_state, id, REQUIRED)},
    {AS_ROW("missing", i32, as_scaleup_state, missing, REQUIRED)},
    {AS_ROW("open", flag, as_scaleup_state, is_open, REQUIRED)},
    {AS_ROW("ordered", flag, as_scaleup_state, is_ordered, REQUIRED)},
    {AS_ROW("ready", i32, as_scaleup_state, ready, OPTIONAL)},
    {AS_ROW("refused", flag, as_scaleup_state, is_refused, REQUIRED)},
    {AS_ROW("since", moment, as_scaleup_state, since, REQUIRED)},
    {AS_ROW("surplus", i32, as_scaleup_state, surplus, OPTIONAL)},
    {AS_ROW("surplus_from", i32, as_scaleup_state, surplus_from, OPTIONAL)},
    {AS_ROW("surplus_since", moment, as_scaleup_state, surplus_since, OPTIONAL)},
    {AS_ROW("to", i32, as_scaleup_state, to, REQUIRED)},
    {.name = NULL},
};

const struct as_row as_metric_gap_rows[] = {
    {AS_ROW("rule", text, as_metric_gap_state, rule, REQUIRED)},
    {AS_ROW("since", begun, as_metric_gap_state, since, REQUIRED)},
    {.name = NULL},
};

const struct as_row as_ordered_rows[] = {
    {AS_ROW("at", begun, as_ordered_state, at, REQUIRED)},
    {AS_ROW("force", flag, as_ordered_state, force, REQUIRED)},
    {AS_ROW_CHARS("id", as_ordered_state, id, REQUIRED)},
    {AS_ROW("replicas", i32, as_ordered_state, replicas, REQUIRED)},
    {AS_ROW("sender", text, as_ordered_state, sender, OPTIONAL)},
    {.name = NULL},
};

const struct as_row as_own_size_rows[] = {
    {AS_ROW("at", begun, as_own_size, at, REQUIRED)},
    {AS_ROW("from", i32, as_own_size, from, REQUIRED)},
    {AS_ROW("to", i32, as_own_size, to, REQUIRED)},
    {AS_ROW("version", text, as_own_size, version, REQUIRED), .size = AS_VERSION_SIZE},
    {.name = NULL},
};

const struct as_row as_reverted_change_rows[] = {
    {AS_ROW("at", begun, as_reverted_change, at, REQUIRED)},
    {AS_ROW("by", text, as_reverted_change, by, REQUIRED), .size = AS_MANAGER_SIZE},
    {AS_ROW("found", i32, as_reverted_change, found, REQUIRED)},
    {AS_ROW("from", i32, as_reverted_change, from, REQUIRED)},
    {AS_ROW("to", i32, as_reverted_change, to, REQUIRED)},
    {.name = NULL},
};

const struct as_row as_pause_rows[] = {
    {AS_ROW("for_us", i64, as_pause_state, for_us, REQUIRED), .max = INT64_MAX / 4},
    {AS_ROW("reason", text, as_pause_state, reason, REQUIRED)},
    {AS_ROW("since", begun, as_pause_state, since, REQUIRED)},
    {AS_ROW("ways", u32, as_pause_state, ways, OPTIONAL), .max = AS_WAYS_BOTH},
    {AS_ROW("who", text, as_pause_state, who, REQUIRED)},
    {.name = NULL},
};

static const struct as_row recommendation_rows[] = {
    {AS_ROW("at", moment, as_past_recommendation, at, REQUIRED)},
    {AS_ROW("replicas", i32, as_past_recommendation, replicas, REQUIRED)},
    {.name = NULL},
};

static const struct as_row resize_rows[] = {
    {AS_ROW("above", flag, as_resize_state, is_above, OPTIONAL)},
    {AS_ROW("from", i32, as_resize_state, from, REQUIRED)},
    {AS_ROW_CHARS("id", as_resize_state, id, REQUIRED)},
    {AS_ROW("late", flag, as_resize_state, is_late, REQUIRED)},
    {AS_ROW("open", flag, as_resize_state, is_open, REQUIRED)},
    {AS_ROW("ordered", flag, as_resize_state, is_ordered, REQUIRED)},
    {AS_ROW("to", i32, as_resize_state, to, REQUIRED)},
    {.name = NULL},
};

static const struct as_row pause_document_rows[] = {
    {AS_ROW("boot", text, document, boot, REQUIRED)},
    {AS_ROW_OF("pause", object, document, pause, REQUIRED, as_pause_rows)},
    {.name = NULL},
};

/* The key: omitted if equal to the id. */
static const struct as_row target_rows[] = {
    {AS_ROW("address", pairs, document, address, REQUIRED)},
    {AS_ROW_OF("approvals", list, document, target.approvals, OPTIONAL, as_approval_rows),
     .count_at = offsetof(struct document, target.approval_count)},
    {AS_ROW_OF("asked", list, document, target.asked, OPTIONAL, as_asked_rows),
     .count_at = offsetof(struct document, target.asked_count)},
    {AS_ROW("boot", text, document, boot, REQUIRED)},
    {AS_ROW("born", moment, document, target.born, OPTIONAL)},
    {AS_ROW("contended", moment, document, target.contended, OPTIONAL)},
    {AS_ROW("dry_last_down", moment, document, target.locks.dry_last_down, REQUIRED)},
    {AS_ROW("dry_last_up", moment, document, target.locks.dry_last_up, REQUIRED)},
    {AS_ROW_OF("endings", list, document, target.endings, REQUIRED, as_ending_rows),
     .count_at = offsetof(struct document, target.ending_count)},
    {AS_ROW("entry", text, document, target.entry, REQUIRED)},
    {AS_ROW_OF("events", list, document, target.events, REQUIRED, event_rows),
     .count_at = offsetof(struct document, target.event_count)},
    {AS_ROW_OF("floor", object, document, target.floor, OPTIONAL, as_floor_rows)},
    {AS_ROW_OF("follows", list, document, target.evaluations, OPTIONAL, as_evaluation_rows),
     .count_at = offsetof(struct document, target.evaluation_count)},
    {AS_ROW_OF("free_steps", list, document, target.free_steps, OPTIONAL, as_free_step_rows),
     .count_at = offsetof(struct document, target.free_step_count)},
    {AS_ROW_OF("growth", object, document, target.scaleup, OPTIONAL, scaleup_rows)},
    {AS_ROW("id", text, document, id, REQUIRED)},
    {AS_ROW("keep_us", i64, document, target.keep_us, REQUIRED), .max = INT64_MAX},
    {AS_ROW("key", text, document, key, OPTIONAL)},
    {AS_ROW("kind", text, document, kind, OPTIONAL)},
    {AS_ROW_OF("lacks", list, document, target.metric_gaps, OPTIONAL, as_metric_gap_rows),
     .count_at = offsetof(struct document, target.metric_gap_count)},
    {AS_ROW("last_down", moment, document, target.locks.last_down, REQUIRED)},
    {AS_ROW("last_return", moment, document, target.locks.last_return, OPTIONAL)},
    {AS_ROW("last_step_down", moment, document, target.locks.last_step_down, OPTIONAL)},
    {AS_ROW("last_up", moment, document, target.locks.last_up, REQUIRED)},
    {AS_ROW_OF("ordered", object, document, target.ordered, OPTIONAL, as_ordered_rows)},
    {AS_ROW_OF("own_size", object, document, target.own_size, OPTIONAL, as_own_size_rows)},
    {AS_ROW_OF("pause", object, document, target.pause, OPTIONAL, as_pause_rows)},
    {AS_ROW_OF("recommendations", list, document, target.recommendations, REQUIRED,
               recommendation_rows),
     .count_at = offsetof(struct document, target.recommendation_count)},
    {AS_ROW_OF("resize", object, document, target.resize, OPTIONAL, resize_rows)},
    {AS_ROW_OF("rollout", object, document, target.rollout, OPTIONAL, as_rollout_rows)},
    {AS_ROW_OF("schedule_size", object, document, target.schedule_size, OPTIONAL,
               as_schedule_size_rows)},
    {AS_ROW_OF("set_backs", list, document, target.reverted_changes, OPTIONAL,
               as_reverted_change_rows),
     .count_at = offsetof(struct document, target.reverted_change_count)},
    {AS_ROW("template", text, document, target.template_, OPTIONAL),
     .size = AS_NODE_TEMPLATE_TEXT_MAX + 1},
    {AS_ROW_OF("trials", list, document, target.rule_effects, OPTIONAL, as_rule_effect_rows),
     .count_at = offsetof(struct document, target.rule_effect_count)},
    {AS_ROW("uid", text, document, uid, OPTIONAL), .size = AS_UID_SIZE},
    {.name = NULL},
};

static const struct as_row intent_rows[] = {
    {AS_ROW_CHARS("action", document, intent.action_id, REQUIRED)},
    {AS_ROW("address", pairs, document, address, REQUIRED)},
    {AS_ROW("alert", flag, document, intent.is_of_alert, OPTIONAL)},
    {AS_ROW_CHARS("approval", document, intent.approval, OPTIONAL)},
    {AS_ROW("at", moment, document, intent.at, REQUIRED)},
    {AS_ROW("boot", text, document, boot, REQUIRED)},
    {AS_ROW_CHARS("decision", document, intent.decision_id, REQUIRED)},
    {AS_ROW("from", i32, document, intent.from, REQUIRED)},
    {AS_ROW("id", text, document, id, REQUIRED)},
    {AS_ROW("key", text, document, key, OPTIONAL)},
    {AS_ROW("kind", text, document, kind, REQUIRED)},
    {AS_ROW("maybe", flag, document, intent.in_doubt, REQUIRED)},
    {AS_ROW("ordered", flag, document, intent.is_ordered, OPTIONAL)},
    {AS_ROW("outcome", text, document, outcome, REQUIRED)},
    {AS_ROW("rule", text, document, intent.rule, REQUIRED)},
    {AS_ROW("to", i32, document, intent.to, REQUIRED)},
    {AS_ROW("uid", text, document, uid, OPTIONAL), .size = AS_UID_SIZE},
    {AS_ROW_CHARS("version", document, intent.version, REQUIRED)},
    {.name = NULL},
};

static void stored_write_document(const struct document *document, const struct as_row *rows,
                                  struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_rows_write(&json, rows, document);
}

static void set_identity(struct document *document, const char *id, const char *key,
                         const char *uid, const struct as_target_ref *ref)
{
    document->id = id;
    document->key = as_str_equal(key, id) ? NULL : key;
    document->uid = as_str_is_empty(uid) ? NULL : uid;
    if (ref) {
        document->kind = ref->kind->word;
        document->address = (struct state_pairs){ref->fields, ref->field_count};
    }
}

void as_state_encode_incident(const struct as_incident_state *state, const char *boot,
                              struct as_buf *out)
{
    stored_write_document(&(struct document){.boot = boot, .incident = *state}, incident_rows, out);
}

void as_state_encode_target(const struct as_target_state *state, const char *boot,
                            struct as_buf *out)
{
    struct document document = {.boot = boot, .target = *state};
    set_identity(&document, state->id, state->stored_as, state->uid, state->ref);
    stored_write_document(&document, target_rows, out);
}

void as_state_encode_intent(const struct as_intent_state *state, const char *boot,
                            struct as_buf *out)
{
    struct document document = {
        .boot = boot, .outcome = as_reason_get_word(state->outcome), .intent = *state};
    set_identity(&document, state->ref->id, state->stored_as, state->uid, state->ref);
    stored_write_document(&document, intent_rows, out);
}

void as_state_encode_pause(const struct as_pause_state *state, const char *boot, struct as_buf *out)
{
    stored_write_document(&(struct document){.boot = boot, .pause = state}, pause_document_rows,
                          out);
}

static void damage(struct state_reader *reader, const char *name)
{
    as_read_fail(&reader->document, name, "does not fit the other members");
}

/* 0, or -EBADMSG with an error. */
static int reader_get_result(const struct state_reader *reader, struct as_error *error)
{
    const int status = as_read_result(&reader->document);
    if (status)
        as_error_wrap(error, "state document");
    return status;
}

/* The reader must be closed even after a failure. */
static int reader_open(struct state_reader *reader, const char *json, size_t size,
                       const struct as_state_clock *clock, const struct as_row *rows,
                       struct document *document, struct as_error *error)
{
    struct tree *tree = &reader->tree;
    *reader = (struct state_reader){.clock = clock, .tree = TREE_INIT(TREE_NO_LIMIT)};
    if (tree_load_object(tree, json, size, NULL) < 0) {
        as_error_set(error, "state document: not a JSON object");
        return -EBADMSG;
    }
    reader->input = (struct as_rows_input){.arena = &tree->arena, .context = reader};
    reader->same_boot = as_str_equal(tree_find_text(tree->root, "boot"), clock->boot);
    as_read_lenient(&reader->document, tree->root, error);
    as_rows_read(&reader->input, &reader->document, rows, document);
    return reader_get_result(reader, error);
}

static void reader_close(struct state_reader *reader)
{
    tree_deinit(&reader->tree);
}

static void check_incident(struct state_reader *reader, const struct as_incident_state *state)
{
    if (as_moment_is_set(state->resolved) == state->is_open)
        damage(reader, "resolved");
}

int as_state_decode_incident(const char *json, size_t size, const struct as_state_clock *clock,
                             as_state_incident_fn *use, void *context, struct as_error *error)
{
    struct document document = {.incident = {.is_open = false}};
    struct state_reader reader;
    int status = reader_open(&reader, json, size, clock, incident_rows, &document, error);
    if (status == 0) {
        check_incident(&reader, &document.incident);
        status = reader_get_result(&reader, error);
    }
    if (status == 0)
        status = use(context, &document.incident);
    reader_close(&reader);
    return status;
}

int as_state_decode_pause(const char *json, size_t size, const struct as_state_clock *clock,
                          as_state_pause_fn *use, void *context, struct as_error *error)
{
    struct document document = {.pause = NULL};
    struct state_reader reader;
    int status = reader_open(&reader, json, size, clock, pause_document_rows, &document, error);
    if (status == 0)
        status = use(context, document.pause);
    reader_close(&reader);
    return status;
}

/* The document's target reference; NULL if it is absent or invalid. */
static struct as_target_ref *make_ref(struct state_reader *reader, const struct document *document)
{
    if (!document->address.fields)
        return NULL;
    const struct as_target_kind *kind = document->kind ? as_target_kind_find(document->kind) : NULL;
    if (!kind)
        damage(reader, "kind");
    return kind ? as_target_ref_make(kind, document->id, document->address.fields,
                                     document->address.count)
                : NULL;
}

static void check_template(struct state_reader *reader, const char *text)
{
    static const struct as_res_names names = {.count = AS_RES_NAMED};
    struct as_node_template template_;
    if (text && as_node_template_decode(text, &names, &reader->tree.arena, &template_, NULL) != 0)
        damage(reader, "template");
}

static void check_target(struct state_reader *reader, const struct document *document,
                         struct as_target_state *state)
{
    const struct as_scaleup_state *scaleup = state->scaleup;
    state->id = document->id;
    state->stored_as = document->key ? document->key : document->id;
    state->uid = document->uid ? document->uid : "";
    if (scaleup && scaleup->is_open && !as_moment_is_set(scaleup->since))
        damage(reader, "since");
    if ((state->ordered || (scaleup && scaleup->is_open) ||
         (state->resize && (state->resize->is_open || state->resize->is_above))) &&
        !state->ref)
        damage(reader, "address");
    check_template(reader, state->template_);
    if (!*state->id)
        damage(reader, "id");
}

int as_state_decode_target(const char *json, size_t size, const struct as_state_clock *clock,
                           as_state_target_fn *use, void *context, struct as_error *error)
{
    struct document document = {.target = {.born = AS_MOMENT_NEVER,
                                           .contended = AS_MOMENT_NEVER,
                                           .locks.last_return = AS_MOMENT_NEVER,
                                           .locks.last_step_down = AS_MOMENT_NEVER}};
    struct state_reader reader;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    int status = reader_open(&reader, json, size, clock, target_rows, &document, error);
    if (status == 0) {
        document.target.ref = ref = make_ref(&reader, &document);
        check_target(&reader, &document, &document.target);
        status = reader_get_result(&reader, error);
    }
    if (status == 0)
        status = use(context, &document.target);
    reader_close(&reader);
    return status;
}

static void check_intent(struct state_reader *reader, const struct document *document,
                         struct as_intent_state *state)
{
    state->stored_as = document->key ? document->key : document->id;
    state->uid = document->uid ? document->uid : "";
    if (!state->ref)
        damage(reader, "address");
    if (!as_reason_find(document->outcome, &state->outcome))
        damage(reader, "outcome");
}

int as_state_decode_intent(const char *json, size_t size, const struct as_state_clock *clock,
                           as_state_intent_fn *use, void *context, struct as_error *error)
{
    struct document document = {.intent = {.ref = NULL}};
    struct state_reader reader;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    int status = reader_open(&reader, json, size, clock, intent_rows, &document, error);
    if (status == 0) {
        document.intent.ref = ref = make_ref(&reader, &document);
        check_intent(&reader, &document, &document.intent);
        status = reader_get_result(&reader, error);
    }
    if (status == 0)
        status = use(context, &document.intent);
    reader_close(&reader);
    return status;
}
