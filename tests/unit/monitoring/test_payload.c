/* The payload: those of every Alertmanager and Grafana are read; errors say where and why. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/monitoring/payload.h>

#define YEAR_ONE_US (-INT64_C(62135596800) * AS_US_PER_S)

static struct as_notification *decode(const char *body)
{
    struct as_notification *notification = NULL;
    struct as_error error = AS_ERROR_INIT;
    int r = as_payload_decode(body, strlen(body), &notification, &error);

    cr_assert_eq(r, 0, "%s: %s", body, error.text);
    return notification;
}

/* As Alertmanager 0.34 writes it, line break included. */
static const char newest[] =
    "{\"receiver\":\"web\\\\.hook\",\"status\":\"firing\",\"alerts\":[{\"status\":\"firing\","
    "\"labels\":{\"alertname\":\"HighCPU\",\"deployment\":\"web\",\"namespace\":\"prod\","
    "\"severity\":\"critical\"},\"annotations\":{\"summary\":\"CPU \\u003e 80% \\u0026 rising\"},"
    "\"startsAt\":\"2026-11-20T10:00:00.123456789+02:00\",\"endsAt\":\"0001-01-01T00:00:00Z\","
    "\"generatorURL\":\"http://p:9090/graph\",\"fingerprint\":\"7be9cc40aa9853c5\"},"
    "{\"status\":\"resolved\",\"labels\":{\"k8s.io/app\":\"x\"},\"annotations\":{},"
    "\"startsAt\":\"2026-11-20T08:00:00Z\",\"endsAt\":\"2026-11-20T09:00:00Z\","
    "\"generatorURL\":\"\",\"fingerprint\":\"00000000000000ff\"}],"
    "\"groupLabels\":{\"alertname\":\"HighCPU\"},\"commonLabels\":{},\"commonAnnotations\":{},"
    "\"externalURL\":\"http://am:9093\",\"version\":\"4\","
    "\"groupKey\":\"{}:{alertname=\\\"HighCPU\\\"}\",\"truncatedAlerts\":3,"
    "\"notification_reason\":\"new alerts added\",\"routeLabels\":{\"team\":\"a\"}}\n";

Test(payload, reads_all_that_alertmanager_says)
{
    struct as_notification *n = decode(newest);

    cr_assert_str_eq(n->receiver, "web.hook");
    cr_assert_str_eq(n->group_key, "{}:{alertname=\"HighCPU\"}");
    cr_assert_str_eq(n->reason, "new alerts added");
    cr_assert_eq(n->truncated, 3);
    cr_assert_eq(n->alert_count, 2);
    cr_assert_eq(n->alerts[0].status, AS_ALERT_FIRING);
    cr_assert_eq(n->alerts[0].fingerprint, UINT64_C(0x7be9cc40aa9853c5));
    cr_assert_eq(n->alerts[0].labels->count, 4);
    cr_assert_str_eq(as_labels_get(n->alerts[0].labels, "deployment"), "web");
    cr_assert_str_eq(as_labels_get(n->alerts[0].annotations, "summary"), "CPU > 80% & rising");
    cr_assert_eq(n->alerts[0].starts_at.us, INT64_C(1795161600123456));
    cr_assert_eq(n->alerts[0].ends_at.us, YEAR_ONE_US);
    cr_assert_str_eq(n->alerts[0].generator_url, "http://p:9090/graph");
    cr_assert_null(n->alerts[1].generator_url);
    cr_assert_str_eq(n->external_url, "http://am:9093");
    cr_assert_eq(n->alerts[1].status, AS_ALERT_RESOLVED);
    cr_assert_eq(n->alerts[1].fingerprint, 255);
    cr_assert_str_eq(as_labels_get(n->alerts[1].labels, "k8s.io/app"), "x");
    cr_assert_eq(n->alerts[1].annotations->count, 0);
    cr_assert_eq(n->alerts[1].ends_at.us - n->alerts[1].starts_at.us, AS_US_PER_H);
    /* what the request fills in later is there, empty */
    cr_assert_str_eq(n->remote, "");
    cr_assert_str_eq(n->credential, "");
    cr_assert_str_eq(n->traceparent, "");
    cr_assert_str_eq(n->id, "");
    as_notification_free(n);
}

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

static void *decode_in_thread(void *unused)
{
    as_notification_free(decode(newest));
    return unused;
}

/* The state of a store in Kubernetes is read in a thread of its own, each time one leads. */
Test(payload, a_thread_that_ends_leaves_no_memory)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, decode_in_thread, NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(__lsan_do_recoverable_leak_check(), 0);
}
#endif

#define ALERT(members)                                                                             \
    "{\"version\":\"4\",\"alerts\":[{\"status\":\"firing\",\"labels\":{\"alertname\":"             \
    "\"TestAlert\"},\"startsAt\":\"2026-11-20T10:00:00Z\"" members "}]}"

Test(payload, what_older_versions_and_hand_written_ones_lack_is_tolerated)
{
    struct as_notification *n = decode(ALERT(""));

    cr_assert_str_eq(n->receiver, "");
    cr_assert_str_eq(n->group_key, "");
    cr_assert_str_eq(n->reason, "");
    cr_assert_eq(n->truncated, 0);
    cr_assert_eq(n->alerts[0].fingerprint, UINT64_C(0xdab43189276e5f48));
    cr_assert_eq(n->alerts[0].ends_at.us, YEAR_ONE_US);
    cr_assert_eq(n->alerts[0].annotations->count, 0);
    as_notification_free(n);
    n = decode("{\"version\":\"4\",\"alerts\":[]}");
    cr_assert_eq(n->alert_count, 0);
    as_notification_free(n);
}

/* A wrong URL loses only its link. */
Test(payload, a_url_that_cannot_be_a_link_is_dropped)
{
    static const char *const wrong[] = {
        "null",
        "7",
        "{}",
        "\"\"",
        "\"graph\"",
        "\"/graph\"",
        "\"javascript:alert(1)\"",
        "\" javascript:alert(1)\"",
        "\"data:text/html,x\"",
        "\"ftp://p/\"",
        "\"http://user:secret@p/\"",
        "\"http://p/a b\"",
        "\"http://p/\\u0000\"",
        "\"http://p/\\n\"",
        "\"http://p/\\u00fc\"",
    };
    char body[2 * AS_PAYLOAD_URL_MAX];
    for (size_t i = 0; i < AS_ARRAY_SIZE(wrong); i++) {
        snprintf(body, sizeof(body),
                 "{\"version\":\"4\",\"externalURL\":%s,\"alerts\":[{\"status\":\"firing\","
                 "\"labels\":{},\"startsAt\":\"2026-11-20T10:00:00Z\",\"generatorURL\":%s}]}",
                 wrong[i], wrong[i]);
        struct as_notification *n = decode(body);
        cr_expect_null(n->external_url, "%s", body);
        cr_expect_null(n->alerts[0].generator_url, "%s", body);
        cr_expect_null(n->alerts[0].problem, "%s", body);
        as_notification_free(n);
    }
    for (int more = 0; more < 2; more++) {
        const int size = AS_PAYLOAD_URL_MAX - (int)strlen("https://p/") + more;
        snprintf(body, sizeof(body),
                 "{\"version\":\"4\",\"alerts\":[],\"externalURL\":\"https://p/%0*d\"}", size, 0);
        struct as_notification *n = decode(body);
        cr_expect_eq(n->external_url == NULL, more == 1);
        as_notification_free(n);
    }
}

Test(payload, null_is_as_good_as_absent_where_something_may_be_absent)
{
    as_notification_free(
        decode(ALERT(",\"annotations\":null,\"endsAt\":null,\"fingerprint\":null")));
    as_notification_free(
        decode("{\"version\":\"4\",\"alerts\":[],\"receiver\":null,\"groupKey\":null,"
               "\"truncatedAlerts\":null,\"notification_reason\":null}"));
}

Test(payload, grafanas_superset_is_read)
{
    struct as_notification *n = decode(
        "{\"receiver\":\"My receiver\",\"status\":\"firing\",\"orgId\":1,\"alerts\":[{"
        "\"status\":\"firing\",\"labels\":{\"alertname\":\"x\",\"team\":\"blue\"},\"annotations\":"
        "{},\"startsAt\":\"2018-08-03T15:52:37.3-07:00\",\"endsAt\":\"0001-01-01T00:00:00Z\","
        "\"values\":{\"B\":44.23603266166704,\"C\":1},\"valueString\":\"[ var='B' ]\","
        "\"generatorURL\":\"\",\"fingerprint\":\"c6eadffa33fcdf37\",\"silenceURL\":\"\","
        "\"imageURL\":null}],\"groupLabels\":{},\"commonLabels\":{},\"commonAnnotations\":{},"
        "\"externalURL\":\"\",\"version\":\"1\",\"groupKey\":\"{}:{}\",\"truncatedAlerts\":0,"
        "\"title\":\"[FIRING:2]\",\"state\":\"alerting\",\"message\":\"**Firing**\"}");

    cr_assert_str_eq(n->receiver, "My receiver");
    cr_assert_eq(n->alerts[0].fingerprint, UINT64_C(0xc6eadffa33fcdf37));
    as_notification_free(n);
}

/* `printf 'alertname\0TestAlert\0' | sha256sum`: whatever the sender says that its fingerprint is.
 */
Test(payload, an_alert_is_known_by_the_digest_of_its_labels)
{
    static const char *const bodies[] = {ALERT(""), ALERT(",\"fingerprint\":\"00000000000000aa\"")};
    for (size_t i = 0; i < AS_ARRAY_SIZE(bodies); i++) {
        char digest[AS_DIGEST_TEXT_SIZE];
        AS_CLEANUP(as_notification_free_p) struct as_notification *n = decode(bodies[i]);
        as_digest_print(&n->alerts[0].digest, digest);
        cr_assert_str_eq(digest,
                         "1eed09670336db0d331d2320a4354bda62a3ae7d9246edf56fe7f55a536aef7d");
    }
}

Test(payload, a_fingerprint_is_taken_only_when_it_is_one)
{
    static const char *const others[] = {"",
                                         "7be9cc40aa9853c",
                                         "7be9cc40aa9853c55",
                                         "7be9cc40aa9853cg",
                                         "0x7be9cc40aa9853",
                                         "-be9cc40aa9853c5"};

    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        char *body = as_xasprintf(ALERT(",\"fingerprint\":\"%s\""), others[i]);
        struct as_notification *n = decode(body);
        cr_assert_eq(n->alerts[0].fingerprint, UINT64_C(0xdab43189276e5f48), "%s", others[i]);
        as_notification_free(n);
        free(body);
    }
}

Test(payload, the_receivers_name_is_unquoted_as_go_quoted_it)
{
    static const char *const names[][2] = {
        {"web.hook", "web\\\\.hook"},
        {"a+b (c)[d]{e}^$|*?",
         "a\\\\+b \\\\(c\\\\)\\\\[d\\\\]\\\\{e\\\\}\\\\^\\\\$\\\\|\\\\*\\\\?"},
        {"back\\slash", "back\\\\\\\\slash"},
        {"team/a-b_c \xC3\xA9", "team/a-b_c \xC3\xA9"},
        {"odd\\d\\", "odd\\\\d\\\\"},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        char *body =
            as_xasprintf("{\"version\":\"4\",\"alerts\":[],\"receiver\":\"%s\"}", names[i][1]);
        struct as_notification *n = decode(body);
        cr_assert_str_eq(n->receiver, names[i][0]);
        as_notification_free(n);
        free(body);
    }
}

Test(payload, times_of_year_one_and_far_away_are_times)
{
    struct as_notification *n =
        decode("{\"version\":\"4\",\"alerts\":[{\"status\":\"firing\",\"labels\":{},\"startsAt\":"
               "\"0001-01-01T00:00:00Z\",\"endsAt\":\"9999-12-31T23:59:59.999999999Z\"}]}");

    cr_assert_eq(n->alerts[0].starts_at.us, YEAR_ONE_US);
    cr_assert_eq(n->alerts[0].ends_at.us, INT64_C(253402300799999999));
    cr_assert_eq(n->alerts[0].labels->count, 0);
    as_notification_free(n);
}

#define WITH(member)   "{\"version\":\"4\",\"alerts\":[]," member "}"
#define ALERTS(alerts) "{\"version\":\"4\",\"alerts\":" alerts "}"
#define GOOD           "{\"status\":\"firing\",\"labels\":{},\"startsAt\":\"2026-11-20T10:00:00Z\"}"
#define CUSTOM         "not Alertmanager's webhook payload; remove the custom `payload`"

static const struct {
    const char *body, *error;
} bad[] = {
    /* not JSON */
    {"", "not JSON: line 1, column 0"},
    {"x", "not JSON: line 1, column 1"},
    {"alert=1", "not JSON"},
    {"\"text\"", "not JSON"},
    {"{\"version\":\"4\",", "not JSON: line 1"},
    {"{\"version\":\"4\",\n\"alerts\":[}", "not JSON: line 2, column 11"},
    {ALERTS("[]") "x", "not JSON: line 1"},
    {WITH("\"a\":1,\"a\":2"), "not JSON: line 1, column 36: duplicate object key"},
    {ALERTS("[{\"labels\":{\"a\":\"1\",\"a\":\"2\"}}]"), "duplicate object key"},
    {WITH("\"a\":1,\"\\u0061\":2"), "line 1, column 36: duplicate object key"},
    {WITH("\"b\":1,\"c\":2,\"\xC3\xA9\":3,\"b\":4"), "line 1, column 48: duplicate object key"},
    {WITH(
         "\"z\":0,\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"j\":10,"
         "\"k\":11,\"l\":12,\"m\":13,\"n\":14,\"o\":15,\"z\":16"),
     "duplicate object key"},
    {WITH("\"a\":1,"), "line 1, column 34: a name in quotes expected"},
    {WITH("\"a\":[1,]"), "line 1, column 35: a value expected"},
    {WITH("\"a\":[1 2]"), "line 1, column 35: ',' or ']' expected"},
    {WITH("\"a\" 1"), "line 1, column 32: ':' expected"},
    {WITH("a:1"), "line 1, column 28: a name in quotes expected"},
    {WITH("\"a\":nul"), "line 1, column 32: a value expected"},
    {WITH("\"a\":1e"), "line 1, column 32: invalid number"},
    {WITH("\"a\":+1"), "line 1, column 32: a value expected"},
    {WITH("\"a\":\"\\x\""), "line 1, column 33: invalid escape"},
    {WITH("\"a\":\"\\u12\""), "line 1, column 33: invalid escape"},
    {WITH("\"a\":\"\\udc00\\ud800\""), "half of a surrogate pair"},
    {WITH("\"a\":\"\\ud800\\u0041\""), "half of a surrogate pair"},
    {WITH("\"a\":\"\xFF\""), "unable to decode byte 0xff"},
    {WITH("\"a\":\"\xED\xA0\x80\""), "unable to decode"},
    {WITH("\"a\":\"\\ud800\""), "not JSON"},
    {WITH("\"a\":\"line\nbreak\""), "unexpected newline in a text"},
    {WITH("\"a\":1e400"), "real number overflow"},
    {WITH("\"a\":01"), "not JSON"},
    {WITH("\"a\":NaN"), "not JSON"},
    /* not a payload */
    {"[]", "expected a JSON object, got an array"},
    {"{}", "no \"alerts\": " CUSTOM},
    {"{\"text\":\"hello\"}", "no \"alerts\": " CUSTOM},
    {"{\"version\":\"4\",\"alerts\":null}", "no \"alerts\": " CUSTOM},
    {"{\"alerts\":[]}", "no \"version\": " CUSTOM},
    /* the wrong shape */
    {"{\"version\":4,\"alerts\":[]}", "version: expected a string, got a number"},
    {ALERTS("{}"), "alerts: expected an array, got an object"},
    {ALERTS("\"\""), "alerts: expected an array, got a string"},
    {WITH("\"receiver\":1"), "receiver: expected a string, got a number"},
    {WITH("\"groupKey\":[]"), "groupKey: expected a string, got an array"},
    {WITH("\"truncatedAlerts\":-1"), "truncatedAlerts: expected a whole number not below 0"},
    {WITH("\"truncatedAlerts\":18446744073709551616"),
     "truncatedAlerts: expected a whole number not below 0"},
    {WITH("\"truncatedAlerts\":1.5"), "truncatedAlerts: expected a whole number not below 0"},
    {WITH("\"truncatedAlerts\":\"1\""), "truncatedAlerts: expected a whole number not below 0"},
};

/* The alerts that this is wrong with are refused, and nobody else. */
static const struct {
    const char *body, *error;
} bad_alerts[] = {
    {ALERTS("[1]"), "alerts[0]: expected an object, got a number"},
    {ALERTS("[" GOOD "," GOOD ",null]"), "alerts[2]: expected an object, got null"},
    {ALERTS("[{}]"), "alerts[0].labels: missing"},
    {ALERTS("[{\"labels\":{}}]"), "alerts[0].status: missing"},
    {ALERTS("[{\"labels\":null,\"status\":\"firing\"}]"), "alerts[0].labels: missing"},
    {ALERTS("[{\"labels\":[],\"status\":\"firing\"}]"),
     "alerts[0].labels: expected an object, got an array"},
    {ALERTS("[{\"labels\":{},\"status\":\"Firing\"}]"),
     "alerts[0].status: expected \"firing\" or \"resolved\", got \"Firing\""},
    {ALERTS("[{\"labels\":{},\"status\":\"a\\nb\"}]"), "got \"a\\nb\""},
    {ALERTS("[{\"labels\":{},\"status\":1}]"), "alerts[0].status: expected a string, got a number"},
    {ALERTS("[{\"labels\":{},\"status\":\"firing\"}]"), "alerts[0].startsAt: missing"},
    {ALERTS("[" GOOD "," GOOD "," GOOD ",{\"status\":\"firing\",\"labels\":{\"severity\":5}}]"),
     "alerts[3].labels.severity: expected a string, got a number"},
    {ALERTS("[{\"status\":\"firing\",\"labels\":{\"k8s.io/app\":null}}]"),
     "alerts[0].labels[\"k8s.io/app\"]: expected a string, got null"},
    {ALERTS("[{\"status\":\"firing\",\"labels\":{\"\":\"x\"}}]"),
     "alerts[0].labels[\"\"]: a name cannot be empty"},
    {ALERT(",\"annotations\":\"x\""), "alerts[0].annotations: expected an object, got a string"},
    {ALERT(",\"annotations\":{\"a\":{}}"),
     "alerts[0].annotations.a: expected a string, got an object"},
    {ALERT(",\"endsAt\":\"tomorrow\""),
     "alerts[0].endsAt: expected a time like 2026-11-20T10:00:00Z, got \"tomorrow\""},
    {ALERT(",\"endsAt\":\"2026-02-30T10:00:00Z\""), "alerts[0].endsAt: expected a time"},
    {ALERT(",\"endsAt\":\"10000-01-01T00:00:00Z\""), "alerts[0].endsAt: expected a time"},
    {ALERT(",\"endsAt\":1795161600"), "alerts[0].endsAt: expected a string, got a number"},
    {ALERT(",\"fingerprint\":1"), "alerts[0].fingerprint: expected a string, got a number"},
};

static void check_refused(const char *body, size_t size, const char *expected)
{
    /* memory of exactly this size: reading past the end is seen by the sanitizer */
    char *copy = malloc(size ? size : 1);
    struct as_notification *notification = NULL;
    struct as_error error = AS_ERROR_INIT;

    memcpy(copy, body, size);
    cr_assert_eq(as_payload_decode(copy, size, &notification, &error), -EINVAL, "%.200s", body);
    cr_assert(strstr(error.text, expected), "%.200s: %s", body, error.text);
    cr_assert_null(strchr(error.text, '\n'), "%s", error.text);
    cr_assert_null(notification);
    free(copy);
}

/* malloc for this program: the sanitizer's, where there is one, else the C library's. */
extern void *__interceptor_malloc(size_t) __attribute__((weak));
extern void *__libc_malloc(size_t);
static size_t refused; /* bytes: there is no memory for just so many */

void *malloc(size_t size)
{
    if (size > 0 && size == refused)
        return NULL;
    return __interceptor_malloc ? __interceptor_malloc(size) : __libc_malloc(size);
}

/* To find doubles, the reader sorts an object's names: it needs a pointer for each of them. */
Test(payload, names_that_find_no_memory_are_no_fault_of_the_body)
{
    struct as_notification *notification = NULL;
    struct as_error error = AS_ERROR_INIT;
    const size_t count = 1717;
    struct as_buf body = AS_BUF_INIT((size_t)1 << 20);

    as_buf_append_str(&body, "{\"version\":\"4\",\"alerts\":[],\"unknown\":{\"z\":0");
    for (size_t i = 1; i < count; i++)
        as_buf_printf(&body, ",\"%zu\":0", i);
    as_buf_append_str(&body, "}}");
    refused = count * sizeof(void *);
    cr_assert_eq(as_payload_decode(body.data, body.size, &notification, &error), -ENOMEM);
    cr_assert_str_eq(error.text, "out of memory");
    cr_assert_null(notification);
    refused = 0;
    cr_assert_eq(as_payload_decode(body.data, body.size, &notification, &error), 0);
    as_notification_free(notification);
    as_buf_deinit(&body);
}

/* `count` times `item`. */
static struct as_buf repeat(const char *head, const char *item, size_t count, const char *tail)
{
    struct as_buf buf = AS_BUF_INIT((size_t)64 << 20);

    as_buf_append_str(&buf, head);
    for (size_t i = 0; i < count; i++)
        as_buf_append_str(&buf, item);
    as_buf_append_str(&buf, tail);
    cr_assert_eq(as_buf_check(&buf), 0);
    return buf;
}

/* The last alert is refused, and those before it are read. */
static void check_invalid(const char *body, size_t size, const char *expected)
{
    AS_CLEANUP(as_notification_free_p) struct as_notification *n = NULL;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_payload_decode(body, size, &n, &error), 0, "%.200s: %s", body, error.text);
    for (size_t i = 0; i + 1 < n->alert_count; i++)
        cr_assert_null(n->alerts[i].problem);
    const struct as_alert *last = &n->alerts[n->alert_count - 1];
    cr_assert_not_null(last->problem, "%.200s", body);
    cr_assert(strstr(last->problem, expected), "%.200s: %s", body, last->problem);
    cr_assert_null(strchr(last->problem, '\n'), "%s", last->problem);
    cr_assert_eq(last->labels->count, 0);
    cr_assert_eq(last->annotations->count, 0);
}

/* Alertmanager drops what is answered 400, with the good alerts in it. */
Test(payload, an_alert_that_cannot_be_read_refuses_only_itself)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad_alerts); i++)
        check_invalid(bad_alerts[i].body, strlen(bad_alerts[i].body), bad_alerts[i].error);
}

Test(payload, a_nul_refuses_only_the_alert_that_it_is_in)
{
    static const struct {
        const char *alert, *error;
    } rows[] = {
        {"{\"status\":\"firing\",\"labels\":{\"a\":\"x\\u0000y\"},\"startsAt\":\"2026-11-20T10:00:"
         "00Z\"}",
         "alerts[1].labels.a: a NUL in it"},
        {"{\"status\":\"firing\",\"labels\":{\"a\\u0000\":\"x\"},\"startsAt\":\"2026-11-20T10:00:"
         "00Z\"}",
         "a NUL in it"},
        {"{\"status\":\"firing\",\"labels\":{},\"annotations\":{\"n\":\"\\u0000\"},\"startsAt\":"
         "\"2026\"}",
         "alerts[1].annotations.n: a NUL in it"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *body = as_xasprintf(
            "{\"version\":\"4\",\"groupKey\":\"{a=\\u0000}\",\"alerts\":[" GOOD ",%s]}",
            rows[i].alert);
        check_invalid(body, strlen(body), rows[i].error);
    }
    /* what stands there escaped is no NUL, and what is no character is none either */
    as_notification_free(decode(ALERT(",\"annotations\":{\"a\":\"\\\\u0000\",\"b\":\"\\uffff\"}")));
    AS_CLEANUP(as_notification_free_p)
    struct as_notification *n =
        decode(ALERT(",\"annotations\":{\"a\":\"\\\\u0000\"},\"other\":\"\\u0000\""));
    cr_assert_null(n->alerts[0].problem);
    cr_assert_str_eq(as_labels_get(n->alerts[0].annotations, "a"), "\\u0000");
}

Test(payload, too_many_alerts_that_cannot_be_read_are_no_notification)
{
    struct as_buf body = repeat("{\"version\":\"4\",\"alerts\":[1", ",1", 1000, "]}");
    check_refused(body.data, body.size,
                  "more than 1000 alerts that cannot be read; the last: alerts[1000]: expected an "
                  "object, got a number");
    as_buf_deinit(&body);
}

Test(payload, what_is_wrong_is_refused_with_its_place)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++)
        check_refused(bad[i].body, strlen(bad[i].body), bad[i].error);
    check_refused("{\"version\":\"4\",\0\"alerts\":[]}", 29, "not JSON");
    check_refused("{\"version\":\"4\",\"alerts\":[]}\0", 28, "not JSON");
}

/* Read in place: an escape is longer than what it stands for, whatever stands around it. */
Test(payload, escapes_stand_for_their_characters)
{
    static const char *const rows[][2] = {
        {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
        {"a\\u0041\\u00e9\\u20ac\\ud83d\\ude00z", "aA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z"},
        {"\xC3\xA9 plain text behind it \\u00E9", "\xC3\xA9 plain text behind it \xC3\xA9"},
        {"1234567\\n12345678\\n123456789\x7F", "1234567\n12345678\n123456789\x7F"},
        {"\\ud7ff\\ue000\\ufffe\\udbff\\udfff",
         "\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBE\xF4\x8F\xBF\xBF"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *body = as_xasprintf(ALERT(",\"annotations\":{\"a\":\"%s\",\"b\":\"\"}"), rows[i][0]);
        AS_CLEANUP(as_notification_free_p) struct as_notification *n = decode(body);
        cr_assert_null(n->alerts[0].problem, "%s", n->alerts[0].problem);
        cr_assert_str_eq(as_labels_get(n->alerts[0].annotations, "a"), rows[i][1]);
    }
}

Test(payload, a_truncated_body_is_refused_wherever_it_is_cut)
{
    for (size_t size = 0; size + 2 < sizeof(newest); size++) /* the end: line break and NUL */
        check_refused(newest, size, "not JSON");
}

Test(payload, deep_nesting_is_refused_not_followed)
{
    struct as_buf body = repeat("{\"version\":\"4\",\"alerts\":[],\"a\":", "[", 5000, "");

    check_refused(body.data, body.size, "maximum parsing depth reached");
    as_buf_deinit(&body);
}

Test(payload, a_small_body_cannot_take_much_memory_but_brackets_in_texts_are_free)
{
    struct as_buf body = repeat("{\"version\":\"4\",\"alerts\":[],\"a\":[0", ",0", 100000, "]}");

    check_refused(body.data, body.size, "too many values for a document of this size");
    as_buf_deinit(&body);
    body = repeat("{\"version\":\"4\",\"alerts\":[],\"a\":\"\\\"", "[{", 100000, "\"}");
    as_notification_free(decode(body.data));
    as_buf_deinit(&body);
}

Test(payload, a_hundred_thousand_alerts_are_read)
{
    struct as_buf body = repeat("{\"version\":\"4\",\"alerts\":[" GOOD, "," GOOD, 99999, "]}");
    struct as_notification *n = decode(body.data);

    cr_assert_eq(n->alert_count, 100000);
    cr_assert_eq(n->alerts[99999].fingerprint, UINT64_C(0xcbf29ce484222325));
    as_notification_free(n);
    as_buf_deinit(&body);
}

#define BODY_MAX ((size_t)16 * 1024 * 1024) /* receiver.max_body where nothing else is said */

#define REST                                                                                       \
    "\"startsAt\":\"2026-11-20T10:00:00.123Z\",\"endsAt\":\"0001-01-01T00:00:00Z\","               \
    "\"generatorURL\":\"http://prometheus:9090/graph?g0.expr=rate%28x%5B10m%5D%29&g0.tab=1\","     \
    "\"fingerprint\":\"00112233445566aa\"}"

/* As kube-prometheus has them; with one label; and what is written with the fewest bytes a value,
 * which nobody sends. */
static const char *const shapes[] = {
    "{\"status\":\"firing\",\"labels\":{\"alertname\":\"KubePodCrashLooping\",\"cluster\":\"prod-"
    "eu-1\","
    "\"container\":\"checkout\",\"endpoint\":\"http\",\"instance\":\"10.1.2.3:8080\",\"job\":"
    "\"kube-state-metrics\",\"namespace\":\"shop\",\"pod\":\"checkout-7d9c5b8f6d-x2x4p\","
    "\"prometheus\":\"monitoring/k8s\",\"severity\":\"warning\"},\"annotations\":{\"description\":"
    "\"Pod shop/checkout is restarting 3.2 times / 10 minutes.\",\"runbook_url\":"
    "\"https://runbooks.example.com/KubePodCrashLooping\",\"summary\":\"Pod is crash "
    "looping.\"}," REST,
    "{\"status\":\"firing\",\"labels\":{\"alertname\":\"Busy\"},\"annotations\":{}," REST,
    "{\"status\":\"firing\",\"labels\":{\"alertname\":\"Busy\",\"l0\":\"v0\",\"l1\":\"v1\",\"l2\":"
    "\"v2\","
    "\"l3\":\"v3\",\"l4\":\"v4\",\"l5\":\"v5\",\"l6\":\"v6\",\"l7\":\"v7\",\"l8\":\"v8\",\"l9\":"
    "\"v9\"},"
    "\"startsAt\":\"2026-11-20T10:00:00Z\"}",
};

/* A body of 16 MiB that Alertmanager could have sent. */
static struct as_buf make_whole_body(const char *alert)
{
    struct as_buf body = AS_BUF_INIT(BODY_MAX + 1);
    as_buf_append_str(&body, "{\"version\":\"4\",\"alerts\":[");
    as_buf_append_str(&body, alert);
    while (body.size + strlen(alert) + 3 <= BODY_MAX) {
        as_buf_append_char(&body, ',');
        as_buf_append_str(&body, alert);
    }
    as_buf_append_str(&body, "]}");
    as_buf_append_char(&body, '\0');
    body.size--;
    cr_assert_eq(as_buf_check(&body), 0);
    return body;
}

Test(payload, the_largest_body_of_real_alerts_is_read)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(shapes); i++) {
        struct as_buf body = make_whole_body(shapes[i]);
        struct as_notification *n = decode(body.data);
        cr_expect_gt(n->alert_count, 10000, "shape %zu", i);
        as_notification_free(n);
        as_buf_deinit(&body);
    }
}

/* Real alerts fill half of what there is room for; the whole ceiling is in docs/receiver.md. */
Test(payload, the_largest_body_of_nothing_is_refused_within_the_ceiling)
{
    struct as_buf body =
        repeat("{\"version\":\"4\",\"alerts\":[[]", ",[]", BODY_MAX / 3 - 20, "]}");
    cr_assert_gt(body.size, BODY_MAX - 100);
    check_refused(body.data, body.size, "too many values for a document of this size");
    as_buf_deinit(&body);
    body = repeat("{\"version\":\"4\",\"alerts\":[],\"a\":[[]", ",[]", 5 * 1024 * 1024, "]}");
    check_refused(body.data, body.size, "too many values for a document of this size");
    as_buf_deinit(&body);
    cr_expect_leq(AS_DOCUMENT_MEMORY_MAX(BODY_MAX), 12 * BODY_MAX + ((size_t)1 << 20));
}

#define HEAD                                                                                       \
    "{\"version\":\"4\",\"alerts\":[{\"status\":\"firing\",\"startsAt\":\"2026-11-20T10:00:00Z\"," \
    "\"labels\":{"

/* One label with a name and a value of these sizes. */
static struct as_buf make_label(size_t name_size, size_t value_size)
{
    struct as_buf body = repeat(HEAD "\"", "n", name_size, "\":\"");

    for (size_t i = 0; i < value_size; i++)
        as_buf_append_char(&body, 'v');
    as_buf_append_str(&body, "\"}}]}");
    return body;
}

Test(payload, sizes_of_labels_have_their_limits)
{
    static const struct {
        size_t name, value;
        const char *error;
    } rows[] = {
        {AS_PAYLOAD_LABEL_NAME_MAX, AS_PAYLOAD_LABEL_VALUE_MAX, NULL},
        {AS_PAYLOAD_LABEL_NAME_MAX + 1, 1, "nnn\"...]: a name longer than 1024 bytes"},
        {1, AS_PAYLOAD_LABEL_VALUE_MAX + 1, "alerts[0].labels.n: longer than 65536 bytes"},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_buf body = make_label(rows[i].name, rows[i].value);
        if (rows[i].error)
            check_invalid(body.data, body.size, rows[i].error);
        else
            as_notification_free(decode(body.data));
        as_buf_deinit(&body);
    }
}

/* What is not read refuses nothing: Go prints large numbers with all of their digits. */
Test(payload, numbers_beyond_64_bits_that_are_not_read_refuse_nothing)
{
    as_notification_free(decode(ALERT(",\"values\":{\"A\":18446744073709552000,\"B\":-1e21}")));
    struct as_notification *n =
        decode("{\"version\":\"4\",\"alerts\":[],\"truncatedAlerts\":900000000000000}");
    cr_assert_eq(n->truncated, UINT64_C(900000000000000));
    as_notification_free(n);
}

/* However many alerts are beside it: the document is read once more, with as much memory. */
Test(payload, a_nul_among_many_alerts_refuses_no_other)
{
    struct as_buf body = AS_BUF_INIT((size_t)1 << 24);
    as_buf_append_str(&body, "{\"version\":\"4\",\"alerts\":[");
    for (int i = 0; i < 1000; i++)
        as_buf_printf(&body,
                      "{\"status\":\"firing\",\"labels\":{\"a\":\"b\",\"n\":\"%d\"},\"startsAt\":"
                      "\"2026-11-20T10:00:00Z\"},",
                      i);
    as_buf_append_str(&body, "{\"status\":\"firing\",\"labels\":{\"a\":\"\\u0000\"},\"startsAt\":"
                             "\"2026-11-20T10:00:00Z\"}]}");
    struct as_notification *n = decode(body.data);
    cr_assert_eq(n->alert_count, 1001);
    cr_assert_null(n->alerts[999].problem);
    cr_assert_not_null(n->alerts[1000].problem);
    as_notification_free(n);
    as_buf_deinit(&body);
}

/* Each of its alerts remembers it. */
Test(payload, the_receiver_has_its_limit)
{
    for (size_t size = AS_PAYLOAD_RECEIVER_MAX; size <= AS_PAYLOAD_RECEIVER_MAX + 1; size++) {
        struct as_buf body =
            repeat("{\"version\":\"4\",\"alerts\":[],\"receiver\":\"", "r", size, "\"}");
        if (size > AS_PAYLOAD_RECEIVER_MAX)
            check_refused(body.data, body.size, "receiver: longer than 1024 bytes");
        else
            as_notification_free(decode(body.data));
        as_buf_deinit(&body);
    }
}

/* The reason is shown, nothing more: no alert is lost for it. */
Test(payload, a_reason_that_is_no_text_is_none)
{
    struct as_notification *n =
        decode("{\"version\":\"4\",\"alerts\":[],\"notification_reason\":true}");
    cr_assert_str_eq(n->reason, "");
    as_notification_free(n);
    for (size_t size = AS_PAYLOAD_TEXT_MAX; size <= AS_PAYLOAD_TEXT_MAX + 1; size++) {
        struct as_buf body =
            repeat("{\"version\":\"4\",\"alerts\":[],\"notification_reason\":\"", "r", size, "\"}");
        n = decode(body.data);
        cr_assert_eq(strlen(n->reason), size > AS_PAYLOAD_TEXT_MAX ? 0 : size);
        as_notification_free(n);
        as_buf_deinit(&body);
    }
}

Test(payload, the_number_of_labels_has_its_limit)
{
    for (int count = AS_PAYLOAD_LABELS_MAX; count <= AS_PAYLOAD_LABELS_MAX + 1; count++) {
        struct as_buf body = repeat(HEAD, "", 0, "");
        for (int i = 0; i < count; i++)
            as_buf_printf(&body, "%s\"l%d\":\"\"", i ? "," : "", i);
        as_buf_append_str(&body, "}}]}");
        if (count > AS_PAYLOAD_LABELS_MAX)
            check_invalid(body.data, body.size, "alerts[0].labels: more than 1024");
        else
            as_notification_free(decode(body.data));
        as_buf_deinit(&body);
    }
}

Test(payload, what_is_encoded_reads_back_the_same)
{
    struct as_notification *first = decode(newest);
    struct as_buf body = AS_BUF_INIT(100000);

    as_payload_encode(first, &body);
    cr_assert_eq(as_buf_check(&body), 0);
    cr_assert_eq(body.data[body.size - 1], '\n');
    struct as_notification *second = decode(body.data);
    cr_assert_str_eq(second->receiver, first->receiver);
    cr_assert_str_eq(second->group_key, first->group_key);
    cr_assert_str_eq(second->reason, first->reason);
    cr_assert_eq(second->truncated, first->truncated);
    cr_assert_eq(second->alert_count, first->alert_count);
    for (size_t i = 0; i < first->alert_count; i++) {
        const struct as_alert *a = &first->alerts[i], *b = &second->alerts[i];
        cr_assert_eq(a->status, b->status);
        cr_assert_eq(a->fingerprint, b->fingerprint);
        cr_assert_eq(as_digest_compare(&a->digest, &b->digest), 0);
        cr_assert_eq(a->starts_at.us, b->starts_at.us);
        cr_assert_eq(a->ends_at.us, b->ends_at.us);
        cr_assert(as_labels_equal(a->labels, b->labels));
        cr_assert(as_labels_equal(a->annotations, b->annotations));
    }
    as_buf_deinit(&body);
    as_notification_free(first);
    as_notification_free(second);
}

Test(payload, it_encodes_as_alertmanager_does)
{
    struct as_notification *n = decode(
        "{\"version\":\"4\",\"externalURL\":\"http://am\","
        "\"receiver\":\"a\\\\.b\",\"groupKey\":\"{}:{}\",\"alerts\":["
        "{\"status\":\"resolved\",\"labels\":{\"alertname\":\"A\",\"pod\":\"1\"},\"annotations\":{"
        "\"s\":\"<x>\"},\"startsAt\":\"2026-11-20T10:00:00.5Z\"},"
        "{\"status\":\"firing\",\"labels\":{\"alertname\":\"A\",\"pod\":\"2\"},\"annotations\":{"
        "\"s\":\"<x>\"},\"startsAt\":\"2026-11-20T10:00:00Z\",\"generatorURL\":\"http://p/g\"}]}");
    struct as_buf body = AS_BUF_INIT(100000);

    as_payload_encode(n, &body);
    cr_assert_str_eq(
        body.data,
        "{\"receiver\":\"a\\\\.b\",\"status\":\"firing\",\"alerts\":["
        "{\"status\":\"resolved\",\"labels\":{\"alertname\":\"A\",\"pod\":\"1\"},\"annotations\":{"
        "\"s\":\"\\u003cx\\u003e\"},\"startsAt\":\"2026-11-20T10:00:00.5Z\","
        "\"endsAt\":\"0001-01-01T00:00:00Z\",\"generatorURL\":\"\","
        "\"fingerprint\":\"9494304f0a9b1f9b\"},"
        "{\"status\":\"firing\",\"labels\":{\"alertname\":\"A\",\"pod\":\"2\"},\"annotations\":{"
        "\"s\":\"\\u003cx\\u003e\"},\"startsAt\":\"2026-11-20T10:00:00Z\","
        "\"endsAt\":\"0001-01-01T00:00:00Z\",\"generatorURL\":\"http://p/g\","
        "\"fingerprint\":\"9490304f0a9736c4\"}],"
        "\"groupLabels\":{\"alertname\":\"A\"},\"commonLabels\":{\"alertname\":\"A\"},"
        "\"commonAnnotations\":{\"s\":\"\\u003cx\\u003e\"},"
        "\"externalURL\":\"http://am\",\"version\":\"4\","
        "\"groupKey\":\"{}:{}\",\"truncatedAlerts\":0}\n");
    as_buf_deinit(&body);
    as_notification_free(n);
}
