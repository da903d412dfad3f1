/*
 * From the name of a metric back to the series that prometheus-adapter makes it of: the inverse of
 * `name.as` and `name.matches`. What is found is held against all that the rule asks of a series.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/regex.h>
#include <alertscaler/base/str.h>

#include "adapter_parts.h"

#define NAME_MATCHERS_MAX 8

/* The matchers of a `seriesQuery` on the name of the series. */
struct name_matcher {
    bool is_regex, is_negative;
    char *value;
};

struct series_query {
    struct name_matcher matchers[NAME_MATCHERS_MAX];
    size_t count;
    const char *label; /* that is looked for */
    bool has_label;    /* a matcher on it */
};

static void series_query_deinit(struct series_query *query)
{
    for (size_t i = 0; i < query->count; i++)
        as_free_p(&query->matchers[i].value);
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:"
#define SPACE   " \t\r\n"

/* A string with its quotes; returns what is behind it. NULL: none. */
static const char *read_string(const char *at, char **value_out)
{
    const char quote = *at;
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(4096);
    if (!quote || !strchr("\"'`", quote))
        return NULL;
    for (at++; *at && *at != quote; at++) {
        if (*at == '\\' && quote != '`' && at[1])
            at++;
        as_buf_append_char(&out, *at);
    }
    size_t size = 0;
    if (*at != quote || as_buf_check(&out) < 0)
        return NULL;
    *value_out = as_buf_take(&out, &size);
    return at + 1;
}

static bool add_matcher(struct series_query *query, bool is_regex, bool is_negative, char *value)
{
    if (query->count == NAME_MATCHERS_MAX) {
        as_free_p(&value);
        return false;
    }
    query->matchers[query->count++] = (struct name_matcher){is_regex, is_negative, value};
    return true;
}

static const char *read_matcher(struct series_query *query, const char *at)
{
    const size_t size = strspn(at, LETTERS);
    const bool is_name = size == strlen("__name__") && strncmp(at, "__name__", size) == 0;
    char *value = NULL;
    query->has_label = query->has_label || (query->label && strlen(query->label) == size &&
                                            strncmp(at, query->label, size) == 0);
    at += size;
    at += strspn(at, SPACE);
    const bool is_negative = *at == '!', is_regex = at[0] && at[1] == '~';
    if (size == 0 || (*at != '=' && *at != '!') || (is_negative && at[1] != '=' && !is_regex))
        return NULL;
    at += is_negative || is_regex ? 2 : 1;
    at = read_string(at + strspn(at, SPACE), &value);
    if (at && is_name)
        return add_matcher(query, is_regex, is_negative, value) ? at : NULL;
    as_free_p(&value);
    return at;
}

/* name{label="x", __name__=~"y"}; false: it is not of this form. */
static bool read_series_query(struct series_query *query, const char *at)
{
    at += strspn(at, SPACE);
    const size_t size = strspn(at, LETTERS);
    if (size > 0)
        add_matcher(query, false, false, as_xstrndup(at, size));
    at += size;
    at += strspn(at, SPACE);
    if (*at == '{') {
        at++;
        while (at && *(at += strspn(at, SPACE ",")) != '}')
            at = read_matcher(query, at);
        if (!at)
            return false;
        at++;
    }
    return at[strspn(at, SPACE)] == '\0' && query->count > 0;
}

/* NULL: the rule does not say one name. */
static const char *get_exact(const struct series_query *query)
{
    for (size_t i = 0; i < query->count; i++) {
        if (!query->matchers[i].is_regex && !query->matchers[i].is_negative)
            return query->matchers[i].value;
    }
    return NULL;
}

/* --- regular expressions of Go, which are not anchored --- */

static bool matches_whole(const char *pattern, const char *text)
{
    AS_CLEANUP(as_regex_free_p) struct as_regex *regex = NULL;
    return as_regex_new(pattern, &regex, NULL) == 0 && as_regex_match(regex, text);
}

static bool matches_part(const char *pattern, const char *text)
{
    AS_CLEANUP(as_free_p) char *anywhere = as_xasprintf(".*(?:%s).*", pattern);
    return matches_whole(anywhere, text);
}

static bool accepts(const struct adapter_rule *rule, const struct series_query *query,
                    const char *series)
{
    for (size_t i = 0; i < query->count; i++) {
        const struct name_matcher *matcher = &query->matchers[i];
        const bool fits = matcher->is_regex ? matches_whole(matcher->value, series)
                                            : strcmp(matcher->value, series) == 0;
        if (fits == matcher->is_negative)
            return false;
    }
    for (size_t i = 0; i < rule->filter_count; i++) {
        const struct raw_filter *filter = &rule->filters[i];
        if ((filter->is && !matches_part(filter->is, series)) ||
            (filter->is_not && matches_part(filter->is_not, series)))
            return false;
    }
    return promql_is_metric(series) &&
           (!rule->naming.matches || matches_part(rule->naming.matches, series));
}

/* --- names --- */

/* A pattern around its only group: head(inner)tail. */
struct pattern {
    const char *head, *inner, *tail;
    unsigned groups;
};

static const char *find_group_end(const char *at)
{
    unsigned depth = 1;
    for (; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '(')
            depth++;
        else if (*at == ')' && --depth == 0)
            return at;
    }
    return NULL;
}

static struct pattern split_pattern(struct convert *convert, const char *text)
{
    struct pattern pattern = {.head = text};
    for (const char *at = text; *at; at++) {
        if (*at == '\\' && at[1]) {
            at++;
            continue;
        }
        const char *end = *at == '(' && at[1] != '?' ? find_group_end(at + 1) : NULL;
        if (!end)
            continue;
        if (pattern.groups++ == 0) {
            pattern.head = convert_text(convert, "%.*s", (int)(at - text), text);
            pattern.inner = convert_text(convert, "%.*s", (int)(end - at - 1), at + 1);
            pattern.tail = end + 1;
        }
    }
    return pattern;
}

/* `as`: text, one reference to a group, text. */
struct naming {
    const char *before, *after;
    int group; /* -1: no reference; -2: several, or by a name */
};

static struct naming split_as(struct convert *convert, const char *as)
{
    const char *dollar = strchr(as, '$');
    struct naming naming = {.before = as, .after = "", .group = -1};
    if (!dollar)
        return naming;
    naming.group = -2;
    const bool is_braced = dollar[1] == '{';
    const char *digit = dollar + 1 + is_braced;
    const char *end = digit + strspn(digit, "0123456789"
                                            "abcdefghijklmnopqrstuvwxyz"
                                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    if (end - digit != 1 || (*digit != '0' && *digit != '1') || (is_braced && *end != '}') ||
        strchr(end, '$'))
        return naming;
    naming.before = convert_text(convert, "%.*s", (int)(dollar - as), as);
    naming.after = end + is_braced;
    naming.group = *digit - '0';
    return naming;
}

/* What the reference stands for in this name; NULL: the name is not of this form. */
static const char *cut(struct convert *convert, const struct naming *naming, const char *metric)
{
    const size_t before = strlen(naming->before), after = strlen(naming->after);
    const size_t size = strlen(metric);
    if (size <= before + after || !as_str_starts_with(metric, naming->before) ||
        strcmp(metric + size - after, naming->after) != 0)
        return NULL;
    return convert_text(convert, "%.*s", (int)(size - before - after), metric + before);
}

/* The text that a part of a pattern stands for; false: it may stand for several. */
static bool append_plain(struct as_buf *out, const char *part)
{
    for (; *part; part++) {
        if (*part == '\\' && part[1] && strchr("\\.+*?()|[]{}^$-_", part[1]))
            part++;
        else if (strchr("\\.+*?()|[]{}^$", *part))
            return false;
        as_buf_append_char(out, *part);
    }
    return true;
}

/* head and tail are plain, but for anchors. */
static const char *join(struct convert *convert, const struct pattern *pattern, const char *middle)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(1024);
    const size_t tail = strlen(pattern->tail);
    const bool is_anchored = tail > 0 && pattern->tail[tail - 1] == '$';
    const char *end = convert_text(convert, "%.*s", (int)(tail - is_anchored), pattern->tail);
    if (!append_plain(&out, pattern->head + (*pattern->head == '^')))
        return NULL;
    as_buf_append_str(&out, middle);
    if (!append_plain(&out, end) || as_buf_check(&out) < 0)
        return NULL;
    return as_arena_strdup(&convert->arena, out.data);
}

/* Whether the group of the pattern is `middle` in this series. */
static bool has_group(const struct pattern *pattern, const char *series, const char *middle)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf literal = AS_BUF_INIT(4096);
    promql_append_literal(&literal, middle);
    AS_CLEANUP(as_free_p)
    char *whole = as_xasprintf("%s(?:%s)%s", pattern->head, literal.data, pattern->tail);
    return matches_part(whole, series);
}

#define RANK_LABEL 1U /* the series has a matcher on the label of the resource */
#define RANK_EXACT ADAPTER_CERTAIN

static void invert(struct convert *convert, const struct adapter_rule *rule, const char *exact,
                   const char *metric, struct adapter_trace *trace)
{
    const char *matches = rule->naming.matches ? rule->naming.matches : ".*";
    const struct pattern pattern = split_pattern(convert, matches);
    const char *as = rule->naming.as ? rule->naming.as : pattern.groups == 0 ? "$0" : "$1";
    const struct naming naming = split_as(convert, as);
    if (naming.group == -1) {
        trace->series = strcmp(as, metric) == 0 ? exact : NULL;
        if (strcmp(as, metric) == 0 && !exact) {
            trace->why = "its `seriesQuery` does not name one series, and only Prometheus knows "
                         "which there are";
            trace->rank = RANK_EXACT | RANK_LABEL;
        }
        return;
    }
    const char *middle = naming.group >= 0 ? cut(convert, &naming, metric) : NULL;
    if (naming.group >= 0 && !middle)
        return;
    trace->why = "its `name` cannot be traced back to a series: only one `$0` or `${1}` in `as` "
                 "can, and one group with plain text around it in `matches`";
    if (naming.group == 0)
        trace->series = matches_whole(matches, middle) ? middle : NULL;
    else if (naming.group != 1 || pattern.groups != 1)
        return;
    else if (!matches_whole(pattern.inner, middle))
        trace->why = NULL;
    else if (!exact)
        trace->series = join(convert, &pattern, middle);
    else if (has_group(&pattern, exact, middle))
        trace->series = exact;
    else
        trace->why = NULL;
}

struct adapter_trace adapter_trace_series(struct convert *convert, const struct adapter_rule *rule,
                                          const char *label, const char *metric)
{
    AS_CLEANUP(series_query_deinit) struct series_query query = {.label = label};
    struct adapter_trace trace = {.series = NULL};
    if (!read_series_query(&query, rule->series_query)) {
        trace.why = "its `seriesQuery` is not of the form name{label=\"value\"}";
        return trace;
    }
    invert(convert, rule, get_exact(&query), metric, &trace);
    if (trace.series && !accepts(rule, &query, trace.series))
        return (struct adapter_trace){.series = NULL};
    if (trace.series) {
        trace.rank = (query.has_label ? RANK_LABEL : 0U) | (get_exact(&query) ? RANK_EXACT : 0U);
        trace.series = as_arena_strdup(&convert->arena, trace.series);
    }
    return trace;
}
