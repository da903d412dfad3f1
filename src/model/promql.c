/*
 * Text of PromQL: templates with sample values, places that servers report, and selectors.
 */
#include <alertscaler/model/promql.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/time.h>

#define DIGITS "0123456789"

char *as_promql_fill(const char *query, bool *has_templates_out)
{
    char *text = as_xstrdup(query), *begin = text, *end;
    *has_templates_out = false;
    while ((begin = strstr(begin, "{{")) && (end = strstr(begin, "}}"))) {
        memset(begin, 'x', (size_t)(end + 2 - begin));
        *has_templates_out = true;
    }
    return text;
}

/* "1:5: parse error: unexpected ...": line and column, and the text behind them. */
static bool promql_split_error(const char *error, size_t *line_out, size_t *column_out,
                               const char **message_out)
{
    for (const char *at = error; (at = strpbrk(at, DIGITS)); at += strspn(at, DIGITS)) {
        const char *colon = at + strspn(at, DIGITS);
        const char *end = *colon == ':' ? colon + 1 + strspn(colon + 1, DIGITS) : colon;
        if (end > colon + 1 && strncmp(end, ": ", 2) == 0) {
            *line_out = strtoul(at, NULL, 10);
            *column_out = strtoul(colon + 1, NULL, 10);
            *message_out = end + 2;
            return true;
        }
    }
    return false;
}

bool as_promql_find_place(const char *query, const char *error, size_t *offset_out,
                          const char **message_out)
{
    const char *at = query;
    size_t line, column;
    if (!promql_split_error(error, &line, &column, message_out)) {
        *message_out = error;
        return false;
    }
    for (; line > 1 && strchr(at, '\n'); line--)
        at = strchr(at, '\n') + 1;
    const size_t size = strcspn(at, "\n");
    *offset_out = (size_t)(at - query) + (column == 0 ? 0 : column - 1 < size ? column - 1 : size);
    return true;
}

/*
 * Selectors: a scan of the tokens. It understands only as much as it needs to say which name is a
 * metric, which function it is the argument of, and how long its range is. A text that it does not
 * understand has fewer selectors, never wrong ones.
 */

#define NESTING_MAX 64 /* of parentheses; deeper ones have no function */

struct promql_text {
    const char *data;
    size_t size;
};

struct promql_scan {
    const char *query, *at;
    struct promql_text functions[NESTING_MAX]; /* before each open parenthesis; size 0: none */
    size_t depth;
};

static bool promql_is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}

static bool promql_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *promql_skip_name(const char *at)
{
    while (promql_is_name_start(*at) || promql_is_digit(*at))
        at++;
    return at;
}

static const char *promql_skip_string(const char *at)
{
    const char quote = *at++;
    while (*at && *at != quote) {
        if (*at == '\\' && quote != '`' && at[1])
            at++;
        at++;
    }
    return *at ? at + 1 : at;
}

static const char *promql_skip_comment(const char *at)
{
    return at + strcspn(at, "\n");
}

static const char *promql_skip_space(const char *at)
{
    for (;;) {
        at += strspn(at, " \t\r\n");
        if (*at != '#')
            return at;
        at = promql_skip_comment(at);
    }
}

/* Behind the bracket that ends what begins here; strings and comments may have any bracket. */
static const char *promql_skip_to(const char *at, char end)
{
    while (*at && *at != end) {
        if (*at == '#')
            at = promql_skip_comment(at);
        else if (strchr("\"'`", *at))
            at = promql_skip_string(at);
        else
            at++;
    }
    return *at ? at + 1 : at;
}

static bool promql_is(const struct promql_text *text, const char *const *words)
{
    for (; *words; words++) {
        if (strlen(*words) == text->size && strncasecmp(text->data, *words, text->size) == 0)
            return true;
    }
    return false;
}

/* 0: it is no plain duration, but an expression or a step of MetricsQL. */
static int64_t promql_parse_duration(const char *at, size_t size)
{
    char text[AS_DURATION_SIZE];
    int64_t us;
    if (size >= sizeof(text))
        return 0;
    memcpy(text, at, size);
    text[size] = '\0';
    return as_duration_parse(text, &us, NULL) == 0 ? us : 0;
}

/* The range behind a selector, and what follows it; 0: none, or a subquery. */
static int64_t promql_scan_range(struct promql_scan *scan)
{
    const char *begin = promql_skip_space(scan->at);
    if (*begin != '[')
        return 0;
    begin++;
    scan->at = promql_skip_to(begin, ']');
    const size_t size = strcspn(begin, "]");
    const char *from = begin + strspn(begin, " \t\r\n");
    const size_t used = (size_t)(from - begin);
    const size_t word = used < size ? strcspn(from, " \t\r\n]") : 0;
    const bool is_alone = strspn(from + word, " \t\r\n") == size - used - word;
    return is_alone ? promql_parse_duration(from, word) : 0;
}

static struct promql_text promql_get_function(const struct promql_scan *scan)
{
    for (size_t i = scan->depth < NESTING_MAX ? scan->depth : 0; i > 0; i--) {
        if (scan->functions[i - 1].size > 0)
            return scan->functions[i - 1];
    }
    return (struct promql_text){"", 0};
}

/* `name`: before the matchers, which may follow; size 0: there are only matchers. */
static void promql_scan_selector(struct promql_scan *scan, struct promql_text name,
                                 as_promql_selector_fn *visit, void *context)
{
    const char *matchers = promql_skip_space(scan->at);
    const struct promql_text function = promql_get_function(scan);
    const size_t offset = (size_t)(name.data - scan->query);
    if (*matchers == '{')
        scan->at = promql_skip_to(matchers + 1, '}');
    const int64_t range_us = promql_scan_range(scan);
    if (name.size > 0)
        visit(context, &(struct as_promql_selector){.name = name.data,
                                                    .name_size = name.size,
                                                    .function = function.data,
                                                    .function_size = function.size,
                                                    .offset = offset,
                                                    .range_us = range_us});
}

/* Words that a list of labels may follow, and words between operands. */
static const char *const label_words[] = {"by",         "without",     "on", "ignoring",
                                          "group_left", "group_right", NULL};
static const char *const other_words[] = {"and",
                                          "or",
                                          "unless",
                                          "bool",
                                          "offset",
                                          "atan2",
                                          "inf",
                                          "nan",
                                          "start",
                                          "end",
                                          "keep_metric_names",
                                          "default",
                                          "if",
                                          "ifnot",
                                          "limit",
                                          NULL};

static void promql_scan_name(struct promql_scan *scan, as_promql_selector_fn *visit, void *context)
{
    const char *begin = scan->at;
    scan->at = promql_skip_name(begin);
    const struct promql_text name = {begin, (size_t)(scan->at - begin)};
    const char *next = promql_skip_space(scan->at);
    if (promql_is(&name, label_words)) {
        if (*next == '(')
            scan->at = promql_skip_to(next + 1, ')');
        return;
    }
    if (promql_is(&name, other_words))
        return;
    if (*next == '(') {
        if (scan->depth < NESTING_MAX)
            scan->functions[scan->depth] = name;
        scan->depth++;
        scan->at = next + 1;
        return;
    }
    const struct promql_text follows = {next, (size_t)(promql_skip_name(next) - next)};
    if (promql_is(&follows, label_words) && follows.size > 0 &&
        *promql_skip_space(next + follows.size) == '(' && strncasecmp(next, "on", 2) != 0 &&
        strncasecmp(next, "ig", 2) != 0 && strncasecmp(next, "gr", 2) != 0)
        return; /* sum by (pod) (...): an aggregation */
    promql_scan_selector(scan, name, visit, context);
}

void as_promql_visit_selectors(const char *query, as_promql_selector_fn *visit, void *context)
{
    struct promql_scan scan = {.query = query, .at = query};
    for (;;) {
        scan.at = promql_skip_space(scan.at);
        const char c = *scan.at;
        if (c == '\0')
            return;
        if (promql_is_name_start(c)) {
            promql_scan_name(&scan, visit, context);
        } else if (promql_is_digit(c)) { /* also 5m, 0x1f, 1e3 */
            while (promql_is_digit(*scan.at) || promql_is_name_start(*scan.at) || *scan.at == '.')
                scan.at++;
        } else if (strchr("\"'`", c)) {
            scan.at = promql_skip_string(scan.at);
        } else if (c == '{') {
            promql_scan_selector(&scan, (struct promql_text){scan.at, 0}, visit, context);
        } else if (c == '[') { /* of a subquery */
            scan.at = promql_skip_to(scan.at + 1, ']');
        } else {
            if (c == '(' && scan.depth < NESTING_MAX)
                scan.functions[scan.depth] = (struct promql_text){"", 0};
            scan.depth += c == '(';
            scan.depth -= c == ')' && scan.depth > 0;
            scan.at++;
        }
    }
}

bool as_promql_has_text(const char *query, const char *text)
{
    const size_t size = strlen(text);
    for (const char *at = query; *at;) {
        if (*at == '#') {
            at = promql_skip_comment(at);
        } else if (strchr("\"'`", *at)) {
            const char *end = promql_skip_string(at);
            const char *found = strstr(at, text);
            if (found && found + size <= end)
                return true;
            at = end;
        } else if (strncmp(at, text, size) == 0) {
            return true;
        } else {
            at++;
        }
    }
    return false;
}
