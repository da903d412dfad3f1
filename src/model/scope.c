/*
 * The reach of credentials: patterns of names, and what each credential may trigger.
 */
#include <alertscaler/model/scope.h>

#include <string.h>

/* Greedy from the left: with a later `*`, earlier choices need no revision; so only the last choice
 * is ever undone. */
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

/* Two patterns with stars meet if one's beginning is a prefix of the other's, and the same holds
 * for the ends: both match anything between. */
bool as_scope_may_meet(const char *left, const char *right)
{
    const size_t left_head = strcspn(left, "*"), right_head = strcspn(right, "*");
    if (left[left_head] == '\0')
        return as_scope_match(right, left);
    if (right[right_head] == '\0')
        return as_scope_match(left, right);
    const size_t head = left_head < right_head ? left_head : right_head;
    const char *left_tail = strrchr(left, '*') + 1, *right_tail = strrchr(right, '*') + 1;
    const size_t left_size = strlen(left_tail), right_size = strlen(right_tail);
    const size_t tail = left_size < right_size ? left_size : right_size;
    return memcmp(left, right, head) == 0 &&
           memcmp(left_tail + left_size - tail, right_tail + right_size - tail, tail) == 0;
}

/* `is_of_policy`: by a pattern with a slash only. */
static bool match_any(const char *const *patterns, size_t count, const char *text,
                      bool is_of_policy)
{
    for (size_t i = 0; i < count; i++) {
        if ((!is_of_policy || strchr(patterns[i], '/')) && as_scope_match(patterns[i], text))
            return true;
    }
    return count == 0;
}

static const struct as_scope *scope_find(const struct as_scope *scopes, size_t count,
                                         const char *credential)
{
    static const struct as_scope everything = {.credential = ""};
    const bool is_proxied = strncmp(credential, AS_SCOPE_PROXIED, strlen(AS_SCOPE_PROXIED)) == 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(scopes[i].credential, is_proxied ? AS_SCOPE_ALL_PROXIED : credential) == 0)
            return &scopes[i];
    }
    return credential[0] == '\0' ? &everything : NULL;
}

static bool match_rule(const struct as_scope *scope, const char *rule)
{
    return match_any(scope->rules, scope->rule_count, rule, strchr(rule, '/') != NULL);
}

/* Names of rule files have no slash. A target without a name may have been a policy's. */
static bool match_target(const struct as_scope *scope, const char *name, const char *id)
{
    const bool is_of_policy = !name || !*name || strchr(name, '/');
    return (name && match_any(scope->targets, scope->target_count, name, is_of_policy)) ||
           match_any(scope->targets, scope->target_count, id, is_of_policy);
}

bool as_scope_allows(const struct as_scope *scopes, size_t count, const char *credential,
                     const char *rule, const char *target_name, const char *target_id)
{
    const struct as_scope *scope = scope_find(scopes, count, credential);
    return scope && match_rule(scope, rule) && match_target(scope, target_name, target_id);
}

bool as_scope_allows_target(const struct as_scope *scopes, size_t count, const char *credential,
                            const char *target_name, const char *target_id)
{
    const struct as_scope *scope = scope_find(scopes, count, credential);
    return scope && match_target(scope, target_name, target_id);
}

static bool scope_has_no_patterns(const struct as_scope *scope)
{
    return scope->rule_count == 0 && scope->target_count == 0;
}

bool as_scope_is_whole(const struct as_scope *scopes, size_t count, const char *credential)
{
    const struct as_scope *scope = scope_find(scopes, count, credential);
    return scope && scope_has_no_patterns(scope);
}

uint64_t as_scope_get_part(const struct as_scope *scopes, size_t count, const char *credential,
                           uint64_t most)
{
    uint64_t narrowed = 0;
    if (as_scope_is_whole(scopes, count, credential))
        return most;
    for (size_t i = 0; i < count; i++)
        narrowed += !scope_has_no_patterns(&scopes[i]);
    return most / 2 / (narrowed > 0 ? narrowed : 1);
}
