/*
 * The table of what people can be told.
 */
#include <alertscaler/decide/notice.h>

#include <alertscaler/base/attr.h>

const struct as_notice_row *as_notice_kind_get_row(enum as_notice_kind kind)
{
#define ROW(enumerator, ...) [enumerator] = {__VA_ARGS__},
    static const struct as_notice_row rows[AS_NOTICE_KIND_COUNT] = {
        AS_NOTICES(ROW)[AS_NOTICE_TEST] = {"test", "AlertscalerTest", "A sample, sent by hand.",
                                           false}};
    return &rows[kind];
}

const char *as_notice_phase_get_word(enum as_notice_phase phase)
{
    static const char *const words[AS_NOTICE_PHASE_COUNT] = {
        [AS_NOTICE_EVENT] = "event", [AS_NOTICE_BEGIN] = "begin", [AS_NOTICE_END] = "end"};
    return words[phase];
}

const char *as_notice_loss_get_word(enum as_notice_loss loss)
{
    static const char *const words[AS_NOTICE_LOSS_COUNT] = {[AS_NOTICE_OVERFLOW] = "overflow",
                                                            [AS_NOTICE_TOO_OLD] = "too_old",
                                                            [AS_NOTICE_REMOVED] = "removed",
                                                            [AS_NOTICE_UNREADABLE] = "unreadable"};
    return words[loss];
}
