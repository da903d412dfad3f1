/* The set of scaling policies: what is in force, who owns an object, and what stays compiled. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/random.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/rules/policy_set.h>

#define TARGET  "\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"web\"},\"min\":1,\"max\":9"
#define RULE    "{\"name\":\"up\",\"match\":[\"alertname=\\\"Up\\\"\"],\"scaleUp\":{\"by\":1}}"
#define QUERIES "{\"name\":\"q\",\"always\":true,\"track\":{\"value\":\"5\",\"query\":\"load\"}}"

static const struct as_ruleset no_files = {.digest = "files"};
static struct as_settings make_settings(void)
{
    return (struct as_settings){
        .objects = {.is_enabled = true,
                    .max_policies = 10,
                    .rules_per_policy = 2,
                    .enforces_namespace_label = true,
                    .namespace_label = "namespace",
                    .min_every_us = 15 * AS_US_PER_S},
    };
}

static as_mono_time now; /* of what a test puts */

/* `day` is that of the creation. */
static bool put_object(struct as_policy_set *set, const char *namespace, const char *name, int day,
                       int generation, const char *annotations, const char *target,
                       const char *rules)
{
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(
        "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\",\"metadata\":{"
        "\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"uid-%s\",\"generation\":%d,"
        "\"creationTimestamp\":\"2026-01-%02dT00:00:00Z\",\"annotations\":{%s}},"
        "\"spec\":{\"target\":{%s},\"rules\":[%s]},\"status\":{}}",
        namespace, name, name, generation, day, annotations, target, rules);
    struct as_error error = AS_ERROR_INIT;
    bool changed = false;
    cr_assert_eq(as_policy_set_put(set, text, strlen(text), now, &changed, &error), 0, "%s",
                 error.text);
    return changed;
}

static const struct as_ruleset *join(struct as_policy_set *set, const struct as_settings *settings,
                                     const struct as_ruleset *files, int64_t minutes)
{
    return as_policy_set_join(
        set, &(struct as_policy_join){settings, files, {minutes * AS_US_PER_MIN}, true});
}

static void cr_reason(struct as_policy_set *set, const char *id, enum as_policy_reason reason,
                      const char *message)
{
    const struct as_scaling_policy *policy = as_policy_set_find(set, id);
    cr_assert(policy, "%s", id);
    cr_expect_str_eq(as_policy_reason_get_word(policy->reason), as_policy_reason_get_word(reason));
    cr_expect(strstr(policy->message, message), "%s: %s", id, policy->message);
}

Test(policy_set, joins_policies_behind_the_files)
{
    const struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    cr_expect(put_object(set, "shop", "web", 1, 1, "", TARGET, RULE));
    const struct as_ruleset *all = join(set, &settings, &no_files, 0);
    cr_assert_eq(all->target_count, 1);
    cr_expect_str_eq(all->targets[0]->name, "shop/web");
    cr_expect_str_eq(all->targets[0]->policy->namespace, "shop");
    cr_expect_str_eq(all->rules[0]->name, "shop/web/up");
    cr_expect_str_neq(all->digest, no_files.digest);
    cr_reason(set, "shop/web", AS_POLICY_READY, "in force");

    /* The same generation again, and then none: nothing is in force but the files. */
    cr_expect_not(put_object(set, "shop", "web", 1, 1, "\"other\":\"x\"", TARGET, RULE));
    cr_expect(as_policy_set_remove(set, "shop", "web"));
    cr_expect_not(as_policy_set_remove(set, "shop", "web"));
    all = join(set, &settings, &no_files, 0);
    cr_expect_eq(all->target_count + all->rule_count, 0);
    cr_expect_str_eq(all->digest, no_files.digest);
    as_policy_set_free(set);
}

Test(policy_set, alerts_need_the_label_of_the_namespace)
{
    struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    (void)put_object(set, "shop", "web", 1, 1, "", TARGET, RULE);
    const struct as_ruleset *all = join(set, &settings, &no_files, 0);
    struct as_rule_index *index = as_rule_index_new(all);
    const char *const namespaces[] = {"shop", "other"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(namespaces); i++) {
        const struct as_rule *const *rules;
        AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
        const struct as_label pairs[] = {{"alertname", "Up"}, {"namespace", namespaces[i]}};
        cr_assert_eq(as_labels_new(pairs, 2, &labels), 0);
        cr_expect_eq(as_rule_index_match(index, labels, NULL, 0, &rules), i == 0 ? 1 : 0);
    }
    as_rule_index_free(index);
    as_policy_set_free(set);
}

static size_t find_number(const struct as_ruleset *ruleset, const struct as_rule *rule)
{
    size_t number = 0;
    while (ruleset->rules[number] != rule)
        number++;
    return number;
}

/* Whose rules are named for an alert that has not their label: a bounded part, then others. */
Test(policy_set, of_rules_that_the_namespace_alone_keeps_from_an_alert_all_are_found_in_turn)
{
    enum { POLICIES = 250 };
    struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    static bool is_found[POLICIES + 1];
    const struct as_label pairs[] = {{"alertname", "Up"}, {"namespace", "other"}};
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    const struct as_rule *const *rules;
    size_t all_found = 0;
    settings.objects.max_policies = 2 * POLICIES;
    for (int i = 0; i < POLICIES; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "shop-%03d", i);
        (void)put_object(set, name, "web", i, 1, "", TARGET, RULE);
    }
    (void)put_object(
        set, "any", "web", POLICIES, 1, "", TARGET,
        "{\"name\":\"up\",\"match\":[\"alertname=~\\\"U.*\\\"\"],\"scaleUp\":{\"by\":1}}");
    const struct as_ruleset *all = join(set, &settings, &no_files, 0);
    struct as_rule_index *index = as_rule_index_new(all);
    cr_assert_eq(as_labels_new(pairs, 2, &labels), 0);
    cr_expect_eq(as_rule_index_match(index, labels, NULL, 0, &rules), 0);
    for (int call = 0; call < 3; call++) {
        const size_t count = as_rule_index_match_confined(index, labels, NULL, 0, &rules);
        cr_assert_eq(count, AS_RULE_NEAR_MAX);
        for (size_t i = 0; i < count; i++) {
            bool *is_new = &is_found[find_number(all, rules[i])];
            all_found += !*is_new;
            *is_new = true;
        }
    }
    cr_expect_eq(all_found, POLICIES, "%zu", all_found);
    as_rule_index_free(index);
    as_policy_set_free(set);
}

/* Each row is a policy that the administrator does not allow. */
Test(policy_set, refuses_what_the_administrator_does_not_allow)
{
    static const struct {
        const char *target, *rules;
        enum as_policy_reason reason;
        const char *message;
    } rows[] = {
        {"\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"web\"},\"mox\":9", RULE,
         AS_POLICY_INVALID, "spec.target.mox: unknown key `mox`; did you mean `max`?"},
        {"\"kubernetes\":{\"kind\":\"ResourceQuota\",\"apiVersion\":\"v1\",\"name\":\"web\","
         "\"field\":\"spec.hard.pods\"},\"max\":9",
         RULE, AS_POLICY_KIND_NOT_ALLOWED, "objects.kinds"},
        {"\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"web\",\"field\":\"spec."
         "minReadySeconds\"},"
         "\"max\":9",
         RULE, AS_POLICY_KIND_NOT_ALLOWED, "objects.kinds"},
        {TARGET, QUERIES, AS_POLICY_QUERIES_NOT_ALLOWED, "objects.prometheus"},
        {TARGET, RULE "," RULE "," RULE, AS_POLICY_INVALID, "given twice"},
        {"\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"web\"},\"max\":900", RULE,
         AS_POLICY_LIMIT_EXCEEDED, "spec.target.max: 900 is above 100"},
        {TARGET ",\"schedules\":[{\"name\":\"sale\",\"timezone\":\"UTC\",\"from\":\"00:00\","
                "\"to\":\"24:00\",\"max\":101}]",
         RULE, AS_POLICY_LIMIT_EXCEEDED, "spec.target.schedules[0].max: 101 is above 100"},
        {TARGET, "{\"name\":\"other/web/up\",\"match\":[\"a=b\"],\"scaleUp\":{\"by\":1}}",
         AS_POLICY_INVALID, "spec.rules[0].name: expected a name without `/`"},
        {TARGET, "{\"name\":\"up\",\"match\":[\"a=b\"],\"scaleUp\":{\"by\":1},\"every\":\"5s\"}",
         AS_POLICY_LIMIT_EXCEEDED, "spec.rules[0].every: shorter than 15s"},
    };
    struct as_settings settings = make_settings();
    settings.objects.max_size = 100;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_policy_set *set = as_policy_set_new();
        (void)put_object(set, "shop", "web", 1, 1, "", rows[i].target, rows[i].rules);
        cr_expect_eq(join(set, &settings, &no_files, 0)->target_count, 0, "row %zu", i);
        cr_reason(set, "shop/web", rows[i].reason, rows[i].message);
        as_policy_set_free(set);
    }
}

Test(policy_set, the_oldest_policy_has_the_object)
{
    const struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    (void)put_object(set, "shop", "young", 2, 1, "", TARGET, RULE);
    (void)put_object(set, "shop", "old", 1, 1, "", TARGET, RULE);
    (void)put_object(set, "other", "web", 3, 1, "", TARGET, RULE);
    const struct as_ruleset *all = join(set, &settings, &no_files, 0);
    cr_expect_eq(all->target_count, 2);
    cr_reason(set, "shop/young", AS_POLICY_TARGET_TAKEN, "target shop/old has this object");
    cr_reason(set, "other/web", AS_POLICY_READY, "");

    /* An entry of a rule file comes first, and gives the object back when it goes. */
    struct as_ruleset files = *all; /* its first target has the object, too */
    files.target_count = 1;
    files.rule_count = 0;
    all = join(set, &settings, &files, 0);
    cr_expect_eq(all->target_count, 2);
    cr_reason(set, "shop/old", AS_POLICY_TARGET_TAKEN, "has this object");
    all = join(set, &settings, &no_files, 0);
    cr_reason(set, "shop/old", AS_POLICY_READY, "");
    as_policy_set_free(set);
}

static void count_removed(void *context, const struct as_scaling_policy *policy)
{
    cr_expect_str_eq(policy->id, "shop/web");
    ++*(int *)context;
}

Test(policy_set, a_list_of_one_namespace_removes_only_there)
{
    const struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    (void)put_object(set, "shop", "web", 1, 1, "", TARGET, RULE);
    (void)put_object(set, "other", "web", 1, 1, "", TARGET, RULE);
    as_policy_set_begin_list(set, "shop");
    int removed = 0;
    cr_expect(as_policy_set_end_list(set, "shop", count_removed, &removed));
    cr_expect_eq(removed, 1);
    cr_expect_eq(as_policy_set_count(set), 1);
    as_policy_set_begin_list(set, NULL);
    cr_expect_not(put_object(set, "other", "web", 1, 1, "", TARGET, RULE));
    cr_expect_not(as_policy_set_end_list(set, NULL, count_removed, &removed));
    cr_expect_eq(join(set, &settings, &no_files, 0)->target_count, 1);
    as_policy_set_free(set);
}

Test(policy_set, a_policy_may_be_stricter_only)
{
    struct as_settings settings = make_settings();
    settings.defaults.dry_run = true;
    settings.defaults.approval =
        (struct as_approval_config){.is_set = true, .above = 5, .for_us = 60};
    struct as_policy_set *set = as_policy_set_new();
    (void)put_object(set, "shop", "web", 1, 1, "", TARGET ",\"dryRun\":false",
                     "{\"name\":\"up\",\"match\":[\"a=b\"],\"scaleUp\":{\"by\":1},"
                     "\"approval\":{\"none\":true}}");
    const struct as_ruleset *all = join(set, &settings, &no_files, 0);
    cr_assert_eq(all->target_count, 1);
    cr_expect(all->targets[0]->dry_run);
    cr_expect(all->rules[0]->approval.is_set);
    cr_expect_eq(all->rules[0]->approval.above, 5);
    const struct as_digest of_defaults = all->rules[0]->digest;

    /* An approval of more changes can be used no longer than the administrator's. */
    settings.defaults.approval.for_us = 20 * AS_US_PER_MIN;
    (void)put_object(set, "shop", "web", 1, 2, "", TARGET,
                     "{\"name\":\"up\",\"match\":[\"a=b\"],\"scaleUp\":{\"by\":1},"
                     "\"approval\":{\"above\":2,\"for\":\"1w\"}}");
    all = join(set, &settings, &no_files, 1);
    cr_assert_eq(all->target_count, 1);
    cr_expect_eq(all->rules[0]->approval.above, 2);
    cr_expect_eq(all->rules[0]->approval.for_us, 20 * AS_US_PER_MIN);
    cr_expect_neq(memcmp(&all->rules[0]->digest, &of_defaults, sizeof(of_defaults)), 0);
    as_policy_set_free(set);
}

Test(policy_set, annotations_pause_and_new_settings_judge_anew)
{
    struct as_settings settings = make_settings(), others = make_settings();
    others.objects.allows_unrestricted_queries = true;
    others.prometheus.url = "http://prometheus";
    struct as_policy_set *set = as_policy_set_new();
    (void)put_object(set, "shop", "web", 1, 1, "", TARGET, QUERIES);
    (void)join(set, &settings, &no_files, 0);
    cr_reason(set, "shop/web", AS_POLICY_QUERIES_NOT_ALLOWED, "");
    const struct as_ruleset *all = join(set, &others, &no_files, 0);
    cr_reason(set, "shop/web", AS_POLICY_READY, "");
    cr_expect_eq(all->targets[0]->policy->paused, AS_WAYS_NONE);
    cr_expect(put_object(set, "shop", "web", 1, 1, "\"alertscaler.io/paused-up\":\"sale\"", TARGET,
                         QUERIES));
    all = join(set, &others, &no_files, 0);
    cr_expect_eq(all->targets[0]->policy->paused, AS_WAYS_UP);
    cr_expect_str_eq(all->targets[0]->policy->pause_reason, "sale");
    as_policy_set_free(set);
}

Test(policy_set, what_cannot_be_used_has_a_reason)
{
    struct as_settings settings = make_settings();
    settings.objects.max_policies = 1;
    struct as_policy_set *set = as_policy_set_new();
    struct as_error error = AS_ERROR_INIT;
    bool changed;
    cr_expect_eq(as_policy_set_put(set, "{\"metadata\":{}}", 15, now, &changed, &error), -EBADMSG);
    cr_expect_eq(as_policy_set_put(set, "[", 1, now, &changed, &error), -EBADMSG);
    (void)put_object(set, "shop", "a", 1, 1, "", TARGET, RULE);
    (void)put_object(set, "shop", "b", 2, 1, "", TARGET, RULE);
    static const char bare[] = "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\"}}";
    cr_assert_eq(as_policy_set_put(set, bare, strlen(bare), now, &changed, &error), 0);
    (void)join(set, &settings, &no_files, 0);
    cr_reason(set, "shop/b", AS_POLICY_TOO_MANY, "older policies");
    settings.objects.max_policies = 10;
    (void)join(set, &settings, &no_files, 0);
    cr_reason(set, "a/a", AS_POLICY_INVALID, "no `spec`");
    as_policy_set_free(set);
}

/* A broken generation scales nothing and forgets nothing, for an hour. */
Test(policy_set, a_broken_generation_pauses_the_last_one)
{
    const struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    (void)put_object(set, "shop", "web", 1, 1, "", TARGET, RULE);
    (void)join(set, &settings, &no_files, 0);
    cr_expect_eq(as_policy_set_get_deadline(set).us, AS_MONO_NEVER.us);
    for (int generation = 2; generation < 4; generation++) {
        (void)put_object(set, "shop", "web", 1, generation, "", TARGET ",\"mox\":1", RULE);
        const struct as_ruleset *all = join(set, &settings, &no_files, generation);
        cr_assert_eq(all->target_count, 1);
        cr_expect_eq(all->targets[0]->policy->paused, AS_WAYS_BOTH);
        cr_expect(strstr(all->targets[0]->policy->pause_reason, "not in force: Invalid"));
        cr_reason(set, "shop/web", AS_POLICY_INVALID, "unknown key `mox`");
    }
    cr_expect_eq(as_policy_set_get_deadline(set).us, 63 * AS_US_PER_MIN);
    cr_expect_eq(join(set, &settings, &no_files, 62)->target_count, 1);
    cr_expect_eq(join(set, &settings, &no_files, 63)->target_count, 0);
    (void)put_object(set, "shop", "web", 1, 4, "", TARGET, RULE);
    const struct as_ruleset *all = join(set, &settings, &no_files, 64);
    cr_assert_eq(all->target_count, 1);
    cr_expect_eq(all->targets[0]->policy->paused, AS_WAYS_NONE);
    as_policy_set_free(set);
}

/* After a restart the generation before is not known: its stored state waits by name. */
Test(policy_set, what_is_stored_of_a_policy_waits_for_it)
{
    const struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    const struct as_ruleset *all =
        as_policy_set_join(set, &(struct as_policy_join){&settings, &no_files, {0}, false});
    cr_expect(as_ruleset_awaits(all, "shop/web"));
    cr_expect_not(as_ruleset_awaits(all, "web"));
    (void)put_object(set, "shop", "web", 1, 2, "", TARGET ",\"mox\":1", RULE);
    all = join(set, &settings, &no_files, 0);
    cr_expect(as_ruleset_awaits(all, "shop/web"));
    cr_expect_not(as_ruleset_awaits(all, "shop/other"));
    cr_expect_not(as_ruleset_awaits(join(set, &settings, &no_files, 60), "shop/web"));
    as_policy_set_free(set);
}

Test(policy_set, another_autoscaler_of_the_object_pauses)
{
    const struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    (void)put_object(set, "shop", "web", 1, 1, "", TARGET, RULE);
    (void)join(set, &settings, &no_files, 0);
    cr_expect(as_policy_set_note_rival(set, "shop/web", "HorizontalPodAutoscaler web"));
    cr_expect_not(as_policy_set_note_rival(set, "shop/web", "HorizontalPodAutoscaler web"));
    cr_expect_not(as_policy_set_note_rival(set, "web", "HorizontalPodAutoscaler web"));
    const struct as_ruleset *all = join(set, &settings, &no_files, 0);
    cr_expect_eq(all->targets[0]->policy->paused, AS_WAYS_BOTH);
    cr_expect_str_eq(all->targets[0]->policy->pause_reason,
                     "HPAFound: HorizontalPodAutoscaler web scales the same object");
    (void)put_object(set, "shop", "web", 1, 1, "\"alertscaler.io/allow-hpa\":\"true\"", TARGET,
                     RULE);
    all = join(set, &settings, &no_files, 0);
    cr_expect_eq(all->targets[0]->policy->paused, AS_WAYS_NONE);
    as_policy_set_free(set);
}

Test(policy_set, a_policy_that_changes_too_often_is_slow)
{
    const struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    for (int generation = 1; generation <= 7; generation++)
        cr_expect(put_object(set, "shop", "web", 1, generation, "", TARGET, RULE));
    now.us = AS_US_PER_S;
    cr_expect_not(put_object(set, "shop", "web", 1, 8, "", TARGET, RULE));
    cr_expect_not(put_object(set, "shop", "web", 1, 9, "", TARGET, RULE));
    cr_expect_eq(as_policy_set_get_deadline(set).us, 10 * AS_US_PER_S);
    const struct as_policy_join early = {&settings, &no_files, {9 * AS_US_PER_S}, true};
    const struct as_policy_join late = {&settings, &no_files, {10 * AS_US_PER_S}, true};
    cr_expect_eq(as_policy_set_join(set, &early)->targets[0]->policy->generation, 7);
    cr_expect_eq(as_policy_set_get_deadline(set).us, 10 * AS_US_PER_S);
    cr_expect_eq(as_policy_set_join(set, &late)->targets[0]->policy->generation, 9);
    cr_expect_eq(as_policy_set_get_deadline(set).us, AS_MONO_NEVER.us);
    as_policy_set_free(set);
}

/* The object was deleted while its last change waited, and the list comes in pages. */
Test(policy_set, a_change_that_waits_does_not_keep_what_is_gone)
{
    const struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    int removed = 0;
    for (int generation = 1; generation <= 8; generation++)
        (void)put_object(set, "shop", "web", 1, generation, "", TARGET, RULE);
    as_policy_set_begin_list(set, NULL);
    const struct as_policy_join late = {&settings, &no_files, {10 * AS_US_PER_S}, true};
    cr_expect_eq(as_policy_set_join(set, &late)->targets[0]->policy->generation, 8);
    cr_expect(as_policy_set_end_list(set, NULL, count_removed, &removed));
    cr_expect_eq(removed, 1);
    as_policy_set_free(set);
}

/* The spec of each policy is as large as it may be. */
static void put_large(struct as_policy_set *set, const char *namespace, int number, int generation)
{
    static const char query[] = "{\"name\":\"q%d\",\"always\":true,\"track\":{\"value\":\"5\","
                                "\"query\":\"load + %08000d\"}}";
    AS_CLEANUP(as_free_p) char *name = as_xasprintf("p%d", number);
    AS_CLEANUP(as_buf_deinit) struct as_buf rules = AS_BUF_INIT_OPEN(AS_POLICY_SIZE_MAX);
    for (int i = 0; i < 30; i++) {
        as_buf_append_str(&rules, i == 0 ? "" : ",");
        as_buf_printf(&rules, query, i, i);
    }
    (void)put_object(set, namespace, name, 1, generation, "", TARGET, rules.data);
}

Test(policy_set, the_text_of_a_namespace_is_limited)
{
    struct as_settings settings = make_settings();
    settings.objects.max_policies = 1000;
    settings.objects.rules_per_policy = 50;
    struct as_policy_set *set = as_policy_set_new();
    for (int i = 0; i < 40; i++)
        put_large(set, "flood", i, 1);
    put_large(set, "shop", 0, 1);
    (void)join(set, &settings, &no_files, 0);
    cr_reason(set, "flood/p33", AS_POLICY_QUERIES_NOT_ALLOWED, "");
    cr_reason(set, "flood/p39", AS_POLICY_LIMIT_EXCEEDED, "of namespace flood more than 8 MiB");
    cr_reason(set, "shop/p0", AS_POLICY_QUERIES_NOT_ALLOWED, "");

    /* A new generation has the room of its predecessor; a deletion makes room. */
    put_large(set, "flood", 0, 2);
    cr_expect(as_policy_set_remove(set, "flood", "p1"));
    put_large(set, "flood", 39, 1);
    (void)join(set, &settings, &no_files, 0);
    cr_reason(set, "flood/p0", AS_POLICY_QUERIES_NOT_ALLOWED, "");
    cr_reason(set, "flood/p39", AS_POLICY_QUERIES_NOT_ALLOWED, "");
    as_policy_set_free(set);
}

Test(policy_set, the_text_of_changes_that_wait_is_limited_too)
{
    struct as_settings settings = make_settings();
    settings.objects.max_policies = 1000;
    settings.objects.rules_per_policy = 50;
    struct as_policy_set *set = as_policy_set_new();
    for (int i = 0; i < 20; i++)
        for (int generation = 1; generation <= 8; generation++)
            put_large(set, "flood", i, generation);
    const struct as_policy_join late = {&settings, &no_files, {10 * AS_US_PER_S}, true};
    (void)as_policy_set_join(set, &late);
    cr_reason(set, "flood/p0", AS_POLICY_QUERIES_NOT_ALLOWED, "");
    cr_reason(set, "flood/p19", AS_POLICY_LIMIT_EXCEEDED, "of namespace flood more than 8 MiB");

    /* The next list has the object again, and there is room now. */
    now.us = AS_US_PER_MIN;
    put_large(set, "flood", 19, 8);
    (void)as_policy_set_join(set, &late);
    cr_reason(set, "flood/p19", AS_POLICY_QUERIES_NOT_ALLOWED, "");
    as_policy_set_free(set);
}

Test(policy_set, an_annotation_is_one_short_line)
{
    const struct as_settings settings = make_settings();
    struct as_policy_set *set = as_policy_set_new();
    AS_CLEANUP(as_free_p)
    char *annotation = as_xasprintf("\"alertscaler.io/paused\":\"a\\nb\\u001b[2J%0100000d\"", 1);
    (void)put_object(set, "shop", "web", 1, 1, annotation, TARGET, RULE);
    const struct as_ruleset *all = join(set, &settings, &no_files, 0);
    cr_assert_eq(all->target_count, 1);
    const char *reason = all->targets[0]->policy->pause_reason;
    cr_expect_lt(strlen(reason), 256);
    cr_expect_null(strchr(reason, '\n'), "%s", reason);
    as_policy_set_free(set);
}
