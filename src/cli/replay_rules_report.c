/*
 * The result of `alertscaler replay --rules`.
 */
#include "replay_rules.h"

#include <inttypes.h>

#include <alertscaler/base/alloc.h>

static void warn(void *context, const char *text)
{
    struct replay *replay = context;
    json_array_append_new(replay->warnings, json_string(text));
}

static void warn_of_limits(struct replay *replay)
{
    const struct {
        uint64_t count;
        const char *before, *after;
    } limits[] = {
        {replay->silenced, "alerts were silenced ",
         " times: a replay knows no silences, they count as firing"},
        {replay->clock_changes, "the log's clock was set ",
         " times: times behind it are counted from where they were"},
        {replay->cut, "",
         " notifications have labels that the log has cut: rules may not match them as they did"},
        {replay->unknown_repeats, "",
         " repeats are left out: the records with their details are not in these files"},
        {replay->forbidden, "",
         " alerts were forbidden to their credential, whose rights are not known here: they do "
         "nothing under the new rules either"},
        {replay->foreign, "sizes were changed by others ",
         " times: the same sizes were set under the new rules"},
    };

    replay_values_visit_missing(replay->values, warn, replay);
    for (size_t i = 0; i < AS_ARRAY_SIZE(limits); i++) {
        if (limits[i].count == 0)
            continue;
        AS_CLEANUP(as_free_p)
        char *text =
            as_xasprintf("%s%" PRIu64 "%s", limits[i].before, limits[i].count, limits[i].after);
        warn(replay, text);
    }
}

int replay_rules_report(struct replay *replay, struct as_error *error)
{
    warn_of_limits(replay);
    const struct comparison_report report = {
        .args = replay->args,
        .rules = as_args_get(replay->args, "rules"),
        .from = {replay->first},
        .to = {replay->last},
        .notifications = replay->notifications,
        .warnings = replay->warnings,
        .approvals = replay->approvals,
    };
    return comparison_print(replay->comparison, &report, error);
}
