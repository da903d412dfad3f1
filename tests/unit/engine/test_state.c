/*
 * The engine's state through the store: it is restored unchanged; times hold over restarts and
 * reboots; a damaged document is refused whole.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/cluster/nodes_seen.h>
#include <alertscaler/decide/incident.h>
#include <alertscaler/engine/state.h>

#define BUF_MAX 65536

#define TEMPLATE(labels)                                                                           \
    "{\"allocatable\":{},\"capacity\":{},\"free\":{},\"labels\":" labels ",\"taints\":[]}"

static const struct as_state_clock test_clock = {
    .boot = "b1", .mono = {1000 * AS_US_PER_S}, .wall = {50000 * AS_US_PER_S}};

static struct as_moment moment_at(int64_t mono_s, int64_t wall_s)
{
    return (struct as_moment){{mono_s * AS_US_PER_S}, {wall_s * AS_US_PER_S}};
}

static struct as_labels *make_labels(void)
{
    static const struct as_label pairs[] = {
        {"severity", "page"}, {"alertname", "Slöw \"quoted\"\n"}, {"a", ""}};
    struct as_labels *labels = NULL;
    cr_assert_eq(as_labels_new(pairs, AS_ARRAY_SIZE(pairs), &labels), 0);
    return labels;
}

/* What came out of a document, encoded again. */
struct again {
    struct as_buf text;
    unsigned used;
    struct as_moment first; /* opened, last_up or at */
    size_t count;           /* progress or fields */
};

static int use_incident(void *context, const struct as_incident_state *state)
{
    struct again *again = context;
    again->used++;
    again->first = state->opened;
    again->count = state->progress_count;
    as_state_encode_incident(state, "b1", &again->text);
    return 0;
}

static int use_target(void *context, const struct as_target_state *state)
{
    struct again *again = context;
    again->used++;
    again->first = state->locks.last_up;
    as_state_encode_target(state, "b1", &again->text);
    return 0;
}

static int use_intent(void *context, const struct as_intent_state *state)
{
    struct again *again = context;
    again->used++;
    again->first = state->at;
    again->count = state->ref->field_count;
    as_state_encode_intent(state, "b1", &again->text);
    return 0;
}

static int use_pause(void *context, const struct as_pause_state *state)
{
    struct again *again = context;
    again->used++;
    again->first = state->since;
    again->count = 2;
    as_state_encode_pause(state, "b1", &again->text);
    return 0;
}

enum kind { INCIDENT, TARGET, INTENT, PAUSE, KINDS };

static int decode(enum kind kind, const char *json, size_t size, const struct as_state_clock *clock,
                  struct again *again, struct as_error *error)
{
    *again = (struct again){.text = AS_BUF_INIT(BUF_MAX)};
    switch (kind) {
    case INCIDENT: return as_state_decode_incident(json, size, clock, use_incident, again, error);
    case TARGET: return as_state_decode_target(json, size, clock, use_target, again, error);
    case INTENT: return as_state_decode_intent(json, size, clock, use_intent, again, error);
    case PAUSE: return as_state_decode_pause(json, size, clock, use_pause, again, error);
    case KINDS: break;
    }
    abort();
}

static void encode_incident(struct as_buf *out)
{
    static const struct as_progress progress[] = {
        {.rule = "slow",
         .target = "kubernetes/a/b",
         .steps = 3,
         .applied = {{7}, {8}},
         .origin = -1},
        {.rule = "other",
         .target = "kubernetes/a/b",
         .steps = 1,
         .applied = {{9}, {10}},
         .origin = 4},
    };
    struct as_labels *labels = make_labels();
    const struct as_incident_state state = {
        .key = {.digest = {{0xfe, 0xdc}}, .owner = "team"},
        .fingerprint = UINT64_C(0xfedcba9876543210),
        .is_open = true,
        .starts_at = {-62135596800 * AS_US_PER_S},
        .opened = moment_at(900, 49900),
        .seen = moment_at(950, 49950),
        .resolved = AS_MOMENT_NEVER,
        .silenced = moment_at(970, 49970),
        .receivers = (const char *const[]){"web.hook", "other"},
        .receiver_count = 2,
        .credentials = (const char *const[]){"alertmanager", ""},
        .credential_count = 2,
        .labels = labels,
        .annotations = labels,
        .generator_url = "http://prometheus:9090/graph?g0.expr=up",
        .external_url = "http://alertmanager:9093",
        .progress = progress,
        .progress_count = AS_ARRAY_SIZE(progress),
    };
    as_state_encode_incident(&state, "b1", out);
    as_labels_free(labels);
}

static void encode_intent(struct as_buf *out)
{
    static const struct as_target_field fields[] = {{"provider", "mine"}, {"name", "pool"}};
    struct as_target_ref *ref =
        as_target_ref_make(&as_target_kind_node_group, "node_group/mine/pool", fields, 2);
    const struct as_intent_state state = {
        .ref = ref,
        .action_id = "01J0000000000000000000000A",
        .decision_id = "01J0000000000000000000000B",
        .stored_as = "another key",
        .uid = "1f6c",
        .rule = "slow",
        .from = 0,
        .to = INT32_MAX,
        .version = "\"etag\"",
        .at = moment_at(990, 49990),
        .in_doubt = true,
        .outcome = AS_REASON_TIMEOUT,
    };
    as_state_encode_intent(&state, "b1", out);
    as_target_ref_free(ref);
}

static const struct as_pause_state test_pause = {
    .since = {{990 * AS_US_PER_S}, {49990 * AS_US_PER_S}},
    .for_us = 3600 * AS_US_PER_S,
    .who = "ada",
    .reason = "the \"big\" move",
};

static struct as_buf encode(enum kind kind)
{
    struct as_buf out = AS_BUF_INIT(BUF_MAX);
    const struct as_past_event events[] = {{moment_at(900, 49900), 2}, {moment_at(990, 49990), -1}};
    const struct as_past_recommendation recommendations[] = {{moment_at(995, 49995), 7}};
    const struct as_ending_state endings[] = {{.rule = "slow",
                                               .incident = "fedcba9876543210",
                                               .ended = moment_at(980, 49980),
                                               .origin = 3,
                                               .peak = 9,
                                               .last = 7,
                                               .applied = AS_MOMENT_NEVER,
                                               .guard = "up == 1"}};
    static const struct as_target_field fields[] = {{"provider", "mine"}, {"name", "pool"}};
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *ref =
        as_target_ref_make(&as_target_kind_node_group, "node_group/mine/pool", fields, 2);
    const struct as_own_size own_size = {4, 6, moment_at(985, 49985), "77"};
    const struct as_reverted_change reverted_changes[] = {{moment_at(950, 49950), 4, 6, 4, "hpa"},
                                                          {moment_at(960, 49960), 4, 6, 5, ""}};
    const struct as_target_state target = {
        .id = "node_group/mine/pool",
        .ref = ref,
        .entry = "web",
        .locks.last_up = moment_at(990, 49990),
        .locks.last_down = AS_MOMENT_NEVER,
        .locks.dry_last_up = moment_at(10, 20),
        .locks.dry_last_down = AS_MOMENT_NEVER,
        .locks.last_step_down = moment_at(970, 49970),
        .locks.last_return = moment_at(980, 49980),
        .stored_as = "another key",
        .uid = "1f6c",
        .born = moment_at(960, 49960),
        .keep_us = AS_US_PER_DAY,
        .events = events,
        .event_count = AS_ARRAY_SIZE(events),
        .recommendations = recommendations,
        .recommendation_count = AS_ARRAY_SIZE(recommendations),
        .endings = endings,
        .ending_count = AS_ARRAY_SIZE(endings),
        .template_ = TEMPLATE("{\"zone\":\"a\"}"),
        .own_size = &own_size,
        .reverted_changes = reverted_changes,
        .reverted_change_count = AS_ARRAY_SIZE(reverted_changes),
        .contended = moment_at(965, 49965),
    };
    if (kind == INCIDENT)
        encode_incident(&out);
    else if (kind == TARGET)
        as_state_encode_target(&target, "b1", &out);
    else if (kind == PAUSE)
        as_state_encode_pause(&test_pause, "b1", &out);
    else
        encode_intent(&out);
    cr_assert_eq(as_buf_check(&out), 0);
    return out;
}

Test(state, everything_comes_back_as_it_was)
{
    for (enum kind kind = INCIDENT; kind < KINDS; kind++) {
        struct as_buf text = encode(kind);
        struct again again;
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(decode(kind, text.data, text.size, &test_clock, &again, &error), 0, "%s",
                     error.text);
        cr_assert_eq(again.used, 1);
        cr_assert_str_eq(again.text.data, text.data);
        cr_assert_eq(again.count, kind == TARGET ? 0 : 2);
        as_buf_deinit(&again.text);
        as_buf_deinit(&text);
    }
}

Test(state, a_resolved_incident_needs_no_labels)
{
    struct as_buf text = AS_BUF_INIT(BUF_MAX);
    struct again again;
    const struct as_incident_state state = {.key = {.owner = ""},
                                            .is_undated = true,
                                            .fingerprint = 1,
                                            .opened = moment_at(1, 1),
                                            .seen = moment_at(1, 1),
                                            .resolved = moment_at(1, 1)};
    as_state_encode_incident(&state, "b1", &text);
    cr_assert_eq(decode(INCIDENT, text.data, text.size, &test_clock, &again, NULL), 0);
    cr_assert_str_eq(again.text.data, text.data);
    as_buf_deinit(&again.text);
    as_buf_deinit(&text);
}

/* last_up of the target: 990 s on the boot's clock b1, 49990 s by the wall. */
static const struct {
    const char *what, *boot;
    int64_t mono, wall, expected;
} clocks[] = {
    {"same boot, right clock", "b1", 1000, 50000, 990},
    {"same boot, the wall clock went back a day", "b1", 1000, -36400, 990},
    {"same boot, the wall clock went a day ahead", "b1", 1000, 136400, 990},
    {"rebooted, 30 s later by the wall", "b2", 5, 50020, -25},
    {"rebooted, the wall clock went back: counts as now", "b2", 5, 40000, 5},
    {"rebooted a year later", "b2", 5, 49990 + 31536000, 5 - 31536000},
    {"the boot is the same, but its clock is behind: counts as now", "b1", 980, 50000, 980},
};

Test(state, locks_hold_over_restarts_and_reboots)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(clocks); i++) {
        struct as_buf text = encode(TARGET);
        struct again again;
        const struct as_state_clock clock = {
            clocks[i].boot, {clocks[i].mono * AS_US_PER_S}, {clocks[i].wall * AS_US_PER_S}};
        cr_assert_eq(decode(TARGET, text.data, text.size, &clock, &again, NULL), 0);
        cr_assert_eq(again.first.mono.us, clocks[i].expected * AS_US_PER_S, "%s", clocks[i].what);
        cr_assert_eq(again.first.wall.us, 49990 * AS_US_PER_S, "%s", clocks[i].what);
        as_buf_deinit(&again.text);
        as_buf_deinit(&text);
    }
}

static void expect_damage(enum kind kind, const char *json, size_t size, const char *what)
{
    struct again again;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(decode(kind, json, size, &test_clock, &again, &error), -EBADMSG, "%s: %.*s", what,
                 (int)size, json);
    cr_assert_eq(again.used, 0, "%s", what);
    cr_assert(strstr(error.text, "state document"), "%s: %s", what, error.text);
    as_buf_deinit(&again.text);
}

static void expect_damage_of(enum kind kind, const char *json, const char *key)
{
    struct again again;
    struct as_error error = AS_ERROR_INIT;
    char expected[AS_ERROR_SIZE];
    const int size = snprintf(expected, sizeof(expected), "state document: %s: ", key);
    cr_assert_eq(decode(kind, json, strlen(json), &test_clock, &again, &error), -EBADMSG, "%s",
                 key);
    cr_assert(strncmp(error.text, expected, (size_t)size) == 0, "%s", error.text);
    as_buf_deinit(&again.text);
}

Test(state, a_document_cut_anywhere_is_refused)
{
    for (enum kind kind = INCIDENT; kind < KINDS; kind++) {
        struct as_buf text = encode(kind);
        for (size_t size = 0; size < text.size; size++)
            expect_damage(kind, text.data, size, "cut");
        as_buf_deinit(&text);
    }
}

/* Documents leave these out where the value is the usual one. */
static bool is_optional(const char *key)
{
    static const char *const keys[] = {
        "born",           "contended", "external_url", "generator_url", "key", "last_return",
        "last_step_down", "own_size",  "set_backs",    "template",      "uid"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        if (strcmp(key, keys[i]) == 0)
            return true;
    }
    return false;
}

Test(state, a_document_without_one_of_its_members_or_with_a_strange_one_is_refused)
{
    for (enum kind kind = INCIDENT; kind < KINDS; kind++) {
        struct as_buf text = encode(kind);
        json_t *whole = json_loadb(text.data, text.size, 0, NULL);
        const char *key;
        json_t *value;
        json_object_foreach(whole, key, value)
        {
            for (int strange = 0; strange < 2; strange++) {
                json_t *copy = json_copy(whole);
                if (strange)
                    json_object_set_new(copy, key, json_real(1.5));
                else if (is_optional(key))
                    json_object_set_new(copy, key, json_true());
                else
                    json_object_del(copy, key);
                char *json = json_dumps(copy, JSON_COMPACT);
                expect_damage_of(kind, json, key);
                free(json);
                json_decref(copy);
            }
        }
        json_decref(whole);
        as_buf_deinit(&text);
    }
}

static int use_short(void *context, const struct as_target_state *state)
{
    unsigned *used = context;
    cr_assert_str_eq(state->stored_as, "node_group/mine/pool");
    cr_assert_str_eq(state->uid, "");
    cr_assert_not(as_moment_is_set(state->born));
    cr_assert_null(state->template_);
    cr_assert_not(as_moment_is_set(state->contended));
    cr_assert_null(state->own_size);
    cr_assert_eq(state->reverted_change_count, 0);
    ++*used;
    return 0;
}

Test(state, a_target_without_optional_members_is_stored_under_its_id)
{
    struct as_buf text = encode(TARGET);
    json_t *document = json_loadb(text.data, text.size, 0, NULL);
    unsigned used = 0;
    json_object_del(document, "key");
    json_object_del(document, "uid");
    json_object_del(document, "born");
    json_object_del(document, "contended");
    json_object_del(document, "own_size");
    json_object_del(document, "set_backs");
    json_object_del(document, "template");
    char *json = json_dumps(document, JSON_COMPACT);
    cr_assert_eq(as_state_decode_target(json, strlen(json), &test_clock, use_short, &used, NULL),
                 0);
    cr_assert_eq(used, 1);
    free(json);
    json_decref(document);
    as_buf_deinit(&text);
}

static const struct {
    enum kind kind;
    const char *key, *value;
} damages[] = {
    {INCIDENT, "fingerprint", "\"xyz\""},
    {INCIDENT, "digest", "\"xyz\""},
    {INCIDENT, "owner", "7"},
    {INCIDENT, "labels", "{\"a\":1}"},
    {INCIDENT, "open", "false"}, /* resolved, but not since when */
    {INCIDENT, "opened", "[1]"},
    {INCIDENT, "opened", "[1,2,3]"},
    {INCIDENT, "opened", "[\"1\",2]"},
    {INCIDENT, "opened", "[9223372036854775807,-9223372036854775808]"},
    {INCIDENT, "progress", "[1]"},
    {INCIDENT, "progress", "[{\"applied\":null,\"rule\":\"r\",\"steps\":-1,\"target\":\"t\"}]"},
    {INCIDENT, "progress",
     "[{\"applied\":null,\"rule\":\"r\",\"steps\":4294967296,\"target\":\"t\"}]"},
    {TARGET, "id", "\"\""},
    {TARGET, "keep_us", "-1"},
    {TARGET, "last_up", "[-9223372036854775808,0]"},
    {TARGET, "last_up", "[0,-9223372036854775807]"},
    {TARGET, "template", "\"\""},
    {TARGET, "template", "\"[]\""},
    {TARGET, "template", "\"{}\""},
    {TARGET, "template", "{}"},
    {INTENT, "address", "[[\"a\"]]"},
    {INTENT, "address", "[[\"a\",1]]"},
    {INTENT, "from", "-1"},
    {INTENT, "to", "2147483648"},
    {INTENT, "kind", "\"virtual\""},
    {INTENT, "outcome", "\"done\""},
};

Test(state, values_that_cannot_be_are_refused)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(damages); i++) {
        struct as_buf text = encode(damages[i].kind);
        json_t *document = json_loadb(text.data, text.size, 0, NULL);
        json_object_set_new(document, damages[i].key,
                            json_loads(damages[i].value, JSON_DECODE_ANY, NULL));
        char *json = json_dumps(document, JSON_COMPACT);
        expect_damage(damages[i].kind, json, strlen(json), damages[i].value);
        free(json);
        json_decref(document);
        as_buf_deinit(&text);
    }
}

Test(state, a_version_that_is_too_long_is_refused)
{
    struct as_buf text = encode(INTENT);
    json_t *document = json_loadb(text.data, text.size, 0, NULL);
    char version[AS_VERSION_SIZE + 1];
    memset(version, 'v', AS_VERSION_SIZE);
    version[AS_VERSION_SIZE] = '\0';
    json_object_set_new(document, "version", json_string(version));
    char *json = json_dumps(document, JSON_COMPACT);
    expect_damage(INTENT, json, strlen(json), "version");
    free(json);
    json_decref(document);
    as_buf_deinit(&text);
}

/* A template of the largest size comes back; a larger one is refused. */
Test(state, the_size_of_a_template_is_limited)
{
    for (size_t more = 0; more < 2; more++) {
        struct as_buf text = encode(TARGET);
        json_t *document = json_loadb(text.data, text.size, 0, NULL);
        char template_[AS_NODE_TEMPLATE_TEXT_MAX + 2];
        const size_t size = AS_NODE_TEMPLATE_TEXT_MAX + more;
        const size_t fill = size - strlen(TEMPLATE("{}"));
        snprintf(template_, sizeof(template_), "%*s%s", (int)fill, "", TEMPLATE("{}"));
        json_object_set_new(document, "template", json_string(template_));
        char *json = json_dumps(document, JSON_COMPACT);
        struct again again;
        if (more)
            expect_damage(TARGET, json, strlen(json), "template");
        else
            cr_expect_eq(decode(TARGET, json, strlen(json), &test_clock, &again, NULL), 0);
        if (!more)
            as_buf_deinit(&again.text);
        free(json);
        json_decref(document);
        as_buf_deinit(&text);
    }
}

/* A target that is known by its id alone, with what operators ordered. */
static struct as_buf encode_orders(void)
{
    struct as_buf out = AS_BUF_INIT(BUF_MAX);
    static const struct as_target_field fields[] = {{"provider", "mine"}, {"name", "pool"}};
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *ref =
        as_target_ref_make(&as_target_kind_node_group, "node_group/mine/pool", fields, 2);
    const struct as_ordered_state ordered = {
        .id = "01J0000000000000000000000C",
        .replicas = INT32_MAX,
        .force = true,
        .at = moment_at(995, 49995),
        .sender = "shop-team",
    };
    const struct as_target_state target = {
        .id = ref->id,
        .ref = ref,
        .entry = "workers",
        .locks.last_up = AS_MOMENT_NEVER,
        .locks.last_down = AS_MOMENT_NEVER,
        .locks.dry_last_up = AS_MOMENT_NEVER,
        .locks.dry_last_down = AS_MOMENT_NEVER,
        .locks.last_step_down = AS_MOMENT_NEVER,
        .locks.last_return = AS_MOMENT_NEVER,
        .pause = &test_pause,
        .ordered = &ordered,
    };
    as_state_encode_target(&target, "b1", &out);
    return out;
}

Test(state, orders_come_back_as_they_were)
{
    struct as_buf text = encode_orders();
    struct again again;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_not_null(strstr(text.data, "\"pause\":{\"for_us\":3600000000,"));
    cr_assert_not_null(strstr(text.data, "\"ordered\":{\"at\":[995000000,"));
    cr_assert_not_null(strstr(text.data, "\"sender\":\"shop-team\"}"));
    cr_assert_eq(decode(TARGET, text.data, text.size, &test_clock, &again, &error), 0, "%s",
                 error.text);
    cr_assert_str_eq(again.text.data, text.data);
    as_buf_deinit(&again.text);
    as_buf_deinit(&text);
}

static void expect_damaged_orders(const char *key, const char *member, const char *value)
{
    struct as_buf text = encode_orders();
    json_t *document = json_loadb(text.data, text.size, 0, NULL);
    json_t *object = json_object_get(document, key);
    if (value)
        json_object_set_new(object, member, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(object, member);
    char *json = json_dumps(document, JSON_COMPACT);
    expect_damage(TARGET, json, strlen(json), member);
    free(json);
    json_decref(document);
    as_buf_deinit(&text);
}

Test(state, damaged_orders_are_refused)
{
    static const struct {
        const char *key, *member, *value;
    } rows[] = {
        {"pause", "for_us", "-1"},  {"pause", "for_us", NULL},
        {"pause", "since", "null"}, {"pause", "since", NULL},
        {"pause", "who", NULL},     {"pause", "reason", "1"},
        {"ordered", "at", "null"},  {"ordered", "force", NULL},
        {"ordered", "id", NULL},    {"ordered", "replicas", "-1"},
        {"ordered", "force", "1"},  {"ordered", "replicas", "2147483648"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        expect_damaged_orders(rows[i].key, rows[i].member, rows[i].value);
}

Test(state, other_things_are_no_documents)
{
    static const char *const others[] = {
        "",    "null", "[]", "1", "{} {}", "{\"boot\":\"b1\"}", "{\"boot\":\"b1\",\"boot\":\"b1\"}",
        "\xff"};
    for (enum kind kind = INCIDENT; kind < KINDS; kind++) {
        for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++)
            expect_damage(kind, others[i], strlen(others[i]), others[i]);
    }
}

static int refuse(void *context, const struct as_target_state *state)
{
    (void)context;
    (void)state;
    return -EEXIST;
}

Test(state, what_the_user_of_a_document_says_is_the_result)
{
    struct as_buf text = encode(TARGET);
    cr_assert_eq(as_state_decode_target(text.data, text.size, &test_clock, refuse, NULL, NULL),
                 -EEXIST);
    as_buf_deinit(&text);
}
