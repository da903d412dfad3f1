/*
 * What a target is, out of how it is written down: of all ids that lead to one object, one text.
 *
 * Of a Kubernetes id goes the version: one object is served under several, and `extensions` served
 * what `apps` serves today. Of a URL stays its normal form (base/url.h). What is sized is no part
 * of it: that is always the object's scale.
 */
#include <alertscaler/core/target.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>

#define PARTS_MAX 6 /* cluster, group, version, kind, namespace, name */

/* "default/apps/v1/Deployment/shop/web"; also a pattern of ids (core/target.c), where `*` is any
 * version of any group. False: it is nothing of this kind. */
static bool append_kubernetes(struct as_buf *out, const char *text)
{
    const char *parts[PARTS_MAX];
    size_t sizes[PARTS_MAX], count = 0;
    for (;;) {
        const size_t size = strcspn(text, "/");
        if (count == PARTS_MAX)
            return false;
        parts[count] = text;
        sizes[count++] = size;
        if (!text[size])
            break;
        text += size + 1;
    }
    if (count < PARTS_MAX - 1)
        return false;
    const bool has_group = count == PARTS_MAX || (sizes[1] == 1 && parts[1][0] == '*');
    const bool is_extensions =
        sizes[1] == strlen("extensions") && memcmp(parts[1], "extensions", sizes[1]) == 0;
    as_buf_append_str(out, "kubernetes/");
    as_buf_append(out, parts[0], sizes[0]);
    as_buf_append_char(out, '/');
    if (has_group && is_extensions)
        as_buf_append_str(out, "apps");
    else if (has_group)
        as_buf_append(out, parts[1], sizes[1]);
    as_buf_append_char(out, '/');
    as_buf_append_str(out, parts[count - 3]);
    return true;
}

static bool append_group(struct as_buf *out, const char *text)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf url = AS_BUF_INIT(out->max);
    const char *slash = strchr(text, '/');
    if (!slash || !as_url_append_normal(slash + 1, &url))
        return false;
    as_buf_append_str(out, "node_group/");
    as_buf_append(out, text, (size_t)(slash + 1 - text));
    as_buf_append(out, url.data, url.size);
    return true;
}

char *as_target_key_make(const char *id)
{
    struct as_buf key = AS_BUF_INIT(SIZE_MAX / 2);
    const char *slash = strchr(id, '/'), *rest = slash ? slash + 1 : "";
    size_t size;
    if (!(as_str_starts_with(id, "kubernetes/") && append_kubernetes(&key, rest)) &&
        !(as_str_starts_with(id, "node_group/") && append_group(&key, rest)))
        as_buf_append_str(&key, id);
    if (as_buf_check(&key) < 0)
        abort(); /* only without memory */
    return as_buf_take(&key, &size);
}

bool as_target_is_same(const char *id, const char *other)
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id);
    AS_CLEANUP(as_free_p) char *key_of_other = as_target_key_make(other);
    return strcmp(key, key_of_other) == 0;
}
