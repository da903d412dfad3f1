/*
 * The regular expressions of matchers, on PCRE2, restricted to the language of RE2, which
 * Alertmanager and Prometheus use. A scan before compiling refuses every PCRE2 feature that RE2
 * lacks, and names it. (Features of both mean the same in both; PCRE2 reports the syntax errors.)
 *
 * The text comes from outside and PCRE2 backtracks, so each match has a budget of steps and memory.
 * Safe from several threads: matching does not change a compiled expression.
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include <alertscaler/base/regex.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <pcre2.h>

#include <alertscaler/base/alloc.h>

#define STEPS_MAX    100000
#define HEAP_MAX_KIB 8192

struct as_regex {
    pcre2_code *code;
    pcre2_match_context *limits;
};

static atomic_uint_fast64_t exceeded;

static int refuse(struct as_error *error, const char *pattern, const char *at, const char *reason)
{
    as_error_set(error, "regular expression, offset %zu: %s", (size_t)(at - pattern), reason);
    return -EINVAL;
}

/* Refuses what RE2 does not allow behind a backslash; all but letters and digits is allowed. */
static const char *check_escape(char escaped, bool in_class)
{
    if (escaped >= '1' && escaped <= '9')
        return "back-references are not supported";
    bool alphanumeric = (escaped >= '0' && escaped <= '9') || (escaped >= 'a' && escaped <= 'z') ||
                        (escaped >= 'A' && escaped <= 'Z');
    if (!alphanumeric || strchr("0aftnrxdDsSwWpP", escaped))
        return NULL;
    if (!in_class && strchr("AbBzQ", escaped))
        return NULL;
    return escaped == 'k' || escaped == 'g' ? "back-references are not supported"
                                            : "this escape sequence is not supported";
}

/* `at` is behind "(?". */
static const char *check_group(const char *at)
{
    if (at[0] == '=' || at[0] == '!' || (at[0] == '<' && (at[1] == '=' || at[1] == '!')))
        return "look-around is not supported";
    if (at[0] == '<' || (at[0] == 'P' && at[1] == '<'))
        return NULL;
    if (at[0] == 'P' && at[1] == '=')
        return "back-references are not supported";
    at += strspn(at, "imsU-");
    return *at == ':' || *at == ')' ? NULL : "this kind of group is not supported";
}

/* Returns the end of the class that starts at `at` ('['), or the refused place with the reason. */
static const char *skip_class(const char *at, const char **reason_out)
{
    at++;
    if (*at == '^')
        at++;
    for (bool first = true; *at && (first || *at != ']'); first = false) {
        const char *posix_end = at[0] == '[' && at[1] == ':' ? strstr(at, ":]") : NULL;
        if (posix_end) {
            at = posix_end + 2;
        } else if (*at == '\\' && at[1]) {
            *reason_out = check_escape(at[1], true);
            if (*reason_out)
                return at;
            at += 2;
        } else {
            at++;
        }
    }
    return *at ? at + 1 : at;
}

/* Size of a repetition at `at`: "*", "+", "?", "{2}", "{2,}", "{2,3}"; 0: not a repetition. */
static size_t repetition_size(const char *at)
{
    if (*at == '*' || *at == '+' || *at == '?')
        return 1;
    if (*at != '{')
        return 0;
    size_t digits = strspn(at + 1, "0123456789"), size = 1 + digits;
    if (at[size] == ',')
        size += 1 + strspn(at + size + 1, "0123456789");
    return digits > 0 && at[size] == '}' ? size + 1 : 0;
}

static int check_language(const char *pattern, struct as_error *error)
{
    for (const char *at = pattern; *at;) {
        const char *reason = NULL;
        size_t repetition = repetition_size(at);
        if (*at == '\\' && at[1] == 'Q') {
            const char *end = strstr(at, "\\E");
            at = end ? end + 2 : at + strlen(at);
        } else if (*at == '\\' && at[1]) {
            reason = check_escape(at[1], false);
            at += reason ? 0 : 2;
        } else if (*at == '[') {
            at = skip_class(at, &reason);
        } else if (*at == '(' && at[1] == '*') {
            reason = "verbs are not supported";
        } else if (*at == '(' && at[1] == '?') {
            reason = check_group(at + 2);
            at += reason ? 0 : 2;
        } else if (repetition) {
            if (at[repetition] == '+')
                reason = "possessive repetition is not supported";
            at += reason ? 0 : repetition;
        } else {
            at++;
        }
        if (reason)
            return refuse(error, pattern, at, reason);
    }
    return 0;
}

int as_regex_new(const char *pattern, struct as_regex **regex_out, struct as_error *error)
{
    size_t size = strnlen(pattern, AS_REGEX_PATTERN_MAX + 1);
    if (size > AS_REGEX_PATTERN_MAX)
        return refuse(error, pattern, pattern + AS_REGEX_PATTERN_MAX, "too long");
    int status = check_language(pattern, error);
    if (status)
        return status;

    int code_error;
    PCRE2_SIZE offset;
    const uint32_t options = PCRE2_UTF | PCRE2_DOTALL | PCRE2_ANCHORED | PCRE2_ENDANCHORED |
                             PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UCP;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern, size, options, &code_error, &offset, NULL);
    if (!code) {
        char reason[128] = "";
        pcre2_get_error_message(code_error, (PCRE2_UCHAR *)reason, sizeof(reason));
        return refuse(error, pattern, pattern + offset, reason);
    }
    /* Only for speed: without JIT or executable memory, pcre2_match interprets. */
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    if (!limits) {
        pcre2_code_free(code);
        as_error_set_errno(error, ENOMEM, "regular expression");
        return -ENOMEM;
    }
    pcre2_set_match_limit(limits, STEPS_MAX);
    pcre2_set_heap_limit(limits, HEAP_MAX_KIB);
    struct as_regex *regex = as_xmalloc(sizeof(*regex));
    *regex = (struct as_regex){.code = code, .limits = limits};
    *regex_out = regex;
    return 0;
}

struct as_regex *as_regex_free(struct as_regex *regex)
{
    if (regex) {
        pcre2_match_context_free(regex->limits);
        pcre2_code_free(regex->code);
    }
    void *memory = regex;
    as_free_p(&memory);
    return NULL;
}

/* The counted errors are PCRE2's limits; any other error is text that is not UTF-8. */
enum as_regex_outcome as_regex_try(const struct as_regex *regex, const char *text)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    if (!data)
        abort(); /* "does not match" would lose an alert */
    size_t size = strlen(text);
    int found = pcre2_match(regex->code, (PCRE2_SPTR)text, size, 0, 0, data, regex->limits);
    /* JIT has a stack of 32 KiB, which legitimate long texts may exceed. */
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found =
            pcre2_match(regex->code, (PCRE2_SPTR)text, size, 0, PCRE2_NO_JIT, data, regex->limits);
    pcre2_match_data_free(data);
    if (found == PCRE2_ERROR_NOMEMORY)
        abort();
    if (found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_HEAPLIMIT ||
        found == PCRE2_ERROR_DEPTHLIMIT)
        atomic_fetch_add_explicit(&exceeded, 1, memory_order_relaxed);
    if (found == PCRE2_ERROR_NOMATCH)
        return AS_REGEX_NO;
    return found >= 0 ? AS_REGEX_YES : AS_REGEX_GIVEN_UP;
}

bool as_regex_match(const struct as_regex *regex, const char *text)
{
    return as_regex_try(regex, text) == AS_REGEX_YES;
}

uint64_t as_regex_get_exceeded(void)
{
    return atomic_load_explicit(&exceeded, memory_order_relaxed);
}
