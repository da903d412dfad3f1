/*
 * The action log's records: canonical, complete, with the right places for the chain, and with no
 * outside text beyond its limit.
 */
#include <alertscaler/log/record.h>

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/log/log_chain.h>

#define BUF_MAX ((size_t)1 << 22)

static const struct as_record_header header = {{INT64_C(1795168800250000)}, "host/1"};

/* One sealed record, verified and parsed. */
struct sealed {
    struct as_buf text, lines;
    struct as_record_places places;
    json_t *json;
};

static struct sealed *seal(struct sealed *sealed)
{
    struct as_chain *chain = as_chain_new();
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;
    struct as_error error = AS_ERROR_INIT;
    const struct as_audit_record record = {.json = sealed->text.data,
                                           .size = sealed->text.size,
                                           .at_hash = sealed->places.at_hash,
                                           .at_prev = sealed->places.at_prev,
                                           .at_seq = sealed->places.at_seq};
    cr_assert_eq(as_buf_check(&sealed->text), 0);
    sealed->lines = AS_BUF_INIT(2 * BUF_MAX);
    as_chain_seal(chain, &record, &head, &sealed->lines);
    cr_assert_eq(as_chain_verify_line(&verify, sealed->lines.data, sealed->lines.size - 1, &error),
                 AS_CHAIN_OK, "%s: %s", error.text, sealed->lines.data);
    as_chain_free(chain);

    /* sorted keys, no spaces: what jansson writes of it is the same */
    sealed->json =
        json_loadb(sealed->lines.data, sealed->lines.size - 1, JSON_REJECT_DUPLICATES, NULL);
    cr_assert(sealed->json);
    char *canonical =
        json_dumps(sealed->json, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
    cr_assert_eq(strncmp(canonical, sealed->lines.data, strlen(canonical)), 0, "%s\n%s", canonical,
                 sealed->lines.data);
    free(canonical);
    cr_assert_eq(json_integer_value(json_object_get(sealed->json, "seq")), 1);
    cr_assert_str_eq(json_string_value(json_object_get(sealed->json, "instance")), "host/1");
    cr_assert_str_eq(json_string_value(json_object_get(sealed->json, "time")),
                     "2026-11-20T10:00:00.250000Z");
    return sealed;
}

static void sealed_deinit(struct sealed *sealed)
{
    as_buf_deinit(&sealed->text);
    as_buf_deinit(&sealed->lines);
    json_decref(sealed->json);
}

#define SEALED(name) struct sealed name = {.text = AS_BUF_INIT(BUF_MAX)}

static const char *text_of(const struct sealed *sealed, const char *key)
{
    const char *text = json_string_value(json_object_get(sealed->json, key));
    cr_assert(text, "%s in %s", key, sealed->lines.data);
    return text;
}

static bool is_null(const struct sealed *sealed, const char *key)
{
    return json_is_null(json_object_get(sealed->json, key));
}

static struct as_labels *make_labels(const char *value)
{
    const struct as_label pairs[] = {{"zone", value}, {"alertname", "Slow"}, {"hash", "h"}};
    struct as_labels *labels = NULL;
    cr_assert_eq(as_labels_new(pairs, AS_ARRAY_SIZE(pairs), &labels), 0);
    return labels;
}

Test(record, command)
{
    const struct as_operator_command order = {.kind = AS_OPERATOR_COMMAND_SCALE,
                                              .target = "web",
                                              .who = "ada",
                                              .remote = "192.0.2.1:4711",
                                              .reason = "the \"big\" move",
                                              .replicas = 12,
                                              .force = true};
    struct as_operator_command_record record = {.id = "01J0000000000000000000000C",
                                                .order = &order,
                                                .message = "",
                                                .target = "kubernetes/a",
                                                .target_name = "web",
                                                .min = 1,
                                                .max = 9,
                                                .replicas = 12};
    SEALED(scale);
    as_record_encode(&header, AS_RECORD_COMMAND, &record, &scale.text, &scale.places);
    cr_assert_str_eq(text_of(seal(&scale), "kind"), "command");
    cr_assert_str_eq(text_of(&scale, "command"), "scale");
    cr_assert_str_eq(text_of(&scale, "who"), "ada");
    cr_assert_str_eq(text_of(&scale, "reason"), order.reason);
    cr_assert_str_eq(text_of(&scale, "target"), "kubernetes/a");
    cr_assert_str_eq(text_of(&scale, "outcome"), "done");
    cr_assert_eq(json_integer_value(json_object_get(scale.json, "replicas")), 12);
    cr_assert_eq(json_integer_value(json_object_get(scale.json, "max")), 9);
    cr_assert(is_null(&scale, "until"));
    sealed_deinit(&scale);

    const struct as_operator_command pause = {.kind = AS_OPERATOR_COMMAND_PAUSE,
                                              .target = "nobody",
                                              .who = "",
                                              .remote = "",
                                              .reason = "r"};
    record = (struct as_operator_command_record){.id = "01J0000000000000000000000D",
                                                 .order = &pause,
                                                 .outcome = AS_OPERATOR_COMMAND_UNKNOWN_TARGET,
                                                 .message = "no such target",
                                                 .min = -1,
                                                 .max = -1,
                                                 .replicas = -1,
                                                 .until = {.set = true}};
    SEALED(unknown);
    as_record_encode(&header, AS_RECORD_COMMAND, &record, &unknown.text, &unknown.places);
    cr_assert_str_eq(text_of(seal(&unknown), "target"), "nobody");
    cr_assert_str_eq(text_of(&unknown, "outcome"), "unknown_target");
    cr_assert_str_eq(text_of(&unknown, "until"), "1970-01-01T00:00:00.000000Z");
    cr_assert(is_null(&unknown, "target_name"));
    cr_assert(is_null(&unknown, "replicas"));
    cr_assert(is_null(&unknown, "min"));
    cr_assert_null(json_object_get(unknown.json, "request"));
    sealed_deinit(&unknown);

    const struct as_operator_command approve = {.kind = AS_OPERATOR_COMMAND_APPROVE,
                                                .request = "01J0000000000000000000000P",
                                                .who = "ada",
                                                .remote = "",
                                                .reason = "r"};
    record.order = &approve;
    SEALED(answer);
    as_record_encode(&header, AS_RECORD_COMMAND, &record, &answer.text, &answer.places);
    cr_assert_str_eq(text_of(seal(&answer), "request"), approve.request);
    sealed_deinit(&answer);
}

Test(record, start_and_stop)
{
    static const struct as_start_record record = {.version = "1.0",
                                                  .revision = "0123abc",
                                                  .config_digest = "c",
                                                  .rules_digest = "r",
                                                  .targets = 1,
                                                  .rules = 2,
                                                  .incidents = 3,
                                                  .intents = 4};
    SEALED(start);
    as_record_encode(&header, AS_RECORD_START, &record, &start.text, &start.places);
    cr_assert_str_eq(text_of(seal(&start), "kind"), "start");
    cr_assert_str_eq(text_of(&start, "revision"), "0123abc");
    cr_assert_eq(json_integer_value(json_object_get(start.json, "intents")), 4);
    sealed_deinit(&start);
    SEALED(stop);
    as_record_encode(&header, AS_RECORD_STOP, &record, &stop.text, &stop.places);
    cr_assert_str_eq(text_of(seal(&stop), "kind"), "stop");
    sealed_deinit(&stop);
}

Test(record, a_start_names_those_that_led_before)
{
    static const struct as_leader_term leaders[] = {
        {.replica = "two", .since = {true, {INT64_C(1795168800) * AS_US_PER_S}}, .until = {0}},
        {.replica = "three", .until = {INT64_C(1795168801) * AS_US_PER_S}},
    };
    static const struct as_start_record record = {.version = "1.0",
                                                  .config_digest = "c",
                                                  .rules_digest = "r",
                                                  .leaders = leaders,
                                                  .leader_count = 2};
    SEALED(start);
    as_record_encode(&header, AS_RECORD_START, &record, &start.text, &start.places);
    json_t *list = json_object_get(seal(&start)->json, "leaders");
    cr_assert_eq(json_array_size(list), 2);
    const json_t *first = json_array_get(list, 0), *second = json_array_get(list, 1);
    cr_assert_str_eq(json_string_value(json_object_get(first, "replica")), "two");
    cr_assert(json_is_string(json_object_get(first, "since")));
    cr_assert(json_is_null(json_object_get(second, "since")));
    cr_assert_str_eq(json_string_value(json_object_get(second, "until")),
                     "2026-11-20T10:00:01.000000Z");
    sealed_deinit(&start);
}

Test(record, reload_says_what_changed_or_what_was_wrong)
{
    struct as_reload_record record = {.credential = "ops",
                                      .old_config_digest = "a",
                                      .old_rules_digest = "b",
                                      .config_digest = "c",
                                      .rules_digest = "d"};
    SEALED(good);
    as_record_encode(&header, AS_RECORD_RELOAD, &record, &good.text, &good.places);
    cr_assert(is_null(seal(&good), "error"));
    sealed_deinit(&good);
    record.error = "rules/a.yaml:3:1: \"quoted\"\n  ^";
    SEALED(bad);
    as_record_encode(&header, AS_RECORD_RELOAD, &record, &bad.text, &bad.places);
    cr_assert_str_eq(text_of(seal(&bad), "error"), record.error);
    sealed_deinit(&bad);
}

Test(record, denied)
{
    static const struct as_denied_record record = {
        .remote = "192.0.2.1", .handler = "webhook", .error = "no", .status = 401, .count = 7};
    SEALED(denied);
    as_record_encode(&header, AS_RECORD_DENIED, &record, &denied.text, &denied.places);
    cr_assert_eq(json_integer_value(json_object_get(seal(&denied)->json, "count")), 7);
    sealed_deinit(&denied);
}

Test(record, follow)
{
    struct as_effect_record record = {.action = "01HACTION",
                                      .decision = "01HDECISION",
                                      .target = "kubernetes/default/apps/v1/Deployment/shop/web",
                                      .target_name = "web",
                                      .rule = "slow",
                                      .from = 4,
                                      .to = 6,
                                      .ready_us = 12500000,
                                      .resolved_us = -1,
                                      .end = AS_EVALUATION_NOT_RESOLVED,
                                      .in_vain = 3};
    SEALED(plain);
    as_record_encode(&header, AS_RECORD_EFFECT, &record, &plain.text, &plain.places);
    json_t *json = seal(&plain)->json;
    cr_assert_str_eq(text_of(&plain, "kind"), "effect");
    cr_assert_str_eq(text_of(&plain, "action"), "01HACTION");
    cr_assert_str_eq(text_of(&plain, "ended"), "not_resolved");
    cr_assert_eq(json_number_value(json_object_get(json, "ready_after")), 12.5);
    cr_assert(json_is_null(json_object_get(json, "resolved_after")));
    cr_assert_eq(json_integer_value(json_object_get(json, "in_vain")), 3);
    cr_assert_null(json_object_get(json, "held_until"));
    sealed_deinit(&plain);

    record.is_held = true;
    record.until = header.time;
    SEALED(held);
    as_record_encode(&header, AS_RECORD_EFFECT, &record, &held.text, &held.places);
    (void)seal(&held);
    cr_assert_str_eq(text_of(&held, "held_until"), text_of(&held, "time"));
    sealed_deinit(&held);
}

Test(record, nodes)
{
    static const char *const names[] = {"n1", "n2"};
    static const struct as_nodes_record record = {.event = AS_NODES_KEPT,
                                                  .target = "node_group/aws/workers",
                                                  .target_name = "workers",
                                                  .decision = "01J00000000000000000000000",
                                                  .nodes = names,
                                                  .node_count = 2,
                                                  .message = "taken back: more are needed"};
    SEALED(nodes);
    as_record_encode(&header, AS_RECORD_NODES, &record, &nodes.text, &nodes.places);
    json_t *json = seal(&nodes)->json;
    cr_assert_str_eq(text_of(&nodes, "event"), "kept");
    cr_assert_str_eq(text_of(&nodes, "decision"), record.decision);
    cr_assert_str_eq(text_of(&nodes, "target_name"), "workers");
    cr_assert_eq(json_array_size(json_object_get(json, "nodes")), 2);
    sealed_deinit(&nodes);
}

Test(record, others)
{
    static const struct as_other found[] = {{"HorizontalPodAutoscaler", "web", 2, -1, true}};
    const struct as_reverted_change reverted_changes[] = {
        {.from = 4, .to = 6, .found = 4, .by = "hpa"}, {.from = 4, .to = 6, .found = 5, .by = ""}};
    const struct as_others_found others = {found, AS_ARRAY_SIZE(found)}, nothing = {found, 0};
    const struct as_contended_note note = {reverted_changes, AS_ARRAY_SIZE(reverted_changes),
                                           header.time};
    struct as_others_record record = {.event = AS_OTHERS_FOUND,
                                      .target = "kubernetes/default/apps/v1/Deployment/shop/web",
                                      .target_name = "web",
                                      .found = &others};
    SEALED(first);
    as_record_encode(&header, AS_RECORD_OTHERS, &record, &first.text, &first.places);
    json_t *item = json_array_get(json_object_get(seal(&first)->json, "found"), 0);
    cr_assert_str_eq(json_string_value(json_object_get(item, "name")), "web");
    cr_assert(json_is_null(json_object_get(item, "max")));
    cr_assert(json_is_true(json_object_get(item, "paused")));
    cr_assert_null(json_object_get(first.json, "set_backs"));
    sealed_deinit(&first);

    record.found = &nothing;
    SEALED(gone);
    as_record_encode(&header, AS_RECORD_OTHERS, &record, &gone.text, &gone.places);
    cr_assert_eq(json_array_size(json_object_get(seal(&gone)->json, "found")), 0);
    cr_assert(json_is_array(json_object_get(gone.json, "found")));
    sealed_deinit(&gone);

    record.event = AS_OTHERS_CONTENDED;
    record.found = NULL;
    record.contended = &note;
    SEALED(contended);
    as_record_encode(&header, AS_RECORD_OTHERS, &record, &contended.text, &contended.places);
    const json_t *list = json_object_get(seal(&contended)->json, "set_backs");
    cr_assert_eq(json_array_size(list), 2);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 0), "by")), "hpa");
    cr_assert(json_is_null(json_object_get(json_array_get(list, 1), "by")), "not known");
    cr_assert_str_eq(text_of(&contended, "event"), "contended");
    cr_assert_str_eq(text_of(&contended, "until"), text_of(&contended, "time"));
    cr_assert_null(json_object_get(contended.json, "found"));
    sealed_deinit(&contended);

    record.event = AS_OTHERS_OVER;
    record.contended = NULL;
    record.message = "the hour is over";
    SEALED(over);
    as_record_encode(&header, AS_RECORD_OTHERS, &record, &over.text, &over.places);
    cr_assert_str_eq(text_of(seal(&over), "message"), "the hour is over");
    cr_assert_null(json_object_get(over.json, "until"));
    sealed_deinit(&over);
}

Test(record, notices_that_were_dropped_and_states_that_ended)
{
    const struct as_notices_dropped notices = {"events", AS_NOTICE_OVERFLOW, 3};
    struct as_notify_record record = {.dropped = &notices};
    SEALED(dropped);
    as_record_encode(&header, AS_RECORD_NOTIFY, &record, &dropped.text, &dropped.places);
    cr_assert_eq(json_integer_value(json_object_get(seal(&dropped)->json, "count")), 3);
    cr_assert_str_eq(text_of(&dropped, "event"), "dropped");
    cr_assert_str_eq(text_of(&dropped, "receiver"), "events");
    cr_assert_null(json_object_get(dropped.json, "state"));
    sealed_deinit(&dropped);

    struct as_notice_ended state = {.state = AS_NOTICE_INEFFECTIVE,
                                    .target = "kubernetes/a",
                                    .target_name = "a",
                                    .rule = "slow"};
    record = (struct as_notify_record){.ended = &state};
    SEALED(ended);
    as_record_encode(&header, AS_RECORD_NOTIFY, &record, &ended.text, &ended.places);
    cr_assert_str_eq(text_of(seal(&ended), "event"), "ended");
    cr_assert_str_eq(text_of(&ended, "state"), "ineffective");
    cr_assert_str_eq(text_of(&ended, "rule"), "slow");
    cr_assert_null(json_object_get(ended.json, "receiver"));
    sealed_deinit(&ended);
}

Test(record, approval)
{
    const struct as_approval_state request = {.id = "01J0000000000000000000000P",
                                              .decision = "01J0000000000000000000000D",
                                              .incident = "0123456789abcdef",
                                              .rule = "slow",
                                              .uid = "",
                                              .who = "ada",
                                              .is_up = true,
                                              .from = 4,
                                              .to = 8};
    struct as_approval_record record = {.event = AS_APPROVAL_ON_APPROVED,
                                        .request = &request,
                                        .target = "kubernetes/a",
                                        .target_name = "a",
                                        .target_kind = &as_target_kind_kubernetes,
                                        .unit = "Mi",
                                        .until = {true, header.time},
                                        .command = "01J0000000000000000000000C",
                                        .action = "01J0000000000000000000000A",
                                        .message = "fine"};
    SEALED(approved);
    as_record_encode(&header, AS_RECORD_APPROVAL, &record, &approved.text, &approved.places);
    cr_assert_str_eq(text_of(seal(&approved), "event"), "approved");
    cr_assert_str_eq(text_of(&approved, "command"), record.command);
    cr_assert_str_eq(text_of(&approved, "unit"), "Mi");
    cr_assert_str_eq(text_of(&approved, "until"), text_of(&approved, "time"));
    cr_assert_eq(json_integer_value(json_object_get(approved.json, "to")), 8);
    sealed_deinit(&approved);
}

struct notified {
    struct as_notification notification;
    struct as_alert alerts[2];
    struct as_alert_outcome outcomes[2];
    struct as_notification_record record;
};

static const char *const rule_names[] = {"slow", "other"};

static void make_notified(struct notified *notified, const char *value)
{
    *notified = (struct notified){
        .notification = {.id = "01J00000000000000000000000",
                         .receiver = (char *)(uintptr_t) "web.hook",
                         .group_key = (char *)(uintptr_t) "{}:{a=\"b\"}",
                         .reason = (char *)(uintptr_t) "",
                         .truncated = 5,
                         .remote = (char *)(uintptr_t) "192.0.2.1",
                         .credential = (char *)(uintptr_t) "am",
                         .traceparent = (char *)(uintptr_t) "",
                         .body_size = 99},
        .outcomes = {{.is_queued = true, .rules = rule_names, .rule_count = 2},
                     {.reason = AS_REASON_NO_RULE}},
    };
    for (size_t i = 0; i < 2; i++)
        notified->alerts[i] = (struct as_alert){
            .status = i ? AS_ALERT_RESOLVED : AS_ALERT_FIRING,
            .digest = {{(unsigned char)(0xa0 + i)}},
            .fingerprint = UINT64_C(0x0123456789abcdef) + i,
            .starts_at = {INT64_C(1795168800000000)},
            .labels = make_labels(value),
        };
    notified->notification.alerts = notified->alerts;
    notified->notification.alert_count = 2;
    notified->record = (struct as_notification_record){.notification = &notified->notification,
                                                       .outcomes = notified->outcomes};
}

static void notified_deinit(struct notified *notified)
{
    as_labels_free(notified->alerts[0].labels);
    as_labels_free(notified->alerts[1].labels);
}

#define ZEROS "00000000000000000000000000000000000000000000000000000000000000"

Test(record, notification_with_an_outcome_for_each_alert)
{
    struct notified notified;
    SEALED(sealed);
    make_notified(&notified, "a");
    as_record_encode(&header, AS_RECORD_NOTIFICATION, &notified.record, &sealed.text,
                     &sealed.places);
    const json_t *alerts = json_object_get(seal(&sealed)->json, "alerts");
    char *text = json_dumps(alerts, JSON_COMPACT | JSON_SORT_KEYS);
    cr_assert_str_eq(
        text, "[{\"digest\":\"a0" ZEROS
              "\",\"fingerprint\":\"0123456789abcdef\",\"labels\":{\"alertname\":\"Slow\",\"hash\":"
              "\"h\",\"zone\":\"a\"},\"outcome\":\"queued\",\"rules\":[\"slow\",\"other\"],"
              "\"startsAt\":\"2026-11-20T10:00:00Z\",\"status\":\"firing\"},"
              "{\"digest\":\"a1" ZEROS
              "\",\"fingerprint\":\"0123456789abcdf0\",\"labels\":{\"alertname\":\"Slow\",\"hash\":"
              "\"h\",\"zone\":\"a\"},\"outcome\":\"no_rule\",\"rules\":[],"
              "\"startsAt\":\"2026-11-20T10:00:00Z\",\"status\":\"resolved\"}]");
    free(text);
    sealed_deinit(&sealed);
    notified_deinit(&notified);
}

Test(record, repeat_names_the_record_with_the_details_and_counts_outcomes)
{
    struct notified notified;
    SEALED(sealed);
    make_notified(&notified, "a");
    const struct as_repeat_record record = {.notification = &notified.notification,
                                            .same_as = "01J0000000000000000000000B",
                                            .duplicate = 98,
                                            .max_steps = 2};
    as_record_encode(&header, AS_RECORD_REPEAT, &record, &sealed.text, &sealed.places);
    cr_assert_str_eq(sealed.text.data,
                     "{\"credential\":\"am\",\"id\":\"01J00000000000000000000000\","
                     "\"instance\":\"host/1\",\"kind\":\"repeat\","
                     "\"outcomes\":{\"duplicate\":98,\"max_steps\":2},\"remote\":\"192.0.2.1\","
                     "\"same_as\":\"01J0000000000000000000000B\","
                     "\"time\":\"2026-11-20T10:00:00.250000Z\",\"traceparent\":\"\"}");
    seal(&sealed);
    sealed_deinit(&sealed);
    notified_deinit(&notified);
}

Test(record, texts_from_outside_are_cut_between_characters_and_say_so)
{
    struct notified notified;
    char *value = as_xmalloc(3 * AS_RECORD_TEXT_MAX);
    for (size_t at = 0; at + 2 < 3 * AS_RECORD_TEXT_MAX; at += 3)
        memcpy(value + at, "\xe2\x82\xac", 3); /* a euro sign */
    value[3 * AS_RECORD_TEXT_MAX - 1] = value[3 * AS_RECORD_TEXT_MAX - 2] =
        value[3 * AS_RECORD_TEXT_MAX - 3] = '\0';
    SEALED(sealed);
    make_notified(&notified, value);
    notified.notification.reason = value;
    as_record_encode(&header, AS_RECORD_NOTIFICATION, &notified.record, &sealed.text,
                     &sealed.places);
    const json_t *alert = json_array_get(json_object_get(seal(&sealed)->json, "alerts"), 0);
    const char *cut = json_string_value(json_object_get(json_object_get(alert, "labels"), "zone"));
    const size_t kept = strlen(cut) - strlen(AS_RECORD_CUT);
    cr_assert_leq(kept, AS_RECORD_TEXT_MAX);
    cr_assert_gt(kept, AS_RECORD_TEXT_MAX - 3);
    cr_assert_eq(kept % 3, 0);
    cr_assert_str_eq(cut + kept, AS_RECORD_CUT);
    cr_assert_str_eq(text_of(&sealed, "notification_reason"), cut);
    sealed_deinit(&sealed);
    notified_deinit(&notified);
    free(value);
}

Test(record, the_answer_to_a_notification_says_the_same)
{
    struct notified notified;
    struct as_buf text = AS_BUF_INIT(BUF_MAX);
    make_notified(&notified, "a");
    as_record_encode_answer(&notified.record, &text);
    cr_assert(as_str_starts_with(
                  text.data,
                  "{\"status\":\"ok\",\"notification\":\"01J00000000000000000000000\",\"alerts\":"
                  "[{\"digest\":\"a0" ZEROS
                  "\",\"fingerprint\":\"0123456789abcdef\",\"status\":\"firing\",\"rules\":"
                  "[\"slow\",\"other\"],\"outcome\":\"queued\"},"
                  "{\"digest\":\"a1" ZEROS
                  "\",\"fingerprint\":\"0123456789abcdf0\",\"status\":\"resolved\",\"rules\":[],"
                  "\"outcome\":\"no_rule\"}]}"),
              "%s", text.data);
    as_buf_deinit(&text);
    notified_deinit(&notified);
}

Test(record, decision_holds_its_whole_input_and_output)
{
    static const struct as_proposal proposal = {
        .rule = "slow",
        .incident = "0123456789abcdef",
        .action = {.kind = AS_ACTION_SCALE_UP, .amount = {.size = 2, .at_least = 1}}};
    static const char ids[1][AS_ULID_SIZE] = {"01J00000000000000000000000"};
    static const struct as_digest incidents[] = {{{0x01, 0x23}}};
    const struct as_decide_input input = {.version = AS_DECIDE_VERSION,
                                          .now = header.time,
                                          .target = "kubernetes/a",
                                          .config = {.min = 1, .max = 10},
                                          .replicas = 4,
                                          .status_replicas = 4,
                                          .proposals = &proposal,
                                          .proposal_count = 1};
    struct as_proposal_result results[1];
    struct as_decision output;
    as_decide(&input, results, &output);
    struct as_decision_record record = {.id = "01J0000000000000000000000D",
                                        .target = "kubernetes/a",
                                        .target_name = "a",
                                        .notifications = ids,
                                        .notification_count = 1,
                                        .notification_total = 40,
                                        .incidents = incidents,
                                        .incident_count = 1,
                                        .incident_total = 1,
                                        .input = &input,
                                        .results = results,
                                        .output = &output,
                                        .rules_digest = "r",
                                        .repeats = 3,
                                        .waits_for = "b",
                                        .since_notification_us = 1500,
                                        .since_alert_us = -1};
    SEALED(sealed);
    as_record_encode(&header, AS_RECORD_DECISION, &record, &sealed.text, &sealed.places);
    const json_t *json = seal(&sealed)->json;
    cr_assert_eq(json_integer_value(json_object_get(json, "notification_count")), 40);
    cr_assert_float_eq(json_real_value(json_object_get(json, "since_notification_seconds")), 0.0015,
                       1e-12);
    cr_assert(is_null(&sealed, "since_alert_seconds"));
    const json_t *decided = json_object_get(json, "output");
    cr_assert_str_eq(json_string_value(json_object_get(decided, "reason")), "scaled");
    cr_assert_eq(json_integer_value(json_object_get(decided, "desired")), 6);
    cr_assert_str_eq(json_string_value(json_object_get(json, "waits_for")), "b");
    const json_t *asked = json_object_get(json, "input");
    cr_assert_eq(json_array_size(json_object_get(asked, "proposals")), 1);
    cr_assert_null(json_object_get(json, "former_uid"));
    cr_assert_null(json_object_get(json, "pool_decision"));
    cr_assert_null(json_object_get(json, "unit"));
    sealed_deinit(&sealed);

    record.former_uid = "3f0c";
    record.pool_decision = "01J0000000000000000000000E";
    record.unit = "Mi";
    SEALED(whole);
    as_record_encode(&header, AS_RECORD_DECISION, &record, &whole.text, &whole.places);
    cr_assert_str_eq(text_of(seal(&whole), "former_uid"), "3f0c");
    cr_assert_str_eq(text_of(&whole, "pool_decision"), record.pool_decision);
    cr_assert_str_eq(text_of(&whole, "unit"), "Mi");
    sealed_deinit(&whole);
}

Test(record, action_and_failed_observation)
{
    struct as_action_record record = {.id = "01J0000000000000000000000A",
                                      .decision = "01J0000000000000000000000D",
                                      .target = "kubernetes/a",
                                      .target_name = "a",
                                      .rule = "slow",
                                      .from = 4,
                                      .to = 6,
                                      .is_late = true,
                                      .outcome = AS_REASON_APPLIED,
                                      .http_status = 200,
                                      .message = "",
                                      .method = "PUT",
                                      .path = "/apis",
                                      .version = "12",
                                      .attempts = 1,
                                      .duration_us = 5000,
                                      .since_notification_us = -1,
                                      .since_alert_us = 0};
    SEALED(action);
    as_record_encode(&header, AS_RECORD_ACTION, &record, &action.text, &action.places);
    cr_assert_str_eq(text_of(seal(&action), "outcome"), "applied");
    cr_assert(json_is_true(json_object_get(action.json, "late")));
    cr_assert_eq(json_integer_value(json_object_get(action.json, "to")), 6);
    cr_assert(is_null(&action, "since_notification_seconds"));
    cr_assert_eq(json_number_value(json_object_get(action.json, "since_alert_seconds")), 0);
    cr_assert_null(json_object_get(action.json, "approval"));
    cr_assert_null(json_object_get(action.json, "request_id"));
    cr_assert_null(json_object_get(action.json, "unit"));
    sealed_deinit(&action);

    record.approval = "01J0000000000000000000000P";
    record.request_id = "4711";
    record.unit = "Mi";
    SEALED(approved);
    as_record_encode(&header, AS_RECORD_ACTION, &record, &approved.text, &approved.places);
    cr_assert_str_eq(text_of(seal(&approved), "approval"), record.approval);
    cr_assert_str_eq(text_of(&approved, "request_id"), "4711");
    cr_assert_str_eq(text_of(&approved, "unit"), "Mi");
    sealed_deinit(&approved);

    record.decision = record.rule = NULL;
    record.command = "01J0000000000000000000000C";
    SEALED(ordered);
    as_record_encode(&header, AS_RECORD_ACTION, &record, &ordered.text, &ordered.places);
    cr_assert_str_eq(text_of(seal(&ordered), "command"), record.command);
    cr_assert(is_null(&ordered, "decision"));
    cr_assert_eq(json_integer_value(json_object_get(ordered.json, "from")), 4);
    sealed_deinit(&ordered);

    record.command = NULL;
    record.from = record.to = -1;
    record.outcome = AS_REASON_UNREACHABLE;
    SEALED(failure);
    as_record_encode(&header, AS_RECORD_ACTION, &record, &failure.text, &failure.places);
    cr_assert(is_null(seal(&failure), "from"));
    cr_assert(is_null(&failure, "to"));
    cr_assert(is_null(&failure, "decision"));
    cr_assert(is_null(&failure, "rule"));
    sealed_deinit(&failure);
}

Test(record, an_alert_that_could_not_be_read_says_where)
{
    struct notified notified;
    struct as_buf text = AS_BUF_INIT(BUF_MAX);
    SEALED(sealed);
    make_notified(&notified, "a");
    notified.alerts[1].problem = (char *)(uintptr_t) "alerts[1].labels.x: a NUL in it";
    notified.outcomes[1].reason = AS_REASON_INVALID;
    as_record_encode(&header, AS_RECORD_NOTIFICATION, &notified.record, &sealed.text,
                     &sealed.places);
    const json_t *alerts = json_object_get(seal(&sealed)->json, "alerts");
    char *second = json_dumps(json_array_get(alerts, 1), JSON_COMPACT | JSON_SORT_KEYS);
    cr_assert_str_eq(second,
                     "{\"error\":\"alerts[1].labels.x: a NUL in it\",\"outcome\":\"invalid\"}");
    as_record_encode_answer(&notified.record, &text);
    cr_assert(strstr(text.data, second), "%s", text.data);
    free(second);
    as_buf_deinit(&text);
    sealed_deinit(&sealed);
    notified_deinit(&notified);
}

Test(record, incident_with_the_sizes_of_its_targets)
{
    static const struct as_incident_target targets[] = {
        {.target = "kubernetes/a", .rule = "slow", .replicas = 4},
        {.target = "kubernetes/b", .rule = "slow", .replicas = -1}};
    struct as_labels *labels = make_labels("a");
    const struct as_incident_record record = {.event = AS_INCIDENT_EXPIRED,
                                              .digest = {{0x01, 0x23}},
                                              .fingerprint = 1,
                                              .starts_at = header.time,
                                              .claimed = {true, {INT64_C(1924992000000000)}},
                                              .labels = labels,
                                              .targets = targets,
                                              .target_count = 2};
    SEALED(sealed);
    as_record_encode(&header, AS_RECORD_INCIDENT, &record, &sealed.text, &sealed.places);
    cr_assert_str_eq(text_of(seal(&sealed), "event"), "expired");
    cr_assert_str_eq(text_of(&sealed, "digest"),
                     "0123000000000000000000000000000000000000000000000000000000000000");
    cr_assert(is_null(&sealed, "notification"));
    cr_assert_str_eq(text_of(&sealed, "startsAt_claimed"), "2031-01-01T00:00:00.000000Z");
    char *text = json_dumps(json_object_get(sealed.json, "targets"), JSON_COMPACT | JSON_SORT_KEYS);
    cr_assert_str_eq(text, "[{\"replicas\":4,\"rule\":\"slow\",\"target\":\"kubernetes/a\"},"
                           "{\"replicas\":null,\"rule\":\"slow\",\"target\":\"kubernetes/b\"}]");
    free(text);
    sealed_deinit(&sealed);
    as_labels_free(labels);
}

Test(record, what_does_not_fit_says_so)
{
    struct notified notified;
    struct as_record_places places;
    make_notified(&notified, "a");
    for (size_t room = 0; room < 600; room += 7) {
        struct as_buf small = AS_BUF_INIT(room);
        as_record_encode(&header, AS_RECORD_NOTIFICATION, &notified.record, &small, &places);
        cr_assert_neq(as_buf_check(&small), 0);
        as_buf_deinit(&small);
    }
    notified_deinit(&notified);
}
