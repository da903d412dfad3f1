/*
 * URLs of HTTP node groups: what their templates may do. Labels are untrusted input.
 */
#include <alertscaler/decide/target.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>

#include <alertscaler/model/template_parts.h>

#define SHOWN_MAX 80 /* bytes of a refused value in an error's text */
#define FROM_ALERTS                                                                                \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-" /* characters */

static bool is_text(const struct template_part *part)
{
    return part->kind == TEMPLATE_TEXT;
}

/* After "scheme://host" comes a '/' or '?': from there an alert may contribute. */
static bool has_host(const char *url)
{
    const char *authority = strstr(url, "://");
    if (!authority || authority == url)
        return false;
    authority += 3;
    const size_t size = strcspn(authority, "/?#\\");
    return size > 0 && (authority[size] == '/' || authority[size] == '?');
}

/* The size of a dot at `text`, also of an escaped dot; 0: none. */
static size_t get_dot(const char *text)
{
    if (*text == '.')
        return 1;
    return strncasecmp(text, "%2e", 3) == 0 ? 3 : 0;
}

static bool has_dot_segment(const char *url)
{
    const char *at = strstr(url, "://");
    for (at = at ? at + 3 : url; *at && *at != '?' && *at != '#';) {
        const char *end = at + strcspn(at, "/?#");
        unsigned dots = 0;
        while (at < end && get_dot(at) > 0) {
            at += get_dot(at);
            dots++;
        }
        if (at == end && dots > 0 && dots <= 2)
            return true;
        at = end + (*end == '/');
    }
    return false;
}

/* A label value would become a part of the escape. */
static bool has_open_escape(const char *text)
{
    const char *last = strrchr(text, '%');
    return last && strlen(last) < strlen("%2f");
}

/* The text with a letter for each template. */
static char *make_sample(const struct as_template *url)
{
    struct as_buf sample = AS_BUF_INIT(SIZE_MAX / 2);
    size_t size;
    for (size_t i = 0; i < url->part_count; i++)
        as_buf_append_str(&sample, is_text(&url->parts[i]) ? url->parts[i].text : "x");
    if (as_buf_check(&sample) < 0)
        abort(); /* only if out of memory */
    return as_buf_take(&sample, &size);
}

const char *as_target_url_find_fault(const struct as_template *url)
{
    if (as_template_is_plain(url))
        return NULL;
    if (!is_text(&url->parts[0]) || !has_host(url->parts[0].text))
        return "a template may stand only behind http://host/";
    for (size_t i = 0; i < url->part_count; i++) {
        if (!is_text(&url->parts[i]))
            continue;
        if (strpbrk(url->parts[i].text, " #"))
            return "a URL with a template has no spaces and no fragment";
        if (i + 1 < url->part_count && has_open_escape(url->parts[i].text))
            return "a template may not complete a `%` escape";
    }
    AS_CLEANUP(as_free_p) char *sample = make_sample(url);
    return has_dot_segment(sample) ? "a URL with a template has no path segment of dots" : NULL;
}

bool as_target_url_varies_at_end(const struct as_template *url)
{
    bool has_varied = false, is_behind = false; /* behind a slash after a template */
    for (size_t i = 0; i < url->part_count; i++) {
        if (!is_text(&url->parts[i])) {
            if (is_behind)
                return false;
            has_varied = true;
            continue;
        }
        for (const char *c = url->parts[i].text; *c && *c != '?'; c++) {
            if (is_behind && *c != '/')
                return false;
            is_behind = is_behind || (has_varied && *c == '/');
        }
        is_behind = is_behind || strchr(url->parts[i].text, '?');
    }
    return has_varied;
}

static int refuse(struct as_error *error, const char *key, const char *value, const char *why)
{
    const size_t size = strlen(value), shown = as_str_cut_utf8(value, size, SHOWN_MAX);
    as_error_set(error, "%s \"%.*s%s\": %s", key, (int)shown, value, shown < size ? "..." : "",
                 why);
    return -EINVAL;
}

int as_target_url_check(const struct as_template *url, const struct as_labels *labels,
                        const struct as_labels *annotations, const char *result,
                        struct as_error *error)
{
    const char *fault = as_target_url_find_fault(url);
    if (fault)
        return refuse(error, "url", url->text, fault);
    for (size_t i = 0; i < url->part_count; i++) {
        const struct template_part *part = &url->parts[i];
        if (is_text(part))
            continue;
        const char *value = template_part_get(part, labels, annotations);
        if (value[strspn(value, FROM_ALERTS)] != '\0')
            return refuse(error, part->text, value,
                          "only letters, digits, '.', '_' and '-' may go into a url");
    }
    if (!as_template_is_plain(url) && has_dot_segment(result))
        return refuse(error, "url", result, "a path segment of dots");
    return 0;
}

char *as_target_url_normalize(const char *url)
{
    struct as_buf normal = AS_BUF_INIT(SIZE_MAX / 2);
    size_t size;
    if (!as_url_append_normal(url, &normal))
        as_buf_append_str(&normal, url);
    if (as_buf_check(&normal) < 0)
        abort(); /* only if out of memory */
    return as_buf_take(&normal, &size);
}

char *as_target_url_get_end(const char *url)
{
    AS_CLEANUP(as_free_p) char *normal = as_target_url_normalize(url);
    const char *authority = strstr(normal, "://");
    const char *path = authority ? authority + 3 : normal;
    path += strcspn(path, "/?");
    const size_t size = strcspn(path, "?");
    const char *slash = memrchr(path, '/', size);
    return slash ? as_xstrndup(slash + 1, (size_t)(path + size - slash - 1)) : as_xstrdup("");
}
