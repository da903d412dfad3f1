/*
 * A target's identity after templates: the address with all values known, and its id.
 *
 *   kubernetes/<cluster>/<apiVersion>/<kind>/<namespace>/<name>
 *   node_group/<provider>/<where it is>/<name, or url where there is no name>
 *
 * Where it is: the values of the keys of the place, as far as they are given, by their rank.
 *
 * The id is shown, and is what the patterns of credentials match. Which target it is says its key:
 * two ids of one object (another version of the API, another spelling of a URL) have the same.
 */
#ifndef ALERTSCALER_CORE_TARGET_H
#define ALERTSCALER_CORE_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/core/labels.h>
#include <alertscaler/core/ruleset.h>

#define AS_TARGET_ID_MAX 1024 /* bytes of an id, with NUL */

struct as_target_field {
    const char *key;
    const char *value;
};

struct as_target_ref { /* one block of memory */
    const struct as_target_kind *kind;
    size_t field_count;
    const char *id;
    const char *key; /* of the id */
    struct as_target_field fields[];
};

/* The key of an id, for free(); of what is no id, the same text. */
char *as_target_key_make(const char *id) AS_MUST_USE;
bool as_target_is_same(const char *id, const char *other) AS_MUST_USE;

/*
 * Fills the templates of `config` from an alert. 0; or AS_TARGET_NOT_ALLOWED with an error that
 * says why: a missing label, an empty or too long result, a name that Kubernetes would not accept,
 * one outside `allow`.
 */
enum as_target_outcome { AS_TARGET_OK, AS_TARGET_NOT_ALLOWED };
int as_target_ref_new(const struct as_target_config *config, const struct as_labels *labels,
                      const struct as_labels *annotations, struct as_target_ref **ref_out,
                      struct as_error *error) AS_MUST_USE;
/* From values that were checked before (the store's); everything is copied. */
struct as_target_ref *as_target_ref_make(const struct as_target_kind *kind, const char *id,
                                         const struct as_target_field *fields,
                                         size_t field_count) AS_MUST_USE;
struct as_target_ref *as_target_ref_copy(const struct as_target_ref *ref) AS_MUST_USE;

/* Whether an alert could give the entry the target of this id, in whatever spelling. */
bool as_target_may_have_id(const struct as_target_config *config, const char *id) AS_MUST_USE;

/* Whether it could give one of an id that the pattern (core/scope.h) matches. */
bool as_target_may_match_id(const struct as_target_config *config, const char *pattern) AS_MUST_USE;

/* NULL where a key of an address may have this value (templates filled in); else static text that
 * says what is expected. */
const char *as_target_check_value(const struct as_target_kind *kind, const char *key,
                                  const char *value);

struct as_target_ref *as_target_ref_free(struct as_target_ref *ref);
const char *as_target_ref_get(const struct as_target_ref *ref,
                              const char *key); /* "" where absent */

AS_DEFINE_CLEANUP(struct as_target_ref *, as_target_ref_free)

#endif
