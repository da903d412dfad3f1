/*
 * The program that printed rows.tsv. It is not built: it needs the headers and libraries of commit
 * 1c874e40, whose encoders wrote the rows.
 *
 *   git worktree add build/old 1c874e40
 *   meson setup build/old/build build/old && ninja -C build/old/build src/alertscaler
 *   cc -I build/old/include -o rows rows.c build/old/build/src/libas_wire.a
 *       build/old/build/src/libas_core.a build/old/build/src/libas_base.a
 *       -lpcre2-8 -ljansson -lcrypto -lm && ./rows > rows.tsv
 *
 * A line is `kind<TAB>key<TAB>value`. The key of an incident begins with its digest in hex. All
 * times are before NOW.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/core/incident.h>
#include <alertscaler/core/nodes/nodes_seen.h>
#include <alertscaler/core/nodes/survey.h>
#include <alertscaler/core/target_kind.h>
#include <alertscaler/wire/labels_digest.h>
#include <alertscaler/wire/node_template.h>
#include <alertscaler/wire/notice.h>
#include <alertscaler/wire/state.h>

#define BOOT         "10000000-0000-4000-8000-000000000000"
#define NOW_S        INT64_C(1795737600) /* 2026-11-27T00:00:00Z */
#define BOOTED_S     500000              /* the machine runs for so long */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LIST(array)  (array), .array##_count = COUNT(array)

#define SLOW  "0adae210ef994d3fb8ea3aee2f2eb47982d786efa2329c9f2f228abbaf3eaf43" /* its digest */
#define GROUP "http://127.0.0.1:44444/groups/"

static struct as_buf text;

/* So many seconds before NOW, and some microseconds. */
static struct as_moment ago(int64_t seconds)
{
    return (struct as_moment){{(BOOTED_S - seconds) * AS_US_PER_S + 123456},
                              {(NOW_S - seconds) * AS_US_PER_S + 234567}};
}

static as_wall_time wall_ago(int64_t seconds)
{
    return ago(seconds).wall;
}

static void print(const char *kind, const char *key)
{
    if (as_buf_check(&text) != 0)
        abort();
    printf("%s\t%s\t%s\n", kind, key, text.data);
    as_buf_clear(&text);
}

static void print_text(const char *key, const char *value)
{
    as_buf_append_str(&text, value);
    print("meta", key);
}

static void print_time(const char *key, as_wall_time time)
{
    char value[AS_RFC3339_SIZE];
    as_wall_time_print(time, value);
    print_text(key, value);
}

/* --- targets and intents --- */

static struct as_target_ref *make_group(const char *name)
{
    char id[128], url[128];
    snprintf(id, sizeof(id), "node_group/mine/%s%s", GROUP, name);
    snprintf(url, sizeof(url), "%s%s", GROUP, name);
    const struct as_target_field fields[] = {{"provider", "mine"}, {"url", url}};
    return as_target_ref_make(&as_target_kind_node_group, id, fields, COUNT(fields));
}

static struct as_target_ref *make_deployment(const char *name)
{
    char id[128];
    snprintf(id, sizeof(id), "kubernetes/default/apps/v1/Deployment/shop/%s", name);
    const struct as_target_field fields[] = {{"cluster", "default"},
                                             {"apiVersion", "apps/v1"},
                                             {"kind", "Deployment"},
                                             {"namespace", "shop"},
                                             {"name", name}};
    return as_target_ref_make(&as_target_kind_kubernetes, id, fields, COUNT(fields));
}

static struct as_target_ref *make_memory(const char *name)
{
    char id[128];
    snprintf(id, sizeof(id), "kubernetes/default/apps/v1/Deployment/shop/%s:container/app/memory",
             name);
    const struct as_target_field fields[] = {{"cluster", "default"}, {"apiVersion", "apps/v1"},
                                             {"kind", "Deployment"}, {"namespace", "shop"},
                                             {"name", name},         {"unit", "64Mi"},
                                             {"container", "app"},   {"resource", "memory"},
                                             {"apply", "pods"}};
    return as_target_ref_make(&as_target_kind_kubernetes, id, fields, COUNT(fields));
}

/* `entry`: of the rule files; NULL: the row has neither it nor the address. */
static struct as_target_state begin(const struct as_target_ref *ref, const char *entry)
{
    static const struct as_lack_state lacks[1]; /* the engine always writes the list */
    return (struct as_target_state){
        .id = ref->id,
        .stored_as = ref->key,
        .ref = entry ? ref : NULL,
        .entry = entry ? entry : "",
        .last_up = AS_MOMENT_NEVER,
        .last_down = AS_MOMENT_NEVER,
        .dry_last_up = AS_MOMENT_NEVER,
        .dry_last_down = AS_MOMENT_NEVER,
        .last_step_down = AS_MOMENT_NEVER,
        .last_return = AS_MOMENT_NEVER,
        .born = AS_MOMENT_NEVER,
        .contended = AS_MOMENT_NEVER,
        .uid = "",
        .lacks = lacks,
        .keep_us = 30 * AS_US_PER_DAY,
    };
}

static void end(struct as_target_state state, struct as_target_ref *ref)
{
    as_state_encode_target(&state, BOOT, &text);
    print("target", state.stored_as);
    as_target_ref_free(ref);
}

static void print_history(void)
{
    const struct as_past_event events[] = {{ago(3000), 2}, {ago(900), 3}, {ago(600), -1}};
    const struct as_past_recommendation recommendations[] = {{ago(700), 9}, {ago(60), 8}};
    const struct as_ending_state endings[] = {{.rule = "give-back",
                                               .incident = "fedcba9876543210",
                                               .ended = ago(800),
                                               .origin = 4,
                                               .peak = 9,
                                               .last = 8,
                                               .applied = ago(600),
                                               .guard = "up{job=\"w\303\251b\"} == 1"},
                                              {.rule = "give-back-later",
                                               .incident = "94f4d37833c340169cd9f34d699046c8"
                                                           "21a8968ae246017466e3f1f0b06ceb78",
                                               .ended = ago(500),
                                               .origin = 0,
                                               .peak = -1,
                                               .last = -1,
                                               .applied = AS_MOMENT_NEVER,
                                               .guard = ""}};
    const struct as_lack_state lacks[] = {{"from-prometheus", ago(400)}, {"from-nodes", ago(90)}};
    struct as_target_ref *ref = make_deployment("history");
    struct as_target_state state = begin(ref, "history");
    state.last_up = ago(900);
    state.last_down = ago(600);
    state.dry_last_up = ago(7200);
    state.dry_last_down = ago(7000);
    state.last_step_down = ago(590);
    state.last_return = ago(6000);
    state.uid = "20000000-0000-4000-8000-000000000001";
    state.born = ago(8000);
    state.events = events;
    state.event_count = COUNT(events);
    state.recommendations = recommendations;
    state.recommendation_count = COUNT(recommendations);
    state.endings = endings;
    state.ending_count = COUNT(endings);
    state.lacks = lacks;
    state.lack_count = COUNT(lacks);
    end(state, ref);
}

static void print_approvals(void)
{
    static const char *const rules[] = {"waits", "approved", "denied", "expired", "void"};
    static const char *const ids[] = {"01M8CR0000000000000000000A", "01M8CR0000000000000000001A",
                                      "01M8CR0000000000000000002A", "01M8CR0000000000000000003A",
                                      "01M8CR0000000000000000004A"};
    /* of the rules in tests/integration/test_upgrade_rows.py */
    static const char *const digests[] = {
        "91d174dd1a710f7130677e0bacc00931deac04ab09a96aa5939719cea881d36a",
        "20b5be2c9c35bd61c6610f9ea5278439acf22fda64324203a4913bdc557f8e2d",
        "91f55af0d62022ead9870a7ce89e1529a8eff7b045f311b283e68680e6331dba",
        "b5bfdc2a793a2dc31943971fc1d68f50afb0785f118794c8e87d88e8f217bf78",
        "5cf6b7f5e497fb1e6fda06d07f2218ed01d682d84a0df05ad2321fdeeca8176e"};
    struct as_approval_state approvals[AS_APPROVAL_ANSWER_COUNT];
    const struct as_free_step steps[] = {{"waits", 2, ago(1200)}, {"approved", -1, ago(300)}};
    struct as_target_ref *ref = make_deployment("approvals");
    struct as_target_state state = begin(ref, NULL);
    for (unsigned i = 0; i < AS_APPROVAL_ANSWER_COUNT; i++)
        approvals[i] = (struct as_approval_state){
            .id = ids[i],
            .decision = "01M8CR0000000000000000000B",
            .rule = rules[i],
            .incident = SLOW,
            .uid = "20000000-0000-4000-8000-000000000002",
            .is_up = i != 2,
            .from = 4,
            .to = i == 2 ? 0 : 12,
            .for_us = (3600 + i) * AS_US_PER_S,
            .answer = (enum as_approval_answer)i,
            .asked = ago(700 + i),
            .answered = i == AS_APPROVAL_WAITING ? AS_MOMENT_NEVER : ago(600),
            .who = i == AS_APPROVAL_WAITING || i >= AS_APPROVAL_EXPIRED ? "" : "ada",
        };
    for (unsigned i = 0; i < AS_APPROVAL_ANSWER_COUNT; i++) {
        if (!as_digest_parse(digests[i], strlen(digests[i]), &approvals[i].digest))
            abort();
    }
    state.uid = "20000000-0000-4000-8000-000000000002";
    state.approvals = approvals;
    state.approval_count = COUNT(approvals);
    state.free_steps = steps;
    state.free_step_count = COUNT(steps);
    end(state, ref);
}

/* Trials, set-backs, and a pending scale-up of a workload that did not come. */
static void print_trials(void)
{
    const struct as_follow_state follows[] = {
        {"01M8CR0000000000000000000C", "01M8CR0000000000000000000D", "slow", 4, 6, 1, ago(920),
         ago(915), true, 30 * AS_US_PER_S, 0},
        {"01M8CR0000000000000000000E", "01M8CR0000000000000000000F", "idle", 6, 0, 0, ago(320),
         ago(310), false, -1, -1}};
    const struct as_trial_state trials[] = {{"slow", 3, ago(200)}, {"idle", 1, AS_MOMENT_NEVER}};
    const struct as_own_size own_size = {6, 5, ago(310), "4711"};
    const struct as_reverted_change reverted_changes[] = {
        {ago(1000), 4, 6, 4, "helm"},
        {ago(900), 4, 6, 5, ""},
        {ago(305), 6, 5, 6, "kube-controller-manager"}};
    const struct as_growth_state growth = {.id = "01M8CR0000000000000000000D",
                                           .is_open = true,
                                           .from = 4,
                                           .to = 6,
                                           .missing = 1,
                                           .since = ago(915),
                                           .failed = AS_MOMENT_NEVER,
                                           .did_not_come = true,
                                           .ready = 5};
    const struct as_pause_state pause = {.since = ago(150),
                                         .for_us = 3 * AS_US_PER_DAY,
                                         .ways = AS_WAYS_DOWN,
                                         .who = "ada",
                                         .reason = "the \"big\" move"};
    struct as_target_ref *ref = make_deployment("trials");
    struct as_target_state state = begin(ref, "trials");
    state.last_up = ago(915);
    state.last_down = ago(310);
    state.last_step_down = ago(310);
    state.uid = "20000000-0000-4000-8000-000000000003";
    state.follows = follows;
    state.follow_count = COUNT(follows);
    state.trials = trials;
    state.trial_count = COUNT(trials);
    state.own_size = &own_size;
    state.reverted_changes = reverted_changes;
    state.reverted_change_count = COUNT(reverted_changes);
    state.contended = ago(305);
    state.growth = &growth;
    state.pause = &pause;
    end(state, ref);
}

static char *make_template(void)
{
    static const char json[] =
        "{\"allocatable\":{\"cpu\":3920,\"ephemeral-storage\":94000000000,\"memory\":15000000000,"
        "\"pods\":110},\"capacity\":{\"cpu\":4000,\"ephemeral-storage\":100000000000,\"memory\":"
        "16000000000,\"pods\":110},\"free\":{\"cpu\":3500,\"ephemeral-storage\":94000000000,"
        "\"memory\":14000000000,\"pods\":100},\"labels\":{\"zone\":\"a\"},\"taints\":[{\"effect\":"
        "\"NoSchedule\",\"key\":\"gpu\",\"value\":\"\"}]}";
    static const struct as_res_names names = {.count = AS_RES_NAMED};
    struct as_arena arena = AS_ARENA_INIT;
    struct as_node_template template_;
    struct as_error error = AS_ERROR_INIT;
    struct as_buf out = AS_BUF_INIT(AS_NODE_TEMPLATE_TEXT_MAX);
    size_t size;
    if (as_node_template_decode(json, &names, &arena, &template_, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    as_node_template_encode(&template_, &names, &out);
    as_arena_deinit(&arena);
    return as_buf_take(&out, &size);
}

/* A pending scale-up with nodes in surplus, a floor, an ordered size, a template. */
static void print_pending(void)
{
    const struct as_growth_state growth = {.id = "01M8CR0000000000000000000G",
                                           .is_open = true,
                                           .is_ordered = true,
                                           .from = 3,
                                           .to = 6,
                                           .missing = 2,
                                           .since = ago(100),
                                           .failed = ago(4000),
                                           .back_off_us = 10 * AS_US_PER_MIN,
                                           .surplus = 2,
                                           .surplus_from = 3,
                                           .surplus_since = ago(1500)};
    const struct as_floor_state floor = {.size = 5,
                                         .since = ago(200),
                                         .for_us = 3 * AS_US_PER_DAY,
                                         .who = "whole",
                                         .reason = "a sale"};
    const struct as_ordered_state ordered = {"01M8CR0000000000000000000H", 7, true, ago(20)};
    const struct as_pause_state pause = {
        .since = ago(30), .who = "whole", .reason = "until it is upgraded"};
    struct as_target_ref *ref = make_group("pending");
    struct as_target_state state = begin(ref, "pending");
    char *template_ = make_template();
    state.last_up = ago(100);
    state.growth = &growth;
    state.floor = &floor;
    state.ordered = &ordered;
    state.pause = &pause;
    state.template_ = template_;
    end(state, ref);
    free(template_);
}

static void print_refused(void)
{
    const struct as_growth_state growth = {.id = "01M8CR0000000000000000000J",
                                           .is_refused = true,
                                           .from = 3,
                                           .to = 4,
                                           .since = ago(2000),
                                           .failed = ago(1900),
                                           .back_off_us = 30 * AS_US_PER_MIN};
    const struct as_pause_state pause = {
        .since = ago(50), .for_us = 2 * AS_US_PER_DAY, .ways = AS_WAYS_UP, .who = "", .reason = ""};
    struct as_target_ref *ref = make_group("refused");
    struct as_target_state state = begin(ref, NULL);
    state.last_up = ago(2000);
    state.growth = &growth;
    state.pause = &pause;
    end(state, ref);
}

static void print_resizes(void)
{
    const struct as_resize_state open = {.id = "01M8CR0000000000000000000K",
                                         .is_open = true,
                                         .is_late = true,
                                         .is_above = true,
                                         .from = 4,
                                         .to = 8};
    const struct as_resize_state done = {
        .id = "01M8CR0000000000000000000M", .is_ordered = true, .from = 8, .to = 4};
    struct as_target_ref *ref = make_memory("resize");
    struct as_target_state state = begin(ref, "resize");
    state.last_up = ago(400);
    state.uid = "20000000-0000-4000-8000-000000000004";
    state.resize = &open;
    end(state, ref);
    ref = make_memory("resized");
    state = begin(ref, NULL);
    state.last_down = ago(400);
    state.last_step_down = ago(400);
    state.resize = &done;
    end(state, ref);
}

static void print_pool(void)
{
    const struct as_asked asked[] = {{.shape = UINT64_C(0xfedcba9876543210),
                                      .template_ = 7,
                                      .group = "small",
                                      .at = wall_ago(600)},
                                     {.shape = 1,
                                      .template_ = UINT64_MAX,
                                      .group = "large",
                                      .at = wall_ago(1200),
                                      .is_in_vain = true}};
    const struct as_target_field fields[] = {{"name", "all"}};
    struct as_target_ref *ref =
        as_target_ref_make(&as_target_kind_pool, "pool/all", fields, COUNT(fields));
    struct as_target_state state = begin(ref, NULL);
    state.asked = asked;
    state.asked_count = COUNT(asked);
    end(state, ref);
}

static void print_intents(void)
{
    struct as_target_ref *refs[] = {make_deployment("begun"), make_group("doubt")};
    struct as_intent_state states[] = {{.ref = refs[0],
                                        .action_id = "01M8CR0000000000000000000N",
                                        .decision_id = "01M8CR0000000000000000000P",
                                        .uid = "20000000-0000-4000-8000-000000000005",
                                        .is_of_alert = true,
                                        .rule = "slow",
                                        .from = 3,
                                        .to = 5,
                                        .version = "4712",
                                        .at = ago(5),
                                        .outcome = AS_REASON_SCALED,
                                        .approval = "01M8CR0000000000000000000Q"},
                                       {.ref = refs[1],
                                        .action_id = "01M8CR0000000000000000000R",
                                        .decision_id = "01M8CR0000000000000000000S",
                                        .uid = "",
                                        .is_ordered = true,
                                        .rule = "",
                                        .from = 0,
                                        .to = 2,
                                        .version = "\"v1\"",
                                        .at = ago(3),
                                        .maybe = true,
                                        .outcome = AS_REASON_TIMEOUT}};
    for (size_t i = 0; i < COUNT(states); i++) {
        states[i].stored_as = refs[i]->key;
        as_state_encode_intent(&states[i], BOOT, &text);
        print("intent", states[i].stored_as);
        as_target_ref_free(refs[i]);
    }
}

/* --- incidents --- */

static void print_incident(struct as_incident_state state, const struct as_label *pairs,
                           size_t count)
{
    char key[AS_DIGEST_TEXT_SIZE + 32];
    struct as_labels *labels = NULL;
    const struct as_label notes[] = {{"runbook_url", "http://127.0.0.1/r"},
                                     {"summary", "Sl\303\266w \"quoted\"\n"}};
    struct as_labels *annotations = NULL;
    if (as_labels_new(pairs, count, &labels) != 0 || as_labels_new(notes, 2, &annotations) != 0)
        abort();
    state.labels = labels;
    state.annotations = state.is_open ? annotations : NULL;
    state.key.digest = as_labels_get_digest(labels);
    as_digest_print(&state.key.digest, key);
    strcat(key, state.key.owner);
    as_state_encode_incident(&state, BOOT, &text);
    print("incident", key);
    as_labels_free(labels);
    as_labels_free(annotations);
}

static void print_incidents(void)
{
    const struct as_label slow[] = {{"alertname", "Slow"}, {"shard", "1"}, {"empty", ""}};
    const struct as_label over[] = {{"alertname", "Over"}};
    const struct as_progress progress[] = {
        {"slow", "kubernetes/default/apps/v1/Deployment/shop/trials", 3, ago(915), -1},
        {"pending", "node_group/mine/" GROUP "pending", 1, ago(100), 3}};
    const char *const receivers[] = {"web.hook", "other"}, *const credentials[] = {"team-a", ""};
    print_incident((struct as_incident_state){.key = {.owner = ""},
                                              .fingerprint = UINT64_C(0xfedcba9876543210),
                                              .is_open = true,
                                              .starts_at = wall_ago(1000),
                                              .opened = ago(990),
                                              .seen = ago(10),
                                              .resolved = AS_MOMENT_NEVER,
                                              .silenced = ago(15),
                                              .receivers = receivers,
                                              .receiver_count = 2,
                                              .credentials = credentials,
                                              .credential_count = 2,
                                              .progress = progress,
                                              .progress_count = 2},
                   slow, COUNT(slow));
    print_incident((struct as_incident_state){.key = {.owner = "team-a"},
                                              .fingerprint = 0xaa,
                                              .starts_at = wall_ago(700),
                                              .is_undated = true,
                                              .opened = ago(690),
                                              .seen = ago(600),
                                              .resolved = ago(600),
                                              .silenced = AS_MOMENT_NEVER,
                                              .receivers = receivers,
                                              .receiver_count = 1,
                                              .credentials = credentials,
                                              .credential_count = 1},
                   over, COUNT(over));
}

/* --- notices --- */

static const char hash[] = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";

static void print_notice(const char *key, const struct as_notice *notice)
{
    size_t at_hash;
    as_notice_encode(notice, &text, &at_hash);
    print("meta", key);
}

/* One of each kind and phase that waits for its receiver. */
static void print_entries(void)
{
    char key[32];
    unsigned number = 41;
    for (int kind = 0; kind < AS_NOTICE_KIND_COUNT; kind++) {
        const bool is_state = as_notice_kind_get_row((enum as_notice_kind)kind)->is_state;
        for (int end = 0; end <= is_state; end++) {
            struct as_notice notice = {.kind = (enum as_notice_kind)kind,
                                       .phase = is_state ? end ? AS_NOTICE_END : AS_NOTICE_BEGIN
                                                         : AS_NOTICE_EVENT,
                                       .target = "node_group/mine/" GROUP "pending",
                                       .target_name = "pending",
                                       .at = wall_ago(300),
                                       .hash = hash,
                                       .receiver = end ? "on-call" : "events",
                                       .url = (uint32_t)end};
            if (end)
                notice.ended = (as_maybe_time){.set = true, .at = wall_ago(100)};
            if (kind == AS_NOTICE_SCALED || kind == AS_NOTICE_AT_MAX) {
                notice.has_from = notice.has_to = true;
                notice.from = 3;
                notice.to = 6;
                notice.unit = "64Mi";
                notice.decision = "01M8CR0000000000000000000G";
                notice.credential = "team-a";
            }
            if (kind == AS_NOTICE_FAILED) {
                notice.reason = "timeout";
                notice.command = "01M8CR0000000000000000000H";
                notice.message = "no answer";
            }
            if (kind == AS_NOTICE_INEFFECTIVE || kind == AS_NOTICE_NEEDS_APPROVAL)
                notice.rule = "slow";
            if (kind == AS_NOTICE_NEEDS_APPROVAL) {
                notice.approval = "01M8CR0000000000000000000A";
                notice.message = end ? "it was denied" : NULL;
            }
            snprintf(key, sizeof(key), "notice/%016x", number++);
            print_notice(key, &notice);
        }
    }
}

#define TRIALS    "kubernetes/default/apps/v1/Deployment/shop/trials"
#define APPROVALS "kubernetes/default/apps/v1/Deployment/shop/approvals"

static void print_states(void)
{
    const struct as_notice base = {.phase = AS_NOTICE_BEGIN,
                                   .target = TRIALS,
                                   .target_name = "trials",
                                   .rule = "slow",
                                   .has_from = true,
                                   .from = 9,
                                   .decision = "01M8CR0000000000000000000D",
                                   .at = wall_ago(400),
                                   .hash = hash};
    struct as_notice notice = base;
    notice.kind = AS_NOTICE_AT_MAX;
    print_notice("notice_state/at_max/" TRIALS, &notice);
    notice.kind = AS_NOTICE_CONTENDED;
    notice.message = "helm";
    print_notice("notice_state/contended/" TRIALS, &notice);
    notice.kind = AS_NOTICE_INEFFECTIVE;
    print_notice("notice_state/ineffective/slow/" TRIALS, &notice);
    notice.kind = AS_NOTICE_NEEDS_APPROVAL;
    notice.approval = "01M8CR0000000000000000000A";
    notice.message = NULL;
    notice.rule = "waits";
    notice.target = APPROVALS;
    notice.target_name = "approvals";
    notice.has_to = true;
    notice.to = 12;
    print_notice("notice_state/needs_approval/01M8CR0000000000000000000A/" APPROVALS, &notice);
}

int main(void)
{
    const struct as_pause_state pause = {.since = ago(45),
                                         .for_us = 5 * AS_US_PER_DAY,
                                         .ways = AS_WAYS_UP,
                                         .who = "whole",
                                         .reason = "of all targets"};
    text = AS_BUF_INIT(1 << 20);
    print_time("dry_run_since", wall_ago(100000));
    print_time("marked_nodes", wall_ago(50000));
    print_entries();
    print_states();
    as_state_encode_pause(&pause, BOOT, &text);
    print("meta", "pause");
    print_incidents();
    print_approvals();
    print_history();
    print_pending();
    print_pool();
    print_refused();
    print_resizes();
    print_trials();
    print_intents();
    return 0;
}
