/* Any text up to a NUL as a matcher, and the rest as a label's value. */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/model/matcher.h>

#include "fuzz.h"

static void check_matcher(const struct as_matcher *matcher, const char *value)
{
    const struct as_label pair = {matcher->name, value};
    struct as_labels *labels = NULL, *none = NULL;

    FUZZ_CHECK(*matcher->name && as_str_is_utf8(matcher->name, strlen(matcher->name)));
    FUZZ_CHECK(as_str_is_utf8(matcher->value, strlen(matcher->value)));
    FUZZ_CHECK(as_labels_new(&pair, 1, &labels) == 0 && as_labels_new(NULL, 0, &none) == 0);
    FUZZ_CHECK(as_matcher_match(matcher, labels) == as_matcher_match_value(matcher, value));
    FUZZ_CHECK(as_matcher_match(matcher, none) == as_matcher_match_value(matcher, ""));
    as_labels_free(labels);
    as_labels_free(none);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_CLEANUP(as_free_p) char *text = as_xstrndup((const char *)data, size);
    size_t text_size = strlen(text), behind = text_size < size ? text_size + 1 : size;
    AS_CLEANUP(as_free_p) char *value = as_xstrndup((const char *)data + behind, size - behind);
    struct as_matcher matcher;
    struct as_error error = AS_ERROR_INIT;
    int r = as_matcher_init(&matcher, text, &error);

    if (r < 0) {
        FUZZ_CHECK(r == -EINVAL && *error.text);
        return 0;
    }
    if (as_str_is_utf8(value, strlen(value)))
        check_matcher(&matcher, value);
    as_matcher_deinit(&matcher);
    return 0;
}
