/*
 * The bodies of orders: valid members are taken exactly, and mistyped ones are refused with a text
 * that says what is expected.
 */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/time.h>
#include <alertscaler/decide/operator_command.h>

static struct as_operator_command_document document;
static struct as_error error;

static int decode(enum as_operator_command_kind kind, const char *json)
{
    error = (struct as_error)AS_ERROR_INIT;
    return as_operator_command_decode(json, strlen(json), kind, &document, &error);
}

Test(order, a_pause_may_have_an_end)
{
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_PAUSE,
                        "{\"reason\":\"the \\\"big\\\" move\",\"for\":\"1h30m\"}"),
                 0);
    cr_assert_eq(document.order.kind, AS_OPERATOR_COMMAND_PAUSE);
    cr_assert_str_eq(document.order.reason, "the \"big\" move");
    cr_assert_eq(document.order.for_us, 90 * AS_US_PER_MIN);
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_PAUSE, "{\"reason\":\"r\"}"), 0);
    cr_assert_eq(document.order.for_us, 0);
}

Test(order, a_size_may_be_forced)
{
    cr_assert_eq(
        decode(AS_OPERATOR_COMMAND_SCALE, "{\"reason\":\"r\",\"replicas\":0,\"force\":true}"), 0);
    cr_assert(document.order.force);
    cr_assert_eq(document.order.replicas, 0);
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_SCALE, "{\"reason\":\"r\",\"replicas\":2147483647}"),
                 0);
    cr_assert_not(document.order.force);
    cr_assert_eq(document.order.replicas, INT32_MAX);
}

Test(order, a_pause_has_a_direction)
{
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_PAUSE, "{\"reason\":\"r\"}"), 0);
    cr_assert_eq(document.order.ways, AS_WAYS_BOTH);
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_PAUSE, "{\"reason\":\"r\",\"direction\":\"down\"}"), 0);
    cr_assert_eq(document.order.ways, AS_WAYS_DOWN);
}

Test(order, a_floor_begins_and_ends)
{
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_FLOOR,
                        "{\"reason\":\"r\",\"replicas\":3,\"for\":\"2d\",\"end\":false}"),
                 0);
    cr_assert_eq(document.order.replicas, 3);
    cr_assert_eq(document.order.for_us, 2 * AS_US_PER_DAY);
    cr_assert_not(document.order.is_end);
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_FLOOR, "{\"reason\":\"r\",\"end\":true}"), 0);
    cr_assert(document.order.is_end);
}

Test(order, an_answer_needs_no_reason)
{
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_APPROVE, "{}"), 0);
    cr_assert_str_eq(document.order.reason, "no reason was given");
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_DENY, "{\"reason\":\"too large\"}"), 0);
    cr_assert_str_eq(document.order.reason, "too large");
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_DENY, "{\"reason\":\"\"}"), -EBADMSG);
}

Test(order, a_reason_is_one_line)
{
    cr_assert_eq(decode(AS_OPERATOR_COMMAND_UNLOCK, "{\"reason\":\"a\\nb\\tc\"}"), 0);
    cr_assert_str_eq(document.order.reason, "a b c");
}

Test(order, what_is_not_an_order_is_refused)
{
    static const struct {
        enum as_operator_command_kind kind;
        const char *json, *says;
    } rows[] = {
        {AS_OPERATOR_COMMAND_RESUME, "", "JSON object"},
        {AS_OPERATOR_COMMAND_RESUME, "[]", "object"},
        {AS_OPERATOR_COMMAND_RESUME, "{\"reason\":\"r\"} x", "JSON object"},
        {AS_OPERATOR_COMMAND_RESUME, "{\"reason\":\"r\",\"reason\":\"s\"}", "JSON object"},
        {AS_OPERATOR_COMMAND_RESUME, "{}", "reason"},
        {AS_OPERATOR_COMMAND_RESUME, "{\"reason\":\" \"}", "reason"},
        {AS_OPERATOR_COMMAND_RESUME, "{\"reason\":1}", "reason"},
        {AS_OPERATOR_COMMAND_RESUME, "{\"reason\":\"r\",\"for\":\"1h\"}", "for"},
        {AS_OPERATOR_COMMAND_UNLOCK, "{\"reason\":\"r\",\"replicas\":1}", "replicas"},
        {AS_OPERATOR_COMMAND_PAUSE, "{\"reason\":\"r\",\"for\":\"0s\"}", "for"},
        {AS_OPERATOR_COMMAND_PAUSE, "{\"reason\":\"r\",\"for\":\"367d\"}", "for"},
        {AS_OPERATOR_COMMAND_PAUSE, "{\"reason\":\"r\",\"for\":\"soon\"}", "for"},
        {AS_OPERATOR_COMMAND_PAUSE, "{\"reason\":\"r\",\"for\":3600}", "for"},
        {AS_OPERATOR_COMMAND_PAUSE, "{\"reason\":\"r\",\"until\":\"x\"}", "until"},
        {AS_OPERATOR_COMMAND_SCALE, "{\"reason\":\"r\"}", "replicas"},
        {AS_OPERATOR_COMMAND_SCALE, "{\"reason\":\"r\",\"replicas\":-1}", "replicas"},
        {AS_OPERATOR_COMMAND_SCALE, "{\"reason\":\"r\",\"replicas\":2147483648}", "replicas"},
        {AS_OPERATOR_COMMAND_SCALE, "{\"reason\":\"r\",\"replicas\":1.5}", "replicas"},
        {AS_OPERATOR_COMMAND_SCALE, "{\"reason\":\"r\",\"replicas\":1,\"force\":1}", "force"},
        {AS_OPERATOR_COMMAND_PAUSE, "{}", "reason: expected why, in a few words"},
        {AS_OPERATOR_COMMAND_PAUSE, "{\"reason\":\"\\u0001\\n\"}", "reason: expected why"},
        {AS_OPERATOR_COMMAND_PAUSE, "{\"reason\":\"r\",\"direction\":\"left\"}", "direction"},
        {AS_OPERATOR_COMMAND_FLOOR, "{\"reason\":\"r\",\"for\":\"1h\"}", "replicas: missing"},
        {AS_OPERATOR_COMMAND_FLOOR, "{\"reason\":\"r\",\"replicas\":1}", "for: missing"},
        {AS_OPERATOR_COMMAND_FLOOR, "{\"reason\":\"r\",\"replicas\":0,\"for\":\"1h\"}", "replicas"},
        {AS_OPERATOR_COMMAND_FLOOR, "{\"reason\":\"r\",\"end\":true,\"for\":\"1h\"}", "for"},
        {AS_OPERATOR_COMMAND_FLOOR, "{\"reason\":\"r\",\"end\":1}", "end"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_eq(decode(rows[i].kind, rows[i].json), -EBADMSG, "%s", rows[i].json);
        cr_expect_not_null(strstr(error.text, rows[i].says), "%s: %s", rows[i].json, error.text);
    }
}

Test(order, a_reason_and_a_body_have_a_limit)
{
    static char json[2 * AS_OPERATOR_COMMAND_BODY_MAX];
    for (size_t length = AS_OPERATOR_COMMAND_REASON_MAX - 1;
         length <= AS_OPERATOR_COMMAND_REASON_MAX; length++) {
        memset(json, 'x', sizeof(json));
        memcpy(json, "{\"reason\":\"", 11);
        memcpy(json + 11 + length, "\"}", sizeof("\"}"));
        cr_expect_eq(decode(AS_OPERATOR_COMMAND_RESUME, json),
                     length < AS_OPERATOR_COMMAND_REASON_MAX ? 0 : -EBADMSG);
    }
    memset(json, ' ', sizeof(json));
    memcpy(json, "{\"reason\":\"r\"}", 14);
    cr_expect_eq(as_operator_command_decode(json, AS_OPERATOR_COMMAND_BODY_MAX,
                                            AS_OPERATOR_COMMAND_RESUME, &document, &error),
                 0);
    cr_expect_eq(as_operator_command_decode(json, AS_OPERATOR_COMMAND_BODY_MAX + 1,
                                            AS_OPERATOR_COMMAND_RESUME, &document, &error),
                 -EBADMSG);
}
