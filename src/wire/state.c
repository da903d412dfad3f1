/*
 * State documents: written by the JSON writer, read by jansson. A document of another shape is
 * damage and is refused whole.
 *
 * Long because each kind of document is read and written beside the other direction.
 */
#include <alertscaler/wire/state.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/number.h>
#include <alertscaler/core/target.h>
#include <alertscaler/wire/json_writer.h>
#include <alertscaler/wire/labels_digest.h>

static void write_moment(struct as_json_writer *json, const char *key, struct as_moment moment)
{
    as_json_write_key(json, key);
    if (!as_moment_is_set(moment)) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_array(json);
    as_json_write_i64(json, moment.mono.us);
    as_json_write_i64(json, moment.wall.us);
    as_json_end_array(json);
}

static void write_labels(struct as_json_writer *json, const char *key,
                         const struct as_labels *labels)
{
    as_json_write_key(json, key);
    as_json_begin_object(json);
    for (uint32_t i = 0; labels && i < labels->count; i++)
        as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static void write_progress(struct as_json_writer *json, const struct as_incident_state *state)
{
    as_json_write_key(json, "progress");
    as_json_begin_array(json);
    for (size_t i = 0; i < state->progress_count; i++) {
        const struct as_progress *progress = &state->progress[i];
        as_json_begin_object(json);
        write_moment(json, "applied", progress->applied);
        as_json_write_member_i64(json, "origin", progress->origin);
        as_json_write_member(json, "rule", progress->rule);
        as_json_write_member_i64(json, "steps", progress->steps);
        as_json_write_member(json, "target", progress->target);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_texts(struct as_json_writer *json, const char *key, const char *const *texts,
                        size_t count)
{
    as_json_write_key(json, key);
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_string(json, texts[i]);
    as_json_end_array(json);
}

void as_state_encode_incident(const struct as_incident_state *state, const char *boot,
                              struct as_buf *out)
{
    char digest[AS_DIGEST_TEXT_SIZE];
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    write_labels(&json, "annotations", state->annotations);
    as_json_write_member(&json, "boot", boot);
    write_texts(&json, "credentials", state->credentials, state->credential_count);
    as_digest_print(&state->key.digest, digest);
    as_json_write_member(&json, "digest", digest);
    as_json_write_key(&json, "fingerprint");
    as_json_write_hex(&json, state->fingerprint);
    write_labels(&json, "labels", state->labels);
    as_json_write_member_bool(&json, "open", state->is_open);
    write_moment(&json, "opened", state->opened);
    as_json_write_member(&json, "owner", state->key.owner);
    write_progress(&json, state);
    write_texts(&json, "receivers", state->receivers, state->receiver_count);
    write_moment(&json, "resolved", state->resolved);
    write_moment(&json, "seen", state->seen);
    write_moment(&json, "silenced", state->silenced);
    as_json_write_member_i64(&json, "starts_at", state->starts_at.us);
    if (state->is_undated)
        as_json_write_member_bool(&json, "undated", true);
    as_json_end_object(&json);
}

static void write_address(struct as_json_writer *json, const struct as_target_ref *ref)
{
    as_json_write_key(json, "address");
    if (!ref) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_array(json);
    for (size_t i = 0; i < ref->field_count; i++) {
        as_json_begin_array(json);
        as_json_write_string(json, ref->fields[i].key);
        as_json_write_string(json, ref->fields[i].value);
        as_json_end_array(json);
    }
    as_json_end_array(json);
}

static void write_history(struct as_json_writer *json, const struct as_target_state *state)
{
    as_json_write_key(json, "events");
    as_json_begin_array(json);
    for (size_t i = 0; i < state->event_count; i++) {
        as_json_begin_object(json);
        write_moment(json, "at", state->events[i].at);
        as_json_write_member_i64(json, "change", state->events[i].change);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_recommendations(struct as_json_writer *json, const struct as_target_state *state)
{
    as_json_write_key(json, "recommendations");
    as_json_begin_array(json);
    for (size_t i = 0; i < state->recommendation_count; i++) {
        as_json_begin_object(json);
        write_moment(json, "at", state->recommendations[i].at);
        as_json_write_member_i64(json, "replicas", state->recommendations[i].replicas);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_endings(struct as_json_writer *json, const struct as_target_state *state)
{
    as_json_write_key(json, "endings");
    as_json_begin_array(json);
    for (size_t i = 0; i < state->ending_count; i++) {
        const struct as_ending_state *ending = &state->endings[i];
        as_json_begin_object(json);
        write_moment(json, "applied", ending->applied);
        write_moment(json, "ended", ending->ended);
        as_json_write_member(json, "guard", ending->guard);
        as_json_write_member(json, "incident", ending->incident);
        as_json_write_member_i64(json, "last", ending->last);
        as_json_write_member_i64(json, "origin", ending->origin);
        as_json_write_member_i64(json, "peak", ending->peak);
        as_json_write_member(json, "rule", ending->rule);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_pause(struct as_json_writer *json, const struct as_pause_state *pause)
{
    as_json_begin_object(json);
    as_json_write_member_i64(json, "for_us", pause->for_us);
    as_json_write_member(json, "reason", pause->reason);
    write_moment(json, "since", pause->since);
    as_json_write_member(json, "who", pause->who);
    as_json_end_object(json);
}

static void write_ordered(struct as_json_writer *json, const struct as_ordered_state *ordered)
{
    as_json_begin_object(json);
    write_moment(json, "at", ordered->at);
    as_json_write_member_bool(json, "force", ordered->force);
    as_json_write_member(json, "id", ordered->id);
    as_json_write_member_i64(json, "replicas", ordered->replicas);
    as_json_end_object(json);
}

static void write_growth(struct as_json_writer *json, const struct as_growth_state *growth)
{
    as_json_begin_object(json);
    as_json_write_member_i64(json, "back_off_us", growth->back_off_us);
    write_moment(json, "failed", growth->failed);
    as_json_write_member_i64(json, "from", growth->from);
    as_json_write_member(json, "id", growth->id);
    as_json_write_member_i64(json, "missing", growth->missing);
    as_json_write_member_bool(json, "open", growth->is_open);
    as_json_write_member_bool(json, "ordered", growth->is_ordered);
    as_json_write_member_bool(json, "refused", growth->is_refused);
    write_moment(json, "since", growth->since);
    as_json_write_member_i64(json, "to", growth->to);
    as_json_end_object(json);
}

void as_state_encode_pause(const struct as_pause_state *state, const char *boot, struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    as_json_write_member(&json, "boot", boot);
    as_json_write_key(&json, "pause");
    write_pause(&json, state);
    as_json_end_object(&json);
}

/* Left out where it is the id, which it was in earlier versions. */
static void write_key(struct as_json_writer *json, const char *key, const char *id)
{
    if (key && strcmp(key, id) != 0)
        as_json_write_member(json, "key", key);
}

static void write_uid(struct as_json_writer *json, const char *uid)
{
    if (uid && *uid)
        as_json_write_member(json, "uid", uid);
}

void as_state_encode_target(const struct as_target_state *state, const char *boot,
                            struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    write_address(&json, state->ref);
    as_json_write_member(&json, "boot", boot);
    if (as_moment_is_set(state->born))
        write_moment(&json, "born", state->born);
    write_moment(&json, "dry_last_down", state->dry_last_down);
    write_moment(&json, "dry_last_up", state->dry_last_up);
    write_endings(&json, state);
    as_json_write_member(&json, "entry", state->entry);
    write_history(&json, state);
    if (state->growth) {
        as_json_write_key(&json, "growth");
        write_growth(&json, state->growth);
    }
    as_json_write_member(&json, "id", state->id);
    as_json_write_member_i64(&json, "keep_us", state->keep_us);
    write_key(&json, state->stored_as, state->id);
    if (state->ref)
        as_json_write_member(&json, "kind", state->ref->kind->word);
    write_moment(&json, "last_down", state->last_down);
    if (as_moment_is_set(state->last_step_down))
        write_moment(&json, "last_step_down", state->last_step_down);
    write_moment(&json, "last_up", state->last_up);
    if (state->ordered) {
        as_json_write_key(&json, "ordered");
        write_ordered(&json, state->ordered);
    }
    if (state->pause) {
        as_json_write_key(&json, "pause");
        write_pause(&json, state->pause);
    }
    write_recommendations(&json, state);
    write_uid(&json, state->uid);
    as_json_end_object(&json);
}

void as_state_encode_intent(const struct as_intent_state *state, const char *boot,
                            struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    as_json_write_member(&json, "action", state->action_id);
    write_address(&json, state->ref);
    write_moment(&json, "at", state->at);
    as_json_write_member(&json, "boot", boot);
    as_json_write_member(&json, "decision", state->decision_id);
    as_json_write_member_i64(&json, "from", state->from);
    as_json_write_member(&json, "id", state->ref->id);
    write_key(&json, state->stored_as, state->ref->id);
    as_json_write_member(&json, "kind", state->ref->kind->word);
    as_json_write_member_bool(&json, "maybe", state->maybe);
    if (state->is_ordered)
        as_json_write_member_bool(&json, "ordered", true);
    as_json_write_member(&json, "outcome", as_reason_get_word(state->outcome));
    as_json_write_member(&json, "rule", state->rule);
    as_json_write_member_i64(&json, "to", state->to);
    write_uid(&json, state->uid);
    as_json_write_member(&json, "version", state->version);
    as_json_end_object(&json);
}

/* A document being read: the first thing that is not as expected is its damage. */
struct reader {
    json_t *root;
    const struct as_state_clock *clock;
    bool same_boot;
    struct as_arena arena;
    struct as_error *error;
    bool damaged;
};

static void damage(struct reader *reader, const char *key)
{
    if (!reader->damaged)
        as_error_set(reader->error, "state document: \"%s\" is missing or of the wrong kind", key);
    reader->damaged = true;
}

static const char *read_text(struct reader *reader, json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text)
        damage(reader, key);
    return text ? text : "";
}

static const char *read_optional(struct reader *reader, const char *key, const char *otherwise)
{
    return json_object_get(reader->root, key) ? read_text(reader, reader->root, key) : otherwise;
}

static const char *read_uid(struct reader *reader)
{
    const char *uid = read_optional(reader, "uid", "");
    if (strlen(uid) >= AS_UID_SIZE)
        damage(reader, "uid");
    return uid;
}

static int64_t read_i64(struct reader *reader, json_t *object, const char *key, int64_t min,
                        int64_t max)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max) {
        damage(reader, key);
        return min;
    }
    return json_integer_value(value);
}

static bool read_bool_of(struct reader *reader, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value))
        damage(reader, key);
    return json_is_true(value);
}

static bool read_bool(struct reader *reader, const char *key)
{
    return read_bool_of(reader, reader->root, key);
}

/* Differences of times within this cannot overflow. */
static bool is_time(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) > INT64_MIN / 4 &&
           json_integer_value(value) < INT64_MAX / 4;
}

static struct as_moment read_moment(struct reader *reader, json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_null(value))
        return AS_MOMENT_NEVER;
    if (!json_is_array(value) || json_array_size(value) != 2 ||
        !is_time(json_array_get(value, 0)) || !is_time(json_array_get(value, 1))) {
        damage(reader, key);
        return AS_MOMENT_NEVER;
    }
    struct as_moment moment = {.mono = {json_integer_value(json_array_get(value, 0))},
                               .wall = {json_integer_value(json_array_get(value, 1))}};
    const struct as_state_clock *clock = reader->clock;
    if (!reader->same_boot) {
        const int64_t age = clock->wall.us - moment.wall.us;
        moment.mono.us = clock->mono.us - (age > 0 ? age : 0);
    }
    if (moment.mono.us > clock->mono.us)
        moment.mono = clock->mono;
    return moment;
}

static struct as_labels *read_labels(struct reader *reader, const char *key)
{
    json_t *object = json_object_get(reader->root, key);
    const size_t count = json_object_size(object);
    struct as_label *pairs = as_arena_alloc(&reader->arena, count, sizeof(*pairs));
    const char *name;
    json_t *value;
    size_t i = 0;
    if (!json_is_object(object))
        damage(reader, key);
    json_object_foreach(object, name, value)
    {
        if (!json_is_string(value))
            damage(reader, key);
        pairs[i++] = (struct as_label){name, json_is_string(value) ? json_string_value(value) : ""};
    }
    struct as_labels *labels = NULL;
    if (as_labels_new(pairs, count, &labels) != 0)
        damage(reader, key);
    return labels;
}

static int reader_open(struct reader *reader, const char *json, size_t size,
                       const struct as_state_clock *clock, struct as_error *error)
{
    json_error_t problem;
    *reader = (struct reader){.clock = clock, .error = error};
    reader->root = json_loadb(json, size, JSON_REJECT_DUPLICATES, &problem);
    if (!json_is_object(reader->root)) {
        as_error_set(error, "state document: not a JSON object");
        json_decref(reader->root);
        return -EBADMSG;
    }
    reader->same_boot = strcmp(read_text(reader, reader->root, "boot"), clock->boot) == 0;
    return 0;
}

static void reader_close(struct reader *reader)
{
    json_decref(reader->root);
    as_arena_deinit(&reader->arena);
}

static json_t *read_list(struct reader *reader, const char *key, size_t *count_out)
{
    json_t *list = json_object_get(reader->root, key);
    if (!json_is_array(list))
        damage(reader, key);
    *count_out = json_array_size(list);
    return list;
}

static void read_progress(struct reader *reader, struct as_incident_state *state)
{
    json_t *list = read_list(reader, "progress", &state->progress_count);
    struct as_progress *progress =
        as_arena_alloc(&reader->arena, state->progress_count, sizeof(*progress));
    for (size_t i = 0; i < state->progress_count; i++) {
        json_t *item = json_array_get(list, i);
        progress[i] = (struct as_progress){
            .rule = read_text(reader, item, "rule"),
            .target = read_text(reader, item, "target"),
            .steps = (uint32_t)read_i64(reader, item, "steps", 0, UINT32_MAX),
            .applied = read_moment(reader, item, "applied"),
            .origin = (int32_t)read_i64(reader, item, "origin", -1, INT32_MAX),
        };
    }
    state->progress = progress;
}

static const char *const *read_texts(struct reader *reader, const char *key, size_t *count_out)
{
    json_t *list = read_list(reader, key, count_out);
    const char **texts = as_arena_alloc(&reader->arena, *count_out, sizeof(*texts));
    for (size_t i = 0; i < *count_out; i++) {
        texts[i] = json_string_value(json_array_get(list, i));
        if (!texts[i])
            damage(reader, key);
    }
    return texts;
}

static uint64_t read_hex(struct reader *reader, json_t *object, const char *key)
{
    const char *text = read_text(reader, object, key);
    uint64_t number = 0;
    if (as_number_parse_u64_hex(text, strlen(text), &number) != 0)
        damage(reader, key);
    return number;
}

/* Earlier versions kept incidents by the fingerprint, without a digest. */
static struct as_incident_key read_key(struct reader *reader, const struct as_labels *labels)
{
    struct as_incident_key key = {.owner = ""};
    if (!json_object_get(reader->root, "digest") && !json_object_get(reader->root, "owner")) {
        key.has_former = true;
        key.former = read_hex(reader, reader->root, "fingerprint");
        if (labels)
            key.digest = as_labels_get_digest(labels);
        return key;
    }
    const char *digest = read_text(reader, reader->root, "digest");
    if (!as_digest_parse(digest, strlen(digest), &key.digest))
        damage(reader, "digest");
    key.owner = read_text(reader, reader->root, "owner");
    return key;
}

int as_state_decode_incident(const char *json, size_t size, const struct as_state_clock *clock,
                             as_state_incident_fn *use, void *context, struct as_error *error)
{
    struct reader reader;
    int r = reader_open(&reader, json, size, clock, error);
    if (r != 0)
        return r;
    struct as_labels *labels = read_labels(&reader, "labels");
    struct as_labels *annotations = read_labels(&reader, "annotations");
    struct as_incident_state state = {
        .key = read_key(&reader, labels),
        .fingerprint = read_hex(&reader, reader.root, "fingerprint"),
        .is_open = read_bool(&reader, "open"),
        .starts_at = {read_i64(&reader, reader.root, "starts_at", INT64_MIN, INT64_MAX)},
        .opened = read_moment(&reader, reader.root, "opened"),
        .seen = read_moment(&reader, reader.root, "seen"),
        .resolved = read_moment(&reader, reader.root, "resolved"),
        .silenced = read_moment(&reader, reader.root, "silenced"),
        .labels = labels,
        .annotations = annotations,
    };
    if (json_object_get(reader.root, "undated"))
        state.is_undated = read_bool(&reader, "undated");
    read_progress(&reader, &state);
    state.receivers = read_texts(&reader, "receivers", &state.receiver_count);
    state.credentials = read_texts(&reader, "credentials", &state.credential_count);
    if (as_moment_is_set(state.resolved) == state.is_open)
        damage(&reader, "resolved");
    r = reader.damaged ? -EBADMSG : use(context, &state);
    as_labels_free(labels);
    as_labels_free(annotations);
    reader_close(&reader);
    return r;
}

static void read_events(struct reader *reader, struct as_target_state *state)
{
    json_t *list = read_list(reader, "events", &state->event_count);
    struct as_past_event *events =
        as_arena_alloc(&reader->arena, state->event_count, sizeof(*events));
    for (size_t i = 0; i < state->event_count; i++) {
        json_t *item = json_array_get(list, i);
        events[i] = (struct as_past_event){
            read_moment(reader, item, "at"),
            (int32_t)read_i64(reader, item, "change", -INT32_MAX, INT32_MAX),
        };
    }
    state->events = events;
}

static void read_recommendations(struct reader *reader, struct as_target_state *state)
{
    json_t *list = read_list(reader, "recommendations", &state->recommendation_count);
    struct as_past_recommendation *items =
        as_arena_alloc(&reader->arena, state->recommendation_count, sizeof(*items));
    for (size_t i = 0; i < state->recommendation_count; i++) {
        json_t *item = json_array_get(list, i);
        items[i] = (struct as_past_recommendation){
            read_moment(reader, item, "at"),
            (int32_t)read_i64(reader, item, "replicas", 0, INT32_MAX),
        };
    }
    state->recommendations = items;
}

static void read_endings(struct reader *reader, struct as_target_state *state)
{
    json_t *list = read_list(reader, "endings", &state->ending_count);
    struct as_ending_state *endings =
        as_arena_alloc(&reader->arena, state->ending_count, sizeof(*endings));
    for (size_t i = 0; i < state->ending_count; i++) {
        json_t *item = json_array_get(list, i);
        endings[i] = (struct as_ending_state){
            .rule = read_text(reader, item, "rule"),
            .incident = read_text(reader, item,
                                  json_object_get(item, "incident") ? "incident" : "fingerprint"),
            .ended = read_moment(reader, item, "ended"),
            .origin = (int32_t)read_i64(reader, item, "origin", 0, INT32_MAX),
            .peak = (int32_t)read_i64(reader, item, "peak", -1, INT32_MAX),
            .last = (int32_t)read_i64(reader, item, "last", -1, INT32_MAX),
            .applied = read_moment(reader, item, "applied"),
            .guard = read_text(reader, item, "guard"),
        };
    }
    state->endings = endings;
}

static const struct as_pause_state *read_pause(struct reader *reader)
{
    json_t *item = json_object_get(reader->root, "pause");
    struct as_pause_state *pause = as_arena_alloc(&reader->arena, 1, sizeof(*pause));
    *pause = (struct as_pause_state){
        .since = read_moment(reader, item, "since"),
        .for_us = read_i64(reader, item, "for_us", 0, INT64_MAX / 4),
        .who = read_text(reader, item, "who"),
        .reason = read_text(reader, item, "reason"),
    };
    if (!as_moment_is_set(pause->since))
        damage(reader, "since");
    return pause;
}

static const struct as_ordered_state *read_ordered(struct reader *reader)
{
    json_t *item = json_object_get(reader->root, "ordered");
    struct as_ordered_state *ordered = as_arena_alloc(&reader->arena, 1, sizeof(*ordered));
    *ordered = (struct as_ordered_state){
        .id = read_text(reader, item, "id"),
        .replicas = (int32_t)read_i64(reader, item, "replicas", 0, INT32_MAX),
        .force = read_bool_of(reader, item, "force"),
        .at = read_moment(reader, item, "at"),
    };
    if (!as_moment_is_set(ordered->at))
        damage(reader, "at");
    return ordered;
}

static const struct as_growth_state *read_growth(struct reader *reader)
{
    json_t *item = json_object_get(reader->root, "growth");
    struct as_growth_state *growth = as_arena_alloc(&reader->arena, 1, sizeof(*growth));
    *growth = (struct as_growth_state){
        .id = read_text(reader, item, "id"),
        .is_open = read_bool_of(reader, item, "open"),
        .is_ordered = read_bool_of(reader, item, "ordered"),
        .is_refused = read_bool_of(reader, item, "refused"),
        .from = (int32_t)read_i64(reader, item, "from", 0, INT32_MAX),
        .to = (int32_t)read_i64(reader, item, "to", 0, INT32_MAX),
        .missing = (int32_t)read_i64(reader, item, "missing", 0, INT32_MAX),
        .since = read_moment(reader, item, "since"),
        .failed = read_moment(reader, item, "failed"),
        .back_off_us = read_i64(reader, item, "back_off_us", 0, INT64_MAX / 4),
    };
    if (growth->is_open && !as_moment_is_set(growth->since))
        damage(reader, "since");
    return growth;
}

/* The last decrease that an earlier version remembered. */
static struct as_moment find_step_down(const struct as_target_state *state)
{
    struct as_moment last = state->last_down;
    for (size_t i = 0; i < state->event_count; i++) {
        const struct as_past_event *event = &state->events[i];
        if (event->change < 0 && event->at.mono.us > last.mono.us)
            last = event->at;
    }
    return last;
}

/* What documents of earlier versions do not have. */
static void read_rest(struct reader *reader, struct as_target_state *state)
{
    state->born = json_object_get(reader->root, "born") ? read_moment(reader, reader->root, "born")
                                                        : AS_MOMENT_NEVER;
    state->last_step_down = json_object_get(reader->root, "last_step_down")
                                ? read_moment(reader, reader->root, "last_step_down")
                                : find_step_down(state);
    if (json_object_get(reader->root, "pause"))
        state->pause = read_pause(reader);
    if (json_object_get(reader->root, "ordered"))
        state->ordered = read_ordered(reader);
    if (json_object_get(reader->root, "growth"))
        state->growth = read_growth(reader);
    if ((state->ordered || (state->growth && state->growth->is_open)) && !state->ref)
        damage(reader, "address");
}

int as_state_decode_pause(const char *json, size_t size, const struct as_state_clock *clock,
                          as_state_pause_fn *use, void *context, struct as_error *error)
{
    struct reader reader;
    int r = reader_open(&reader, json, size, clock, error);
    if (r != 0)
        return r;
    const struct as_pause_state *pause = read_pause(&reader);
    r = reader.damaged ? -EBADMSG : use(context, pause);
    reader_close(&reader);
    return r;
}

/* The reference is made of the document; NULL where it is damaged. */
static struct as_target_ref *read_ref(struct reader *reader)
{
    json_t *address = json_object_get(reader->root, "address");
    const size_t count = json_array_size(address);
    struct as_target_field *fields = as_arena_alloc(&reader->arena, count, sizeof(*fields));
    if (!json_is_array(address))
        damage(reader, "address");
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(address, i);
        fields[i].key = json_string_value(json_array_get(pair, 0));
        fields[i].value = json_string_value(json_array_get(pair, 1));
        if (!fields[i].key || !fields[i].value)
            damage(reader, "address");
    }
    const char *kind = read_text(reader, reader->root, "kind");
    const char *id = read_text(reader, reader->root, "id");
    if (reader->damaged)
        return NULL;
    const struct as_target_kind *found = as_target_kind_find(kind);
    if (!found)
        damage(reader, "kind");
    return found ? as_target_ref_make(found, id, fields, count) : NULL;
}

int as_state_decode_target(const char *json, size_t size, const struct as_state_clock *clock,
                           as_state_target_fn *use, void *context, struct as_error *error)
{
    struct reader reader;
    int r = reader_open(&reader, json, size, clock, error);
    if (r != 0)
        return r;
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *ref =
        json_is_null(json_object_get(reader.root, "address")) ? NULL : read_ref(&reader);
    struct as_target_state state = {
        .id = read_text(&reader, reader.root, "id"),
        .ref = ref,
        .entry = read_text(&reader, reader.root, "entry"),
        .last_up = read_moment(&reader, reader.root, "last_up"),
        .last_down = read_moment(&reader, reader.root, "last_down"),
        .dry_last_up = read_moment(&reader, reader.root, "dry_last_up"),
        .dry_last_down = read_moment(&reader, reader.root, "dry_last_down"),
        .keep_us = read_i64(&reader, reader.root, "keep_us", 0, INT64_MAX),
        .uid = read_uid(&reader),
    };
    state.stored_as = read_optional(&reader, "key", state.id);
    read_events(&reader, &state);
    read_recommendations(&reader, &state);
    read_endings(&reader, &state);
    read_rest(&reader, &state);
    if (!*state.id)
        damage(&reader, "id");
    r = reader.damaged ? -EBADMSG : use(context, &state);
    reader_close(&reader);
    return r;
}

int as_state_decode_intent(const char *json, size_t size, const struct as_state_clock *clock,
                           as_state_intent_fn *use, void *context, struct as_error *error)
{
    struct reader reader;
    int r = reader_open(&reader, json, size, clock, error);
    if (r != 0)
        return r;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = read_ref(&reader);
    struct as_intent_state state = {
        .ref = ref,
        .action_id = read_text(&reader, reader.root, "action"),
        .decision_id = read_text(&reader, reader.root, "decision"),
        .rule = read_text(&reader, reader.root, "rule"),
        .from = (int32_t)read_i64(&reader, reader.root, "from", 0, INT32_MAX),
        .to = (int32_t)read_i64(&reader, reader.root, "to", 0, INT32_MAX),
        .at = read_moment(&reader, reader.root, "at"),
        .maybe = read_bool(&reader, "maybe"),
        .uid = read_uid(&reader),
    };
    state.stored_as = read_optional(&reader, "key", ref ? ref->id : "");
    if (json_object_get(reader.root, "ordered"))
        state.is_ordered = read_bool(&reader, "ordered");
    const char *version = read_text(&reader, reader.root, "version");
    if (strlen(version) >= sizeof(state.version))
        damage(&reader, "version");
    else
        memcpy(state.version, version, strlen(version) + 1);
    if (!as_reason_find(read_text(&reader, reader.root, "outcome"), &state.outcome))
        damage(&reader, "outcome");
    r = reader.damaged ? -EBADMSG : use(context, &state);
    reader_close(&reader);
    return r;
}
