/*
 * State documents: the rows of each, and structs as JSON objects and back. A document of another
 * form is damage and is refused whole.
 */
#include <alertscaler/engine/state.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cluster/node_template.h>
#include <alertscaler/cluster/nodes_seen.h>
#include <alertscaler/decide/incident.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/model/labels.h>

/*
 * Structs as JSON objects and back: one row describes a member for both directions. Rows are sorted
 * by name, as the canonical form requires. For state documents (state.c).
 */

enum state_kind {
    STATE_TEXT,
    STATE_I32,
    STATE_U32,
    STATE_I64,
    STATE_BOOL,
    STATE_HEX,
    STATE_DIGEST,
    STATE_MOMENT, /* null: unset */
    STATE_LABELS,
    STATE_TEXTS,
    STATE_PAIRS, /* null: no list */
    STATE_LIST,
    STATE_OBJECT,
    STATE_WORD, /* of an enum, by its function */
};

struct state_pairs {
    const struct as_target_field *fields; /* NULL: no list */
    size_t count;
};

struct state_row {
    const char *name; /* NULL: the end */
    enum state_kind kind;
    bool is_optional;    /* omitted if NULL, unset, false or (I32) 0 */
    bool is_needed;      /* a moment that must not be null */
    size_t at, count_at; /* offsets in the struct; count_at of STATE_TEXTS and STATE_LIST */
    int64_t min, max;    /* of integers; I32 and U32 also have their type's limits */
    size_t size;         /* of an item or object; of a text: must be shorter, 0: any length */
    const struct state_row *rows;            /* of an item or object */
    const char *(*get_word)(unsigned value); /* of the values 0 to max */
};

#define STATE_TEXT_TYPE   const char *
#define STATE_I32_TYPE    int32_t
#define STATE_U32_TYPE    uint32_t
#define STATE_I64_TYPE    int64_t
#define STATE_BOOL_TYPE   bool
#define STATE_HEX_TYPE    uint64_t
#define STATE_DIGEST_TYPE struct as_digest
#define STATE_MOMENT_TYPE struct as_moment
#define STATE_LABELS_TYPE const struct as_labels *
#define STATE_TEXTS_TYPE  const char *const *
#define STATE_PAIRS_TYPE  struct state_pairs
#define STATE_WORD_TYPE   unsigned

/* The member's type must match the kind; then other members of the row. */
#define STATE_ROW(NAME, KIND, STRUCT, MEMBER)                                                      \
    .name = (NAME), .kind = STATE_##KIND,                                                          \
    .at = offsetof(struct STRUCT, MEMBER) +                                                        \
          0 * _Generic(((struct STRUCT *)0)->MEMBER, STATE_##KIND##_TYPE                           \
                       : sizeof(struct STRUCT))
#define STATE_ROW_OBJECT(NAME, KIND, STRUCT, MEMBER, ROWS)                                         \
    .name = (NAME), .kind = STATE_##KIND, .at = offsetof(struct STRUCT, MEMBER),                   \
    .size = sizeof(*((struct STRUCT *)0)->MEMBER), .rows = (ROWS)

static void state_rows_write(struct as_json_writer *json, const struct state_row *rows,
                             const void *from);

/* A document that is being read; the first problem is its damage. */
struct state_reader {
    const struct as_state_clock *clock;
    bool same_boot, damaged;
    struct tree tree;            /* of the document; its arena has the lists and objects too */
    struct as_labels *labels[2]; /* freed by the caller */
    size_t label_count;
    struct as_error *error;
};

/* Texts stay in the document. Optional absent members are left unchanged. */
static void state_rows_read(struct state_reader *reader, const struct state_row *rows,
                            const struct tree_value *object, void *to);

/*
 * Structs as JSON objects and back, by the rows.
 */

static const void *get_pointer(const void *at)
{
    const void *pointer;
    memcpy(&pointer, at, sizeof(pointer));
    return pointer;
}

static void write_digest(struct as_json_writer *json, const struct as_digest *digest)
{
    char text[AS_DIGEST_TEXT_SIZE];
    as_digest_print(digest, text);
    as_json_write_string(json, text);
}

static void write_moment(struct as_json_writer *json, const struct as_moment *moment)
{
    if (!as_moment_is_set(*moment)) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_array(json);
    as_json_write_i64(json, moment->mono.us);
    as_json_write_i64(json, moment->wall.us);
    as_json_end_array(json);
}

static void stored_write_labels(struct as_json_writer *json, const struct as_labels *labels)
{
    as_json_begin_object(json);
    for (uint32_t i = 0; labels && i < labels->count; i++)
        as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static void write_texts(struct as_json_writer *json, const char *const *texts, size_t count)
{
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_string(json, texts[i]);
    as_json_end_array(json);
}

static void write_pairs(struct as_json_writer *json, const struct state_pairs *pairs)
{
    if (!pairs->fields) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_array(json);
    for (size_t i = 0; i < pairs->count; i++)
        write_texts(json, (const char *[]){pairs->fields[i].key, pairs->fields[i].value}, 2);
    as_json_end_array(json);
}

static void stored_write_list(struct as_json_writer *json, const struct state_row *row,
                              const char *items, size_t count)
{
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++)
        state_rows_write(json, row->rows, items + i * row->size);
    as_json_end_array(json);
}

static void stored_write_value(struct as_json_writer *json, const struct state_row *row,
                               const void *at, const size_t *count)
{
    switch (row->kind) {
    case STATE_TEXT: as_json_write_string(json, get_pointer(at)); break;
    case STATE_I32: as_json_write_i64(json, *(const int32_t *)at); break;
    case STATE_U32: as_json_write_i64(json, *(const uint32_t *)at); break;
    case STATE_I64: as_json_write_i64(json, *(const int64_t *)at); break;
    case STATE_BOOL: as_json_write_bool(json, *(const bool *)at); break;
    case STATE_HEX: as_json_write_hex(json, *(const uint64_t *)at); break;
    case STATE_DIGEST: write_digest(json, at); break;
    case STATE_MOMENT: write_moment(json, at); break;
    case STATE_LABELS: stored_write_labels(json, get_pointer(at)); break;
    case STATE_TEXTS: write_texts(json, get_pointer(at), *count); break;
    case STATE_PAIRS: write_pairs(json, at); break;
    case STATE_LIST: stored_write_list(json, row, get_pointer(at), *count); break;
    case STATE_OBJECT: state_rows_write(json, row->rows, get_pointer(at)); break;
    case STATE_WORD: as_json_write_string(json, row->get_word(*(const unsigned *)at)); break;
    }
}

static bool stored_is_left_out(const struct state_row *row, const void *at)
{
    if (!row->is_optional || row->kind == STATE_DIGEST)
        return false;
    return row->kind == STATE_BOOL     ? !*(const bool *)at
           : row->kind == STATE_I32    ? *(const int32_t *)at == 0
           : row->kind == STATE_MOMENT ? !as_moment_is_set(*(const struct as_moment *)at)
                                       : !get_pointer(at);
}

static void state_rows_write(struct as_json_writer *json, const struct state_row *rows,
                             const void *from)
{
    as_json_begin_object(json);
    for (const struct state_row *row = rows; row->name; row++) {
        const void *at = (const char *)from + row->at;
        if (stored_is_left_out(row, at))
            continue;
        as_json_write_key(json, row->name);
        stored_write_value(json, row, at, (const void *)((const char *)from + row->count_at));
    }
    as_json_end_object(json);
}

static void state_reader_damage(struct state_reader *reader, const char *name)
{
    if (!reader->damaged)
        as_error_set(reader->error, "state document: \"%s\" is missing or of the wrong kind", name);
    reader->damaged = true;
}

static size_t count_items(const struct tree_value *list)
{
    return tree_is(list, TREE_ARRAY) ? list->size : 0;
}

/* Allocates items; the pointer at `pointer_at` is set to them. */
static void *add_items(struct state_reader *reader, void *pointer_at, size_t count, size_t size)
{
    void *items = as_arena_alloc(&reader->tree.arena, count, size);
    memcpy(pointer_at, &items, sizeof(items));
    return items;
}

static bool stored_read_text(const struct tree_value *value, size_t size, const char **text_out)
{
    const char *text = tree_get_text(value);
    if (!text || (size > 0 && strlen(text) >= size))
        return false;
    *text_out = text;
    return true;
}

static bool read_i32(const struct tree_value *value, int64_t min, int32_t *number_out)
{
    int64_t number = 0;
    const bool is_good = tree_get_i64(value, min, INT32_MAX, &number);
    *number_out = (int32_t)number;
    return is_good;
}

static bool read_u32(const struct tree_value *value, uint32_t *number_out)
{
    int64_t number = 0;
    const bool is_good = tree_get_i64(value, 0, UINT32_MAX, &number);
    *number_out = (uint32_t)number;
    return is_good;
}

static bool read_bool(const struct tree_value *value, bool *value_out)
{
    const bool is_good = tree_is(value, TREE_BOOLEAN);
    *value_out = is_good && value->boolean;
    return is_good;
}

/* Within these limits differences of times cannot overflow. */
static bool stored_read_time(const struct tree_value *value, int64_t *us_out)
{
    return tree_get_i64(value, INT64_MIN / 4 + 1, INT64_MAX / 4 - 1, us_out);
}

static bool read_moment(const struct state_reader *reader, const struct tree_value *value,
                        bool is_needed, struct as_moment *moment_out)
{
    const struct as_state_clock *clock = reader->clock;
    struct as_moment moment;
    if (tree_is(value, TREE_NULL)) {
        *moment_out = AS_MOMENT_NEVER;
        return !is_needed;
    }
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

static bool stored_read_labels(struct state_reader *reader, const struct tree_value *object,
                               const struct as_labels **labels_out)
{
    struct as_labels **labels = &reader->labels[reader->label_count];
    size_t count = 0;
    if (!tree_is(object, TREE_OBJECT))
        return false;
    struct as_label *pairs = as_arena_alloc(&reader->tree.arena, object->size, sizeof(*pairs));
    for (const struct tree_value *value = object->first; value; value = value->next) {
        pairs[count].name = value->name;
        if (!stored_read_text(value, 0, &pairs[count++].value))
            return false;
    }
    if (as_labels_new(pairs, count, labels) != 0)
        return false;
    reader->label_count++;
    *labels_out = *labels;
    return true;
}

static bool read_texts(struct state_reader *reader, const struct tree_value *list, void *at,
                       size_t *count_out)
{
    const struct tree_value *item = tree_get_first(list);
    *count_out = count_items(list);
    const char **texts = add_items(reader, at, *count_out, sizeof(*texts));
    for (size_t i = 0; item; i++, item = item->next) {
        if (!stored_read_text(item, 0, &texts[i]))
            return false;
    }
    return tree_is(list, TREE_ARRAY);
}

static bool read_pairs(struct state_reader *reader, const struct tree_value *list,
                       struct state_pairs *out)
{
    if (tree_is(list, TREE_NULL))
        return true;
    const struct tree_value *pair = tree_get_first(list);
    out->count = count_items(list);
    struct as_target_field *fields = add_items(reader, &out->fields, out->count, sizeof(*fields));
    for (size_t i = 0; i < out->count; i++, pair = pair->next) {
        const struct tree_value *key = tree_get_first(pair);
        if (!stored_read_text(key, 0, &fields[i].key) ||
            !stored_read_text(key->next, 0, &fields[i].value))
            return false;
    }
    return tree_is(list, TREE_ARRAY);
}

static bool stored_read_object(struct state_reader *reader, const struct state_row *row,
                               const struct tree_value *object, void *to)
{
    if (tree_is(object, TREE_OBJECT))
        state_rows_read(reader, row->rows, object, to);
    return tree_is(object, TREE_OBJECT);
}

static bool read_list(struct state_reader *reader, const struct state_row *row,
                      const struct tree_value *list, void *at, size_t *count_out)
{
    const struct tree_value *item = tree_get_first(list);
    *count_out = count_items(list);
    char *items = add_items(reader, at, *count_out, row->size);
    for (size_t i = 0; i < *count_out; i++, item = item->next) {
        if (!stored_read_object(reader, row, item, items + i * row->size))
            return false;
    }
    return tree_is(list, TREE_ARRAY);
}

static bool stored_read_word(const struct state_row *row, const char *text, unsigned *value_out)
{
    for (unsigned i = 0; text && i <= (unsigned)row->max; i++) {
        if (strcmp(row->get_word(i), text) == 0) {
            *value_out = i;
            return true;
        }
    }
    return false;
}

static bool stored_read_value(struct state_reader *reader, const struct state_row *row,
                              const struct tree_value *value, void *at, size_t *count)
{
    const char *text = tree_get_text(value);
    switch (row->kind) {
    case STATE_TEXT: return stored_read_text(value, row->size, at);
    case STATE_I32: return read_i32(value, row->min, at);
    case STATE_U32: return read_u32(value, at);
    case STATE_I64: return tree_get_i64(value, row->min, row->max, at);
    case STATE_BOOL: return read_bool(value, at);
    case STATE_HEX: return text && as_number_parse_u64_hex(text, strlen(text), at) == 0;
    case STATE_DIGEST: return text && as_digest_parse(text, strlen(text), at);
    case STATE_MOMENT: return read_moment(reader, value, row->is_needed, at);
    case STATE_LABELS: return stored_read_labels(reader, value, at);
    case STATE_TEXTS: return read_texts(reader, value, at, count);
    case STATE_PAIRS: return read_pairs(reader, value, at);
    case STATE_LIST: return read_list(reader, row, value, at, count);
    case STATE_OBJECT:
        return stored_read_object(reader, row, value, add_items(reader, at, 1, row->size));
    case STATE_WORD: return stored_read_word(row, text, at);
    }
    return false;
}

/* Texts stay in the document. Optional absent members are left unchanged. */
static void state_rows_read(struct state_reader *reader, const struct state_row *rows,
                            const struct tree_value *object, void *to)
{
    for (const struct state_row *row = rows; row->name; row++) {
        const struct tree_value *value = tree_find(object, row->name);
        if ((value || !row->is_optional) &&
            !stored_read_value(reader, row, value, (char *)to + row->at,
                               (void *)((char *)to + row->count_at)))
            state_reader_damage(reader, row->name);
    }
}

/* A whole document; some members differ from the struct's. */
struct document {
    const char *boot, *id, *key, *kind, *outcome, *uid, *version;
    struct state_pairs address;
    union {
        struct as_incident_state incident;
        struct as_target_state target;
        struct as_intent_state intent;
        const struct as_pause_state *pause;
    };
};

static const struct state_row progress_rows[] = {
    {STATE_ROW("applied", MOMENT, as_progress, applied)},
    {STATE_ROW("origin", I32, as_progress, origin), .min = -1},
    {STATE_ROW("rule", TEXT, as_progress, rule)},
    {STATE_ROW("steps", U32, as_progress, steps)},
    {STATE_ROW("target", TEXT, as_progress, target)},
    {.name = NULL},
};

static const struct state_row incident_rows[] = {
    {STATE_ROW("annotations", LABELS, document, incident.annotations)},
    {STATE_ROW("boot", TEXT, document, boot)},
    {STATE_ROW("credentials", TEXTS, document, incident.credentials),
     .count_at = offsetof(struct document, incident.credential_count)},
    {STATE_ROW("digest", DIGEST, document, incident.key.digest)},
    {STATE_ROW("fingerprint", HEX, document, incident.fingerprint)},
    {STATE_ROW("labels", LABELS, document, incident.labels)},
    {STATE_ROW("open", BOOL, document, incident.is_open)},
    {STATE_ROW("opened", MOMENT, document, incident.opened)},
    {STATE_ROW("owner", TEXT, document, incident.key.owner)},
    {STATE_ROW_OBJECT("progress", LIST, document, incident.progress, progress_rows),
     .count_at = offsetof(struct document, incident.progress_count)},
    {STATE_ROW("receivers", TEXTS, document, incident.receivers),
     .count_at = offsetof(struct document, incident.receiver_count)},
    {STATE_ROW("resolved", MOMENT, document, incident.resolved)},
    {STATE_ROW("seen", MOMENT, document, incident.seen)},
    {STATE_ROW("silenced", MOMENT, document, incident.silenced)},
    {STATE_ROW("starts_at", I64, document, incident.starts_at.us), .min = INT64_MIN,
     .max = INT64_MAX},
    {STATE_ROW("undated", BOOL, document, incident.is_undated), .is_optional = true},
    {.name = NULL},
};

static const struct state_row asked_rows[] = {
    {STATE_ROW("at", I64, as_asked, at.us), .min = INT64_MIN, .max = INT64_MAX},
    {STATE_ROW("group", TEXT, as_asked, group)},
    {STATE_ROW("in_vain", BOOL, as_asked, is_in_vain)},
    {STATE_ROW("shape", HEX, as_asked, pod_class)},
    {STATE_ROW("template", HEX, as_asked, template_)},
    {.name = NULL},
};

static const char *get_answer_word(unsigned answer)
{
    return as_approval_answer_get_word((enum as_approval_answer)answer);
}

static const struct state_row approval_rows[] = {
    {STATE_ROW("answer", WORD, as_approval_state, answer), .max = AS_APPROVAL_ANSWER_COUNT - 1,
     .get_word = get_answer_word},
    {STATE_ROW("answered", MOMENT, as_approval_state, answered)},
    {STATE_ROW("asked", MOMENT, as_approval_state, asked), .is_needed = true},
    {STATE_ROW("decision", TEXT, as_approval_state, decision), .size = AS_ULID_SIZE},
    {STATE_ROW("digest", DIGEST, as_approval_state, digest)},
    {STATE_ROW("for_us", I64, as_approval_state, for_us), .max = AS_APPROVAL_FOR_MAX_US},
    {STATE_ROW("from", I32, as_approval_state, from)},
    {STATE_ROW("id", TEXT, as_approval_state, id), .size = AS_ULID_SIZE},
    {STATE_ROW("incident", TEXT, as_approval_state, incident), .size = AS_DIGEST_TEXT_SIZE},
    {STATE_ROW("rule", TEXT, as_approval_state, rule)},
    {STATE_ROW("to", I32, as_approval_state, to)},
    {STATE_ROW("uid", TEXT, as_approval_state, uid), .size = AS_UID_SIZE},
    {STATE_ROW("up", BOOL, as_approval_state, is_up)},
    {STATE_ROW("who", TEXT, as_approval_state, who)},
    {.name = NULL},
};

static const struct state_row free_step_rows[] = {
    {STATE_ROW("at", MOMENT, as_free_step, at), .is_needed = true},
    {STATE_ROW("change", I32, as_free_step, change), .min = -INT32_MAX},
    {STATE_ROW("rule", TEXT, as_free_step, rule)},
    {.name = NULL},
};

static const struct state_row ending_rows[] = {
    {STATE_ROW("applied", MOMENT, as_ending_state, applied)},
    {STATE_ROW("ended", MOMENT, as_ending_state, ended)},
    {STATE_ROW("guard", TEXT, as_ending_state, guard)},
    {STATE_ROW("incident", TEXT, as_ending_state, incident)},
    {STATE_ROW("last", I32, as_ending_state, last), .min = -1},
    {STATE_ROW("origin", I32, as_ending_state, origin)},
    {STATE_ROW("peak", I32, as_ending_state, peak), .min = -1},
    {STATE_ROW("rule", TEXT, as_ending_state, rule)},
    {.name = NULL},
};

static const struct state_row event_rows[] = {
    {STATE_ROW("at", MOMENT, as_past_event, at)},
    {STATE_ROW("change", I32, as_past_event, change), .min = -INT32_MAX},
    {.name = NULL},
};

static const struct state_row evaluation_rows[] = {
    {STATE_ROW("action", TEXT, as_evaluation_state, action_id)},
    {STATE_ROW("applied", MOMENT, as_evaluation_state, applied), .is_needed = true},
    {STATE_ROW("at", MOMENT, as_evaluation_state, at), .is_needed = true},
    {STATE_ROW("awaits_ready", BOOL, as_evaluation_state, awaits_ready)},
    {STATE_ROW("decision", TEXT, as_evaluation_state, decision_id)},
    {STATE_ROW("from", I32, as_evaluation_state, from)},
    {STATE_ROW("missing", I32, as_evaluation_state, missing)},
    {STATE_ROW("ready_us", I64, as_evaluation_state, ready_us), .min = -1, .max = INT64_MAX / 4},
    {STATE_ROW("resolved_us", I64, as_evaluation_state, resolved_us), .min = -1,
     .max = INT64_MAX / 4},
    {STATE_ROW("rule", TEXT, as_evaluation_state, rule)},
    {STATE_ROW("to", I32, as_evaluation_state, to)},
    {.name = NULL},
};

static const struct state_row rule_effect_rows[] = {
    {STATE_ROW("held", MOMENT, as_rule_effect_state, held)},
    {STATE_ROW("in_vain", U32, as_rule_effect_state, in_vain)},
    {STATE_ROW("rule", TEXT, as_rule_effect_state, rule)},
    {.name = NULL},
};

static const struct state_row floor_rows[] = {
    {STATE_ROW("for_us", I64, as_floor_state, for_us), .max = INT64_MAX / 4},
    {STATE_ROW("reason", TEXT, as_floor_state, reason)},
    {STATE_ROW("since", MOMENT, as_floor_state, since), .is_needed = true},
    {STATE_ROW("size", I32, as_floor_state, size), .min = 1},
    {STATE_ROW("who", TEXT, as_floor_state, who)},
    {.name = NULL},
};

static const struct state_row scaleup_rows[] = {
    {STATE_ROW("back_off_us", I64, as_scaleup_state, back_off_us), .max = INT64_MAX / 4},
    {STATE_ROW("did_not_come", BOOL, as_scaleup_state, did_not_come), .is_optional = true},
    {STATE_ROW("failed", MOMENT, as_scaleup_state, failed)},
    {STATE_ROW("from", I32, as_scaleup_state, from)},
    {STATE_ROW("id", TEXT, as_scaleup_state, id)},
    {STATE_ROW("missing", I32, as_scaleup_state, missing)},
    {STATE_ROW("open", BOOL, as_scaleup_state, is_open)},
    {STATE_ROW("ordered", BOOL, as_scaleup_state, is_ordered)},
    {STATE_ROW("ready", I32, as_scaleup_state, ready), .is_optional = true},
    {STATE_ROW("refused", BOOL, as_scaleup_state, is_refused)},
    {STATE_ROW("since", MOMENT, as_scaleup_state, since)},
    {STATE_ROW("surplus", I32, as_scaleup_state, surplus), .is_optional = true},
    {STATE_ROW("surplus_from", I32, as_scaleup_state, surplus_from), .is_optional = true},
    {STATE_ROW("surplus_since", MOMENT, as_scaleup_state, surplus_since), .is_optional = true},
    {STATE_ROW("to", I32, as_scaleup_state, to)},
    {.name = NULL},
};

static const struct state_row metric_gap_rows[] = {
    {STATE_ROW("rule", TEXT, as_metric_gap_state, rule)},
    {STATE_ROW("since", MOMENT, as_metric_gap_state, since), .is_needed = true},
    {.name = NULL},
};

static const struct state_row ordered_rows[] = {
    {STATE_ROW("at", MOMENT, as_ordered_state, at), .is_needed = true},
    {STATE_ROW("force", BOOL, as_ordered_state, force)},
    {STATE_ROW("id", TEXT, as_ordered_state, id)},
    {STATE_ROW("replicas", I32, as_ordered_state, replicas)},
    {.name = NULL},
};

static const struct state_row own_size_rows[] = {
    {STATE_ROW("at", MOMENT, as_own_size, at), .is_needed = true},
    {STATE_ROW("from", I32, as_own_size, from)},
    {STATE_ROW("to", I32, as_own_size, to)},
    {STATE_ROW("version", TEXT, as_own_size, version), .size = AS_VERSION_SIZE},
    {.name = NULL},
};

static const struct state_row reverted_change_rows[] = {
    {STATE_ROW("at", MOMENT, as_reverted_change, at), .is_needed = true},
    {STATE_ROW("by", TEXT, as_reverted_change, by), .size = AS_MANAGER_SIZE},
    {STATE_ROW("found", I32, as_reverted_change, found)},
    {STATE_ROW("from", I32, as_reverted_change, from)},
    {STATE_ROW("to", I32, as_reverted_change, to)},
    {.name = NULL},
};

static const struct state_row pause_rows[] = {
    {STATE_ROW("for_us", I64, as_pause_state, for_us), .max = INT64_MAX / 4},
    {STATE_ROW("reason", TEXT, as_pause_state, reason)},
    {STATE_ROW("since", MOMENT, as_pause_state, since), .is_needed = true},
    {STATE_ROW("ways", I32, as_pause_state, ways), .is_optional = true, .max = AS_WAYS_BOTH},
    {STATE_ROW("who", TEXT, as_pause_state, who)},
    {.name = NULL},
};

static const struct state_row recommendation_rows[] = {
    {STATE_ROW("at", MOMENT, as_past_recommendation, at)},
    {STATE_ROW("replicas", I32, as_past_recommendation, replicas)},
    {.name = NULL},
};

static const struct state_row resize_rows[] = {
    {STATE_ROW("above", BOOL, as_resize_state, is_above), .is_optional = true},
    {STATE_ROW("from", I32, as_resize_state, from)},
    {STATE_ROW("id", TEXT, as_resize_state, id)},
    {STATE_ROW("late", BOOL, as_resize_state, is_late)},
    {STATE_ROW("open", BOOL, as_resize_state, is_open)},
    {STATE_ROW("ordered", BOOL, as_resize_state, is_ordered)},
    {STATE_ROW("to", I32, as_resize_state, to)},
    {.name = NULL},
};

static const struct state_row pause_document_rows[] = {
    {STATE_ROW("boot", TEXT, document, boot)},
    {STATE_ROW_OBJECT("pause", OBJECT, document, pause, pause_rows)},
    {.name = NULL},
};

/* The key: omitted if equal to the id. */
static const struct state_row target_rows[] = {
    {STATE_ROW("address", PAIRS, document, address)},
    {STATE_ROW_OBJECT("approvals", LIST, document, target.approvals, approval_rows),
     .is_optional = true, .count_at = offsetof(struct document, target.approval_count)},
    {STATE_ROW_OBJECT("asked", LIST, document, target.asked, asked_rows), .is_optional = true,
     .count_at = offsetof(struct document, target.asked_count)},
    {STATE_ROW("boot", TEXT, document, boot)},
    {STATE_ROW("born", MOMENT, document, target.born), .is_optional = true},
    {STATE_ROW("contended", MOMENT, document, target.contended), .is_optional = true},
    {STATE_ROW("dry_last_down", MOMENT, document, target.dry_last_down)},
    {STATE_ROW("dry_last_up", MOMENT, document, target.dry_last_up)},
    {STATE_ROW_OBJECT("endings", LIST, document, target.endings, ending_rows),
     .count_at = offsetof(struct document, target.ending_count)},
    {STATE_ROW("entry", TEXT, document, target.entry)},
    {STATE_ROW_OBJECT("events", LIST, document, target.events, event_rows),
     .count_at = offsetof(struct document, target.event_count)},
    {STATE_ROW_OBJECT("floor", OBJECT, document, target.floor, floor_rows), .is_optional = true},
    {STATE_ROW_OBJECT("follows", LIST, document, target.evaluations, evaluation_rows),
     .is_optional = true, .count_at = offsetof(struct document, target.evaluation_count)},
    {STATE_ROW_OBJECT("free_steps", LIST, document, target.free_steps, free_step_rows),
     .is_optional = true, .count_at = offsetof(struct document, target.free_step_count)},
    {STATE_ROW_OBJECT("growth", OBJECT, document, target.scaleup, scaleup_rows),
     .is_optional = true},
    {STATE_ROW("id", TEXT, document, id)},
    {STATE_ROW("keep_us", I64, document, target.keep_us), .max = INT64_MAX},
    {STATE_ROW("key", TEXT, document, key), .is_optional = true},
    {STATE_ROW("kind", TEXT, document, kind), .is_optional = true},
    {STATE_ROW_OBJECT("lacks", LIST, document, target.metric_gaps, metric_gap_rows),
     .is_optional = true, .count_at = offsetof(struct document, target.metric_gap_count)},
    {STATE_ROW("last_down", MOMENT, document, target.last_down)},
    {STATE_ROW("last_return", MOMENT, document, target.last_return), .is_optional = true},
    {STATE_ROW("last_step_down", MOMENT, document, target.last_step_down), .is_optional = true},
    {STATE_ROW("last_up", MOMENT, document, target.last_up)},
    {STATE_ROW_OBJECT("ordered", OBJECT, document, target.ordered, ordered_rows),
     .is_optional = true},
    {STATE_ROW_OBJECT("own_size", OBJECT, document, target.own_size, own_size_rows),
     .is_optional = true},
    {STATE_ROW_OBJECT("pause", OBJECT, document, target.pause, pause_rows), .is_optional = true},
    {STATE_ROW_OBJECT("recommendations", LIST, document, target.recommendations,
                      recommendation_rows),
     .count_at = offsetof(struct document, target.recommendation_count)},
    {STATE_ROW_OBJECT("resize", OBJECT, document, target.resize, resize_rows), .is_optional = true},
    {STATE_ROW_OBJECT("set_backs", LIST, document, target.reverted_changes, reverted_change_rows),
     .is_optional = true, .count_at = offsetof(struct document, target.reverted_change_count)},
    {STATE_ROW("template", TEXT, document, target.template_), .size = AS_NODE_TEMPLATE_TEXT_MAX + 1,
     .is_optional = true},
    {STATE_ROW_OBJECT("trials", LIST, document, target.rule_effects, rule_effect_rows),
     .is_optional = true, .count_at = offsetof(struct document, target.rule_effect_count)},
    {STATE_ROW("uid", TEXT, document, uid), .size = AS_UID_SIZE, .is_optional = true},
    {.name = NULL},
};

static const struct state_row intent_rows[] = {
    {STATE_ROW("action", TEXT, document, intent.action_id)},
    {STATE_ROW("address", PAIRS, document, address)},
    {STATE_ROW("alert", BOOL, document, intent.is_of_alert), .is_optional = true},
    {STATE_ROW("approval", TEXT, document, intent.approval), .size = AS_ULID_SIZE,
     .is_optional = true},
    {STATE_ROW("at", MOMENT, document, intent.at)},
    {STATE_ROW("boot", TEXT, document, boot)},
    {STATE_ROW("decision", TEXT, document, intent.decision_id)},
    {STATE_ROW("from", I32, document, intent.from)},
    {STATE_ROW("id", TEXT, document, id)},
    {STATE_ROW("key", TEXT, document, key), .is_optional = true},
    {STATE_ROW("kind", TEXT, document, kind)},
    {STATE_ROW("maybe", BOOL, document, intent.in_doubt)},
    {STATE_ROW("ordered", BOOL, document, intent.is_ordered), .is_optional = true},
    {STATE_ROW("outcome", TEXT, document, outcome)},
    {STATE_ROW("rule", TEXT, document, intent.rule)},
    {STATE_ROW("to", I32, document, intent.to)},
    {STATE_ROW("uid", TEXT, document, uid), .size = AS_UID_SIZE, .is_optional = true},
    {STATE_ROW("version", TEXT, document, version), .size = AS_VERSION_SIZE},
    {.name = NULL},
};

static void stored_write_document(const struct document *document, const struct state_row *rows,
                                  struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    state_rows_write(&json, rows, document);
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
    struct document document = {.boot = boot,
                                .outcome = as_reason_get_word(state->outcome),
                                .version = state->version,
                                .intent = *state};
    set_identity(&document, state->ref->id, state->stored_as, state->uid, state->ref);
    stored_write_document(&document, intent_rows, out);
}

void as_state_encode_pause(const struct as_pause_state *state, const char *boot, struct as_buf *out)
{
    stored_write_document(&(struct document){.boot = boot, .pause = state}, pause_document_rows,
                          out);
}

struct reader {
    struct state_reader rows;
};

static void damage(struct reader *reader, const char *name)
{
    state_reader_damage(&reader->rows, name);
}

/* The reader must be closed even after a failure. */
static int reader_open(struct reader *reader, const char *json, size_t size,
                       const struct as_state_clock *clock, const struct state_row *rows,
                       struct document *document, struct as_error *error)
{
    *reader =
        (struct reader){.rows = {.clock = clock, .error = error, .tree = TREE_INIT(TREE_NO_LIMIT)}};
    struct tree *tree = &reader->rows.tree;
    if (tree_load_object(tree, json, size, NULL) < 0) {
        as_error_set(error, "state document: not a JSON object");
        return -EBADMSG;
    }
    reader->rows.same_boot = as_str_equal(tree_find_text(tree->root, "boot"), clock->boot);
    state_rows_read(&reader->rows, rows, tree->root, document);
    return reader->rows.damaged ? -EBADMSG : 0;
}

static void reader_close(struct reader *reader)
{
    for (size_t i = 0; i < reader->rows.label_count; i++)
        as_labels_free(reader->rows.labels[i]);
    tree_deinit(&reader->rows.tree);
}

static void check_incident(struct reader *reader, const struct as_incident_state *state)
{
    if (as_moment_is_set(state->resolved) == state->is_open)
        damage(reader, "resolved");
}

int as_state_decode_incident(const char *json, size_t size, const struct as_state_clock *clock,
                             as_state_incident_fn *use, void *context, struct as_error *error)
{
    struct document document = {.incident = {.is_open = false}};
    struct reader reader;
    int status = reader_open(&reader, json, size, clock, incident_rows, &document, error);
    if (status == 0)
        check_incident(&reader, &document.incident);
    if (status == 0)
        status = reader.rows.damaged ? -EBADMSG : use(context, &document.incident);
    reader_close(&reader);
    return status;
}

int as_state_decode_pause(const char *json, size_t size, const struct as_state_clock *clock,
                          as_state_pause_fn *use, void *context, struct as_error *error)
{
    struct document document = {.pause = NULL};
    struct reader reader;
    int status = reader_open(&reader, json, size, clock, pause_document_rows, &document, error);
    if (status == 0)
        status = use(context, document.pause);
    reader_close(&reader);
    return status;
}

/* The document's target reference; NULL if it is absent or invalid. */
static struct as_target_ref *make_ref(struct reader *reader, const struct document *document)
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

static void check_template(struct reader *reader, const char *text)
{
    static const struct as_res_names names = {.count = AS_RES_NAMED};
    struct as_node_template template_;
    if (text &&
        as_node_template_decode(text, &names, &reader->rows.tree.arena, &template_, NULL) != 0)
        damage(reader, "template");
}

static void check_target(struct reader *reader, const struct document *document,
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
                                           .last_return = AS_MOMENT_NEVER,
                                           .last_step_down = AS_MOMENT_NEVER}};
    struct reader reader;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    int status = reader_open(&reader, json, size, clock, target_rows, &document, error);
    if (status == 0) {
        document.target.ref = ref = make_ref(&reader, &document);
        check_target(&reader, &document, &document.target);
        status = reader.rows.damaged ? -EBADMSG : use(context, &document.target);
    }
    reader_close(&reader);
    return status;
}

static void check_intent(struct reader *reader, const struct document *document,
                         struct as_intent_state *state)
{
    state->stored_as = document->key ? document->key : document->id;
    state->uid = document->uid ? document->uid : "";
    memcpy(state->version, document->version, strlen(document->version) + 1);
    if (!state->ref)
        damage(reader, "address");
    if (!as_reason_find(document->outcome, &state->outcome))
        damage(reader, "outcome");
}

int as_state_decode_intent(const char *json, size_t size, const struct as_state_clock *clock,
                           as_state_intent_fn *use, void *context, struct as_error *error)
{
    struct document document = {.intent = {.ref = NULL}};
    struct reader reader;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    int status = reader_open(&reader, json, size, clock, intent_rows, &document, error);
    if (status == 0) {
        document.intent.ref = ref = make_ref(&reader, &document);
        check_intent(&reader, &document, &document.intent);
        status = reader.rows.damaged ? -EBADMSG : use(context, &document.intent);
    }
    reader_close(&reader);
    return status;
}
