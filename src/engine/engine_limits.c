/*
 * Limits over all targets: how many actions begin in a window of time, and which share of all
 * replicas of a kind of target is removed in one. Changes beyond a limit wait, the oldest first.
 *
 * What counts when:
 *   an action from its beginning, whatever its outcome: a failing side is not to be hammered;
 *   a removal from its beginning, while under way or in question, and for a window after it was
 *   done. A removal that was not done gives its place back.
 * So neither limit is exceeded in any window, however long requests take. After a restart the
 * windows are built from the targets' stored changes and the open intents; failed attempts from
 * before are forgotten.
 *
 * Waiting targets are in the order in which they began to wait; but targets of parties and other
 * targets take turns, and so do the parties: narrowed credentials, and namespaces of policies. A
 * target leaves the queue when its decision does not have to wait any more. It gets a place only if
 * all targets before it that can use one have theirs too. A removal larger than the whole limit
 * waits for other sizes, not for its turn: it blocks nobody.
 *
 * A namespace has a limit of its own on the actions of its policies. It is counted from the
 * targets' history. Who waits for it is not in the queue, and blocks nobody.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "engine_concerns.h"
#include "engine_registry.h"

/* A window with more items than this merges pairs of them at the later time: they count a little
 * longer, never shorter. */
#define WINDOW_MAX 4096
/* 100 % in thousandths of a percent. */
#define WHOLE 100000

struct turn { /* of a target in the limits; in the queue while it waits for a place */
    TAILQ_ENTRY(turn) link;
    struct target *target;
    bool is_waiting;
    bool is_current;    /* set by the last decision, or the present one */
    bool lacks_removal; /* waits for the removal limit: needs no place for an action */
    bool is_of_space;   /* the last refusal was by the limit of its namespace */
    char *party;        /* a narrowed credential that alone causes it, or the namespace of its
                           policy; NULL: none */
    uint32_t round;     /* with a party: so many of its targets waited before it */
    int64_t removal;
    int32_t managed;  /* the target's size, if it counts in the budget */
    int64_t removing; /* by an action under way or with unknown outcome */
};

static struct turn *get_turn(const struct target *target)
{
    return target->parts[CONCERN_LIMITS];
}

bool limits_is_waiting(const struct target *target)
{
    return get_turn(target)->is_waiting;
}

static void window_clear(struct window *window)
{
    free(window->items);
    *window = (struct window){0};
}

static void window_merge(struct window *window)
{
    size_t kept = 0;
    for (size_t i = 0; i < window->count; i += 2) {
        struct spent item = window->items[i];
        if (i + 1 < window->count) {
            item.at = window->items[i + 1].at;
            item.amount += window->items[i + 1].amount;
        }
        window->items[kept++] = item;
    }
    window->count = kept;
}

/* `at` is not before any item's time. */
static void window_add(struct window *window, as_mono_time at, int64_t amount)
{
    if (window->count == WINDOW_MAX)
        window_merge(window);
    window->items =
        as_xgrow(window->items, window->count, &window->capacity, sizeof(*window->items));
    window->items[window->count++] = (struct spent){at, amount};
    window->total += amount;
}

/* Forgets items as old as the window. */
static void window_move(struct window *window, as_mono_time now, int64_t per_us)
{
    size_t old = 0;
    while (old < window->count && now.us - window->items[old].at.us >= per_us)
        window->total -= window->items[old++].amount;
    window->count -= old;
    if (old > 0)
        memmove(window->items, window->items + old, window->count * sizeof(*window->items));
}

/* milli_percent of count, rounded up. */
static int64_t limit_get_share(int64_t milli_percent, int64_t count)
{
    const int64_t rest = count % WHOLE * milli_percent;
    return count / WHOLE * milli_percent + (rest + WHOLE - 1) / WHOLE;
}

static size_t get_kind(const struct target *target)
{
    return as_target_kind_get_index(target->ref->kind);
}

/* What a kind of target may remove in the window: a share of its size at the window's beginning. */
static int64_t get_allowance(const struct as_engine *engine, size_t kind, int64_t removed)
{
    return limit_get_share(engine->config.limits.scale_down_milli_percent,
                           engine->budget.managed[kind] + removed);
}

static bool limits_actions(const struct as_engine *engine)
{
    return engine->config.limits.actions_max > 0;
}

static bool limits_removals(const struct as_engine *engine)
{
    return engine->config.limits.scale_down_milli_percent > 0;
}

/* The removal, as far as it is limited. */
static int64_t get_removal(const struct as_engine *engine, int32_t from, int32_t to)
{
    return limits_removals(engine) && to < from ? (int64_t)from - to : 0;
}

static bool can_ever_fit(const struct as_engine *engine, size_t kind, int64_t removal)
{
    return removal <= get_allowance(engine, kind, 0);
}

struct claim { /* places taken: by others' actions, and by targets that wait before this one */
    int64_t actions, removal;
};

/* Stops when there certainly is no place. */
static struct claim get_claim_before(const struct as_engine *engine, const struct target *target,
                                     int64_t removal)
{
    const size_t kind = get_kind(target);
    const int64_t all_actions = engine->config.limits.actions_max;
    const int64_t all_removal =
        removal > 0 ? get_allowance(engine, kind, engine->budget.removed[kind].total) : 0;
    struct claim claim = {.removal = engine->budget.removing[kind] - get_turn(target)->removing};
    const struct turn *other;
    TAILQ_FOREACH (other, &engine->budget.waiting, link) {
        if (other->target == target ||
            (claim.actions >= all_actions && claim.removal >= all_removal))
            break;
        claim.actions += !other->lacks_removal;
        if (get_kind(other->target) == kind && can_ever_fit(engine, kind, other->removal))
            claim.removal += other->removal;
    }
    return claim;
}

static bool fits_actions(const struct as_engine *engine, int64_t claim)
{
    return !limits_actions(engine) ||
           engine->budget.begun.total + claim + 1 <= (int64_t)engine->config.limits.actions_max;
}

static bool fits_removal(const struct as_engine *engine, size_t kind, int64_t removal,
                         int64_t claim)
{
    const int64_t removed = engine->budget.removed[kind].total;
    return removal == 0 || removed + claim + removal <= get_allowance(engine, kind, removed);
}

static void move_windows(struct as_engine *engine)
{
    const struct as_limits *limits = &engine->config.limits;
    window_move(&engine->budget.begun, engine->mono, limits->actions_per_us);
    for (size_t i = 0; i < AS_TARGET_KINDS_MAX; i++)
        window_move(&engine->budget.removed[i], engine->mono, limits->scale_down_per_us);
}

/* Updates the sum of known sizes of all targets that rules use. */
static void count_size(struct as_engine *engine, struct target *target)
{
    const int32_t size = target->config && target->has_size ? target->replicas : 0;
    engine->budget.managed[get_kind(target)] += (int64_t)size - get_turn(target)->managed;
    get_turn(target)->managed = size;
}

static const char *limits_get_namespace(const struct target *target) /* NULL: not of a policy */
{
    return target->config && target->config->policy ? target->config->policy->namespace : NULL;
}

/* The turn that `turn` comes before; NULL: it is the last. */
static struct turn *find_follower(const struct as_engine *engine, const struct turn *turn,
                                  size_t before, size_t others)
{
    struct turn *other;
    size_t passed = 0, narrowed = 0;
    TAILQ_FOREACH (other, &engine->budget.waiting, link) {
        if (!other->party)
            passed++;
        else if (turn->party ? other->round > before : passed == others && narrowed++ >= others)
            return other;
    }
    return NULL;
}

/* Sets the target's place in the queue. */
static void start_waiting(struct as_engine *engine, struct target *target)
{
    const char *sender = target_note_sender(engine, target);
    const char *namespace = limits_get_namespace(target), *party = namespace ? namespace : sender;
    struct turn *turn = get_turn(target);
    const struct turn *other;
    size_t before = 0, others = 0; /* of the same party; without one */
    TAILQ_FOREACH (other, &engine->budget.waiting, link) {
        before += as_str_equal(other->party, party);
        others += !other->party;
    }
    turn->is_waiting = true;
    turn->party = party ? as_xstrdup(party) : NULL;
    turn->round = (uint32_t)before;
    struct turn *follower = find_follower(engine, turn, before, others);
    if (follower)
        TAILQ_INSERT_BEFORE(follower, turn, link);
    else
        TAILQ_INSERT_TAIL(&engine->budget.waiting, turn, link);
}

static void stop_waiting(struct as_engine *engine, struct target *target)
{
    struct turn *turn = get_turn(target);
    if (turn->is_waiting)
        TAILQ_REMOVE(&engine->budget.waiting, turn, link);
    turn->is_waiting = false;
    free(turn->party);
    turn->party = NULL;
}

/* A place has become free: evaluates the waiting targets that fit now. */
static void call_waiting(struct as_engine *engine)
{
    int64_t actions = 0, removal[AS_TARGET_KINDS_MAX];
    memcpy(removal, engine->budget.removing, sizeof(removal));
    move_windows(engine);
    const struct turn *turn;
    TAILQ_FOREACH (turn, &engine->budget.waiting, link) {
        const size_t kind = get_kind(turn->target);
        if (!fits_actions(engine, actions))
            return;
        if (fits_removal(engine, kind, turn->removal, removal[kind] - turn->removing)) {
            target_make_ready(engine, turn->target);
            actions++;
        }
        if (can_ever_fit(engine, kind, turn->removal))
            removal[kind] += turn->removal;
    }
}

void limits_deinit(struct as_engine *engine)
{
    window_clear(&engine->budget.begun);
    for (size_t i = 0; i < AS_TARGET_KINDS_MAX; i++)
        window_clear(&engine->budget.removed[i]);
}

bool limits_have_place(struct as_engine *engine, const struct target *target)
{
    move_windows(engine);
    return fits_actions(engine, get_claim_before(engine, target, 0).actions);
}

/*
 * The limit of a namespace.
 */

struct namespace_use {
    uint32_t actions;    /* within the window */
    as_mono_time oldest; /* of them; of none: AS_MONO_NEVER */
};

static void note_action(const struct as_engine *engine, as_mono_time at, struct namespace_use *use)
{
    if (engine->mono.us - at.us >= engine->config.limits.namespace_actions_per_us)
        return;
    use->actions++;
    if (at.us < use->oldest.us)
        use->oldest = at;
}

/* The actions of all policies of the target's namespace. */
static struct namespace_use limits_count_namespace(const struct as_engine *engine,
                                                   const char *namespace)
{
    struct namespace_use use = {.oldest = AS_MONO_NEVER};
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        const struct as_policy_terms *policy = engine->ruleset->targets[i]->policy;
        const struct target *target =
            LIST_FIRST(target_get_members(engine, engine->ruleset->targets[i]));
        size_t count;
        if (!policy || !target || strcmp(policy->namespace, namespace) != 0)
            continue;
        const struct as_past_event *events = history_get_events(target, &count);
        for (size_t k = 0; k < count; k++)
            note_action(engine, events[k].at.mono, &use);
        const struct intent *const intents[] = {target->in_doubt, target->intent};
        for (size_t k = 0; k < AS_ARRAY_SIZE(intents); k++)
            if (intents[k])
                note_action(engine, intents[k]->state.at.mono, &use);
    }
    return use;
}

/* When its namespace may act again. INT64_MIN: now. */
static as_mono_time get_namespace_time(const struct as_engine *engine, const struct target *target)
{
    const struct as_limits *limits = &engine->config.limits;
    const char *namespace = limits_get_namespace(target);
    if (!namespace || limits->namespace_actions_max == 0)
        return (as_mono_time){INT64_MIN};
    const struct namespace_use use = limits_count_namespace(engine, namespace);
    if (use.actions < limits->namespace_actions_max)
        return (as_mono_time){INT64_MIN};
    return (as_mono_time){as_time_add(use.oldest.us, limits->namespace_actions_per_us)};
}

bool limits_refuse(struct as_engine *engine, struct target *target, int32_t from, int32_t to)
{
    const size_t kind = get_kind(target);
    struct turn *turn = get_turn(target);
    turn->is_of_space = get_namespace_time(engine, target).us > engine->mono.us;
    if (turn->is_of_space)
        return true;
    count_size(engine, target);
    move_windows(engine);
    const int64_t removal = get_removal(engine, from, to);
    const struct claim claim = get_claim_before(engine, target, removal);
    const bool lacks_removal = !fits_removal(engine, kind, removal, claim.removal);
    if (!lacks_removal && fits_actions(engine, claim.actions))
        return false;
    if (turn->is_waiting && turn->party && !limits_get_namespace(target) &&
        !scope_find_sender(engine, target))
        stop_waiting(engine, target); /* not for a narrowed credential alone any more */
    if (!turn->is_waiting)
        start_waiting(engine, target);
    turn->is_current = true;
    turn->lacks_removal = lacks_removal;
    turn->removal = removal;
    return true;
}

void limits_note_begun(struct as_engine *engine, struct target *target, int32_t from, int32_t to)
{
    int64_t *removing = &engine->budget.removing[get_kind(target)];
    stop_waiting(engine, target);
    if (limits_actions(engine)) {
        move_windows(engine);
        window_add(&engine->budget.begun, engine->mono, 1);
    }
    /* an older request, outcome unknown, has the same size: only one counts */
    *removing -= get_turn(target)->removing;
    get_turn(target)->removing = get_removal(engine, from, to);
    *removing += get_turn(target)->removing;
}

void limits_note_ended(struct as_engine *engine, struct target *target, int32_t from, int32_t to,
                       bool applied)
{
    const size_t kind = get_kind(target);
    const int64_t removal = get_removal(engine, from, to);
    count_size(engine, target);
    if (!applied && target->in_doubt)
        return; /* it may still be done */
    const bool gives_back = !applied && get_turn(target)->removing > 0;
    engine->budget.removing[kind] -= get_turn(target)->removing;
    get_turn(target)->removing = 0;
    if (applied && removal > 0) {
        move_windows(engine);
        window_add(&engine->budget.removed[kind], engine->mono, removal);
    }
    if (gives_back)
        call_waiting(engine);
}

struct as_namespace_limit_view limits_get_view(const struct as_engine *engine,
                                               const struct target *target)
{
    const struct as_limits *limits = &engine->config.limits;
    if (!limits_get_namespace(target) || !get_turn(target)->is_of_space)
        return (struct as_namespace_limit_view){.namespace = NULL};
    return (struct as_namespace_limit_view){.namespace = limits_get_namespace(target),
                                            .actions = limits->namespace_actions_max,
                                            .per_us = limits->namespace_actions_per_us};
}

/* When `too_much` has left the window. If the window has less, all claims must first pass through
 * it. */
static int64_t get_time_without(const struct as_engine *engine, const struct window *window,
                                int64_t too_much, int64_t per_us)
{
    for (size_t i = 0; i < window->count && too_much > 0; i++) {
        too_much -= window->items[i].amount;
        if (too_much <= 0)
            return as_time_add(window->items[i].at.us, per_us);
    }
    return too_much > 0 ? as_time_add(engine->mono.us, per_us) : engine->mono.us;
}

/* What leaves the window also reduces the base of the share. */
static int64_t get_removal_time(const struct as_engine *engine, size_t kind, int64_t removal,
                                int64_t claim)
{
    const struct window *window = &engine->budget.removed[kind];
    const int64_t per_us = engine->config.limits.scale_down_per_us;
    if (!can_ever_fit(engine, kind, removal))
        return AS_MONO_NEVER.us;
    int64_t removed = window->total, at = engine->mono.us;
    for (size_t i = 0; removed + claim + removal > get_allowance(engine, kind, removed); i++) {
        if (i == window->count)
            return as_time_add(engine->mono.us, per_us);
        removed -= window->items[i].amount;
        at = as_time_add(window->items[i].at.us, per_us);
    }
    return at;
}

as_mono_time limits_get_free_time(const struct as_engine *engine, const struct target *target,
                                  int32_t from, int32_t to)
{
    const struct as_limits *limits = &engine->config.limits;
    const int64_t removal = get_removal(engine, from, to);
    const struct claim claim = get_claim_before(engine, target, removal);
    const as_mono_time own = get_namespace_time(engine, target);
    int64_t at = own.us > engine->mono.us ? own.us : engine->mono.us;
    if (limits_actions(engine)) {
        const struct window *begun = &engine->budget.begun;
        const int64_t too_many = begun->total + claim.actions + 1 - (int64_t)limits->actions_max;
        const int64_t then = get_time_without(engine, begun, too_many, limits->actions_per_us);
        at = then > at ? then : at;
    }
    if (removal > 0) {
        const int64_t then = get_removal_time(engine, get_kind(target), removal, claim.removal);
        at = then > at ? then : at;
    }
    return (as_mono_time){at};
}

/* The target is being evaluated: whether it must wait is computed again. */
void limits_on_evaluate(struct target *target)
{
    get_turn(target)->is_current = false;
}

void limits_give_up(struct as_engine *engine, struct target *target)
{
    if (!get_turn(target)->is_waiting)
        return;
    stop_waiting(engine, target);
    call_waiting(engine);
}

/* The target is idle: if it does not wait any more, its place goes to others. */
static void limits_on_idle(struct as_engine *engine, struct target *target)
{
    count_size(engine, target);
    if (!get_turn(target)->is_current)
        limits_give_up(engine, target);
}

static void limits_forget(struct as_engine *engine, struct target *target)
{
    engine->budget.managed[get_kind(target)] -= get_turn(target)->managed;
    engine->budget.removing[get_kind(target)] -= get_turn(target)->removing;
    get_turn(target)->managed = 0;
    get_turn(target)->removing = 0;
    stop_waiting(engine, target);
}

/* ---- from what the targets remember */

struct memory { /* of one window */
    struct spent *items;
    size_t count, capacity;
    int64_t per_us;
};

static void limit_remember(const struct as_engine *engine, struct memory *memory, as_mono_time at,
                           int64_t amount)
{
    if (amount <= 0 || engine->mono.us - at.us >= memory->per_us)
        return;
    memory->items =
        as_xgrow(memory->items, memory->count, &memory->capacity, sizeof(*memory->items));
    memory->items[memory->count++] = (struct spent){at, amount};
}

static int compare_spent(const void *a, const void *b)
{
    const struct spent *left = a, *right = b;
    return (left->at.us > right->at.us) - (left->at.us < right->at.us);
}

static void limit_fill(struct window *window, struct memory *memory)
{
    window_clear(window);
    if (memory->count > 0)
        qsort(memory->items, memory->count, sizeof(*memory->items), compare_spent);
    for (size_t i = 0; i < memory->count; i++)
        window_add(window, memory->items[i].at, memory->items[i].amount);
    free(memory->items);
}

static void restore_target(struct as_engine *engine, struct target *target, struct memory *begun,
                           struct memory *removed)
{
    size_t count;
    const struct as_past_event *events = history_get_events(target, &count);
    for (size_t i = 0; i < count; i++) {
        const struct as_past_event *event = &events[i];
        limit_remember(engine, begun, event->at.mono, 1);
        limit_remember(engine, removed, event->at.mono, -(int64_t)event->change);
    }
    const struct intent *const intents[] = {target->in_doubt, target->intent};
    get_turn(target)->removing = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(intents); i++) {
        if (!intents[i])
            continue;
        limit_remember(engine, begun, intents[i]->state.at.mono, 1);
        get_turn(target)->removing =
            get_removal(engine, intents[i]->state.from, intents[i]->state.to);
    }
    engine->budget.removing[get_kind(target)] += get_turn(target)->removing;
}

void limits_restore(struct as_engine *engine)
{
    const struct as_limits *limits = &engine->config.limits;
    struct memory begun = {.per_us = limits_actions(engine) ? limits->actions_per_us : 0};
    struct memory removed[AS_TARGET_KINDS_MAX] = {0};
    for (size_t i = 0; i < AS_TARGET_KINDS_MAX; i++) {
        removed[i].per_us = limits_removals(engine) ? limits->scale_down_per_us : 0;
        engine->budget.removing[i] = 0;
    }
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets)
        restore_target(engine, target, &begun, &removed[get_kind(target)]);
    limit_fill(&engine->budget.begun, &begun);
    for (size_t i = 0; i < AS_TARGET_KINDS_MAX; i++)
        limit_fill(&engine->budget.removed[i], &removed[i]);
}

/* New rules: windows that are new or longer are built from the targets' history. */
void limits_on_rules(struct as_engine *engine, const struct as_limits *old)
{
    const struct as_limits *new = &engine->config.limits;
    if (new->actions_max != old->actions_max || new->actions_per_us != old->actions_per_us ||
        new->scale_down_milli_percent != old->scale_down_milli_percent ||
        new->scale_down_per_us != old->scale_down_per_us)
        limits_restore(engine);
}

static void limits_init(struct target *target)
{
    get_turn(target)->target = target;
}

static void limits_deinit_target(struct target *target)
{
    free(get_turn(target)->party);
}

const struct concern concern_limits = {
    .name = "limits",
    .size = sizeof(struct turn),
    .init = limits_init,
    .deinit = limits_deinit_target,
    .release = limits_on_idle,
    .forget = limits_forget,
};
