/*
 * Alerts of the same body have the same labels; only their outcomes and rules may change from one
 * time to the next. Rules are compared by the addresses of their names, which are valid as long as
 * the rule set: hence the epoch. The digest is short, but cannot be forged without the epoch, which
 * is random.
 */
#include "repeat.h"

#include <string.h>

static uint64_t mix(uint64_t digest, uint64_t value)
{
    const uint64_t product = (digest ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return product ^ product >> 32;
}

void repeat_log_init(struct repeat_log *log, uint64_t seed)
{
    *log = (struct repeat_log){0};
    as_random_init(&log->random, seed);
    repeat_log_begin_epoch(log);
}

void repeat_log_begin_epoch(struct repeat_log *log)
{
    do
        log->epoch = as_random_get(&log->random);
    while (log->epoch == 0);
}

struct as_repeat_record repeat_sum_up(const struct repeat_log *log,
                                      const struct as_notification_record *record,
                                      uint64_t *said_out)
{
    struct as_repeat_record repeat = {.notification = record->notification};
    uint64_t digest = log->epoch;
    for (const char *at = repeat.notification->credential; *at; at++)
        digest = mix(digest, (unsigned char)*at);
    for (size_t i = 0; i < repeat.notification->alert_count; i++) {
        const struct as_alert_outcome *outcome = &record->outcomes[i];
        const bool is_used_up = outcome->reason == AS_REASON_MAX_STEPS;
        repeat.max_steps += is_used_up;
        repeat.duplicate += !is_used_up;
        digest = mix(digest, (uint64_t)outcome->rule_count << 1 | is_used_up);
        for (size_t j = 0; j < outcome->rule_count; j++)
            digest = mix(digest, (uintptr_t)outcome->rules[j]);
    }
    *said_out = digest;
    return repeat;
}

bool repeat_is_near(const struct repeat_log *log, const struct as_record_base *base, uint64_t said,
                    as_wall_time now)
{
    return base->epoch == log->epoch && base->said == said && now.us >= base->time.us &&
           now.us - base->time.us <= AS_REPEAT_REACH_US &&
           log->records - base->records <= AS_REPEAT_REACH_RECORDS &&
           log->bytes - base->bytes <= AS_REPEAT_REACH_BYTES;
}

void repeat_set_base(const struct repeat_log *log, struct as_record_base *base,
                     const struct as_notification *notification, uint64_t said, as_wall_time now,
                     uint64_t file)
{
    *base = (struct as_record_base){
        .epoch = file ? log->epoch : 0,
        .file = file,
        .records = log->records,
        .bytes = log->bytes,
        .said = said,
        .time = now,
    };
    memcpy(base->id, notification->id, sizeof(base->id));
}
