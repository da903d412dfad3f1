/* Any bytes as the API server's answer to a TokenReview: refused with a text, or used once; an
 * authenticated user has a name. */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_documents.h>

#include "fuzz.h"

static void use(void *context, const struct as_reviewed *reviewed)
{
    ++*(int *)context;
    FUZZ_CHECK(reviewed->authenticated || reviewed->group_count == 0);
    FUZZ_CHECK(!reviewed->authenticated || (reviewed->user && *reviewed->user));
    FUZZ_CHECK(reviewed->group_count <= AS_REVIEW_GROUPS_MAX);
    for (size_t i = 0; i < reviewed->group_count; i++)
        FUZZ_CHECK(reviewed->groups[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const audiences[] = {"alertscaler", "other"};

    for (size_t count = 0; count <= AS_ARRAY_SIZE(audiences); count += AS_ARRAY_SIZE(audiences)) {
        struct as_error error = AS_ERROR_INIT;
        int used = 0;
        const int r =
            as_token_review_decode((const char *)data, size, audiences, count, use, &used, &error);
        FUZZ_CHECK(r == 0 || (r == -EBADMSG && *error.text));
        FUZZ_CHECK(used == (r == 0));
    }
    return 0;
}
