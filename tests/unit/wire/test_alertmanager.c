/*
 * Alertmanager's list of alerts: read whole, or refused with the place; and the merge of several
 * lists.
 */
#include <alertscaler/wire/alertmanager.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/wire/limits.h>

static struct as_alertmanager_alerts *lists[3];
static size_t list_count;
static struct as_arena arena;

static void setup(void)
{
    arena = AS_ARENA_INIT;
    list_count = 0;
}

static void teardown(void)
{
    for (size_t i = 0; i < list_count; i++)
        as_alertmanager_alerts_free(lists[i]);
    as_arena_deinit(&arena);
}

TestSuite(alertmanager, .init = setup, .fini = teardown);

static int decode(const char *json, struct as_alertmanager_alerts **alerts, struct as_error *error)
{
    size_t size = strlen(json);
    char *copy = as_xmalloc(size);
    memcpy(copy, json, size);
    int r = as_alertmanager_decode_alerts(copy, size, alerts, error);
    free(copy);
    return r;
}

static const struct as_alertmanager_alerts *add(const char *json)
{
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(decode(json, &lists[list_count], &error), 0, "%s", error.text);
    return lists[list_count++];
}

static struct as_alert_list merge(void)
{
    struct as_alert_list merged;
    as_alertmanager_merge(lists, list_count, &arena, &merged);
    return merged;
}

/* As Debian's Alertmanager 0.25 answers. */
static const char from_0_25[] =
    "[{\"annotations\":{\"summary\":\"s\"},\"endsAt\":\"2026-11-20T10:05:00.123Z\","
    "\"fingerprint\":\"7be9cc40aa9853c5\",\"receivers\":[{\"name\":\"alertscaler\"},{\"name\":"
    "\"web.hook\"}],\"startsAt\":\"2026-11-20T10:00:00.000Z\",\"status\":{\"inhibitedBy\":[],"
    "\"silencedBy\":[],\"state\":\"active\"},\"updatedAt\":\"2026-11-20T10:00:30.5Z\","
    "\"generatorURL\":\"http://p/graph\",\"labels\":{\"alertname\":\"HighCPU\",\"deployment\":"
    "\"web\",\"namespace\":\"prod\",\"severity\":\"critical\"}},"
    "{\"annotations\":{},\"endsAt\":\"2026-11-20T10:05:00.123Z\",\"fingerprint\":"
    "\"dab43189276e5f48\",\"receivers\":[],\"startsAt\":\"2026-11-20T12:00:00+02:00\",\"status\":{"
    "\"inhibitedBy\":[],\"silencedBy\":[\"ab\"],\"state\":\"suppressed\"},\"updatedAt\":"
    "\"2026-11-20T10:00:00Z\",\"labels\":{\"alertname\":\"TestAlert\"}}]";

Test(alertmanager, a_list)
{
    const struct as_alertmanager_alerts *list = add(from_0_25);
    cr_assert_eq(list->count, 2);
    const struct as_listed_alert *first = &list->items[0].listed;
    cr_expect_eq(first->fingerprint, UINT64_C(0x7be9cc40aa9853c5));
    cr_expect_not(first->is_suppressed);
    cr_expect_eq(first->starts_at.us, INT64_C(1795168800) * AS_US_PER_S);
    cr_expect_eq(list->items[0].listed.updated_at.us, INT64_C(1795168830500000));
    cr_expect_str_eq(as_labels_get(first->labels, "deployment"), "web");
    cr_expect_str_eq(as_labels_get(first->annotations, "summary"), "s");
    cr_assert_eq(first->receiver_count, 2);
    cr_expect_str_eq(first->receivers[0], "alertscaler");
    cr_expect_str_eq(first->receivers[1], "web.hook");
    const struct as_listed_alert *second = &list->items[1].listed;
    cr_expect(second->is_suppressed);
    cr_expect_eq(second->starts_at.us, first->starts_at.us);
    cr_expect_eq(second->receiver_count, 0);
    cr_expect_eq(add("[]")->count, 0);
}

#define ALERT(more)                                                                                \
    "{\"labels\":{\"alertname\":\"TestAlert\"},\"startsAt\":\"2026-11-20T10:00:00Z\"" more "}"
#define STATE(word) ",\"status\":{\"state\":\"" word "\"}"

Test(alertmanager, what_may_be_missing)
{
    const struct as_alertmanager_alerts *list =
        add("[" ALERT(STATE("unprocessed") ",\"fingerprint\":\"nonsense\",\"receivers\":null,"
                                           "\"mutedBy\":[1],\"new\":{}") "]");
    cr_assert_eq(list->count, 1);
    cr_expect_eq(list->items[0].listed.fingerprint, UINT64_C(0xdab43189276e5f48));
    cr_expect_not(list->items[0].listed.is_suppressed);
    cr_expect_eq(list->items[0].listed.annotations->count, 0);
    cr_expect_eq(list->items[0].listed.receiver_count, 0);
}

Test(alertmanager, what_is_no_list_is_refused_with_the_place)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"<html>", "not JSON: line 1, column 1: "},
        {"", "not JSON: "},
        {"{}", "expected an array of alerts, got an object"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_alertmanager_alerts *alerts = NULL;
        struct as_error error = AS_ERROR_INIT;
        cr_expect_eq(decode(rows[i].json, &alerts, &error), -EINVAL, "row %zu", i);
        cr_expect_null(alerts);
        cr_expect(as_str_starts_with(error.text, rows[i].error), "row %zu: %s", i, error.text);
    }
}

/* The list says so, and has the others. */
Test(alertmanager, an_alert_that_cannot_be_read_is_left_out)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"[7]", "alerts[0]: expected an object, got a number"},
        {"[{}]", "alerts[0].labels: missing"},
        {"[" ALERT(STATE("active")) ",{\"labels\":[]}]",
         "alerts[1].labels: expected an object, got an array"},
        {"[{\"labels\":{\"a\":1}}]", "alerts[0].labels.a: expected a string, got a number"},
        {"[{\"labels\":{},\"annotations\":{\"a\":{}}}]",
         "alerts[0].annotations.a: expected a string, got an object"},
        {"[{\"labels\":{}}]", "alerts[0].startsAt: missing"},
        {"[{\"labels\":{},\"startsAt\":\"now\"}]",
         "alerts[0].startsAt: expected a time like 2026-11-20T10:00:00Z, got \"now\""},
        {"[" ALERT() "]", "alerts[0].status.state: missing"},
        {"[" ALERT(",\"status\":7") "]", "alerts[0].status.state: missing"},
        {"[" ALERT(",\"status\":{\"state\":7}") "]", "alerts[0].status.state: expected a string"},
        {"[" ALERT(STATE("resolved")) "]",
         "alerts[0].status.state: expected active, suppressed or unprocessed, got \"resolved\""},
        {"[" ALERT(STATE("active") ",\"receivers\":{}") "]",
         "alerts[0].receivers: expected an array, got an object"},
        {"[" ALERT(STATE("active") ",\"receivers\":[\"x\"]") "]",
         "alerts[0].receivers: expected objects with a name"},
        {"[" ALERT(STATE("active") ",\"fingerprint\":7") "]",
         "alerts[0].fingerprint: expected a string, got a number"},
        {"[" ALERT(STATE("active") ",\"updatedAt\":\"\"") "]",
         "alerts[0].updatedAt: expected a time like 2026-11-20T10:00:00Z, got \"\""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_alertmanager_alerts *alerts = NULL;
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(decode(rows[i].json, &alerts, &error), 0, "row %zu: %s", i, error.text);
        cr_expect_eq(alerts->count, strstr(rows[i].error, "alerts[1]") ? 1 : 0, "row %zu", i);
        cr_expect_eq(alerts->unread, 1);
        cr_expect(as_str_starts_with(alerts->problem, rows[i].error), "row %zu: %s", i,
                  alerts->problem);
        as_alertmanager_alerts_free(alerts);
    }
}

static char *make_list(unsigned from, unsigned count)
{
    struct as_buf json = AS_BUF_INIT(64 << 20);
    size_t size;
    as_buf_append_char(&json, '[');
    for (unsigned i = 0; i < count; i++)
        as_buf_printf(&json,
                      "%s{\"labels\":{\"a\":\"%u\"},\"startsAt\":\"2026-11-20T10:00:00Z\"" STATE(
                          "active") "}",
                      i ? "," : "", from + i);
    as_buf_append_char(&json, ']');
    cr_assert_eq(as_buf_check(&json), 0);
    return as_buf_take(&json, &size);
}

Test(alertmanager, as_many_alerts_as_are_allowed)
{
    AS_CLEANUP(as_free_p) char *most = make_list(0, AS_ALERT_LIST_MAX);
    AS_CLEANUP(as_free_p) char *more = make_list(0, AS_ALERT_LIST_MAX + 1);
    AS_CLEANUP(as_free_p) char *another = make_list(AS_ALERT_LIST_MAX, 1);
    struct as_alertmanager_alerts *alerts = NULL;
    struct as_error error = AS_ERROR_INIT;
    cr_expect_eq(decode(more, &alerts, &error), -EINVAL);
    cr_expect_str_eq(error.text, "more than 100000 alerts");
    add(most);
    struct as_alert_list merged = merge();
    cr_expect_null(merged.error);
    cr_expect_eq(merged.count, AS_ALERT_LIST_MAX);
    add(another);
    merged = merge();
    cr_expect_str_eq(merged.error, "more than 100000 alerts");
    cr_expect_eq(merged.count, 0);
}

/* What one Alertmanager says of the alert {a="<value>"}. */
static void tell(const char *value, const char *state, const char *starts, const char *updated,
                 const char *note, const char *receivers)
{
    AS_CLEANUP(as_free_p)
    char *json =
        as_xasprintf("[{\"labels\":{\"a\":\"%s\"},\"fingerprint\":\"00000000000000aa\",\"status\":{"
                     "\"state\":\"%s\"},\"startsAt\":\"2026-11-20T10:%s:00Z\","
                     "\"updatedAt\":\"2026-11-20T10:%s:00Z\",\"annotations\":{\"n\":\"%s\"},"
                     "\"receivers\":[%s]}]",
                     value, state, starts, updated, note, receivers);
    add(json);
}

#define SAME "b"

Test(alertmanager, of_one_alert_several_tell)
{
    tell(SAME, "suppressed", "07", "08", "old", "{\"name\":\"z\"},{\"name\":\"a\"}");
    tell(SAME, "active", "05", "09", "new", "{\"name\":\"m\"},{\"name\":\"a\"}");
    tell(SAME, "suppressed", "06", "09", "as new", "");
    struct as_alert_list merged = merge();
    cr_assert_null(merged.error);
    cr_assert_eq(merged.count, 1);
    const struct as_listed_alert *alert = &merged.alerts[0];
    cr_expect_not(alert->is_suppressed);
    cr_expect_eq(alert->starts_at.us, INT64_C(1795168800) * AS_US_PER_S + 5 * AS_US_PER_MIN);
    cr_expect_str_eq(as_labels_get(alert->annotations, "n"), "new");
    cr_assert_eq(alert->receiver_count, 3);
    cr_expect_str_eq(alert->receivers[0], "a");
    cr_expect_str_eq(alert->receivers[1], "m");
    cr_expect_str_eq(alert->receivers[2], "z");
}

Test(alertmanager, suppressed_is_what_all_suppress)
{
    tell(SAME, "suppressed", "07", "08", "", "");
    tell(SAME, "suppressed", "07", "08", "", "");
    struct as_alert_list merged = merge();
    cr_assert_eq(merged.count, 1);
    cr_expect(merged.alerts[0].is_suppressed);
}

/* By the digests of the labels: all of these come under one fingerprint. */
Test(alertmanager, a_merged_list_is_ascending_whoever_tells_what)
{
    tell("cc", "active", "01", "01", "", "");
    tell("aa", "active", "01", "01", "", "");
    tell("bb", "suppressed", "01", "01", "", "");
    struct as_alert_list merged = merge();
    cr_assert_eq(merged.count, 3);
    static const char *const values[] = {"aa", "bb", "cc"};
    for (size_t i = 0; i < 3; i++)
        cr_expect_str_eq(as_labels_get(merged.alerts[i].labels, "a"), values[i]);
    cr_expect(merged.alerts[1].is_suppressed);
}

Test(alertmanager, nothing_fires)
{
    add("[]");
    add("[]");
    struct as_alert_list merged = merge();
    cr_expect_null(merged.error);
    cr_expect_eq(merged.count, 0);
}

Test(alertmanager, what_another_status_says)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"\"bad matcher\\nformat\"", "bad matcher format"},
        {"{\"code\":601,\"message\":\"active must be of type boolean\"}",
         "active must be of type boolean"},
        {"{\"code\":601}", ""},
        {"404 page not found", ""},
        {"", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char text[AS_ALERTMANAGER_ERROR_SIZE];
        as_alertmanager_decode_error(rows[i].json, strlen(rows[i].json), text);
        cr_expect_str_eq(text, rows[i].text, "row %zu", i);
    }
}
