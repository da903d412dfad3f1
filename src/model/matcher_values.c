/*
 * The values of a matcher that allows only a few: an equality, or a regular expression of plain
 * words with `|` between them.
 */
#include <alertscaler/model/matcher.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

static int compare_values(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void as_matcher_values_deinit(struct as_matcher_values *values)
{
    free(values->text);
    free(values->items);
    *values = (struct as_matcher_values){.text = NULL};
}

/* Unescapes punctuation and cuts at '|'. False: more than an alternation. */
static bool split(const char *pattern, char *out, size_t *count_out)
{
    *count_out = 1;
    for (const char *at = pattern; *at; at++) {
        if (*at == '|') {
            *out++ = '\0';
            ++*count_out;
        } else if (*at == '\\' && at[1] && strchr(".+*?()|[]{}^$-/\\", at[1])) {
            *out++ = *++at;
        } else if (strchr(".+*?()[]{}^$\\", *at)) {
            return false;
        } else {
            *out++ = *at;
        }
    }
    *out = '\0';
    return true;
}

bool as_matcher_find_values(const struct as_matcher *matcher, struct as_matcher_values *values_out)
{
    if (matcher->op != AS_MATCHER_EQUAL && matcher->op != AS_MATCHER_REGEX)
        return false;

    AS_CLEANUP(as_free_p) char *text = as_xstrdup(matcher->value);
    size_t count = 1;
    if (matcher->op == AS_MATCHER_REGEX && !split(matcher->value, text, &count))
        return false;
    const char **items = as_xcalloc(count, sizeof(*items));
    const char *at = text;
    for (size_t i = 0; i < count; i++) {
        items[i] = at;
        at += strlen(at) + 1;
    }
    qsort(items, count, sizeof(*items), compare_values);
    size_t kept = 1;
    for (size_t i = 1; i < count; i++) {
        if (strcmp(items[i], items[kept - 1]) != 0)
            items[kept++] = items[i];
    }
    *values_out = (struct as_matcher_values){.text = text, .items = items, .count = kept};
    text = NULL;
    return true;
}
