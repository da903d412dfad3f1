/*
 * Chooses the format by the Accept header (RFC 9110, section 12.5.1): text, unless OpenMetrics is
 * named with at least the same weight.
 */
#include <string.h>
#include <strings.h>

#include <alertscaler/base/number.h>
#include <alertscaler/runtime/metrics.h>

#define SPACES " \t"

static bool span_is(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && strncasecmp(text, word, size) == 0;
}

/* The next part of *text_io up to `separator`, without spaces around it. False: at the end. */
static bool take_part(const char **text_io, const char *end, char separator, const char **part_out,
                      size_t *size_out)
{
    const char *at = *text_io;
    if (at >= end)
        return false;
    const char *stop = memchr(at, separator, (size_t)(end - at));
    *text_io = stop ? stop + 1 : end;
    if (!stop)
        stop = end;
    while (at < stop && strchr(SPACES, *at))
        at++;
    while (stop > at && strchr(SPACES, stop[-1]))
        stop--;
    *part_out = at;
    *size_out = (size_t)(stop - at);
    return true;
}

struct range { /* "text/plain;version=0.0.4;q=0.5" */
    const char *type;
    size_t type_size;
    const char *version;
    size_t version_size; /* 0: any */
    double quality;
};

static struct range parse_range(const char *text, size_t size)
{
    struct range range = {.quality = 1};
    const char *end = text + size, *part;
    size_t part_size;
    if (!take_part(&text, end, ';', &range.type, &range.type_size))
        return range;
    while (take_part(&text, end, ';', &part, &part_size)) {
        if (part_size > 2 && strncasecmp(part, "q=", 2) == 0) {
            if (as_number_parse_double(part + 2, part_size - 2, &range.quality) != 0)
                range.quality = 0;
        } else if (part_size > 8 && strncasecmp(part, "version=", 8) == 0) {
            range.version = part + 8;
            range.version_size = part_size - 8;
        }
    }
    return range;
}

enum as_metrics_format as_metrics_choose_format(const char *accept)
{
    double text = 0, openmetrics = 0;
    const char *end = accept ? accept + strlen(accept) : NULL, *part;
    size_t size;
    while (accept && take_part(&accept, end, ',', &part, &size)) {
        const struct range range = parse_range(part, size);
        if (span_is(range.type, range.type_size, "application/openmetrics-text") &&
            (range.version_size == 0 || span_is(range.version, range.version_size, "1.0.0")))
            openmetrics = range.quality > openmetrics ? range.quality : openmetrics;
        else if (span_is(range.type, range.type_size, "text/plain") ||
                 span_is(range.type, range.type_size, "text/*") ||
                 span_is(range.type, range.type_size, "*/*"))
            text = range.quality > text ? range.quality : text;
    }
    return openmetrics > 0 && openmetrics >= text ? AS_METRICS_OPENMETRICS : AS_METRICS_TEXT;
}
