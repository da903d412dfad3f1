/*
 * The part of decision documents that is about a pool: what was seen of its cluster, and what the
 * plan made of it. Amounts are lists of numbers in the order of docs/decision.md: millicores,
 * bytes, bytes, pods, then extended resources.
 */
#ifndef ALERTSCALER_SRC_DECIDE_DECISION_SURVEY_H
#define ALERTSCALER_SRC_DECIDE_DECISION_SURVEY_H

#include <alertscaler/decide/decide.h>
#include <alertscaler/doc/json_writer.h>

#include <alertscaler/doc/json_reader.h>

#define DECISION_GROUPS_MAX 10000 /* of a cluster */
#define DECISION_NODES_MAX  (2 * AS_SURVEY_NODES_MAX + AS_SURVEY_DRAINED_MAX)

/* Words, each list with a NULL at the end; in the order in which they are written. */
extern const struct as_read_word decision_unchecked[]; /* bits */
extern const struct as_read_word decision_effects[];   /* bits */
extern const struct as_read_word decision_evictions[];
extern const struct as_read_word decision_operators[];
extern const struct as_read_word decision_template_sources[];

/* Readers. `survey` is filled in parts; what it points to is memory of the arena. */
struct survey_reader {
    struct as_arena *arena;
    bool has_v3; /* fields that documents have from version 3 on */
    struct as_survey *survey;
};

void decision_read_pool(struct as_reader *target, struct as_arena *arena,
                        struct as_decide_input *input);
/* What `observed`, `history` and the document have of it. Nothing is taken where `observed` has
 * neither `groups` nor `pool_error`. */
void decision_read_survey(struct as_reader *observed, struct as_arena *arena,
                          struct as_decide_input *input);
void decision_read_memory(struct as_reader *history, struct survey_reader *reader);
void decision_read_seed(struct as_reader *root, struct as_survey *survey);

void decision_read_shapes(struct as_reader *observed, struct survey_reader *reader);
void decision_read_nodes(struct as_reader *observed, struct survey_reader *reader);
void decision_read_groups(struct as_reader *observed, struct survey_reader *reader);

/* Parts that several of these share. */
void decision_read_amounts(struct as_reader *reader, const char *name,
                           const struct survey_reader *survey, struct as_resources *amounts_out);
const struct as_labels *decision_read_labels(struct as_reader *reader, const char *name,
                                             struct as_arena *arena);
const struct as_taint *decision_read_taints(struct as_reader *reader, struct as_arena *arena,
                                            size_t *count_out);
const struct as_host_port *decision_read_ports(struct as_reader *reader, struct as_arena *arena,
                                               size_t *count_out);
/* [[shape, count], ...] */
const struct as_survey_pods *decision_read_pods(struct as_reader *reader, const char *name,
                                                const struct survey_reader *survey,
                                                size_t *count_out);
uint64_t decision_read_hex(struct as_reader *reader, const char *name);
unsigned decision_read_bits(struct as_reader *reader, const char *name,
                            const struct as_read_word *words);
/* Nothing is set where the member is absent. */
void decision_read_text(struct as_reader *reader, const char *name, struct as_arena *arena,
                        const char **text_out);
const char *const *decision_read_texts(struct as_reader *reader, const char *name,
                                       struct as_arena *arena, size_t *count_out);

/* Writers, each of the members of an object whose keys ascend; `write_*_to` of those between two
 * others. */
void decision_write_pool(struct as_json_writer *json, const struct as_pool_config *pool);
void decision_write_budgets_to_kept(struct as_json_writer *json, const struct as_survey *survey);
void decision_write_leaving(struct as_json_writer *json, const struct as_survey *survey);
void decision_write_pending_to_plan(struct as_json_writer *json,
                                    const struct as_decide_input *input);
void decision_write_nodes(struct as_json_writer *json, const struct as_survey *survey);
void decision_write_resources_to_shapes(struct as_json_writer *json,
                                        const struct as_survey *survey);
void decision_write_asked(struct as_json_writer *json, const struct as_asked *asked, size_t count);
void decision_write_unneeded(struct as_json_writer *json, const struct as_unneeded *unneeded,
                             size_t count);
void decision_write_time(struct as_json_writer *json, const char *key, as_maybe_time time);
void decision_write_kept(struct as_json_writer *json, const uint64_t kept[AS_STAY_COUNT]);
void decision_write_pods(struct as_json_writer *json, const char *key,
                         const struct as_survey_pods *pods, size_t count);

/* The answer's. */
void decision_write_groups(struct as_json_writer *json, const struct as_decide_input *input,
                           const struct as_decision *decision);
void decision_write_homeless_to_kept(struct as_json_writer *json, const struct as_pool_plan *plan);
void decision_write_options_to_overdue(struct as_json_writer *json,
                                       const struct as_decide_input *input,
                                       const struct as_decision *decision);
void decision_write_skipped(struct as_json_writer *json, const struct as_decide_input *input);
void decision_write_take(struct as_json_writer *json, const struct as_decide_input *input,
                         const struct as_decision *decision);

#endif
