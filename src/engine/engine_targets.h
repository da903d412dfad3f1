/*
 * All targets: their entries, phases, deadlines and back-off.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_TARGETS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_TARGETS_H

#include "engine_state.h"

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
void target_hasten(struct as_engine *engine, struct target *target);
/* `next`, or earlier if needed to notice another object of the same name. */
as_mono_time target_limit_look(const struct as_engine *engine, const struct target *target,
                               as_mono_time next);
/* New rules: every target loses its entry; those with a plain address get it again. */
void targets_reset_entries(struct as_engine *engine);
void targets_free_places(struct as_engine *engine);
/* The address of a stored target: with its id of today. */
struct as_target_ref *target_ref_of_stored(const struct as_engine *engine,
                                           const struct as_target_ref *stored);

#endif
