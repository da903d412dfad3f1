/*
 * Alertmanager's routing: an alert goes down the tree. It goes to every child that matches, but not
 * to those after a matching child without `continue`. It stays at a route only if no child matches.
 */
#include "lint_alertmanager.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

/* Whether every alert that satisfies the list enters `route`. */
static bool takes_all(const struct lint_route *route, const struct matcher_list *list)
{
    for (size_t i = 0; i < route->matcher_count; i++) {
        if (!matcher_list_implies(list, &route->matchers[i]))
            return false;
    }
    return !route->is_unclear;
}

static const struct lint_route *find_taker(const struct lint_route *route,
                                           const struct matcher_list *list)
{
    for (const struct lint_route *child = route->youngest; child; child = child->elder) {
        if (takes_all(child, list))
            return child;
    }
    for (const struct lint_route *at = route; at; at = at->parent) {
        for (const struct lint_route *elder = at->elder; elder; elder = elder->elder) {
            if (!elder->continues && takes_all(elder, list))
                return elder;
        }
    }
    return NULL;
}

enum lint_reach lint_find_way(const struct lint_route *route, const struct as_matcher *matchers,
                              size_t count, struct lint_way *way_out)
{
    AS_CLEANUP(matcher_list_deinit) struct matcher_list list = {.items = NULL};
    size_t pair[2];
    *way_out = (struct lint_way){.taker = NULL};
    matcher_list_add(&list, matchers, count);
    const struct lint_route *at = route;
    do
        matcher_list_add(&list, at->matchers, at->matcher_count);
    while ((at = at->parent));
    if (matcher_list_find_conflict(&list, pair)) {
        way_out->refuser = pair[0] < count ? list.items[pair[1]] : NULL;
        return LINT_REFUSED;
    }
    way_out->taker = find_taker(route, &list);
    return way_out->taker ? LINT_TAKEN : LINT_REACHED;
}

bool lint_takes_all(const struct lint_route *route, const struct as_matcher *matchers, size_t count)
{
    AS_CLEANUP(matcher_list_deinit) struct matcher_list list = {.items = NULL};
    matcher_list_add(&list, matchers, count);
    for (const struct lint_route *at = route; at; at = at->parent) {
        if (!takes_all(at, &list))
            return false;
    }
    return true;
}

bool lint_groups_by(const struct lint_route *route, const char *label)
{
    const struct as_yaml_node *list = route->group_list;
    for (uint32_t i = 0; list && i < list->count; i++) {
        if (list->items[i]->kind == AS_YAML_SCALAR && strcmp(list->items[i]->text, label) == 0)
            return true;
    }
    return false;
}

bool lint_groups_all(const struct lint_route *route)
{
    return lint_groups_by(route, "...");
}

int64_t lint_get_repeat(const struct lint_route *route)
{
    int64_t group = route->group_interval.us, repeat = route->repeat_interval.us;
    if (group <= 0 || repeat % group == 0)
        return repeat;
    return repeat + (group - repeat % group);
}

/* The end of a matcher in a list: a comma outside quotes, or the text's end. */
static const char *find_end(const char *at, const char *end)
{
    bool is_quoted = false;
    for (; at < end && (is_quoted || *at != ','); at++) {
        if (*at == '"')
            is_quoted = !is_quoted;
        else if (*at == '\\' && is_quoted && at + 1 < end)
            at++;
    }
    return at;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool lint_parse_matchers(const char *text, struct as_matcher **matchers_io, size_t *count_io,
                         size_t *capacity_io)
{
    const char *end = text + strlen(text);
    while (is_space(*text))
        text++;
    while (end > text && is_space(end[-1]))
        end--;
    if (end - text >= 2 && *text == '{' && end[-1] == '}') {
        text++;
        end--;
    }
    while (text < end) {
        const char *stop = find_end(text, end);
        struct as_matcher matcher;
        AS_CLEANUP(as_free_p) char *one = as_xstrndup(text, (size_t)(stop - text));
        bool is_last_comma = stop == end && one[strspn(one, " \t\r\n")] == '\0';
        if (is_last_comma)
            return true;
        if (as_matcher_init(&matcher, one, NULL) < 0)
            return false;
        *matchers_io = as_xgrow(*matchers_io, *count_io, capacity_io, sizeof(matcher));
        (*matchers_io)[(*count_io)++] = matcher;
        text = stop < end ? stop + 1 : end;
    }
    return true;
}
