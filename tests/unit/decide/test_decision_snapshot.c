/*
 * Snapshots in decision documents: what is written is read as it was and gets the same answer, and
 * what a plan would trip over is refused with its place.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/decide/decision.h>

#define DOCUMENT_MAX ((size_t)4 << 20)

/* Has every field, and no default. */
static const char whole[] =
    "{\"flags\":{\"budget_exhausted\":false,\"guarded\":false,\"in_progress\":false,"
    "\"in_progress_by\":\"after\",\"paused\":false},"
    "\"history\":{\"asked\":[{\"at\":\"2026-11-20T09:00:00Z\",\"group\":\"spot\","
    "\"in_vain\":true,\"shape\":\"00000000000000a1\",\"template\":\"ffffffffffffffff\"}],"
    "\"drain_failed\":\"2026-11-20T09:59:00Z\",\"last_down\":null,\"last_up\":null,"
    "\"recommendations\":[],\"scale_events\":[],\"unneeded\":[{\"no_room\":"
    "\"2026-11-20T09:58:00Z\",\"node\":\"n1\",\"seen\":\"2026-11-20T09:59:45Z\","
    "\"since\":\"2026-11-20T09:40:00Z\"}]},"
    "\"now\":\"2026-11-20T10:00:00Z\","
    "\"observed\":{\"budgets\":[{\"name\":\"shop/db\"},{\"allowed\":2,\"name\":\"shop/web\"}],"
    "\"cluster_nodes\":7,"
    "\"groups\":[{\"closed\":\"cooldown\",\"coming\":1,\"max\":9,\"min\":1,\"name\":\"spot\","
    "\"nodes\":{\"count\":4,\"cpu\":32000,\"memory\":137438953472},\"overdue\":1,"
    "\"price\":0.25,\"priority\":-5,\"removable\":1,\"size\":6,"
    "\"template\":{\"allocatable\":[7900,32212254720,0,110,1],\"capacity\":[8000,34359738368,0,"
    "110,1],\"digest\":\"0123456789abcdef\",\"free\":[7700,31138512896,0,108,1],"
    "\"labels\":{\"disk\":\"ssd\"},\"node\":\"n1\",\"ports\":[{\"ip\":\"0.0.0.0\","
    "\"port\":53,\"protocol\":\"UDP\"}],\"source\":\"node\","
    "\"taints\":[{\"effect\":\"NoSchedule\",\"key\":\"gpu\",\"value\":\"yes\"}]},"
    "\"unneeded\":{\"for\":60,\"unready_for\":null}},"
    "{\"closed\":\"unreachable\",\"last_size\":2,\"max\":3,\"member\":false,\"message\":\"HTTP "
    "500\","
    "\"name\":\"other\",\"size\":null}],"
    "\"kept\":{\"at_once\":1,\"utilized\":3},\"leaving\":{\"drained\":1,\"empty\":2},"
    "\"pending\":[[0,4000000000]],\"pending_pods\":4000000001,"
    "\"pool_nodes\":[{\"allocatable\":[7900,32212254720,0,110],\"expendable\":[500],"
    "\"group\":0,"
    "\"guests\":[[2,1]],\"labels\":{\"topology.kubernetes.io/zone\":\"a\"},"
    "\"left\":[-100,21474836480,0,90],\"name\":\"n1\",\"pods\":[[1,2],[2,1]],"
    "\"utilization\":12.5},"
    "{\"left\":[6000,21474836480,0,90],\"name\":\"n2\",\"ready\":false,"
    "\"stays\":\"no_group\",\"taints\":[{\"effect\":\"NoExecute\",\"key\":\"k\"}]}],"
    "\"replicas\":6,\"resources\":[\"nvidia.com/gpu\"],"
    "\"shapes\":[{\"affinity\":[[{\"key\":\"cpu\",\"operator\":\"Gt\",\"values\":[\"4\"]},"
    "{\"field\":true,\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"n9\"]}],[]],"
    "\"digest\":\"00000000000000a1\",\"requests\":[2000,4294967296,0,1,1],"
    "\"unchecked\":[\"affinity\",\"volumes\"],\"waiting\":5},"
    "{\"budgets\":[0,1],\"digest\":\"00000000000000a2\",\"eviction\":\"system\","
    "\"loner\":\"000000000000000f\",\"never_preempts\":true,\"ports\":[{\"ip\":\"10.0.0.1\","
    "\"port\":80,"
    "\"protocol\":\"UDP\"}],\"priority\":-7,\"requests\":[1,1,0,1],"
    "\"selector\":{\"disk\":\"ssd\"},\"tolerations\":[{\"effects\":[\"NoSchedule\","
    "\"NoExecute\"],\"exists\":true,\"key\":\"gpu\"},{\"value\":\"x\"}],\"zone\":\"a\"},"
    "{\"digest\":\"00000000000000a3\"}],"
    "\"status_replicas\":6},"
    "\"proposals\":[],\"seed\":\"fffffffffffffff0\","
    "\"target\":{\"cooldown\":{\"down\":0,\"up\":0,\"up_after_down\":0},"
    "\"cpu_initialization_seconds\":300,\"dry_run\":false,\"enforce_bounds\":false,"
    "\"initial_readiness_delay_seconds\":30,\"max\":20,\"min\":1,"
    "\"pool\":{\"at_once\":{\"drain\":2,\"empty\":5},\"balance\":true,"
    "\"choose\":[\"priority\",\"random\"],\"cpu\":{\"max\":320.5,\"min\":8},"
    "\"ignore_labels\":[\"rack\"],\"memory\":{\"max\":1099511627776,\"min\":1},"
    "\"pod_price\":{\"cpu\":0.1,\"memory\":0.02}},"
    "\"tolerance\":{\"down\":0.1,\"up\":0.1}},\"v\":3}";

static struct as_decide_document *decode(const char *text)
{
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;
    const int status = as_decision_decode_input(text, strlen(text), &document, &error);

    cr_assert_eq(status, 0, "%s", error.text);
    return document;
}

Test(decision_snapshot, what_is_read_is_written_as_it_was)
{
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = decode(whole);
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(DOCUMENT_MAX);

    as_decision_encode_input(&document->input, &out);
    cr_expect_str_eq(out.data, whole);
    cr_expect_eq(document->input.snapshot->seed, UINT64_C(0xfffffffffffffff0));
    cr_expect_eq(document->input.pool->cpu.max, 320500);
    cr_expect_eq(document->input.snapshot->groups[0].unneeded.unready_for_us, AS_UNREADY_NEVER);
    cr_expect_eq(document->input.snapshot->groups[1].size, -1);
    cr_expect_eq(document->input.snapshot->groups[1].unneeded.unready_for_us, 20 * AS_US_PER_MIN);
    cr_expect(document->input.snapshot->pod_classes[0].pod.has_affinity);
    cr_expect(!document->input.snapshot->pod_classes[1].pod.has_affinity);
}

#define TERMS                                                                                      \
    "\"plan\":{\"at\":\"2026-11-20T09:59:58Z\",\"fit\":true,\"max\":7,\"min\":2,\"take\":false},"

/* From version 3 on the document says how its plan was made; the plan's times show it. */
Test(decision_snapshot, the_terms_of_the_plan_are_read_and_used)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(DOCUMENT_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(DOCUMENT_MAX);
    struct as_decision decision;
    const char *at = strstr(whole, "\"pool_nodes\"");

    as_buf_append(&text, whole, (size_t)(at - whole));
    as_buf_append_str(&text, TERMS);
    as_buf_append_str(&text, at);
    text.data[text.size - 2] = '3'; /* "v" */
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = decode(text.data);
    as_decision_encode_input(&document->input, &out);
    cr_expect_str_eq(out.data, text.data);
    as_decide_document_decide(document, &decision);
    const struct as_pool_plan_terms *terms = &document->input.plan->terms;
    cr_expect_eq(terms->now.us, document->input.now.us - 2 * AS_US_PER_S);
    cr_expect_eq(terms->min, 2);
    cr_expect_eq(terms->max, 7);
    cr_expect(terms->with_fit && !terms->with_take);
}

/* The answer says who leaves, and only where nothing else is done and nothing forbids it. */
Test(decision_snapshot, the_answer_names_what_is_overdue)
{
#define DOCUMENT(flags, dry, proposal)                                                             \
    "{\"v\":2,\"now\":\"2026-11-20T10:00:00Z\",\"flags\":{" flags "},"                             \
    "\"target\":{\"max\":9,\"pool\":{}" dry "},\"observed\":{\"replicas\":5,\"groups\":["          \
    "{\"name\":\"spot\",\"size\":5,\"min\":1,\"max\":9,\"overdue\":3,\"removable\":2},"            \
    "{\"name\":\"other\",\"member\":false,\"size\":5,\"max\":9,\"overdue\":2,\"removable\":2}]},"  \
    "\"proposals\":[{\"rule\":\"r\",\"action\":{" proposal "}}]}"
#define FIT "\"scale_up\":{\"fit\":\"pending_pods\"}"
    static const struct {
        const char *document;
        int32_t overdue;
    } rows[] = {
        {DOCUMENT("", "", FIT), 2},
        {DOCUMENT("\"paused\":true", "", FIT), 0},
        {DOCUMENT("\"in_progress\":true", "", FIT), 0},
        {DOCUMENT("", ",\"dry_run\":true", FIT), 0},
        {DOCUMENT("", "", "\"scale_down\":{\"take\":\"unneeded_nodes\"}"), 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_decide_document_free_p)
        struct as_decide_document *document = decode(rows[i].document);
        AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(DOCUMENT_MAX);
        struct as_decision decision;
        as_decide_document_decide(document, &decision);
        cr_expect_eq(decision.overdue, rows[i].overdue, "%s", rows[i].document);
        as_decision_encode_output(&document->input, document->results, &decision, &out);
        cr_expect_eq(strstr(out.data, "\"overdue\":[{\"count\":2,\"group\":\"spot\"}]") != NULL,
                     rows[i].overdue > 0, "%s", out.data);
    }
}

/* Without a plan: nothing is decided by what is not known. */
Test(decision_snapshot, an_error_stands_alone)
{
    static const char text[] =
        "{\"v\":2,\"now\":\"2026-11-20T10:00:00Z\",\"target\":{\"max\":9},\"observed\":{"
        "\"replicas\":4,\"pool_error\":\"the facts are stale\"},\"proposals\":[{\"rule\":\"r\","
        "\"action\":{\"scale_up\":{\"fit\":\"pending_pods\"}}}]}";
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = decode(text);
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(DOCUMENT_MAX);
    struct as_decision decision;

    as_decide_document_decide(document, &decision);
    cr_expect_null(document->input.plan);
    cr_expect_eq(decision.reason, AS_REASON_METRIC_UNAVAILABLE);
    as_decision_encode_input(&document->input, &out);
    cr_expect(strstr(out.data, "\"pool_error\":\"the facts are stale\",\"replicas\":4,"));
}

static void check_refused(const char *text, const char *wanted)
{
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;

    cr_expect_eq(as_decision_decode_input(text, strlen(text), &document, &error), -EBADMSG, "%s",
                 wanted);
    cr_expect_str_eq(error.text, wanted);
    as_decide_document_free(document);
}

/* One text of the whole document is replaced by another. */
static void check_replaced(const char *old, const char *new, const char *wanted)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(DOCUMENT_MAX);
    const char *at = strstr(whole, old);

    cr_assert(at, "%s", old);
    as_buf_append(&text, whole, (size_t)(at - whole));
    as_buf_append_str(&text, new);
    as_buf_append_str(&text, at + strlen(old));
    check_refused(text.data, wanted);
}

Test(decision_snapshot, what_cannot_be_is_refused_with_its_place)
{
    static const struct {
        const char *old, *new, *wanted;
    } rows[] = {
        {"\"size\":6", "\"size\":-1",
         "observed.groups[0].size: expected an integer from 0 to 2147483647"},
        {"\"coming\":1", "\"coming\":-1",
         "observed.groups[0].coming: expected an integer from 0 to 2147483647"},
        {"\"overdue\":1", "\"overdue\":6", "observed.groups[0].overdue: above size - min"},
        {"\"removable\":1", "\"removable\":2", "observed.groups[0].removable: above overdue"},
        {"\"last_size\":2", "\"last_size\":-2",
         "observed.groups[1].last_size: expected an integer from 0 to 2147483647"},
        {"\"closed\":\"cooldown\"", "\"closed\":\"asleep\"",
         "observed.groups[0].closed: \"asleep\" is no reason code"},
        {"\"price\":0.25", "\"price\":-1",
         "observed.groups[0].price: expected a number that is not negative"},
        {"\"max\":9,", "", "observed.groups[0].max: missing"},
        {"\"source\":\"node\"", "\"source\":\"dream\"",
         "observed.groups[0].template.source: expected node, last or configured"},
        {"\"digest\":\"0123456789abcdef\"", "\"digest\":\"0123\"",
         "observed.groups[0].template.digest: expected 16 hex digits"},
        {"[7900,32212254720,0,110,1]", "[1,2,3,4,5,6]",
         "observed.groups[0].template.allocatable: more amounts than resources"},
        {"[7900,32212254720,0,110,1]", "[0.5]",
         "observed.groups[0].template.allocatable: [0]: expected an integer from -2^62 to 2^62"},
        {"[7900,32212254720,0,110,1]", "[1,4611686018427387905]",
         "observed.groups[0].template.allocatable: [1]: expected an integer from -2^62 to 2^62"},
        {"\"pending\":[[0,4000000000]]", "\"pending\":[[3,1]]",
         "observed.pending: [0]: expected [shape, count], a shape below 3 and a count from 1"},
        {"\"pending\":[[0,4000000000]]", "\"pending\":[[0,0]]",
         "observed.pending: [0]: expected [shape, count], a shape below 3 and a count from 1"},
        {"\"pending\":[[0,4000000000]]", "\"pending\":[[-1,1]]",
         "observed.pending: [0]: expected [shape, count], a shape below 3 and a count from 1"},
        {"\"pending\":[[0,4000000000]]", "\"pending\":[[0,1],[0,1]]",
         "observed.pending: [1]: the shape is there twice"},
        {"\"pods\":[[1,2],[2,1]]", "\"pods\":[7]",
         "observed.pool_nodes[0].pods: [0]: expected [shape, count], a shape below 3 and a count "
         "from 1"},
        {"\"name\":\"n2\"", "\"name\":\"n1\"", "observed.pool_nodes: \"n1\" is there twice"},
        {"\"group\":0,", "\"group\":2,",
         "observed.pool_nodes[0].group: expected an integer from 0 to 1"},
        {"\"group\":0,", "",
         "observed.pool_nodes[0].group: missing: without a group a node \"stays\""},
        {"\"stays\":\"no_group\"", "\"stays\":\"asleep\"",
         "observed.pool_nodes[1].stays: expected leaving, disabled, no_group, paused, held, "
         "dry_run, unreadable, no_choice, in_progress, starting, utilized, unevictable, budget, "
         "no_room, receives, shortly, at_once or at_min"},
        {"\"utilization\":12.5", "\"utilization\":-1",
         "observed.pool_nodes[0].utilization: expected a number that is not negative"},
        {"\"effect\":\"NoExecute\"", "\"effect\":\"Never\"",
         "observed.pool_nodes[1].taints[0].effect: expected NoSchedule, PreferNoSchedule or "
         "NoExecute"},
        {"{\"disk\":\"ssd\"},\"tol", "{\"disk\":1},\"tol",
         "observed.shapes[1].selector.disk: expected a string"},
        {"\"budgets\":[0,1]", "\"budgets\":[0,2]",
         "observed.shapes[1].budgets: [1]: expected ascending indices of budgets"},
        {"\"budgets\":[0,1]", "\"budgets\":[1,0]",
         "observed.shapes[1].budgets: [1]: expected ascending indices of budgets"},
        {"\"requests\":[1,1,0,1]", "\"requests\":[1,-1]",
         "observed.shapes[1].requests: [1]: expected an integer from 0 to 2^62"},
        {"\"port\":80", "\"port\":65536",
         "observed.shapes[1].ports[0].port: expected an integer from 0 to 65535"},
        {"\"operator\":\"Gt\"", "\"operator\":\"Like\"",
         "observed.shapes[0].affinity[0].operator: expected In, NotIn, Exists, DoesNotExist, Gt "
         "or Lt"},
        {",[]],", ",{}],", "observed.shapes[0].affinity: [1]: expected a list"},
        {"\"volumes\"", "\"volume\"", "observed.shapes[0].unchecked: [1]: no such word"},
        {"\"kept\":{", "\"kept\":{\"else\":1,", "observed.kept.else: unknown field"},
        {"\"node\":\"n1\",\"seen\"", "\"seen\"", "history.unneeded[0].node: missing"},
        {"\"shape\":\"00000000000000a1\"", "\"shape\":\"a\"",
         "history.asked[0].shape: expected 16 hex digits"},
        {"\"choose\":[\"priority\",\"random\"]", "\"choose\":[\"random\",\"random\"]",
         "target.pool.choose: \"random\" is no filter, or is there twice"},
        {"\"cpu\":{\"max\":320.5", "\"cpu\":{\"max\":2", "target.pool.cpu.min: above max"},
        {"\"drain\":2", "\"drain\":-2",
         "target.pool.at_once.drain: expected an integer from 0 to 2147483647"},
        {"\"seed\":\"fffffffffffffff0\"", "\"seed\":7", "seed: expected a string"},
        {"\"expendable\":[500]", "\"expendable\":[-1]",
         "observed.pool_nodes[0].expendable: [0]: expected an integer from 0 to 2^62"},
        {"\"v\":3", "\"v\":1", "target.pool: unknown field"},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        check_replaced(rows[i].old, rows[i].new, rows[i].wanted);
}

/* One field at a time: the whole document without the others. */
Test(decision_snapshot, fields_of_version_3_are_unknown_to_older_documents)
{
    static const struct {
        const char *field, *wanted;
    } rows[] = {
        {"\"expendable\":[500],", "observed.pool_nodes[0].expendable: unknown field"},
        {"\"in_progress_by\":\"after\",", "flags.in_progress_by: unknown field"},
        {"\"never_preempts\":true,", "observed.shapes[1].never_preempts: unknown field"},
        {"\"ports\":[{\"ip\":\"0.0.0.0\",\"port\":53,\"protocol\":\"UDP\"}],",
         "observed.groups[0].template.ports: unknown field"},
        {TERMS, "observed.plan: unknown field"}, /* which the whole document does not have */
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(DOCUMENT_MAX);
        for (const char *at = whole; *at;) {
            size_t skipped = 0;
            if (i == AS_ARRAY_SIZE(rows) - 1 && strncmp(at, "\"pool_nodes\":", 13) == 0)
                as_buf_append_str(&text, TERMS);
            for (size_t k = 0; k < AS_ARRAY_SIZE(rows); k++)
                if (k != i && strncmp(at, rows[k].field, strlen(rows[k].field)) == 0)
                    skipped = strlen(rows[k].field);
            if (skipped == 0)
                as_buf_append(&text, at, 1);
            at += skipped > 0 ? skipped : 1;
        }
        text.data[text.size - 2] = '2'; /* "v":3} */
        check_refused(text.data, rows[i].wanted);
    }
}

/* Without `groups` there is no snapshot, and so no part of one. */
Test(decision_snapshot, parts_without_groups_are_unknown_fields)
{
    check_refused("{\"v\":2,\"now\":\"2026-11-20T10:00:00Z\",\"target\":{\"max\":9},\"observed\":{"
                  "\"replicas\":4,\"pending\":[]},\"proposals\":[]}",
                  "observed.pending: unknown field");
    check_refused("{\"v\":2,\"now\":\"2026-11-20T10:00:00Z\",\"target\":{\"max\":9},\"observed\":{"
                  "\"replicas\":4},\"history\":{\"asked\":[]},\"proposals\":[]}",
                  "history.asked: unknown field");
}

Test(decision_snapshot, more_than_the_limits_is_refused)
{
    static const struct {
        const char *name, *item;
        int count;
        const char *wanted;
    } rows[] = {
        {"shapes", "{}", AS_SNAPSHOT_POD_CLASSES_MAX + 1, "observed.shapes: more than 1000"},
        {"pool_nodes", "{}", 2113, "observed.pool_nodes: more than 2112"},
        {"resources", "\"r\"", 29, "observed.resources: more than 28"},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(DOCUMENT_MAX);

        as_buf_printf(&text,
                      "{\"v\":2,\"now\":\"2026-11-20T10:00:00Z\",\"target\":{\"max\":9},"
                      "\"proposals\":[],\"observed\":{\"replicas\":4,\"groups\":[],\"%s\":[",
                      rows[i].name);
        for (int k = 0; k < rows[i].count; k++)
            as_buf_printf(&text, "%s%s", k > 0 ? "," : "", rows[i].item);
        as_buf_append_str(&text, "]}}");
        check_refused(text.data, rows[i].wanted);
    }
}

/* What version 3 adds, read and written; earlier documents refuse it. */
#define OF_VERSION_3(version, marked, group)                                                       \
    "{\"now\":\"2026-11-20T10:00:00Z\",\"observed\":{\"groups\":[{" group                          \
    "\"max\":9,\"name\":\"spot\",\"size\":6}]," marked                                             \
    "\"replicas\":6},\"proposals\":[],\"target\":{\"max\":9,\"pool\":{}},\"v\":" version "}"
#define NEW_MARKED "\"marked\":2,"
#define NEW_GROUP                                                                                  \
    "\"in_doubt\":2,\"open_at\":\"2026-11-20T10:05:00Z\",\"surplus\":2,\"surplus_since\":"         \
    "\"2026-11-20T10:00:00Z\",\"unregistered\":1,"

Test(decision_snapshot, version_3_has_nodes_that_are_marked_in_doubt_or_unregistered)
{
    AS_CLEANUP(as_decide_document_free_p)
    struct as_decide_document *document = decode(OF_VERSION_3("3", NEW_MARKED, NEW_GROUP));
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(DOCUMENT_MAX);
    const struct as_snapshot_group *group = &document->input.snapshot->groups[0];

    cr_expect_eq(document->input.marked, 2);
    cr_expect(group->in_doubt == 2 && group->unregistered == 1 && group->open_at.set &&
              group->surplus == 2 && group->surplus_since.set);
    as_decision_encode_input(&document->input, &out);
    cr_expect(strstr(out.data, "\"in_doubt\":2,\"max\":9,") && strstr(out.data, "\"marked\":2,") &&
                  strstr(out.data, "\"open_at\":\"2026-11-20T10:05:00Z\"") &&
                  strstr(out.data, "\"surplus\":2,\"surplus_since\":\"2026-11-20T10:00:00Z\",") &&
                  strstr(out.data, "\"unregistered\":1"),
              "%s", out.data);
    check_refused(OF_VERSION_3("2", NEW_MARKED, ""), "observed.marked: unknown field");
    check_refused(OF_VERSION_3("2", "", NEW_GROUP), "observed.groups[0].in_doubt: unknown field");
}
