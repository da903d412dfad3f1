/*
 * The size that one proposal wants: steps, fixed sizes, passed values and tracked values.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "decide_private.h"

/*
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

static struct as_proposal_result propose(int32_t size, bool within_tolerance)
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

static bool is_within(const struct as_decide_input *input, double ratio)
{
    return 1 - get_tolerance(input, input->config.tolerance_down) <= ratio &&
           ratio <= 1 + get_tolerance(input, input->config.tolerance_up);
}

int32_t as_decide_count_ready(const struct as_decide_input *input)
{
    size_t count = 0;

    if (!input->has_pods)
        return input->replicas;
    for (size_t i = 0; i < input->pod_count; i++)
        count += input->pods[i].phase == AS_POD_RUNNING && input->pods[i].ready == AS_TRUE;
    return as_decide_saturate((__int128)count);
}

/* HPA's Object and External metrics with a Value goal. */
static struct as_proposal_result track_value(const struct as_decide_input *input, double value,
                                             double goal)
{
    double ratio = value / goal;

    if (input->replicas == 0)
        return propose(propose_saturate_ceil(ratio), false);
    if (is_within(input, ratio))
        return propose(input->replicas, true);
    if (input->has_pods && input->pod_count == 0)
        return unavailable();
    return propose(propose_saturate_ceil(ratio * as_decide_count_ready(input)), false);
}

/* HPA's Object and External metrics with an AverageValue goal. */
static struct as_proposal_result track_average(const struct as_decide_input *input, double value,
                                               double goal)
{
    if (input->status_replicas > 0 && is_within(input, value / (goal * input->status_replicas)))
        return propose(input->status_replicas, true);
    return propose(propose_saturate_ceil(value / goal), false);
}

enum pod_class { POD_IGNORED, POD_UNREADY, POD_MISSING, POD_READY, POD_CLASS_COUNT };

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

static enum pod_class classify(const struct as_decide_input *input, const struct as_pod *pod,
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
    struct pod_sum sums[POD_CLASS_COUNT];
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

/* False: a pod lacks the resource. */
static bool sum_pods(const struct as_decide_input *input, const struct as_proposal *proposal,
                     struct per_pod *sums)
{
    const struct as_track *track = &proposal->action.track;
    bool is_cpu = track->is_resource && track->resource == AS_RESOURCE_CPU;
    size_t at = 0;

    for (size_t i = 0; i < input->pod_count; i++) {
        const struct as_pod *pod = &input->pods[i];
        const struct as_sample *sample = find_sample(proposal, pod, &at);
        int64_t resource = 0;
        if (sums->is_utilization) {
            if (!isfinite(pod->resource[track->resource]))
                return false;
            resource = to_whole_milli(pod->resource[track->resource]);
        }
        enum pod_class class = classify(input, pod, sample, is_cpu);
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
    if (is_within(input, again))
        return propose(input->replicas, true);
    if ((ratio < 1 && again > 1) || (ratio > 1 && again < 1))
        return propose(input->replicas, false);
    int32_t size = propose_saturate_ceil(again * (double)counted.count);
    if ((again < 1 && size > input->replicas) || (again > 1 && size < input->replicas))
        return propose(input->replicas, false);
    return propose(size, false);
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
    if (is_within(input, ratio))
        return propose(input->replicas, true);
    return propose(propose_saturate_ceil(ratio * (double)ready->count), false);
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

    if (proposal->samples || track->goal == AS_GOAL_UTILIZATION)
        return track_samples(input, proposal);
    double goal = propose_to_milli(track->value);
    if (!proposal->has_value || !isfinite(proposal->value) || !(goal > 0))
        return unavailable();
    double value = propose_to_milli(proposal->value);
    return track->goal == AS_GOAL_VALUE ? track_value(input, value, goal)
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

static struct as_proposal_result propose_nothing(bool no_opinion)
{
    return (struct as_proposal_result){
        .no_opinion = no_opinion,
        .reason = no_opinion ? AS_REASON_NO_CHANGE : AS_REASON_METRIC_UNAVAILABLE,
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
    return (struct as_proposal_result){.no_opinion = true, .reason = plan->fit_reason};
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
            .no_opinion = true, .is_hold = true, .reason = AS_REASON_NO_CHANGE};
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
struct as_proposal_result as_decide_propose(const struct as_decide_input *input,
                                            const struct as_proposal *proposal)
{
    struct as_proposal_result result = propose_valued(input, proposal);

    result.is_missing = !result.has_size && !result.no_opinion;
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
