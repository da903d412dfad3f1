/*
 * Writing documents of jansson: see the header.
 */
#include <alertscaler/doc/json_dump.h>

static int append(const char *bytes, size_t size, void *out)
{
    as_buf_append(out, bytes, size);
    return 0;
}

void as_json_dump(const json_t *json, struct as_buf *out)
{
    /* fails only without memory, or for NULL after such a failure */
    if (json_dump_callback(json, append, out, JSON_COMPACT) != 0)
        out->failed = true;
}
