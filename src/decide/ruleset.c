/*
 * Rule sets, as the decision reads them: schedules and bounds of targets, the index that finds the
 * rules of an alert, and the release of a set.
 *
 * A rule set does not change once it is made. The module reads no rule file (rules/).
 */
#include <alertscaler/decide/ruleset.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/zone.h>
#include <alertscaler/model/bounds.h>

/* Schedules in force at a time, and their bounds */

const char *as_schedule_end_get_word(enum as_schedule_end end)
{
#define WORD(enumerator, word) [enumerator] = (word),
    static const char *const words[] = {AS_SCHEDULE_ENDS(WORD)};
#undef WORD
    assert((size_t)end < AS_SCHEDULE_END_COUNT);
    return words[end];
}

const char *as_rollout_get_word(enum as_rollout rollout)
{
#define WORD(enumerator, word) [enumerator] = (word),
    static const char *const words[] = {AS_ROLLOUTS(WORD)};
#undef WORD
    assert((size_t)rollout < AS_ROLLOUT_COUNT);
    return words[rollout];
}

#define DAYS_BACK  2 /* one that began then may still be in force */
#define DAYS_AHEAD 15
#define YEAR_US    (366 * AS_US_PER_DAY)

static int64_t find_utc_us(const struct as_schedule *schedule, int64_t day, int32_t time_s,
                           enum as_zone_pick pick)
{
    return as_zone_find_utc(schedule->zone, day * AS_S_PER_DAY + time_s, pick) * AS_US_PER_S;
}

/* Extends or begins a stretch by one day's. True: later days do not matter any more. */
static bool take_day(const struct as_schedule *schedule, int64_t day, int64_t now,
                     struct as_schedule_state *state)
{
    const bool is_overnight = schedule->to_s <= schedule->from_s;
    const int64_t begin = find_utc_us(schedule, day, schedule->from_s, AS_ZONE_FIRST);
    const int64_t end = find_utc_us(schedule, day + is_overnight, schedule->to_s, AS_ZONE_LAST);
    if (begin >= end || end <= now)
        return false;
    if (state->is_in_force && begin > state->change.at.us)
        return true;
    if (!state->is_in_force && begin > now) {
        state->change = (as_maybe_time){true, {begin}};
        return true;
    }
    state->is_in_force = true;
    if (!state->change.set || end > state->change.at.us)
        state->change = (as_maybe_time){true, {end}};
    return false;
}

static struct as_schedule_state schedule_evaluate_moments(const struct as_schedule *schedule,
                                                          int64_t now)
{
    struct as_schedule_state state = {.is_in_force =
                                          schedule->begin.us <= now && now < schedule->end.us};
    if (now < schedule->begin.us)
        state.change = (as_maybe_time){true, schedule->begin};
    else if (state.is_in_force)
        state.change = (as_maybe_time){true, schedule->end};
    return state;
}

struct as_schedule_state as_schedule_state(const struct as_schedule *schedule, as_wall_time now)
{
    struct as_schedule_state state = {0};
    if (!schedule->zone)
        return schedule_evaluate_moments(schedule, now.us);
    const int64_t utc = now.us / AS_US_PER_S - (now.us % AS_US_PER_S < 0);
    const int64_t today = as_calendar_find_day(utc + as_zone_get_offset(schedule->zone, utc));
    for (int64_t day = today - DAYS_BACK; day < today + DAYS_AHEAD; day++) {
        if ((schedule->days >> as_calendar_get_weekday(day) & 1) &&
            take_day(schedule, day, now.us, &state))
            return state;
    }
    if (state.is_in_force && state.change.at.us > now.us + (DAYS_AHEAD - 2) * AS_US_PER_DAY)
        state.change.set = false; /* one day follows the other, for ever */
    return state;
}

static void ruleset_note_change(struct as_schedule_bounds *bounds, as_maybe_time change)
{
    if (change.set && (!bounds->change.set || change.at.us < bounds->change.at.us))
        bounds->change = change;
}

/* With `min` above `max` where they contradict each other. */
static struct as_schedule_bounds combine(const struct as_schedule *schedules, size_t count,
                                         int32_t own_min, int32_t own_max, as_wall_time now)
{
    struct as_schedule_bounds bounds = {.min = own_min, .max = own_max};
    bool has_max = false;
    assert(count <= AS_SCHEDULES_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct as_schedule *schedule = &schedules[i];
        const struct as_schedule_state state = as_schedule_state(schedule, now);
        ruleset_note_change(&bounds, state.change);
        if (!state.is_in_force)
            continue;
        bounds.in_force |= UINT32_C(1) << i;
        if (schedule->has_min && (!bounds.has_min || schedule->min > bounds.min))
            bounds.min = schedule->min;
        if (schedule->has_max && (!has_max || schedule->max > bounds.max))
            bounds.max = schedule->max;
        bounds.has_min |= schedule->has_min;
        has_max |= schedule->has_max;
    }
    return bounds;
}

struct as_schedule_bounds as_schedules_get_bounds(const struct as_schedule *schedules, size_t count,
                                                  int32_t own_min, int32_t own_max,
                                                  as_wall_time now)
{
    struct as_schedule_bounds bounds = combine(schedules, count, own_min, own_max, now);
    if (bounds.min > bounds.max)
        bounds.min = bounds.max;
    return bounds;
}

/* Which schedule in force a bound is from. */
static size_t find_source(const struct as_schedule *schedules, size_t count, uint32_t in_force,
                          bool is_max, int32_t bound)
{
    for (size_t i = 0; i < count; i++) {
        const struct as_schedule *schedule = &schedules[i];
        const bool names = is_max ? schedule->has_max && schedule->max == bound
                                  : schedule->has_min && schedule->min == bound;
        if ((in_force >> i & 1) && names)
            return i;
    }
    return AS_SCHEDULES_MAX;
}

/* Whether any bound that may be in force is below any `min` that may be. */
static bool may_conflict(const struct as_schedule *schedules, size_t count, int32_t own_min,
                         int32_t own_max)
{
    int32_t highest = own_min, lowest = own_max;
    for (size_t i = 0; i < count; i++) {
        if (schedules[i].has_min && schedules[i].min > highest)
            highest = schedules[i].min;
        if (schedules[i].has_max && schedules[i].max < lowest)
            lowest = schedules[i].max;
    }
    return highest > lowest;
}

static bool find_between(const struct as_schedule *schedules, size_t count, int32_t own_min,
                         int32_t own_max, int64_t from, int64_t to,
                         struct as_schedule_conflict *conflict_out)
{
    for (as_wall_time at = {from}; at.us < to;) {
        const struct as_schedule_bounds bounds = combine(schedules, count, own_min, own_max, at);
        if (bounds.min > bounds.max) {
            *conflict_out = (struct as_schedule_conflict){
                .at = at,
                .min_of = find_source(schedules, count, bounds.in_force, false, bounds.min),
                .max_of = find_source(schedules, count, bounds.in_force, true, bounds.max),
                .min = bounds.min,
                .max = bounds.max,
            };
            return true;
        }
        if (!bounds.change.set)
            return false;
        at = bounds.change.at;
    }
    return false;
}

bool as_schedules_find_conflict(const struct as_schedule *schedules, size_t count, int32_t own_min,
                                int32_t own_max, as_wall_time around,
                                struct as_schedule_conflict *conflict_out)
{
    if (!may_conflict(schedules, count, own_min, own_max))
        return false;
    if (find_between(schedules, count, own_min, own_max, around.us, around.us + YEAR_US,
                     conflict_out))
        return true;
    for (size_t i = 0; i < count; i++) {
        const int64_t begin = schedules[i].begin.us, year = as_time_add(begin, YEAR_US);
        const int64_t end = schedules[i].end.us < year ? schedules[i].end.us : year;
        if (!schedules[i].zone &&
            find_between(schedules, count, own_min, own_max, begin, end, conflict_out))
            return true;
    }
    return false;
}

/*
 * The release of a rule set; config makes it from the rule files. Also frees a partial one (zeroed
 * memory elsewhere), for a loader that gives up halfway.
 */

static void free_strings(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

bool as_target_config_has_nodes(const struct as_target_config *config)
{
    bool has_url = false;
    for (size_t i = 0; i < config->address_count; i++)
        has_url = has_url || strcmp(config->address[i].key, "url") == 0;
    return config->kind->has_nodes && config->nodes.cluster && (config->nodes.select || !has_url);
}

static void deinit_target(struct as_target_config *target)
{
    for (size_t i = 0; i < target->address_count; i++) {
        free(target->address[i].key);
        as_template_free(target->address[i].value);
    }
    free(target->address);
    free(target->name);
    free(target->file);
    free(target->text);
    for (enum as_allow i = 0; i < AS_ALLOW_COUNT; i++)
        free_strings(target->allowed[i].items, target->allowed[i].count);
    free(target->list_selector);
    free(target->after);
    as_nodes_config_deinit(&target->nodes);
    if (target->pool) {
        free(target->pool->groups);
        free_strings(target->pool->ignore_labels, target->pool->ignore_label_count);
    }
    free(target->pool);
    for (size_t i = 0; i < target->schedule_count; i++)
        free(target->schedules[i].name);
    free(target->schedules);
}

static void deinit_source(struct as_source *source)
{
    free(source->name);
    as_template_free(source->query);
    free(source->pod_label);
}

static void deinit_rule(struct as_rule *rule)
{
    for (size_t i = 0; i < rule->matcher_count; i++)
        as_matcher_deinit(&rule->matchers[i]);
    free(rule->matchers);
    free(rule->name);
    free(rule->file);
    free(rule->text);
    free_strings(rule->receivers, rule->receiver_count);
    free(rule->steps);
    free(rule->container);
    deinit_source(&rule->source);
    as_template_free(rule->guard);
}

const struct as_rule *as_ruleset_find_rule(const struct as_ruleset *ruleset, const char *name)
{
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        if (strcmp(ruleset->rules[i]->name, name) == 0)
            return ruleset->rules[i];
    }
    return NULL;
}

static int compare_with_name(const void *name, const void *item)
{
    return strcmp(name, *(const char *const *)item);
}

bool as_ruleset_awaits(const struct as_ruleset *ruleset, const char *target)
{
    return (ruleset->awaits_policies && strchr(target, '/')) ||
           (ruleset->awaited_count > 0 && bsearch(target, ruleset->awaited, ruleset->awaited_count,
                                                  sizeof(*ruleset->awaited), compare_with_name));
}

int as_target_config_compare(const struct as_target_config *a, const struct as_target_config *b)
{
    const struct as_policy_terms *x = a->policy, *y = b->policy;
    if (!x != !y)
        return x ? 1 : -1;
    if (x && x->created.us != y->created.us)
        return x->created.us > y->created.us ? 1 : -1;
    const int spaces = x ? strcmp(x->namespace, y->namespace) : 0;
    if (spaces != 0)
        return spaces;
    return x ? strcmp(x->name, y->name) : (a->number > b->number) - (a->number < b->number);
}

int as_rule_compare(const struct as_rule *a, const struct as_rule *b)
{
    const bool is_of_policy = a->target->policy || b->target->policy;
    const int targets = is_of_policy ? as_target_config_compare(a->target, b->target) : 0;
    return targets != 0 ? targets : (a->number > b->number) - (a->number < b->number);
}

void as_ruleset_make_room(struct as_ruleset *ruleset, size_t target_count, size_t rule_count)
{
    ruleset->targets = as_xcalloc(target_count + 1, sizeof(struct as_target_config *));
    ruleset->target_count = target_count;
    for (uint32_t i = 0; i < target_count; i++) {
        ruleset->targets[i] = as_xcalloc(1, sizeof(struct as_target_config));
        ruleset->targets[i]->number = i;
    }
    ruleset->rules = as_xcalloc(rule_count + 1, sizeof(struct as_rule *));
    ruleset->rule_count = rule_count;
    for (uint32_t i = 0; i < rule_count; i++) {
        ruleset->rules[i] = as_xcalloc(1, sizeof(struct as_rule));
        ruleset->rules[i]->number = i;
    }
}

struct as_ruleset *as_ruleset_free(struct as_ruleset *ruleset)
{
    if (!ruleset)
        return NULL;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        deinit_target(ruleset->targets[i]);
        free(ruleset->targets[i]);
    }
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        deinit_rule(ruleset->rules[i]);
        free(ruleset->rules[i]);
    }
    free(ruleset->targets);
    for (size_t i = 0; i < ruleset->zone_count; i++)
        as_zone_free(ruleset->zones[i]);
    free(ruleset->zones);
    free(ruleset->rules);
    free(ruleset);
    return NULL;
}

struct as_schedule_bounds as_target_config_get_bounds(const struct as_target_config *config,
                                                      as_wall_time now)
{
    return as_schedules_get_bounds(config->schedules, config->schedule_count, config->bounds.min,
                                   config->bounds.max, now);
}

bool as_source_is_asked(const struct as_source *source)
{
    return source->kind == AS_SOURCE_QUERY || source->kind == AS_SOURCE_NODES;
}

/*
 * The rule index: name -> value -> rules, two hash tables. Each rule is stored under one of its
 * matchers, the key: an equality, or a regular expression that is a plain alternation; then the
 * rule is stored under each of its words. A key never matches the empty string: otherwise the rule
 * could match an alert without the label, which a lookup would not find.
 *
 * A lookup costs the alert's labels and the rules found under them; rules without a key are tried
 * for every alert. A rule is found at most once, because an alert has one value per name.
 *
 * A confined rule is also stored under a key of its own matchers, in a list that is read only for
 * an alert without a rule: to say that the label of the namespace alone does not match.
 * A whole rule set is counted first, so that each key is the rarest. A rule that is added later
 * takes the key with the fewest rules so far.
 */

struct rule_list {
    const struct as_rule **items;
    size_t count, capacity;
};

struct value_entry {
    char *value;
    size_t sharers; /* rules that could use it as key; of added ones only those that do */
    struct rule_list rules, confined;
    UT_hash_handle hh;
};

struct name_entry {
    char *name;
    struct value_entry *values;
    UT_hash_handle hh;
};

struct as_rule_index {
    struct name_entry *names;
    struct rule_list keyless;
    struct rule_list matches; /* the last answer */
    size_t turn;              /* of confined rules that share a key: where to begin */
};

static void ruleset_append(struct rule_list *list, const struct as_rule *rule)
{
    list->items = as_xgrow(list->items, list->count, &list->capacity, sizeof(*list->items));
    list->items[list->count++] = rule;
}

/* A matcher's values, if it can be a key. */
static bool find_key(const struct as_matcher *matcher, struct as_matcher_values *values_out)
{
    if (!as_matcher_find_values(matcher, values_out))
        return false;
    if (*values_out->items[0]) /* sorted: an empty one would be first */
        return true;
    as_matcher_values_deinit(values_out);
    return false;
}

static struct value_entry *take_entry(struct as_rule_index *index, const char *name,
                                      const char *value)
{
    struct name_entry *by_name;
    struct value_entry *by_value;

    HASH_FIND_STR(index->names, name, by_name);
    if (!by_name) {
        by_name = as_xcalloc(1, sizeof(*by_name));
        by_name->name = as_xstrdup(name);
        HASH_ADD_KEYPTR(hh, index->names, by_name->name, strlen(name), by_name);
    }
    HASH_FIND_STR(by_name->values, value, by_value);
    if (!by_value) {
        by_value = as_xcalloc(1, sizeof(*by_value));
        by_value->value = as_xstrdup(value);
        HASH_ADD_KEYPTR(hh, by_name->values, by_value->value, strlen(value), by_value);
    }
    return by_value;
}

static void count_sharers(struct as_rule_index *index, const struct as_rule *rule)
{
    for (size_t i = 0; i < rule->matcher_count; i++) {
        AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values words = {NULL};
        if (!find_key(&rule->matchers[i], &words))
            continue;
        for (size_t k = 0; k < words.count; k++)
            take_entry(index, rule->matchers[i].name, words.items[k])->sharers++;
    }
}

/* Of the first matchers the one whose most common word has the fewest rules. False: none can be a
 * key. */
static bool find_best_key(struct as_rule_index *index, const struct as_rule *rule, size_t count,
                          struct as_matcher_values *best_out, const char **name_out)
{
    size_t best_cost = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        struct as_matcher_values words = {.text = NULL};
        size_t cost = 0;
        if (!find_key(&rule->matchers[i], &words))
            continue;
        for (size_t k = 0; k < words.count; k++) {
            const size_t sharers =
                take_entry(index, rule->matchers[i].name, words.items[k])->sharers;
            cost = sharers > cost ? sharers : cost;
        }
        if (cost < best_cost) {
            struct as_matcher_values worse = *best_out;
            *best_out = words;
            words = worse;
            *name_out = rule->matchers[i].name;
            best_cost = cost;
        }
        as_matcher_values_deinit(&words);
    }
    return best_out->text != NULL;
}

/* Stores the rule under its best key. */
static void insert(struct as_rule_index *index, const struct as_rule *rule)
{
    AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values best = {.text = NULL};
    AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values own = {.text = NULL};
    const char *name = NULL;

    if (!find_best_key(index, rule, rule->matcher_count, &best, &name))
        ruleset_append(&index->keyless, rule);
    for (size_t k = 0; k < best.count; k++)
        ruleset_append(&take_entry(index, name, best.items[k])->rules, rule);
    if (!rule->is_confined || !find_best_key(index, rule, rule->matcher_count - 1, &own, &name))
        return;
    for (size_t k = 0; k < own.count; k++)
        ruleset_append(&take_entry(index, name, own.items[k])->confined, rule);
}

static void free_value(struct name_entry *name, struct value_entry *value)
{
    HASH_DEL(name->values, value);
    free(value->rules.items);
    free(value->confined.items);
    free(value->value);
    free(value);
}

static void free_name(struct as_rule_index *index, struct name_entry *name)
{
    struct value_entry *value, *next;

    HASH_ITER (hh, name->values, value, next)
        free_value(name, value);
    HASH_DEL(index->names, name);
    free(name->name);
    free(name);
}

/* Removes words without rules: they would cost every alert a lookup. */
static void prune(struct as_rule_index *index)
{
    struct name_entry *name, *next_name;
    struct value_entry *value, *next_value;

    HASH_ITER (hh, index->names, name, next_name) {
        HASH_ITER (hh, name->values, value, next_value) {
            if (value->rules.count + value->confined.count == 0)
                free_value(name, value);
        }
        if (!name->values)
            free_name(index, name);
    }
}

struct as_rule_index *as_rule_index_new(const struct as_ruleset *ruleset)
{
    struct as_rule_index *index = as_xcalloc(1, sizeof(*index));

    for (size_t i = 0; i < ruleset->rule_count; i++)
        count_sharers(index, ruleset->rules[i]);
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        if (!ruleset->rules[i]->is_always)
            insert(index, ruleset->rules[i]);
    }
    prune(index);
    return index;
}

/* Calls `visit` for each word of the rule's matchers that the index has. */
static void visit_words(struct as_rule_index *index, const struct as_rule *rule,
                        void (*visit)(struct name_entry *name, struct value_entry *value,
                                      const struct as_rule *rule))
{
    for (size_t i = 0; i < rule->matcher_count; i++) {
        AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values words = {NULL};
        struct name_entry *name;
        HASH_FIND_STR(index->names, rule->matchers[i].name, name);
        if (!name || !find_key(&rule->matchers[i], &words))
            continue;
        for (size_t k = 0; k < words.count; k++) {
            struct value_entry *value;
            HASH_FIND_STR(name->values, words.items[k], value);
            if (value)
                visit(name, value, rule);
        }
        if (!name->values)
            free_name(index, name);
    }
}

static bool list_remove(struct rule_list *list, const struct as_rule *rule)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == rule) {
            list->items[i] = list->items[--list->count];
            return true;
        }
    }
    return false;
}

static void note_sharers(struct name_entry *name, struct value_entry *value,
                         const struct as_rule *rule)
{
    (void)name;
    (void)rule;
    value->sharers = value->rules.count;
}

static void drop_empty(struct name_entry *name, struct value_entry *value,
                       const struct as_rule *rule)
{
    (void)rule;
    if (value->rules.count + value->confined.count == 0)
        free_value(name, value);
}

static void drop_rule(struct name_entry *name, struct value_entry *value,
                      const struct as_rule *rule)
{
    (void)list_remove(&value->rules, rule);
    (void)list_remove(&value->confined, rule);
    drop_empty(name, value, rule);
}

void as_rule_index_add(struct as_rule_index *index, const struct as_rule *rule)
{
    if (rule->is_always)
        return;
    visit_words(index, rule, note_sharers);
    insert(index, rule);
    visit_words(index, rule, drop_empty);
}

void as_rule_index_remove(struct as_rule_index *index, const struct as_rule *rule)
{
    (void)list_remove(&index->keyless, rule);
    visit_words(index, rule, drop_rule);
}

struct as_rule_index *as_rule_index_free(struct as_rule_index *index)
{
    if (!index)
        return NULL;

    struct name_entry *name, *next;
    HASH_ITER (hh, index->names, name, next)
        free_name(index, name);
    free(index->keyless.items);
    free(index->matches.items);
    free(index);
    return NULL;
}

struct wanted { /* what a search compares with */
    const struct as_labels *labels;
    const char *const *receivers;
    size_t receiver_count;
};

static bool includes_receiver(const struct as_rule *rule, const struct wanted *wanted)
{
    if (!wanted->receivers)
        return true;
    for (size_t i = 0; i < rule->receiver_count; i++) {
        for (size_t k = 0; k < wanted->receiver_count; k++) {
            if (strcmp(rule->receivers[i], wanted->receivers[k]) == 0)
                return true;
        }
    }
    return rule->receiver_count == 0;
}

bool as_rule_matches(const struct as_rule *rule, const struct as_labels *labels)
{
    for (size_t i = 0; i < rule->matcher_count; i++)
        if (!as_matcher_match(&rule->matchers[i], labels))
            return false;
    return true;
}

static void try_rules(struct as_rule_index *index, const struct rule_list *candidates,
                      const struct wanted *wanted)
{
    for (size_t i = 0; i < candidates->count; i++) {
        const struct as_rule *rule = candidates->items[i];
        if (includes_receiver(rule, wanted) && as_rule_matches(rule, wanted->labels))
            ruleset_append(&index->matches, rule);
    }
}

static int compare_places(const void *a, const void *b)
{
    return as_rule_compare(*(const struct as_rule *const *)a, *(const struct as_rule *const *)b);
}

size_t as_rule_index_match(struct as_rule_index *index, const struct as_labels *labels,
                           const char *const *receivers, size_t receiver_count,
                           const struct as_rule *const **rules_out)
{
    const struct wanted wanted = {labels, receivers, receiver_count};
    struct rule_list *matches = &index->matches;

    matches->count = 0;
    try_rules(index, &index->keyless, &wanted);
    for (uint32_t i = 0; i < labels->count; i++) {
        struct name_entry *name;
        struct value_entry *value = NULL;
        HASH_FIND_STR(index->names, labels->items[i].name, name);
        if (name)
            HASH_FIND_STR(name->values, labels->items[i].value, value);
        if (value)
            try_rules(index, &value->rules, &wanted);
    }
    if (matches->count > 1)
        qsort(matches->items, matches->count, sizeof(*matches->items), compare_places);
    *rules_out = matches->items;
    return matches->count;
}

/* All matchers match, but for the last one, which was added. */
static bool is_confined_from(const struct as_rule *rule, const struct wanted *wanted)
{
    const size_t own = rule->matcher_count - 1;
    bool matches = includes_receiver(rule, wanted);
    for (size_t k = 0; k < own && matches; k++)
        matches = as_matcher_match(&rule->matchers[k], wanted->labels);
    return matches && !as_matcher_match(&rule->matchers[own], wanted->labels);
}

static void try_confined(struct as_rule_index *index, const struct rule_list *candidates,
                         const struct wanted *wanted, size_t *left_io)
{
    for (size_t i = 0; i<candidates->count && * left_io> 0; i++, (*left_io)--) {
        const struct as_rule *rule = candidates->items[(index->turn + i) % candidates->count];
        if (is_confined_from(rule, wanted))
            ruleset_append(&index->matches, rule);
    }
}

size_t as_rule_index_match_confined(struct as_rule_index *index, const struct as_labels *labels,
                                    const char *const *receivers, size_t receiver_count,
                                    const struct as_rule *const **rules_out)
{
    const struct wanted wanted = {labels, receivers, receiver_count};
    size_t left = AS_RULE_NEAR_MAX;

    index->matches.count = 0;
    for (uint32_t i = 0; i < labels->count; i++) {
        struct name_entry *name;
        struct value_entry *value = NULL;
        HASH_FIND_STR(index->names, labels->items[i].name, name);
        if (name)
            HASH_FIND_STR(name->values, labels->items[i].value, value);
        if (value)
            try_confined(index, &value->confined, &wanted, &left);
    }
    if (left == 0)
        index->turn += AS_RULE_NEAR_MAX;
    *rules_out = index->matches.items;
    return index->matches.count;
}
