/*
 * Why the last attempt to read or set a target failed, as text: the last failure per target, for at
 * most 1,000 targets. In memory only: the action log has all.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "api_private.h"

static void forget(struct as_api *api, struct kept_failure *failure)
{
    HASH_DEL(api->failures, failure);
    free(failure->target);
    free(failure->text);
    free(failure);
}

void api_keep_failure(struct as_api *api, const struct as_action_record *record)
{
    struct kept_failure *failure = NULL;
    HASH_FIND_STR(api->failures, record->target, failure);
    if (failure)
        forget(api, failure);
    if (record->outcome == AS_REASON_APPLIED || as_str_is_empty(record->message))
        return;
    if (HASH_COUNT(api->failures) >= FAILURES_MAX)
        forget(api, api->failures); /* the oldest: uthash keeps insertion order */
    failure = as_xcalloc(1, sizeof(*failure));
    failure->target = as_xstrdup(record->target);
    const size_t size = strlen(record->message);
    failure->text =
        as_xstrndup(record->message, as_str_cut_utf8(record->message, size, FAILURE_BYTES_MAX));
    HASH_ADD_KEYPTR(hh, api->failures, failure->target, strlen(failure->target), failure);
}

const char *api_find_failure(const struct as_api *api, const char *target)
{
    const struct kept_failure *failure = NULL;
    HASH_FIND_STR(api->failures, target, failure);
    return failure ? failure->text : NULL;
}

void api_free_failures(struct as_api *api)
{
    while (api->failures)
        forget(api, api->failures);
}
