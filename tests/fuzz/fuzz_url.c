/*
 * Any text as a URL: the normal form of a normal form is itself, and so is a target's key. Any text
 * as the label in a URL with a template: scheme, host and the author's segments stay.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/url.h>
#include <alertscaler/decide/target.h>

#include "fuzz.h"

static void check_normal(const char *text)
{
    AS_CLEANUP(as_free_p) char *once = as_target_url_normalize(text);
    AS_CLEANUP(as_free_p) char *twice = as_target_url_normalize(once);
    AS_CLEANUP(as_free_p) char *id = as_xasprintf("node_group/mine/%s", text);
    AS_CLEANUP(as_free_p) char *normal_id = as_xasprintf("node_group/mine/%s", once);
    AS_CLEANUP(as_free_p) char *end = as_target_url_get_end(text);
    AS_CLEANUP(as_free_p) char *end_again = as_target_url_get_end(once);
    FUZZ_CHECK(strcmp(once, twice) == 0);
    FUZZ_CHECK(as_target_is_same(id, normal_id));
    FUZZ_CHECK(strcmp(end, end_again) == 0 && !strchr(end, '/'));
}

static void check_label(const char *text)
{
    static const char *const urls[] = {"http://H:80/a/{{ .Labels.x }}/b",
                                       "http://H:80/%2e{{ .Labels.x }}/b"};
    const struct as_label pair = {"x", text};
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    if (!*text || as_labels_new(&pair, 1, &labels) != 0)
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(urls); i++) {
        AS_CLEANUP(as_template_free_p) struct as_template *url = NULL;
        AS_CLEANUP(as_buf_deinit) struct as_buf result = AS_BUF_INIT(AS_TARGET_ID_MAX);
        struct as_error error = AS_ERROR_INIT;
        FUZZ_CHECK(as_template_new(urls[i], &url, &error) == 0);
        if (as_template_expand(url, labels, labels, &result, &error) != 0 ||
            as_target_url_check(url, labels, labels, result.data, &error) != 0) {
            FUZZ_CHECK(*error.text);
            continue;
        }
        AS_CLEANUP(as_free_p)
        char *expected = as_xasprintf(i == 0 ? "http://h/a/%s/b" : "http://h/.%s/b", text);
        AS_CLEANUP(as_free_p) char *normal = as_target_url_normalize(result.data);
        FUZZ_CHECK(strcmp(normal, expected) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_CLEANUP(as_free_p) char *text = as_xstrndup((const char *)data, size);
    check_normal(text);
    check_label(text);
    return 0;
}
