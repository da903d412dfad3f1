/*
 * Reads the action of a proposal: as in rule files, but without the source of its value, which is
 * in the proposal.
 */

#include <alertscaler/base/arena.h>
#include <alertscaler/base/number.h>
#include <alertscaler/model/action.h>

#include "decision_private.h"

/* `by: N`, or `by: P%` with `at_least` */
static void decode_amount(struct as_reader *reader, int64_t milli_percent_max,
                          struct as_amount *amount)
{
    const struct tree_value *by = tree_find(reader->object, "by");

    amount->at_least = 1;
    if (!tree_is(by, TREE_TEXT)) {
        as_read_require(reader, "by");
        if (!tree_is(by, TREE_INTEGER))
            as_read_fail(reader, "by", "expected an integer or a percentage as \"50%%\"");
        as_read_i64(reader, "by", 0, INT64_MAX, &amount->size);
        return;
    }
    (void)as_read_any(reader, "by");
    amount->is_percent = true;
    if (as_number_parse_percent(by->text, &amount->milli_percent) != 0 || amount->milli_percent < 0)
        as_read_fail(reader, "by", "expected an integer or a percentage as \"50%%\"");
    if (amount->milli_percent > milli_percent_max)
        as_read_fail(reader, "by", "expected at most 100%%: nothing can lose more");
    as_read_i64(reader, "at_least", 0, INT64_MAX, &amount->at_least);
}

/* Limits for the steps of an action. */
struct step_rules {
    enum as_action_kind kind;
    int64_t milli_percent_max;
    bool has_goals;
};

/* `to: X` of a step, since v: 2. It must not lie beyond the bound: the direction would be wrong. */
static void decode_goal(struct as_reader *reader, bool is_up, struct as_step *step)
{
    as_read_positive(reader, "to", &step->to);
    if (step->is_above != is_up)
        as_read_fail(reader, "to", "expected \"%s\" beside it", is_up ? "above" : "below");
    if (!(step->to > 0))
        as_read_fail(reader, "to", "expected a number above 0");
    if (is_up ? step->to > step->bound : step->to < step->bound)
        as_read_fail(reader, "to", "expected at %s \"%s\"", is_up ? "most" : "least",
                     is_up ? "above" : "below");
}

static void decode_change(struct as_reader *reader, const struct step_rules *rules,
                          struct as_step *step)
{
    step->is_above = as_read_has(reader, "above");
    if (step->is_above == as_read_has(reader, "below"))
        as_read_fail(reader, NULL, "expected either \"above\" or \"below\"");
    as_read_double(reader, step->is_above ? "above" : "below", &step->bound);
    if (rules->has_goals && as_read_has(reader, "to"))
        decode_goal(reader, rules->kind == AS_ACTION_SCALE_UP, step);
    else
        decode_amount(reader, rules->milli_percent_max, &step->amount);
}

static void decode_rung(struct as_reader *reader, struct as_step *step)
{
    as_read_require(reader, "from");
    as_read_require(reader, "size");
    as_read_double(reader, "from", &step->bound);
    as_read_i64(reader, "size", 0, INT64_MAX, &step->amount.size);
}

static void decode_step(struct as_reader *reader, const struct step_rules *rules,
                        struct as_step *step)
{
    if (rules->kind == AS_ACTION_SCALE_TO)
        decode_rung(reader, step);
    else
        decode_change(reader, rules, step);
    as_read_end(reader);
}

static void decode_steps(struct as_reader *reader, struct as_arena *arena,
                         const struct step_rules *rules, struct as_action *action)
{
    size_t count;
    const struct tree_value *at = as_read_list(reader, "steps", &count);

    if (count == 0 || count > AS_STEPS_MAX) {
        as_read_fail(reader, "steps", "expected 1 to %d steps", AS_STEPS_MAX);
        return;
    }
    struct as_step *steps = as_arena_alloc(arena, count, sizeof(*steps));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_read_item(&item, reader, "steps", at, i);
        decode_step(&item, rules, &steps[i]);
    }
    action->steps = steps;
    action->step_count = count;
}

/* `fit` or `take`, whose value is one word; since v: 2. */
static bool decode_only_word(struct as_reader *reader, const char *name, const char *word)
{
    const struct as_read_word words[] = {{.text = word}, {.text = NULL}};

    if (!as_read_has(reader, name))
        return false;
    (void)as_read_enum(reader, name, words, 0);
    return true;
}

/* scale_up and scale_down. Since v: 2, scale_down by more than 100 % is refused, as in rule files,
 * and `to: N`, `fit` and `take` are allowed. */
static void decode_step_action(struct as_reader *reader, struct as_arena *arena, int32_t version,
                               struct as_action *action)
{
    const bool is_bounded = action->kind == AS_ACTION_SCALE_DOWN && version >= 2;
    const struct step_rules rules = {.kind = action->kind,
                                     .milli_percent_max = is_bounded ? 100000 : INT64_MAX,
                                     .has_goals = version >= 2};

    const bool is_up = action->kind == AS_ACTION_SCALE_UP;

    if (version >= 2 && is_up)
        action->is_fit = decode_only_word(reader, "fit", "pending_pods");
    else if (version >= 2)
        action->is_take = decode_only_word(reader, "take", "unneeded_nodes");
    action->is_to = version >= 2 && as_read_has(reader, "to");
    if (action->is_fit || action->is_take)
        action->is_to = false; /* `to` beside them is an unknown field */
    else if (action->is_to)
        as_read_i64(reader, "to", 0, INT64_MAX, &action->size);
    else if (as_read_has(reader, "steps"))
        decode_steps(reader, arena, &rules, action);
    else
        decode_amount(reader, rules.milli_percent_max, &action->amount);
    as_read_end(reader);
}

/* scale_to: a size, or since v: 2 `steps` */
static void decode_scale_to(struct as_reader *reader, struct as_arena *arena, int32_t version,
                            struct as_action *action)
{
    static const struct step_rules rules = {.kind = AS_ACTION_SCALE_TO};
    const char *name = as_action_kind_get_word(action->kind);
    struct as_reader body;

    if (version < 2 || !tree_is(tree_find(reader->object, name), TREE_OBJECT)) {
        as_read_i64(reader, name, 0, INT64_MAX, &action->size);
        return;
    }
    as_read_object(&body, reader, name);
    as_read_require(&body, "steps");
    decode_steps(&body, arena, &rules, action);
    as_read_end(&body);
}

/* hold: a direction; since v: 2 */
static void decode_hold(struct as_reader *reader, int32_t version, struct as_action *action)
{
    const char *name = as_action_kind_get_word(action->kind);

    if (version < 2)
        as_read_fail(reader, name, "unknown field");
    action->hold = (enum as_ways)as_read_enum(reader, name, as_decision_ways, 0);
}

static void decode_utilization(struct as_reader *reader, struct as_track *track)
{
    const char *text = "";
    int64_t milli_percent = 0;

    as_read_text(reader, "utilization", &text);
    as_read_require(reader, "resource");
    if (as_number_parse_percent(text, &milli_percent) != 0 || milli_percent < 0)
        as_read_fail(reader, "utilization", "expected a percentage as \"70%%\"");
    track->value = (double)milli_percent / 1000;
}

static void decode_track(struct as_reader *reader, struct as_track *track)
{
    static const struct {
        const char *name;
        enum as_goal goal;
    } goals[] = {{"value", AS_GOAL_VALUE},
                 {"average_value", AS_GOAL_AVERAGE_VALUE},
                 {"utilization", AS_GOAL_UTILIZATION}};
    const char *name = NULL;

    for (size_t i = 0; i < AS_ARRAY_SIZE(goals); i++) {
        if (!as_read_has(reader, goals[i].name))
            continue;
        if (name)
            as_read_fail(reader, NULL, "expected one goal, not both \"%s\" and \"%s\"", name,
                         goals[i].name);
        name = goals[i].name;
        track->goal = goals[i].goal;
    }
    if (!name)
        as_read_fail(reader, NULL, "expected \"value\", \"average_value\" or \"utilization\"");
    else if (track->goal == AS_GOAL_UTILIZATION)
        decode_utilization(reader, track);
    else
        as_read_positive(reader, name, &track->value);
    if (track->goal != AS_GOAL_VALUE) {
        track->is_resource = as_read_has(reader, "resource");
        track->resource = (enum as_resource)as_read_enum(reader, "resource", as_decision_resources,
                                                         AS_RESOURCE_CPU);
    }
    as_read_end(reader);
}

/* The kind of an action, from its only key. */
static enum as_action_kind find_kind(struct as_reader *reader)
{
    enum as_action_kind found = AS_ACTION_KIND_COUNT;
    unsigned count = 0;

    for (enum as_action_kind kind = 0; kind < AS_ACTION_KIND_COUNT; kind++) {
        if (as_read_has(reader, as_action_kind_get_word(kind))) {
            found = kind;
            count++;
        }
    }
    if (count != 1)
        as_read_fail(reader, NULL,
                     "expected one of scale_up, scale_down, scale_to, track, pass_through, hold");
    return found;
}

void as_decision_decode_action(struct as_reader *proposal, struct as_arena *arena, int32_t version,
                               struct as_action *action_out)
{
    struct as_reader reader, body;

    as_read_require(proposal, "action");
    as_read_object(&reader, proposal, "action");
    action_out->kind = find_kind(&reader);
    if (as_read_result(&reader) != 0)
        return;
    const char *name = as_action_kind_get_word(action_out->kind);
    if (action_out->kind == AS_ACTION_SCALE_TO)
        decode_scale_to(&reader, arena, version, action_out);
    else if (action_out->kind == AS_ACTION_HOLD)
        decode_hold(&reader, version, action_out);
    else
        as_read_object(&body, &reader, name);
    switch (action_out->kind) {
    case AS_ACTION_SCALE_UP:
    case AS_ACTION_SCALE_DOWN: decode_step_action(&body, arena, version, action_out); break;
    case AS_ACTION_TRACK: decode_track(&body, &action_out->track); break;
    case AS_ACTION_PASS_THROUGH: as_read_end(&body); break;
    case AS_ACTION_SCALE_TO:
    case AS_ACTION_HOLD:
    case AS_ACTION_KIND_COUNT: break;
    }
    as_read_end(&reader);
}
