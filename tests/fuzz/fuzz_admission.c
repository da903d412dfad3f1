/* Any bytes as an AdmissionReview: refused with a text, or answered once, with the uid, in JSON
 * whose warnings are as few and as short as promised. */
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/tools/admission_review.h>

#include "fuzz.h"

static void check_answer(const struct as_buf *out, bool is_allowed)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_error error = AS_ERROR_INIT;
    FUZZ_CHECK(as_buf_check(out) == 0);
    FUZZ_CHECK(tree_load_object(&tree, out->data, out->size, &error) == 0);
    const struct tree_value *response = tree_find(tree.root, "response");
    const struct tree_value *warnings = tree_find(response, "warnings");
    const char *uid = tree_find_text(response, "uid");
    FUZZ_CHECK(uid && *uid);
    FUZZ_CHECK(tree_is_true(tree_find(response, "allowed")) == is_allowed);
    FUZZ_CHECK(!tree_find(response, "status") == is_allowed);
    FUZZ_CHECK(!warnings || warnings->size <= AS_ADMISSION_WARNINGS_MAX);
    for (const struct tree_value *item = tree_get_first(warnings); item; item = item->next)
        FUZZ_CHECK(item->size > 0 && item->size <= AS_ADMISSION_WARNING_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct as_settings settings = {
        .prometheus.url = "http://prometheus",
        .objects = {.rules_per_policy = 50, .allows_unrestricted_queries = true}};
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(AS_ADMISSION_ANSWER_MAX);
    struct as_error error = AS_ERROR_INIT;
    const enum as_admission_outcome outcome =
        as_admission_review(&settings, (const char *)data, size, &out, &error);
    FUZZ_CHECK((outcome == AS_ADMISSION_INVALID) == (*error.text != '\0'));
    FUZZ_CHECK((outcome == AS_ADMISSION_INVALID) == (out.size == 0));
    if (outcome != AS_ADMISSION_INVALID)
        check_answer(&out, outcome != AS_ADMISSION_DENIED);
    return 0;
}
