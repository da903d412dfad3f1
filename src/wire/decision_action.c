/*
 * Reads the action of a proposal: as in rule files, but without the source of its value, which
 * stands in the proposal.
 */
#include <string.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/number.h>
#include <alertscaler/core/action.h>

#include "decision_private.h"

/* `by: N`, or `by: P%` with `at_least` */
static int decode_amount(struct as_strict *reader, int64_t milli_percent_max,
                         struct as_amount *amount)
{
    json_t *by = json_object_get(reader->object, "by");
    int error;

    amount->at_least = 1;
    if (!json_is_string(by)) {
        error = as_strict_require(reader, "by");
        if (!error && !json_is_integer(by))
            error = as_strict_fail(reader, "by", "expected an integer or a percentage as \"50%%\"");
        return error ? error : as_strict_take_i64(reader, "by", 0, INT64_MAX, &amount->size);
    }
    (void)as_strict_take(reader, "by");
    amount->is_percent = true;
    if (as_number_parse_percent(json_string_value(by), &amount->milli_percent) != 0 ||
        amount->milli_percent < 0)
        return as_strict_fail(reader, "by", "expected an integer or a percentage as \"50%%\"");
    if (amount->milli_percent > milli_percent_max)
        return as_strict_fail(reader, "by", "expected at most 100%%: nothing can lose more");
    return as_strict_take_i64(reader, "at_least", 0, INT64_MAX, &amount->at_least);
}

/* What the steps of an action are held to. */
struct step_rules {
    enum as_action_kind kind;
    int64_t milli_percent_max;
    bool has_goals;
};

/* `to: X` of a step, since v: 2: on this side of the bound, or the way would be none. */
static int decode_goal(struct as_strict *reader, bool is_up, struct as_step *step)
{
    const int error = as_strict_take_positive(reader, "to", &step->to);
    if (error)
        return error;
    if (step->is_above != is_up)
        return as_strict_fail(reader, "to", "expected \"%s\" beside it", is_up ? "above" : "below");
    if (!(step->to > 0))
        return as_strict_fail(reader, "to", "expected a number above 0");
    if (is_up ? step->to > step->bound : step->to < step->bound)
        return as_strict_fail(reader, "to", "expected at %s \"%s\"", is_up ? "most" : "least",
                              is_up ? "above" : "below");
    return 0;
}

static int decode_change(struct as_strict *reader, const struct step_rules *rules,
                         struct as_step *step)
{
    int error;

    step->is_above = as_strict_has(reader, "above");
    if (step->is_above == as_strict_has(reader, "below"))
        return as_strict_fail(reader, NULL, "expected either \"above\" or \"below\"");
    error = as_strict_take_double(reader, step->is_above ? "above" : "below", &step->bound);
    if (error)
        return error;
    return rules->has_goals && as_strict_has(reader, "to")
               ? decode_goal(reader, rules->kind == AS_ACTION_SCALE_UP, step)
               : decode_amount(reader, rules->milli_percent_max, &step->amount);
}

static int decode_rung(struct as_strict *reader, struct as_step *step)
{
    int error;

    if ((error = as_strict_require(reader, "from")) ||
        (error = as_strict_require(reader, "size")) ||
        (error = as_strict_take_double(reader, "from", &step->bound)))
        return error;
    return as_strict_take_i64(reader, "size", 0, INT64_MAX, &step->amount.size);
}

static int decode_step(struct as_strict *reader, const struct step_rules *rules,
                       struct as_step *step)
{
    const int error = rules->kind == AS_ACTION_SCALE_TO ? decode_rung(reader, step)
                                                        : decode_change(reader, rules, step);
    return error ? error : as_strict_finish(reader);
}

static int decode_steps(struct as_strict *reader, struct as_arena *arena,
                        const struct step_rules *rules, struct as_action *action)
{
    json_t *list = NULL;
    size_t count = 0;
    int error = as_strict_take_list(reader, "steps", &count, &list);

    if (error)
        return error;
    if (count == 0 || count > AS_STEPS_MAX)
        return as_strict_fail(reader, "steps", "expected 1 to %d steps", AS_STEPS_MAX);
    struct as_step *steps = as_arena_alloc(arena, count, sizeof(*steps));
    for (size_t i = 0; i < count; i++) {
        struct as_strict item;
        if ((error = as_strict_init_item(&item, reader, "steps", list, i)) ||
            (error = decode_step(&item, rules, &steps[i])))
            return error;
    }
    action->steps = steps;
    action->step_count = count;
    return 0;
}

/* `to: N`, since v: 2 */
static int decode_to(struct as_strict *reader, struct as_action *action)
{
    action->is_to = true;
    return as_strict_take_i64(reader, "to", 0, INT64_MAX, &action->size);
}

/* scale_up and scale_down; of the latter more than 100 % is refused since v: 2, as in rule files */
static int decode_step_action(struct as_strict *reader, struct as_arena *arena, int32_t version,
                              struct as_action *action)
{
    const bool is_bounded = action->kind == AS_ACTION_SCALE_DOWN && version >= 2;
    const struct step_rules rules = {.kind = action->kind,
                                     .milli_percent_max = is_bounded ? 100000 : INT64_MAX,
                                     .has_goals = version >= 2};
    int error = version >= 2 && as_strict_has(reader, "to") ? decode_to(reader, action)
                : as_strict_has(reader, "steps")
                    ? decode_steps(reader, arena, &rules, action)
                    : decode_amount(reader, rules.milli_percent_max, &action->amount);
    return error ? error : as_strict_finish(reader);
}

/* scale_to: a size, or since v: 2 `steps` */
static int decode_scale_to(struct as_strict *reader, struct as_arena *arena, int32_t version,
                           struct as_action *action)
{
    static const struct step_rules rules = {.kind = AS_ACTION_SCALE_TO};
    const char *name = as_action_kind_get_word(action->kind);
    struct as_strict body;
    int error;

    if (version < 2 || !json_is_object(json_object_get(reader->object, name)))
        return as_strict_take_i64(reader, name, 0, INT64_MAX, &action->size);
    if ((error = as_strict_init_object(&body, reader, name)) ||
        (error = as_strict_require(&body, "steps")) ||
        (error = decode_steps(&body, arena, &rules, action)))
        return error;
    return as_strict_finish(&body);
}

static int decode_utilization(struct as_strict *reader, struct as_track *track)
{
    const char *text = NULL;
    int64_t milli_percent = 0;
    int error;

    if ((error = as_strict_take_string(reader, "utilization", &text)) ||
        (error = as_strict_require(reader, "resource")))
        return error;
    if (as_number_parse_percent(text, &milli_percent) != 0 || milli_percent < 0)
        return as_strict_fail(reader, "utilization", "expected a percentage as \"70%%\"");
    track->value = (double)milli_percent / 1000;
    return 0;
}

static int decode_track(struct as_strict *reader, struct as_track *track)
{
    static const struct {
        const char *name;
        enum as_goal goal;
    } goals[] = {{"value", AS_GOAL_VALUE},
                 {"average_value", AS_GOAL_AVERAGE_VALUE},
                 {"utilization", AS_GOAL_UTILIZATION}};
    const char *name = NULL;
    int error, resource = AS_RESOURCE_CPU;

    for (size_t i = 0; i < AS_ARRAY_SIZE(goals); i++) {
        if (!as_strict_has(reader, goals[i].name))
            continue;
        if (name)
            return as_strict_fail(reader, NULL, "expected one goal, not both \"%s\" and \"%s\"",
                                  name, goals[i].name);
        name = goals[i].name;
        track->goal = goals[i].goal;
    }
    if (!name)
        return as_strict_fail(reader, NULL,
                              "expected \"value\", \"average_value\" or \"utilization\"");
    error = track->goal == AS_GOAL_UTILIZATION
                ? decode_utilization(reader, track)
                : as_strict_take_positive(reader, name, &track->value);
    if (error)
        return error;
    if (track->goal != AS_GOAL_VALUE) {
        track->is_resource = as_strict_has(reader, "resource");
        error = as_strict_take_word(reader, "resource", as_decision_resources, &resource);
        track->resource = (enum as_resource)resource;
    }
    return error ? error : as_strict_finish(reader);
}

/* The one key of an action and its kind. */
static int find_kind(const struct as_strict *reader, enum as_action_kind *kind_out)
{
    unsigned found = 0;

    for (unsigned kind = 0; kind < AS_ACTION_KIND_COUNT; kind++) {
        if (as_strict_has(reader, as_action_kind_get_word(kind))) {
            *kind_out = kind;
            found++;
        }
    }
    if (found == 1)
        return 0;
    return as_strict_fail(reader, NULL,
                          "expected one of scale_up, scale_down, scale_to, track, pass_through");
}

int as_decision_decode_action(struct as_strict *proposal, struct as_arena *arena, int32_t version,
                              struct as_action *action_out)
{
    struct as_strict reader, body;
    int error;

    if ((error = as_strict_require(proposal, "action")) ||
        (error = as_strict_init_object(&reader, proposal, "action")) ||
        (error = find_kind(&reader, &action_out->kind)))
        return error;
    const char *name = as_action_kind_get_word(action_out->kind);
    if (action_out->kind == AS_ACTION_SCALE_TO) {
        error = decode_scale_to(&reader, arena, version, action_out);
        return error ? error : as_strict_finish(&reader);
    }
    if ((error = as_strict_init_object(&body, &reader, name)))
        return error;
    switch (action_out->kind) {
    case AS_ACTION_SCALE_UP:
    case AS_ACTION_SCALE_DOWN: error = decode_step_action(&body, arena, version, action_out); break;
    case AS_ACTION_TRACK: error = decode_track(&body, &action_out->track); break;
    case AS_ACTION_SCALE_TO:
    case AS_ACTION_PASS_THROUGH:
    case AS_ACTION_KIND_COUNT: error = as_strict_finish(&body); break;
    }
    return error ? error : as_strict_finish(&reader);
}
