/*
 * Time zones and schedules line by line, for zone_property.py. Each line of the input is a command:
 *
 *   zone NAME                       the zone of what follows; answers "ok", or "error: TEXT"
 *   offset UTC                      its offset from UTC
 *   utc first|last LOCAL            when the wall time is
 *   schedule DAYS FROM TO UTC UTC   begins (+) and ends (-) of a schedule between two moments
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/model/bounds.h>

static struct as_zone *zone;

static void open_zone(const char *name)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_zone *opened;
    if (as_zone_open(name, &opened, &error) != 0) {
        printf("error: %s\n", error.text);
        return;
    }
    as_zone_free(zone);
    zone = opened;
    puts("ok");
}

static void list_changes(const struct as_schedule *schedule, int64_t from, int64_t to)
{
    struct as_schedule_state look = as_schedule_state(schedule, (as_wall_time){from * AS_US_PER_S});
    while (look.change.set && look.change.at.us < to * AS_US_PER_S) {
        const as_wall_time at = look.change.at;
        const bool was_in_force = look.is_in_force;
        look = as_schedule_state(schedule, at);
        if (look.is_in_force == was_in_force)
            printf("!"); /* an event without an effect */
        printf("%c%" PRId64 " ", look.is_in_force ? '+' : '-', at.us / AS_US_PER_S);
    }
    puts("");
}

int main(void)
{
    char line[256], word[128];
    while (fgets(line, sizeof(line), stdin)) {
        struct as_schedule schedule = {0};
        int64_t number, from, to;
        if (sscanf(line, "zone %127s", word) == 1)
            open_zone(word);
        else if (sscanf(line, "offset %" SCNd64, &number) == 1)
            printf("%" PRId32 "\n", as_zone_get_offset(zone, number));
        else if (sscanf(line, "utc %127s %" SCNd64, word, &number) == 2)
            printf("%" PRId64 "\n",
                   as_zone_find_utc(zone, number,
                                    strcmp(word, "last") == 0 ? AS_ZONE_LAST : AS_ZONE_FIRST));
        else if (sscanf(line, "schedule %u %" SCNd32 " %" SCNd32 " %" SCNd64 " %" SCNd64,
                        &schedule.days, &schedule.from_s, &schedule.to_s, &from, &to) == 5) {
            schedule.zone = zone;
            list_changes(&schedule, from, to);
        } else {
            fprintf(stderr, "unknown command: %s", line);
            return 2;
        }
    }
    as_zone_free(zone);
    return 0;
}
