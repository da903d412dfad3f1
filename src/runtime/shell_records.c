/*
 * The shell's own records: what the engine does not know of.
 */
#include "shell_private.h"

void shell_append_own(struct as_shell *shell, uint64_t ticket,
                      const struct as_record_places *places)
{
    shell->batch = as_storage_batch_new(ticket);
    shell_append_to(shell, shell->batch, places);
    shell_submit(shell);
}

void shell_record_start_or_stop(struct as_shell *shell, enum as_record_kind kind, size_t intents)
{
    const struct as_engine_counts counts = as_engine_get_counts(shell->engine);
    const struct as_start_record record = {
        .version = shell->version,
        .config_digest = shell->config_digest,
        .rules_digest = shell->ruleset->digest,
        .targets = shell->ruleset->target_count,
        .rules = shell->ruleset->rule_count,
        .incidents = counts.incidents_open,
        .intents = intents,
    };
    struct as_record_places places;
    shell_stamp(shell);
    as_record_encode_start(&(struct as_record_header){shell->wall, shell->instance}, kind, &record,
                           shell_scratch_clear(shell), &places);
    shell_append_own(shell, kind == AS_RECORD_START ? START_TICKET : 0, &places);
}

void as_shell_record_failed_reload(struct as_shell *shell, const char *credential,
                                   const char *problem)
{
    const struct as_reload_record record = {
        .credential = credential,
        .error = problem,
        .old_config_digest = shell->config_digest,
        .old_rules_digest = shell->ruleset->digest,
        .config_digest = shell->config_digest,
        .rules_digest = shell->ruleset->digest,
    };
    struct as_record_places places;
    shell_stamp(shell);
    as_record_encode_reload(&(struct as_record_header){shell->wall, shell->instance}, &record,
                            shell_scratch_clear(shell), &places);
    shell_append_own(shell, 0, &places);
    repeat_log_begin_epoch(&shell->log);
}

void as_shell_record_denied(struct as_shell *shell, const struct as_denied_record *record)
{
    struct as_record_places places;
    shell_stamp(shell);
    as_record_encode_denied(&(struct as_record_header){shell->wall, shell->instance}, record,
                            shell_scratch_clear(shell), &places);
    shell_append_own(shell, 0, &places);
}

void as_shell_record_nodes(struct as_shell *shell, const struct as_nodes_record *record)
{
    struct as_record_places places;
    struct as_nodes_record named = *record;
    named.target_name = as_engine_find_name(shell->engine, record->target);
    shell_stamp(shell);
    as_record_encode_nodes(&(struct as_record_header){shell->wall, shell->instance}, &named,
                           shell_scratch_clear(shell), &places);
    shell_append_own(shell, 0, &places);
}

void as_shell_record_others(struct as_shell *shell, const struct as_others_record *record)
{
    struct as_record_places places;
    struct as_others_record named = *record;
    named.target_name = as_engine_find_name(shell->engine, record->target);
    shell_stamp(shell);
    as_record_encode_others(&(struct as_record_header){shell->wall, shell->instance}, &named,
                            shell_scratch_clear(shell), &places);
    shell_append_own(shell, 0, &places);
}

void as_shell_record_stop(struct as_shell *shell)
{
    shell_record_start_or_stop(shell, AS_RECORD_STOP, 0);
}
