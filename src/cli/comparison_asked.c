/*
 * What people would have been asked under the tried rules.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/unit.h>

#include "comparison_private.h"

void comparison_note_request(struct comparison *comparison, as_wall_time at,
                             const struct as_approval_record *record)
{
    const struct as_approval_state *request = record->request;
    struct compared *target;

    if (record->event != AS_APPROVAL_ON_ASKED)
        return;
    target = comparison_get_target(comparison, record->target, record->target_name);
    if (target->asked_count++ < ASKED_SHOWN)
        target->asked[target->asked_count - 1] = (struct asked){
            .at = at.us,
            .from = request->from,
            .to = request->to,
            .rule = as_xstrdup(request->rule),
            .unit = as_xstrdup(record->unit),
        };
}

static void print_asked(const struct compared *target, const struct asked *asked, FILE *out)
{
    char at[AS_RFC3339_SIZE], from[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];

    as_wall_time_print_short((as_wall_time){asked->at}, at);
    fputs("  ", out);
    as_safe_text_put(out, compared_get_label(target));
    fprintf(out, " %s: from %s to %s, by ", at, as_unit_print_size(asked->unit, asked->from, from),
            as_unit_print_size(asked->unit, asked->to, to));
    as_safe_text_put(out, asked->rule);
    fputc('\n', out);
}

static void print_title(const char *approvals, FILE *out)
{
    static const struct {
        const char *approvals, *text;
    } rows[] = {{"given", "each counts as approved at once"},
                {"none", "nobody answers"},
                {"logged", "answered as in the log"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].approvals, approvals) == 0)
            fprintf(out, "\nRequests for approvals (%s)\n", rows[i].text);
    }
}

void comparison_print_asked(struct compared_tree *targets, const char *approvals, FILE *out)
{
    struct compared *target;
    size_t shown = 0;

    RB_FOREACH (target, compared_tree, targets) {
        if (target->asked_count == 0)
            continue;
        if (shown++ == 0)
            print_title(approvals, out);
        if (shown > ROWS_SHOWN)
            continue;
        for (size_t i = 0; i < get_listed(target); i++)
            print_asked(target, &target->asked[i], out);
        if (target->asked_count > ASKED_SHOWN) {
            fputs("  ", out);
            as_safe_text_put(out, compared_get_label(target));
            fprintf(out, " %" PRIu64 " more\n", target->asked_count - ASKED_SHOWN);
        }
    }
    if (shown > ROWS_SHOWN)
        fprintf(out, "  and %zu more targets\n", shown - ROWS_SHOWN);
}

json_t *compared_make_asked(const struct compared *target)
{
    json_t *list = json_array();

    for (size_t i = 0; i < get_listed(target); i++) {
        const struct asked *asked = &target->asked[i];
        char at[AS_RFC3339_SIZE];
        as_wall_time_print_short((as_wall_time){asked->at}, at);
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:i, s:i}", "time", at, "rule", asked->rule,
                                        "from", (int)asked->from, "to", (int)asked->to));
    }
    return list;
}
