/*
 * The decision of one target: the size that each proposal wants, then the gates in the order of
 * docs/decision.md.
 *
 * Invariants: equal inputs give equal decisions; a gate after "no change" never makes a change
 * larger. The module keeps no state, and reads neither documents nor clocks (decision.c,
 * engine/). Long because proposals and gates are one computation, read from top to bottom.
 */
#include <alertscaler/decide/decide.h>

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>

/*
 * Distances. Scale-downs mirror scale-ups. So gates and proposals use one computation: with a
 * distance (0 and up) from the present size in the wanted direction.
 */

/* Age, at least 0: a time in the future counts as now. */
static inline int64_t as_decide_get_age(as_wall_time now, as_wall_time at)
{
    return now.us > at.us ? now.us - at.us : 0;
}

static inline enum as_direction as_decide_get_direction(const struct as_decide_input *input,
                                                        int32_t size)
{
    return size > input->replicas   ? AS_DIRECTION_UP
           : size < input->replicas ? AS_DIRECTION_DOWN
                                    : AS_DIRECTION_NONE;
}

/* Distance of `size` from the present size in the direction; negative: the other way. */
static inline int64_t as_decide_get_distance(const struct as_decide_input *input,
                                             enum as_direction direction, int64_t size)
{
    return direction == AS_DIRECTION_UP ? size - input->replicas : input->replicas - size;
}

static inline bool as_decide_has_way(enum as_ways ways, enum as_direction direction)
{
    return (direction == AS_DIRECTION_DOWN && (ways & AS_WAYS_DOWN)) ||
           (direction == AS_DIRECTION_UP && (ways & AS_WAYS_UP));
}

static inline int32_t as_decide_saturate(__int128 size)
{
    return size < 0 ? 0 : size > AS_SIZE_MAX ? AS_SIZE_MAX : (int32_t)size;
}

/* The size that one proposal wants, or the reason for none. */

/*
 * The size that one proposal wants: steps, fixed sizes, passed values and tracked values.
 *
 * The arithmetic of `track` is HPA's (pkg/controller/podautoscaler/replica_calculator.go). HPA
 * divides integer thousandths. So does this code, so that sizes agree at the edges.
 */

#define FULL_UTILIZATION 100000 /* 100 %, in thousandths of a percent */

/* The smallest size not below the number. */
static int32_t propose_saturate_ceil(double number)
{
    if (!(number > 0))
        return 0;
    return number >= AS_SIZE_MAX ? AS_SIZE_MAX : (int32_t)ceil(number);
}

static struct as_proposal_result unavailable(void)
{
    return (struct as_proposal_result){.reason = AS_REASON_METRIC_UNAVAILABLE};
}

static struct as_proposal_result decide_propose(int32_t size, bool within_tolerance)
{
    return (struct as_proposal_result){
        .has_size = true, .desired = size, .within_tolerance = within_tolerance};
}

/* In thousandths. Integers with an error from multiplication are rounded. */
static double propose_to_milli(double number)
{
    double milli = number * 1000;

    if (isinf(milli))
        return copysign(DBL_MAX, milli);
    double nearest = round(milli);
    return fabs(milli - nearest) <= 1e-9 * fabs(milli) ? nearest : milli;
}

/* In whole thousandths, saturating. */
static int64_t to_whole_milli(double number)
{
    double milli = round(propose_to_milli(number));

    if (milli >= 0x1p63)
        return INT64_MAX;
    return milli < -0x1p63 ? INT64_MIN : (int64_t)milli;
}

/* From v: 2 on as in HPA, whose API has it as resource.Quantity: AsApproximateFloat64. */
static double get_tolerance(const struct as_decide_input *input, double tolerance)
{
    if (input->version < 2)
        return tolerance;
    double milli = propose_to_milli(tolerance);
    return milli == round(milli) ? milli * 1e-3 : round(tolerance * 1e6) * 1e-6;
}

static bool decide_is_within(const struct as_decide_input *input, double ratio)
{
    return 1 - get_tolerance(input, input->config.tolerance_down) <= ratio &&
           ratio <= 1 + get_tolerance(input, input->config.tolerance_up);
}

static bool is_ready_pod(const struct as_pod *pod)
{
    return pod->phase == AS_POD_RUNNING && pod->ready == AS_TRUE;
}

int32_t as_decide_count_ready(const struct as_decide_input *input)
{
    size_t count = 0;

    if (!input->has_pods)
        return input->replicas;
    for (size_t i = 0; i < input->pod_count; i++)
        count += is_ready_pod(&input->pods[i]);
    return as_decide_saturate((__int128)count);
}

static bool decide_is_by_spec(const struct as_decide_input *input)
{
    return input->config.rollout == AS_ROLLOUT_BY_SPEC;
}

/* The size by a ratio over so many pods. During a rollout there are more or fewer pods than
 * requested. With `by_spec`, pods of a surge do not count; missing pods make no increase larger,
 * and a ratio above 1 lowers nothing. */
static int32_t decide_apply_ratio(const struct as_decide_input *input, double ratio,
                                  int64_t counted)
{
    const int32_t replicas = input->replicas;
    const int32_t size = propose_saturate_ceil(ratio * (double)counted);
    if (!decide_is_by_spec(input) || replicas == 0)
        return size;
    if (ratio <= 1 || counted >= replicas)
        return propose_saturate_ceil(ratio * replicas);
    return size > replicas ? size : replicas;
}

/* The rule counts this pod. */
static bool track_counts(const struct as_track *track, const struct as_pod *pod)
{
    return !track->by_owner || pod->owner == AS_POD_OF_TARGET;
}

int32_t as_decide_count_tracked(const struct as_decide_input *input, const struct as_track *track)
{
    size_t count = 0;

    if (!input->has_pods)
        return input->replicas;
    for (size_t i = 0; i < input->pod_count; i++)
        count += track_counts(track, &input->pods[i]) && is_ready_pod(&input->pods[i]);
    return as_decide_saturate((__int128)count);
}

/* It is not known how many pods the target owns. */
static bool track_lacks_owner(const struct as_decide_input *input, const struct as_track *track)
{
    for (size_t i = 0; i < input->pod_count && track->by_owner; i++)
        if (input->pods[i].owner == AS_POD_OF_GONE)
            return true;
    return false;
}

/* HPA's Object and External metrics with a Value goal. */
static struct as_proposal_result track_value(const struct as_decide_input *input,
                                             const struct as_track *track, double value,
                                             double goal)
{
    double ratio = value / goal;
    size_t count = 0;

    if (input->replicas == 0)
        return decide_propose(propose_saturate_ceil(ratio), false);
    if (decide_is_within(input, ratio))
        return decide_propose(input->replicas, true);
    if (!input->has_pods && track->by_owner)
        return unavailable();
    if (!input->has_pods)
        return decide_propose(propose_saturate_ceil(ratio * input->replicas), false);
    for (size_t i = 0; i < input->pod_count; i++)
        count += track_counts(track, &input->pods[i]);
    if (count == 0)
        return unavailable();
    return decide_propose(decide_apply_ratio(input, ratio, as_decide_count_tracked(input, track)),
                          false);
}

/* HPA's Object and External metrics with an AverageValue goal. */
static struct as_proposal_result track_average(const struct as_decide_input *input, double value,
                                               double goal)
{
    const int32_t replicas = decide_is_by_spec(input) ? input->replicas : input->status_replicas;

    if (replicas > 0 && decide_is_within(input, value / (goal * replicas)))
        return decide_propose(replicas, true);
    return decide_propose(propose_saturate_ceil(value / goal), false);
}

enum pod_state { POD_IGNORED, POD_UNREADY, POD_MISSING, POD_READY, POD_STATE_COUNT };

/* Whether a cpu sample is void: a starting pod uses extra cpu. */
static bool is_unready_for_cpu(const struct as_decide_input *input, const struct as_pod *pod,
                               const struct as_sample *sample)
{
    if (!pod->start_time.set || !pod->ready_since.set)
        return true;
    int64_t start = pod->start_time.at.us, since = pod->ready_since.at.us;
    if (as_time_add(start, input->config.cpu_initialization_us) > input->now.us) {
        int64_t taken = sample->at.set ? sample->at.at.us : input->now.us;
        return pod->ready == AS_FALSE || taken < as_time_add(since, sample->window_us);
    }
    /* Never became ready. */
    return pod->ready == AS_FALSE &&
           since < as_time_add(start, input->config.initial_readiness_delay_us);
}

static enum pod_state classify(const struct as_decide_input *input, const struct as_pod *pod,
                               const struct as_sample *sample, bool is_cpu)
{
    if (pod->deleting || pod->phase == AS_POD_FAILED)
        return POD_IGNORED;
    if (pod->phase == AS_POD_PENDING)
        return POD_UNREADY;
    if (!sample)
        return POD_MISSING;
    return is_cpu && is_unready_for_cpu(input, pod, sample) ? POD_UNREADY : POD_READY;
}

/* Sums over the pods of one class, in thousandths. */
struct pod_sum {
    int64_t count;
    __int128 usage;    /* of ready pods; for missing pods: their assumed usage at ratio < 1 */
    __int128 resource; /* utilization only */
};

struct per_pod {
    bool is_utilization;
    int64_t goal; /* thousandths, of a percent for utilization; above 0 */
    struct pod_sum sums[POD_STATE_COUNT];
};

/* Both lists ascend; `at_io` moves along. NULL: the pod has no sample. */
static const struct as_sample *find_sample(const struct as_proposal *proposal,
                                           const struct as_pod *pod, size_t *at_io)
{
    for (; *at_io < proposal->sample_count && *pod->name; ++*at_io) {
        const struct as_sample *sample = &proposal->samples[*at_io];
        int order = strcmp(sample->pod, pod->name);
        if (order == 0 && isfinite(sample->value))
            return sample;
        if (order > 0)
            break;
    }
    return NULL;
}

/* A missing pod's assumed usage when the others are below the goal: the goal, at least 100 %. */
static __int128 get_cautious_usage(const struct per_pod *sums, int64_t resource)
{
    int64_t percent = sums->goal > FULL_UTILIZATION ? sums->goal : FULL_UTILIZATION;

    return sums->is_utilization ? (__int128)resource * percent / FULL_UTILIZATION : sums->goal;
}

/* NULL: the pod has no container of this name. */
static const struct as_pod_container *pod_find_container(const struct as_pod *pod, const char *name)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (strcmp(pod->containers[i].name, name) == 0)
            return &pod->containers[i];
    return NULL;
}

/* What the pod, or its container, requests of the resource, or has as its limit; NaN: nothing. */
static double get_resource_of(const struct as_pod *pod, const struct as_track *track)
{
    if (!track->container)
        return pod->resource[track->resource];
    const struct as_pod_container *container = pod_find_container(pod, track->container);
    return container ? container->resource[track->resource] : (double)NAN;
}

/* False: a pod lacks the resource. */
static bool sum_pods(const struct as_decide_input *input, const struct as_proposal *proposal,
                     struct per_pod *sums)
{
    const struct as_track *track = &proposal->action.track;
    bool is_cpu = track->is_resource && track->resource == AS_RESOURCE_CPU;
    size_t at = 0;

    for (size_t i = 0; i < input->pod_count; i++) {
        const struct as_pod *pod = &input->pods[i];
        if (!track_counts(track, pod))
            continue;
        const struct as_sample *sample = find_sample(proposal, pod, &at);
        int64_t resource = 0;
        if (sums->is_utilization) {
            const double of_pod = get_resource_of(pod, track);
            if (!isfinite(of_pod))
                return false;
            resource = to_whole_milli(of_pod);
        }
        enum pod_state class = classify(input, pod, sample, is_cpu);
        sums->sums[class].count++;
        sums->sums[class].resource += resource;
        if (class == POD_READY)
            sums->sums[class].usage += to_whole_milli(sample->value);
        else if (class == POD_MISSING)
            sums->sums[class].usage += get_cautious_usage(sums, resource);
    }
    return true;
}

/* Usage / goal. False: there is nothing to divide by. */
static bool compute_ratio(const struct per_pod *sums, const struct pod_sum *counted,
                          double *ratio_out)
{
    if (!sums->is_utilization) {
        *ratio_out = (double)(counted->usage / counted->count) / (double)sums->goal;
        return true;
    }
    if (counted->resource == 0)
        return false;
    __int128 percent = counted->usage * 100 / counted->resource;
    *ratio_out = (double)percent * 1000 / (double)sums->goal;
    return true;
}

static void count_in(struct pod_sum *counted, const struct pod_sum *more, bool with_usage)
{
    counted->count += more->count;
    counted->resource += more->resource;
    if (with_usage)
        counted->usage += more->usage;
}

/* Missing and unready pods are assumed to use what opposes a change; if a change remains, it is
 * done. */
static struct as_proposal_result track_filled_in(const struct as_decide_input *input,
                                                 const struct per_pod *sums, double ratio)
{
    struct pod_sum counted = sums->sums[POD_READY];
    double again;

    if (ratio < 1 || ratio > 1)
        count_in(&counted, &sums->sums[POD_MISSING], ratio < 1);
    if (ratio > 1)
        count_in(&counted, &sums->sums[POD_UNREADY], false);
    if (!compute_ratio(sums, &counted, &again))
        return unavailable();
    if (decide_is_within(input, again))
        return decide_propose(input->replicas, true);
    if ((ratio < 1 && again > 1) || (ratio > 1 && again < 1))
        return decide_propose(input->replicas, false);
    int32_t size = decide_apply_ratio(input, again, counted.count);
    if ((again < 1 && size > input->replicas) || (again > 1 && size < input->replicas))
        return decide_propose(input->replicas, false);
    return decide_propose(size, false);
}

/* HPA's Resource and Pods metrics. `average_out`: what ready pods use, in the unit of the goal. */
static struct as_proposal_result track_pods(const struct as_decide_input *input,
                                            const struct as_proposal *proposal, double *average_out)
{
    const struct as_track *track = &proposal->action.track;
    struct per_pod sums = {
        .is_utilization = track->goal == AS_GOAL_UTILIZATION,
        .goal = isfinite(track->value) ? to_whole_milli(track->value) : 0,
    };
    const struct pod_sum *ready = &sums.sums[POD_READY];
    double ratio;

    if (!(sums.goal > 0) || !sum_pods(input, proposal, &sums) || ready->count == 0 ||
        !compute_ratio(&sums, ready, &ratio))
        return unavailable();
    *average_out = ratio * (double)sums.goal / 1000;
    if (sums.sums[POD_MISSING].count > 0 || (sums.sums[POD_UNREADY].count > 0 && ratio > 1))
        return track_filled_in(input, &sums, ratio);
    if (decide_is_within(input, ratio))
        return decide_propose(input->replicas, true);
    return decide_propose(decide_apply_ratio(input, ratio, ready->count), false);
}

static struct as_proposal_result track_samples(const struct as_decide_input *input,
                                               const struct as_proposal *proposal)
{
    double average = (double)NAN;
    struct as_proposal_result result = track_pods(input, proposal, &average);
    result.has_average = isfinite(average);
    result.average = average;
    return result;
}

static struct as_proposal_result propose_track(const struct as_decide_input *input,
                                               const struct as_proposal *proposal)
{
    const struct as_track *track = &proposal->action.track;

    if (track_lacks_owner(input, track))
        return unavailable();
    if (proposal->samples || track->goal == AS_GOAL_UTILIZATION)
        return track_samples(input, proposal);
    double goal = propose_to_milli(track->value);
    if (!proposal->has_value || !isfinite(proposal->value) || !(goal > 0))
        return unavailable();
    double value = propose_to_milli(proposal->value);
    return track->goal == AS_GOAL_VALUE ? track_value(input, track, value, goal)
                                        : track_average(input, value, goal);
}

/*
 * The size that one proposal wants: steps, fixed sizes and passed values. Integers stay integers: a
 * percentage is in thousandths of a percent, so that 10 % of 30 is exactly 3.
 */

#define MILLI_PERCENT 100000 /* 100 % */
#define MICRO         1000000
#define GOAL_MAX      1000000000000 /* of a step with `to` */

static struct as_proposal_result propose_size(__int128 size)
{
    return (struct as_proposal_result){.has_size = true, .desired = as_decide_saturate(size)};
}

static struct as_proposal_result propose_nothing(bool has_no_effect)
{
    return (struct as_proposal_result){
        .has_no_effect = has_no_effect,
        .reason = has_no_effect ? AS_REASON_NO_CHANGE : AS_REASON_METRIC_UNAVAILABLE,
    };
}

static bool has_finite_value(const struct as_proposal *proposal)
{
    return proposal->has_value && isfinite(proposal->value);
}

/* A scale-up rounds its percentage up, a scale-down rounds it down. */
static __int128 compute_amount(const struct as_amount *amount, int32_t replicas, bool round_up)
{
    if (!amount->is_percent)
        return amount->size;
    __int128 part = (__int128)replicas * amount->milli_percent;
    __int128 size = (part + (round_up ? MILLI_PERCENT - 1 : 0)) / MILLI_PERCENT;
    return size > amount->at_least ? size : amount->at_least;
}

/* The step that counts; NULL: none, or no value. */
static const struct as_step *find_step(const struct as_proposal *proposal)
{
    return has_finite_value(proposal) ? as_action_find_step(&proposal->action, proposal->value)
                                      : NULL;
}

bool as_decide_has_exact_nodes(const struct as_decide_input *input)
{
    return input->version >= 3;
}

/* Only the result is rounded. A product of an int64 sum, a size and these factors has at most 122
 * bits. */
static int64_t divide_up(int64_t open, __int128 sum, __int128 divisor)
{
    return as_decide_saturate((open * sum * MICRO + divisor - 1) / divisor);
}

/* n x v / X, rounded up; X counts in millionths. */
static int64_t count_needed_nodes(const struct as_nodes_seen *seen, enum as_nodes_word word,
                                  double goal)
{
    const __int128 micro = goal < 1 / (double)MICRO ? 1
                           : goal < GOAL_MAX        ? (int64_t)round(goal * MICRO)
                                                    : (__int128)GOAL_MAX * MICRO;
    int64_t needed = 0;

    if (word == AS_NODES_COUNT)
        return divide_up(seen->open, seen->open, micro);
    if (word == AS_NODES_CORES)
        return divide_up(seen->open, seen->allocatable[AS_RESOURCE_CPU], 1000 * micro);
    for (size_t i = 0; i < AS_RESOURCE_COUNT; i++) {
        const int64_t part =
            divide_up(seen->open, (__int128)100 * seen->requests[i], seen->allocatable[i] * micro);
        needed = part > needed ? part : needed;
    }
    return needed;
}

static int64_t count_needed(const struct as_decide_input *input, const struct as_proposal *proposal,
                            double goal, bool up, int64_t count)
{
    if (proposal->nodes && count > 0 && as_decide_has_exact_nodes(input))
        return count_needed_nodes(input->nodes, proposal->nodes, goal);
    const double all = propose_to_milli(proposal->value) * (up && count == 0 ? 1.0 : (double)count);
    return propose_saturate_ceil(all / propose_to_milli(goal));
}

/* Escalator's delta: n x (v - X) / X, rounded up = ceil(n x v / X) - n; mirrored for down. So n
 * changes until the shared value v is at most X per instance. Scaling up from 0 uses v alone. */
static int64_t compute_delta(const struct as_decide_input *input,
                             const struct as_proposal *proposal, double goal, bool up)
{
    const int64_t count =
        proposal->nodes ? input->nodes->open : (int64_t)as_decide_count_ready(input);
    const int64_t needed = count_needed(input, proposal, goal, up, count);
    const int64_t delta = up ? needed - count : count - needed;

    return delta > 0 ? delta : 0;
}

/* `to: N` has one direction: at N or beyond it, others decide the size, as long as they do not undo
 * a scale-up. */
static struct as_proposal_result propose_to(const struct as_decide_input *input,
                                            const struct as_action *action, bool up)
{
    struct as_proposal_result result = propose_size(action->size);

    if (up ? input->replicas >= result.desired : input->replicas <= result.desired) {
        result = propose_nothing(true);
        result.is_floor = up;
        result.desired = as_decide_saturate(action->size);
    }
    return result;
}

/* `fit` only adds: without a new node it leaves the size to others, and says why. */
static struct as_proposal_result propose_fit(const struct as_decide_input *input)
{
    const struct as_pool_plan *plan = input->plan;

    if (!plan)
        return propose_nothing(false);
    if (plan->fit_size > plan->size)
        return propose_size(plan->fit_size);
    return (struct as_proposal_result){.has_no_effect = true, .reason = plan->fit_reason};
}

/* Never more than there is, whatever the plan says of the size. */
static struct as_proposal_result propose_take(const struct as_decide_input *input)
{
    if (!input->plan)
        return propose_nothing(false);
    return propose_size(input->plan->take_size < input->replicas ? input->plan->take_size
                                                                 : input->replicas);
}

static struct as_proposal_result propose_step(const struct as_decide_input *input,
                                              const struct as_proposal *proposal, bool up)
{
    const struct as_action *action = &proposal->action;
    const struct as_step *step = find_step(proposal);

    if (action->is_fit)
        return propose_fit(input);
    if (action->is_take)
        return propose_take(input);
    if (action->is_to)
        return propose_to(input, action, up);
    if (action->steps && !step)
        return propose_nothing(has_finite_value(proposal));
    const struct as_amount *amount = step ? &step->amount : &action->amount;
    const bool has_goal = step && step->to > 0;
    __int128 change = has_goal ? compute_delta(input, proposal, step->to, up)
                               : compute_amount(amount, input->replicas, up);
    if (has_goal && change == 0)
        return propose_nothing(true);
    return propose_size(up ? input->replicas + change : input->replicas - change);
}

static struct as_proposal_result propose_fixed(const struct as_proposal *proposal)
{
    const struct as_step *step = find_step(proposal);

    if (!proposal->action.steps)
        return propose_size(proposal->action.size);
    return step ? propose_size(step->amount.size) : propose_nothing(false);
}

/* The proposal of a value that is there, or of none. */
static struct as_proposal_result propose_action(const struct as_decide_input *input,
                                                const struct as_proposal *proposal)
{
    switch (proposal->action.kind) {
    case AS_ACTION_SCALE_UP: return propose_step(input, proposal, true);
    case AS_ACTION_SCALE_DOWN: return propose_step(input, proposal, false);
    case AS_ACTION_SCALE_TO: return propose_fixed(proposal);
    case AS_ACTION_TRACK: return propose_track(input, proposal);
    case AS_ACTION_PASS_THROUGH:
        return has_finite_value(proposal) ? propose_size(propose_saturate_ceil(proposal->value))
                                          : propose_nothing(false);
    case AS_ACTION_HOLD:
        return (struct as_proposal_result){
            .has_no_effect = true, .is_hold = true, .reason = AS_REASON_NO_CHANGE};
    case AS_ACTION_KIND_COUNT: break;
    }
    return propose_nothing(false);
}

/* Without an open node nothing shares the requests: one node more while pods wait for a first one,
 * and never fewer. */
static struct as_proposal_result propose_first_node(const struct as_decide_input *input,
                                                    const struct as_proposal *proposal)
{
    const struct as_nodes_seen *seen = input->nodes;

    if (proposal->action.kind != AS_ACTION_SCALE_DOWN && seen->waiting > 0 && seen->coming == 0)
        return propose_size((__int128)input->replicas + 1);
    struct as_proposal_result result = propose_nothing(true);
    result.is_floor = true;
    result.desired = input->replicas;
    return result;
}

static struct as_proposal_result propose_valued(const struct as_decide_input *input,
                                                const struct as_proposal *proposal)
{
    if (proposal->error)
        return propose_nothing(false);
    if (proposal->nodes == AS_NODES_NONE)
        return propose_action(input, proposal);
    if (as_decide_has_exact_nodes(input) && input->nodes &&
        as_nodes_seen_is_made_up(input->nodes, proposal->nodes))
        return propose_first_node(input, proposal);
    struct as_proposal valued = *proposal;
    struct as_error error;
    if (!input->nodes ||
        as_nodes_seen_get(input->nodes, proposal->nodes, &valued.value, &error) != 0)
        return propose_nothing(false);
    valued.has_value = true;
    struct as_proposal_result result = propose_action(input, &valued);
    result.has_value = true;
    result.value = valued.value;
    return result;
}

/* Only ever more than there is. */
static bool falls_back(const struct as_decide_input *input, const struct as_proposal *proposal)
{
    return proposal->fallback.at_least > input->replicas && proposal->unavailable_since.set &&
           as_decide_get_age(input->now, proposal->unavailable_since.at) >=
               proposal->fallback.after_us;
}

/* What forbids the direction to the proposals of this rule alone; NULL: nothing. */
static const struct as_forbidden *propose_find_ban(const struct as_decide_input *input,
                                                   const char *rule, enum as_direction direction)
{
    for (size_t i = 0; i < input->forbidden_count; i++) {
        const struct as_forbidden *row = &input->forbidden[i];
        if (row->rule && as_str_equal(row->rule, rule) && as_decide_has_way(row->ways, direction))
            return row;
    }
    return NULL;
}

/* A rule that may not go its way wants the size to stay. */
static struct as_proposal_result as_decide_propose(const struct as_decide_input *input,
                                                   const struct as_proposal *proposal)
{
    struct as_proposal_result result = propose_valued(input, proposal);

    result.is_missing = !result.has_size && !result.has_no_effect;
    if (result.is_missing && falls_back(input, proposal)) {
        result.has_size = true;
        result.desired = proposal->fallback.at_least;
    }
    if (!result.has_size)
        return result;
    result.ban =
        propose_find_ban(input, proposal->rule, as_decide_get_direction(input, result.desired));
    if (result.ban) {
        result.desired = input->replicas;
        result.within_tolerance = false;
    }
    return result;
}

/*
 * The gates. Each gate is one function: it changes or holds the size, and notes that in the trail.
 * Gates before "no change" limit a wish; later gates hold back a decided change.
 */

/* What gate 4 wants. */
struct as_move {
    enum as_direction direction; /* up or down */
    int32_t wanted;              /* distance, above 0 */
    int64_t bound;               /* distance to the bound ahead; negative: already beyond it */
};

/*
 * Directions that are forbidden, and who is named for it: first the rules with `hold`, in the order
 * of their proposals, then the others, in the order of the document.
 */

/* Whether nothing may go in the direction, and who is named for it. */
static bool decide_is_forbidden(const struct as_decide_input *input, enum as_direction direction,
                                struct as_holder_name *holder_out)
{
    for (size_t i = 0; i < input->proposal_count; i++) {
        const struct as_proposal *proposal = &input->proposals[i];
        if (proposal->action.kind == AS_ACTION_HOLD &&
            as_decide_has_way(proposal->action.hold, direction)) {
            *holder_out = (struct as_holder_name){AS_HOLDER_RULE, proposal->rule};
            return true;
        }
    }
    for (size_t i = 0; i < input->forbidden_count; i++) {
        const struct as_forbidden *row = &input->forbidden[i];
        if (!row->rule && as_decide_has_way(row->ways, direction)) {
            *holder_out = (struct as_holder_name){row->by, row->name};
            return true;
        }
    }
    return false;
}

/*
 * Gate 11: changes that wait for a person.
 *
 * A proposal that needs an approval and has none is set aside, and what the others want without it
 * is found by the gates before. Set aside it still limits them: a wish to grow keeps others from
 * shrinking the target, and a wish to shrink from shrinking it further. So the absence of an
 * answer never does more than the rules together want.
 */

/* A change of this distance by the proposal's rule needs no approval. */
static bool decide_is_free(const struct as_proposal *proposal, enum as_direction direction,
                           int64_t distance)
{
    const struct as_approval_terms *terms = &proposal->approval;
    const int32_t before = direction == AS_DIRECTION_UP ? terms->up : terms->down;
    return !terms->is_set || before + distance <= terms->above;
}

/* It lacks an approval: it cannot win, but limits the others. */
static bool decide_is_set_aside(const struct as_proposal_result *result)
{
    return result->approval != AS_APPROVAL_FREE && result->approval != AS_APPROVAL_USED;
}

/* For all proposals of the winner's rule. */
static void decide_note_use(const struct as_decide_input *input, struct as_proposal_result *results,
                            const struct as_proposal *winner, enum as_approval_use use)
{
    for (size_t i = 0; i < input->proposal_count; i++) {
        if (as_str_equal(input->proposals[i].rule, winner->rule))
            results[i].approval = use;
    }
}

/* Whether the request's present answer still holds. */
static bool is_lasting(const struct as_decide_input *input, const struct as_approval_terms *terms)
{
    return terms->until.set && terms->until.at.us > input->now.us;
}

/* Some request of the target waits for its answer. */
static bool decide_is_awaited(const struct as_decide_input *input)
{
    for (size_t i = 0; i < input->proposal_count; i++) {
        const struct as_approval_terms *terms = &input->proposals[i].approval;
        if (terms->is_set && terms->is_asked && terms->answer == AS_APPROVAL_WAITING &&
            is_lasting(input, terms))
            return true;
    }
    return false;
}

/* What becomes of a change that needs an approval. USED: cut to the size that was shown. */
static enum as_approval_use decide_use_approval(const struct as_decide_input *input,
                                                const struct as_proposal *proposal,
                                                enum as_direction direction, int32_t *distance)
{
    const struct as_approval_terms *terms = &proposal->approval;
    const int64_t shown = as_decide_get_distance(input, direction, terms->to);
    const bool is_other = terms->is_up != (direction == AS_DIRECTION_UP);
    const bool is_refused =
        terms->answer == AS_APPROVAL_DENIED || terms->answer == AS_APPROVAL_EXPIRED;
    if (!terms->is_asked || (is_other && !is_refused)) /* a refusal holds for both directions */
        return AS_APPROVAL_ASKS;
    switch (terms->answer) {
    case AS_APPROVAL_WAITING:
        return is_lasting(input, terms) ? AS_APPROVAL_AWAITED : AS_APPROVAL_REFUSED;
    case AS_APPROVAL_APPROVED:
        if (!is_lasting(input, terms))
            return AS_APPROVAL_REFUSED;
        if (shown <= 0) /* the size is there already: this is a further change */
            return AS_APPROVAL_ASKS;
        *distance = *distance > shown ? (int32_t)shown : *distance;
        return AS_APPROVAL_USED;
    case AS_APPROVAL_DENIED:
    case AS_APPROVAL_EXPIRED:
    case AS_APPROVAL_VOID:
    case AS_APPROVAL_ANSWER_COUNT: break;
    }
    return is_lasting(input, terms) ? AS_APPROVAL_REFUSED : AS_APPROVAL_ASKS;
}

/*
 * HPA's `behavior`: stabilization windows, scaling policies, and when both will next allow a
 * change. Computes distances, in integers except for percentages.
 */

const struct as_behavior as_behavior_default = {
    .up = {.window_us = 0,
           .select = AS_SELECT_MAX,
           .policy_count = 2,
           .policies = {{AS_POLICY_PODS, 4, 15 * AS_US_PER_S},
                        {AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}}},
    .down = {.window_us = 300 * AS_US_PER_S,
             .select = AS_SELECT_MAX,
             .policy_count = 1,
             .policies = {{AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}}},
};

static const struct as_scaling_rules *get_rules(const struct as_decide_input *input,
                                                enum as_direction direction)
{
    return direction == AS_DIRECTION_UP ? &input->config.behavior.up : &input->config.behavior.down;
}

/* The part of the wanted distance that the stabilization window allows now. `lo` of a scale-up and
 * `hi` of a scale-down are the same: the shortest distance wanted within the window. */
static int32_t decide_stabilize(const struct as_decide_input *input, const struct as_move *move)
{
    int64_t window = get_rules(input, move->direction)->window_us, shortest = move->wanted;

    for (size_t i = 0; i < input->recommendation_count; i++) {
        const struct as_recommendation *old = &input->recommendations[i];
        int64_t distance = as_decide_get_distance(input, move->direction, old->replicas);
        if (distance < shortest && as_decide_get_age(input->now, old->at) < window)
            shortest = distance;
    }
    return shortest > 0 ? (int32_t)shortest : 0;
}

/* When the last recommendation with a distance of at most `level` leaves the window; now, if there
 * is none. */
static int64_t find_release(const struct as_decide_input *input, const struct as_move *move,
                            int64_t level)
{
    int64_t window = get_rules(input, move->direction)->window_us, release = input->now.us;

    for (size_t i = 0; i < input->recommendation_count; i++) {
        const struct as_recommendation *old = &input->recommendations[i];
        if (as_decide_get_distance(input, move->direction, old->replicas) > level ||
            as_decide_get_age(input->now, old->at) >= window)
            continue;
        int64_t end = as_time_add(old->at.us, window);
        release = end > release ? end : release;
    }
    return release;
}

/* The changes that one policy counts. Events are in order of time, so they also leave in order. */
struct period {
    size_t first; /* the oldest event in it */
    int64_t up, down;
    int32_t allowance;
};

/*
 * HPA's ceil(start x (1 + value/100)) and trunc(start x (1 - value/100)), in doubles as there
 * (calculateScaleUpLimitWithScalingRules, calculateScaleDownLimitWithBehaviors). v: 1 was exact.
 */
static __int128 apply_percent(const struct as_decide_input *input, bool up, int64_t start,
                              int32_t percent)
{
    if (input->version < 2) {
        __int128 scaled = (__int128)start * (up ? 100 + (int64_t)percent : 100 - (int64_t)percent);
        return scaled / 100 + (up && scaled % 100 > 0);
    }
    double part = (double)percent / 100;
    double size = (double)start * (up ? 1 + part : 1 - part);
    return (__int128)(up ? ceil(size) : size);
}

/* The distance that one policy allows. Saturating the size does not shorten a wanted distance,
 * which never leads beyond 0 or the largest size. */
static int32_t compute_allowance(const struct as_decide_input *input, enum as_direction direction,
                                 const struct as_policy *policy, const struct period *period)
{
    bool up = direction == AS_DIRECTION_UP;
    int64_t start = input->replicas - period->up + period->down; /* as the period began */
    __int128 size;

    if (policy->type == AS_POLICY_PODS)
        size = up ? start + policy->value : start - policy->value;
    else
        size = apply_percent(input, up, start, policy->value);
    __int128 distance = up ? size - input->replicas : input->replicas - size;
    return as_decide_saturate(distance);
}

static void add_event(struct period *period, int64_t change, int sign)
{
    if (change > 0)
        period->up += sign * change;
    else
        period->down -= sign * change;
}

static void fill_period(const struct as_decide_input *input, enum as_direction direction,
                        const struct as_policy *policy, struct period *period)
{
    *period = (struct period){.first = input->event_count};
    while (period->first > 0 &&
           as_decide_get_age(input->now, input->events[period->first - 1].at) < policy->period_us)
        add_event(period, input->events[--period->first].change, 1);
    period->allowance = compute_allowance(input, direction, policy, period);
}

/* Drops the events that are as old as the period or older at time `at`. */
static void advance_period(const struct as_decide_input *input, enum as_direction direction,
                           const struct as_policy *policy, struct period *period, int64_t at)
{
    size_t before = period->first;

    while (period->first < input->event_count &&
           as_time_add(input->events[period->first].at.us, policy->period_us) <= at)
        add_event(period, input->events[period->first++].change, -1);
    if (period->first != before)
        period->allowance = compute_allowance(input, direction, policy, period);
}

static int32_t select_allowance(const struct as_scaling_rules *rules, const struct period *periods)
{
    int32_t chosen = 0;

    if (rules->select == AS_SELECT_DISABLED)
        return 0;
    for (size_t i = 0; i < rules->policy_count; i++) {
        bool better = rules->select == AS_SELECT_MAX ? periods[i].allowance > chosen
                                                     : periods[i].allowance < chosen;
        if (i == 0 || better)
            chosen = periods[i].allowance;
    }
    return chosen;
}

static void fill_periods(const struct as_decide_input *input, enum as_direction direction,
                         struct period periods[AS_POLICIES_MAX])
{
    const struct as_scaling_rules *rules = get_rules(input, direction);

    for (size_t i = 0; i < rules->policy_count; i++)
        fill_period(input, direction, &rules->policies[i], &periods[i]);
}

/* The distance that the policies allow now. */
static int32_t decide_get_allowance(const struct as_decide_input *input,
                                    enum as_direction direction)
{
    struct period periods[AS_POLICIES_MAX];

    fill_periods(input, direction, periods);
    return select_allowance(get_rules(input, direction), periods);
}

/* When the next event leaves one of the periods; INT64_MAX: never. */
static int64_t find_next_leave(const struct as_decide_input *input,
                               const struct as_scaling_rules *rules, const struct period *periods)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < rules->policy_count; i++) {
        if (periods[i].first == input->event_count)
            continue;
        int64_t leave =
            as_time_add(input->events[periods[i].first].at.us, rules->policies[i].period_us);
        next = leave < next ? leave : next;
    }
    return next;
}

/* The first time when the policies allow less than `level`, or, from `release` on, more. */
static int64_t find_other_allowance(const struct as_decide_input *input, const struct as_move *move,
                                    int32_t level, int64_t release)
{
    const struct as_scaling_rules *rules = get_rules(input, move->direction);
    struct period periods[AS_POLICIES_MAX];
    int64_t at = input->now.us;

    if (rules->select == AS_SELECT_DISABLED)
        return INT64_MAX;
    fill_periods(input, move->direction, periods);
    for (;;) {
        int32_t allowance = select_allowance(rules, periods);
        int64_t next = find_next_leave(input, rules, periods);
        if (allowance < level)
            return at;
        if (allowance > level && release < next) /* the allowance stays until `next` */
            return release > at ? release : at;
        if (next == INT64_MAX)
            return INT64_MAX;
        at = next;
        for (size_t i = 0; i < rules->policy_count; i++)
            advance_period(input, move->direction, &rules->policies[i], &periods[i], at);
    }
}

/* When windows and periods first change the size or the reason; INT64_MAX: never. * The distance
 * that windows allow only grows with time; what policies allow may also shrink. The size is now at
 * distance `level`. (A size that stays at or beyond its bound has distance 1, which stands for all
 * above: only a fall to 0 would change the reason.) The size changes when the policies allow less,
 * or when both windows and policies allow more, unless the bound stops it. */
static int64_t decide_find_relief(const struct as_decide_input *input, const struct as_move *move)
{
    int32_t stable = decide_stabilize(input, move);
    int32_t allowance = decide_get_allowance(input, move->direction);
    int64_t top = move->bound > 1 ? move->bound : 1;
    int32_t level = stable < allowance ? stable : allowance;

    if (stable == 0) /* the reason is `stabilized`: any other reason is a new answer */
        return find_release(input, move, 0);
    if (level >= top || level == move->wanted)
        return find_other_allowance(input, move, level < top ? level : (int32_t)top, INT64_MAX);
    return find_other_allowance(input, move, level, find_release(input, move, level));
}

struct run {
    const struct as_decide_input *input;
    struct as_proposal_result *results;
    struct as_decision *decision;
    int32_t size;                     /* after the gates so far */
    struct as_move move;              /* direction NONE: no change wanted */
    bool has_hold;                    /* a gate has turned the wish into "stay" */
    enum as_reason hold;              /* its reason */
    const struct as_proposal *winner; /* NULL: none */
    bool within_tolerance;            /* a winning proposal has this reason */
    bool is_locked;                   /* by the cooldown */
    int64_t locked_until;
    int64_t answered_at; /* the first of the answers to requests that held the size; or never */
};

#define WORD(enumerator, word, meaning)    [enumerator] = (word),
#define MEANING(enumerator, word, meaning) [enumerator] = (meaning),

static const char *const gate_words[] = {AS_GATES(WORD)};
static const char *const gate_meanings[] = {AS_GATES(MEANING)};

const char *as_direction_get_word(enum as_direction direction)
{
    static const char *const words[] = {
        [AS_DIRECTION_NONE] = "none", [AS_DIRECTION_UP] = "up", [AS_DIRECTION_DOWN] = "down"};

    assert((size_t)direction < AS_ARRAY_SIZE(words));
    return words[direction];
}

const char *as_in_progress_by_get_word(enum as_in_progress_by by)
{
    static const char *const words[AS_IN_PROGRESS_COUNT] = {AS_IN_PROGRESS_CAUSES(WORD)};
    return words[by];
}

const char *as_gate_get_word(enum as_gate gate)
{
    assert((size_t)gate < AS_GATE_COUNT);
    return gate_words[gate];
}

const char *as_gate_get_meaning(enum as_gate gate)
{
    assert((size_t)gate < AS_GATE_COUNT);
    return gate_meanings[gate];
}

static void decide_note(struct run *run, enum as_gate gate)
{
    struct as_decision *decision = run->decision;

    assert(decision->trail_count < AS_GATE_COUNT);
    decision->trail[decision->trail_count].gate = gate;
    decision->trail[decision->trail_count++].desired = run->size;
}

static enum as_direction decide_get_direction(const struct run *run, int32_t size)
{
    return as_decide_get_direction(run->input, size);
}

static void decide_hold(struct run *run, enum as_reason why)
{
    run->has_hold = true;
    run->hold = why;
}

/* Whether the size must not be changed to this one; then the reason is its holder's. */
static bool is_held(struct run *run, int32_t size)
{
    if (!decide_is_forbidden(run->input, decide_get_direction(run, size), &run->decision->held_by))
        return false;
    decide_hold(run, as_holder_get_reason(run->decision->held_by.by));
    return true;
}

static int32_t get_distance(const struct run *run)
{
    return (int32_t)as_decide_get_distance(run->input, run->move.direction, run->size);
}

/* A gate shortens the wish; if nothing is left, the reason is `why`. */
static void decide_cut(struct run *run, int32_t distance, enum as_limit limit, enum as_reason why)
{
    run->size =
        run->input->replicas + (run->move.direction == AS_DIRECTION_UP ? distance : -distance);
    run->decision->limited_by |= limit;
    if (distance == 0)
        decide_hold(run, why);
}

/* The change is decided, but must not be done now. */
static void hold_back(struct run *run, enum as_gate gate, enum as_reason why)
{
    run->decision->has_would = true;
    run->decision->would = run->size;
    run->decision->reason = why;
    run->size = run->input->replicas;
    decide_note(run, gate);
}

/* 1. Size 0 with min above 0: an operator has switched the target off, so it is left alone. Marked
 * nodes are in the provider's size: while there are any, alertscaler has made the size 0. The min
 * of a schedule wakes a target whose own is 0. A zero that a schedule has set is no operator's. */
static bool gate_switched_off(struct run *run)
{
    const struct as_decide_input *input = run->input;
    const int32_t own_min = input->has_own_min ? input->own_min : input->config.min;

    if (input->replicas > 0 || input->marked > 0 || own_min == 0 || input->is_scheduled_zero)
        return false;
    run->decision->reason = AS_REASON_DISABLED;
    decide_note(run, AS_GATE_SWITCHED_OFF);
    decide_note(run, AS_GATE_COMBINE);
    decide_note(run, AS_GATE_BOUNDS);
    return true;
}

/* The size from before a schedule returns at once, at its end. */
static bool find_return(const struct run *run, int32_t *size_out)
{
    const struct as_decide_input *input = run->input;
    for (size_t i = 0; i < input->proposal_count; i++) {
        const struct as_proposal_result *result = &run->results[i];
        if (!input->proposals[i].schedule || !result->has_size ||
            result->desired <= input->replicas || input->config.max <= input->replicas)
            continue;
        *size_out = result->desired < input->config.max ? result->desired : input->config.max;
        return true;
    }
    return false;
}

/* 2. As HPA: a size outside the bounds is corrected before anything else, unless its direction is
 * forbidden. The min of a schedule, and its `max: 0`, are enforced in any case. */
static bool gate_out_of_bounds(struct run *run)
{
    const struct as_bounds_config *config = &run->input->config;
    const struct as_decide_input *input = run->input;
    const bool above = input->replicas > config->max, below = input->replicas < config->min;
    int32_t size = above ? config->max : config->min;
    enum as_reason why = above ? AS_REASON_ABOVE_MAX : AS_REASON_BELOW_MIN;

    if (find_return(run, &size))
        why = AS_REASON_SCHEDULE_ENDED;
    else if (!(above && (config->enforce_bounds || input->enforce_max)) &&
             !(below && (config->enforce_bounds || input->enforce_min)))
        return false;
    if (is_held(run, size))
        return false;
    run->size = size;
    run->decision->reason = why;
    decide_note(run, AS_GATE_OUT_OF_BOUNDS);
    decide_note(run, AS_GATE_COMBINE);
    decide_note(run, AS_GATE_BOUNDS);
    return true;
}

struct tally {
    const struct as_proposal *winner; /* the first with the highest size; NULL: no sizes */
    int32_t highest;
    int32_t floor; /* no decrease ends below it */
    bool wants_down, is_missing, within_tolerance;
};

static struct tally count_proposals(const struct run *run)
{
    struct tally tally = {0};

    for (size_t i = 0; i < run->input->proposal_count; i++) {
        const struct as_proposal_result *result = &run->results[i];
        tally.is_missing |= result->is_missing;
        if (result->has_size && decide_is_set_aside(result)) {
            const int32_t limit =
                result->desired < run->input->replicas ? result->desired : run->input->replicas;
            tally.floor = limit > tally.floor ? limit : tally.floor;
            continue;
        }
        if (!result->has_size) {
            if (result->is_floor && result->desired > tally.floor)
                tally.floor = result->desired;
            continue;
        }
        tally.wants_down |= result->desired < run->input->replicas;
        if (!tally.winner || result->desired > tally.highest) {
            tally.winner = &run->input->proposals[i];
            tally.highest = result->desired;
            tally.within_tolerance = false;
        }
        if (result->desired == tally.highest)
            tally.within_tolerance |= result->within_tolerance;
    }
    return tally;
}

/* The size stays where the combined one's direction is forbidden, or where the winner is a rule
 * that may not go its way. As after a veto, the recommendation is to stay: a stabilization window
 * begins when the direction is free again. */
static void apply_forbidden(struct run *run)
{
    const int32_t replicas = run->input->replicas;

    if (run->size != replicas && is_held(run, run->size)) {
        run->size = run->decision->recommendation = replicas;
        return;
    }
    for (size_t i = 0; i < run->input->proposal_count; i++) {
        const struct as_forbidden *ban = run->results[i].ban;
        if (!ban || run->has_hold || run->size != replicas)
            continue;
        run->decision->held_by = (struct as_holder_name){ban->by, ban->name};
        decide_hold(run, as_holder_get_reason(ban->by));
    }
}

/* 4. The highest wins, because one rule's "enough" does not answer another's "too few". An unknown
 * value never lowers the size, and is not stored as a recommendation. A floor is at most the
 * present size: it only limits decreases. */
static void gate_combine(struct run *run)
{
    const struct as_decide_input *input = run->input;
    struct tally tally = count_proposals(run);

    if (tally.is_missing && (!tally.winner || tally.highest < input->replicas)) {
        decide_hold(run, AS_REASON_METRIC_UNAVAILABLE);
    } else if (tally.winner) {
        run->size = tally.highest > tally.floor ? tally.highest : tally.floor;
        run->winner = tally.winner;
        run->decision->rule = tally.winner->rule;
        run->decision->has_recommendation = true;
        run->decision->recommendation = run->size;
        run->within_tolerance = tally.within_tolerance;
        if (run->size == input->replicas && tally.wants_down)
            decide_hold(run, AS_REASON_VETOED);
    }
    apply_forbidden(run);
    enum as_direction direction = decide_get_direction(run, run->size);
    run->move.direction = direction;
    run->move.wanted = get_distance(run);
    run->move.bound = as_decide_get_distance(
        input, direction, direction == AS_DIRECTION_UP ? input->config.max : input->config.min);
    decide_note(run, AS_GATE_COMBINE);
}

/* 5. A wish counts only as far as it has lasted for the whole window. */
static void gate_stabilize(struct run *run)
{
    if (run->move.direction == AS_DIRECTION_NONE || !run->input->config.has_behavior)
        return;
    int32_t distance = decide_stabilize(run->input, &run->move);
    if (distance >= get_distance(run))
        return;
    decide_cut(run, distance, AS_LIMIT_STABILIZATION, AS_REASON_STABILIZED);
    decide_note(run, AS_GATE_STABILIZE);
}

/* 6. No faster than the policies allow. */
static void gate_policies(struct run *run)
{
    if (decide_get_direction(run, run->size) == AS_DIRECTION_NONE ||
        !run->input->config.has_behavior)
        return;
    int32_t distance = decide_get_allowance(run->input, run->move.direction);
    if (distance >= get_distance(run))
        return;
    decide_cut(run, distance, AS_LIMIT_POLICY, AS_REASON_RATE_LIMITED);
    decide_note(run, AS_GATE_POLICIES);
}

/* 7. Only the bound ahead counts: a scale-up must not shrink a size above max. */
static void gate_bounds(struct run *run)
{
    bool up = run->move.direction == AS_DIRECTION_UP;

    if (decide_get_direction(run, run->size) != AS_DIRECTION_NONE &&
        get_distance(run) > run->move.bound)
        decide_cut(run, run->move.bound > 0 ? (int32_t)run->move.bound : 0,
                   up ? AS_LIMIT_MAX : AS_LIMIT_MIN, up ? AS_REASON_AT_MAX : AS_REASON_AT_MIN);
    decide_note(run, AS_GATE_BOUNDS);
}

/* The first rule without an opinion that says why: `fit` says what keeps waiting pods from a node.
 * The decision names this rule, from version 3 on. */
static enum as_reason decide_find_obstacle(struct run *run)
{
    for (size_t i = 0; i < run->input->proposal_count; i++) {
        if (!run->results[i].has_no_effect || run->results[i].reason == AS_REASON_NO_CHANGE)
            continue;
        if (run->input->version >= 3)
            run->decision->rule = run->input->proposals[i].rule;
        return run->results[i].reason;
    }
    return AS_REASON_NO_CHANGE;
}

/* 8. No change: the reason is that of the gate that last held the size. */
static bool gate_no_change(struct run *run)
{
    if (run->size != run->input->replicas)
        return false;
    run->decision->reason = run->has_hold           ? run->hold
                            : run->within_tolerance ? AS_REASON_WITHIN_TOLERANCE
                                                    : decide_find_obstacle(run);
    return true;
}

static void lock_after(struct run *run, as_maybe_time last, int64_t cooldown_us)
{
    if (!last.set || as_decide_get_age(run->input->now, last.at) >= cooldown_us)
        return;
    int64_t end = as_time_add(last.at.us, cooldown_us);
    if (!run->is_locked || end > run->locked_until)
        run->locked_until = end;
    run->is_locked = true;
}

/* 9. The target's lock. A surge right after a scale-down may scale up at once, unless up_after_down
 * forbids it; a scale-down always waits. */
static bool gate_cooldown(struct run *run)
{
    const struct as_decide_input *input = run->input;
    const struct as_cooldown *cooldown = &input->config.cooldown;

    if (run->move.direction == AS_DIRECTION_UP) {
        lock_after(run, input->last_up, cooldown->up_us);
        lock_after(run, input->last_down, cooldown->up_after_down_us);
    } else {
        lock_after(run, input->last_up, cooldown->down_us);
        lock_after(run, input->last_down, as_cooldown_get_down_after_down(cooldown));
    }
    if (run->is_locked)
        hold_back(run, AS_GATE_COOLDOWN, AS_REASON_COOLDOWN);
    return run->is_locked;
}

/* A report from before the last step down does not confirm the next one. */
static bool is_unconfirmed(const struct run *run)
{
    const struct as_decide_input *input = run->input;
    const struct as_proposal *winner = run->winner;

    if (!winner || !winner->needs_news || !input->last_step_down.set)
        return false;
    return !winner->reported.set || winner->reported.at.us <= input->last_step_down.at.us;
}

/* 10. Holds from outside the decision. False: nothing holds. */
static bool find_hold(const struct run *run, enum as_reason *why_out)
{
    const struct as_decide_input *input = run->input;
    bool down = decide_get_direction(run, run->size) == AS_DIRECTION_DOWN;
    const struct {
        bool holds;
        enum as_reason why;
    } rows[] = {
        {input->flags.paused, AS_REASON_PAUSED},
        {input->flags.contended, AS_REASON_CONTENDED},
        {input->flags.in_progress, AS_REASON_IN_PROGRESS},
        {input->flags.guarded && down, AS_REASON_GUARDED},
        {down && is_unconfirmed(run), AS_REASON_UNCONFIRMED},
        {input->flags.budget_exhausted, AS_REASON_BUDGET},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (rows[i].holds) {
            *why_out = rows[i].why;
            return true;
        }
    }
    return false;
}

static bool gate_holds(struct run *run)
{
    enum as_reason why;

    if (!find_hold(run, &why))
        return false;
    hold_back(run, AS_GATE_HOLDS, why);
    return true;
}

static void find_desired(struct run *run)
{
    gate_combine(run);
    gate_stabilize(run);
    gate_policies(run);
    gate_bounds(run);
}

/* What is left without the proposals that are set aside. Its direction is the same, or none: so the
 * lock has been asked. */
static struct run find_other_desired(const struct run *run, struct as_decision *scratch)
{
    enum as_reason why;
    struct run other = {.input = run->input,
                        .results = run->results,
                        .decision = scratch,
                        .size = run->input->replicas,
                        .answered_at = INT64_MAX};

    *scratch = (struct as_decision){0};
    find_desired(&other);
    if (find_hold(&other, &why))
        other.size = run->input->replicas;
    return other;
}

/* What becomes of the winner's change: it may be shorter. */
static enum as_approval_use use_approval(struct run *run, struct run *other, bool *is_awaited)
{
    const enum as_direction direction = other->move.direction;
    const struct as_approval_terms *terms = &other->winner->approval;
    int32_t distance = get_distance(other);
    enum as_approval_use use = decide_use_approval(run->input, other->winner, direction, &distance);

    if (use == AS_APPROVAL_ASKS && *is_awaited)
        use = AS_APPROVAL_AWAITED;
    if (use == AS_APPROVAL_ASKS) {
        *is_awaited = true;
        run->decision->is_asking = true;
        run->decision->asked = other->size;
    }
    if (use == AS_APPROVAL_USED)
        other->size = run->input->replicas + (direction == AS_DIRECTION_UP ? distance : -distance);
    else if (terms->is_asked && terms->until.set && terms->until.at.us < run->answered_at)
        run->answered_at = terms->until.at.us;
    decide_note_use(run->input, run->results, other->winner, use);
    return use;
}

/* 11. A rule's change by more than its `above` needs an approval. Without it, the others go on. */
static bool gate_approval(struct run *run)
{
    const int32_t replicas = run->input->replicas, wanted = run->size;
    struct as_decision scratch = {.limited_by = run->decision->limited_by};
    struct run other = *run;
    bool is_awaited = decide_is_awaited(run->input), is_open = false, is_aside = false;

    while (other.winner && other.size != replicas &&
           !decide_is_free(other.winner, other.move.direction, get_distance(&other))) {
        const enum as_approval_use use = use_approval(run, &other, &is_awaited);
        if (use == AS_APPROVAL_USED)
            break;
        is_aside = true;
        is_open = is_open || use != AS_APPROVAL_REFUSED;
        other = find_other_desired(run, &scratch);
    }
    if (is_aside && other.size == replicas) {
        hold_back(run, AS_GATE_APPROVAL,
                  is_open ? AS_REASON_NEEDS_APPROVAL : AS_REASON_NOT_APPROVED);
        return true;
    }
    run->size = other.size;
    run->winner = other.winner;
    run->move = other.move;
    run->decision->rule = other.winner ? other.winner->rule : NULL;
    run->decision->limited_by = scratch.limited_by;
    if (run->size != wanted)
        decide_note(run, AS_GATE_APPROVAL);
    return false;
}

/* 12. All but the change itself. */
static bool gate_dry_run(struct run *run)
{
    if (run->input->dry_run)
        hold_back(run, AS_GATE_DRY_RUN, AS_REASON_DRY_RUN);
    return run->input->dry_run;
}

static void pass_gates(struct run *run)
{
    if (gate_switched_off(run))
        return;
    if (!gate_out_of_bounds(run)) {
        find_desired(run);
        if (gate_no_change(run) || gate_cooldown(run))
            return;
        run->decision->reason = AS_REASON_SCALED;
    }
    if (!gate_holds(run) && !gate_approval(run) && !gate_dry_run(run) &&
        run->decision->reason == AS_REASON_SCALED && run->winner->schedule)
        run->decision->reason = AS_REASON_SCHEDULE_ENDED;
}

/* If a lock, a window, a policy's period or a request held the size: when the answer will first
 * differ. The end of a lock always changes at least the reason. */
static void find_next_evaluation(struct run *run)
{
    bool by_behavior =
        (run->decision->limited_by & (AS_LIMIT_STABILIZATION | AS_LIMIT_POLICY)) != 0;
    int64_t next = run->is_locked ? run->locked_until : run->answered_at;

    if (run->input->config.has_behavior && (run->is_locked || by_behavior)) {
        int64_t relief = decide_find_relief(run->input, &run->move);
        next = relief < next ? relief : next;
    }
    if (next != INT64_MAX)
        run->decision->next_evaluation = (as_maybe_time){.set = true, .at = {next}};
}

/* Beside the size: only where nothing else is done, and nobody says that nothing may be done. */
static int32_t decision_count_unregistered(const struct as_decide_input *input,
                                           const struct as_decision *decision)
{
    bool is_asked = false;
    for (size_t i = 0; i < input->proposal_count; i++)
        is_asked = is_asked || (input->proposals[i].action.is_fit && !input->proposals[i].error);
    if (!is_asked || !input->plan || decision->desired != decision->replicas || input->dry_run ||
        input->flags.paused || input->flags.in_progress)
        return 0;
    return input->plan->overdue;
}

void as_decide(const struct as_decide_input *input, struct as_proposal_result *results,
               struct as_decision *decision_out)
{
    struct run run = {.input = input,
                      .results = results,
                      .decision = decision_out,
                      .size = input->replicas,
                      .answered_at = INT64_MAX};

    *decision_out = (struct as_decision){.replicas = input->replicas};
    /* 3. Also if gate 1 or 2 ends it: the record shows what the rules want. */
    for (size_t i = 0; i < input->proposal_count; i++)
        results[i] = as_decide_propose(input, &input->proposals[i]);
    pass_gates(&run);
    decision_out->desired = run.size;
    decision_out->direction =
        decide_get_direction(&run, decision_out->has_would ? decision_out->would : run.size);
    find_next_evaluation(&run);
    decision_out->overdue = decision_count_unregistered(input, decision_out);
}
