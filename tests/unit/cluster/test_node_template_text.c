/*
 * The text of a node group's template: it comes back as it was; equal templates are equal texts; a
 * text of another form is refused with the place.
 */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/cluster/node_template.h>

static const struct as_res_names names = {
    .count = AS_RES_NAMED + 2,
    .name = {[AS_RES_NAMED] = "nvidia.com/gpu", [AS_RES_NAMED + 1] = "a.b/c"}};
static const struct as_res_names other_names = {.count = AS_RES_NAMED + 3,
                                                .name = {[AS_RES_NAMED] = "x.y/z",
                                                         [AS_RES_NAMED + 1] = "a.b/c",
                                                         [AS_RES_NAMED + 2] = "nvidia.com/gpu"}};

static struct as_arena arena;
static struct as_error error;

static void clean(void)
{
    as_arena_deinit(&arena);
}

TestSuite(node_template_text, .fini = clean);

static struct as_node_template make_template(void)
{
    static const struct as_label pairs[] = {{"zone", "a"}, {"life", "sp\"ot"}, {"empty", ""}};
    static const struct as_taint taints[] = {{"a", "", AS_TAINT_NO_EXECUTE},
                                             {"b/c", "v", AS_TAINT_PREFER_NO_SCHEDULE},
                                             {"b/c", "v", AS_TAINT_NO_SCHEDULE}};
    static const struct as_host_port ports[] = {{"0.0.0.0", "TCP", 22}, {"10.0.0.1", "UDP", 53}};
    struct as_node_template template_ = {
        .source = AS_NODE_TEMPLATE_NODE,
        .ports = ports,
        .port_count = AS_ARRAY_SIZE(ports),
        .node = "n1",
        .shape = {.taints = taints,
                  .taint_count = AS_ARRAY_SIZE(taints),
                  .allocatable = {{1500, 7, 0, 100, 1}}},
        .capacity = {{2000, AS_RES_AMOUNT_MAX, 5, 110, 2}},
        .allocatable = {{1900, 8, 4, 110, 2}},
    };
    cr_assert_eq(as_labels_new_in(&arena, pairs, AS_ARRAY_SIZE(pairs), &template_.shape.labels), 0);
    return template_;
}

static const char *encode(const struct as_node_template *template_,
                          const struct as_res_names *of_cluster)
{
    struct as_buf text = AS_BUF_INIT(65536);
    as_node_template_encode(template_, of_cluster, &text);
    const char *copy = as_arena_strdup(&arena, text.data);
    as_buf_deinit(&text);
    return copy;
}

static const char whole[] =
    "{\"allocatable\":{\"cpu\":1900,\"ephemeral-storage\":4,\"memory\":8,\"nvidia.com/gpu\":2,"
    "\"pods\":110},"
    "\"capacity\":{\"cpu\":2000,\"ephemeral-storage\":5,\"memory\":4611686018427387904,"
    "\"nvidia.com/gpu\":2,\"pods\":110},"
    "\"free\":{\"cpu\":1500,\"ephemeral-storage\":0,\"memory\":7,\"nvidia.com/gpu\":1,"
    "\"pods\":100},"
    "\"labels\":{\"empty\":\"\",\"life\":\"sp\\\"ot\",\"zone\":\"a\"},"
    "\"ports\":[{\"ip\":\"0.0.0.0\",\"port\":22,\"protocol\":\"TCP\"},"
    "{\"ip\":\"10.0.0.1\",\"port\":53,\"protocol\":\"UDP\"}],"
    "\"taints\":[{\"effect\":\"NoExecute\",\"key\":\"a\",\"value\":\"\"},"
    "{\"effect\":\"PreferNoSchedule\",\"key\":\"b/c\",\"value\":\"v\"},"
    "{\"effect\":\"NoSchedule\",\"key\":\"b/c\",\"value\":\"v\"}]}";

Test(node_template_text, a_template_comes_back_as_it_was)
{
    const struct as_node_template template_ = make_template();
    struct as_node_template back;
    const char *text = encode(&template_, &names);
    cr_assert_str_eq(text, whole);
    cr_assert_eq(as_node_template_decode(text, &names, &arena, &back, &error), 0, "%s", error.text);
    cr_expect_eq(back.source, AS_NODE_TEMPLATE_LAST);
    cr_expect_null(back.node);
    cr_expect(as_node_shape_equal(&back.shape, &template_.shape, &names));
    cr_expect_arr_eq(&back.capacity, &template_.capacity, sizeof(back.capacity));
    cr_expect_arr_eq(&back.allocatable, &template_.allocatable, sizeof(back.allocatable));
}

/* A process numbers extended resources in the order in which it meets them. */
Test(node_template_text, extended_resources_go_by_name)
{
    struct as_node_template back;
    cr_assert_eq(as_node_template_decode(whole, &other_names, &arena, &back, &error), 0);
    cr_expect_eq(back.capacity.amount[AS_RES_NAMED], 0);
    cr_expect_eq(back.capacity.amount[AS_RES_NAMED + 1], 0);
    cr_expect_eq(back.capacity.amount[AS_RES_NAMED + 2], 2);
    cr_expect_str_eq(encode(&back, &other_names), whole);
}

Test(node_template_text, what_an_api_server_says_is_always_readable)
{
    static const struct as_label odd[] = {{"\xff", "\xfe"}, {"\xfe", ""}};
    struct as_node_template template_ = make_template(), back;
    template_.capacity.amount[AS_RES_CPU] = -1;
    cr_assert_eq(as_labels_new_in(&arena, odd, 2, &template_.shape.labels), 0);
    const char *text = encode(&template_, &names);
    cr_expect_eq(as_node_template_decode(text, &names, &arena, &back, &error), 0, "%s", error.text);
}

Test(node_template_text, texts_of_another_form_are_refused)
{
#define WITH(capacity, labels, taints)                                                             \
    "{\"allocatable\":{},\"capacity\":" capacity ",\"free\":{},\"labels\":" labels                 \
    ",\"taints\":" taints "}"
#define WITH_PORT(port)                                                                            \
    "{\"allocatable\":{},\"capacity\":{},\"free\":{},\"labels\":{},\"ports\":[" port               \
    "],\"taints\":[]}"
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "not JSON"},
        {"[]", "expected a JSON object"},
        {"{}", "allocatable: missing"},
        {WITH("7", "{}", "[]"), "capacity: expected an object"},
        {WITH("{\"cpu\":-1}", "{}", "[]"), "capacity.cpu: expected an integer"},
        {WITH("{\"memory\":1.5}", "{}", "[]"), "capacity.memory: expected an integer"},
        {WITH("{\"pods\":4611686018427387905}", "{}", "[]"), "capacity.pods: expected an integer"},
        {WITH("{}", "[]", "[]"), "labels: expected an object"},
        {WITH("{}", "{\"a\":1}", "[]"), "labels.a: expected a string"},
        {WITH("{}", "{}", "{}"), "taints: expected a list"},
        {WITH("{}", "{}", "[7]"), "taints[0]: expected an object"},
        {WITH("{}", "{}", "[{\"effect\":\"NoSchedule\"}]"), "taints[0].key: missing"},
        {WITH("{}", "{}", "[{\"effect\":\"No\",\"key\":\"a\"}]"), "taints[0].effect: expected"},
        {WITH_PORT("{\"ip\":\"::\",\"port\":0,\"protocol\":\"TCP\"}"),
         "ports[0].port: expected an integer from 1 to 65535"},
        {WITH_PORT("{\"ip\":\"::\",\"port\":65536,\"protocol\":\"TCP\"}"),
         "ports[0].port: expected"},
        {WITH_PORT("{\"ip\":\"::\",\"port\":1}"), "ports[0].protocol: missing"},
    };
    struct as_node_template back;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        error = AS_ERROR_INIT;
        cr_expect_eq(as_node_template_decode(rows[i].text, &names, &arena, &back, &error), -EBADMSG,
                     "row %zu", i);
        cr_expect_eq(strncmp(error.text, rows[i].why, strlen(rows[i].why)), 0, "row %zu: %s", i,
                     error.text);
    }
    cr_expect_eq(
        as_node_template_decode(WITH("{\"new\":1}", "{}", "[]"), &names, &arena, &back, &error), 0,
        "a later version may know more");
}
