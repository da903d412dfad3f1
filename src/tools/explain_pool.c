/*
 * What a decision says of pods that wait, of groups and of nodes: see the header.
 *
 * Long because its parts read one decision, and print with the same helpers.
 */
#include "explain_pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/tools/record_text.h>

#define NAMES_MAX 10 /* of the nodes that stay for one reason */
#define MIB       ((int64_t)1 << 20)
#define GIB       ((int64_t)1 << 30)

struct telling {
    const json_t *input, *output;
    const struct as_decide_input *known; /* decided; NULL: of an unknown version */
    FILE *out;
};

static const char *get_meaning(const char *word)
{
    enum as_reason reason;

    return as_reason_find(word, &reason) ? as_reason_get_meaning(reason) : "";
}

static const char *get_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static bool asks(const json_t *input, const char *direction, const char *key)
{
    const json_t *proposal;
    size_t i;

    json_array_foreach(json_object_get(input, "proposals"), i, proposal)
    {
        if (*as_record_get_text(json_object_get(json_object_get(proposal, "action"), direction),
                                key))
            return true;
    }
    return false;
}

/* Pods that wait */

static void put_bytes(FILE *out, int64_t bytes, const char *what)
{
    if (bytes >= GIB)
        fprintf(out, ", %.4g GiB%s", (double)bytes / (double)GIB, what);
    else if (bytes > 0)
        fprintf(out, ", %.4g MiB%s", (double)bytes / (double)MIB, what);
}

static void put_pod(const struct telling *telling, const struct as_pod_shape *pod)
{
    const struct as_res_names *names = &telling->known->survey->resources;
    const int64_t *amount = pod->requests.amount;
    FILE *out = telling->out;

    fprintf(out, "%g cpu", (double)amount[AS_RES_CPU] / 1000);
    put_bytes(out, amount[AS_RES_MEMORY], "");
    put_bytes(out, amount[AS_RES_EPHEMERAL], " of ephemeral storage");
    for (size_t i = AS_RES_NAMED; i < names->count; i++) {
        if (amount[i] == 0)
            continue;
        fprintf(out, ", %" PRId64 " ", amount[i]);
        as_safe_text_put(out, names->name[i]);
    }
    for (uint32_t i = 0; pod->selector && i < pod->selector->count; i++) {
        fputs(i == 0 ? ", only where " : " and ", out);
        as_safe_text_put(out, pod->selector->items[i].name);
        fputc('=', out);
        as_safe_text_put(out, pod->selector->items[i].value);
    }
    if (pod->has_affinity)
        fputs(", with node affinity", out);
    if (pod->zone) {
        fputs(", only in zone ", out);
        as_safe_text_put(out, pod->zone);
    }
    if (pod->unchecked)
        fputs(", with something that is not checked", out);
}

enum verdict { TAKES, CLOSED, REFUSES, VERDICTS };

struct pair { /* a shape and a group */
    bool is_listed;
    enum as_misfit misfit;
    bool is_in_vain;
};

static enum verdict judge(const struct as_survey_group *group, const struct pair *pair,
                          const char **why_out)
{
    *why_out = NULL;
    if (group->template_.source == AS_NODE_TEMPLATE_NONE)
        *why_out = "it is not known what a new node is like";
    else if (!pair->is_listed)
        *why_out = "not looked at: too many kinds of pods";
    else if (pair->misfit != AS_FITS)
        *why_out = as_misfit_get_word(pair->misfit);
    else if (pair->is_in_vain)
        *why_out = "was asked for such pods in vain";
    if (*why_out)
        return REFUSES;
    if (group->closed == AS_REASON_SCALED)
        return TAKES;
    *why_out = as_reason_get_word(group->closed);
    return CLOSED;
}

/* could not take them: spot (not enough cpu), steady (...) */
static void print_verdict(const struct telling *telling, const struct pair *pairs, size_t groups,
                          enum verdict wanted)
{
    static const char *const words[VERDICTS] = {
        [TAKES] = "    could take them: ",
        [CLOSED] = "    could take them, but do not grow: ",
        [REFUSES] = "    could not take them: ",
    };
    const char *separator = words[wanted], *why;

    for (size_t i = 0; i < groups; i++) {
        const struct as_survey_group *group = &telling->known->survey->groups[i];

        if (judge(group, &pairs[i], &why) != wanted)
            continue;
        fputs(separator, telling->out);
        as_safe_text_put(telling->out, group->name);
        if (why)
            fprintf(telling->out, " (%s)", why);
        separator = ", ";
    }
    if (separator != words[wanted])
        fputc('\n', telling->out);
}

static bool is_homeless(const struct as_pool_plan *plan, uint32_t shape)
{
    for (size_t i = 0; i < plan->homeless_count; i++)
        if (plan->homeless_pods[i].shape == shape)
            return true;
    return false;
}

/* All of them found room on nodes that are on their way: no group was asked. */
static bool is_placed(const struct as_decide_input *known, const struct pair *pairs, size_t groups)
{
    bool is_known = false;

    for (size_t i = 0; i < groups; i++) {
        is_known |= known->survey->groups[i].template_.source != AS_NODE_TEMPLATE_NONE;
        if (pairs[i].is_listed)
            return false;
    }
    return is_known && known->plan->shape_count < AS_POOL_SHAPE_PLANS_MAX;
}

static void print_shape(const struct telling *telling, const struct as_survey_pods *pods,
                        const struct pair *pairs, size_t groups)
{
    fprintf(telling->out, "  %" PRIu32 " pod%s of ", pods->count, get_plural(pods->count));
    put_pod(telling, &telling->known->survey->shapes[pods->shape].pod);
    fputc('\n', telling->out);
    if (is_placed(telling->known, pairs, groups)) {
        fputs("    nodes that are on their way take them\n", telling->out);
        return;
    }
    for (enum verdict verdict = 0; verdict < VERDICTS; verdict++)
        print_verdict(telling, pairs, groups, verdict);
    if (is_homeless(telling->known->plan, pods->shape))
        fputs("    no group could ever take them\n", telling->out);
}

/* The groups of the pool come first. */
static size_t count_members(const struct as_survey *survey)
{
    size_t count = 0;

    while (count < survey->group_count && count < AS_POOL_GROUPS_MAX &&
           survey->groups[count].is_member)
        count++;
    return count;
}

/* By shape, then by group. For free(). */
static struct pair *make_pairs(const struct as_decide_input *known, size_t groups)
{
    struct pair *pairs = as_xcalloc(known->survey->shape_count * groups + 1, sizeof(*pairs));

    for (size_t i = 0; i < known->plan->shape_count; i++) {
        const struct as_pool_shape_plan *listed = &known->plan->shapes[i];

        if (listed->group < groups)
            pairs[listed->shape * groups + listed->group] =
                (struct pair){true, listed->misfit, listed->is_in_vain};
    }
    return pairs;
}

static void print_pods(const struct telling *telling)
{
    const struct as_survey *survey = telling->known->survey;
    const size_t groups = count_members(survey);
    uint64_t without_room = 0;

    for (size_t i = 0; i < survey->pending_count; i++)
        without_room += survey->pending[i].count;
    fprintf(telling->out, "  %" PRIu64 " wait%s", survey->pending_pods,
            survey->pending_pods == 1 ? "s" : "");
    if (survey->pending_pods > 0)
        fprintf(telling->out, ", %" PRIu64 " found no room on nodes that are there", without_room);
    fputc('\n', telling->out);
    struct pair *pairs = make_pairs(telling->known, groups);
    for (size_t i = 0; i < survey->pending_count; i++)
        print_shape(telling, &survey->pending[i], &pairs[survey->pending[i].shape * groups],
                    groups);
    free(pairs);
    if (telling->known->plan->is_cut)
        fputs("  the work has ended at its limit: the rest waits for the next look\n",
              telling->out);
}

/* Groups */

static bool has_out_by(const json_t *options, const char *filter)
{
    const json_t *option;
    size_t i;

    json_array_foreach(options, i, option)
    {
        if (strcmp(as_record_get_text(option, "out_by"), filter) == 0)
            return true;
    }
    return false;
}

/* The last filter that dropped an option; NULL: none did. */
static const char *find_last_filter(const struct telling *telling, const json_t *options)
{
    const json_t *choose = json_object_get(
        json_object_get(json_object_get(telling->input, "target"), "pool"), "choose");

    for (size_t i = json_array_size(choose); i > 0; i--) {
        const char *filter = json_string_value(json_array_get(choose, i - 1));
        if (filter && has_out_by(options, filter))
            return filter;
    }
    return has_out_by(options, "least_waste") ? "least_waste" : NULL;
}

static void put_choice(const struct telling *telling, const json_t *options, const json_t *option)
{
    const char *dropped = as_record_get_text(option, "out_by");
    const char *filter = find_last_filter(telling, options);

    if (*dropped) {
        fputs(": dropped by ", telling->out);
        as_safe_text_put(telling->out, dropped);
    } else if (!json_is_true(json_object_get(option, "chosen"))) {
        fputs(": as good as the chosen one, and later in `groups`", telling->out);
    } else if (filter) {
        fputs(": chosen by ", telling->out);
        as_safe_text_put(telling->out, filter);
    } else {
        fputs(json_array_size(options) == 1 ? ": chosen, there is no other"
                                            : ": chosen, the first in `groups`",
              telling->out);
    }
}

static void print_option(const struct telling *telling, const json_t *options, json_t *option)
{
    const json_int_t nodes = json_integer_value(json_object_get(option, "nodes"));
    const json_int_t pods = json_integer_value(json_object_get(option, "pods"));
    const char *filter;
    json_t *score;

    fputs("  ", telling->out);
    as_safe_text_put(telling->out, as_record_get_text(option, "group"));
    fprintf(telling->out,
            ": %" JSON_INTEGER_FORMAT " new node%s for %" JSON_INTEGER_FORMAT " pod%s", nodes,
            get_plural((uint64_t)nodes), pods, get_plural((uint64_t)pods));
    json_object_foreach(json_object_get(option, "scores"), filter, score)
    {
        fputs(", ", telling->out);
        as_safe_text_put(telling->out, filter);
        fprintf(telling->out, " %.4g", json_number_value(score));
    }
    put_choice(telling, options, option);
    fputc('\n', telling->out);
}

/* Instances that never became nodes */
static void print_overdue(const struct telling *telling)
{
    const json_t *groups = json_object_get(telling->output, "overdue"), *group;
    int32_t count;
    size_t i;

    json_array_foreach(groups, i, group)
    {
        if (!as_record_get_size(group, "count", &count))
            continue;
        fputs("  ", telling->out);
        as_safe_text_put(telling->out, as_record_get_text(group, "group"));
        fprintf(telling->out, ": %" PRId32 " instance%s never became nodes, and %s removed\n",
                count, get_plural((uint64_t)count), count == 1 ? "is" : "are");
    }
}

static const struct as_survey_group *find_group(const struct telling *telling, const char *name)
{
    const struct as_survey *survey = telling->known ? telling->known->survey : NULL;

    for (size_t i = 0; survey && i < survey->group_count; i++)
        if (strcmp(survey->groups[i].name, name) == 0)
            return &survey->groups[i];
    return NULL;
}

/* Groups have no lock of their own in a pool: a cooldown is a back-off. */
static void put_back_off(const struct telling *telling, const struct as_survey_group *group)
{
    char until[AS_RFC3339_SIZE];

    if (group && group->unregistered > 0) {
        fprintf(telling->out,
                "%" PRId32 " node%s: requested by another controller, not registered. "
                "The group backs off",
                group->unregistered, get_plural((uint64_t)group->unregistered));
    } else if (group && group->in_doubt > 0)
        fprintf(telling->out, "An increase by %" PRId32 " is in doubt: the group backs off",
                group->in_doubt);
    else
        fputs("Its last increase failed: the group backs off", telling->out);
    if (group && group->open_at.set) {
        as_wall_time_print_short(group->open_at.at, until);
        fprintf(telling->out, " until %s", until);
    }
    fputc('.', telling->out);
}

static void print_skipped(const struct telling *telling, const char *name, const char *why)
{
    const struct as_survey_group *group = find_group(telling, name);

    fputs("  ", telling->out);
    as_safe_text_put(telling->out, name);
    fputs(" does not grow: ", telling->out);
    as_safe_text_put(telling->out, why);
    fputs(". ", telling->out);
    if (strcmp(why, as_reason_get_word(AS_REASON_COOLDOWN)) == 0)
        put_back_off(telling, group);
    else if (strcmp(why, as_reason_get_word(AS_REASON_AT_MAX)) == 0 && group &&
             (int64_t)group->size + group->in_doubt < group->max)
        fputs("The group has room, but the pool is at its `max`, `cpu` or `memory`.", telling->out);
    else
        fputs(get_meaning(why), telling->out);
    fputc('\n', telling->out);
}

/* Nodes of increases that were in doubt, and that the provider has accepted. */
static void print_surplus(const struct telling *telling)
{
    const struct as_survey *survey = telling->known ? telling->known->survey : NULL;
    const bool has_take = asks(telling->input, "scale_down", "take");
    char since[AS_RFC3339_SIZE];

    for (size_t i = 0; survey && i < survey->group_count; i++) {
        const struct as_survey_group *group = &survey->groups[i];

        if (!group->is_member || group->surplus == 0)
            continue;
        fputs("  ", telling->out);
        as_safe_text_put(telling->out, group->name);
        fprintf(telling->out, " has %" PRId32 " surplus node%s", group->surplus,
                get_plural((uint64_t)group->surplus));
        if (group->surplus_since.set) {
            as_wall_time_print_short(group->surplus_since.at, since);
            fprintf(telling->out, " since %s", since);
        }
        fputs(": an increase in doubt was accepted. ", telling->out);
        fputs(has_take ? "A rule with `take` removes nodes that are unneeded.\n"
                       : "They stay, as no rule with `take` is active.\n",
              telling->out);
    }
}

static void print_groups(const struct telling *telling)
{
    const json_t *options = json_object_get(telling->output, "options");
    const json_t *skipped = json_object_get(telling->output, "skipped");
    const json_t *groups = json_object_get(telling->output, "groups"), *group;
    int32_t from, to;
    json_t *option;
    size_t i;

    json_array_foreach(options, i, option) print_option(telling, options, option);
    json_array_foreach(skipped, i, group) print_skipped(telling, as_record_get_text(group, "group"),
                                                        as_record_get_text(group, "why"));
    json_array_foreach(groups, i, group)
    {
        if (!as_record_get_size(group, "from", &from) || !as_record_get_size(group, "to", &to))
            continue;
        fputs("  ", telling->out);
        as_safe_text_put(telling->out, as_record_get_text(group, "name"));
        fprintf(telling->out, " goes from %" PRId32 " to %" PRId32 "\n", from, to);
    }
    print_overdue(telling);
    print_surplus(telling);
}

/* Nodes */

static const char *get_stay_meaning(enum as_stay stay)
{
    static const char *const meanings[AS_STAY_COUNT] = {
        [AS_STAY_LEAVING] = "leaving already",
        [AS_STAY_DISABLED] = "an annotation says so",
        [AS_STAY_NO_GROUP] = "in no group of the pool",
        [AS_STAY_PAUSED] = "the group is paused",
        [AS_STAY_HELD] = "the group must not go down: it is held",
        [AS_STAY_DRY_RUN] = "the group is in a dry run",
        [AS_STAY_UNREADABLE] = "the group could not be read",
        [AS_STAY_NO_CHOICE] = "the service of the group chooses itself which node leaves",
        [AS_STAY_IN_PROGRESS] = "the provider is changing the group",
        [AS_STAY_STARTING] = "not Ready yet, and young",
        [AS_STAY_UTILIZED] = "pods request more than `nodes.unneeded.below`",
        [AS_STAY_UNEVICTABLE] = "a pod may not be evicted",
        [AS_STAY_BUDGET] = "a PodDisruptionBudget allows no disruption now",
        [AS_STAY_NO_ROOM] = "its pods do not all fit on other nodes",
        [AS_STAY_RECEIVES] = "other pods were placed here",
        [AS_STAY_SHORTLY] = "not unneeded for long enough",
        [AS_STAY_AT_ONCE] = "as many nodes as `at_once` allows are leaving",
        [AS_STAY_AT_MIN] = "a minimum of the group or the pool",
    };
    return stay < AS_STAY_COUNT ? meanings[stay] : "";
}

static enum as_stay find_stay(const char *word)
{
    enum as_stay stay = 0;

    while (stay < AS_STAY_COUNT && strcmp(as_stay_get_word(stay), word) != 0)
        stay++;
    return stay;
}

/* Names of the nodes of the survey that stay for this reason. Those that were cut off, and those
 * that take no pods, are only counted. */
static void put_names(const struct telling *telling, enum as_stay stay, uint64_t count)
{
    const struct as_survey *survey = telling->known->survey;
    const enum as_stay *stays = telling->known->plan->stays;
    uint64_t told = 0;

    for (size_t i = 0; i < survey->node_count && told < NAMES_MAX; i++) {
        if (stays[i] != stay)
            continue;
        fputs(told++ == 0 ? ": " : ", ", telling->out);
        as_safe_text_put(telling->out, survey->nodes[i].node.name);
    }
    if (told > 0 && told < count)
        fprintf(telling->out, " and %" PRIu64 " more", count - told);
}

static void print_kept(const struct telling *telling)
{
    const char *word;
    json_t *value;

    json_object_foreach(json_object_get(telling->output, "kept"), word, value)
    {
        const uint64_t count = (uint64_t)json_integer_value(value);
        const enum as_stay stay = find_stay(word);

        fprintf(telling->out, "  %" PRIu64 " stay%s, ", count, count == 1 ? "s" : "");
        as_safe_text_put(telling->out, word);
        fprintf(telling->out, " (%s)", get_stay_meaning(stay));
        if (stay < AS_STAY_COUNT && telling->known && telling->known->plan->stays)
            put_names(telling, stay, count);
        fputc('\n', telling->out);
    }
}

static bool is_taken(const json_t *take, const char *node)
{
    const json_t *name;
    size_t i;

    json_array_foreach(take, i, name)
    {
        if (json_is_string(name) && strcmp(json_string_value(name), node) == 0)
            return true;
    }
    return false;
}

/* When a node that is unneeded, but not for long enough, may leave. */
static void put_due(const struct telling *telling, const struct as_unneeded *unneeded)
{
    const struct as_survey *survey = telling->known->survey;
    char text[AS_RFC3339_SIZE];

    for (size_t i = 0; i < survey->node_count; i++) {
        const struct as_survey_node *node = &survey->nodes[i];
        if (strcmp(node->node.name, unneeded->node) != 0 || node->group >= survey->group_count ||
            telling->known->plan->stays[i] != AS_STAY_SHORTLY)
            continue;
        const struct as_unneeded_config *config = &survey->groups[node->group].unneeded;
        const int64_t for_us = node->is_ready ? config->for_us : config->unready_for_us;
        if (for_us == AS_UNREADY_NEVER)
            continue;
        as_wall_time_print_short((as_wall_time){as_time_add(unneeded->since.at.us, for_us)}, text);
        fprintf(telling->out, ", and may leave from %s on", text);
    }
}

static void print_unneeded(const struct telling *telling)
{
    const json_t *take = json_object_get(telling->output, "take"), *item;
    size_t i;

    json_array_foreach(json_object_get(telling->output, "unneeded"), i, item)
    {
        const char *node = as_record_get_text(item, "node"),
                   *since = as_record_get_text(item, "since");
        if (!*since)
            continue;
        fputs("  ", telling->out);
        as_safe_text_put(telling->out, node);
        fputs(is_taken(take, node) ? " leaves: unneeded since " : " is unneeded since ",
              telling->out);
        as_safe_text_put(telling->out, since);
        if (telling->known && telling->known->plan->stays &&
            i < telling->known->plan->unneeded_count &&
            strcmp(telling->known->plan->unneeded[i].node, node) == 0)
            put_due(telling, &telling->known->plan->unneeded[i]);
        fputc('\n', telling->out);
    }
}

static const json_t *get_observed(const json_t *decision)
{
    return json_object_get(json_object_get(decision, "input"), "observed");
}

void explain_pool_print_error(const json_t *decision, FILE *out)
{
    const char *error = as_record_get_text(get_observed(decision), "pool_error");
    if (!*error)
        return;
    fputs("  nothing is known of them: ", out);
    as_safe_text_put(out, error);
    fputc('\n', out);
}

const struct as_decide_input *explain_pool_decide(struct as_decide_document *document)
{
    struct as_decision unused;
    if (!document->input.survey || document->input.survey->error)
        return NULL;
    as_decide_document_decide(document, &unused);
    return &document->input;
}

/* False: the decision saw no groups. */
static bool begin(struct telling *telling, const json_t *decision,
                  const struct as_decide_input *decided, FILE *out)
{
    *telling = (struct telling){.input = json_object_get(decision, "input"),
                                .output = json_object_get(decision, "output"),
                                .known = decided,
                                .out = out};
    return json_object_get(get_observed(decision), "groups") != NULL;
}

void explain_pool_print_pods(const json_t *decision, const struct as_decide_input *decided,
                             FILE *out)
{
    struct telling telling;
    if (begin(&telling, decision, decided, out) && decided &&
        asks(telling.input, "scale_up", "fit"))
        print_pods(&telling);
}

void explain_pool_print_groups(const json_t *decision, const struct as_decide_input *decided,
                               FILE *out)
{
    struct telling telling;
    if (begin(&telling, decision, decided, out))
        print_groups(&telling);
}

void explain_pool_print_nodes(const json_t *decision, const struct as_decide_input *decided,
                              FILE *out)
{
    struct telling telling;
    if (!begin(&telling, decision, decided, out) || !asks(telling.input, "scale_down", "take"))
        return;
    print_unneeded(&telling);
    print_kept(&telling);
}
