/*
 * The explanation of one decision: what was decided and why, what waits for an approval, pods,
 * groups and nodes of a pool, and what followed. It uses only the records, so that decisions of the
 * log and of a simulation look the same. Members missing in other versions are left out. What the
 * record of a pool does not say is computed again from its input.
 *
 * Long because the parts are the sections of one text, and share its members and units.
 */
#include <alertscaler/tools/explain.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/tools/record_text.h>

struct explained {
    const struct as_explanation *explanation;
    const struct as_decide_input *input;   /* NULL: of an unknown version */
    const struct as_decide_input *decided; /* the same of a pool, with its plan; or NULL */
};

/* --- texts --- */

/* Prints `text` safely between two texts of ours. */
static void explain_put(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    as_safe_text_put(out, text);
    fputs(after, out);
}

/* The sentence of a reason code; "": the word is no reason code. */
static const char *get_meaning(const char *word)
{
    enum as_reason reason;

    return as_reason_find(word, &reason) ? as_reason_get_meaning(reason) : "";
}

static const char *explain_get_meaning(const json_t *object, const char *key)
{
    return get_meaning(as_record_get_text(object, key));
}

static void explain_put_time(FILE *out, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];

    as_wall_time_print_short(time, text);
    fputs(text, out);
}

/* --- pods that wait, groups and nodes --- */

#define NAMES_MAX 10 /* of the nodes that stay for one reason */
#define MIB       ((int64_t)1 << 20)
#define GIB       ((int64_t)1 << 30)

struct explain_output {
    const json_t *input, *output;
    const struct as_decide_input *known; /* decided; NULL: of an unknown version */
    FILE *out;
};

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

static void explain_put_pod(const struct explain_output *explain_output,
                            const struct as_pod_class *pod)
{
    const struct as_res_names *names = &explain_output->known->snapshot->resources;
    const int64_t *amount = pod->requests.amount;
    FILE *out = explain_output->out;

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

struct pair { /* a pod class and a group */
    bool is_listed;
    enum as_misfit misfit;
    bool is_in_vain;
};

static enum verdict explain_judge(const struct as_snapshot_group *group, const struct pair *pair,
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
static void print_verdict(const struct explain_output *explain_output, const struct pair *pairs,
                          size_t groups, enum verdict wanted)
{
    static const char *const words[VERDICTS] = {
        [TAKES] = "    could take them: ",
        [CLOSED] = "    could take them, but do not grow: ",
        [REFUSES] = "    could not take them: ",
    };
    const char *separator = words[wanted], *why;

    for (size_t i = 0; i < groups; i++) {
        const struct as_snapshot_group *group = &explain_output->known->snapshot->groups[i];

        if (explain_judge(group, &pairs[i], &why) != wanted)
            continue;
        fputs(separator, explain_output->out);
        as_safe_text_put(explain_output->out, group->name);
        if (why)
            fprintf(explain_output->out, " (%s)", why);
        separator = ", ";
    }
    if (separator != words[wanted])
        fputc('\n', explain_output->out);
}

static bool explain_is_homeless(const struct as_pool_plan *plan, uint32_t pod_class)
{
    for (size_t i = 0; i < plan->homeless_count; i++)
        if (plan->homeless_pods[i].pod_class == pod_class)
            return true;
    return false;
}

/* All of them found room on nodes that are on their way: no group was asked. */
static bool is_placed(const struct as_decide_input *known, const struct pair *pairs, size_t groups)
{
    bool is_known = false;

    for (size_t i = 0; i < groups; i++) {
        is_known |= known->snapshot->groups[i].template_.source != AS_NODE_TEMPLATE_NONE;
        if (pairs[i].is_listed)
            return false;
    }
    return is_known && known->plan->pod_class_count < AS_POOL_CLASS_PLANS_MAX;
}

static void print_pod_class(const struct explain_output *explain_output,
                            const struct as_snapshot_pods *pods, const struct pair *pairs,
                            size_t groups)
{
    fprintf(explain_output->out, "  %" PRIu32 " pod%s of ", pods->count, get_plural(pods->count));
    explain_put_pod(explain_output,
                    &explain_output->known->snapshot->pod_classes[pods->pod_class].pod);
    fputc('\n', explain_output->out);
    if (is_placed(explain_output->known, pairs, groups)) {
        fputs("    nodes that are on their way take them\n", explain_output->out);
        return;
    }
    for (enum verdict verdict = 0; verdict < VERDICTS; verdict++)
        print_verdict(explain_output, pairs, groups, verdict);
    if (explain_is_homeless(explain_output->known->plan, pods->pod_class))
        fputs("    no group could ever take them\n", explain_output->out);
}

/* The groups of the pool come first. */
static size_t explain_count_members(const struct as_snapshot *snapshot)
{
    size_t count = 0;

    while (count < snapshot->group_count && count < AS_POOL_GROUPS_MAX &&
           snapshot->groups[count].is_member)
        count++;
    return count;
}

/* By pod class, then by group. For free(). */
static struct pair *make_pairs(const struct as_decide_input *known, size_t groups)
{
    struct pair *pairs = as_xcalloc(known->snapshot->pod_class_count * groups + 1, sizeof(*pairs));

    for (size_t i = 0; i < known->plan->pod_class_count; i++) {
        const struct as_pool_class_plan *listed = &known->plan->pod_classes[i];

        if (listed->group < groups)
            pairs[listed->pod_class * groups + listed->group] =
                (struct pair){true, listed->misfit, listed->is_in_vain};
    }
    return pairs;
}

static void print_pods(const struct explain_output *explain_output)
{
    const struct as_snapshot *snapshot = explain_output->known->snapshot;
    const size_t groups = explain_count_members(snapshot);
    uint64_t without_room = 0;

    for (size_t i = 0; i < snapshot->pending_count; i++)
        without_room += snapshot->pending[i].count;
    fprintf(explain_output->out, "  %" PRIu64 " wait%s", snapshot->pending_pods,
            snapshot->pending_pods == 1 ? "s" : "");
    if (snapshot->pending_pods > 0)
        fprintf(explain_output->out, ", %" PRIu64 " found no room on nodes that are there",
                without_room);
    fputc('\n', explain_output->out);
    struct pair *pairs = make_pairs(explain_output->known, groups);
    for (size_t i = 0; i < snapshot->pending_count; i++)
        print_pod_class(explain_output, &snapshot->pending[i],
                        &pairs[snapshot->pending[i].pod_class * groups], groups);
    free(pairs);
    if (explain_output->known->plan->is_cut)
        fputs("  the work has ended at its limit: the rest waits for the next look\n",
              explain_output->out);
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
static const char *find_last_filter(const struct explain_output *explain_output,
                                    const json_t *options)
{
    const json_t *choose = json_object_get(
        json_object_get(json_object_get(explain_output->input, "target"), "pool"), "choose");

    for (size_t i = json_array_size(choose); i > 0; i--) {
        const char *filter = json_string_value(json_array_get(choose, i - 1));
        if (filter && has_out_by(options, filter))
            return filter;
    }
    return has_out_by(options, "least_waste") ? "least_waste" : NULL;
}

static void put_choice(const struct explain_output *explain_output, const json_t *options,
                       const json_t *option)
{
    const char *dropped = as_record_get_text(option, "out_by");
    const char *filter = find_last_filter(explain_output, options);

    if (*dropped) {
        fputs(": dropped by ", explain_output->out);
        as_safe_text_put(explain_output->out, dropped);
    } else if (!json_is_true(json_object_get(option, "chosen"))) {
        fputs(": as good as the chosen one, and later in `groups`", explain_output->out);
    } else if (filter) {
        fputs(": chosen by ", explain_output->out);
        as_safe_text_put(explain_output->out, filter);
    } else {
        fputs(json_array_size(options) == 1 ? ": chosen, there is no other"
                                            : ": chosen, the first in `groups`",
              explain_output->out);
    }
}

static void print_option(const struct explain_output *explain_output, const json_t *options,
                         json_t *option)
{
    const json_int_t nodes = json_integer_value(json_object_get(option, "nodes"));
    const json_int_t pods = json_integer_value(json_object_get(option, "pods"));
    const char *filter;
    json_t *score;

    fputs("  ", explain_output->out);
    as_safe_text_put(explain_output->out, as_record_get_text(option, "group"));
    fprintf(explain_output->out,
            ": %" JSON_INTEGER_FORMAT " new node%s for %" JSON_INTEGER_FORMAT " pod%s", nodes,
            get_plural((uint64_t)nodes), pods, get_plural((uint64_t)pods));
    json_object_foreach(json_object_get(option, "scores"), filter, score)
    {
        fputs(", ", explain_output->out);
        as_safe_text_put(explain_output->out, filter);
        fprintf(explain_output->out, " %.4g", json_number_value(score));
    }
    put_choice(explain_output, options, option);
    fputc('\n', explain_output->out);
}

/* Instances that never became nodes */
static void print_unregistered(const struct explain_output *explain_output)
{
    const json_t *groups = json_object_get(explain_output->output, "overdue"), *group;
    int32_t count;
    size_t i;

    json_array_foreach(groups, i, group)
    {
        if (!as_record_get_size(group, "count", &count))
            continue;
        fputs("  ", explain_output->out);
        as_safe_text_put(explain_output->out, as_record_get_text(group, "group"));
        fprintf(explain_output->out,
                ": %" PRId32 " instance%s never became nodes, and %s removed\n", count,
                get_plural((uint64_t)count), count == 1 ? "is" : "are");
    }
}

static const struct as_snapshot_group *explain_find_group(
    const struct explain_output *explain_output, const char *name)
{
    const struct as_snapshot *snapshot =
        explain_output->known ? explain_output->known->snapshot : NULL;

    for (size_t i = 0; snapshot && i < snapshot->group_count; i++)
        if (strcmp(snapshot->groups[i].name, name) == 0)
            return &snapshot->groups[i];
    return NULL;
}

/* Groups have no lock of their own in a pool: a cooldown is a back-off. */
static void put_back_off(const struct explain_output *explain_output,
                         const struct as_snapshot_group *group)
{
    char until[AS_RFC3339_SIZE];

    if (group && group->unregistered > 0) {
        fprintf(explain_output->out,
                "%" PRId32 " node%s: requested by another controller, not registered. "
                "The group backs off",
                group->unregistered, get_plural((uint64_t)group->unregistered));
    } else if (group && group->in_doubt > 0)
        fprintf(explain_output->out, "An increase by %" PRId32 " is in doubt: the group backs off",
                group->in_doubt);
    else
        fputs("Its last increase failed: the group backs off", explain_output->out);
    if (group && group->open_at.set) {
        as_wall_time_print_short(group->open_at.at, until);
        fprintf(explain_output->out, " until %s", until);
    }
    fputc('.', explain_output->out);
}

static void print_skipped(const struct explain_output *explain_output, const char *name,
                          const char *why)
{
    const struct as_snapshot_group *group = explain_find_group(explain_output, name);

    fputs("  ", explain_output->out);
    as_safe_text_put(explain_output->out, name);
    fputs(" does not grow: ", explain_output->out);
    as_safe_text_put(explain_output->out, why);
    fputs(". ", explain_output->out);
    if (strcmp(why, as_reason_get_word(AS_REASON_COOLDOWN)) == 0)
        put_back_off(explain_output, group);
    else if (strcmp(why, as_reason_get_word(AS_REASON_AT_MAX)) == 0 && group &&
             (int64_t)group->size + group->in_doubt < group->max)
        fputs("The group has room, but the pool is at its `max`, `cpu` or `memory`.",
              explain_output->out);
    else
        fputs(get_meaning(why), explain_output->out);
    fputc('\n', explain_output->out);
}

/* Nodes of increases that were in doubt, and that the provider has accepted. */
static void print_surplus(const struct explain_output *explain_output)
{
    const struct as_snapshot *snapshot =
        explain_output->known ? explain_output->known->snapshot : NULL;
    const bool has_take = asks(explain_output->input, "scale_down", "take");
    char since[AS_RFC3339_SIZE];

    for (size_t i = 0; snapshot && i < snapshot->group_count; i++) {
        const struct as_snapshot_group *group = &snapshot->groups[i];

        if (!group->is_member || group->surplus == 0)
            continue;
        fputs("  ", explain_output->out);
        as_safe_text_put(explain_output->out, group->name);
        fprintf(explain_output->out, " has %" PRId32 " surplus node%s", group->surplus,
                get_plural((uint64_t)group->surplus));
        if (group->surplus_since.set) {
            as_wall_time_print_short(group->surplus_since.at, since);
            fprintf(explain_output->out, " since %s", since);
        }
        fputs(": an increase in doubt was accepted. ", explain_output->out);
        fputs(has_take ? "A rule with `take` removes nodes that are unneeded.\n"
                       : "They stay, as no rule with `take` is active.\n",
              explain_output->out);
    }
}

static void print_groups(const struct explain_output *explain_output)
{
    const json_t *options = json_object_get(explain_output->output, "options");
    const json_t *skipped = json_object_get(explain_output->output, "skipped");
    const json_t *groups = json_object_get(explain_output->output, "groups"), *group;
    int32_t from, to;
    json_t *option;
    size_t i;

    json_array_foreach(options, i, option) print_option(explain_output, options, option);
    json_array_foreach(skipped, i, group) print_skipped(
        explain_output, as_record_get_text(group, "group"), as_record_get_text(group, "why"));
    json_array_foreach(groups, i, group)
    {
        if (!as_record_get_size(group, "from", &from) || !as_record_get_size(group, "to", &to))
            continue;
        fputs("  ", explain_output->out);
        as_safe_text_put(explain_output->out, as_record_get_text(group, "name"));
        fprintf(explain_output->out, " goes from %" PRId32 " to %" PRId32 "\n", from, to);
    }
    print_unregistered(explain_output);
    print_surplus(explain_output);
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

static enum as_stay explain_find_stay(const char *word)
{
    enum as_stay stay = 0;

    while (stay < AS_STAY_COUNT && strcmp(as_stay_get_word(stay), word) != 0)
        stay++;
    return stay;
}

/* Names of the nodes of the snapshot that stay for this reason. Those that were cut off, and those
 * that take no pods, are only counted. */
static void put_names(const struct explain_output *explain_output, enum as_stay stay,
                      uint64_t count)
{
    const struct as_snapshot *snapshot = explain_output->known->snapshot;
    const enum as_stay *stays = explain_output->known->plan->stays;
    uint64_t named = 0;

    for (size_t i = 0; i < snapshot->node_count && named < NAMES_MAX; i++) {
        if (stays[i] != stay)
            continue;
        fputs(named++ == 0 ? ": " : ", ", explain_output->out);
        as_safe_text_put(explain_output->out, snapshot->nodes[i].node.name);
    }
    if (named > 0 && named < count)
        fprintf(explain_output->out, " and %" PRIu64 " more", count - named);
}

static void print_kept(const struct explain_output *explain_output)
{
    const char *word;
    json_t *value;

    json_object_foreach(json_object_get(explain_output->output, "kept"), word, value)
    {
        const uint64_t count = (uint64_t)json_integer_value(value);
        const enum as_stay stay = explain_find_stay(word);

        fprintf(explain_output->out, "  %" PRIu64 " stay%s, ", count, count == 1 ? "s" : "");
        as_safe_text_put(explain_output->out, word);
        fprintf(explain_output->out, " (%s)", get_stay_meaning(stay));
        if (stay < AS_STAY_COUNT && explain_output->known && explain_output->known->plan->stays)
            put_names(explain_output, stay, count);
        fputc('\n', explain_output->out);
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
static void put_due(const struct explain_output *explain_output, const struct as_unneeded *unneeded)
{
    const struct as_snapshot *snapshot = explain_output->known->snapshot;
    char text[AS_RFC3339_SIZE];

    for (size_t i = 0; i < snapshot->node_count; i++) {
        const struct as_snapshot_node *node = &snapshot->nodes[i];
        if (strcmp(node->node.name, unneeded->node) != 0 || node->group >= snapshot->group_count ||
            explain_output->known->plan->stays[i] != AS_STAY_SHORTLY)
            continue;
        const struct as_unneeded_config *config = &snapshot->groups[node->group].unneeded;
        const int64_t for_us = node->is_ready ? config->for_us : config->unready_for_us;
        if (for_us == AS_UNREADY_NEVER)
            continue;
        as_wall_time_print_short((as_wall_time){as_time_add(unneeded->since.at.us, for_us)}, text);
        fprintf(explain_output->out, ", and may leave from %s on", text);
    }
}

static void print_unneeded(const struct explain_output *explain_output)
{
    const json_t *take = json_object_get(explain_output->output, "take"), *item;
    size_t i;

    json_array_foreach(json_object_get(explain_output->output, "unneeded"), i, item)
    {
        const char *node = as_record_get_text(item, "node"),
                   *since = as_record_get_text(item, "since");
        if (!*since)
            continue;
        fputs("  ", explain_output->out);
        as_safe_text_put(explain_output->out, node);
        fputs(is_taken(take, node) ? " leaves: unneeded since " : " is unneeded since ",
              explain_output->out);
        as_safe_text_put(explain_output->out, since);
        if (explain_output->known && explain_output->known->plan->stays &&
            i < explain_output->known->plan->unneeded_count &&
            strcmp(explain_output->known->plan->unneeded[i].node, node) == 0)
            put_due(explain_output, &explain_output->known->plan->unneeded[i]);
        fputc('\n', explain_output->out);
    }
}

static const json_t *get_observed(const json_t *decision)
{
    return json_object_get(json_object_get(decision, "input"), "observed");
}

/* Each prints nothing for a decision that saw no groups. `decided`: from explain_pool_decide, or
 * NULL. */
static void explain_pool_print_error(const json_t *decision, FILE *out)
{
    const char *error = as_record_get_text(get_observed(decision), "pool_error");
    if (!*error)
        return;
    fputs("  nothing is known of them: ", out);
    as_safe_text_put(out, error);
    fputc('\n', out);
}

/* Computes the plan of a pool's decision, once. NULL: there is no snapshot, or it has an error. */
static const struct as_decide_input *explain_pool_decide(struct as_decide_document *document)
{
    struct as_decision unused;
    if (!document->input.snapshot || document->input.snapshot->error)
        return NULL;
    as_decide_document_decide(document, &unused);
    return &document->input;
}

/* False: the decision saw no groups. */
static bool explain_begin(struct explain_output *explain_output, const json_t *decision,
                          const struct as_decide_input *decided, FILE *out)
{
    *explain_output = (struct explain_output){.input = json_object_get(decision, "input"),
                                              .output = json_object_get(decision, "output"),
                                              .known = decided,
                                              .out = out};
    return json_object_get(get_observed(decision), "groups") != NULL;
}

static void explain_pool_print_pods(const json_t *decision, const struct as_decide_input *decided,
                                    FILE *out)
{
    struct explain_output explain_output;
    if (explain_begin(&explain_output, decision, decided, out) && decided &&
        asks(explain_output.input, "scale_up", "fit"))
        print_pods(&explain_output);
}

static void explain_pool_print_groups(const json_t *decision, const struct as_decide_input *decided,
                                      FILE *out)
{
    struct explain_output explain_output;
    if (explain_begin(&explain_output, decision, decided, out))
        print_groups(&explain_output);
}

static void explain_pool_print_nodes(const json_t *decision, const struct as_decide_input *decided,
                                     FILE *out)
{
    struct explain_output explain_output;
    if (!explain_begin(&explain_output, decision, decided, out) ||
        !asks(explain_output.input, "scale_down", "take"))
        return;
    print_unneeded(&explain_output);
    print_kept(&explain_output);
}

/* --- what a rule may do without an approval, and what was asked --- */

/* Of a proposal of the input, and its entry in the output. */
static void explain_print_approval(const json_t *proposal, const json_t *result, const char *unit,
                                   FILE *out)
{
    static const struct {
        const char *use, *text;
    } rows[] = {{"asks", "asks for an approval"},
                {"awaited", "waits for an approval"},
                {"refused", "not approved"},
                {"used", "approved"}};
    const json_t *terms = json_object_get(proposal, "approval");
    const char *use = as_record_get_text(result, "approval");
    const json_t *request = json_object_get(terms, "request");
    char text[AS_SIZE_TEXT_SIZE];
    int32_t above, to;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].use, use) == 0)
            explain_put(out, ", ", rows[i].text, "");
    }
    if (!*use || !as_record_get_size(terms, "above", &above))
        return;
    fprintf(out, " (by more than %s within an hour)", as_unit_print_size(unit, above, text));
    if (strcmp(use, "asks") != 0 && as_record_get_size(request, "to", &to)) {
        explain_put(out, ", request ", as_record_get_text(request, "id"), "");
        fprintf(out, " as far as %s", as_unit_print_size(unit, to, text));
    }
}

/* --- the decision of a pool, operators' commands, and what followed --- */

/* The time, and the target where it is not the one that is explained. */
static void put_start(const struct as_explanation *explanation, const json_t *record, FILE *out)
{
    const char *id = as_record_get_text(record, "target"),
               *name = as_record_get_text(record, "target_name");

    explain_put(out, "  ", as_record_get_text(record, "time"), ": ");
    if (strcmp(id, as_record_get_text(explanation->decision, "target")) != 0)
        explain_put(out, "", *name ? name : id, ": ");
}

/* What became of nodes that it chose. */
static void explain_print_nodes(const struct as_explanation *explanation, const json_t *record,
                                FILE *out)
{
    const json_t *nodes = json_object_get(record, "nodes"), *node;
    size_t i;

    put_start(explanation, record, out);
    explain_put(out, "", as_record_get_text(record, "event"), "");
    json_array_foreach(nodes, i, node)
        explain_put(out, i ? ", " : " ", json_is_string(node) ? json_string_value(node) : "?", "");
    if (*as_record_get_text(record, "message"))
        explain_put(out, ": ", as_record_get_text(record, "message"), "");
    fputs(".\n", out);
}

static void put_seconds(FILE *out, const char *before, const json_t *seconds, const char *after)
{
    char text[AS_DURATION_SIZE];
    const double us = json_number_value(seconds) * (double)AS_US_PER_S;
    as_duration_print(us < 0 ? 0 : (int64_t)us / AS_US_PER_MS * AS_US_PER_MS, text);
    explain_put(out, before, text, after);
}

/* Whether the action helped. */
static void explain_print_effect(const struct as_explanation *explanation, const json_t *record,
                                 FILE *out)
{
    const json_t *ready = json_object_get(record, "ready_after");
    const json_t *resolved = json_object_get(record, "resolved_after");
    const char *until = as_record_get_text(record, "held_until");

    put_start(explanation, record, out);
    if (json_is_number(ready))
        put_seconds(out, "as many were ready after ", ready, "; ");
    if (json_is_number(resolved))
        put_seconds(out, "its alert was resolved after ", resolved, "");
    else if (strcmp(as_record_get_text(record, "ended"), "not_resolved") == 0)
        fputs("its alert was not resolved within an hour", out);
    else
        fputs("nobody knows whether it helped: its alert expired, or the rules have changed", out);
    fputs(".\n", out);
    if (!*until)
        return;
    fprintf(out, "  The last %" JSON_INTEGER_FORMAT " actions of the rule did not help",
            json_integer_value(json_object_get(record, "in_vain")));
    explain_put(out, ": it is ineffective and held until ", until, ", or until resume.\n");
}

/* "from 10 (10Gi) to 12 (12Gi): ", in the record's unit. */
static void put_sizes(const json_t *record, int32_t from, int32_t to, FILE *out)
{
    const char *unit = as_record_get_text(record, "unit");
    char before[AS_SIZE_TEXT_SIZE], after[AS_SIZE_TEXT_SIZE];
    fprintf(out, "from %s to %s: ", as_unit_print_size(unit, from, before),
            as_unit_print_size(unit, to, after));
}

/* What a person was asked, and what became of it. */
static void print_request(const struct as_explanation *explanation, const json_t *record, FILE *out)
{
    int32_t from, to;

    put_start(explanation, record, out);
    if (as_record_get_size(record, "from", &from) && as_record_get_size(record, "to", &to))
        put_sizes(record, from, to, out);
    explain_put(out, "", as_record_get_text(record, "event"), "");
    if (*as_record_get_text(record, "command"))
        explain_put(out, " by ", as_record_get_text(record, "who"), "");
    explain_put(out, ", request ", as_record_get_text(record, "id"), "");
    if (*as_record_get_text(record, "message"))
        explain_put(out, ": ", as_record_get_text(record, "message"), "");
    fputs(".\n", out);
}

static void explain_print_change(const struct as_explanation *explanation, const json_t *action,
                                 FILE *out)
{
    int32_t from, to;
    json_int_t http = json_integer_value(json_object_get(action, "http_status"));

    put_start(explanation, action, out);
    if (as_record_get_size(action, "from", &from) && as_record_get_size(action, "to", &to)) {
        fputs(as_record_has_failed(action) ? "wanted " : "", out);
        put_sizes(action, from, to, out);
    } else if (*as_record_get_text(action, "command"))
        fputs("a size by hand: ", out);
    else
        fputs("the size could not be read: ", out);
    explain_put(out, "", as_record_get_text(action, "outcome"), "");
    if (http > 0)
        fprintf(out, ", HTTP %" JSON_INTEGER_FORMAT, http);
    if (*as_record_get_text(action, "message"))
        explain_put(out, ", ", as_record_get_text(action, "message"), "");
    explain_put(out, ". ", explain_get_meaning(action, "outcome"), "");
    if (*as_record_get_text(action, "command"))
        explain_put(out, " Not by this decision, but by an operator's command ",
                    as_record_get_text(action, "command"), ".");
    fputc('\n', out);
}

static void explain_print_action(const struct as_explanation *explanation, const json_t *record,
                                 FILE *out)
{
    static const struct {
        const char *kind;
        void (*print)(const struct as_explanation *explanation, const json_t *record, FILE *out);
    } kinds[] = {{"nodes", explain_print_nodes},
                 {"effect", explain_print_effect},
                 {"approval", print_request}};
    const char *kind = as_record_get_text(record, "kind");
    size_t i = 0;
    while (i < AS_ARRAY_SIZE(kinds) && strcmp(kinds[i].kind, kind) != 0)
        i++;
    if (i < AS_ARRAY_SIZE(kinds))
        kinds[i].print(explanation, record, out);
    else
        explain_print_change(explanation, record, out);
}

/* The operator, the order and the reason. */
static void explain_print_command(const json_t *command, FILE *out)
{
    int32_t size;
    explain_put(out, "  ", as_record_get_text(command, "time"), ": ");
    explain_put(out, "", as_record_get_text(command, "command"), "");
    if (as_record_get_size(command, "replicas", &size))
        fprintf(out, " to %" PRId32, size);
    if (*as_record_get_text(command, "who"))
        explain_put(out, " by ", as_record_get_text(command, "who"), "");
    if (*as_record_get_text(command, "until"))
        explain_put(out, " until ", as_record_get_text(command, "until"), "");
    explain_put(out, ": ", as_record_get_text(command, "reason"), "");
    if (strcmp(as_record_get_text(command, "outcome"), "done") != 0)
        explain_put(out, ". Nothing was done: ", as_record_get_text(command, "message"), "");
    explain_put(out, " (command ", as_record_get_text(command, "id"), ")\n");
}

static void explain_print_commands(const struct explained *explained, FILE *out)
{
    const struct as_explanation *explanation = explained->explanation;
    json_t *command;
    size_t i;
    json_array_foreach(explanation->commands, i, command) explain_print_command(command, out);
}

/* What a group made of its assignment, and of its nodes. */
static void print_assignment(const struct as_explanation *explanation, json_t *record, FILE *out)
{
    const json_t *output = json_object_get(record, "output");
    int32_t from, to;

    if (strcmp(as_record_get_text(record, "kind"), "decision") != 0) {
        explain_print_action(explanation, record, out);
        return;
    }
    put_start(explanation, record, out);
    if (as_record_get_size(output, "replicas", &from) && as_record_get_size(output, "desired", &to))
        fprintf(out, "decided from %" PRId32 " to %" PRId32 ": ", from, to);
    explain_put(out, "", as_record_get_text(output, "reason"), "");
    explain_put(out, " (decision ", as_record_get_text(record, "id"), ")\n");
}

/* Where the size comes from. */
static void explain_print_pool_decision(const struct explained *explained, FILE *out)
{
    const struct as_explanation *explanation = explained->explanation;
    const char *id = as_record_get_text(explanation->decision, "pool_decision");
    const json_t *output = json_object_get(explanation->pool, "output");
    const char *time = as_record_get_text(explanation->pool, "time");
    const char *name = as_record_get_text(explanation->pool, "target_name");
    int32_t from, to;

    if (!*id)
        return;
    explain_put(out, "  this carries out decision ", id, "");
    if (!explanation->pool) {
        fputs(", which is not in these files\n", out);
        return;
    }
    explain_put(out, " of ", name, "");
    if (as_record_get_size(output, "replicas", &from) && as_record_get_size(output, "desired", &to))
        fprintf(out, ", from %" PRId32 " to %" PRId32, from, to);
    explain_put(out, ": ", as_record_get_text(output, "reason"), "");
    explain_put(out, ", rule ", as_record_get_text(output, "rule"), "");
    explain_put(out, "\n  alertscaler explain --target ", name, "");
    explain_put(out, " --at ", time, " says why\n");
}

static void explain_print_what_followed(const struct explained *explained, FILE *out)
{
    const struct as_explanation *explanation = explained->explanation;
    const json_t *output = json_object_get(explanation->decision, "output");
    const char *next = as_record_get_text(output, "next_evaluation");
    json_t *action;
    size_t i;

    json_array_foreach(explanation->actions, i, action)
        explain_print_action(explanation, action, out);
    json_array_foreach(explanation->assignments, i, action)
        print_assignment(explanation, action, out);
    if (json_array_size(explanation->actions) + json_array_size(explanation->assignments) == 0)
        fputs("  no action\n", out);
    if (explanation->repeats > 0)
        fprintf(out, "  the same decision %lld more time%s\n", explanation->repeats,
                explanation->repeats == 1 ? "" : "s");
    if (*next)
        explain_put(out, "  the same input would be decided otherwise from ", next, " on\n");
    if (explanation->until.set) {
        fputs("  the next decision came at ", out);
        explain_put_time(out, explanation->until.at);
        fputc('\n', out);
    }
}

/* --- the parts --- */

static void put_value(FILE *out, const json_t *value)
{
    if (json_is_string(value)) {
        as_safe_text_put(out, json_string_value(value));
        return;
    }
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    as_safe_text_put(out, text ? text : "?");
    free(text);
}

/* by 50%, at_least 2 */
static void put_members(FILE *out, json_t *object)
{
    const char *key, *separator = " ";
    json_t *value;

    json_object_foreach(object, key, value)
    {
        explain_put(out, separator, key, " ");
        put_value(out, value);
        separator = ", ";
    }
}

void as_explain_print_action(json_t *action, FILE *out)
{
    const char *kind;
    json_t *value;

    json_object_foreach(action, kind, value)
    {
        as_safe_text_put(out, kind);
        if (json_is_object(value)) {
            put_members(out, value);
        } else {
            fputc(' ', out);
            put_value(out, value);
        }
    }
}

static void put_span(FILE *out, int64_t us)
{
    char text[AS_DURATION_SIZE];

    as_duration_print(
        us < AS_US_PER_S ? us / AS_US_PER_MS * AS_US_PER_MS : us / AS_US_PER_S * AS_US_PER_S, text);
    fputs(text, out);
}

static void explain_print_head(const struct explained *explained, FILE *out)
{
    const struct as_explanation *explanation = explained->explanation;
    const char *name = as_record_get_text(explanation->decision, "target_name");
    const char *id = as_record_get_text(explanation->decision, "target");
    json_int_t seq = json_integer_value(json_object_get(explanation->decision, "seq"));
    as_wall_time decided = {0};

    explain_put(out, "", *name ? name : id, "");
    if (*name)
        explain_put(out, " (", id, ")");
    fputc('\n', out);
    if (explanation->at.set) {
        fputs("at ", out);
        explain_put_time(out, explanation->at.at);
        fputs(", by ", out);
    }
    fputs("the decision of ", out);
    if (as_record_get_time(explanation->decision, &decided, NULL) == 0)
        explain_put_time(out, decided);
    if (explanation->at.set && decided.us < explanation->at.at.us) {
        fputs(", ", out);
        put_span(out, explanation->at.at.us - decided.us);
        fputs(" before", out);
    }
    if (seq > 0)
        fprintf(out, " (record %" JSON_INTEGER_FORMAT ")", seq);
    fputc('\n', out);
}

/* Who forbids the direction; `held_by` may be absent. */
static void print_holder(FILE *out, const json_t *held_by)
{
    const char *by = as_record_get_text(held_by, "by"), *name = as_record_get_text(held_by, "name");

    if (!*by)
        return;
    if (strcmp(by, as_holder_get_word(AS_HOLDER_ROLLOUT)) == 0) {
        explain_put(out, *name ? "The progress of the rollout is not known: " : "", name,
                    *name ? "\n" : "");
        return;
    }
    explain_put(out, "It is held by: ", by, "");
    if (*name)
        explain_put(out, " ", name, "");
    fputc('\n', out);
}

/* What is still in progress, where that is the reason. The target that comes first by `after` has a
 * sentence of its own. */
static void explain_print_progress(FILE *out, const json_t *decision)
{
    static const struct {
        const char *word, *meaning;
    } causes[] = {
#define CAUSE(enumerator, word, meaning) {word, meaning},
        AS_IN_PROGRESS_CAUSES(CAUSE)
#undef CAUSE
    };
    const json_t *flags = json_object_get(json_object_get(decision, "input"), "flags");
    const char *reason = as_record_get_text(json_object_get(decision, "output"), "reason");
    const char *by = as_record_get_text(flags, "in_progress_by");
    if (strcmp(reason, as_reason_get_word(AS_REASON_IN_PROGRESS)) != 0 ||
        *as_record_get_text(decision, "waits_for"))
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(causes); i++)
        if (strcmp(causes[i].word, by) == 0)
            fprintf(out, "%s\n", causes[i].meaning);
}

/* The size that an operator's command set after the decision, which knows nothing of it. */
static void explain_print_ordered(FILE *out, const struct as_explanation *explanation,
                                  const char *unit)
{
    const json_t *last = NULL, *action;
    char text[AS_SIZE_TEXT_SIZE];
    int32_t to;
    size_t i;
    json_array_foreach(explanation->actions, i, action)
    {
        if (*as_record_get_text(action, "command") &&
            strcmp(as_record_get_text(action, "kind"), "action") == 0 &&
            strcmp(as_record_get_text(action, "outcome"), as_reason_get_word(AS_REASON_APPLIED)) ==
                0)
            last = action;
    }
    if (last && as_record_get_size(last, "to", &to))
        fprintf(out, "Since then an operator's command has set the size to %s.\n",
                as_unit_print_size(unit, to, text));
}

/* The last action of the decision, if it failed and none was carried out; or NULL. */
static const json_t *explain_find_failure(const struct as_explanation *explanation)
{
    const json_t *last = NULL, *action;
    size_t i;
    json_array_foreach(explanation->actions, i, action)
    {
        int32_t to;
        if (strcmp(as_record_get_text(action, "kind"), "action") != 0 ||
            *as_record_get_text(action, "command") || !as_record_get_size(action, "to", &to))
            continue;
        if (!as_record_has_failed(action))
            return NULL;
        last = action;
    }
    return last;
}

/* The missing proof that monitoring works. */
static void print_proof(const json_t *decision, FILE *out)
{
    const json_t *proof = json_object_get(decision, "proof");
    const char *query = as_record_get_text(proof, "query"),
               *reported = as_record_get_text(proof, "reported");
    const json_t *every = json_object_get(proof, "every_seconds");
    const char *state = as_record_get_text(proof, "state_reason");
    if (!proof)
        return;
    if (*state) {
        explain_put(out, "The query is not the reason of the alert: grafana_state_reason is ",
                    state, ".\n");
        return;
    }
    if (*query) {
        explain_put(out, "The rule's guard returned no sample: ", query, "\n");
        return;
    }
    fputs("The watchdog does not prove yet that monitoring works: ", out);
    if (*reported)
        explain_put(out, "its last report is of ", reported, "");
    else
        fputs("no report since alertscaler was started", out);
    if (json_is_number(every))
        put_seconds(out, "; it repeats every ", every, "");
    fputs(".\n", out);
}

static const json_t *explain_find_opening(const struct as_explanation *explanation,
                                          const char *incident)
{
    const json_t *opened = NULL;
    json_t *each;
    size_t i;
    json_array_foreach(explanation->incidents, i, each)
    {
        if (strcmp(as_record_get_incident(each), incident) == 0)
            opened = each;
    }
    return opened;
}

/* Gives back 2 of the 4 that the incident HighCPU{...} added: step 1 of 2. */
static void print_give_back(const struct as_explanation *explanation, FILE *out)
{
    const json_t *step = json_object_get(explanation->decision, "give_back");
    const char *unit = as_record_get_text(explanation->decision, "unit");
    const char *incident = as_record_get_text(step, "incident");
    const json_t *opened = explain_find_opening(explanation, incident);
    char amount_text[AS_SIZE_TEXT_SIZE], added_text[AS_SIZE_TEXT_SIZE];
    int32_t amount, added;
    if (!as_record_get_size(step, "amount", &amount) || !as_record_get_size(step, "added", &added))
        return;
    fprintf(out, "The step gives back %s of the %s that the resolved incident ",
            as_unit_print_size(unit, amount, amount_text),
            as_unit_print_size(unit, added, added_text));
    if (opened)
        as_record_print_labels(json_object_get(opened, "labels"), out);
    else
        as_safe_text_put(out, incident);
    fprintf(out, " added: step %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT ".\n",
            json_integer_value(json_object_get(step, "step")),
            json_integer_value(json_object_get(step, "steps")));
}

static void print_schedule_end(const json_t *decision, FILE *out)
{
    const json_t *input = json_object_get(decision, "input"), *proposal;
    size_t i;

    json_array_foreach(json_object_get(input, "proposals"), i, proposal)
    {
        const char *schedule = as_record_get_text(proposal, "schedule");
        if (*schedule)
            explain_put(out, "The schedule that has ended is ", schedule, ".\n");
    }
}

static void print_result(const struct explained *explained, FILE *out)
{
    const struct as_explanation *explanation = explained->explanation;
    const json_t *output = json_object_get(explanation->decision, "output");
    const char *rule = as_record_get_text(output, "rule");
    const char *waits_for = as_record_get_text(explanation->decision, "waits_for");
    int32_t from = 0, to = 0, would = 0;
    bool has_sizes =
        as_record_get_size(output, "replicas", &from) && as_record_get_size(output, "desired", &to);

    char text[AS_SIZE_TEXT_SIZE], other[AS_SIZE_TEXT_SIZE];
    const char *unit = as_record_get_text(explanation->decision, "unit");
    const json_t *failure = explain_find_failure(explanation);

    if (has_sizes && from != to && failure) {
        fprintf(out, "Wanted %s to %s; ", as_unit_print_size(unit, from, text),
                as_unit_print_size(unit, to, other));
        as_record_print_failure(failure, explanation->at, out);
        explain_put(out, ".\n", explain_get_meaning(failure, "outcome"), "\n");
    } else if (has_sizes && from == to)
        fprintf(out, "The size stays at %s: ", as_unit_print_size(unit, from, text));
    else if (has_sizes)
        fprintf(out, "The size goes from %s to %s: ", as_unit_print_size(unit, from, text),
                as_unit_print_size(unit, to, other));
    if (!has_sizes || from == to || !failure) {
        explain_put(out, "", as_record_get_text(output, "reason"), ".\n");
        explain_put(out, "", explain_get_meaning(output, "reason"), "\n");
    }
    print_schedule_end(explanation->decision, out);
    print_proof(explanation->decision, out);
    print_give_back(explanation, out);
    explain_print_ordered(out, explanation, unit);
    print_holder(out, json_object_get(output, "held_by"));
    explain_print_progress(out, explanation->decision);
    if (as_record_get_size(output, "would", &would))
        fprintf(out, "It would go to %s.\n", as_unit_print_size(unit, would, text));
    if (*rule)
        explain_put(out, "The rule that counts is ", rule, ".\n");
    if (*waits_for)
        explain_put(out, "By `after`, it waits until ", waits_for,
                    " is decreased, 30 seconds at most.\n");
}

static void print_incidents(const struct explained *explained, FILE *out)
{
    const struct as_explanation *explanation = explained->explanation;
    const json_t *list = json_object_get(explanation->decision, "incidents"), *item;
    size_t i, j;

    json_array_foreach(list, i, item)
    {
        const char *incident = json_string_value(item);
        json_t *opened = NULL, *each;
        json_array_foreach(explanation->incidents, j, each)
        {
            if (incident && strcmp(as_record_get_incident(each), incident) == 0)
                opened = each;
        }
        fputs("  ", out);
        if (opened) {
            as_record_print_labels(json_object_get(opened, "labels"), out);
            explain_put(out, ", firing since ", as_record_get_text(opened, "startsAt"), "");
        } else {
            explain_put(out, "", incident ? incident : "?", "");
        }
        fputc('\n', out);
    }
    json_array_foreach(
        json_object_get(json_object_get(explanation->decision, "input"), "proposals"), i, item)
    {
        if (strcmp(as_record_get_text(item, "incident"), AS_INCIDENT_ALWAYS) == 0)
            explain_put(out, "  always: rule ", as_record_get_text(item, "rule"),
                        " needs no alert\n");
    }
}

/* When the alert was last reported, if that matters. */
static void put_report(FILE *out, const json_t *proposal)
{
    const json_t *reported = json_object_get(proposal, "reported");
    if (json_is_null(reported))
        fputs(", not reported since alertscaler was started", out);
    else
        explain_put(out, reported ? ", last reported at " : "",
                    as_record_get_text(proposal, "reported"), "");
}

/* NULL: of an unknown version. */
static struct as_decide_document *decode_input(const struct as_explanation *explanation)
{
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;
    return as_decision_decode_record(explanation->line, explanation->line_size, &document, &error)
               ? NULL
               : document;
}

/* No value was used, as no node is open. */
static bool is_made_up(const struct as_decide_input *input, size_t i)
{
    return as_decide_has_exact_nodes(input) && input->nodes &&
           as_nodes_seen_is_made_up(input->nodes, input->proposals[i].nodes);
}

/* With the value that the nodes gave. */
static struct as_proposal explain_get_valued(const struct as_decide_input *input, size_t i)
{
    struct as_proposal valued = input->proposals[i];
    struct as_error error;
    if (valued.nodes && input->nodes)
        valued.has_value =
            as_nodes_seen_get(input->nodes, valued.nodes, &valued.value, &error) == 0;
    return valued;
}

/* NULL: no step is crossed, or there are none. */
static const struct as_step *explain_find_step(const struct as_proposal *valued)
{
    return valued->has_value ? as_action_find_step(&valued->action, valued->value) : NULL;
}

/* The nodes or ready pods that share the value. */
static int64_t explain_count_shares(const struct as_decide_input *input,
                                    const struct as_proposal *proposal)
{
    return proposal->nodes && input->nodes ? input->nodes->open : as_decide_count_ready(input);
}

static void put_step_bound(FILE *out, const struct as_proposal *proposal,
                           const struct as_step *step)
{
    const bool is_table = proposal->action.kind == AS_ACTION_SCALE_TO;
    fprintf(out, "%s %g counts",
            is_table         ? "from"
            : step->is_above ? "above"
                             : "below",
            step->bound);
}

/* The step of a table that applies, and its result. */
static void put_step(FILE *out, const struct as_decide_input *input, size_t i)
{
    if (!input || i >= input->proposal_count || input->proposals[i].action.step_count == 0 ||
        is_made_up(input, i))
        return;
    const struct as_proposal valued = explain_get_valued(input, i);
    const struct as_proposal *proposal = &valued;
    const struct as_step *step = explain_find_step(proposal);
    const int64_t count = explain_count_shares(input, proposal);
    if (!step && proposal->has_value)
        fputs(", no step is crossed", out);
    if (!step)
        return;
    fputs(", ", out);
    put_step_bound(out, proposal, step);
    if (step->to > 0 && count > 0)
        fprintf(out, ": %" PRId64 " x %g / %g, rounded up", count, proposal->value, step->to);
    else if (step->to > 0)
        fprintf(out, ": %g / %g, rounded up", proposal->value, step->to);
}

void as_explain_put_change(FILE *out, int32_t size, bool up, const struct as_amount *amount,
                           int64_t of, bool rounds_up)
{
    const __int128 part = (__int128)of * amount->milli_percent;
    const __int128 rounded = (part + (rounds_up ? 99999 : 0)) / 100000;
    fprintf(out, "%" PRId32 " %s ", size, up ? "plus" : "less");
    if (!amount->is_percent)
        fprintf(out, "%" PRId64, amount->size);
    else if (rounded < amount->at_least)
        fprintf(out, "at_least %" PRId64, amount->at_least);
    else
        fprintf(out, "%s(%g %% of %" PRId64 ")", rounds_up ? "ceil" : "floor",
                (double)amount->milli_percent / 1000, of);
}

/* n x v / X: what brings the value to `to`. */
static void put_goal(FILE *out, const struct as_decide_input *input,
                     const struct as_proposal *proposal, double to)
{
    const int64_t count = explain_count_shares(input, proposal);
    if (count > 0 && count != input->replicas)
        fprintf(out, "%" PRId32 " plus ", input->replicas);
    if (count > 0)
        fprintf(out, "ceil(%" PRId64 " x %g / %g)", count, proposal->value, to);
    else
        fprintf(out, "ceil(%g / %g)", proposal->value, to);
    if (count > 0 && count != input->replicas)
        fprintf(out, " less %" PRId64, count);
}

static bool put_scale_arithmetic(FILE *out, const struct as_decide_input *input,
                                 const struct as_proposal *proposal)
{
    const struct as_action *action = &proposal->action;
    const struct as_step *step = explain_find_step(proposal);
    const bool up = action->kind == AS_ACTION_SCALE_UP;
    if (action->is_fit || action->is_take || (action->step_count > 0 && !step))
        return false;
    if (step) {
        fprintf(out, "the value is %g, ", proposal->value);
        put_step_bound(out, proposal, step);
        fputs(": ", out);
    }
    if (action->is_to || action->kind == AS_ACTION_SCALE_TO)
        fputs(step ? "the size" : "the size of the rule", out);
    else if (step && step->to > 0)
        put_goal(out, input, proposal, step->to);
    else
        as_explain_put_change(out, input->replicas, up, step ? &step->amount : &action->amount,
                              input->replicas, up);
    return true;
}

/* Only if it gives the result: HPA's treatment of missing and unready pods is no short formula. */
static bool put_track_arithmetic(FILE *out, const struct as_decide_input *input,
                                 const struct as_proposal *proposal,
                                 const struct as_proposal_result *result)
{
    const struct as_track *track = &proposal->action.track;
    const double value = result->has_average ? result->average : proposal->value;
    const bool by_spec = input->config.rollout == AS_ROLLOUT_BY_SPEC && input->replicas > 0;
    const bool is_total =
        !result->has_average && (track->goal == AS_GOAL_AVERAGE_VALUE || input->replicas == 0);
    const double counted = result->has_average ? (double)proposal->sample_count
                                               : as_decide_count_tracked(input, track);
    const bool is_of_counted = !by_spec || (value > track->value && counted < input->replicas);
    const double count = is_total ? 1 : is_of_counted ? counted : input->replicas;
    const double size = ceil(count * value / track->value - 1e-9);
    const char *unit = track->goal == AS_GOAL_UTILIZATION ? " %" : "";
    if (!result->has_average && !proposal->has_value)
        return false;
    if (result->within_tolerance) {
        fprintf(out, "%g%s of ", value, unit);
        if (track->goal == AS_GOAL_AVERAGE_VALUE && !result->has_average)
            fprintf(out, "%" PRId32 " x ", by_spec ? input->replicas : input->status_replicas);
        fprintf(out, "%g%s is within the tolerance: the size", track->value, unit);
        return true;
    }
    if (size < result->desired || size > result->desired)
        return false;
    fputs("ceil(", out);
    if (result->has_average || (track->goal == AS_GOAL_VALUE && input->replicas > 0))
        fprintf(out, "%g x ", count);
    fprintf(out, "%g%s / %g%s)", value, unit, track->value, unit);
    return true;
}

bool as_explain_put_arithmetic(FILE *out, const struct as_decide_input *input, size_t i,
                               const struct as_proposal_result *result)
{
    const struct as_proposal proposal = explain_get_valued(input, i);
    bool is_put = false;
    if (!result->has_size || result->is_missing || result->ban || proposal.error ||
        is_made_up(input, i))
        return false;
    switch (proposal.action.kind) {
    case AS_ACTION_SCALE_UP:
    case AS_ACTION_SCALE_DOWN:
    case AS_ACTION_SCALE_TO: is_put = put_scale_arithmetic(out, input, &proposal); break;
    case AS_ACTION_TRACK: is_put = put_track_arithmetic(out, input, &proposal, result); break;
    case AS_ACTION_PASS_THROUGH:
        fprintf(out, "ceil(%g)", proposal.value);
        is_put = true;
        break;
    case AS_ACTION_HOLD:
    case AS_ACTION_KIND_COUNT: break;
    }
    if (is_put)
        fprintf(out, " is %" PRId32, result->desired);
    return is_put;
}

/* The value that the source `nodes` gave, or why there is none. */
static void put_nodes(FILE *out, const struct as_decide_input *input, size_t i)
{
    if (!input || i >= input->proposal_count || !input->proposals[i].nodes)
        return;
    struct as_error error = AS_ERROR_INIT;
    double value;
    explain_put(out, ", the nodes' ", as_nodes_word_get_text(input->proposals[i].nodes), "");
    if (!input->nodes)
        fputs(" is not known", out);
    else if (is_made_up(input, i))
        fprintf(out,
                " has no value, as no node is open: %" PRId64 " pods wait, %" PRId64
                " nodes are on their way",
                input->nodes->waiting, input->nodes->coming);
    else if (as_nodes_seen_get(input->nodes, input->proposals[i].nodes, &value, &error) == 0)
        fprintf(out, " is %g", value);
    else
        explain_put(out, " is not known: ", error.text, "");
}

static void print_proposals(const struct explained *explained, FILE *out)
{
    const struct as_explanation *explanation = explained->explanation;
    const json_t *asked =
        json_object_get(json_object_get(explanation->decision, "input"), "proposals");
    const json_t *results =
        json_object_get(json_object_get(explanation->decision, "output"), "proposals");
    json_t *item;
    size_t i;

    json_array_foreach(asked, i, item)
    {
        const json_t *result = json_array_get(results, i);
        const char *rule = as_record_get_text(item, "rule"),
                   *schedule = as_record_get_text(item, "schedule"),
                   *reason = as_record_get_text(result, "reason");
        const char *error = as_record_get_text(item, "error");
        const bool is_floor = strcmp(reason, "floor") == 0;
        const bool is_hold = strcmp(reason, "hold") == 0;
        char text[AS_SIZE_TEXT_SIZE];
        int32_t size;
        explain_put(out, *schedule ? "  the end of schedule " : "  ",
                    *schedule ? schedule
                    : *rule   ? rule
                              : "?",
                    "");
        if (as_record_get_size(result, "desired", &size))
            fprintf(
                out, is_floor ? " keeps at least %s" : " wants %s",
                as_unit_print_size(as_record_get_text(explanation->decision, "unit"), size, text));
        else
            fputs(is_hold ? " forbids a direction" : " wants no size", out);
        if (*reason && strcmp(reason, "ok") != 0 && !is_floor && !is_hold)
            explain_put(out, ", ", reason, "");
        fputs(": ", out);
        as_explain_print_action(json_object_get(item, "action"), out);
        if (json_is_number(json_object_get(item, "value")))
            fprintf(out, ", the value is %g", json_number_value(json_object_get(item, "value")));
        put_nodes(out, explained->input, i);
        put_step(out, explained->input, i);
        if (json_array_size(json_object_get(item, "samples")) > 0)
            fprintf(out, ", from %zu pods", json_array_size(json_object_get(item, "samples")));
        if (*error)
            explain_put(out, ", ", error, "");
        explain_put(out,
                    *as_record_get_text(item, "unavailable_since") ? ", unavailable since " : "",
                    as_record_get_text(item, "unavailable_since"), "");
        put_report(out, item);
        explain_print_approval(item, result, as_record_get_text(explanation->decision, "unit"),
                               out);
        fputc('\n', out);
    }
}

static void put_lock(FILE *out, const json_t *input)
{
    const json_t *cooldown = json_object_get(json_object_get(input, "target"), "cooldown");
    const json_t *history = json_object_get(input, "history");
    const char *up = as_record_get_text(history, "last_up"),
               *down = as_record_get_text(history, "last_down");

    fprintf(out, ": up %g s, down %g s", json_number_value(json_object_get(cooldown, "up")),
            json_number_value(json_object_get(cooldown, "down")));
    if (*up)
        explain_put(out, ", last scale-up ", up, "");
    if (*down)
        explain_put(out, ", last scale-down ", down, "");
}

static void put_flags(FILE *out, const json_t *input)
{
    const char *step = as_record_get_text(json_object_get(input, "history"), "last_step_down");
    const char *key;
    json_t *flags = json_object_get(input, "flags"), *value;

    json_object_foreach(flags, key, value)
    {
        if (json_is_true(value))
            explain_put(out, ": ", key, "");
    }
    if (*step)
        explain_put(out, ", last step down at ", step, "");
}

/* What the bounds may come from. */
static void put_bounds_causes(FILE *out, const json_t *target)
{
    const json_t *schedules = json_object_get(target, "schedules"), *name;
    int32_t floor;
    size_t i;

    if (as_record_get_size(target, "floor", &floor))
        fprintf(out, ", with a floor of %" PRId32, floor);
    json_array_foreach(schedules, i, name)
    {
        explain_put(out, i == 0 ? ", with schedule " : ", ", json_string_value(name), "");
    }
}

/* The input that made the gate act. */
static void put_gate_detail(FILE *out, enum as_gate gate, const json_t *input)
{
    const json_t *target = json_object_get(input, "target");
    int32_t min = 0, max = 0;

    switch (gate) {
    case AS_GATE_OUT_OF_BOUNDS:
    case AS_GATE_BOUNDS:
        if (as_record_get_size(target, "min", &min) && as_record_get_size(target, "max", &max))
            fprintf(out, ": min %" PRId32 ", max %" PRId32, min, max);
        put_bounds_causes(out, target);
        break;
    case AS_GATE_COOLDOWN: put_lock(out, input); break;
    case AS_GATE_HOLDS: put_flags(out, input); break;
    case AS_GATE_SWITCHED_OFF:
    case AS_GATE_COMBINE:
    case AS_GATE_STABILIZE:
    case AS_GATE_POLICIES:
    case AS_GATE_APPROVAL:
    case AS_GATE_DRY_RUN:
    case AS_GATE_COUNT: break;
    }
}

/* What paused the target. */
static void explain_put_pause(FILE *out, const json_t *pause)
{
    if (!pause)
        return;
    fputs(json_is_true(json_object_get(pause, "all")) ? "; all targets" : "; the target", out);
    explain_put(out, *as_record_get_text(pause, "who") ? ", by " : "",
                as_record_get_text(pause, "who"), "");
    if (*as_record_get_text(pause, "until"))
        explain_put(out, ", until ", as_record_get_text(pause, "until"), "");
    explain_put(out, ": ", as_record_get_text(pause, "reason"), "");
}

/* Who has set the size back, and until when it is left alone. */
static void put_contended(FILE *out, const json_t *contended)
{
    const json_t *each;
    int32_t to, found;
    size_t i;
    if (!contended)
        return;
    explain_put(out, "; left alone until ", as_record_get_text(contended, "until"), "");
    json_array_foreach(json_object_get(contended, "set_backs"), i, each)
    {
        const char *by = as_record_get_text(each, "by");
        explain_put(out, "; at ", as_record_get_text(each, "at"), " ");
        explain_put(out, "", *by ? by : "somebody", " set ");
        if (as_record_get_size(each, "to", &to) && as_record_get_size(each, "found", &found))
            fprintf(out, "%" PRId32 " back to %" PRId32, to, found);
    }
}

/* A text for free(). */
static char *make_gate_text(const struct as_explanation *explanation, enum as_gate gate)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort(); /* only without memory */
    if (gate < AS_GATE_COUNT) {
        fputs(as_gate_get_meaning(gate), out);
        put_gate_detail(out, gate, json_object_get(explanation->decision, "input"));
    }
    if (gate == AS_GATE_HOLDS) {
        explain_put_pause(out, json_object_get(explanation->decision, "pause"));
        put_contended(out, json_object_get(explanation->decision, "contended"));
    }
    if (fclose(out) != 0)
        abort();
    return text;
}

void as_explain_visit_gates(const struct as_explanation *explanation, as_explain_gate_fn *visit,
                            void *context)
{
    const json_t *output = json_object_get(explanation->decision, "output"), *item;
    const bool is_other = *as_record_get_text(explanation->decision, "former_uid");
    int32_t size;
    size_t i;

    if (as_record_get_size(output, "replicas", &size))
        visit(context, "observed", size,
              is_other ? "the size that was found, of another object than before: nothing locks it "
                         "yet"
                       : "the size that was found");
    json_array_foreach(json_object_get(output, "trail"), i, item)
    {
        const char *word = as_record_get_text(item, "gate");
        enum as_gate gate = 0;
        while (gate < AS_GATE_COUNT && strcmp(as_gate_get_word(gate), word) != 0)
            gate++;
        if (!as_record_get_size(item, "desired", &size))
            size = -1;
        char *text = make_gate_text(explanation, gate);
        visit(context, word, size, text);
        free(text);
    }
}

static void explain_print_gate(void *context, const char *gate, int32_t size, const char *text)
{
    FILE *out = context;
    fputs("  ", out);
    as_safe_text_put(out, gate);
    fprintf(out, "%*s", strlen(gate) < 13 ? (int)(13 - strlen(gate)) : 1, "");
    if (size >= 0)
        fprintf(out, " %6" PRId32, size);
    fprintf(out, *text ? "  %s\n" : "%s\n", text);
}

static void explain_print_gates(const struct explained *explained, FILE *out)
{
    const struct as_explanation *explanation = explained->explanation;
    const json_t *output = json_object_get(explanation->decision, "output");
    const json_t *limits = json_object_get(output, "limited_by"), *item;
    size_t i;

    as_explain_visit_gates(explanation, explain_print_gate, out);
    json_array_foreach(limits, i, item) explain_put(
        out, i ? ", " : "  limited by ", json_is_string(item) ? json_string_value(item) : "?", "");
    if (json_array_size(limits) > 0)
        fputc('\n', out);
}

static void print_groups_error(const struct explained *explained, FILE *out)
{
    explain_pool_print_error(explained->explanation->decision, out);
}

static void explain_print_pods(const struct explained *explained, FILE *out)
{
    explain_pool_print_pods(explained->explanation->decision, explained->decided, out);
}

static void explain_print_groups(const struct explained *explained, FILE *out)
{
    explain_pool_print_groups(explained->explanation->decision, explained->decided, out);
}

static void explain_print_unneeded(const struct explained *explained, FILE *out)
{
    explain_pool_print_nodes(explained->explanation->decision, explained->decided, out);
}

static const struct part {
    const char *title;
    void (*print)(const struct explained *explained, FILE *out);
} parts[] = {
    {"", explain_print_head},
    {"Result", print_result},
    {"Its pool", explain_print_pool_decision},
    {"Incidents", print_incidents},
    {"Rules", print_proposals},
    {"Nodes", print_groups_error},
    {"Pods that wait", explain_print_pods},
    {"Node groups", explain_print_groups},
    {"Nodes", explain_print_unneeded},
    {AS_EXPLAIN_GATES, explain_print_gates},
    {"Operators", explain_print_commands},
    {"What followed", explain_print_what_followed},
};

void as_explain_visit_parts(const struct as_explanation *explanation, as_explain_part_fn *visit,
                            void *context)
{
    AS_CLEANUP(as_decide_document_free_p)
    struct as_decide_document *document = decode_input(explanation);
    AS_CLEANUP(as_decide_document_free_p)
    struct as_decide_document *pool =
        document && document->input.snapshot ? decode_input(explanation) : NULL;
    const struct explained explained = {
        .explanation = explanation,
        .input = document ? &document->input : NULL,
        .decided = pool ? explain_pool_decide(pool) : NULL,
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(parts); i++) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        if (!out)
            abort(); /* only without memory */
        parts[i].print(&explained, out);
        if (fclose(out) != 0)
            abort();
        if (*text)
            visit(context, parts[i].title, text);
        free(text);
    }
}

static void explain_print_part(void *context, const char *title, const char *text)
{
    FILE *out = context;
    if (strcmp(title, "Result") == 0)
        fputc('\n', out);
    else if (*title)
        fprintf(out, "\n%s\n", title);
    fputs(text, out);
}

void as_explain_print(const struct as_explanation *explanation, FILE *out)
{
    as_explain_visit_parts(explanation, explain_print_part, out);
}

static json_t *make_time(as_maybe_time time)
{
    char text[AS_RFC3339_SIZE];

    if (!time.set)
        return json_null();
    as_wall_time_print_short(time.at, text);
    return json_string(text);
}

json_t *as_explain_make_json(const struct as_explanation *explanation)
{
    json_t *json = json_object();

    json_object_set_new(json, "actions", json_incref(explanation->actions));
    json_object_set_new(json, "at", make_time(explanation->at));
    if (explanation->commands)
        json_object_set_new(json, "commands", json_incref(explanation->commands));
    json_object_set_new(json, "decision", json_incref(explanation->decision));
    json_object_set_new(json, "incidents", json_incref(explanation->incidents));
    json_object_set_new(json, "meaning",
                        json_string(explain_get_meaning(
                            json_object_get(explanation->decision, "output"), "reason")));
    json_object_set_new(json, "next_decision", make_time(explanation->until));
    if (explanation->pool)
        json_object_set_new(json, "pool_decision", json_incref(explanation->pool));
    json_object_set_new(json, "repeats", json_integer(explanation->repeats));
    if (json_array_size(explanation->assignments) > 0)
        json_object_set_new(json, "shares", json_incref(explanation->assignments));
    return json;
}
