/*
 * What a command says of a target, by the API's document of it: sizes, bounds, locks, pauses and
 * the last decision, each in a few words. See the header.
 */
#include "target_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/reason.h>

#define REASON_SHOWN 40   /* bytes of a pause's reason */
#define CAUSES_MAX   4096 /* bytes of what the bounds come from */

int64_t target_text_get_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000;
}

const char *target_text_get(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Time since, in one unit: "45s", "9m", "3h"; time until, in two: "9m40s". False: absent. */
bool target_text_print_span(const json_t *object, const char *key, bool is_ago, int64_t now_us,
                            char *text_out, size_t size)
{
    static const struct {
        int64_t us;
        const char *unit;
    } units[] = {
        {AS_US_PER_DAY, "d"}, {AS_US_PER_H, "h"}, {AS_US_PER_MIN, "m"}, {AS_US_PER_S, "s"}};
    const char *text = target_text_get(object, key);
    as_wall_time time;
    if (as_wall_time_parse(text, strlen(text), &time) != 0)
        return false;
    int64_t us = is_ago ? now_us - time.us : time.us - now_us;
    us = us > 0 ? us : 0;
    size_t i = 0;
    while (i + 1 < AS_ARRAY_SIZE(units) && us < 2 * units[i].us)
        i++;
    int used = snprintf(text_out, size, "%" PRId64 "%s", us / units[i].us, units[i].unit);
    const int64_t rest = i + 1 < AS_ARRAY_SIZE(units) ? us % units[i].us / units[i + 1].us : 0;
    if (!is_ago && rest > 0)
        (void)snprintf(text_out + used, size - (size_t)used, "%" PRId64 "%s", rest,
                       units[i + 1].unit);
    return true;
}

/* "40 (40Gi)" */
const char *target_text_print_size(const json_t *target, json_int_t size,
                                   char text_out[AS_SIZE_TEXT_SIZE])
{
    const int32_t count = size < 0 ? 0 : size > INT32_MAX ? INT32_MAX : (int32_t)size;
    return as_unit_print_size(target_text_get(target, "unit"), count, text_out);
}

char *target_text_make_size(const json_t *target)
{
    char from[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];
    const json_t *replicas = json_object_get(target, "replicas");
    const json_t *ordered = json_object_get(target, "ordered");
    const json_int_t desired =
        json_integer_value(json_is_integer(ordered) ? ordered : json_object_get(target, "desired"));
    if (!json_is_integer(replicas))
        return as_xstrdup("?");
    if (desired == json_integer_value(replicas))
        return as_xstrdup(target_text_print_size(target, desired, to));
    return as_xasprintf("%s->%s",
                        target_text_print_size(target, json_integer_value(replicas), from),
                        target_text_print_size(target, desired, to));
}

static void target_text_append_cause(struct as_buf *out, const char *name, const json_t *of,
                                     const char *end, int64_t now_us)
{
    char left[64];
    const bool has_end = target_text_print_span(of, end, false, now_us, left, sizeof(left));
    as_buf_printf(out, "%s%s%s%s", out->size > 0 ? ", " : "", name, has_end ? " " : "",
                  has_end ? left : "");
}

/* "12-40 (floor 2h0m, office 5h10m)": what has made the bounds, and for how long still */
char *target_text_make_bounds(const json_t *target, int64_t now_us)
{
    const json_t *min = json_object_get(target, "min"), *max = json_object_get(target, "max");
    const json_t *floor = json_object_get(target, "floor"), *schedule;
    AS_CLEANUP(as_buf_deinit) struct as_buf causes = AS_BUF_INIT(CAUSES_MAX);
    size_t i;
    if (!json_is_integer(min))
        return as_xstrdup("-");
    if (json_is_object(floor))
        target_text_append_cause(&causes, "floor", floor, "until", now_us);
    json_array_foreach(json_object_get(target, "schedules"), i, schedule)
    {
        if (json_is_true(json_object_get(schedule, "in_force")))
            target_text_append_cause(&causes, target_text_get(schedule, "name"), schedule,
                                     "changes", now_us);
    }
    const bool is_plain = causes.size == 0 || as_buf_check(&causes) < 0;
    return as_xasprintf("%" JSON_INTEGER_FORMAT "-%" JSON_INTEGER_FORMAT "%s%s%s",
                        json_integer_value(min), json_integer_value(max), is_plain ? "" : " (",
                        is_plain ? "" : causes.data, is_plain ? "" : ")");
}

char *target_text_make_locks(const json_t *target, int64_t now_us)
{
    const json_t *locks = json_object_get(target, "locked_until");
    char up[64], down[64];
    const bool is_up = target_text_print_span(locks, "up", false, now_us, up, sizeof(up));
    const bool is_down = target_text_print_span(locks, "down", false, now_us, down, sizeof(down));
    if (!is_up && !is_down)
        return as_xstrdup("-");
    return as_xasprintf("%s%s%s%s%s", is_up ? "up " : "", is_up ? up : "",
                        is_up && is_down ? ", " : "", is_down ? "down " : "", is_down ? down : "");
}

/* Left alone, as others set its size back: "58m: contended by kube-controller-manager" */
static char *target_text_make_contended(const json_t *contended, int64_t now_us)
{
    const json_t *reverted_changes = json_object_get(contended, "set_backs");
    const json_t *last = json_array_get(reverted_changes, json_array_size(reverted_changes) - 1);
    const char *by = target_text_get(last, "by");
    char left[64] = "?";
    (void)target_text_print_span(contended, "until", false, now_us, left, sizeof(left));
    return as_xasprintf("%s: contended%s%s", left, *by ? " by " : "", by);
}

/* "down, 5h10m: held by schedule sale"; "down: held by rule upstream" */
static char *target_text_make_hold(const json_t *holds, int64_t now_us)
{
    const json_t *first = json_array_get(holds, 0);
    char left[64];
    const bool has_end = target_text_print_span(first, "until", false, now_us, left, sizeof(left));
    const char *name = target_text_get(first, "name");
    return as_xasprintf("%s%s%s: held by %s%s%s%s", target_text_get(first, "direction"),
                        has_end ? ", " : "", has_end ? left : "", target_text_get(first, "by"),
                        *name ? " " : "", name, json_array_size(holds) > 1 ? ", ..." : "");
}

/* "58m: load test"; "until resumed: ..." */
char *target_text_make_pause(const json_t *target, int64_t now_us)
{
    const json_t *pause = json_object_get(target, "paused");
    const json_t *holds = json_object_get(target, "holds");
    const char *reason = target_text_get(pause, "reason");
    char left[64];
    if (!json_is_object(pause) && json_is_object(json_object_get(target, "contended")))
        return target_text_make_contended(json_object_get(target, "contended"), now_us);
    if (!json_is_object(pause))
        return json_array_size(holds) > 0 ? target_text_make_hold(holds, now_us) : as_xstrdup("-");
    if (!target_text_print_span(pause, "until", false, now_us, left, sizeof(left)))
        memcpy(left, "until resumed", sizeof("until resumed"));
    const size_t size = strlen(reason), shown = as_str_cut_utf8(reason, size, REASON_SHOWN);
    const char *direction = target_text_get(pause, "direction");
    const bool is_one_way = *direction && strcmp(direction, "both") != 0;
    return as_xasprintf("%s%s%s: %.*s%s", is_one_way ? direction : "", is_one_way ? ", " : "", left,
                        (int)shown, reason, shown < size ? "..." : "");
}

char *target_text_make_last(const json_t *target, int64_t now_us)
{
    const json_t *last = json_object_get(target, "last_decision");
    const char *failure = target_text_get(target, "failure");
    const char *rule = target_text_get(last, "rule");
    char ago[64];
    if (!target_text_print_span(last, "time", true, now_us, ago, sizeof(ago)))
        return as_xstrdup(*failure ? failure : "-");
    char would[AS_SIZE_TEXT_SIZE + 16] = "", size[AS_SIZE_TEXT_SIZE];
    if (json_is_integer(json_object_get(last, "would")))
        (void)snprintf(would, sizeof(would), " would be %s",
                       target_text_print_size(
                           target, json_integer_value(json_object_get(last, "would")), size));
    /* a change that was not carried out is not "scaled" */
    const bool is_undone = *failure && strcmp(target_text_get(last, "reason"),
                                              as_reason_get_word(AS_REASON_SCALED)) == 0;
    return as_xasprintf("%s%s%s%s, %s ago%s%s",
                        is_undone ? "wanted another size" : target_text_get(last, "reason"), would,
                        *rule ? " by " : "", rule, ago, *failure ? "; failed: " : "", failure);
}
