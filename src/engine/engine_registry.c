/*
 * The registry of incidents: the tree of all, the groups of a rule on a target, and the reach of
 * credentials.
 *
 * Invariants: an incident is in the tree from its opening until it is forgotten; its memory is
 * counted after each change. The module opens and closes no incident (engine_incidents.c), and
 * evaluates no target.
 */
#include "engine_registry.h"
#include "engine_concerns.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "engine_effects.h"

/*
 * What a rule may do, and when, for the incidents that it is bound to.
 */

struct group *group_find(struct target *target, const char *rule)
{
    struct group *group;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (strcmp(group->rule->name, rule) == 0)
            return group;
    }
    return NULL;
}

struct group *group_get(struct target *target, const struct as_rule *rule)
{
    struct group key = {.rule = rule};
    struct group *group = RB_FIND(group_tree, &target->groups, &key);
    if (group)
        return group;
    group = as_xcalloc(1, sizeof(*group));
    group->missing_since = AS_MOMENT_NEVER;
    group->target = target;
    group->rule = rule;
    TAILQ_INIT(&group->bindings);
    RB_INSERT(group_tree, &target->groups, group);
    return group;
}

bool rule_keeps_progress(const struct as_rule *rule, const struct as_target_config *config)
{
    if (rule->max_steps || rule->every_us || rule->on_resolved.kind == AS_ENDING_GIVE_BACK)
        return true;
    /* without a lock whose end would repeat it, a rule acts once for an incident */
    if (as_action_is_absolute(&rule->action))
        return false;
    return rule->action.kind == AS_ACTION_SCALE_UP
               ? config->bounds.cooldown.up_us == 0
               : as_cooldown_get_down_after_down(&config->bounds.cooldown) == 0;
}

bool binding_is_used_up(const struct binding *binding)
{
    const struct as_rule *rule = binding->group->rule;
    return rule->max_steps && binding->steps >= rule->max_steps;
}

/* When the rule may act for this incident (again), if the incident is not held. Ignores the
 * target's lock. */
as_mono_time binding_get_due_unheld(const struct binding *binding)
{
    const struct as_rule *rule = binding->group->rule;
    if (binding_is_used_up(binding))
        return AS_MONO_NEVER;
    if (binding->steps == 0 || !rule_keeps_progress(rule, binding->group->target->config))
        return (as_mono_time){INT64_MIN};
    if (rule->is_always)
        return always_get_due(binding->group->target, rule, binding->applied.mono);
    if (rule->every_us)
        return (as_mono_time){as_time_add(binding->applied.mono.us, rule->every_us)};
    const struct as_cooldown *cooldown = &binding->group->target->config->bounds.cooldown;
    const bool has_lock = rule->action.kind == AS_ACTION_SCALE_DOWN
                              ? as_cooldown_get_down_after_down(cooldown) > 0
                              : cooldown->up_us > 0;
    return has_lock || as_action_is_absolute(&rule->action) ? (as_mono_time){INT64_MIN}
                                                            : AS_MONO_NEVER;
}

as_mono_time binding_get_due(const struct binding *binding)
{
    return incident_is_held(binding->incident) ? AS_MONO_NEVER : binding_get_due_unheld(binding);
}

/* The earliest time at which a binding that is not due now will be due. */
as_mono_time bindings_get_next_due(const struct as_engine *engine, struct target *target)
{
    as_mono_time next = AS_MONO_NEVER;
    struct group *group;
    const struct binding *binding;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (!rule_keeps_progress(group->rule, target->config))
            continue;
        TAILQ_FOREACH (binding, &group->bindings, in_group) {
            const as_mono_time due = binding_get_due(binding);
            if (due.us > engine->mono.us && due.us < next.us)
                next = due;
        }
    }
    return next;
}

/*
 * What credentials reach. An incident stores the credentials that sent it. A rule acts on it if one
 * of them may trigger that rule on that target. What a credential may not trigger it may not
 * influence either: for an alert with rules beyond its reach it has its own incident, and cannot
 * change or end the shared one.
 *
 * Alertmanager's list and time have the credential "", which reaches everything.
 */

bool scope_is_whole(const struct as_engine *engine, const char *credential)
{
    return as_scope_is_whole(engine->config.scopes, engine->config.scope_count, credential);
}

bool scope_lets(const struct as_engine *engine, const char *credential, const struct as_rule *rule,
                const struct as_target_ref *ref)
{
    return as_scope_allows(engine->config.scopes, engine->config.scope_count, credential,
                           rule->name, rule->target->name, ref->id);
}

bool scope_allows(const struct as_engine *engine, const struct incident *incident,
                  const struct as_rule *rule, const struct as_target_ref *ref)
{
    for (uint32_t i = 0; i < incident->state.credential_count; i++) {
        if (scope_lets(engine, incident->state.credentials[i], rule, ref))
            return true;
    }
    return false;
}

/* An order has no rule. Orders to all targets need an unrestricted credential. */
bool scope_allows_order(const struct as_engine *engine, const char *credential,
                        const struct target *target)
{
    if (!target)
        return scope_is_whole(engine, credential);
    return as_scope_allows_target(engine->config.scopes, engine->config.scope_count, credential,
                                  target->config ? target->config->name : NULL, target->ref->id);
}

/* The first credential of the incident; NULL: one of them is not narrowed. */
static const char *scope_find_narrowed(const struct as_engine *engine,
                                       const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->state.credential_count; i++) {
        if (scope_is_whole(engine, incident->state.credentials[i]))
            return NULL;
    }
    return incident->state.credential_count > 0 ? incident->state.credentials[0] : NULL;
}

const char *scope_find_sender(const struct as_engine *engine, const struct target *target)
{
    struct group_tree *groups = (struct group_tree *)(uintptr_t)&target->groups;
    const char *first = NULL;
    struct group *group;
    struct binding *binding;
    if (engine->config.scope_count == 0)
        return NULL;
    if (commands_get(target)->is_set)
        return commands_get(target)->sender;
    if (target->open_bindings == 0)
        return target->sender;
    RB_FOREACH (group, group_tree, groups) {
        TAILQ_FOREACH (binding, &group->bindings, in_group) {
            const char *credential = scope_find_narrowed(engine, binding->incident);
            if (!credential)
                return NULL;
            first = first ? first : credential;
        }
    }
    return first;
}

const char *target_note_sender(const struct as_engine *engine, struct target *target)
{
    const char *sender = scope_find_sender(engine, target);
    if (!as_str_equal(sender, target->sender)) {
        char *former = target->sender;
        target->sender = sender ? as_xstrdup(sender) : NULL;
        free(former);
    }
    return target->sender;
}

static bool reaches_bound(const struct as_engine *engine, const char *credential,
                          const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct group *group = incident->bindings[i].group;
        if (scope_lets(engine, credential, group->rule, group->target->ref))
            return true;
    }
    return false;
}

/* True also if no rule matches: then the outcome says so. */
bool scope_reaches(struct as_engine *engine, const char *credential,
                   const struct incident *incident, const struct as_listed_alert *alert)
{
    if (scope_is_whole(engine, credential))
        return true;
    const struct as_rule *const *rules;
    const size_t count = as_rule_index_match(engine->index, alert->labels, alert->receivers,
                                             alert->receiver_count, &rules);
    size_t beyond = 0;
    for (size_t i = 0; i < count; i++) {
        const struct as_rule *rule = rules[i];
        const struct as_target_config *config = rule->target;
        AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
        if (!rule->enabled ||
            as_target_ref_new(config, alert->labels, alert->annotations, &ref, NULL) != 0)
            continue;
        if (scope_lets(engine, credential, rule, ref))
            return true;
        beyond++;
    }
    if (incident && incident->binding_count > 0) /* its rules may name other receivers */
        return reaches_bound(engine, credential, incident);
    return beyond == 0;
}

static bool is_by_annotations(const struct as_target_config *config)
{
    for (size_t i = 0; i < config->address_count; i++) {
        enum as_template_map map;
        size_t at = 0;
        while (as_template_find_next(config->address[i].value, &at, &map)) {
            if (map == AS_TEMPLATE_ANNOTATIONS)
                return true;
        }
    }
    return false;
}

static bool spans_rule(const struct as_engine *engine, const char *credential,
                       const struct as_rule *rule, const struct as_labels *labels)
{
    static const struct as_labels no_annotations = {0};
    const struct as_target_config *config = rule->target;
    if (as_scope_allows(engine->config.scopes, engine->config.scope_count, credential, rule->name,
                        config->name, "")) /* by the entry's name: any address */
        return true;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    if (is_by_annotations(config))
        return false;
    return as_target_ref_new(config, labels, &no_annotations, &ref, NULL) != 0 ||
           scope_lets(engine, credential, rule, ref);
}

/* The credential may trigger every rule that these labels can match, through any receiver and with
 * any annotations: nothing it says about the alert affects other rules. */
static bool scope_spans(const struct as_engine *engine, const char *credential,
                        const struct as_labels *labels)
{
    if (scope_is_whole(engine, credential))
        return true;
    const struct as_rule *const *rules;
    const size_t count = as_rule_index_match(engine->index, labels, NULL, 0, &rules);
    for (size_t i = 0; i < count; i++) {
        const struct as_rule *rule = rules[i];
        if (rule->enabled && !spans_rule(engine, credential, rule, labels))
            return false;
    }
    return true;
}

const char *scope_get_owner(const struct as_engine *engine, const char *credential,
                            const struct as_labels *labels)
{
    return scope_spans(engine, credential, labels) ? "" : credential;
}

bool scope_covers(const struct as_engine *engine, const char *credential,
                  const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct group *group = incident->bindings[i].group;
        if (!scope_lets(engine, credential, group->rule, group->target->ref))
            return false;
    }
    return true;
}

/*
 * All incidents: found by their alert, added and removed; several incidents of one alert.
 *
 * Also how much memory they use, and whether one more notification may add others. It counts what
 * grows with peers' input: incidents with their texts and bindings, and the targets that templates
 * make for them. All narrowed credentials together may use half of the memory, each an equal part
 * of it.
 */

#define TARGET_BYTES (sizeof(struct target) + sizeof(struct group) + 1024) /* texts, its index */

static size_t registry_measure_texts(const char *const *texts, size_t count)
{
    size_t bytes = count > 0 ? AS_ALLOC_EXTRA : 0;
    for (size_t i = 0; i < count; i++)
        bytes += sizeof(*texts) + AS_ALLOC_EXTRA + strlen(texts[i]) + 1;
    return bytes;
}

static size_t registry_measure_links(const char *generator_url, const char *external_url)
{
    return (generator_url ? AS_ALLOC_EXTRA + strlen(generator_url) + 1 : 0) +
           (external_url ? AS_ALLOC_EXTRA + strlen(external_url) + 1 : 0);
}

static size_t registry_measure(const struct incident *incident)
{
    return AS_ALLOC_EXTRA + sizeof(*incident) + as_labels_measure(incident->state.labels) +
           as_labels_measure(incident->state.annotations) +
           registry_measure_links(incident->state.generator_url, incident->state.external_url) +
           registry_measure_texts(incident->state.receivers, incident->state.receiver_count) +
           registry_measure_texts(incident->state.credentials, incident->state.credential_count) +
           incident->state.credential_count * (AS_ALLOC_EXTRA + sizeof(*incident->reported)) +
           incident->binding_count * (AS_ALLOC_EXTRA + sizeof(struct binding)) +
           incident->kept_count * (AS_ALLOC_EXTRA + sizeof(struct as_progress));
}

static void uncharge(struct as_engine *engine, struct incident *incident)
{
    as_shares_give(&engine->incident_shares, incident->share, incident->charged);
    incident->share = NULL;
    incident->charged = 0;
}

/* A target counts for the incident that was bound to it first. */
static size_t measure_targets(const struct incident *incident)
{
    size_t count = 0;
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct binding *binding = &incident->bindings[i];
        const struct as_target_config *config = binding->group->target->config;
        count +=
            config && config->is_templated && binding == TAILQ_FIRST(&binding->group->bindings);
    }
    return count * TARGET_BYTES;
}

/* Charges the incident to its sender, if that is narrowed. */
static void charge(struct as_engine *engine, struct incident *incident)
{
    const char *sender =
        engine->config.scope_count > 0 ? scope_find_narrowed(engine, incident) : NULL;
    uncharge(engine, incident);
    if (!sender)
        return;
    incident->charged = incident->bytes + measure_targets(incident);
    incident->share = as_shares_take(&engine->incident_shares, sender, incident->charged);
}

void room_account(struct as_engine *engine, struct incident *incident)
{
    engine->incident_bytes -= incident->bytes;
    incident->bytes = registry_measure(incident);
    engine->incident_bytes += incident->bytes;
    charge(engine, incident);
}

struct incident *incident_find_first(const struct as_engine *engine, const struct as_digest *digest)
{
    struct incident key = {.state.key = {.digest = *digest, .owner = ""}};
    struct incident_tree *tree = (struct incident_tree *)(uintptr_t)&engine->incidents;
    struct incident *first = RB_NFIND(incident_tree, tree, &key);
    return first && as_digest_compare(&first->state.key.digest, digest) == 0 ? first : NULL;
}

struct incident *incident_find_next(struct incident *incident)
{
    struct incident *next = RB_NEXT(incident_tree, NULL, incident);
    return next && as_digest_compare(&next->state.key.digest, &incident->state.key.digest) == 0
               ? next
               : NULL;
}

struct incident *incident_find(const struct as_engine *engine, const struct as_digest *digest,
                               const char *owner)
{
    struct incident key = {.state.key = {.digest = *digest, .owner = owner}};
    struct incident_tree *tree = (struct incident_tree *)(uintptr_t)&engine->incidents;
    return RB_FIND(incident_tree, tree, &key); /* only searches */
}

bool incident_has_receiver(const struct incident *incident, const char *receiver)
{
    for (uint32_t i = 0; i < incident->state.receiver_count; i++) {
        if (strcmp(incident->state.receivers[i], receiver) == 0)
            return true;
    }
    return false;
}

void incident_insert(struct as_engine *engine, struct incident *incident)
{
    RB_INSERT(incident_tree, &engine->incidents, incident);
    room_account(engine, incident);
    if (incident->state.is_open) {
        TAILQ_INSERT_TAIL(&engine->open, incident, in_order);
        engine->open_count++;
    } else {
        TAILQ_INSERT_TAIL(&engine->resolved, incident, in_order);
    }
}

/* Takes the incident out of the tree and the lists. It is freed at the next step, as effects point
 * to it. */
void incident_bury(struct as_engine *engine, struct incident *incident)
{
    if (incident->state.is_open) {
        TAILQ_REMOVE(&engine->open, incident, in_order);
        engine->open_count--;
    } else {
        TAILQ_REMOVE(&engine->resolved, incident, in_order);
    }
    engine->incident_bytes -= incident->bytes;
    incident->bytes = 0;
    uncharge(engine, incident);
    RB_REMOVE(incident_tree, &engine->incidents, incident);
    TAILQ_INSERT_TAIL(&engine->graveyard, incident, in_order);
}

/* Targets with a plain address do not count: the rule files limit their number. Nor do those of
 * lists, which have limits of their own. */
size_t room_get_used(const struct as_engine *engine)
{
    const size_t templated = engine->target_count - engine->named_count - engine->listed_count;
    return engine->incident_bytes + templated * TARGET_BYTES;
}

/* Whether there would be something new or more to remember. */
static bool brings_more(const struct as_engine *engine, const struct as_notification *notification,
                        const struct as_alert *alert)
{
    const char *credential = notification->credential;
    const char *owner = scope_get_owner(engine, credential, alert->labels);
    const struct incident *incident = incident_find(engine, &alert->digest, owner);
    if (!incident || alert->status == AS_ALERT_RESOLVED)
        return !incident;
    const struct as_incident_state *state = &incident->state;
    return !incident_has_receiver(incident, notification->receiver) ||
           as_labels_measure(alert->labels) + as_labels_measure(alert->annotations) +
                   registry_measure_links(state->generator_url ? NULL : alert->generator_url,
                                          state->external_url ? NULL : notification->external_url) >
               as_labels_measure(state->labels) + as_labels_measure(state->annotations);
}

const char *as_engine_find_narrowed(const struct as_engine *engine, const char *credential)
{
    return scope_is_whole(engine, credential) ? NULL : credential;
}

uint64_t as_engine_get_part(const struct as_engine *engine, const char *credential, uint64_t most)
{
    return as_scope_get_part(engine->config.scopes, engine->config.scope_count, credential, most);
}

/* Whether the credential may bring more. */
static bool registry_has_room(const struct as_engine *engine, const char *credential)
{
    const uint64_t most = engine->config.incident_bytes_max;
    if (most == 0)
        return true;
    return room_get_used(engine) < most && (scope_is_whole(engine, credential) ||
                                            as_shares_get(&engine->incident_shares, credential) <
                                                as_engine_get_part(engine, credential, most));
}

bool as_engine_has_room(const struct as_engine *engine, const struct as_notification *notification)
{
    if (registry_has_room(engine, notification->credential))
        return true;
    for (size_t i = 0; i < notification->alert_count; i++) {
        const struct as_alert *alert = &notification->alerts[i];
        if (!alert->problem && brings_more(engine, notification, alert))
            return false;
    }
    return true;
}

/*
 * Several incidents of one alert: one that is shared by all credentials that may trigger every rule
 * of the alert, and one for each other credential (engine_incidents.c). What a rule has done for
 * one of them counts for all of them: `once` is once.
 */

static struct as_progress *find_kept(struct incident *incident, const struct as_progress *progress)
{
    for (uint32_t i = 0; i < incident->kept_count; i++) {
        struct as_progress *kept = &incident->kept[i];
        if (strcmp(kept->rule, progress->rule) == 0 &&
            as_target_is_same(kept->target, progress->target))
            return kept;
    }
    return NULL;
}

static void owners_share_progress(struct incident *incident, const struct incident *from)
{
    for (uint32_t i = 0; i < from->kept_count; i++) {
        const struct as_progress *progress = &from->kept[i];
        struct as_progress *kept = find_kept(incident, progress);
        if (!kept) {
            incident->kept = as_xrealloc_array(incident->kept, incident->kept_count + 1,
                                               sizeof(*incident->kept));
            kept = &incident->kept[incident->kept_count++];
            *kept = *progress;
            kept->rule = as_xstrdup(progress->rule);
            kept->target = as_xstrdup(progress->target);
        } else if (progress->steps > kept->steps) {
            kept->steps = progress->steps;
            kept->applied = progress->applied;
            kept->origin = progress->origin;
        }
    }
}

void owners_inherit(const struct as_engine *engine, struct binding *binding)
{
    struct incident *other =
        binding->incident->always
            ? NULL
            : incident_find_first(engine, &binding->incident->state.key.digest);
    for (; other; other = incident_find_next(other)) {
        if (starts_later(binding->incident->state.starts_at, other->state.starts_at))
            continue; /* another stretch of firing */
        for (uint32_t i = 0; other != binding->incident && i < other->binding_count; i++) {
            const struct binding *same = &other->bindings[i];
            if (same->group != binding->group || same->steps <= binding->steps)
                continue;
            binding->steps = same->steps;
            binding->applied = same->applied;
            binding->origin = same->origin;
        }
    }
}

static bool is_configured(const struct as_engine *engine, const char *credential)
{
    for (size_t i = 0; i < engine->config.scope_count; i++) {
        if (strcmp(engine->config.scopes[i].credential, credential) == 0)
            return true;
    }
    return credential[0] == '\0';
}

/* "" if one of its senders spans the alert; else its first sender that is configured. */
static const char *registry_find_owner(const struct as_engine *engine,
                                       const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->state.credential_count; i++) {
        if (scope_spans(engine, incident->state.credentials[i], incident->state.labels))
            return "";
    }
    for (uint32_t i = 0; i < incident->state.credential_count; i++) {
        if (is_configured(engine, incident->state.credentials[i]))
            return incident->state.credentials[i];
    }
    return incident->state.key.owner; /* no sender is left: keeps its owner */
}

bool owners_are_right(const struct as_engine *engine, const struct incident *incident)
{
    return strcmp(registry_find_owner(engine, incident), incident->state.key.owner) == 0;
}

static void change_owner(struct as_engine *engine, struct incident *incident, const char *owner)
{
    struct incident *other = incident_find(engine, &incident->state.key.digest, owner);
    char *copy = as_xstrdup(owner);
    const struct as_incident_key former = {
        incident->state.key.digest, as_arena_strdup(&engine->arena, incident->state.key.owner)};
    effect_add(engine, AS_EFFECT_DELETE_INCIDENT)->incident_key = former;
    if (other && other->state.is_open) {
        owners_share_progress(other, incident);
        for (uint32_t i = 0; i < incident->state.credential_count; i++)
            (void)incident_add_credential(other, incident->state.credentials[i]);
        effect_put_incident(engine, other);
        incident_bury(engine, incident);
        free(copy);
        return;
    }
    if (other) {
        effect_delete_incident(engine, other);
        incident_bury(engine, other);
    }
    RB_REMOVE(incident_tree, &engine->incidents, incident);
    free((char *)(uintptr_t)incident->state.key.owner);
    incident->state.key.owner = copy;
    RB_INSERT(incident_tree, &engine->incidents, incident);
    effect_put_incident(engine, incident);
}

/* Gives one of several senders an incident of its own. */
static void split_off(struct as_engine *engine, const struct incident *incident,
                      const char *credential, as_mono_time reported)
{
    if (incident_find(engine, &incident->state.key.digest, credential))
        return;
    struct incident *own = as_xmalloc(sizeof(*own));
    *own = *incident;
    own->state.key.owner = as_xstrdup(credential);
    own->serial = ++engine->next_serial;
    own->bytes = own->charged = 0;
    own->share = NULL;
    own->state.receivers = own->state.credentials = NULL;
    own->state.receiver_count = own->state.credential_count = 0;
    own->reported = NULL;
    for (size_t i = 0; i < incident->state.receiver_count; i++)
        incident_add_receiver(own, incident->state.receivers[i]);
    (void)incident_add_credential(own, credential);
    own->reported[0] = reported;
    own->state.labels = as_labels_copy(incident->state.labels);
    own->state.annotations = as_labels_copy(incident->state.annotations);
    own->state.generator_url = own->state.external_url = NULL;
    (void)incident_take_links(own, incident->state.generator_url, incident->state.external_url);
    own->kept = NULL;
    own->kept_count = 0;
    owners_share_progress(own, incident);
    incident_insert(engine, own);
    effect_put_incident(engine, own);
}

/* Leaves only the first credential. */
static void registry_split(struct as_engine *engine, struct incident *incident)
{
    while (incident->state.credential_count > 1) {
        const char *credential = incident->state.credentials[--incident->state.credential_count];
        split_off(engine, incident, credential,
                  incident->reported[incident->state.credential_count]);
        free((char *)(uintptr_t)credential);
    }
}

/* A credential that now spans its alert uses the shared incident; its own one would get no more
 * reports. A shared incident without such a sender becomes its senders' own. */
void owners_find(struct as_engine *engine)
{
    struct incident *incident, *next;
    const size_t effects = engine->effect_count;
    TAILQ_FOREACH_SAFE (incident, &engine->open, in_order, next) {
        if (owners_are_right(engine, incident))
            continue;
        const char *owner = registry_find_owner(engine, incident);
        if (owner[0] != '\0')
            registry_split(engine, incident);
        change_owner(engine, incident, owner);
    }
    if (engine->effect_count > effects)
        effect_commit(engine);
}
