/*
 * Seals: right for one text, one identity and one process.
 */
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/auth/auth.h>

Test(form_token, is_right_for_what_it_was_made_for)
{
    struct as_form_key key, other_key;
    const struct as_digest alice = {{1}}, bob = {{2}};
    char token[AS_FORM_TOKEN_SIZE], wrong[AS_FORM_TOKEN_SIZE + 1];
    as_form_key_init(&key);
    as_form_key_init(&other_key);
    as_form_token_print(&key, &alice, "form", token);
    cr_expect_eq(strlen(token), AS_FORM_TOKEN_SIZE - 1);
    cr_expect(as_form_token_check(&key, &alice, "form", token));
    cr_expect_not(as_form_token_check(&key, &bob, "form", token));
    cr_expect_not(as_form_token_check(&key, &alice, "forms", token));
    cr_expect_not(as_form_token_check(&key, &alice, "", token));
    cr_expect_not(as_form_token_check(&other_key, &alice, "form", token));
    cr_expect_not(as_form_token_check(&key, &alice, "form", NULL));
    cr_expect_not(as_form_token_check(&key, &alice, "form", ""));
    for (size_t i = 0; i < strlen(token); i++) {
        memcpy(wrong, token, sizeof(token));
        wrong[i] = wrong[i] == 'A' ? 'B' : 'A';
        cr_expect_not(as_form_token_check(&key, &alice, "form", wrong));
        wrong[i] = '\0';
        cr_expect_not(as_form_token_check(&key, &alice, "form", wrong));
    }
    memcpy(wrong, token, sizeof(token));
    memcpy(wrong + strlen(token), "A", 2);
    cr_expect_not(as_form_token_check(&key, &alice, "form", wrong));
}
