/*
 * What a credential may trigger.
 */
#include <alertscaler/core/scope.h>

#include <string.h>

/* Greedy from the left: a later `*` makes every earlier choice as good as any other, so only the
 * last one is ever taken back. */
bool as_scope_match(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = text;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

static bool match_any(const char *const *patterns, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (as_scope_match(patterns[i], text))
            return true;
    }
    return count == 0;
}

bool as_scope_allows(const struct as_scope *scopes, size_t count, const char *credential,
                     const char *rule, const char *target_name, const char *target_id)
{
    if (credential[0] == '\0')
        return true;
    for (size_t i = 0; i < count; i++) {
        const struct as_scope *scope = &scopes[i];
        if (strcmp(scope->credential, credential) == 0)
            return match_any(scope->rules, scope->rule_count, rule) &&
                   (match_any(scope->targets, scope->target_count, target_name) ||
                    match_any(scope->targets, scope->target_count, target_id));
    }
    return false;
}
