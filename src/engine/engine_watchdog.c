/*
 * The watchdog: an alert that always fires, as proof that monitoring works.
 */
#include "engine_watchdog.h"

#include <string.h>

/* Prometheus may evaluate and send alerts of different groups this far apart (a minute each, unless
 * configured otherwise). */
#define WATCHDOG_SPREAD_US (2 * AS_US_PER_MIN)

bool watchdog_matches(const struct as_engine *engine, const struct as_labels *labels)
{
    const struct as_engine_config *config = &engine->config;
    for (size_t i = 0; i < config->watchdog_count; i++) {
        if (!as_matcher_match(&config->watchdog[i], labels))
            return false;
    }
    return config->watchdog_count > 0;
}

void watchdog_see(struct as_engine *engine, const struct as_labels *labels)
{
    if (watchdog_matches(engine, labels))
        engine->watchdog_seen = engine->mono;
}

bool watchdog_is_alive(const struct as_engine *engine, as_mono_time now)
{
    return engine->config.watchdog_count > 0 && engine->watchdog_seen.us != INT64_MIN &&
           now.us - engine->watchdog_seen.us <= engine->config.watchdog_within_us;
}

/*
 * Whether monitoring still worked after `moment`. When Prometheus dies, all its alerts end at about
 * the same time, also the watchdog. So seeing it before an alert ended proves nothing, nor just
 * after: alerts are sent and end in no fixed order.
 */
bool watchdog_proves(const struct as_engine *engine, struct as_moment moment)
{
    const int64_t within = engine->config.watchdog_within_us;
    const int64_t spread = within < WATCHDOG_SPREAD_US ? within : WATCHDOG_SPREAD_US;
    return watchdog_is_alive(engine, engine->mono) &&
           engine->watchdog_seen.us - moment.mono.us >= spread;
}

bool watchdog_is_same(const struct as_engine_config *a, const struct as_engine_config *b)
{
    if (a->watchdog_count != b->watchdog_count)
        return false;
    for (size_t i = 0; i < a->watchdog_count; i++) {
        const struct as_matcher *left = &a->watchdog[i], *right = &b->watchdog[i];
        if (left->op != right->op || strcmp(left->name, right->name) != 0 ||
            strcmp(left->value, right->value) != 0)
            return false;
    }
    return true;
}
