/*
 * pool_target.h: how often one look at a pool asks for facts, and when it reads the groups. The
 * watch of the cluster is replaced: the facts that it has at the start of a look, and the facts of
 * its answers.
 */
#include "cloud/pool_target.h"

#include <alertscaler/base/alloc.h>

#include "../kube/support.h"

/* ---- the watch ---- */

struct as_cluster_ask {
    as_cluster_watch_done_fn *done;
    void *context;
    struct as_timer *timer;
};

static const struct as_labels no_labels;
static const struct as_pod_class small = {.namespace_ = "n", .labels = &no_labels};
static const struct as_pod_fact waiting_pod = {.namespace_ = "n",
                                               .name = "p",
                                               .pod_class = &small,
                                               .node = AS_NO_NODE,
                                               .nominated = AS_NO_NODE,
                                               .is_unschedulable = true};
static const struct as_cluster quiet, busy = {.pods = &waiting_pod, .pod_count = 1};
static const struct as_cluster *present, *answered; /* NULL: not known */
static struct as_cluster_ask ask;
static unsigned ask_count, reads_at_ask;
static struct as_cluster_link link_of_default = {.name = "default"};

static unsigned read_count;

const struct as_cluster *as_cluster_watch_find(struct as_cluster_watch *watch)
{
    return present;
}

static void answer(void *context)
{
    static const struct as_error error = {.text = "not listed"};
    ask.done(ask.context, answered, answered ? NULL : &error);
}

struct as_cluster_ask *as_cluster_watch_ask(struct as_cluster_watch *watch,
                                            as_cluster_watch_done_fn *done, void *context)
{
    ask_count++;
    reads_at_ask = read_count;
    ask = (struct as_cluster_ask){done, context, NULL};
    ask.timer = env.loop->start_timer(env.loop, 0, answer, NULL);
    return &ask;
}

void as_cluster_watch_cancel(struct as_cluster_ask *asked)
{
    cr_assert_fail("no look is cancelled here");
}

bool as_cluster_watch_hold(struct as_cluster_watch *watch)
{
    return true;
}

void as_cluster_watch_release(struct as_cluster_watch *watch)
{
}

struct as_cluster_link *as_clusters_find(const struct as_clusters *clusters, const char *name)
{
    return &link_of_default;
}

/* ---- the groups ---- */

struct reading {
    as_target_observed_fn *done;
    void *context;
    struct as_timer *timer;
};

static void finish_reading(void *context)
{
    struct reading *reading = context;
    const struct as_observation seen = {
        .outcome = AS_REASON_APPLIED, .replicas = 3, .status_replicas = 3, .min = -1, .max = -1};
    reading->done(reading->context, 0, &seen);
    free(reading);
}

static void read_group(struct as_target_port *self, uint64_t call_id,
                       const struct as_target_ref *ref, const struct as_observe_request *request,
                       as_target_observed_fn *done, void *context)
{
    struct reading *reading = as_xcalloc(1, sizeof(*reading));
    *reading = (struct reading){done, context, NULL};
    read_count++;
    reading->timer = env.loop->start_timer(env.loop, 0, finish_reading, reading);
}

/* ---- looks ---- */

static struct as_target_port groups = {.observe = read_group};
static struct as_target_port *pool;
static struct as_target_ref *pool_ref, *group_ref;

static void setup(void)
{
    const struct as_target_field fields[] = {{"provider", "mine"}, {"name", "web"}};
    setup_world();
    link_of_default.access = (struct as_kube_access *)&link_of_default; /* it is only compared */
    link_of_default.seer = as_nodes_seer_new();
    pool_ref = as_target_ref_make(&as_target_kind_pool, "pool/all", NULL, 0);
    group_ref = as_target_ref_make(&as_target_kind_node_group, "node_group/mine/web", fields, 2);
    pool = as_pool_new(&groups, NULL, &env);
}

static void teardown(void)
{
    pool->close(pool);
    as_target_ref_free(pool_ref);
    as_target_ref_free(group_ref);
    as_nodes_seer_free(link_of_default.seer);
    teardown_world();
}

TestSuite(pool_target, .init = setup, .fini = teardown);

static bool has_error;

static void keep_look(void *context, uint64_t call_id, const struct as_observation *told)
{
    keep_observation(context, call_id, told);
    has_error = told->snapshot->error;
}

/* One look with these facts at its start and these in each answer; checks its questions for facts
 * and its readings of the group. */
static void look(const struct as_cluster *at_start, const struct as_cluster *in_answer,
                 unsigned asks, unsigned reads)
{
    static char cluster[] = "default";
    const struct as_nodes_config nodes = {.cluster = cluster};
    const struct as_pool_member member = {
        .ref = group_ref, .name = "web", .nodes = &nodes, .is_member = true, .max = 9};
    const struct as_pool_request of = {.config = &as_pool_config_default,
                                       .members = &member,
                                       .member_count = 1,
                                       .max = 9,
                                       .with_fit = true};
    const struct as_observe_request request = {.pool = &of};
    const unsigned before = observed_count;
    present = at_start;
    answered = in_answer;
    ask_count = read_count = 0;
    pool->observe(pool, 7, pool_ref, &request, keep_look, NULL);
    world_run(&world);
    cr_assert_eq(observed_count, before + 1);
    cr_expect_eq(has_error, !in_answer);
    cr_expect_eq(observation.replicas, 3);
    cr_expect_eq(ask_count, asks, "%u questions, not %u", ask_count, asks);
    cr_expect_eq(read_count, reads, "%u readings, not %u", read_count, reads);
    cr_expect_eq(reads_at_ask, reads, "facts are older than the readings");
    cr_expect(pool->is_idle(pool));
}

Test(pool_target, the_groups_are_read_first_and_facts_are_asked_for_once)
{
    look(&busy, &busy, 1, 1);
    look(&busy, &busy, 1, 1);
    look(&busy, &quiet, 1, 1);
}

Test(pool_target, young_readings_are_used_while_no_pod_waits)
{
    look(&quiet, &quiet, 1, 1);
    look(&quiet, &quiet, 1, 0);
    world_advance(&world, AS_POOL_READ_US - 1);
    look(&quiet, &quiet, 1, 0);
    world_advance(&world, 1);
    look(&quiet, &quiet, 1, 1);
}

Test(pool_target, without_facts_at_the_start_young_readings_are_used)
{
    look(NULL, &quiet, 1, 1);
    look(NULL, &quiet, 1, 0);
}

Test(pool_target, pods_that_wait_only_in_the_answer_cost_a_second_question)
{
    look(&quiet, &quiet, 1, 1);
    look(&quiet, &busy, 2, 1);
    look(NULL, &busy, 2, 1);
}
