/*
 * Any bytes as a time zone's file: refused with a reason, or read; then every offset is below a day
 * and two hours, changes come in order, and a wall time is found where its offset says.
 */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/zone.h>

#include "fuzz.h"

#define OFFSET_MAX 93600

static void check(const struct as_zone *zone, int64_t utc)
{
    const int32_t offset = as_zone_get_offset(zone, utc);
    int64_t change;
    FUZZ_CHECK(offset < OFFSET_MAX && offset > -OFFSET_MAX);
    if (as_zone_find_change(zone, utc, &change))
        FUZZ_CHECK(change > utc && as_zone_get_offset(zone, change - 1) == offset);
    const int64_t first = as_zone_find_utc(zone, utc + offset, AS_ZONE_FIRST);
    const int64_t last = as_zone_find_utc(zone, utc + offset, AS_ZONE_LAST);
    FUZZ_CHECK(first <= utc && utc <= last); /* the wall time exists at `utc` */
    FUZZ_CHECK(first + as_zone_get_offset(zone, first) == utc + offset);
    FUZZ_CHECK(last + as_zone_get_offset(zone, last) == utc + offset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t moments[] = {0, -1, 1774746000, 1792890000, 4102444800, -3000000000};
    struct as_error error = AS_ERROR_INIT;
    struct as_zone *zone = NULL;
    const int status = as_zone_parse((const char *)data, size, &zone, &error);
    FUZZ_CHECK(status == 0 || (status == -EBADMSG && *error.text));
    for (size_t i = 0; status == 0 && i < sizeof(moments) / sizeof(moments[0]); i++) {
        int64_t utc = moments[i];
        for (unsigned steps = 0; steps < 20; steps++) {
            check(zone, utc);
            if (!as_zone_find_change(zone, utc, &utc))
                break;
        }
    }
    as_zone_free(zone);
    return 0;
}
