/*
 * What credentials reach with their incidents.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_SCOPES_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_SCOPES_H

#include "engine_state.h"

bool scope_is_whole(const struct as_engine *engine, const char *credential);
/* The credential may trigger the rule there. */
bool scope_lets(const struct as_engine *engine, const char *credential, const struct as_rule *rule,
                const struct as_target_ref *ref);
/* One of the incident's credentials may trigger the rule there. */
bool scope_allows(const struct as_engine *engine, const struct incident *incident,
                  const struct as_rule *rule, const struct as_target_ref *ref);
/* The first credential of the incident; NULL: one of them is not narrowed. */
const char *scope_find_narrowed(const struct as_engine *engine, const struct incident *incident);
/* The narrowed credential (of several: the first) whose alerts alone cause work for the target.
 * Without open incidents: that of the last ones. NULL: none. */
const char *scope_find_sender(const struct as_engine *engine, const struct target *target);
/* The same. Keeps the answer for the time after the last incident: valid until the next call. */
const char *target_note_sender(const struct as_engine *engine, struct target *target);
/* The credential may order something for the target (NULL: all). */
bool scope_allows_order(const struct as_engine *engine, const char *credential,
                        const struct target *target);
/* The credential may trigger some rule that the alert, or its incident (NULL: none), matches. */
bool scope_reaches(struct as_engine *engine, const char *credential,
                   const struct incident *incident, const struct as_listed_alert *alert);
/* The credential may trigger every rule that these labels can match, through any receiver and with
 * any annotations: nothing it says about the alert affects other rules. */
bool scope_spans(const struct as_engine *engine, const char *credential,
                 const struct as_labels *labels);
/* The owner of the alert's incident that the credential speaks about. */
const char *scope_get_owner(const struct as_engine *engine, const char *credential,
                            const struct as_labels *labels);
/* The credential may trigger every rule of the incident. */
bool scope_covers(const struct as_engine *engine, const char *credential,
                  const struct incident *incident);
bool incident_add_credential(struct incident *incident, const char *credential);

#endif
