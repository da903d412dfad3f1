/*
 * The words of approvals.
 */
#include <alertscaler/decide/approval.h>

#include <stddef.h>

const char *as_approval_answer_get_word(enum as_approval_answer answer)
{
    static const char *const words[AS_APPROVAL_ANSWER_COUNT] = {
        [AS_APPROVAL_WAITING] = "waiting", [AS_APPROVAL_APPROVED] = "approved",
        [AS_APPROVAL_DENIED] = "denied",   [AS_APPROVAL_EXPIRED] = "expired",
        [AS_APPROVAL_VOID] = "void",
    };
    return words[answer];
}

const char *as_approval_use_get_word(enum as_approval_use use)
{
    static const char *const words[AS_APPROVAL_USE_COUNT] = {
        [AS_APPROVAL_FREE] = NULL,         [AS_APPROVAL_ASKS] = "asks",
        [AS_APPROVAL_AWAITED] = "awaited", [AS_APPROVAL_REFUSED] = "refused",
        [AS_APPROVAL_USED] = "used",
    };
    return words[use];
}

const char *as_approval_event_get_word(enum as_approval_event event)
{
    static const char *const words[AS_APPROVAL_EVENT_COUNT] = {
        [AS_APPROVAL_ON_ASKED] = "asked",       [AS_APPROVAL_ON_APPROVED] = "approved",
        [AS_APPROVAL_ON_DENIED] = "denied",     [AS_APPROVAL_ON_EXPIRED] = "expired",
        [AS_APPROVAL_ON_VOID] = "void",         [AS_APPROVAL_ON_USED] = "used",
        [AS_APPROVAL_ON_RETURNED] = "returned",
    };
    return words[event];
}
