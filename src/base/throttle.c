/*
 * Reports once an interval, with a count: see the header.
 */
#include <alertscaler/base/throttle.h>

#include <stdio.h>

void as_throttle_end(struct as_throttle *throttle, as_mono_time now)
{
    if (throttle->count == 0 || !throttle->tell(throttle->context, throttle))
        return;
    throttle->count = 0;
    throttle->told = now;
    throttle->has_reported = true;
}

int64_t as_throttle_get_wait(const struct as_throttle *throttle, as_mono_time now)
{
    if (throttle->count == 0)
        return -1;
    if (!throttle->has_reported)
        return 0;
    const int64_t since = now.us - throttle->told.us;
    return since < throttle->every_us ? throttle->every_us - since : 0;
}

void as_throttle_refill(struct as_throttle *throttle, as_mono_time now)
{
    if (as_throttle_get_wait(throttle, now) == 0)
        as_throttle_end(throttle, now);
}

void as_throttle_add(struct as_throttle *throttle, const char *remote, const char *error,
                     as_mono_time now)
{
    throttle->count++;
    (void)snprintf(throttle->remote, sizeof(throttle->remote), "%s", remote);
    (void)snprintf(throttle->error, sizeof(throttle->error), "%s", error);
    as_throttle_refill(throttle, now);
}
