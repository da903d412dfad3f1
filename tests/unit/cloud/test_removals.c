/*
 * Instances that leave a group whose size goes down with each of them: whatever is lost, refused or
 * killed meanwhile, no instance reduces the size twice, and no more leave than requested.
 */
#include <inttypes.h>

#include <alertscaler/base/random.h>
#include <alertscaler/base/str.h>

#include "../kube/support.h"
#include "cloud/node_group.h"
#include "clouds.h"

#define INSTANCES 12
#define MIN_SIZE  2
#define ROUNDS    400

/* An Auto Scaling group. */
static struct {
    bool is_gone[INSTANCES];     /* it was taken from the size */
    int still_listed[INSTANCES]; /* readings that show it as Terminating yet */
    unsigned taken[INSTANCES];
    int32_t desired;
    unsigned lost, refused; /* requests; removals */
} fleet;
static struct as_random chance;
static bool is_calm;

static bool one_in(uint64_t many)
{
    return !is_calm && as_random_get_below(&chance, many) == 0;
}

static const char *print_fleet(void)
{
    static char text[8192];
    int at = snprintf(text, sizeof(text),
                      "<DescribeAutoScalingGroupsResponse><DescribeAutoScalingGroupsResult>"
                      "<AutoScalingGroups><member><AutoScalingGroupName>web</"
                      "AutoScalingGroupName><AutoScalingGroupARN>arn:g</AutoScalingGroupARN>"
                      "<DesiredCapacity>%d</DesiredCapacity><Instances>",
                      fleet.desired);
    for (int i = 0; i < INSTANCES; i++) {
        if (fleet.is_gone[i] && fleet.still_listed[i]-- <= 0)
            continue;
        at += snprintf(text + at, sizeof(text) - (size_t)at,
                       "<member><InstanceId>i-%02d</InstanceId><LifecycleState>%s</LifecycleState>"
                       "</member>",
                       i, fleet.is_gone[i] ? "Terminating" : "InService");
    }
    (void)snprintf(text + at, sizeof(text) - (size_t)at,
                   "</Instances></member></AutoScalingGroups></DescribeAutoScalingGroupsResult>"
                   "</DescribeAutoScalingGroupsResponse>");
    return text;
}

static struct world_answer answer(int status, const char *body)
{
    return (struct world_answer){"POST", "", .status = status, .body = body};
}

static struct world_answer lose(void)
{
    fleet.lost++;
    return (struct world_answer){"POST", "",
                                 .outcome = one_in(2) ? AS_HTTP_BROKEN : AS_HTTP_TIMEOUT,
                                 .error = "the connection broke"};
}

static struct world_answer remove_instance(const char *id)
{
    const int at = atoi(id);
    cr_assert(at >= 0 && at < INSTANCES, "%s", id);
    if (one_in(8)) {
        fleet.refused++;
        return answer(one_in(2) ? 500 : 400, "<ErrorResponse><Error><Code>ScalingActivityInProgress"
                                             "</Code><Message>m</Message></Error></ErrorResponse>");
    }
    if (one_in(10))
        return lose(); /* before it came there */
    fleet.taken[at]++;
    fleet.is_gone[at] = true;
    fleet.still_listed[at] = (int)as_random_get_below(&chance, 4);
    fleet.desired--;
    if (one_in(5))
        return lose(); /* its answer */
    return answer(200, "<TerminateInstanceInAutoScalingGroupResponse>"
                       "<TerminateInstanceInAutoScalingGroupResult><Activity>"
                       "<ActivityId>a-1</ActivityId></Activity>"
                       "</TerminateInstanceInAutoScalingGroupResult>"
                       "</TerminateInstanceInAutoScalingGroupResponse>");
}

static struct world_answer serve(void *context, const struct world_request *request)
{
    (void)context;
    const char *id = strstr(request->body, "InstanceId=i-");
    if (strstr(request->body, "Action=TerminateInstance"))
        return remove_instance(id + strlen("InstanceId=i-"));
    if (one_in(20))
        return lose();
    if (strstr(request->body, "Action=DescribeAutoScalingGroups"))
        return answer(200, print_fleet());
    return answer(200, strstr(request->body, "Action=DescribePolicies")
                           ? AWS_RESPONSE("DescribePolicies", "<ScalingPolicies/>")
                       : one_in(2) ? AWS_ACTIVITY("InProgress")
                                   : AWS_ACTIVITY("Successful"));
}

static int sign(struct as_cloud_op *op, const struct as_provider_credentials *credentials,
                const struct as_sign_scope *scope, struct as_error *error)
{
    (void)credentials;
    (void)scope;
    (void)error;
    as_cloud_op_header(op, "Authorization: test");
    return 0;
}

static void begin_credentials(struct as_credentials_op *op)
{
    op->found.token = strdup("t");
    as_cloud_op_end(&op->op);
}

static const struct as_credentials_source sources[] = {{"test", begin_credentials}, {0}};
static const struct as_provider_option options[] = {{"region", "eu-central-1"},
                                                    {"endpoint", "https://cloud"}};
static const struct as_provider_settings settings = {
    .name = "mine",
    .timeout_us = 10 * AS_US_PER_S,
    .options = (struct as_provider_option *)(uintptr_t)options,
    .option_count = 2};

/* Asks for one or two fewer, as the engine does; the process may die on the way. */
static struct as_target_port *step_down(const struct as_group_provider *provider,
                                        struct as_target_port *port,
                                        const struct as_target_ref *group)
{
    observe(port, group);
    if (observation.outcome != AS_REASON_APPLIED || observation.replicas <= MIN_SIZE) {
        world_advance(&world, 30 * AS_US_PER_S);
        return port;
    }
    struct as_scale_request request = {.from = observation.replicas, .decision_id = "01HD"};
    request.to = request.from - 1 - one_in(2);
    request.to = request.to < MIN_SIZE ? MIN_SIZE : request.to;
    memcpy(request.version, observation.version, sizeof(request.version));
    const unsigned before = scaled_count;
    const int32_t size = fleet.desired;
    const bool dies = one_in(4);
    port->scale(port, 8, group, &request, keep_result, NULL);
    for (int i = 0; i < 900 && scaled_count == before; i++) {
        if (dies && one_in(3)) {
            port->close(port);
            return as_node_group_new(provider, &settings, &env, NULL, NULL);
        }
        world_advance(&world, AS_US_PER_S / 2);
    }
    cr_assert(dies || scaled_count > before, "it goes on for ever");
    cr_assert_geq(fleet.desired, size - (request.from - request.to), "more go than were asked for");
    return port;
}

static void run(uint64_t seed)
{
    struct as_group_provider provider = *as_group_provider_find("aws");
    provider.credentials = sources;
    provider.sign = sign;
    memset(fleet.is_gone, 0, sizeof(fleet.is_gone));
    memset(fleet.taken, 0, sizeof(fleet.taken));
    fleet.desired = INSTANCES;
    as_random_init(&chance, seed);
    is_calm = false;
    static const struct as_target_field fields[] = {{"provider", "mine"}, {"name", "web"}};
    struct as_target_ref *group =
        as_target_ref_make(&as_target_kind_node_group, "mine/web", fields, AS_ARRAY_SIZE(fields));
    setup_world();
    world.serve = serve;
    struct as_target_port *port = as_node_group_new(&provider, &settings, &env, NULL, NULL);
    for (int i = 0; i < ROUNDS && fleet.desired > MIN_SIZE; i++) {
        is_calm = i > ROUNDS / 2;
        port = step_down(&provider, port, group);
    }
    port->close(port);
    int32_t gone = 0;
    for (int i = 0; i < INSTANCES; i++) {
        cr_assert_leq(fleet.taken[i], 1, "seed %" PRIu64 ": i-%02d is taken from the size %u times",
                      seed, i, fleet.taken[i]);
        gone += fleet.is_gone[i];
    }
    cr_assert_eq(fleet.desired, MIN_SIZE, "seed %" PRIu64, seed);
    cr_assert_eq(gone, INSTANCES - MIN_SIZE, "seed %" PRIu64, seed);
    as_target_ref_free(group);
    teardown_world();
}

Test(removals, each_instance_is_taken_from_the_size_once_ever)
{
    for (uint64_t seed = 1; seed <= 300; seed++)
        run(seed);
    cr_assert_gt(fleet.lost, 300);
    cr_assert_gt(fleet.refused, 300);
}
