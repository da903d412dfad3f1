/*
 * kube/lock_lease.h: a written lock can be read back, names are DNS labels that show their target,
 * and acquireTime and duration give the end.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/lock_lease.h>

#define WEB "kubernetes/default/apps/v1/Deployment/shop/web"
#define AT  (INT64_C(1795600000) * AS_US_PER_S)
#define S   AS_US_PER_S
#define T(us)                                                                                      \
    {                                                                                              \
        true,                                                                                      \
        {                                                                                          \
            AT + (us)                                                                              \
        }                                                                                          \
    }

static char printed[AS_LOCK_LEASE_NAME_SIZE];

static const char *name_of(const char *target)
{
    as_lock_lease_print_name(target, printed);
    return printed;
}

Test(lock_lease, a_name_is_readable_and_of_one_target)
{
    cr_expect_str_eq(name_of(WEB), "alertscaler-lock-apps-deployment-shop-web-dadcff2c9d97fe02");
    char other[AS_LOCK_LEASE_NAME_SIZE];
    memcpy(other, printed, sizeof(other));
    cr_expect_str_neq(name_of("kubernetes/default/apps/v1/Deployment/shop/wEb"), other);
    cr_expect_str_neq(name_of(""), other);
}

Test(lock_lease, two_spellings_of_a_target_have_one_name)
{
    static const char *const rows[][2] = {
        {WEB, "kubernetes/default/extensions/v1beta1/Deployment/shop/web"},
        {"node_group/mine/http://H:80/pools/a/", "node_group/mine/http://h/pools/a"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char other[AS_LOCK_LEASE_NAME_SIZE];
        memcpy(other, name_of(rows[i][0]), sizeof(other));
        cr_expect_str_eq(name_of(rows[i][1]), other);
    }
}

static void expect_label(const char *target)
{
    const char *name = name_of(target);
    const size_t size = strlen(name);
    cr_expect_leq(size, 63, "%s", name);
    cr_expect_eq(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"), size, "%s", name);
    cr_expect_eq(strncmp(name, AS_LOCK_LEASE_PREFIX, strlen(AS_LOCK_LEASE_PREFIX)), 0);
    cr_expect_null(strstr(name, "--"), "%s", name);
    cr_expect_neq(name[size - 1], '-');
}

Test(lock_lease, a_name_is_a_dns_label_whatever_the_target_is_called)
{
    static const char *const rows[] = {
        "",
        "a",
        "-",
        "///",
        "node_group/mine/http://127.0.0.1:8080/pools/A.B_c?x=1&y=%20",
        "\xc3\xa4\xc3\xb6\xc3\xbc",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "a/aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "a/aaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "a/-aaaaaaaaaaaaaaaaaaaaaaaaaaa/",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        expect_label(rows[i]);
    for (size_t size = 1; size < 1200; size++) {
        char target[1200];
        for (size_t i = 0; i < size; i++)
            target[i] = "ab/C-0"[(i * size) % 6];
        target[size] = '\0';
        expect_label(target);
    }
}

struct kept {
    size_t count;
    struct as_lock_lease lease;
    char texts[8][200];
};

static const char *keep_text(struct kept *kept, size_t at, const char *text)
{
    if (!text)
        return NULL;
    snprintf(kept->texts[at], sizeof(kept->texts[0]), "%s", text);
    return kept->texts[at];
}

static void keep(void *context, const struct as_lock_lease *lease)
{
    struct kept *kept = context;
    kept->count++;
    kept->lease = *lease;
    kept->lease.name = keep_text(kept, 0, lease->name);
    kept->lease.version = keep_text(kept, 1, lease->version);
    kept->lease.holder = keep_text(kept, 2, lease->holder);
    kept->lease.lock.target = keep_text(kept, 3, lease->lock.target);
    kept->lease.lock.rule = keep_text(kept, 4, lease->lock.rule);
    kept->lease.lock.decision = keep_text(kept, 5, lease->lock.decision);
    kept->lease.lock.command = keep_text(kept, 6, lease->lock.command);
}

static struct as_error error;
static struct kept kept;

static int decode(const char *json)
{
    error = AS_ERROR_INIT;
    kept = (struct kept){0};
    return as_lock_lease_decode(json, strlen(json), keep, &kept, &error);
}

static json_t *encode(const struct as_lock_lease *lease, struct as_buf *text)
{
    as_lock_lease_encode(lease, "ops", text);
    cr_assert_eq(as_buf_check(text), 0);
    json_t *document = json_loadb(text->data, text->size, 0, NULL);
    cr_assert_not_null(document, "%s", text->data);
    return document;
}

static const struct as_lock_lease cooldown = {
    .name = "alertscaler-lock-x",
    .version = "7",
    .holder = "pod-1_6c0f",
    .lock = {.target = "a\"/\xc3\xa4",
             .since = {AT + 250000},
             .up_until = T(60 * S + 250000),
             .down_until = T(300 * S + 500000),
             .rule = "slow",
             .decision = "01D"},
};

static int64_t get_time(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    as_wall_time time;
    cr_assert(text && as_wall_time_parse(text, strlen(text), &time) == 0, "%s", name);
    return time.us;
}

Test(lock_lease, acquire_time_and_duration_are_the_end_of_the_lock)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(4096);
    json_t *document = encode(&cooldown, &text);
    const json_t *spec = json_object_get(document, "spec");
    const json_int_t seconds = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));
    cr_expect_eq(seconds, 301, "whole seconds, not less than it lasts");
    cr_expect_eq(get_time(spec, "acquireTime") + seconds * S, AT + 300 * S + 500000);
    cr_expect_str_eq(json_string_value(json_object_get(spec, "holderIdentity")), "pod-1_6c0f");
    const json_t *labels = json_object_get(json_object_get(document, "metadata"), "labels");
    cr_expect_str_eq(json_string_value(json_object_get(labels, "app.kubernetes.io/component")),
                     "lock");
    cr_expect_str_eq(json_string_value(json_object_get(labels, "app.kubernetes.io/managed-by")),
                     "alertscaler");
    json_decref(document);
}

Test(lock_lease, what_is_written_is_read_again)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(4096);
    json_decref(encode(&cooldown, &text));
    cr_assert_eq(decode(text.data), 0, "%s", error.text);
    const struct as_lock *lock = &kept.lease.lock;
    cr_expect_str_eq(kept.lease.name, cooldown.name);
    cr_expect_str_eq(kept.lease.version, "7");
    cr_expect_str_eq(kept.lease.holder, cooldown.holder);
    cr_expect_str_eq(lock->target, cooldown.lock.target);
    cr_expect_str_eq(lock->rule, "slow");
    cr_expect_str_eq(lock->decision, "01D");
    cr_expect_null(lock->command);
    cr_expect_not(lock->is_in_flight);
    cr_expect(lock->up_until.set && lock->up_until.at.us == cooldown.lock.up_until.at.us);
    cr_expect(lock->down_until.set && lock->down_until.at.us == cooldown.lock.down_until.at.us);
    cr_expect_eq(as_lock_get_end(lock).at.us, cooldown.lock.down_until.at.us);
}

Test(lock_lease, a_request_under_way_has_no_end)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(4096);
    struct as_lock_lease lease = cooldown;
    lease.version = "";
    lease.lock.is_in_flight = true;
    lease.lock.decision = NULL;
    lease.lock.command = "01C";
    json_t *document = encode(&lease, &text);
    const json_t *spec = json_object_get(document, "spec");
    cr_expect_null(json_object_get(spec, "leaseDurationSeconds"));
    cr_expect_eq(get_time(spec, "acquireTime"), AT + 250000);
    cr_expect_null(json_object_get(json_object_get(document, "metadata"), "resourceVersion"));
    json_decref(document);
    cr_expect_eq(decode(text.data), -EBADMSG, "one that was read has a version");
    cr_expect_str_eq(error.text, "metadata: name or resourceVersion is missing");
}

Test(lock_lease, an_end_in_the_past_and_one_far_away_are_durations_all_the_same)
{
    static const int64_t ends[] = {-5 * S, 0, INT64_C(100) * 366 * AS_US_PER_DAY};
    static const json_int_t seconds[] = {1, 1, INT32_MAX};
    for (size_t i = 0; i < AS_ARRAY_SIZE(ends); i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(4096);
        struct as_lock_lease lease = cooldown;
        lease.lock.down_until.set = false;
        lease.lock.since.us = AT;
        lease.lock.up_until.at.us = AT + ends[i];
        json_t *document = encode(&lease, &text);
        const json_t *spec = json_object_get(document, "spec");
        cr_expect_eq(json_integer_value(json_object_get(spec, "leaseDurationSeconds")), seconds[i]);
        json_decref(document);
    }
}

Test(lock_lease, hands_on_it_are_no_obstacle)
{
    cr_assert_eq(decode("{\"kind\":\"Lease\",\"metadata\":{\"name\":\"n\",\"resourceVersion\":"
                        "\"1\",\"annotations\":{\"alertscaler.io/locked-until-up\":\"tomorrow\","
                        "\"alertscaler.io/rule\":7}},\"spec\":null}"),
                 0, "%s", error.text);
    cr_expect_eq(kept.count, 1);
    cr_expect_str_eq(kept.lease.lock.target, "");
    cr_expect_null(kept.lease.lock.rule);
    cr_expect_not(kept.lease.lock.up_until.set);
}

Test(lock_lease, what_is_no_lease_is_refused_by_name)
{
    cr_expect_eq(decode("{\"kind\":\"Pod\"}"), -EBADMSG);
    cr_expect_str_eq(error.text, "kind: expected Lease");
    cr_expect_eq(decode("{\"kind\":\"Lease\",\"metadata\":7}"), -EBADMSG);
    cr_expect(strstr(error.text, "metadata"));
    cr_expect_eq(decode("nonsense"), -EBADMSG);
    cr_expect_eq(kept.count, 0);
}

static int decode_list(const char *json, char **next_out)
{
    error = AS_ERROR_INIT;
    kept = (struct kept){0};
    return as_lock_lease_list_decode(json, strlen(json), next_out, keep, &kept, &error);
}

#define ITEM "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1\"}}"

Test(lock_lease, a_list_comes_in_pages)
{
    AS_CLEANUP(as_free_p) char *next = NULL;
    cr_assert_eq(decode_list("{\"kind\":\"LeaseList\",\"metadata\":{\"continue\":\"c\"},"
                             "\"items\":[" ITEM "," ITEM "]}",
                             &next),
                 0, "%s", error.text);
    cr_expect_eq(kept.count, 2);
    cr_expect_str_eq(next, "c");
    free(next);
    cr_assert_eq(decode_list("{\"kind\":\"LeaseList\",\"items\":null}", &next), 0);
    cr_expect_null(next);
    cr_expect_eq(decode_list("{\"kind\":\"LeaseList\",\"items\":{}}", &next), -EBADMSG);
    cr_expect_eq(decode_list("{\"kind\":\"LeaseList\",\"items\":[7]}", &next), -EBADMSG);
    cr_expect_eq(decode_list("{\"kind\":\"LeaseList\",\"items\":[{}]}", &next), -EBADMSG);
    cr_expect_eq(decode_list("{\"kind\":\"List\"}", &next), -EBADMSG);
}

Test(lock_lease, a_delete_is_of_one_version)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(4096);
    as_lock_lease_encode_delete("7", &text);
    cr_expect_str_eq(text.data, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                                "\"preconditions\":{\"resourceVersion\":\"7\"}}");
}
