/*
 * What the modules of decision documents share: decision_decode.c, decision_encode.c,
 * decision_snapshot.c. Amounts of snapshots are lists of numbers in the order of docs/decision.md:
 * millicores, bytes, bytes, pods, then extended resources.
 */
#ifndef ALERTSCALER_SRC_DECIDE_DECISION_PRIVATE_H
#define ALERTSCALER_SRC_DECIDE_DECISION_PRIVATE_H

#include <alertscaler/decide/decide.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_writer.h>

/* Words, each list with a NULL at the end: decision_decode.c. */
extern const struct as_read_word as_decision_phases[];
extern const struct as_read_word as_decision_selects[];
extern const struct as_read_word as_decision_policy_types[];
extern const struct as_read_word as_decision_resources[];

/* `approval` of a proposal. */
void as_decision_write_approval(struct as_json_writer *json, const struct as_approval_terms *terms);

/* Snapshots: decision_snapshot.c. */

/* Readers. `snapshot` is filled in parts; what it points to is memory of the arena. */
struct snapshot_reader {
    struct as_arena *arena;
    bool has_v3; /* fields that documents have from version 3 on */
    struct as_snapshot *snapshot;
};

void decision_read_pool(struct as_reader *target, struct as_arena *arena,
                        struct as_decide_input *input);
/* What `observed`, `history` and the document have of it. Nothing is taken where `observed` has
 * neither `groups` nor `pool_error`. */
void decision_read_snapshot(struct as_reader *observed, struct as_arena *arena,
                            struct as_decide_input *input);
void decision_read_memory(struct as_reader *history, struct snapshot_reader *reader);
void decision_read_seed(struct as_reader *root, struct as_snapshot *snapshot);

/* Nothing is set where the member is absent. */
void decision_read_text(struct as_reader *reader, const char *name, struct as_arena *arena,
                        const char **text_out);
const char *const *decision_read_texts(struct as_reader *reader, const char *name,
                                       struct as_arena *arena, size_t *count_out);

/* Writers, each of the members of an object whose keys ascend; `write_*_to` of those between two
 * others. */
void decision_write_pool(struct as_json_writer *json, const struct as_pool_config *pool);
void decision_write_budgets_to_kept(struct as_json_writer *json,
                                    const struct as_snapshot *snapshot);
void decision_write_leaving(struct as_json_writer *json, const struct as_snapshot *snapshot);
void decision_write_pending_to_plan(struct as_json_writer *json,
                                    const struct as_decide_input *input);
void decision_write_nodes(struct as_json_writer *json, const struct as_snapshot *snapshot);
void decision_write_resources_to_pod_classes(struct as_json_writer *json,
                                             const struct as_snapshot *snapshot);
void decision_write_asked(struct as_json_writer *json, const struct as_asked *asked, size_t count);
void decision_write_unneeded(struct as_json_writer *json, const struct as_unneeded *unneeded,
                             size_t count);
void decision_write_time(struct as_json_writer *json, const char *key, as_maybe_time time);
void decision_write_kept(struct as_json_writer *json, const uint64_t kept[AS_STAY_COUNT]);
void decision_write_pods(struct as_json_writer *json, const char *key,
                         const struct as_snapshot_pods *pods, size_t count);

#endif
