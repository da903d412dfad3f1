/*
 * A target's identity after templates: the address with all values known, and its id.
 *
 *   kubernetes/<cluster>/<apiVersion>/<kind>/<namespace>/<name>[:<what is sized>]
 *   node_group/<provider>/<place>/<name, or url>
 *
 * The url stands in the id if there is no name, or if there are templates: then a name does not say
 * which group it is. Place: the given values of the keys that say where the group is, by rank. What
 * is sized: decide/sized.h.
 *
 * The id is for display, and patterns of credentials match it. Its key identifies the target: all
 * ids of one object (another version of the API, another spelling of a URL) have the same key.
 */
#ifndef ALERTSCALER_DECIDE_TARGET_H
#define ALERTSCALER_DECIDE_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/model/labels.h>

#define AS_TARGET_ID_MAX 1024 /* bytes of an id, with NUL */

/* The key of an id, for free(); a text that is no id is its own key. */
char *as_target_key_make(const char *id) AS_MUST_USE;
/* The object's name and what is sized of it, or the group's name: the end of an id. */
const char *as_target_id_get_end(const char *id);
bool as_target_is_same(const char *id, const char *other) AS_MUST_USE;

/*
 * Other ids of an HTTP group with a name, for free(); NULL: the address has none of its own. By its
 * URL, which says which group it is. By its name, as earlier versions did for groups with
 * templates.
 */
char *as_target_ref_make_url_id(const struct as_target_ref *ref) AS_MUST_USE;
char *as_target_ref_make_name_id(const struct as_target_ref *ref) AS_MUST_USE;
/* Whether one of the target's ids is `id`, in any spelling. */
bool as_target_ref_has_id(const struct as_target_ref *ref, const char *id) AS_MUST_USE;

/*
 * Fills the templates of `config` from an alert. 0; or AS_TARGET_NOT_ALLOWED with the reason: a
 * missing label, an empty or too long result, a name that Kubernetes would not accept, a name
 * outside `allow`.
 */
enum as_target_outcome { AS_TARGET_OK, AS_TARGET_NOT_ALLOWED };
int as_target_ref_new(const struct as_target_config *config, const struct as_labels *labels,
                      const struct as_labels *annotations, struct as_target_ref **ref_out,
                      struct as_error *error) AS_MUST_USE;
/* From values checked before (from the store); everything is copied. */
struct as_target_ref *as_target_ref_make(const struct as_target_kind *kind, const char *id,
                                         const struct as_target_field *fields,
                                         size_t field_count) AS_MUST_USE;
struct as_target_ref *as_target_ref_copy(const struct as_target_ref *ref) AS_MUST_USE;

/* Whether some alert could make the entry's target have this id, in any spelling. */
bool as_target_may_have_id(const struct as_target_config *config, const char *id) AS_MUST_USE;

/* The list of `allow` that limits the template of a key. AS_ALLOW_COUNT: the key may have none. A
 * `url` whose templates stand only in the last path segment is limited by `names`, without a list
 * of `urls`. */
enum as_allow as_target_find_limit(const struct as_target_config *config, const char *key);

/* The address of an id that a template in the name of a node group gives; NULL: the entry cannot
 * give it, or says another address by it. */
struct as_target_ref *as_target_ref_of_group(const struct as_target_config *config,
                                             const char *id) AS_MUST_USE;

/* The value of a key of the entry's address; NULL: it has none, or a template gives it. */
const char *as_target_config_find_plain(const struct as_target_config *config, const char *key);

/* The address of an object of `allow.list`: its namespace ("": it is in none) and its name in the
 * place of templates. NULL: no alert could give this address, or `allow` does not have it. */
struct as_target_ref *as_target_ref_of_object(const struct as_target_config *config,
                                              const char *namespace_, const char *name) AS_MUST_USE;

/* Whether the entry's `allow` has the address. A reference without fields is never allowed. */
bool as_target_allows(const struct as_target_config *config,
                      const struct as_target_ref *ref) AS_MUST_USE;

/* Whether some alert could make its id match the pattern (model/scope.h). */
bool as_target_may_match_id(const struct as_target_config *config, const char *pattern) AS_MUST_USE;

/* NULL: the value (templates filled in) is valid for this key of an address; else static text that
 * says what is expected. */
const char *as_target_check_value(const struct as_target_kind *kind, const char *key,
                                  const char *value);

/*
 * The URL of an HTTP node group, with templates filled in. An alert may contribute only
 * [A-Za-z0-9._-], only behind the host, and no path segment of dots; so scheme, host and the
 * author's path stay as written.
 */

/* Why no alert may fill in the template, as static text; NULL: an alert may, or it is plain. */
const char *as_target_url_find_fault(const struct as_template *url);

/* Whether templates stand only in the last segment of the path. */
bool as_target_url_varies_at_end(const struct as_template *url);

/* Checks what the alert adds. `result` is the filled-in template. 0, or -EINVAL with the reason. */
int as_target_url_check(const struct as_template *url, const struct as_labels *labels,
                        const struct as_labels *annotations, const char *result,
                        struct as_error *error) AS_MUST_USE;

/* For free(): the normal form (base/url.h), or the last segment of its path. A text that is no URL
 * is its own normal form. */
char *as_target_url_normalize(const char *url) AS_MUST_USE;
char *as_target_url_get_end(const char *url) AS_MUST_USE;

/* What the sizes of a target count, for the axis of a chart: "units of 1Gi"; of a field without a
 * unit "size"; else what its kind counts, "replicas". Returns text_out, or a literal. */
#define AS_MEASURE_SIZE (AS_AMOUNT_SIZE + 16)
const char *as_target_print_measure(const char *id, const char *unit,
                                    char text_out[AS_MEASURE_SIZE]);

struct as_target_ref *as_target_ref_free(struct as_target_ref *ref);

AS_DEFINE_CLEANUP(struct as_target_ref *, as_target_ref_free)

#endif
