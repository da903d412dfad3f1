/*
 * All targets and incidents, and what connects them: bindings and groups, credentials and their
 * reach, and the history of a target.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_REGISTRY_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_REGISTRY_H

#include "engine_state.h"

/*
 * All targets: their entries, phases, deadlines and back-off.
 */

/* An incident without `every` and without a lock is evaluated again this often. */
#define REEVALUATE_US (60 * AS_US_PER_S)

struct as_target_ref *target_ref_of_id(const char *id);
struct target *target_find_id(const struct as_engine *engine, const char *id);
struct target *target_get(struct as_engine *engine, struct as_target_ref *ref_taken);
void target_set_config(struct as_engine *engine, struct target *target,
                       const struct as_target_config *config);
/* The target of an address of this entry. NULL: it belongs to another entry: one with a plain
 * address, else the one in use. */
struct target *target_claim(struct as_engine *engine, const struct as_target_config *config,
                            struct as_target_ref *ref_taken);
/* If idle, the target is evaluated when the next target settles, or when the step ends. */
void target_make_ready(struct as_engine *engine, struct target *target);
void target_set_deadline(struct as_engine *engine, struct target *target, as_mono_time deadline);
void target_set_deadline_in(struct as_engine *engine, struct target *target, int64_t us);
void target_set_phase(struct as_engine *engine, struct target *target, enum phase phase);
/* The target waits after a failure, despite any event. */
bool target_is_backing_off(const struct as_engine *engine, const struct target *target);
/* No entry has the target now, and that of its policy may come back (decide/ruleset.h). */
bool target_is_awaited(const struct as_engine *engine, const struct target *target);
/* Its entry; after new rules and after a restart the one of the noted name, if that allows the
 * address. NULL: none. */
const struct as_target_config *target_find_entry(const struct as_engine *engine,
                                                 const struct target *target);
/* Notes its entry's name, by which it is found again. Nothing without an entry. To be stored. */
void target_note_entry(struct target *target);
/* Gives it that entry. False: none. */
bool target_recover_config(struct as_engine *engine, struct target *target);
/* The pool of a node group; NULL: it is in none. */
struct target *target_find_pool(const struct as_engine *engine, const struct target *target);
/* NULL: it is no node group. */
const struct as_nodes_config *target_get_nodes(const struct target *target);
void target_set_keep(const struct as_engine *engine, struct target *target);
void target_back_off(struct as_engine *engine, struct target *target, enum as_reason outcome,
                     int64_t retry_after_us);
void target_wake(struct as_engine *engine, struct target *target);
/* `next`, or earlier if needed to notice another object of the same name. */
as_mono_time target_limit_observation(const struct as_engine *engine, const struct target *target,
                                      as_mono_time next);
/* New rules: every target loses its entry; those with a plain address get it again. */
void targets_reset_entries(struct as_engine *engine);
/* The target of a plain address gets its entry. NULL: it belongs to another entry. */
struct target *target_make_named(struct as_engine *engine, const struct as_target_config *config);
/* The entries of removed policies have no targets any more. */
void targets_forget_members(struct as_engine *engine, const struct as_ruleset *next);
void targets_deinit(struct as_engine *engine);
/* The targets of an entry. */
const struct member_list *target_get_members(const struct as_engine *engine,
                                             const struct as_target_config *config);

/*
 * All incidents, and the memory that they use.
 */

void room_account(struct as_engine *engine, struct incident *incident); /* after its change */
/* All incidents of one alert: the first, and the next ones; NULL: no more. */
struct incident *incident_find_first(const struct as_engine *engine,
                                     const struct as_digest *digest);
struct incident *incident_find_next(struct incident *incident);
struct incident *incident_find(const struct as_engine *engine, const struct as_digest *digest,
                               const char *owner);
bool incident_has_receiver(const struct incident *incident, const char *receiver);
void incident_insert(struct as_engine *engine, struct incident *incident);
/* Takes the incident out of the tree and the lists. It is freed at the next step, as effects point
 * to it. */
void incident_bury(struct as_engine *engine, struct incident *incident);
size_t room_get_used(const struct as_engine *engine); /* bytes */

/*
 * Several incidents of one alert.
 */

/* The same for one binding, from the alert's other incidents. */
void owners_inherit(const struct as_engine *engine, struct binding *binding);
/* After new rules or credentials, while no incident is bound: finds each owner. */
void owners_find(struct as_engine *engine);
bool owners_are_right(const struct as_engine *engine, const struct incident *incident);

/*
 * What credentials reach with their incidents.
 */

bool scope_is_whole(const struct as_engine *engine, const char *credential);
/* The credential may trigger the rule there. */
bool scope_lets(const struct as_engine *engine, const char *credential, const struct as_rule *rule,
                const struct as_target_ref *ref);
/* One of the incident's credentials may trigger the rule there. */
bool scope_allows(const struct as_engine *engine, const struct incident *incident,
                  const struct as_rule *rule, const struct as_target_ref *ref);
/* The narrowed credential (of several: the first) whose order or alerts alone cause work for the
 * target. Without open incidents: that of the last ones. NULL: none. */
const char *scope_find_sender(const struct as_engine *engine, const struct target *target);
/* The same. Keeps the answer for the time after the last incident: valid until the next call. */
const char *target_note_sender(const struct as_engine *engine, struct target *target);
/* The credential may order something for the target (NULL: all). */
bool scope_allows_order(const struct as_engine *engine, const char *credential,
                        const struct target *target);
/* The credential may trigger some rule that the alert, or its incident (NULL: none), matches. */
bool scope_reaches(struct as_engine *engine, const char *credential,
                   const struct incident *incident, const struct as_listed_alert *alert);
/* The owner of the alert's incident that the credential speaks about. */
const char *scope_get_owner(const struct as_engine *engine, const char *credential,
                            const struct as_labels *labels);
/* The credential may trigger every rule of the incident. */
bool scope_covers(const struct as_engine *engine, const char *credential,
                  const struct incident *incident);

/*
 * What a rule may do, and when, for the incidents that it is bound to.
 */

struct group *group_find(struct target *target, const char *rule);
/* Creates it if necessary. */
struct group *group_get(struct target *target, const struct as_rule *rule);
bool rule_keeps_progress(const struct as_rule *rule, const struct as_target_config *config);
bool binding_is_used_up(const struct binding *binding);
as_mono_time binding_get_due_unheld(const struct binding *binding);
as_mono_time binding_get_due(const struct binding *binding); /* never while its incident is held */
as_mono_time bindings_get_next_due(const struct as_engine *engine, struct target *target);

/*
 * Which open incident proposes something on which target; reload.
 */

enum bind_result { BIND_OK, BIND_NO_RULE, BIND_DISABLED, BIND_NOT_ALLOWED, BIND_FORBIDDEN };

enum bind_result bindings_check(struct as_engine *engine, const struct as_labels *labels,
                                const char *receiver);
enum bind_result bindings_make(struct as_engine *engine, struct incident *incident,
                               const struct as_labels *labels, const struct as_labels *annotations);
void bindings_drop(struct as_engine *engine, struct incident *incident);
void bindings_remake(struct as_engine *engine, struct incident *incident);
void bindings_remake_all(struct as_engine *engine); /* after new rules */
/* The same for the changes of `next`. False: bindings_remake_all is needed. Adds the targets whose
 * rules have changed. */
bool bindings_remake_some(struct as_engine *engine, const struct as_ruleset *next,
                          struct target_array *targets);

/*
 * A target's history: its changes and recommendations.
 */

/* The changes, ascending by time. */
const struct as_past_event *history_get_events(const struct target *target, size_t *count_out);
int64_t history_get_span(const struct as_engine *engine); /* of the stored changes */
/* True: it is to be committed now; else later, or no window needs it. */
bool history_add_recommendation(struct as_engine *engine, struct target *target, int32_t replicas);
void history_on_deadline(struct as_engine *engine);
void history_begin(struct as_engine *engine, struct target *target, int32_t replicas);

/*
 * Which incidents a change was a step of.
 */

void steps_count(struct as_engine *engine, struct target *target, const struct intent *intent);

#endif
