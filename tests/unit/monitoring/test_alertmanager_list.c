/*
 * Alertmanager's list of alerts: read whole, or refused with the place; and the merge of several
 * lists.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/monitoring/alertmanager_list.h>

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
    int r = as_alertmanager_decode_groups(copy, size, alerts, error);
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

#define GROUP(receiver, alerts)                                                                    \
    "{\"labels\":{},\"receiver\":{\"name\":\"" receiver "\"},\"alerts\":[" alerts "]}"
#define GROUPS(alerts) "[" GROUP("scaler", alerts) "]"

/* As Debian's Alertmanager 0.25 answers: the first alert is in two groups. */
#define HIGH_CPU                                                                                   \
    "{\"annotations\":{\"summary\":\"s\"},\"endsAt\":\"2026-11-20T10:05:00.123Z\","                \
    "\"fingerprint\":\"7be9cc40aa9853c5\",\"receivers\":[{\"name\":\"alertscaler\"},{\"name\":"    \
    "\"web.hook\"}],\"startsAt\":\"2026-11-20T10:00:00.000Z\",\"status\":{\"inhibitedBy\":[],"     \
    "\"silencedBy\":[],\"state\":\"active\"},\"updatedAt\":\"2026-11-20T10:00:30.5Z\","            \
    "\"generatorURL\":\"http://p/graph\",\"labels\":{\"alertname\":\"HighCPU\",\"deployment\":"    \
    "\"web\",\"namespace\":\"prod\",\"severity\":\"critical\"}}"
static const char from_0_25[] = "[" GROUP("alertscaler", HIGH_CPU) "," GROUP(
    "web.hook",
    HIGH_CPU ",{\"annotations\":{},\"endsAt\":\"2026-11-20T10:05:00.123Z\",\"fingerprint\":"
             "\"dab43189276e5f48\",\"receivers\":[{\"name\":\"web.hook\"}],\"startsAt\":"
             "\"2026-11-20T12:00:00+02:00\",\"status\":{\"inhibitedBy\":[],\"silencedBy\":[\"ab\"],"
             "\"state\":\"suppressed\"},\"updatedAt\":\"2026-11-20T10:00:00Z\",\"labels\":{"
             "\"alertname\":\"TestAlert\"}}") "]";

Test(alertmanager, a_list)
{
    const struct as_alertmanager_alerts *list = add(from_0_25);
    cr_assert_eq(list->count, 2);
    cr_expect(list->is_muting_unknown);
    const struct as_listed_alert *first = &list->items[0].listed;
    cr_expect_eq(first->fingerprint, UINT64_C(0x7be9cc40aa9853c5));
    cr_expect_not(first->is_suppressed);
    cr_expect_eq(first->starts_at.us, INT64_C(1795168800) * AS_US_PER_S);
    cr_expect_eq(list->items[0].listed.updated_at.us, INT64_C(1795168830500000));
    cr_expect_str_eq(as_labels_get(first->labels, "deployment"), "web");
    cr_expect_str_eq(as_labels_get(first->annotations, "summary"), "s");
    cr_expect_str_eq(first->generator_url, "http://p/graph");
    cr_expect_null(list->items[1].listed.generator_url);
    cr_assert_eq(first->route_count, 2);
    cr_expect_str_eq(first->routes[0].receiver, "alertscaler");
    cr_expect_str_eq(first->routes[1].receiver, "web.hook");
    cr_expect_not(first->routes[0].is_muted);
    const struct as_listed_alert *second = &list->items[1].listed;
    cr_expect(second->is_suppressed);
    cr_expect_not(second->is_inhibited);
    cr_expect_eq(second->starts_at.us, first->starts_at.us);
    cr_assert_eq(second->route_count, 1);
    cr_expect_str_eq(second->routes[0].receiver, "web.hook");
    cr_expect_eq(add("[]")->count, 0);
}

#define ALERT(more)                                                                                \
    "{\"labels\":{\"alertname\":\"TestAlert\"},\"startsAt\":\"2026-11-20T10:00:00Z\"" more "}"
#define STATE(word) ",\"status\":{\"state\":\"" word "\"}"

/* Of an Alertmanager from 0.28 on. */
#define STATUS(state, silenced, inhibited, muted)                                                  \
    ",\"status\":{\"state\":\"" state "\",\"silencedBy\":[" silenced                               \
    "],\"inhibitedBy\":[" inhibited "],\"mutedBy\":[" muted "]}"

Test(alertmanager, muted_by_time)
{
    static const struct {
        const char *json;
        bool is_suppressed, is_inhibited, is_muted;
    } rows[] = {
        {GROUPS(ALERT(STATUS("active", "", "", ""))), false, false, false},
        {GROUPS(ALERT(STATUS("suppressed", "", "", "\"nights\""))), false, false, true},
        {GROUPS(ALERT(STATUS("active", "\"id\"", "", ""))), true, false, false},
        {GROUPS(ALERT(STATUS("active", "", "\"id\"", ""))), true, true, false},
        {GROUPS(ALERT(STATUS("suppressed", "\"id\"", "", ""))), true, false, false},
        {GROUPS(ALERT(STATUS("suppressed", "\"id\"", "", "\"nights\""))), true, false, true},
        {GROUPS(ALERT(STATUS("suppressed", "", "\"id\"", ""))), true, true, false},
        {GROUPS(ALERT(STATUS("suppressed", "", "\"id\"", "\"nights\""))), true, true, true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_alertmanager_alerts *list = add(rows[i].json);
        cr_assert_eq(list->count, 1, "row %zu", i);
        const struct as_listed_alert *alert = &list->items[0].listed;
        cr_expect_not(list->is_muting_unknown);
        cr_expect_eq(alert->is_suppressed, rows[i].is_suppressed, "row %zu", i);
        cr_expect_eq(alert->is_inhibited, rows[i].is_inhibited, "row %zu", i);
        cr_assert_eq(alert->route_count, 1);
        cr_expect_eq(alert->routes[0].is_muted, rows[i].is_muted, "row %zu", i);
        as_alertmanager_alerts_free(lists[--list_count]);
    }
}

/* Two routes to one receiver: it gets the alert if one of their groups is not muted. */
Test(alertmanager, a_receiver_is_muted_if_all_its_groups_are)
{
#define MUTED_ALERT   ALERT(STATUS("suppressed", "", "", "\"nights\""))
#define UNMUTED_ALERT ALERT(STATUS("active", "", "", ""))
    const struct as_alertmanager_alerts *list =
        add("[" GROUP("scaler", MUTED_ALERT) "," GROUP("scaler", UNMUTED_ALERT) "," GROUP(
            "pager", MUTED_ALERT) "," GROUP("pager", MUTED_ALERT) "]");
    cr_assert_eq(list->count, 1);
    const struct as_listed_alert *alert = &list->items[0].listed;
    cr_assert_eq(alert->route_count, 2);
    cr_expect_not(alert->routes[0].is_muted);
    cr_expect(alert->routes[1].is_muted);
}

Test(alertmanager, what_may_be_missing)
{
    const struct as_alertmanager_alerts *list =
        add(GROUPS(ALERT(STATE("unprocessed") ",\"fingerprint\":\"nonsense\",\"receivers\":null,"
                                              "\"mutedBy\":[1],\"new\":{}")));
    cr_assert_eq(list->count, 1);
    cr_expect_eq(list->items[0].listed.fingerprint, UINT64_C(0xdab43189276e5f48));
    cr_expect_not(list->items[0].listed.is_suppressed);
    cr_expect_eq(list->items[0].listed.annotations->count, 0);
}

Test(alertmanager, what_is_no_list_is_refused_with_the_place)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"<html>", "not JSON: line 1, column 1: "},
        {"", "not JSON: "},
        {"{}", "expected an array of groups, got an object"},
        {"[7]", "group 0: expected a receiver with a name"},
        {"[" GROUP("r", "") ",{\"alerts\":[]}]", "group 1: expected a receiver with a name"},
        {"[{\"receiver\":{\"name\":\"r\"}}]", "group 0: expected an array of alerts"},
        {"[" ALERT(STATE("active")) "]", "group 0: expected a receiver with a name"},
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
        {GROUPS("7"), "alerts[0]: expected an object, got a number"},
        {GROUPS("{}"), "alerts[0].labels: missing"},
        {"[" GROUP("a", ALERT(STATE("active"))) "," GROUP("b", "{\"labels\":[]}") "]",
         "alerts[1].labels: expected an object, got an array"},
        {GROUPS("{\"labels\":{\"a\":1}}"), "alerts[0].labels.a: expected a string, got a number"},
        {GROUPS("{\"labels\":{},\"annotations\":{\"a\":{}}}"),
         "alerts[0].annotations.a: expected a string, got an object"},
        {GROUPS("{\"labels\":{}}"), "alerts[0].startsAt: missing"},
        {GROUPS("{\"labels\":{},\"startsAt\":\"now\"}"),
         "alerts[0].startsAt: expected a time like 2026-11-20T10:00:00Z, got \"now\""},
        {GROUPS(ALERT()), "alerts[0].status.state: missing"},
        {GROUPS(ALERT(",\"status\":7")), "alerts[0].status.state: missing"},
        {GROUPS(ALERT(",\"status\":{\"state\":7}")), "alerts[0].status.state: expected a string"},
        {GROUPS(ALERT(STATE("resolved"))),
         "alerts[0].status.state: expected active, suppressed or unprocessed, got \"resolved\""},
        {GROUPS(ALERT(",\"status\":{\"state\":\"active\",\"mutedBy\":{}}")),
         "alerts[0].status.mutedBy: expected an array, got an object"},
        {GROUPS(ALERT(",\"status\":{\"state\":\"active\",\"inhibitedBy\":\"x\"}")),
         "alerts[0].status.inhibitedBy: expected an array, got a string"},
        {GROUPS(ALERT(",\"status\":{\"state\":\"active\",\"silencedBy\":1}")),
         "alerts[0].status.silencedBy: expected an array, got a number"},
        {GROUPS(ALERT(STATE("active") ",\"fingerprint\":7")),
         "alerts[0].fingerprint: expected a string, got a number"},
        {GROUPS(ALERT(STATE("active") ",\"updatedAt\":\"\"")),
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
    as_buf_append_str(&json, "[{\"receiver\":{\"name\":\"r\"},\"alerts\":[");
    for (unsigned i = 0; i < count; i++)
        as_buf_printf(&json,
                      "%s{\"labels\":{\"a\":\"%u\"},\"startsAt\":\"2026-11-20T10:00:00Z\"" STATE(
                          "active") "}",
                      i ? "," : "", from + i);
    as_buf_append_str(&json, "]}]");
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

/* The same alert in groups of many receivers, and a receiver with many groups. */
Test(alertmanager, an_alert_in_many_groups)
{
    struct as_buf json = AS_BUF_INIT(64 << 20);
    as_buf_append_char(&json, '[');
    for (unsigned i = 0; i < 3000; i++)
        as_buf_printf(&json, "%s{\"receiver\":{\"name\":\"r%u\"},\"alerts\":[%s]}", i ? "," : "",
                      i % 1001, ALERT(STATE("active")));
    as_buf_append_char(&json, ']');
    cr_assert_eq(as_buf_check(&json), 0);
    const struct as_alertmanager_alerts *list = add(json.data);
    cr_expect_eq(list->count, 1);
    cr_expect_eq(list->items[0].listed.route_count, AS_PAYLOAD_RECEIVERS_MAX);
    cr_expect_eq(list->unread, 2);
    cr_expect_str_eq(list->problem, "alerts[1000]: in groups of more than 1000 receivers");
    as_buf_deinit(&json);
}

/* What one Alertmanager says of the alert {a="<value>"}, in groups of these receivers. */
static void tell(const char *value, const char *status, const char *starts, const char *updated,
                 const char *note, const char *const receivers[])
{
    struct as_buf json = AS_BUF_INIT(1 << 20);
    as_buf_append_char(&json, '[');
    for (size_t i = 0; receivers[i]; i++)
        as_buf_printf(&json,
                      "%s{\"receiver\":{\"name\":\"%s\"},\"alerts\":[{\"labels\":{\"a\":\"%s\"},"
                      "\"fingerprint\":\"00000000000000aa\"%s,\"startsAt\":"
                      "\"2026-11-20T10:%s:00Z\",\"updatedAt\":\"2026-11-20T10:%s:00Z\","
                      "\"annotations\":{\"n\":\"%s\"}}]}",
                      i ? "," : "", receivers[i], value, status, starts, updated, note);
    as_buf_append_char(&json, ']');
    cr_assert_eq(as_buf_check(&json), 0);
    add(json.data);
    as_buf_deinit(&json);
}

#define IN(...) ((const char *const[]){__VA_ARGS__, NULL})

#define ACTIVE     STATUS("active", "", "", "")
#define SUPPRESSED STATUS("suppressed", "\"id\"", "", "")
#define INHIBITED  STATUS("suppressed", "", "\"id\"", "")
#define MUTED      STATUS("suppressed", "", "", "\"nights\"")

#define SAME "b"

Test(alertmanager, of_one_alert_several_tell)
{
    tell(SAME, SUPPRESSED, "07", "08", "old", IN("z", "a"));
    tell(SAME, ACTIVE, "05", "09", "new", IN("m", "a"));
    tell(SAME, SUPPRESSED, "06", "09", "as new", IN("a"));
    struct as_alert_list merged = merge();
    cr_assert_null(merged.error);
    cr_assert_eq(merged.count, 1);
    const struct as_listed_alert *alert = &merged.alerts[0];
    cr_expect_not(alert->is_suppressed);
    cr_expect_eq(alert->starts_at.us, INT64_C(1795168800) * AS_US_PER_S + 5 * AS_US_PER_MIN);
    cr_expect_str_eq(as_labels_get(alert->annotations, "n"), "new");
    cr_assert_eq(alert->route_count, 3);
    cr_expect_str_eq(alert->routes[0].receiver, "a");
    cr_expect_str_eq(alert->routes[1].receiver, "m");
    cr_expect_str_eq(alert->routes[2].receiver, "z");
}

Test(alertmanager, suppressed_is_what_all_suppress)
{
    tell(SAME, SUPPRESSED, "07", "08", "", IN("a"));
    tell(SAME, SUPPRESSED, "07", "08", "", IN("a"));
    struct as_alert_list merged = merge();
    cr_assert_eq(merged.count, 1);
    cr_expect(merged.alerts[0].is_suppressed);
}

/* Of several Alertmanagers one has flushed the group later than the others. */
Test(alertmanager, muted_is_what_one_mutes)
{
    tell(SAME, ACTIVE, "07", "08", "", IN("a", "b"));
    tell(SAME, MUTED, "07", "08", "", IN("a"));
    tell(SAME, INHIBITED, "07", "08", "", IN("b"));
    lists[0]->items[0].routes[0].wait_us = 5;
    lists[1]->items[0].routes[0].wait_us = 7;
    struct as_alert_list merged = merge();
    cr_assert_eq(merged.count, 1);
    const struct as_listed_alert *alert = &merged.alerts[0];
    cr_expect_not(alert->is_suppressed);
    cr_expect(alert->is_inhibited);
    cr_assert_eq(alert->route_count, 2);
    cr_expect(alert->routes[0].is_muted);
    cr_expect_eq(alert->routes[0].wait_us, 7);
    cr_expect_not(alert->routes[1].is_muted);
}

/* By the digests of the labels: all of these come under one fingerprint. */
Test(alertmanager, a_merged_list_is_ascending_whoever_tells_what)
{
    tell("cc", ACTIVE, "01", "01", "", IN("r"));
    tell("aa", ACTIVE, "01", "01", "", IN("r"));
    tell("bb", SUPPRESSED, "01", "01", "", IN("r"));
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

static int decode_status(const char *json, struct as_alertmanager_status *status,
                         struct as_error *error)
{
    return as_alertmanager_decode_status(json, strlen(json), &arena, status, error);
}

Test(alertmanager, a_status)
{
    struct as_alertmanager_status status = {0};
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(
        decode_status("{\"cluster\":{\"peers\":[]},\"config\":{\"original\":\"route:\\n\"},"
                      "\"uptime\":\"2026-11-20T10:00:00.000Z\",\"versionInfo\":{}}",
                      &status, &error),
        0);
    cr_expect_str_eq(status.config, "route:\n");
    cr_expect_eq(status.config_size, 7);
    cr_expect_str_eq(status.uptime, "2026-11-20T10:00:00.000Z");
    cr_assert_eq(decode_status("{\"config\":{\"original\":\"\"}}", &status, &error), 0);
    cr_expect_str_eq(status.uptime, "");
}

Test(alertmanager, what_is_no_status)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"<html>", "not JSON: "},
        {"[]", "config.original: missing"},
        {"{\"config\":{}}", "config.original: missing"},
        {"{\"config\":{\"original\":{}}}", "config.original: expected a string"},
        {"{\"config\":{\"original\":\"\"},\"uptime\":7}", "uptime: expected a string"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_alertmanager_status status;
        struct as_error error = AS_ERROR_INIT;
        cr_expect_lt(decode_status(rows[i].json, &status, &error), 0, "row %zu", i);
        cr_expect(as_str_starts_with(error.text, rows[i].error), "row %zu: %s", i, error.text);
    }
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
