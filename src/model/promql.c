/*
 * Text of PromQL: templates with sample values, and the places that servers report.
 */
#include <alertscaler/model/promql.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

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
