/*
 * A label set (or a set of annotations): immutable, sorted by name, in one block of memory. An
 * absent label is the empty string, as in Prometheus. The texts follow the array in its order, each
 * with its NUL: `name NUL value NUL` ...; `bytes` counts nothing else.
 */
#ifndef ALERTSCALER_MODEL_LABELS_H
#define ALERTSCALER_MODEL_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>

struct as_label {
    const char *name;
    const char *value;
};

struct as_labels {
    uint32_t count;
    uint32_t bytes; /* of names and values with their NULs */
    struct as_label items[];
};

/* Copies `pairs` (in any order). 0; -EEXIST if a name comes twice; -EMSGSIZE above 16 MiB. */
int as_labels_new(const struct as_label *pairs, size_t count,
                  struct as_labels **labels_out) AS_MUST_USE;
/* The same in memory of the arena: not to be freed. */
int as_labels_new_in(struct as_arena *arena, const struct as_label *pairs, size_t count,
                     const struct as_labels **labels_out) AS_MUST_USE;
struct as_labels *as_labels_free(struct as_labels *labels);
struct as_labels *as_labels_copy(const struct as_labels *labels) AS_MUST_USE;
/* A copy as memory of the arena. */
struct as_labels *as_labels_copy_to(struct as_arena *arena,
                                    const struct as_labels *labels) AS_MUST_USE;

const char *as_labels_get(const struct as_labels *labels, const char *name);  /* "" if absent */
const char *as_labels_find(const struct as_labels *labels, const char *name); /* NULL if absent */
size_t as_labels_measure(const struct as_labels *labels); /* bytes of memory; NULL: 0 */
bool as_labels_equal(const struct as_labels *a, const struct as_labels *b);

/* The label of the alerts that alertscaler sends itself (decide/notice.h). An alert that has it,
 * whatever its value, comes from an alertscaler and must never lead to a rule: it would be a loop.
 */
#define AS_OWN_ALERT_LABEL "alertscaler_instance"
bool as_labels_are_own(const struct as_labels *labels) AS_MUST_USE;

/* Grafana's annotation of an alert whose state does not come from the result of its query: NoData,
 * Error, MissingSeries, Paused, RuleDeleted, Updated
 * (https://grafana.com/docs/grafana/latest/alerting/fundamentals/alert-rule-evaluation/). */
#define AS_STATE_REASON "grafana_state_reason"
/* The value of this annotation; NULL: the annotations (NULL: none) lack it. */
const char *as_annotations_find_state(const struct as_labels *annotations);

/* Whether Kubernetes takes the text as a label's key, as a label's value (apimachinery,
 * IsQualifiedName and IsValidLabelValue). */
bool as_label_is_kubernetes_key(const char *text) AS_MUST_USE;
bool as_label_is_kubernetes_value(const char *text) AS_MUST_USE;

/* Alertmanager's fingerprint: FNV-1a 64 over the sorted labels, each `name 0xFF value 0xFF`. */
uint64_t as_labels_get_fingerprint(const struct as_labels *labels);

AS_DEFINE_CLEANUP(struct as_labels *, as_labels_free)

/*
 * An alert's identity: the SHA-256 of its label set, sorted by name, each label `name NUL value
 * NUL`. A sender cannot construct two label sets with the same digest.
 */

/* Costs more to create than one digest: use one hasher for a whole document. */
struct as_labels_hasher;

struct as_labels_hasher *as_labels_hasher_new(void) AS_MUST_USE;
struct as_labels_hasher *as_labels_hasher_free(struct as_labels_hasher *hasher);
struct as_digest as_labels_hasher_get(struct as_labels_hasher *hasher,
                                      const struct as_labels *labels);

struct as_digest as_digest_get(const void *data, size_t size);         /* of any bytes */
struct as_digest as_labels_get_digest(const struct as_labels *labels); /* of one set alone */

AS_DEFINE_CLEANUP(struct as_labels_hasher *, as_labels_hasher_free)

#endif
