/* The reason codes and the gates: each has a unique word and its own meaning. */
#include <criterion/criterion.h>
#include <ctype.h>

#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/model/action.h>
#include <alertscaler/model/reason.h>

Test(reason, every_reason_has_a_snake_case_word_and_a_meaning)
{
    for (int i = 0; i < AS_REASON_COUNT; i++) {
        const char *word = as_reason_get_word((enum as_reason)i);
        cr_assert_not_null(word);
        cr_assert_gt(strlen(word), 2);
        for (const char *c = word; *c; c++)
            cr_assert(islower((unsigned char)*c) || *c == '_', "%s", word);
        const char *meaning = as_reason_get_meaning((enum as_reason)i);
        cr_assert_gt(strlen(meaning), 10, "%s", word);
        cr_expect_eq(meaning[strlen(meaning) - 1], '.', "%s", word);
        for (int k = 0; k < i; k++)
            cr_expect_str_neq(meaning, as_reason_get_meaning((enum as_reason)k));
    }
}

Test(reason, every_gate_has_words_of_its_own)
{
    for (int i = 0; i < AS_GATE_COUNT; i++) {
        cr_assert_gt(strlen(as_gate_get_meaning((enum as_gate)i)), 5);
        for (int k = 0; k < i; k++) {
            cr_expect_str_neq(as_gate_get_word((enum as_gate)i), as_gate_get_word((enum as_gate)k));
            cr_expect_str_neq(as_gate_get_meaning((enum as_gate)i),
                              as_gate_get_meaning((enum as_gate)k));
        }
    }
}

Test(reason, a_word_leads_back_to_its_reason_only)
{
    for (int i = 0; i < AS_REASON_COUNT; i++) {
        enum as_reason reason = AS_REASON_COUNT;
        cr_assert(as_reason_find(as_reason_get_word((enum as_reason)i), &reason));
        cr_assert_eq((int)reason, i, "%s comes twice", as_reason_get_word((enum as_reason)i));
    }
}

Test(reason, what_is_no_word_is_not_found)
{
    static const char *const others[] = {"", "Scaled", "scaled ", "scale", "ok"};
    enum as_reason reason = AS_REASON_BUDGET;

    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++)
        cr_assert_not(as_reason_find(others[i], &reason), "%s", others[i]);
    cr_assert_eq(reason, AS_REASON_BUDGET);
}

Test(reason, actions_and_kinds_of_targets_have_the_words_of_the_rule_files)
{
    cr_assert_str_eq(as_action_kind_get_word(AS_ACTION_SCALE_UP), "scale_up");
    cr_assert_str_eq(as_action_kind_get_word(AS_ACTION_SCALE_DOWN), "scale_down");
    cr_assert_str_eq(as_action_kind_get_word(AS_ACTION_SCALE_TO), "scale_to");
    cr_assert_str_eq(as_action_kind_get_word(AS_ACTION_TRACK), "track");
    cr_assert_str_eq(as_action_kind_get_word(AS_ACTION_PASS_THROUGH), "pass_through");
    cr_assert_str_eq(as_target_kind_kubernetes.word, "kubernetes");
    cr_assert_str_eq(as_target_kind_node_group.word, "node_group");
}
