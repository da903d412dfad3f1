/*
 * The data of a comparison, per target.
 */
#ifndef ALERTSCALER_SRC_CLI_COMPARISON_PRIVATE_H
#define ALERTSCALER_SRC_CLI_COMPARISON_PRIVATE_H

#include <bsd/sys/tree.h>

#include <alertscaler/ui/timeline.h>

#include "comparison.h"
#include "size_figures.h"

#define DIFFERENCES_SHOWN 5
#define ASKED_SHOWN       5
#define ROWS_SHOWN        20 /* targets of a list */

struct difference {
    int64_t from, to;
    int32_t sizes[COMPARISON_SIDES];
};

struct asked {
    int64_t at;
    int32_t from, to;
    char *rule, *unit;
};

struct compared {
    RB_ENTRY(compared) by_id;
    char *id, *name;
    const struct as_target_config *config; /* in the tried rules; NULL: none of that name */
    char *unit;                            /* of its sizes (decide/sized.h); NULL: none is known */
    bool shares_name;                      /* with other targets: known at the end */
    struct size_figures sides[COMPARISON_SIDES];
    bool follows_rules[COMPARISON_SIDES]; /* limits: COMPARISON_LIMIT_OF_RULES */
    struct as_timeline lines[COMPARISON_SIDES];
    struct as_timeline_band bands[AS_TIMELINE_BANDS_MAX];
    size_t band_count;
    bool differs, is_counted;
    int64_t differs_since, differed_us;
    struct difference differences[DIFFERENCES_SHOWN];
    uint64_t difference_count;
    struct asked asked[ASKED_SHOWN]; /* under the new rules, the first ones */
    uint64_t asked_count;
};

RB_HEAD(compared_tree, compared);

struct comparison {
    const struct as_ruleset *ruleset;
    struct compared_tree targets;
    size_t count;
    bool with_charts;
    int64_t from, to;
};

/* comparison.c: created if it is new; `name` may be NULL. */
struct compared *comparison_get_target(struct comparison *comparison, const char *id,
                                       const char *name);

/* comparison_asked.c: what people would have been asked */
void compared_free_asked(struct compared *target);
void comparison_print_asked(struct compared_tree *targets, const char *approvals, FILE *out);
json_t *compared_make_asked(const struct compared *target) AS_MUST_USE; /* a list */

int compared_compare(const struct compared *a, const struct compared *b);
RB_PROTOTYPE(compared_tree, compared, by_id, compared_compare)

/* Its name; its id if other targets have the same name. */
static inline const char *compared_get_label(const struct compared *target)
{
    return target->shares_name ? target->id : target->name;
}

#endif
