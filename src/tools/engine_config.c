/*
 * The engine's part of a configuration.
 */
#include <alertscaler/tools/engine_config.h>

struct as_engine_config as_engine_config_make(const struct as_settings *settings, uint64_t seed)
{
    const struct as_receiver_settings *receiver = &settings->receiver;
    const struct as_limit_settings *limits = &settings->limits;
    const struct as_alertmanager_settings *alertmanager = &settings->alertmanager;
    return (struct as_engine_config){
        .incident_expiry_us = receiver->incident_expiry_us,
        .stale_window_us = receiver->stale_window_us,
        .dry_run = settings->dry_run,
        .seed = seed,
        .resync_us = alertmanager->url_count > 0 ? alertmanager->resync_interval_us : 0,
        .receivers = alertmanager->receivers,
        .receiver_count = alertmanager->receiver_count,
        .limits = {.actions_max = limits->actions_max,
                   .actions_per_us = limits->actions_per_us,
                   .scale_down_milli_percent = limits->scale_down_milli_percent,
                   .scale_down_per_us = limits->scale_down_per_us,
                   .namespace_actions_max = settings->objects.actions_max,
                   .namespace_actions_per_us = settings->objects.actions_per_us},
        .watchdog = receiver->watchdog,
        .watchdog_count = receiver->watchdog_count,
        .watchdog_within_us = receiver->watchdog_within_us,
        .incident_bytes_max = receiver->max_incident_memory,
    };
}
