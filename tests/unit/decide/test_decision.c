/*
 * The decision's documents: the engine's inputs can be written, read back, and get the same
 * decision. (tests/golden/decide tests the content of inputs and answers.)
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include <alertscaler/decide/decision.h>

static const struct as_bounds_config config = {.min = 1, .max = 10};

static struct as_decide_input make_input(void)
{
    return (struct as_decide_input){
        .version = AS_DECIDE_VERSION,
        .now = {INT64_C(1795168800) * AS_US_PER_S},
        .config = config,
        .replicas = 3,
        .status_replicas = 3,
    };
}

/* Writes the input, reads it back; the answers to both must be the same text. */
static void check_same_answer(const struct as_decide_input *input,
                              struct as_proposal_result *results)
{
    struct as_buf text = AS_BUF_INIT(1 << 16), first = AS_BUF_INIT(1 << 16),
                  second = AS_BUF_INIT(1 << 16);
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *copy = NULL;
    struct as_error error = AS_ERROR_INIT;
    struct as_decision decision;

    as_decide(input, results, &decision);
    as_decision_encode_output(input, results, &decision, &first);
    as_decision_encode_input(input, &text);
    int code = as_decision_decode_input(text.data, text.size, &copy, &error);
    cr_assert_eq(code, 0, "%s: %s", error.text, text.data);
    as_decide(&copy->input, copy->results, &decision);
    as_decision_encode_output(&copy->input, copy->results, &decision, &second);
    cr_expect_str_eq(first.data, second.data, "%s", text.data);
    as_buf_deinit(&text);
    as_buf_deinit(&first);
    as_buf_deinit(&second);
}

Test(decision, an_input_is_written_with_sorted_keys_and_every_default)
{
    struct as_decide_input input = make_input();
    struct as_buf out = AS_BUF_INIT(1 << 16);

    as_decision_encode_input(&input, &out);
    cr_expect_str_eq(
        out.data, "{\"flags\":{\"budget_exhausted\":false,\"guarded\":false,\"in_progress\":false,"
                  "\"paused\":false},\"history\":{\"last_down\":null,\"last_up\":null,"
                  "\"recommendations\":[],\"scale_events\":[]},\"now\":\"2026-11-20T10:00:00Z\","
                  "\"observed\":{\"replicas\":3,\"status_replicas\":3},\"proposals\":[],"
                  "\"target\":{\"cooldown\":{\"down\":0,\"up\":0,\"up_after_down\":0},"
                  "\"cpu_initialization_seconds\":0,\"dry_run\":false,\"enforce_bounds\":false,"
                  "\"initial_readiness_delay_seconds\":0,\"max\":10,\"min\":1,"
                  "\"tolerance\":{\"down\":0,\"up\":0}},\"v\":3}");
    as_buf_deinit(&out);
}

/* What was decided by is what was read: written, read and written again, it is the same. */
Test(decision, steps_are_written_as_they_are_read)
{
    static const struct as_step up[] = {
        {.is_above = true, .bound = 70, .to = 70},
        {.is_above = true, .bound = 90.5, .amount = {.size = 3}},
        {.bound = 5, .amount = {.is_percent = true, .milli_percent = 12500, .at_least = 2}},
    };
    static const struct as_step down[] = {{.bound = 40, .to = 60.25}};
    static const struct as_step to[] = {{.bound = 1, .amount = {.size = 2}},
                                        {.bound = 64.5, .amount = {.size = 3}}};
    const struct as_proposal proposals[] = {
        {.rule = "a", .action = {.kind = AS_ACTION_SCALE_UP, .steps = up, .step_count = 3}},
        {.rule = "b", .action = {.kind = AS_ACTION_SCALE_DOWN, .steps = down, .step_count = 1}},
        {.rule = "c", .action = {.kind = AS_ACTION_SCALE_TO, .steps = to, .step_count = 2}},
    };
    struct as_decide_input input = make_input();
    struct as_buf out = AS_BUF_INIT(1 << 16), again = AS_BUF_INIT(1 << 16);
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;
    input.proposals = proposals;
    input.proposal_count = 3;
    as_decision_encode_input(&input, &out);
    cr_expect(strstr(out.data,
                     "{\"action\":{\"scale_up\":{\"steps\":[{\"above\":70,\"to\":70},"
                     "{\"above\":90.5,\"by\":3},{\"at_least\":2,\"below\":5,\"by\":\"12.5%\"}]}}"));
    cr_expect(strstr(out.data, "{\"scale_down\":{\"steps\":[{\"below\":40,\"to\":60.25}]}}"));
    cr_expect(strstr(out.data, "{\"scale_to\":{\"steps\":[{\"from\":1,\"size\":2},"
                               "{\"from\":64.5,\"size\":3}]}}"));
    cr_assert_eq(as_decision_decode_input(out.data, out.size, &document, &error), 0, "%s",
                 error.text);
    as_decision_encode_input(&document->input, &again);
    cr_expect_str_eq(again.data, out.data);
    as_decide_document_free(document);
    as_buf_deinit(&out);
    as_buf_deinit(&again);
}

/* A value of nodes is computed with the decision: the document has the sums, not the value. */
Test(decision, nodes_are_written_as_they_are_read)
{
    static const struct {
        struct as_nodes_seen nodes;
        const char *text;
    } rows[] = {
        {{.open = 12, .requests = {1500, 20}, .allocatable = {48001, INT64_MAX}},
         "{\"allocatable\":{\"cpu\":48.001,\"memory\":9223372036854775807},\"open\":12,"
         "\"requests\":{\"cpu\":1.5,\"memory\":20}}"},
        {{.open = 2, .allocatable = {0, 5}, .lacking = {"n1", NULL}},
         "{\"allocatable\":{\"cpu\":0,\"memory\":5},\"lacking\":{\"cpu\":\"n1\"},\"open\":2,"
         "\"requests\":{\"cpu\":0,\"memory\":0}}"},
        {{.requests = {1, 0}, .allocatable = {8000, 0}, .is_template = true},
         "{\"allocatable\":{\"cpu\":8,\"memory\":0},\"open\":0,"
         "\"requests\":{\"cpu\":0.001,\"memory\":0},\"template\":true}"},
        {{.requests = {1, 0}, .waiting = 3, .coming = 2},
         "{\"allocatable\":{\"cpu\":0,\"memory\":0},\"coming\":2,\"open\":0,"
         "\"requests\":{\"cpu\":0.001,\"memory\":0},\"waiting\":3}"},
        {{.error = "the cluster is unwell"}, "{\"error\":\"the cluster is unwell\"}"},
    };
    const struct as_proposal proposal = {
        .rule = "a", .action = {.kind = AS_ACTION_PASS_THROUGH}, .nodes = AS_NODES_CORES};
    struct as_decide_input input = make_input();
    struct as_proposal_result result;
    input.proposals = &proposal;
    input.proposal_count = 1;

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_buf out = AS_BUF_INIT(1 << 16), again = AS_BUF_INIT(1 << 16);
        AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *copy = NULL;
        struct as_error error = AS_ERROR_INIT;

        input.nodes = &rows[i].nodes;
        as_decision_encode_input(&input, &out);
        cr_expect(strstr(out.data, rows[i].text), "%s", out.data);
        cr_expect(strstr(out.data, "\"nodes\":\"cores\""), "%s", out.data);
        cr_assert_eq(as_decision_decode_input(out.data, out.size, &copy, &error), 0, "%s",
                     error.text);
        as_decision_encode_input(&copy->input, &again);
        cr_expect_str_eq(again.data, out.data);
        check_same_answer(&input, &result);
        as_buf_deinit(&out);
        as_buf_deinit(&again);
    }
}

/* What a rule says of containers and owners, and what was seen of them. */
Test(decision, containers_and_owners_survive)
{
    static const struct as_pod_container containers[] = {{.name = "app", .resource = {0.5, NAN}},
                                                         {.name = "log", .resource = {0.1, 1024}}};
    static const struct as_pod pods[] = {
        {.name = "a",
         .phase = AS_POD_RUNNING,
         .ready = AS_TRUE,
         .start_time = {.set = true},
         .ready_since = {.set = true},
         .resource = {1, NAN},
         .containers = containers,
         .container_count = 2},
        {.name = "b", .phase = AS_POD_RUNNING, .owner = AS_POD_OF_OTHER, .resource = {NAN, NAN}},
        {.name = "c", .phase = AS_POD_RUNNING, .owner = AS_POD_OF_GONE, .resource = {NAN, NAN}},
    };
    static const char *const texts[] = {
        "\"containers\":[{\"name\":\"app\",\"resources\":{\"cpu\":0.5}},{\"name\":\"log\","
        "\"resources\":{\"cpu\":0.1,\"memory\":1024}}]",
        "\"name\":\"b\",\"owner\":\"other\"",
        "\"name\":\"c\",\"owner\":\"gone\"",
        "{\"track\":{\"container\":\"app\",\"pods\":\"owned\",\"resource\":\"cpu\","
        "\"utilization\":\"50%\"}}",
    };
    struct as_sample samples[] = {{.pod = "a", .value = 1}};
    const struct as_proposal proposal = {.rule = "r",
                                         .action = {.kind = AS_ACTION_TRACK,
                                                    .track = {.goal = AS_GOAL_UTILIZATION,
                                                              .value = 50,
                                                              .is_resource = true,
                                                              .by_owner = true,
                                                              .container = "app"}},
                                         .samples = samples,
                                         .sample_count = 1};
    struct as_decide_input input = make_input();
    struct as_proposal_result result;
    struct as_buf out = AS_BUF_INIT(1 << 16);
    input.has_pods = true;
    input.pods = pods;
    input.pod_count = AS_ARRAY_SIZE(pods);
    input.proposals = &proposal;
    input.proposal_count = 1;
    as_decision_encode_input(&input, &out);
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        cr_expect(strstr(out.data, texts[i]), "%s\n%s", texts[i], out.data);
    check_same_answer(&input, &result);
    cr_expect(!result.has_size);
    input.pod_count = 2;
    check_same_answer(&input, &result);
    cr_expect_eq(result.desired, 4); /* 200 % of 50 %, of one pod */
    as_buf_deinit(&out);
}

Test(decision, a_buffer_that_is_too_small_is_told)
{
    struct as_decide_input input = make_input();
    struct as_buf out = AS_BUF_INIT(100);

    as_decision_encode_input(&input, &out);
    cr_expect_eq(as_buf_check(&out), -EMSGSIZE);
    as_buf_deinit(&out);
}

Test(decision, values_that_are_not_finite_are_left_out_and_unavailable)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    static const struct as_pod pods[] = {
        {.name = "a", .phase = AS_POD_RUNNING, .ready = AS_TRUE, .resource = {1, NAN}},
        {.name = "b", .phase = AS_POD_RUNNING, .ready = AS_TRUE, .resource = {1, INFINITY}}};
    struct as_decide_input input = make_input();
    struct as_proposal_result results[4];

    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++) {
        struct as_sample samples[] = {{.pod = "a", .value = 20}, {.pod = "b", .value = bad[i]}};
        const struct as_proposal proposals[] = {
            {.rule = "value",
             .action = {.kind = AS_ACTION_TRACK, .track = {.goal = AS_GOAL_VALUE, .value = 10}},
             .has_value = true,
             .value = bad[i]},
            {.rule = "pass",
             .action = {.kind = AS_ACTION_PASS_THROUGH},
             .has_value = true,
             .value = bad[i]},
            {.rule = "pods",
             .action = {.kind = AS_ACTION_TRACK,
                        .track = {.goal = AS_GOAL_AVERAGE_VALUE, .value = 10}},
             .samples = samples,
             .sample_count = 2},
            {.rule = "memory",
             .action = {.kind = AS_ACTION_TRACK,
                        .track = {.goal = AS_GOAL_UTILIZATION,
                                  .value = 50,
                                  .is_resource = true,
                                  .resource = AS_RESOURCE_MEMORY}},
             .samples = samples,
             .sample_count = 2},
        };
        input.has_pods = true;
        input.pods = pods;
        input.pod_count = 2;
        input.proposals = proposals;
        input.proposal_count = AS_ARRAY_SIZE(proposals);
        check_same_answer(&input, results);
        cr_expect(!results[0].has_size && results[0].reason == AS_REASON_METRIC_UNAVAILABLE);
        cr_expect(!results[1].has_size && results[1].reason == AS_REASON_METRIC_UNAVAILABLE);
        cr_expect(results[2].has_size && results[2].desired == 3); /* b is missing: 0 at 2 > 1 */
        cr_expect(!results[3].has_size && results[3].reason == AS_REASON_METRIC_UNAVAILABLE);
    }
}

Test(decision, durations_and_times_survive_to_the_microsecond)
{
    static const int64_t us[] = {0, 1, 999999, 1000001, 15 * AS_US_PER_S, 3153599999999999};
    struct as_decide_input input = make_input();

    for (size_t i = 0; i < AS_ARRAY_SIZE(us); i++) {
        struct as_buf text = AS_BUF_INIT(1 << 16);
        AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *copy = NULL;
        struct as_error error = AS_ERROR_INIT;
        input.config.cooldown = (struct as_cooldown){us[i], us[i], us[i], true, us[i]};
        input.last_up = (as_maybe_time){.set = true, .at = {input.now.us - us[i]}};
        as_decision_encode_input(&input, &text);
        cr_assert_eq(as_decision_decode_input(text.data, text.size, &copy, &error), 0);
        cr_expect_eq(copy->input.config.cooldown.up_us, us[i]);
        cr_expect_eq(copy->input.config.cooldown.up_after_down_us, us[i]);
        cr_expect_eq(copy->input.last_up.at.us, input.last_up.at.us);
        cr_expect(!copy->input.last_down.set);
        as_buf_deinit(&text);
    }
}

Test(decision, lists_are_put_in_order)
{
    static const char json[] =
        "{\"v\":2,\"now\":\"2026-11-20T10:00:00Z\",\"target\":{\"max\":9},\"observed\":{"
        "\"replicas\":3,\"pods\":[{\"name\":\"b\"},{\"name\":\"a\"}]},\"history\":{"
        "\"scale_events\":[{\"at\":\"2026-11-20T09:59:00Z\",\"change\":1},"
        "{\"at\":\"2026-11-20T09:58:00Z\",\"change\":2}],\"recommendations\":["
        "{\"at\":\"2026-11-20T09:59:00Z\",\"replicas\":1},"
        "{\"at\":\"2026-11-20T09:58:00Z\",\"replicas\":2}]},\"proposals\":[{\"action\":{"
        "\"track\":{\"average_value\":1}},\"samples\":[{\"pod\":\"b\",\"value\":1},"
        "{\"pod\":\"a\",\"value\":2}]}]}";
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;

    cr_assert_eq(as_decision_decode_input(json, strlen(json), &document, &error), 0, "%s",
                 error.text);
    const struct as_decide_input *input = &document->input;
    cr_expect_str_eq(input->pods[0].name, "a");
    cr_expect_eq(input->events[0].change, 2);
    cr_expect_eq(input->recommendations[0].replicas, 2);
    cr_expect_str_eq(input->proposals[0].samples[0].pod, "a");
    cr_expect_null(input->proposals[0].rule);
}

Test(decision, what_is_refused_leaves_the_output_alone)
{
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;

    cr_expect_eq(as_decision_decode_input("{}", 2, &document, &error), -EBADMSG);
    cr_expect_null(document);
    cr_expect_str_eq(error.text, "v: missing");
    cr_expect_eq(as_decision_decode_input("{} x", 4, &document, &error), -EBADMSG);
    cr_expect_eq(as_decision_decode_input("", 0, &document, NULL), -EBADMSG);
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"[]", "expected an object"},
        {"{\"v\":2,\"v\":2}", "not JSON: line 1, column 10: duplicate object key"},
        {"{\"v\":9223372036854775808}", "v: expected an integer from 1 to 3"},
        {"{\"v\":2.0}", "v: expected an integer from 1 to 3"},
        {"{\"now\":\"a\\u0000b\"}", "not JSON that can be read: a NUL in a text"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        error.text[0] = '\0';
        cr_expect_eq(
            as_decision_decode_input(rows[i].json, strlen(rows[i].json), &document, &error),
            -EBADMSG);
        cr_expect_str_eq(error.text, rows[i].error);
    }
}
