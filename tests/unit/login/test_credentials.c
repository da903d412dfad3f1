/*
 * credentials.h, sign.h: the common parts of all providers' credentials: options, files with a
 * secret, bearer tokens.
 */
#include <alertscaler/login/provider_credentials.h>

#include <errno.h>

#include <alertscaler/login/sign.h>

#include "op_driver.h"

static const char *taken;

static void on_file(struct as_cloud_op *op)
{
    taken = as_credentials_take_file(op);
    if (taken)
        as_cloud_op_end(op);
}

static void read_file(struct as_cloud_op *op, const char *content, int error_number)
{
    as_cloud_op_init(op, driver_get_variable);
    as_cloud_op_read(op, "/run/token", on_file);
    driver_expect_file(op, "/run/token");
    driver_content(op, content, error_number);
}

Test(credentials, secret_of_a_file_is_without_white_space)
{
    static const char *const contents[] = {"tok en", "tok en\n", " \t\ntok en\r\n\n"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(contents); i++) {
        struct as_cloud_op op;
        read_file(&op, contents[i], 0);
        driver_expect_end(&op, AS_CLOUD_OP_OK, "");
        cr_expect_str_eq(taken, "tok en");
        as_cloud_op_deinit(&op);
    }
}

Test(credentials, file_without_a_secret_is_an_error)
{
    static const struct {
        const char *content;
        int number;
        const char *message;
    } rows[] = {
        {NULL, ENOENT, "cannot read /run/token: No such file or directory"},
        {"", 0, "/run/token is empty"},
        {" \r\n", 0, "/run/token is empty"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_cloud_op op;
        read_file(&op, rows[i].content, rows[i].number);
        driver_expect_end(&op, AS_CLOUD_OP_CONFIGURATION, rows[i].message);
        cr_expect_null(taken);
        as_cloud_op_deinit(&op);
    }
}

Test(credentials, endpoint_is_without_slashes_at_its_end)
{
    struct as_provider_option options[] = {{.key = "a", .value = "http://127.0.0.1:80/x//"},
                                           {.key = "b", .value = "/"}};
    const struct as_provider_settings account = {.options = options, .option_count = 2};
    struct as_cloud_op op;
    as_cloud_op_init(&op, driver_get_variable);
    cr_expect_str_eq(as_account_get_endpoint(&op, &account, "a", "https://u"),
                     "http://127.0.0.1:80/x");
    cr_expect_str_eq(as_account_get_endpoint(&op, &account, "b", "https://u"), "");
    cr_expect_str_eq(as_account_get_endpoint(&op, &account, "c", "https://u"), "https://u");
    as_cloud_op_deinit(&op);
}

static int sign(struct as_cloud_op *op, const char *token, struct as_error *error)
{
    const struct as_provider_credentials credentials = {.token = (char *)token};
    as_cloud_op_init(op, driver_get_variable);
    as_cloud_op_ask(op, "GET", "https://x/");
    return as_sign_bearer(op, &credentials, &(struct as_sign_scope){0}, error);
}

Test(sign_bearer, token_is_a_header)
{
    struct as_cloud_op op;
    struct as_error error;
    cr_assert_eq(sign(&op, "dop_v1_~x.y+z/=", &error), 0);
    driver_expect_headers(&op, "Authorization: Bearer dop_v1_~x.y+z/=\n");
    as_cloud_op_deinit(&op);
}

Test(sign_token, is_a_header_of_its_own)
{
    struct as_cloud_op op;
    struct as_error error = AS_ERROR_INIT;
    const struct as_sign_scope scope = {0};
    as_cloud_op_init(&op, driver_get_variable);
    as_cloud_op_ask(&op, "GET", "https://x");
    cr_assert_eq(as_sign_token(&op, &(struct as_provider_credentials){.token = (char *)"gAAA-_"},
                               &scope, &error),
                 0);
    driver_expect_headers(&op, "X-Auth-Token: gAAA-_\n");
    cr_assert_eq(as_sign_token(&op, &(struct as_provider_credentials){.token = (char *)"a\nb"},
                               &scope, &error),
                 -EINVAL);
    as_cloud_op_deinit(&op);
}

/* Such a one would make headers of its own. */
Test(sign_bearer, what_is_no_token_is_not_sent)
{
    static const char *const tokens[] = {NULL, "", "a b", "a\nX-Y: z", "a\x7f", "\xC3\xBC"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(tokens); i++) {
        struct as_cloud_op op;
        struct as_error error;
        cr_assert_eq(sign(&op, tokens[i], &error), -EINVAL, "%zu", i);
        driver_expect_headers(&op, "");
        as_cloud_op_deinit(&op);
    }
}
