/*
 * Paths of the Kubernetes API: see the header.
 */
#include "kube_path.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/encode.h>

static int path_append(struct as_buf *path, const char *segment, size_t size)
{
    if (size == 0 || (size == 1 && segment[0] == '.') || (size == 2 && !memcmp(segment, "..", 2)))
        return -EINVAL;
    as_buf_append_char(path, '/');
    as_encode_percent(path, segment, size, ":");
    return 0;
}

int as_kube_path_append(struct as_buf *path, const char *segment)
{
    return path_append(path, segment, strlen(segment));
}

void as_kube_path_append_parameter(struct as_buf *path, const char *name, const char *value)
{
    bool is_first = !path->data || !strchr(path->data, '?'); /* segments escape theirs */
    as_buf_append_char(path, is_first ? '?' : '&');
    as_buf_append_str(path, name);
    as_buf_append_char(path, '=');
    as_encode_percent(path, value, strlen(value), ":");
}

int as_kube_path_append_version(struct as_buf *path, const char *api_version)
{
    const char *slash = strchr(api_version, '/');
    if (!slash) {
        as_buf_append_str(path, "/api");
        return as_kube_path_append(path, api_version);
    }
    if (strchr(slash + 1, '/'))
        return -EINVAL;
    as_buf_append_str(path, "/apis");
    int status = path_append(path, api_version, (size_t)(slash - api_version));
    return status ? status : as_kube_path_append(path, slash + 1);
}
