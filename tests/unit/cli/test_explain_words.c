/*
 * Every reason code and every gate has its words in `explain`.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "log/explain_words.h"

Test(explain_words, every_reason_has_a_sentence_of_its_own)
{
    for (int i = 0; i < AS_REASON_COUNT; i++) {
        const char *text = explain_reason((enum as_reason)i);
        const size_t size = strlen(text);
        cr_assert_gt(size, 10, "%s", as_reason_get_word((enum as_reason)i));
        cr_expect_eq(text[size - 1], '.', "%s", text);
        for (int k = 0; k < i; k++)
            cr_expect_str_neq(text, explain_reason((enum as_reason)k));
    }
    cr_expect_str_empty(explain_reason(AS_REASON_COUNT));
}

Test(explain_words, every_gate_has_a_phrase_of_its_own)
{
    for (int i = 0; i < AS_GATE_COUNT; i++) {
        cr_assert_gt(strlen(explain_gate((enum as_gate)i)), 5);
        for (int k = 0; k < i; k++)
            cr_expect_str_neq(explain_gate((enum as_gate)i), explain_gate((enum as_gate)k));
    }
    cr_expect_str_empty(explain_gate(AS_GATE_COUNT));
}
