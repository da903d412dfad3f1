/*
 * Patterns of names, and who may trigger what.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/model/scope.h>

Test(scope, a_star_stands_for_any_text_and_everything_else_for_itself)
{
    static const struct {
        const char *pattern, *text;
        bool is_match;
    } rows[] = {
        {"web", "web", true},
        {"web", "web2", false},
        {"web", "we", false},
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything at all", true},
        {"web-*", "web-", true},
        {"web-*", "web-shop", true},
        {"web-*", "a-web-shop", false},
        {"*-shop", "web-shop", true},
        {"*-shop", "web-shop-2", false},
        {"a*b*c", "abc", true},
        {"a*b*c", "a-b-b-c", true},
        {"a*b*c", "a-b-b", false},
        {"*aab", "aaab", true},
        {"**", "x", true},
        {"w?b", "web", false},
        {"[w]eb", "web", false},
        {"Web", "web", false},
        {"kubernetes/*/shop/*", "kubernetes/default/shop/Deployment/web", true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_eq(as_scope_match(rows[i].pattern, rows[i].text), rows[i].is_match, "%s, %s",
                     rows[i].pattern, rows[i].text);
}

/* Many stars and a text that almost matches: a naive matcher would not come back. */
Test(scope, a_hostile_pattern_takes_no_time, .timeout = 5)
{
    char pattern[201], text[10001];
    for (size_t i = 0; i < 200; i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[200] = '\0';
    memset(text, 'a', 10000);
    text[9999] = 'b';
    text[10000] = '\0';
    cr_expect_not(as_scope_match(pattern, text));
}

Test(scope, both_the_rule_and_the_target_must_be_allowed)
{
    static const char *const web[] = {"web-*", "checkout"};
    static const char *const shop[] = {"shop", "kubernetes/default/shop/*"};
    static const char *const star[] = {"*"}, *const stars[] = {"*", "kubernetes*"};
    static const char *const of_shop[] = {"shop/*"};
    static const struct as_scope scopes[] = {
        {.credential = "everything"},
        {.credential = "rules", .rules = web, .rule_count = 2},
        {.credential = "targets", .targets = shop, .target_count = 2},
        {.credential = "both", .rules = web, .rule_count = 2, .targets = shop, .target_count = 2},
        {.credential = "stars",
         .rules = star,
         .rule_count = 1,
         .targets = stars,
         .target_count = 2},
        {.credential = "policies",
         .rules = of_shop,
         .rule_count = 1,
         .targets = of_shop,
         .target_count = 1},
    };
    static const struct {
        const char *credential, *rule /* NULL: an order */, *name, *id;
        bool is_allowed;
    } rows[] = {
        {"", "any", "any", "any", true},
        {"everything", "any", "any", "any", true},
        {"removed", "web-slow", "shop", "shop", false},
        {"Everything", "web-slow", "shop", "shop", false},
        {"rules", "web-slow", "any", "any", true},
        {"rules", "checkout", "any", "any", true},
        {"rules", "db-slow", "any", "any", false},
        {"targets", "any", "shop", "other", true},
        {"targets", NULL, "shop", "other", true},
        {"targets", NULL, NULL, "kubernetes/default/shop/Deployment/web", true},
        {"targets", NULL, NULL, "other", false},
        {"stars", "web", "web", "kubernetes/default/shop/Deployment/web", true},
        {"stars", "shop/web/busy", "web", "any", false},
        {"stars", "web", "shop/web", "kubernetes/default/shop/Deployment/web", false},
        {"stars", NULL, "shop/web", "kubernetes/default/shop/Deployment/web", false},
        {"stars", NULL, NULL, "kubernetes/default/shop/Deployment/web", false},
        {"stars", NULL, "", "kubernetes/default/shop/Deployment/web", false},
        {"policies", "shop/web/busy", "shop/web", "x/y", true},
        {"policies", "bank/web/busy", "shop/web", "x/y", false},
        {"policies", "shop/web/busy", "bank/web", "x/y", false},
        {"policies", NULL, "shop/web", "x/y", true},
        {"policies", "web", "web", "web", false},
        {"rules", NULL, "shop/web", "x/y", true},
        {"everything", "shop/web/busy", "shop/web", "x/y", true},
        {"rules", NULL, "any", "any", true},
        {"removed", NULL, "shop", "shop", false},
        {"", NULL, NULL, "any", true},
        {"targets", "any", "other", "kubernetes/default/shop/Deployment/web", true},
        {"targets", "any", "other", "kubernetes/default/bank/Deployment/web", false},
        {"both", "web-slow", "shop", "x", true},
        {"both", "web-slow", "bank", "x", false},
        {"both", "db-slow", "shop", "x", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_eq(rows[i].rule
                         ? as_scope_allows(scopes, AS_ARRAY_SIZE(scopes), rows[i].credential,
                                           rows[i].rule, rows[i].name, rows[i].id)
                         : as_scope_allows_target(scopes, AS_ARRAY_SIZE(scopes), rows[i].credential,
                                                  rows[i].name, rows[i].id),
                     rows[i].is_allowed, "row %zu", i);
    cr_expect_not(as_scope_allows(NULL, 0, "any", "r", "t", "t"));
}

Test(scope, two_patterns_meet_where_one_text_satisfies_both)
{
    static const struct {
        const char *left, *right;
        bool meet;
    } rows[] = {
        {"a", "a", true},
        {"a", "b", false},
        {"a*", "ab", true},
        {"a*", "b", false},
        {"a*", "b*", false},
        {"a*", "ab*", true},
        {"*a", "*ba", true},
        {"*a", "*b", false},
        {"a*", "*b", true},
        {"*", "", true},
        {"a*b", "a*c", false},
        {"a*b", "ab", true},
        {"a*b", "a*x*b", true},
        {"ab*", "a*b", true},
        {"a*a", "a", false},
        {"k/*/shop/*", "k/default/v1/D/shop/*", true},
        {"k/*/shop/*", "k/default/v1/D/other/web", false},
        {"*/web", "k/default/*/*", true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_eq(as_scope_may_meet(rows[i].left, rows[i].right), rows[i].meet, "row %zu", i);
        cr_expect_eq(as_scope_may_meet(rows[i].right, rows[i].left), rows[i].meet, "row %zu", i);
    }
}

Test(scope, narrowed_credentials_have_equal_parts_of_half_of_a_limit)
{
    static const char *const any[] = {"*"};
    static const struct as_scope scopes[] = {
        {.credential = "whole"},
        {.credential = "a", .rules = any, .rule_count = 1},
        {.credential = "b", .targets = any, .target_count = 1},
    };
    cr_expect_eq(as_scope_get_part(scopes, 3, "", 100), 100);
    cr_expect_eq(as_scope_get_part(scopes, 3, "whole", 100), 100);
    cr_expect_eq(as_scope_get_part(scopes, 3, "a", 100), 25);
    cr_expect_eq(as_scope_get_part(scopes, 3, "b", 100), 25);
    cr_expect_eq(as_scope_get_part(scopes, 3, "removed", 100), 25);
    cr_expect_eq(as_scope_get_part(scopes, 2, "a", 100), 50);
    cr_expect_eq(as_scope_get_part(NULL, 0, "removed", 100), 50);
}

Test(scope, persons_whom_a_proxy_reports_have_one_scope)
{
    static const struct as_scope with[] = {{.credential = "proxy:x"},
                                           {.credential = AS_SCOPE_ALL_PROXIED}};
    static const char *const targets[] = {"web"};
    static const struct as_scope without[] = {
        {.credential = "proxy", .targets = targets, .target_count = 1}, {.credential = "*"}};
    cr_expect(as_scope_is_whole(with, 2, "proxy:ada"));
    cr_expect(as_scope_allows_target(with, 2, "proxy:ada", "web", "id"));
    cr_expect_not(as_scope_is_whole(without, 2, "proxy:ada"));
    cr_expect_not(as_scope_allows_target(without, 2, "proxy:ada", "web", "id"));
}
