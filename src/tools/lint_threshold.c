/*
 * PromQL as far as a threshold needs it: quotes, parentheses, comments, words and operators. Not a
 * parser: only an obvious threshold counts.
 */
#include "lint_threshold.h"

#include <math.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '.' || (unsigned char)c >= 0x80;
}

/* The size of a literal in quotes; unclosed: up to the end of the text. */
static size_t get_quoted_size(const char *text)
{
    size_t size = 1;
    while (text[size] && text[size] != text[0]) {
        if (text[size] == '\\' && text[0] != '`' && text[size + 1])
            size++;
        size++;
    }
    return text[size] ? size + 1 : size;
}

/* Without comments; spaces are kept only between two words. */
static char *copy_tight(struct as_arena *arena, const char *text)
{
    char *copy = as_arena_alloc(arena, strlen(text) + 1, 1), *out = copy;
    bool is_apart = false;
    while (*text) {
        if (*text == '#') {
            text += strcspn(text, "\n");
        } else if (strchr(" \t\r\n", *text)) {
            is_apart = true;
            text++;
        } else {
            size_t size = strchr("\"'`", *text) ? get_quoted_size(text) : 1;
            if (is_apart && out > copy && is_word(out[-1]) && is_word(*text))
                *out++ = ' ';
            memcpy(out, text, size);
            out += size;
            text += size;
            is_apart = false;
        }
    }
    *out = '\0';
    return copy;
}

/* `and`, `or`, `unless`, `bool`: then the expression is more than one comparison. */
static bool is_connective(const char *word, size_t size)
{
    static const char *const words[] = {"and", "or", "unless", "bool"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        bool is_same = strlen(words[i]) == size;
        for (size_t k = 0; is_same && k < size; k++)
            is_same = (word[k] | 0x20) == words[i][k];
        if (is_same)
            return true;
    }
    return false;
}

static size_t get_operator_size(const char *at)
{
    if (at[0] == '>' || at[0] == '<' || at[0] == '=' || at[0] == '!')
        return at[1] == '=' || at[1] == '~' ? 2 : 1;
    return 0;
}

/* The only comparison outside all brackets. NULL: none, or several. */
static const char *find_comparison(const char *text)
{
    const char *found = NULL;
    int depth = 0;
    for (const char *at = text; *at;) {
        size_t size = 1;
        if (strchr("\"'`", *at)) {
            size = get_quoted_size(at);
        } else if (strchr("([{", *at)) {
            depth++;
        } else if (strchr(")]}", *at)) {
            depth--;
        } else if (is_word(*at)) {
            while (is_word(at[size]))
                size++;
            if (depth == 0 && is_connective(at, size))
                return NULL;
        } else if (depth == 0 && get_operator_size(at) > 0) {
            if (found)
                return NULL;
            found = at;
            size = get_operator_size(at);
        }
        at += size;
    }
    return found;
}

static void set_bounds(struct threshold *threshold, char op, bool has_equal, double number)
{
    threshold->low = op == '<' ? -INFINITY : number;
    threshold->high = op == '>' ? INFINITY : number;
    threshold->is_low_out = op == '>' && !has_equal;
    threshold->is_high_out = op == '<' && !has_equal;
}

struct threshold threshold_parse(struct as_arena *arena, const char *expression)
{
    struct threshold threshold = {.subject = NULL};
    char *text = copy_tight(arena, expression);
    const char *comparison = find_comparison(text);
    if (!comparison || comparison == text)
        return threshold;
    size_t at = (size_t)(comparison - text), size = get_operator_size(comparison);
    char op = text[at];
    bool has_equal = text[at + 1] == '=';
    char *right = text + at + size;
    if (op == '!' || (op == '=' && !has_equal) || text[at + size - 1] == '~')
        return threshold;

    double number = 0;
    text[at] = '\0';
    bool is_number_left = as_number_parse_double(text, at, &number) == 0;
    if (is_number_left && op != '=')
        op = op == '<' ? '>' : '<';
    if (!is_number_left && as_number_parse_double(right, strlen(right), &number) < 0)
        return threshold;
    threshold.subject = is_number_left ? right : text;
    set_bounds(&threshold, op, has_equal, number);
    if (!*threshold.subject)
        threshold.subject = NULL;
    return threshold;
}

bool threshold_overlaps(const struct threshold *a, const struct threshold *b)
{
    if (!a->subject || !b->subject || strcmp(a->subject, b->subject) != 0)
        return false;
    double low = fmax(a->low, b->low), high = fmin(a->high, b->high);
    bool is_low_out = (a->low >= low && a->is_low_out) || (b->low >= low && b->is_low_out);
    bool is_high_out = (a->high <= high && a->is_high_out) || (b->high <= high && b->is_high_out);
    return low < high || (!(low > high) && !is_low_out && !is_high_out);
}
