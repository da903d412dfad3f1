/*
 * The arithmetic of `track` is HPA's (pkg/controller/podautoscaler/replica_calculator.go). HPA
 * divides integer thousandths. So does this code, so that sizes agree at the edges.
 */
#include "decide_private.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define FULL_UTILIZATION 100000 /* 100 %, in thousandths of a percent */

int32_t as_decide_saturate_ceil(double number)
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

double as_decide_to_milli(double number)
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
    double milli = round(as_decide_to_milli(number));

    if (milli >= 0x1p63)
        return INT64_MAX;
    return milli < -0x1p63 ? INT64_MIN : (int64_t)milli;
}

/* From v: 2 on as in HPA, whose API has it as resource.Quantity: AsApproximateFloat64. */
static double get_tolerance(const struct as_decide_input *input, double tolerance)
{
    if (input->version < 2)
        return tolerance;
    double milli = as_decide_to_milli(tolerance);
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
        return propose(as_decide_saturate_ceil(ratio), false);
    if (is_within(input, ratio))
        return propose(input->replicas, true);
    if (input->has_pods && input->pod_count == 0)
        return unavailable();
    return propose(as_decide_saturate_ceil(ratio * as_decide_count_ready(input)), false);
}

/* HPA's Object and External metrics with an AverageValue goal. */
static struct as_proposal_result track_average(const struct as_decide_input *input, double value,
                                               double goal)
{
    if (input->status_replicas > 0 && is_within(input, value / (goal * input->status_replicas)))
        return propose(input->status_replicas, true);
    return propose(as_decide_saturate_ceil(value / goal), false);
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
    int32_t size = as_decide_saturate_ceil(again * (double)counted.count);
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
    return propose(as_decide_saturate_ceil(ratio * (double)ready->count), false);
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

struct as_proposal_result as_decide_track(const struct as_decide_input *input,
                                          const struct as_proposal *proposal)
{
    const struct as_track *track = &proposal->action.track;

    if (proposal->samples || track->goal == AS_GOAL_UTILIZATION)
        return track_samples(input, proposal);
    double goal = as_decide_to_milli(track->value);
    if (!proposal->has_value || !isfinite(proposal->value) || !(goal > 0))
        return unavailable();
    double value = as_decide_to_milli(proposal->value);
    return track->goal == AS_GOAL_VALUE ? track_value(input, value, goal)
                                        : track_average(input, value, goal);
}
