/*
 * Notices as they are stored and as they are sent.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <alertscaler/notify/notice.h>

static const struct as_notice_sender sender = {"here", "https://scaler.example/x"};
static const as_wall_time now = {INT64_C(1795600000000000)};

static struct as_notice make_state(enum as_notice_phase phase)
{
    return (struct as_notice){
        .kind = AS_NOTICE_AT_MAX,
        .phase = phase,
        .target = "t/1",
        .target_name = "web",
        .rule = "r",
        .reason = "at_max",
        .decision = "D1",
        .has_from = true,
        .from = 6,
        .at = {now.us - AS_US_PER_MIN},
        .ended = {phase == AS_NOTICE_END, {now.us - AS_US_PER_S}},
        .hash = "9f",
    };
}

static void expect_alerts(const struct as_notice *notice, const char *expected)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(65536);
    as_notice_encode_alerts(notice, 1, &sender, now, &text);
    cr_assert_str_eq(text.data, expected);
}

Test(notice, a_state_lives_five_minutes_and_ends_when_it_was_over)
{
    const struct as_notice begin = make_state(AS_NOTICE_BEGIN), end = make_state(AS_NOTICE_END);
    expect_alerts(
        &begin, "[{\"annotations\":{\"decision\":\"D1\",\"from\":\"6\",\"summary\":\"web is held "
                "at its max: it has 6 and more is wanted\",\"target_name\":\"web\"},"
                "\"endsAt\":\"2026-11-25T09:51:40.000000Z\","
                "\"generatorURL\":\"https://scaler.example/x/decisions/D1\","
                "\"labels\":{\"alertname\":\"AlertscalerAtMax\",\"alertscaler_instance\":\"here\","
                "\"reason\":\"at_max\",\"rule\":\"r\",\"target\":\"t/1\"},"
                "\"startsAt\":\"2026-11-25T09:45:40.000000Z\"}]");
    expect_alerts(
        &end, "[{\"annotations\":{\"decision\":\"D1\",\"from\":\"6\",\"summary\":\"web is not "
              "held at its max any more\",\"target_name\":\"web\"},"
              "\"endsAt\":\"2026-11-25T09:46:39.000000Z\","
              "\"generatorURL\":\"https://scaler.example/x/decisions/D1\","
              "\"labels\":{\"alertname\":\"AlertscalerAtMax\",\"alertscaler_instance\":\"here\","
              "\"reason\":\"at_max\",\"rule\":\"r\",\"target\":\"t/1\"},"
              "\"startsAt\":\"2026-11-25T09:45:40.000000Z\"}]");
}

Test(notice, an_event_lives_fifteen_minutes_after_its_delivery)
{
    const struct as_notice notice = {.kind = AS_NOTICE_FAILED,
                                     .target = "t/1",
                                     .reason = "forbidden",
                                     .command = "C1",
                                     .message = "no\"thing",
                                     .has_to = true,
                                     .to = 3,
                                     .at = {now.us - AS_US_PER_H}};
    expect_alerts(&notice,
                  "[{\"annotations\":{\"command\":\"C1\",\"message\":\"no\\\"thing\",\"summary\":"
                  "\"t/1 could not be scaled to 3: forbidden: no\\\"thing\",\"to\":\"3\"},"
                  "\"endsAt\":\"2026-11-25T10:01:40.000000Z\","
                  "\"generatorURL\":\"https://scaler.example/x/\","
                  "\"labels\":{\"alertname\":\"AlertscalerFailed\",\"alertscaler_instance\":"
                  "\"here\",\"reason\":\"forbidden\",\"target\":\"t/1\"},"
                  "\"startsAt\":\"2026-11-25T08:46:40.000000Z\"}]");
}

Test(notice, of_a_cluster_names_no_target)
{
    const struct as_notice notice = {.kind = AS_NOTICE_CLUSTER_UNREACHABLE,
                                     .target = "kubernetes/edge/apps/v1/Deployment/shop/web",
                                     .target_name = "web",
                                     .cluster = "edge",
                                     .hash = "h",
                                     .reason = "timeout",
                                     .message = "no answer",
                                     .at = {now.us - AS_US_PER_MIN}};
    AS_CLEANUP(as_buf_deinit) struct as_buf event = AS_BUF_INIT(65536);
    expect_alerts(&notice,
                  "[{\"annotations\":{\"message\":\"no answer\",\"summary\":"
                  "\"the API server of cluster edge does not answer, no target is scaled: "
                  "timeout: no answer\"},"
                  "\"endsAt\":\"2026-11-25T10:01:40.000000Z\","
                  "\"generatorURL\":\"https://scaler.example/x/\","
                  "\"labels\":{\"alertname\":\"AlertscalerClusterUnreachable\","
                  "\"alertscaler_instance\":\"here\",\"cluster\":\"edge\",\"reason\":\"timeout\"},"
                  "\"startsAt\":\"2026-11-25T09:45:40.000000Z\"}]");
    as_notice_encode_event(&notice, &sender, &event);
    cr_assert(strstr(event.data, "\"subject\":\"kubernetes/edge\""), "%s", event.data);
    cr_assert_not(strstr(event.data, "\"target"), "%s", event.data);
}

Test(notice, a_clock_that_was_ahead_makes_no_alert_of_the_future)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(65536);
    struct as_notice notice = make_state(AS_NOTICE_END);
    notice.at.us = now.us + AS_US_PER_DAY;
    notice.ended.at.us = now.us + 2 * AS_US_PER_DAY;
    as_notice_encode_alerts(&notice, 1, &sender, now, &text);
    cr_assert(strstr(text.data, "\"endsAt\":\"2026-11-25T09:46:40.000000Z\""));
    cr_assert(strstr(text.data, "\"startsAt\":\"2026-11-25T09:46:40.000000Z\""));
}

Test(notice, is_stored_and_read_back)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(65536);
    AS_CLEANUP(as_buf_deinit) struct as_buf again = AS_BUF_INIT(65536);
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    struct as_notice notice = make_state(AS_NOTICE_END), read;
    struct as_error error = AS_ERROR_INIT;
    char long_text[3 * AS_NOTICE_TEXT_MAX];
    size_t at_hash;
    memset(long_text, 'x', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    notice.message = long_text;
    notice.receiver = "events";
    notice.url = 3;
    notice.hash = NULL;
    as_notice_encode(&notice, &text, &at_hash);
    cr_assert_eq(strspn(text.data + at_hash, "0"), AS_NOTICE_HASH_SIZE - 1);
    cr_assert_eq(as_notice_decode(text.data, text.size, &arena, &read, &error), 0, "%s",
                 error.text);
    cr_assert_eq(strlen(read.message), AS_NOTICE_TEXT_MAX);
    cr_assert_eq(read.url, 3);
    cr_assert(read.ended.set && !read.has_to && read.from == 6);
    as_notice_encode(&read, &again, &at_hash);
    cr_assert_str_eq(text.data, again.data);
}

Test(notice, what_it_cannot_be_is_refused)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"at\":1,\"hash\":\"0\",\"kind\":\"other\",\"phase\":\"event\",\"target\":\"t\"}",
        "{\"at\":1,\"hash\":\"0\",\"kind\":\"scaled\",\"phase\":\"event\"}",
        "{\"at\":\"1\",\"hash\":\"0\",\"kind\":\"scaled\",\"phase\":\"event\",\"target\":\"t\"}"};
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++) {
        struct as_error error = AS_ERROR_INIT;
        struct as_notice notice;
        cr_assert_eq(as_notice_decode(texts[i], strlen(texts[i]), &arena, &notice, &error),
                     -EBADMSG, "%s", texts[i]);
        cr_assert(*error.text);
    }
}
