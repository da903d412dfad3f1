/*
 * Defaults of pools.
 */
#include <alertscaler/cluster/pool.h>

#include <alertscaler/base/time.h>

const struct as_pool_config as_pool_config_default = {
    .cpu = {0, AS_POOL_NO_CAP},
    .memory = {0, AS_POOL_NO_CAP},
    .at_once_empty = 10,
    .at_once_drain = 1,
    .expendable_below = -10,
};

const struct as_unneeded_config as_unneeded_config_default = {
    .below = 50,
    .for_us = 10 * AS_US_PER_MIN,
    .unready_for_us = 20 * AS_US_PER_MIN,
    .keep = AS_KEEP_DEFAULT,
};
