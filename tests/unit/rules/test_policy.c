/* ScalingPolicy: the rule set of an object as the API server sends it, and the paths of errors. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/rules/policy.h>
#include <alertscaler/rules/settings.h>

#define POLICY(target, rules)                                                                      \
    "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\",\"metadata\":{"        \
    "\"name\":\"checkout\",\"namespace\":\"shop\"},\"spec\":{\"target\":{" target                  \
    "},\"rules\":[" rules "]}}"
#define TARGET     "\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"checkout\"},\"min\":2,\"max\":20"
#define RULE(keys) "{\"name\":\"slow\",\"match\":[\"alertname=\\\"Slow\\\"\"]," keys "}"

static struct as_ruleset *compile(const char *text, struct as_diagnostics *diagnostics)
{
    static const struct as_settings settings = {.prometheus.url = "http://prometheus"};
    struct as_ruleset *ruleset = NULL;
    const int status = as_policy_compile(&settings, text, strlen(text), &ruleset, diagnostics);
    cr_assert_eq(status == 0, ruleset != NULL);
    return ruleset;
}

static void cr_compiles(const char *text, struct as_ruleset **ruleset_out)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    *ruleset_out = compile(text, &diagnostics);
    cr_assert(*ruleset_out, "%s: %s", diagnostics.count ? diagnostics.items[0].file : "",
              diagnostics.count ? diagnostics.items[0].message : "");
    as_diagnostics_deinit(&diagnostics);
}

/* One error, at this path. */
static void cr_refused(const char *text, const char *path, const char *message)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    cr_assert_null(compile(text, &diagnostics));
    cr_assert_eq(diagnostics.count, 1, "%zu, %s", diagnostics.count,
                 diagnostics.count > 1 ? diagnostics.items[1].message : "");
    cr_assert_str_eq(diagnostics.items[0].file, path, "%s", diagnostics.items[0].message);
    cr_assert(strstr(diagnostics.items[0].message, message), "%s", diagnostics.items[0].message);
    as_diagnostics_deinit(&diagnostics);
}

Test(policy, its_target_and_rules_have_its_name)
{
    AS_CLEANUP(as_ruleset_free_p) struct as_ruleset *ruleset = NULL;
    cr_compiles(POLICY(TARGET, RULE("\"scaleUp\":{\"by\":\"50%\"},\"onResolved\":{\"giveBack\":{"
                                    "\"after\":\"1m\"}},\"guard\":{\"none\":true}")),
                &ruleset);
    cr_assert_eq(ruleset->target_count, 1);
    cr_assert_eq(ruleset->rule_count, 1);
    cr_assert_str_eq(ruleset->targets[0]->name, "shop/checkout");
    cr_assert_str_eq(ruleset->rules[0]->name, "shop/checkout/slow");
    cr_assert_eq(ruleset->targets[0]->bounds.max, 20);
}

Test(policy, quantities_are_sizes_and_thresholds)
{
    AS_CLEANUP(as_ruleset_free_p) struct as_ruleset *ruleset = NULL;
    cr_compiles(
        POLICY(TARGET, RULE("\"scaleUp\":{\"value\":{\"query\":\"up\"},\"steps\":[{\"above\":"
                            "\"500m\",\"by\":1},{\"above\":\"2k\",\"by\":\"3\"}]}")),
        &ruleset);
    const struct as_action *action = &ruleset->rules[0]->action;
    cr_assert_eq(action->step_count, 2);
    cr_assert_float_eq(action->steps[0].bound, 0.5, 1e-12);
    cr_assert_float_eq(action->steps[1].bound, 2000, 1e-12);
    cr_assert_eq(action->steps[1].amount.size, 3);
}

Test(policy, words_and_scalars_have_the_form_of_objects)
{
    AS_CLEANUP(as_ruleset_free_p) struct as_ruleset *ruleset = NULL;
    cr_compiles(POLICY(TARGET, "{\"name\":\"memory\",\"always\":true,\"track\":{\"utilization\":"
                               "\"80%\",\"of\":\"MemoryLimits\",\"perPod\":true,\"query\":\"up\"},"
                               "\"guard\":{\"none\":true},\"approval\":{\"none\":true}},"
                               "{\"name\":\"fixed\",\"match\":[\"alertname=\\\"F\\\"\"],"
                               "\"scaleTo\":{\"size\":3}}"),
                &ruleset);
    cr_assert_eq(ruleset->rule_count, 2);
    cr_assert(ruleset->rules[0]->action.track.of_limits);
    cr_assert_eq(ruleset->rules[1]->action.size, 3);
}

Test(policy, a_message_has_the_spelling_of_objects)
{
    static const struct {
        const char *text, *path, *message;
    } cases[] = {
        {POLICY(TARGET, RULE("\"scaleUp\":{\"by\":1},\"onResolved\":{\"giveBack\":{}}")),
         "spec.rules[0].onResolved", "(or `guard: {none: true}`)"},
        {POLICY(TARGET, RULE("\"scaleUp\":{\"by\":1},\"guard\":{\"query\":\"up\"}")),
         "spec.rules[0].guard", "it has `scaleUp`, and no `onResolved`"},
        {POLICY(TARGET,
                "{\"name\":\"a\",\"always\":true,\"track\":{\"utilization\":\"80%\",\"query\":"
                "\"up\",\"perPod\":true}}"),
         "spec.rules[0].track.utilization", "`utilization` needs `of`, such as `of: CpuRequests`"},
        {POLICY(TARGET ",\"schedules\":[{\"name\":\"day\",\"from\":\"08:00\",\"to\":\"20:00\","
                       "\"timezone\":\"UTC\",\"max\":3,\"end\":\"Min\"}]",
                RULE("\"scaleTo\":{\"size\":3}")),
         "spec.target.schedules[0].end", "`end: Min` needs a `min` above 0"},
        {POLICY(TARGET, RULE("\"scaleUp\":{\"by\":1},\"on_resolved\":{}")),
         "spec.rules[0].on_resolved", "unknown key `on_resolved`; did you mean `onResolved`?"},
        {POLICY(TARGET, RULE("\"hold\":\"dry_run\"")), "spec.rules[0].hold",
         "expected Down, Up or Both, found \"dry_run\""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++)
        cr_refused(cases[i].text, cases[i].path, cases[i].message);
}

Test(policy, a_field_has_one_type)
{
    static const struct {
        const char *text, *path, *message;
    } cases[] = {
        {POLICY(TARGET, RULE("\"scaleTo\":3")), "spec.rules[0].scaleTo",
         "expected a map, found `3`: write `{size: N}`"},
        {POLICY(TARGET, RULE("\"scaleTo\":{\"size\":3},\"guard\":\"none\"")), "spec.rules[0].guard",
         "write `{none: true}`"},
        {POLICY(TARGET, RULE("\"scaleUp\":{\"by\":1},\"onResolved\":\"give_back\",\"guard\":{"
                             "\"none\":true}")),
         "spec.rules[0].onResolved", "write `{giveBack: {}}`"},
        {POLICY(TARGET, RULE("\"scaleUp\":{\"by\":1.5}")), "spec.rules[0].scaleUp.by",
         "expected an integer or a text, found `1.5`: write it in quotes"},
        {POLICY(TARGET ",\"cooldown\":{\"up\":0}", RULE("\"scaleTo\":{\"size\":3}")),
         "spec.target.cooldown.up", "expected a text, found `0`: write it in quotes"},
        {POLICY(TARGET ",\"enforceBounds\":\"true\"", RULE("\"scaleTo\":{\"size\":3}")),
         "spec.target.enforceBounds", "write it without quotes"},
        {POLICY("\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"web\",\"container\":\"app\","
                "\"resource\":\"memory\",\"unit\":\"64Mi\",\"apply\":\"pods\"},\"min\":\"64Mi\","
                "\"max\":\"1Gi\"",
                RULE("\"scaleTo\":{\"size\":\"512Mi\"}")),
         "spec.target.kubernetes.apply", "expected Template or Pods, found \"pods\""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++)
        cr_refused(cases[i].text, cases[i].path, cases[i].message);
}

Test(policy, an_error_has_its_path_in_the_object)
{
    static const struct {
        const char *text, *path, *message;
    } cases[] = {
        {POLICY(TARGET, RULE("\"scaleUp\":{\"by\":\"50 %\"}")), "spec.rules[0].scaleUp.by",
         "percentage"},
        {POLICY(TARGET ",\"cooldown\":{\"up\":\"soon\"}", RULE("\"scaleTo\":{\"size\":3}")),
         "spec.target.cooldown.up", "duration"},
        {POLICY(TARGET, RULE("\"scaleTo\":{\"size\":3},\"scaleUpp\":{}")), "spec.rules[0].scaleUpp",
         "unknown key `scaleUpp`; did you mean `scaleUp`?"},
        {POLICY(TARGET, RULE("\"hold\":\"down\"")), "spec.rules[0].hold",
         "expected Down, Up or Both, found \"down\"; did you mean `Down`?"},
        {POLICY("\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"checkout\",\"namespace\":"
                "\"other\"},\"max\":2",
                RULE("\"scaleTo\":{\"size\":2}")),
         "spec.target.kubernetes.namespace", "unknown key `namespace`"},
        {POLICY(TARGET, RULE("\"scaleUp\":{\"by\":1},\"onResolved\":{\"scaleDown\":{\"by\":1,"
                             "\"atLeast\":2}},\"guard\":{\"none\":true}")),
         "spec.rules[0].onResolved.scaleDown.atLeast", "`atLeast` goes with a percentage in `by`"},
        {"[]", "", "expected"},
        {"{", "", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++)
        cr_refused(cases[i].text, cases[i].path, cases[i].message);
}
