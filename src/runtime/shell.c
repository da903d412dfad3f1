/*
 * The shell: it stamps the time, steps the engine, and carries the effects out in their order.
 * Writes are collected in one batch until the effect that commits it.
 *
 * Targets and sources answer with the tickets they got, and to this shell: its owner closes their
 * ports before it frees the shell.
 */
#include <alertscaler/runtime/shell.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/log.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/engine/state.h>
#include <alertscaler/notify/notifier.h>
#include <alertscaler/port/store.h>

#include "repeat.h"

/* Keys in AS_STORE_META */
#define SHELL_PAUSE_KEY "pause" /* of all targets */
#define SHELL_DRY_KEY   "dry_run_since"
#define SHELL_MARKS_KEY "marked_nodes" /* since when nodes may have our marks; absent: none has */

struct shell_restored {
    size_t intents;
    as_maybe_time dry_since; /* start of the dry run at the last write to the store */
    bool has_marks;          /* nodes may have our marks */
    bool is_any_group;       /* there is an intent of a node group */
};

#define START_TICKET (UINT64_MAX - 1) /* for the start record; the engine counts from 1 */

struct port_calls { /* requests to one pair of ports that are not answered */
    SLIST_ENTRY(port_calls) next;
    struct as_shell *shell;
    const struct as_target_port *targets;
    size_t open;
};
SLIST_HEAD(port_calls_list, port_calls);

struct as_shell {
    struct as_shell_config config;
    char *instance, *boot, *version, *revision, *config_digest;
    struct as_engine *engine;
    struct port_calls_list calls; /* the present ports first; former ports while they have calls */
    struct notifier *notifier;
    const struct as_ruleset *ruleset;
    struct as_storage_batch *batch; /* effects so far, or NULL */
    struct as_buf scratch, key;
    struct repeat_log log;
    char *list_note; /* that was logged last; NULL: none */
    as_mono_time mono;
    as_wall_time wall;
    as_maybe_time dry_since; /* start of the present dry run, or of one that ended during a stop */
    bool has_marks;          /* nodes may have our marks: the store says so */
    bool may_marks_be_new;   /* an action of this process, or of the one before, may still mark */
    bool ready;
    bool is_fenced; /* nothing more is carried out */
    uint64_t changes;
};

/*
 * The engine's requests to ports that are not answered, counted for each pair of ports: after a
 * reload the former ports may only be closed when they have answered.
 */

static void shell_add(struct as_shell *shell)
{
    struct port_calls *calls = as_xcalloc(1, sizeof(*calls));
    calls->shell = shell;
    calls->targets = shell->config.targets;
    SLIST_INSERT_HEAD(&shell->calls, calls, next);
}

static void remove_if_over(struct port_calls *calls)
{
    struct as_shell *shell = calls->shell;
    if (calls->open > 0 || calls == SLIST_FIRST(&shell->calls))
        return;
    SLIST_REMOVE(&shell->calls, calls, port_calls, next);
    free(calls);
}

static void shell_calls_init(struct as_shell *shell)
{
    SLIST_INIT(&shell->calls);
    shell_add(shell);
}

static void shell_calls_deinit(struct as_shell *shell)
{
    struct port_calls *calls;
    while ((calls = SLIST_FIRST(&shell->calls))) {
        SLIST_REMOVE_HEAD(&shell->calls, next);
        free(calls);
    }
}

/* the present ports */
static struct port_calls *shell_calls_begin(struct as_shell *shell)
{
    struct port_calls *calls = SLIST_FIRST(&shell->calls);
    calls->open++;
    return calls;
}

/* answered */
static struct as_shell *shell_calls_end(struct port_calls *calls)
{
    struct as_shell *shell = calls->shell;
    calls->open--;
    remove_if_over(calls);
    return shell;
}

/* From now on these are the present ports. */
static void shell_calls_use(struct as_shell *shell, struct as_target_port *targets,
                            struct as_source_port *source)
{
    struct port_calls *former = SLIST_FIRST(&shell->calls);
    const bool are_new = targets != shell->config.targets || source != shell->config.source;
    shell->config.targets = targets;
    shell->config.source = source;
    if (!are_new)
        return;
    shell_add(shell);
    remove_if_over(former);
}

bool as_shell_has_calls(const struct as_shell *shell, const struct as_target_port *targets)
{
    const struct port_calls *calls;
    SLIST_FOREACH (calls, &shell->calls, next) {
        if (calls->targets == targets && calls->open > 0)
            return true;
    }
    return false;
}

/*
 * Passes each kind of stored document to its decoder, and the result to the engine.
 */

#define KEY_SHOWN 256 /* bytes of the key of a row that cannot be read */

struct restoring {
    const struct step *step;
    const char *key; /* of the row */
    size_t key_size;
    struct as_engine *engine;
    const struct as_state_clock *clock;
    struct shell_restored *restored;
    struct as_error *error;
};

/* What is read of a kind of rows. */
struct step {
    enum as_store_kind kind;
    int (*read)(struct restoring *restoring, const void *key, size_t key_size, const void *value,
                size_t value_size);
    const char *what;
};

struct step;

/* The row's key is `first`, then `rest`. A row under another key would never be replaced. */
static int check_key(const struct restoring *restoring, const void *first, size_t first_size,
                     const char *rest)
{
    const size_t rest_size = strlen(rest);
    if (restoring->key_size == first_size + rest_size &&
        memcmp(restoring->key, first, first_size) == 0 &&
        memcmp(restoring->key + first_size, rest, rest_size) == 0)
        return 0;
    as_error_set(restoring->error, "its key is not the one of its content");
    return -EBADMSG;
}

static int restore_incident(void *context, const struct as_incident_state *state)
{
    struct restoring *restoring = context;
    const struct as_incident_key *key = &state->key;
    const int status =
        check_key(restoring, key->digest.bytes, sizeof(key->digest.bytes), key->owner);
    return status != 0 ? status : as_engine_restore_incident(restoring->engine, state);
}

static int shell_restore_target(void *context, const struct as_target_state *state)
{
    struct restoring *restoring = context;
    const int status = check_key(restoring, "", 0, state->stored_as);
    return status != 0 ? status : as_engine_restore_target(restoring->engine, state);
}

static int restore_intent(void *context, const struct as_intent_state *state)
{
    struct restoring *restoring = context;
    const int status = check_key(restoring, "", 0, state->stored_as);
    if (status != 0)
        return status;
    restoring->restored->intents++;
    if (state->ref->kind->has_nodes)
        restoring->restored->is_any_group = true;
    return as_engine_restore_intent(restoring->engine, state);
}

static int restore_pause(void *context, const struct as_pause_state *state)
{
    struct restoring *restoring = context;
    return as_engine_restore_pause(restoring->engine, state);
}

static int read_incident(struct restoring *restoring, const void *key, size_t key_size,
                         const void *value, size_t value_size)
{
    return as_state_decode_incident(value, value_size, restoring->clock, restore_incident,
                                    restoring, restoring->error);
}

static int shell_read_target(struct restoring *restoring, const void *key, size_t key_size,
                             const void *value, size_t value_size)
{
    return as_state_decode_target(value, value_size, restoring->clock, shell_restore_target,
                                  restoring, restoring->error);
}

static int read_intent(struct restoring *restoring, const void *key, size_t key_size,
                       const void *value, size_t value_size)
{
    return as_state_decode_intent(value, value_size, restoring->clock, restore_intent, restoring,
                                  restoring->error);
}

static bool is_key(const char *wanted, const void *key, size_t key_size)
{
    return key_size == strlen(wanted) && memcmp(key, wanted, key_size) == 0;
}

static int read_meta(struct restoring *restoring, const void *key, size_t key_size,
                     const void *value, size_t value_size)
{
    if (is_key(SHELL_MARKS_KEY, key, key_size))
        restoring->restored->has_marks = true;
    if (is_key(SHELL_DRY_KEY, key, key_size)) {
        as_maybe_time *since = &restoring->restored->dry_since;
        since->set = as_wall_time_parse(value, value_size, &since->at) == 0;
        return 0;
    }
    if (!is_key(SHELL_PAUSE_KEY, key, key_size))
        return 0;
    return as_state_decode_pause(value, value_size, restoring->clock, restore_pause, restoring,
                                 restoring->error);
}

/* Names the row: an incident by its digest, as the action log does. */
static void name_row(struct restoring *restoring, const void *key, size_t key_size, int status)
{
    struct as_digest digest;
    char text[AS_DIGEST_TEXT_SIZE];
    if (!*restoring->error->text)
        as_error_set(restoring->error,
                     status == -EEXIST ? "another row is about the same" : "it cannot be restored");
    if (restoring->step->kind == AS_STORE_INCIDENT && key_size >= sizeof(digest.bytes)) {
        memcpy(digest.bytes, key, sizeof(digest.bytes));
        as_digest_print(&digest, text);
        as_error_wrap(restoring->error, "%s", text);
    } else {
        as_error_wrap(restoring->error, "%.*s", key_size < KEY_SHOWN ? (int)key_size : KEY_SHOWN,
                      (const char *)key);
    }
}

static int shell_visit(void *context, const void *key, size_t key_size, const void *value,
                       size_t value_size)
{
    struct restoring *restoring = context;
    *restoring->error = (struct as_error)AS_ERROR_INIT;
    restoring->key = key;
    restoring->key_size = key_size;
    const int status = restoring->step->read(restoring, key, key_size, value, value_size);
    if (status != 0)
        name_row(restoring, key, key_size, status);
    return status;
}

/* Locks come before intents: an intent may belong to an unlocked target. A negative errno if
 * something is unreadable, with reason and place. */
static int shell_restore(struct as_store *store, const struct as_state_clock *clock,
                         struct as_engine *engine, struct shell_restored *restored_out,
                         struct as_error *error)
{
    static const struct step steps[] = {
        {AS_STORE_INCIDENT, read_incident, "incident"},
        {AS_STORE_TARGET, shell_read_target, "target"},
        {AS_STORE_INTENT, read_intent, "intent"},
        {AS_STORE_META, read_meta, "pause"},
    };
    struct as_error own = AS_ERROR_INIT;
    error = error ? error : &own;
    *restored_out = (struct shell_restored){0};
    struct restoring restoring = {
        .engine = engine, .clock = clock, .restored = restored_out, .error = error};
    for (size_t i = 0; i < AS_ARRAY_SIZE(steps); i++) {
        restoring.step = &steps[i];
        const int status = store->visit(store, steps[i].kind, shell_visit, &restoring, error);
        if (status != 0) {
            as_error_wrap(error, "reading %ss from the state", steps[i].what);
            return status;
        }
    }
    return 0;
}

/*
 * The shell's own records: what the engine does not know of.
 */

#define RECORD_SIZE_MAX ((size_t)256 * 1024 * 1024)

/* Appends the record in `scratch` to the batch. */
static void shell_append_to(struct as_shell *shell, struct as_storage_batch *batch,
                            const struct as_record_places *places)
{
    if (as_buf_check(&shell->scratch) != 0) {
        /* impossible within the limits on bodies; a record is never dropped silently */
        as_log(AS_LOG_ERROR, "record too large for the action log",
               AS_FI("max_bytes", RECORD_SIZE_MAX));
        abort();
    }
    as_storage_batch_append(batch, &(struct as_audit_record){
                                       .json = shell->scratch.data,
                                       .size = shell->scratch.size,
                                       .at_hash = places->at_hash,
                                       .at_prev = places->at_prev,
                                       .at_seq = places->at_seq,
                                   });
    shell->log.records++;
    shell->log.bytes += shell->scratch.size + AS_STORAGE_SEAL_BYTES;
}

/* shell->batch */
static void shell_submit(struct as_shell *shell)
{
    struct as_storage_batch *batch = shell->batch;
    shell->batch = NULL;
    as_storage_submit(shell->config.storage, batch);
}

#define KEPT_BUFFER ((size_t)1024 * 1024)

static struct as_buf *shell_scratch_clear(struct as_shell *shell)
{
    if (shell->scratch.capacity > KEPT_BUFFER)
        as_buf_deinit(&shell->scratch);
    as_buf_clear(&shell->scratch);
    return &shell->scratch;
}

/* the time of what follows */
static void shell_stamp(struct as_shell *shell)
{
    const struct as_clock *clock = shell->config.clock;
    shell->mono = clock->get_mono(clock);
    shell->wall = clock->get_wall(clock);
}

/* A record of the shell's own, as a batch. */
static void shell_record(struct as_shell *shell, uint64_t call_id, enum as_record_kind kind,
                         const void *record)
{
    struct as_record_places places;
    shell_stamp(shell);
    as_record_encode(&(struct as_record_header){shell->wall, shell->instance}, kind, record,
                     shell_scratch_clear(shell), &places);
    shell->batch = as_storage_batch_new(call_id);
    shell_append_to(shell, shell->batch, &places);
    shell_submit(shell);
}

static void shell_record_start_or_stop(struct as_shell *shell, enum as_record_kind kind,
                                       size_t intents, const struct as_leader_term *leaders,
                                       size_t leader_count)
{
    const struct as_engine_counts counts = as_engine_get_counts(shell->engine);
    const struct as_start_record record = {
        .version = shell->version,
        .revision = shell->revision,
        .config_digest = shell->config_digest,
        .rules_digest = shell->ruleset->digest,
        .targets = shell->ruleset->target_count,
        .rules = shell->ruleset->rule_count,
        .incidents = counts.incidents_open,
        .intents = intents,
        .leaders = leaders,
        .leader_count = leader_count,
    };
    shell_record(shell, kind == AS_RECORD_START ? START_TICKET : 0, kind, &record);
}

void as_shell_record_failed_reload(struct as_shell *shell, const char *credential,
                                   const char *problem)
{
    const struct as_reload_record record = {
        .credential = credential,
        .error = problem,
        .old_config_digest = shell->config_digest,
        .old_rules_digest = shell->ruleset->digest,
        .config_digest = shell->config_digest,
        .rules_digest = shell->ruleset->digest,
    };
    shell_record(shell, 0, AS_RECORD_RELOAD, &record);
    repeat_log_begin_epoch(&shell->log);
}

void as_shell_record_denied(struct as_shell *shell, const struct as_denied_record *record)
{
    shell_record(shell, 0, AS_RECORD_DENIED, record);
}

void as_shell_record_nodes(struct as_shell *shell, const struct as_nodes_record *record)
{
    struct as_nodes_record named = *record;
    named.target_name = as_engine_find_name(shell->engine, record->target);
    shell_record(shell, 0, AS_RECORD_NODES, &named);
}

void as_shell_record_others(struct as_shell *shell, const struct as_others_record *record)
{
    struct as_others_record named = *record;
    named.target_name = as_engine_find_name(shell->engine, record->target);
    shell->changes++;
    shell_record(shell, 0, AS_RECORD_OTHERS, &named);
}

void as_shell_record_policy(struct as_shell *shell, const struct as_policy_record *record)
{
    shell_record(shell, 0, AS_RECORD_POLICY, record);
}

void as_shell_record_stop(struct as_shell *shell)
{
    shell_record_start_or_stop(shell, AS_RECORD_STOP, 0, NULL, 0);
}

static void shell_run(struct as_shell *shell, struct as_event *event);

static void shell_answer(struct port_calls *calls, struct as_event *event)
{
    shell_run(shell_calls_end(calls), event);
}

static void shell_on_observed(void *context, uint64_t call_id, const struct as_observation *result)
{
    shell_answer(
        context,
        &(struct as_event){.kind = AS_EVENT_OBSERVED, .call_id = call_id, .observation = result});
}

static void on_scaled(void *context, uint64_t call_id, const struct as_scale_result *result)
{
    shell_answer(context,
                 &(struct as_event){.kind = AS_EVENT_SCALED, .call_id = call_id, .result = result});
}

static void on_queried(void *context, uint64_t call_id, const struct as_query_result *result)
{
    shell_answer(context, &(struct as_event){
                              .kind = AS_EVENT_QUERIED, .call_id = call_id, .answer = result});
}

/* Each note once: it comes with every list. */
static void log_list_note(struct as_shell *shell, const char *note)
{
    if (!note || (shell->list_note && strcmp(shell->list_note, note) == 0))
        return;
    free(shell->list_note);
    shell->list_note = as_xstrdup(note);
    as_log(AS_LOG_WARN, "lists open fewer incidents", AS_F("reason", note));
}

static void on_listed(void *context, uint64_t call_id, const struct as_alert_list *list)
{
    const struct port_calls *calls = context;
    log_list_note(calls->shell, list->note);
    if (list->error)
        as_log(AS_LOG_WARN, "firing alerts not listed", AS_F("error", list->error));
    else if (list->unread > 0)
        as_log(AS_LOG_WARN, "alerts of the list not read", AS_F("error", list->problem),
               AS_FI("count", list->unread));
    shell_answer(context,
                 &(struct as_event){.kind = AS_EVENT_LISTED, .call_id = call_id, .list = list});
}

static void on_objects(void *context, uint64_t call_id, const struct as_object_list *objects)
{
    if (objects->error)
        as_log(AS_LOG_WARN, "objects of `allow.list` not listed", AS_F("error", objects->error));
    shell_answer(context, &(struct as_event){
                              .kind = AS_EVENT_OBJECTS, .call_id = call_id, .objects = objects});
}

static uint64_t find_commit_call_id(const struct as_effects *effects, size_t from)
{
    for (size_t i = from; i < effects->count; i++) {
        if (effects->items[i].kind == AS_EFFECT_COMMIT)
            return effects->items[i].call_id;
    }
    return 0;
}

/* Stores `scratch`. */
static void shell_put(struct as_shell *shell, enum as_store_kind kind, const void *key,
                      size_t key_size)
{
    as_storage_batch_put(shell->batch, kind, key, key_size, shell->scratch.data,
                         shell->scratch.size);
}

static void put_named(struct as_shell *shell, enum as_store_kind kind, const char *name)
{
    shell_put(shell, kind, name, strlen(name));
}

static void delete_named(struct as_shell *shell, enum as_store_kind kind, const char *name)
{
    as_storage_batch_delete(shell->batch, kind, name, strlen(name));
}

/* The digest, then the owner. */
static void put_incident_key(const struct as_incident_key *key, struct as_buf *out)
{
    as_buf_clear(out);
    as_buf_append(out, (const char *)key->digest.bytes, sizeof(key->digest.bytes));
    as_buf_append_str(out, key->owner);
}

static void put_incident(struct as_shell *shell, const struct as_incident_state *incident)
{
    put_incident_key(&incident->key, &shell->key);
    as_state_encode_incident(incident, shell->boot, &shell->scratch);
    shell_put(shell, AS_STORE_INCIDENT, shell->key.data, shell->key.size);
}

static void delete_incident(struct as_shell *shell, const struct as_incident_key *key)
{
    put_incident_key(key, &shell->key);
    as_storage_batch_delete(shell->batch, AS_STORE_INCIDENT, shell->key.data, shell->key.size);
}

static void shell_append(struct as_shell *shell, const struct as_record_places *places)
{
    shell_append_to(shell, shell->batch, places);
}

/* For the record in `scratch`. */
static uint64_t find_log_file(struct as_shell *shell)
{
    return as_storage_find_log_file(shell->config.storage, shell->scratch.size);
}

/* A small record, if an earlier whole record says the rest; else a whole one, the base of the
 * next. */
static void record_notification(struct as_shell *shell, const struct as_record_header *header,
                                const struct as_notification_record *record)
{
    struct as_record_base *base = record->is_repeat ? record->notification->base : NULL;
    struct as_record_places places;
    uint64_t said = 0;
    if (base) {
        struct as_repeat_record repeat = repeat_sum_up(&shell->log, record, &said);
        if (repeat_is_near(&shell->log, base, said, shell->wall)) {
            repeat.same_as = base->id;
            as_record_encode(header, AS_RECORD_REPEAT, &repeat, &shell->scratch, &places);
            if (find_log_file(shell) == base->file) {
                shell_append(shell, &places);
                return;
            }
            as_buf_clear(&shell->scratch);
        }
    }
    as_record_encode(header, AS_RECORD_NOTIFICATION, record, &shell->scratch, &places);
    if (base)
        repeat_set_base(&shell->log, base, record->notification, said, shell->wall,
                        find_log_file(shell));
    shell_append(shell, &places);
}

static void commit(struct as_shell *shell, const struct as_effect *effect)
{
    if (effect->is_repeat)
        as_storage_batch_let_lag(shell->batch);
    shell_submit(shell);
}

/* Whether this effect may be carried out: effects visible outside need the lead right now. */
static bool check_fence(struct as_shell *shell, const struct as_effect *effect)
{
    const struct as_shell_callbacks *callbacks = &shell->config.callbacks;
    if (effect->kind != AS_EFFECT_SCALE && effect->kind != AS_EFFECT_ANSWER)
        return true;
    if (!callbacks->may_act || callbacks->may_act(callbacks->context))
        return true;
    shell->is_fenced = true;
    callbacks->fenced(callbacks->context);
    return false;
}

static void put_time(struct as_shell *shell, const char *key)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(shell->wall, text);
    as_storage_batch_put(shell->batch, AS_STORE_META, key, strlen(key), text, strlen(text));
}

/* In the transaction of the intent, so before the first mark. */
static void put_marks(struct as_shell *shell)
{
    shell->may_marks_be_new = true;
    if (shell->has_marks)
        return;
    put_time(shell, SHELL_MARKS_KEY);
    shell->has_marks = true;
}

bool as_effect_encode_record(const struct as_effect *effect, const struct as_record_header *header,
                             struct as_buf *out, struct as_record_places *places_out)
{
    static const struct {
        enum as_record_kind kind;
        size_t at; /* of the pointer to the record in the effect; 0: the effect has none */
    } rows[AS_EFFECT_WARN + 1] = {
        [AS_EFFECT_RECORD_DECISION] = {AS_RECORD_DECISION, offsetof(struct as_effect, decision)},
        [AS_EFFECT_RECORD_ACTION] = {AS_RECORD_ACTION, offsetof(struct as_effect, action)},
        [AS_EFFECT_RECORD_INCIDENT] = {AS_RECORD_INCIDENT,
                                       offsetof(struct as_effect, incident_record)},
        [AS_EFFECT_RECORD_EVALUATION] = {AS_RECORD_EFFECT, offsetof(struct as_effect, evaluation)},
        [AS_EFFECT_RECORD_OTHERS] = {AS_RECORD_OTHERS, offsetof(struct as_effect, others)},
        [AS_EFFECT_RECORD_COMMAND] = {AS_RECORD_COMMAND, offsetof(struct as_effect, order)},
        [AS_EFFECT_RECORD_APPROVAL] = {AS_RECORD_APPROVAL, offsetof(struct as_effect, approval)},
    };
    const void *record;
    if (rows[effect->kind].at == 0)
        return false;
    memcpy(&record, (const char *)effect + rows[effect->kind].at, sizeof(record));
    as_record_encode(header, rows[effect->kind].kind, record, out, places_out);
    return true;
}

/* Writes go into the batch of their commit. The effect's record is in `scratch`. */
static void shell_carry_out(struct as_shell *shell, const struct as_effects *effects, size_t at,
                            const struct as_record_places *places)
{
    const struct as_effect *effect = &effects->items[at];
    const struct as_record_header header = {shell->wall, shell->instance};
    struct as_target_port *targets = shell->config.targets;
    struct as_source_port *source = shell->config.source;
    struct as_buf *scratch = &shell->scratch;
    if (!shell->batch && effect->kind <= AS_EFFECT_COMMIT)
        shell->batch = as_storage_batch_new(find_commit_call_id(effects, at));
    switch (effect->kind) {
    case AS_EFFECT_PUT_INCIDENT: put_incident(shell, effect->incident); return;
    case AS_EFFECT_DELETE_INCIDENT: delete_incident(shell, &effect->incident_key); return;
    case AS_EFFECT_PUT_TARGET:
        as_state_encode_target(effect->target, shell->boot, scratch);
        put_named(shell, AS_STORE_TARGET, effect->target->stored_as);
        return;
    case AS_EFFECT_DELETE_TARGET: delete_named(shell, AS_STORE_TARGET, effect->stored_as); return;
    case AS_EFFECT_PUT_INTENT:
        as_state_encode_intent(effect->intent, shell->boot, scratch);
        put_named(shell, AS_STORE_INTENT, effect->intent->stored_as);
        if (effect->intent->marks_nodes)
            put_marks(shell);
        return;
    case AS_EFFECT_DELETE_INTENT: delete_named(shell, AS_STORE_INTENT, effect->stored_as); return;
    case AS_EFFECT_PUT_PAUSE:
        as_state_encode_pause(effect->pause, shell->boot, scratch);
        put_named(shell, AS_STORE_META, SHELL_PAUSE_KEY);
        return;
    case AS_EFFECT_DELETE_PAUSE: delete_named(shell, AS_STORE_META, SHELL_PAUSE_KEY); return;
    case AS_EFFECT_RECORD_NOTIFICATION:
        record_notification(shell, &header, effect->notification);
        return;
    case AS_EFFECT_RECORD_DECISION:
    case AS_EFFECT_RECORD_ACTION:
    case AS_EFFECT_RECORD_INCIDENT:
    case AS_EFFECT_RECORD_EVALUATION:
    case AS_EFFECT_RECORD_OTHERS:
    case AS_EFFECT_RECORD_COMMAND:
    case AS_EFFECT_RECORD_APPROVAL:
        shell_append(shell, places);
        notifier_on_effect(shell->notifier, shell->engine, effect, shell->batch);
        return;
    case AS_EFFECT_COMMIT: commit(shell, effect); return;
    case AS_EFFECT_ANSWER: return; /* done by the callback `effect` */
    case AS_EFFECT_OBSERVE:
        targets->observe(targets, effect->call_id, effect->call.ref, effect->call.observe,
                         shell_on_observed, shell_calls_begin(shell));
        return;
    case AS_EFFECT_QUERY:
        source->query(source, effect->call_id, effect->query, on_queried, shell_calls_begin(shell));
        return;
    case AS_EFFECT_LIST_ALERTS:
        source->list_alerts(source, effect->call_id, on_listed, shell_calls_begin(shell));
        return;
    case AS_EFFECT_LIST_OBJECTS:
        targets->list(targets, effect->call_id,
                      &(struct as_object_list_request){.entry = effect->entry}, on_objects,
                      shell_calls_begin(shell));
        return;
    case AS_EFFECT_SCALE:
        targets->scale(targets, effect->call_id, effect->call.ref, effect->call.request, on_scaled,
                       shell_calls_begin(shell));
        return;
    case AS_EFFECT_WARN:
        if (targets->warn)
            targets->warn(targets, effect->call.ref, effect->call.late);
        return;
    }
}

static void report_deadline(void *context)
{
    struct as_shell *shell = context;
    const struct as_shell_callbacks *callbacks = &shell->config.callbacks;
    const as_mono_time engine = as_engine_get_next_deadline(shell->engine);
    const as_mono_time notifier = notifier_get_deadline(shell->notifier);
    callbacks->deadline(callbacks->context, notifier.us < engine.us ? notifier : engine);
}

static void notify_people(struct as_shell *shell)
{
    notifier_work(shell->notifier);
    report_deadline(shell);
}

/* Whether a state that people were told of may have lost its cause. */
static bool may_end_states(const struct as_event *event, const struct as_effects *effects)
{
    bool may = event->kind == AS_EVENT_RULES || event->kind == AS_EVENT_START;
    for (size_t i = 0; i < effects->count && !may; i++)
        may = effects->items[i].kind == AS_EFFECT_RECORD_INCIDENT ||
              effects->items[i].kind == AS_EFFECT_RECORD_EVALUATION ||
              effects->items[i].kind == AS_EFFECT_RECORD_COMMAND;
    return may;
}

/* Ports call back in a later turn, so this is never reentered. */
static void shell_run(struct as_shell *shell, struct as_event *event)
{
    const struct as_shell_callbacks *callbacks = &shell->config.callbacks;
    struct as_effects effects;
    if (shell->is_fenced)
        return;
    shell_stamp(shell);
    event->mono = shell->mono;
    event->wall = shell->wall;
    shell->changes++;
    as_engine_step(shell->engine, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        if (!check_fence(shell, &effects.items[i]))
            return;
        const struct as_record_header header = {shell->wall, shell->instance};
        struct as_record_places places = {0};
        const bool has_record = as_effect_encode_record(&effects.items[i], &header,
                                                        shell_scratch_clear(shell), &places);
        callbacks->effect(callbacks->context, &effects.items[i],
                          has_record ? &shell->scratch : NULL);
        shell_carry_out(shell, &effects, i, &places);
    }
    if (may_end_states(event, &effects) || notifier_must_check_states(shell->notifier))
        notifier_check_states(shell->notifier, shell->engine);
    notify_people(shell);
}

/* For the notifications of people. */
static void record_notify(void *context, struct as_storage_batch *batch,
                          const struct as_notify_record *record)
{
    struct as_shell *shell = context;
    const struct as_record_header header = {shell->config.clock->get_wall(shell->config.clock),
                                            shell->instance};
    struct as_record_places places;
    as_record_encode(&header, AS_RECORD_NOTIFY, record, shell_scratch_clear(shell), &places);
    shell_append_to(shell, batch, &places);
}

static const char *shell_find_sender(void *context, const char *target)
{
    return as_engine_find_sender(((struct as_shell *)context)->engine, target);
}

static as_mono_time shell_find_observed(void *context, const char *target, const char **cluster_out)
{
    return as_engine_find_observed(((struct as_shell *)context)->engine, target, cluster_out);
}

static void shell_visit_clusters(void *context, as_cluster_visit_fn *visit, void *visit_context)
{
    as_engine_visit_clusters(((struct as_shell *)context)->engine, visit, visit_context);
}

static bool may_send(void *context)
{
    const struct as_shell *shell = context;
    const struct as_shell_callbacks *callbacks = &shell->config.callbacks;
    return !shell->is_fenced && (!callbacks->may_act || callbacks->may_act(callbacks->context));
}

/* Stores the start of a dry run, and deletes it at the end. */
static void store_dry_run(struct as_shell *shell, bool is_dry)
{
    if (is_dry == shell->dry_since.set)
        return;
    shell->batch = as_storage_batch_new(0);
    if (is_dry)
        put_time(shell, SHELL_DRY_KEY);
    else
        delete_named(shell, AS_STORE_META, SHELL_DRY_KEY);
    shell_submit(shell);
    shell->dry_since = (as_maybe_time){.set = is_dry, .at = shell->wall};
}

/* Counts incidents that will act without a new alert: important after a dry run or a long stop. */
static void log_open_incidents(const struct as_shell *shell, const char *event)
{
    static const as_wall_time never = {INT64_MAX};
    const as_wall_time since = shell->dry_since.set ? shell->dry_since.at : never;
    const struct as_acting_counts counts = as_engine_count_acting(shell->engine, since);
    const size_t open = as_engine_get_counts(shell->engine).incidents_open;
    if (open > 0)
        as_log(counts.late > 0 ? AS_LOG_WARN : AS_LOG_INFO, event, AS_FI("open_incidents", open),
               AS_FI("act_now", counts.acting), AS_FI("came_in_dry_run", counts.late));
}

int as_shell_new(const struct as_shell_config *config, struct as_store *store,
                 struct as_shell **shell_out, struct as_error *error)
{
    struct as_shell *shell = as_xcalloc(1, sizeof(*shell));
    shell->config = *config;
    shell->instance = as_xstrdup(config->instance);
    shell->boot = as_xstrdup(config->boot);
    shell->version = as_xstrdup(config->version);
    shell->revision = config->revision ? as_xstrdup(config->revision) : NULL;
    shell->config_digest = as_xstrdup(config->config_digest);
    shell->ruleset = config->ruleset;
    shell_calls_init(shell);
    shell->scratch = AS_BUF_INIT_OPEN(RECORD_SIZE_MAX);
    shell->key = AS_BUF_INIT_OPEN(RECORD_SIZE_MAX);
    repeat_log_init(&shell->log, config->engine.seed);
    shell->engine = as_engine_new(&config->engine, config->ruleset);
    shell->notifier =
        notifier_new(&(struct notifier_callbacks){.record = record_notify,
                                                  .find_sender = shell_find_sender,
                                                  .find_observed = shell_find_observed,
                                                  .visit_clusters = shell_visit_clusters,
                                                  .may_send = may_send,
                                                  .moved = report_deadline,
                                                  .context = shell},
                     config->clock, config->storage);

    shell_stamp(shell);
    const struct as_state_clock clock = {shell->boot, shell->mono, shell->wall};
    struct shell_restored restored;
    int status = shell_restore(store, &clock, shell->engine, &restored, error);
    if (status != 0) {
        as_shell_free(shell);
        return status;
    }
    shell->dry_since = restored.dry_since;
    shell->has_marks = restored.has_marks;
    shell->may_marks_be_new = restored.is_any_group;
    shell_record_start_or_stop(shell, AS_RECORD_START, restored.intents, config->leaders,
                               config->leader_count);
    status = notifier_restore(shell->notifier, store, error);
    if (status != 0) {
        as_shell_free(shell);
        return status;
    }
    notifier_reload(shell->notifier, &config->notifier);
    shell_run(shell, &(struct as_event){.kind = AS_EVENT_START});
    log_open_incidents(shell, "started with open incidents");
    store_dry_run(shell, config->engine.dry_run);
    *shell_out = shell;
    return 0;
}

struct as_shell *as_shell_free(struct as_shell *shell)
{
    if (!shell)
        return NULL;
    shell_calls_deinit(shell);
    as_storage_batch_free(shell->batch);
    notifier_free(shell->notifier);
    as_engine_free(shell->engine);
    as_buf_deinit(&shell->scratch);
    as_buf_deinit(&shell->key);
    free(shell->list_note);
    free(shell->instance);
    free(shell->boot);
    free(shell->version);
    free(shell->revision);
    free(shell->config_digest);
    free(shell);
    return NULL;
}

void as_shell_notify(struct as_shell *shell, const struct as_notification *notification,
                     uint64_t request)
{
    shell_run(shell, &(struct as_event){.kind = AS_EVENT_NOTIFICATION,
                                        .call_id = request,
                                        .notification = notification});
}

void as_shell_order(struct as_shell *shell, const struct as_operator_command *order,
                    uint64_t request)
{
    shell_run(shell,
              &(struct as_event){.kind = AS_EVENT_ORDER, .call_id = request, .order = order});
}

void as_shell_halt(struct as_shell *shell, const struct as_halt *halt)
{
    shell_run(shell, &(struct as_event){.kind = AS_EVENT_HALT, .halt = halt});
}

void as_shell_on_durable(struct as_shell *shell, uint64_t call_id)
{
    if (call_id == START_TICKET)
        shell->ready = true;
    else if (call_id == NOTIFIER_TICKET && !shell->is_fenced) {
        notifier_on_deleted(shell->notifier);
        notify_people(shell);
    } else if (call_id != 0)
        shell_run(shell, &(struct as_event){.kind = AS_EVENT_COMMITTED, .call_id = call_id});
}

void as_shell_on_hashed(struct as_shell *shell, uint64_t number, const char *hash)
{
    notifier_on_hashed(shell->notifier, number, hash);
    notify_people(shell);
}

void as_shell_visit_receivers(const struct as_shell *shell, as_notifier_visit_fn *visit,
                              void *context)
{
    notifier_visit(shell->notifier, visit, context);
}

void as_shell_wake(struct as_shell *shell)
{
    shell_run(shell, &(struct as_event){.kind = AS_EVENT_DEADLINE});
}

void as_shell_reload(struct as_shell *shell, const struct as_ruleset *ruleset,
                     const struct as_engine_config *engine, const char *config_digest,
                     struct as_target_port *targets, struct as_source_port *source,
                     const struct as_notifier_config *notifier, const char *credential)
{
    const struct as_reload_record record = {
        .credential = credential,
        .old_config_digest = shell->config_digest,
        .old_rules_digest = shell->ruleset->digest,
        .config_digest = config_digest,
        .rules_digest = ruleset->digest,
    };
    shell_record(shell, 0, AS_RECORD_RELOAD, &record);

    free(shell->config_digest);
    shell->config_digest = as_xstrdup(config_digest);
    shell->ruleset = ruleset;
    repeat_log_begin_epoch(&shell->log);
    shell_calls_use(shell, targets, source);
    if (notifier)
        notifier_reload(shell->notifier, notifier);
    shell_run(shell,
              &(struct as_event){.kind = AS_EVENT_RULES, .ruleset = ruleset, .config = *engine});
    if (shell->dry_since.set && !engine->dry_run)
        log_open_incidents(shell, "ended the dry run with open incidents");
    store_dry_run(shell, engine->dry_run);
}

void as_shell_stop(struct as_shell *shell)
{
    notifier_stop(shell->notifier);
    shell_run(shell, &(struct as_event){.kind = AS_EVENT_STOP});
}

bool as_shell_may_have_marks(const struct as_shell *shell)
{
    return shell->has_marks || as_engine_has_restored_groups(shell->engine);
}

void as_shell_forget_marks(struct as_shell *shell)
{
    if (!shell->has_marks || shell->may_marks_be_new || shell->is_fenced)
        return;
    shell->batch = as_storage_batch_new(0);
    delete_named(shell, AS_STORE_META, SHELL_MARKS_KEY);
    shell_submit(shell);
    shell->has_marks = false;
}

bool as_shell_is_idle(const struct as_shell *shell)
{
    return as_engine_is_idle(shell->engine);
}

const struct as_engine *as_shell_get_engine(const struct as_shell *shell)
{
    return shell->engine;
}

uint64_t as_shell_count_changes(const struct as_shell *shell)
{
    return shell->changes;
}

bool as_shell_is_ready(const struct as_shell *shell)
{
    return shell->ready;
}
