/*
 * Shared by the tests of signatures: vectors made by the vendors' own clients (vectors/), and
 * credentials that cannot sign.
 */
#ifndef ALERTSCALER_TESTS_UNIT_PROVIDER_SIGNING_H
#define ALERTSCALER_TESTS_UNIT_PROVIDER_SIGNING_H

#include <errno.h>

#include <jansson.h>

#include <alertscaler/login/sign.h>

#include "op_driver.h"
#include "source_root.h"

static inline const char *signing_get(const json_t *row, const char *name)
{
    return json_string_value(json_object_get(row, name));
}

/* The header's value; NULL where there is none. */
static inline const char *signing_find_header(const struct as_cloud_op *op, const char *name)
{
    for (size_t i = 0; i < op->request.header_count; i++)
        if (as_str_starts_with(op->request.headers[i], name))
            return op->request.headers[i] + strlen(name) + 2;
    return NULL;
}

struct signing {
    as_sign_fn *sign;
    const char *token_header; /* that has a session's token */
    void (*add_headers)(struct as_cloud_op *op, const json_t *row);
    void (*check)(const struct as_cloud_op *op, const json_t *row); /* besides the signature */
};

static inline void signing_check_vector(const struct signing *signing, const json_t *row)
{
    struct as_cloud_op op;
    struct as_provider_credentials credentials = {.key_id = (char *)signing_get(row, "key_id"),
                                                  .secret = (char *)signing_get(row, "secret"),
                                                  .token = (char *)signing_get(row, "token")};
    struct as_sign_scope scope = {.region = signing_get(row, "region"),
                                  .service = signing_get(row, "service"),
                                  .nonce = signing_get(row, "nonce")};
    struct as_error error;
    const char *now = signing_get(row, "now");
    as_cloud_op_init(&op, driver_get_variable);
    cr_assert_eq(as_wall_time_parse(now, strlen(now), &scope.now), 0);
    as_cloud_op_ask(&op, signing_get(row, "method"), "%s", signing_get(row, "url"));
    signing->add_headers(&op, row);
    as_buf_append_str(&op.request.body, signing_get(row, "body"));
    cr_assert_eq(signing->sign(&op, &credentials, &scope, &error), 0);
    const char *signature = signing_find_header(&op, "Authorization");
    cr_expect_str_eq(signature, signing_get(row, "authorization"), "%s:\n%s\n%s",
                     signing_get(row, "name"), signature, signing_get(row, "authorization"));
    cr_expect(as_str_equal(signing_find_header(&op, signing->token_header), credentials.token));
    signing->check(&op, row);
    as_cloud_op_deinit(&op);
}

/* All of a file of vectors/, which has so many at least. */
static inline void signing_check_vectors(const struct signing *signing, const char *name,
                                         size_t count)
{
    char path[512];
    json_error_t problem;
    snprintf(path, sizeof(path), TEST_SOURCE_ROOT "/tests/unit/login/vectors/%s", name);
    json_t *file = json_load_file(path, 0, &problem);
    cr_assert_not_null(file, "%s", problem.text);
    const json_t *rows = json_object_get(file, "vectors");
    cr_assert_geq(json_array_size(rows), count);
    for (size_t i = 0; i < json_array_size(rows); i++)
        signing_check_vector(signing, json_array_get(rows, i));
    json_decref(file);
}

static inline void signing_expect_that_a_key_is_needed(as_sign_fn *sign)
{
    struct as_cloud_op op;
    const struct as_sign_scope scope = {
        .region = "r", .service = "s", .now = DRIVER_NOW, .nonce = "n"};
    struct as_provider_credentials rows[] = {{0},
                                             {.key_id = (char *)"A"},
                                             {.key_id = (char *)"A", .secret = (char *)""},
                                             {.key_id = (char *)"", .secret = (char *)"s"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_error error;
        as_cloud_op_init(&op, driver_get_variable);
        as_cloud_op_ask(&op, "POST", "https://h/");
        cr_expect_eq(sign(&op, &rows[i], &scope, &error), -EINVAL);
        cr_expect_str_eq(error.text, "the credentials have no access key");
        driver_expect_headers(&op, "");
        as_cloud_op_deinit(&op);
    }
}

/* The query of a user's URL. */
static inline void signing_expect_few_parameters(as_sign_fn *sign, size_t max)
{
    struct as_provider_credentials credentials = {.key_id = (char *)"A", .secret = (char *)"s"};
    const struct as_sign_scope scope = {
        .region = "r", .service = "s", .now = DRIVER_NOW, .nonce = "n"};
    for (size_t count = max; count <= max + 1; count++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf url = AS_BUF_INIT(AS_CLOUD_OP_BODY_MAX);
        struct as_error error = AS_ERROR_INIT;
        struct as_cloud_op op;
        as_buf_append_str(&url, "https://h/?p=0");
        for (size_t i = 1; i < count; i++)
            as_buf_printf(&url, "&p=%zu", i);
        as_cloud_op_init(&op, driver_get_variable);
        as_cloud_op_ask(&op, "POST", "%s", url.data);
        cr_expect_eq(sign(&op, &credentials, &scope, &error), count > max ? -EMSGSIZE : 0);
        cr_expect_str_eq(error.text,
                         count > max ? "the URL has too many parameters to be signed" : "");
        as_cloud_op_deinit(&op);
    }
}

#endif
