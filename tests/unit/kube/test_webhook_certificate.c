/*
 * The certificate of the admission webhook: who writes which object, in which order, and when. The
 * API server is a Secret and a configuration in memory.
 */
#include <alertscaler/kube/webhook_certificate.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/http/self_signed.h>

#include "kube/kubeconfig.h"
#include "pod.h"

#define SERVICE "\"service\":{\"name\":\"hook\",\"namespace\":\"ours\",\"path\":\"/admission\"}"

static const char *const names[] = {"hook.ours.svc", "hook.ours.svc.cluster.local"};

static struct as_webhook_certificate *certificate;
static bool leads;
static char *secret, *bundle; /* what the API server has; NULL: none; bundle: in base64 */
static const char *client;    /* of the webhook's clientConfig; NULL: no configuration */
static char *answer, *in_use, *key_in_use;
static unsigned changes;
static char done[512];                   /* the changes at the API server: "bundle secret " */
static int secret_status, bundle_status; /* of writes that fail; 0: they succeed */

static void set_text(char **text, const char *value)
{
    free(*text);
    *text = value ? as_xstrdup(value) : NULL;
}

static char *copy_value(const char *json, const char *before)
{
    const char *begin = strstr(json, before);
    cr_assert(begin, "%s", json);
    begin += strlen(before);
    return as_xstrndup(begin, strcspn(begin, "\""));
}

static struct world_answer answer_status(int status)
{
    return (struct world_answer){.status = status,
                                 .body = "{\"kind\":\"Status\",\"message\":\"says no\"}"};
}

static struct world_answer write_secret(const char *body)
{
    if (secret_status)
        return answer_status(secret_status);
    set_text(&secret, body);
    strcat(done, "secret ");
    return (struct world_answer){.status = 201, .body = secret};
}

static struct world_answer write_bundle(const char *body)
{
    if (bundle_status)
        return answer_status(bundle_status);
    cr_assert(
        strstr(body, "{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"7\"}"));
    free(bundle);
    bundle = copy_value(body, "\"/webhooks/0/clientConfig/caBundle\",\"value\":\"");
    strcat(done, "bundle ");
    return (struct world_answer){.status = 200, .body = "{}"};
}

static struct world_answer serve(void *context, const struct world_request *request)
{
    const bool is_secret =
        strstr(request->url, "/api/v1/namespaces/ours/secrets/alertscaler-admission");
    const bool is_write = strcmp(request->method, "PATCH") == 0;
    cr_assert(is_write || strcmp(request->method, "GET") == 0);
    if (is_write)
        return is_secret ? write_secret(request->body) : write_bundle(request->body);
    if (is_secret && secret)
        return (struct world_answer){.status = 200, .body = secret};
    if (is_secret || !client)
        return answer_status(404);
    cr_assert(strstr(request->url, "/validatingwebhookconfigurations/alertscaler"));
    free(answer);
    answer = as_xasprintf("{\"metadata\":{\"resourceVersion\":\"7\"},\"webhooks\":[{\"name\":\"a\","
                          "\"clientConfig\":{%s,\"caBundle\":\"%s\"}}]}",
                          client, bundle ? bundle : "");
    return (struct world_answer){.status = 200, .body = answer};
}

static bool may_write(void *context)
{
    return leads;
}

static void on_changed(void *context, const char *pem, const char *key)
{
    changes++;
    set_text(&in_use, pem);
    set_text(&key_in_use, key);
}

static void setup(void)
{
    struct as_kube_access *access;
    struct as_error error = AS_ERROR_INIT;
    setup_pod("ours");
    world.serve = serve;
    world.wall.us = INT64_C(1800000000) * AS_US_PER_S;
    leads = true;
    client = SERVICE;
    cr_assert_eq(as_kube_access_new(&(struct as_kube_access_config){NULL}, &env, &access, &error),
                 0, "%s", error.text);
    const struct as_webhook_certificate_config config = {
        .namespace_ = "ours", .is_leader = may_write, .changed = on_changed};
    certificate = as_webhook_certificate_new(&config, access, &env);
}

static void teardown(void)
{
    as_webhook_certificate_free(certificate);
    char **texts[] = {&secret, &bundle, &answer, &in_use, &key_in_use};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        set_text(texts[i], NULL);
    teardown_pod();
}

TestSuite(webhook_certificate, .init = setup, .fini = teardown);

/* The authorities that the API server trusts. */
static char *copy_bundle(void)
{
    char *pem = bundle ? kubeconfig_decode_base64(bundle) : NULL;
    cr_assert(pem);
    return pem;
}

static size_t count_certificates(const char *pem)
{
    size_t count = 0;
    while ((pem = strstr(pem, "-----BEGIN CERTIFICATE-----"))) {
        count++;
        pem++;
    }
    return count;
}

static enum as_self_signed_state check_served(char *ca)
{
    const struct as_self_signed pair = {.ca = ca, .certificate = in_use, .key = key_in_use};
    return as_self_signed_check(&pair, names, AS_ARRAY_SIZE(names), world.wall);
}

static void pass_days(int64_t days)
{
    world.wall.us += days * AS_US_PER_DAY;
    world_advance(&world, AS_US_PER_MIN);
}

Test(webhook_certificate, the_leader_makes_it)
{
    world_run(&world);
    cr_assert_str_eq(done, "bundle secret ");
    cr_assert_eq(changes, 1);
    AS_CLEANUP(as_free_p) char *ca = copy_bundle();
    cr_assert_eq(count_certificates(ca), 1);
    cr_assert_eq(check_served(ca), AS_SELF_SIGNED_GOOD);
    cr_assert(strstr(secret, "\"type\":\"kubernetes.io/tls\""), "%s", secret);
    cr_assert_null(strstr(secret, "ca.key"));
    world_advance(&world, 10 * AS_US_PER_MIN);
    cr_assert_str_eq(done, "bundle secret ");
    cr_assert_eq(changes, 1);
}

Test(webhook_certificate, a_follower_reads_it)
{
    leads = false;
    world_run(&world);
    world_advance(&world, 3 * AS_US_PER_MIN);
    cr_assert_str_eq(done, "");
    cr_assert_eq(changes, 0);
    struct as_self_signed made = as_self_signed_make(names, 2, world.wall, AS_SELF_SIGNED_LIFE_US);
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(64 * 1024);
    as_buf_append_str(&text, "{\"data\":{\"ca.crt\":\"");
    as_encode_base64(&text, made.ca, strlen(made.ca));
    as_buf_append_str(&text, "\",\"tls.crt\":\"");
    as_encode_base64(&text, made.certificate, strlen(made.certificate));
    as_buf_append_str(&text, "\",\"tls.key\":\"");
    as_encode_base64(&text, made.key, strlen(made.key));
    as_buf_append_str(&text, "\"}}");
    set_text(&secret, text.data);
    world_advance(&world, AS_US_PER_MIN);
    cr_assert_eq(changes, 1);
    cr_assert_str_eq(in_use, made.certificate);
    cr_assert_str_eq(key_in_use, made.key);
    cr_assert_str_eq(done, "");
    as_self_signed_deinit(&made);
}

/* The replica that has read the old certificate is trusted until it reads the new one. */
Test(webhook_certificate, it_is_renewed_after_two_thirds_of_its_time)
{
    world_run(&world);
    AS_CLEANUP(as_free_p) char *old = as_xstrdup(in_use);
    AS_CLEANUP(as_free_p) char *old_key = as_xstrdup(key_in_use);
    AS_CLEANUP(as_free_p) char *old_ca = copy_bundle();
    pass_days(243);
    cr_assert_str_eq(done, "bundle secret ");
    pass_days(1);
    cr_assert_str_eq(done, "bundle secret bundle secret ");
    cr_assert_eq(changes, 2);
    AS_CLEANUP(as_free_p) char *ca = copy_bundle();
    cr_assert_eq(count_certificates(ca), 2);
    cr_assert_eq(check_served(ca), AS_SELF_SIGNED_GOOD);
    cr_assert(strstr(ca, old_ca));
    const struct as_self_signed former = {.ca = old_ca, .certificate = old, .key = old_key};
    cr_assert_eq(as_self_signed_check(&former, names, 2, world.wall), AS_SELF_SIGNED_DUE);
    pass_days(245);
    AS_CLEANUP(as_free_p) char *next = copy_bundle();
    cr_assert_eq(count_certificates(next), 2);
    cr_assert_null(strstr(next, old_ca));
}

Test(webhook_certificate, an_expired_one_is_replaced)
{
    world_run(&world);
    AS_CLEANUP(as_free_p) char *old_ca = copy_bundle();
    pass_days(400);
    cr_assert_eq(changes, 2);
    AS_CLEANUP(as_free_p) char *ca = copy_bundle();
    cr_assert_eq(count_certificates(ca), 1);
    cr_assert_null(strstr(ca, old_ca));
    cr_assert_eq(check_served(ca), AS_SELF_SIGNED_GOOD);
}

Test(webhook_certificate, another_name_needs_another_one)
{
    world_run(&world);
    client = "\"url\":\"https://127.0.0.1:9443/admission\"";
    world_advance(&world, AS_US_PER_MIN);
    cr_assert_eq(changes, 2);
    AS_CLEANUP(as_free_p) char *ca = copy_bundle();
    static const char *const address[] = {"127.0.0.1"};
    const struct as_self_signed pair = {.ca = ca, .certificate = in_use, .key = key_in_use};
    cr_assert_eq(as_self_signed_check(&pair, address, 1, world.wall), AS_SELF_SIGNED_GOOD);
    cr_assert_eq(check_served(ca), AS_SELF_SIGNED_BAD);
}

/* One pair is made, and written when that is possible again. */
Test(webhook_certificate, a_failed_write_is_repeated)
{
    secret_status = 403;
    world_run(&world);
    cr_assert_str_eq(done, "bundle ");
    cr_assert_eq(changes, 0);
    world_advance(&world, AS_US_PER_MIN);
    cr_assert_str_eq(done, "bundle ");
    secret_status = 0;
    world_advance(&world, AS_US_PER_MIN);
    cr_assert_str_eq(done, "bundle secret ");
    AS_CLEANUP(as_free_p) char *ca = copy_bundle();
    cr_assert_eq(check_served(ca), AS_SELF_SIGNED_GOOD);
}

Test(webhook_certificate, nothing_is_written_where_the_bundle_cannot_be)
{
    bundle_status = 422;
    world_run(&world);
    world_advance(&world, AS_US_PER_MIN);
    cr_assert_str_eq(done, "");
    cr_assert_eq(changes, 0);
}

/* Another replica led for a moment: its pair counts. */
Test(webhook_certificate, after_a_conflict_the_objects_are_read_again)
{
    secret_status = 409;
    world_run(&world);
    AS_CLEANUP(as_free_p) char *first = copy_bundle();
    secret_status = 0;
    world_advance(&world, 5 * AS_US_PER_S);
    cr_assert_str_eq(done, "bundle bundle secret ");
    AS_CLEANUP(as_free_p) char *ca = copy_bundle();
    cr_assert_str_neq(ca, first);
    cr_assert_eq(check_served(ca), AS_SELF_SIGNED_GOOD);
}

Test(webhook_certificate, a_bundle_that_was_changed_is_set_again)
{
    world_run(&world);
    AS_CLEANUP(as_free_p) char *ca = copy_bundle();
    set_text(&bundle, "");
    world_advance(&world, AS_US_PER_MIN);
    AS_CLEANUP(as_free_p) char *again = copy_bundle();
    cr_assert_str_eq(again, ca);
    cr_assert_str_eq(done, "bundle secret bundle ");
}

Test(webhook_certificate, without_a_configuration_there_is_no_certificate)
{
    client = NULL;
    world_run(&world);
    world_advance(&world, AS_US_PER_MIN);
    cr_assert_str_eq(done, "");
    const size_t before = world.request_count;
    world_advance(&world, AS_US_PER_H);
    cr_assert_leq(world.request_count - before, 2 * 60, "a round a minute");
    client = SERVICE;
    world_advance(&world, AS_US_PER_MIN);
    cr_assert_str_eq(done, "bundle secret ");
}

Test(webhook_certificate, a_name_that_is_no_host_is_not_used)
{
    client = "\"service\":{\"name\":\"a,IP:1.2.3.4\",\"namespace\":\"ours\"}";
    world_run(&world);
    client = "\"url\":\"http://127.0.0.1/\"";
    world_advance(&world, AS_US_PER_MIN);
    cr_assert_str_eq(done, "");
}

Test(webhook_certificate, a_secret_with_something_else_is_replaced)
{
    static const char *const texts[] = {
        "{}",
        "{\"data\":7,\"type\":\"Opaque\"}",
        "{\"data\":{\"ca.crt\":\"!\",\"tls.crt\":\"\",\"tls.key\":\"\"},\"type\":\"Opaque\"}",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++) {
        set_text(&secret, texts[i]);
        *done = '\0';
        world_run(&world);
        world_advance(&world, AS_US_PER_MIN);
        cr_assert_str_eq(done, "bundle secret ");
        cr_assert(strstr(secret, "\"type\":\"Opaque\""), "it cannot be changed: %s", secret);
    }
}
