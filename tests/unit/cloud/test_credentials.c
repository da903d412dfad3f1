/*
 * credentials.h, sign.h: the common parts of all providers' credentials: options, files with a
 * secret, bearer tokens.
 */
#include <alertscaler/cloud/provider_credentials.h>

#include <errno.h>

#include <alertscaler/cloud/sign.h>

#include "talker.h"

static const char *taken;

static void hear_file(struct as_talk *talk)
{
    taken = as_credentials_take_file(talk);
    if (taken)
        as_talk_end(talk);
}

static void read_file(struct as_talk *talk, const char *content, int error_number)
{
    as_talk_init(talk, talker_get_variable);
    as_talk_read(talk, "/run/token", hear_file);
    talker_expect_file(talk, "/run/token");
    talker_content(talk, content, error_number);
}

Test(credentials, secret_of_a_file_is_without_white_space)
{
    static const char *const contents[] = {"tok en", "tok en\n", " \t\ntok en\r\n\n"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(contents); i++) {
        struct as_talk talk;
        read_file(&talk, contents[i], 0);
        talker_expect_end(&talk, AS_TALK_OK, "");
        cr_expect_str_eq(taken, "tok en");
        as_talk_deinit(&talk);
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
        struct as_talk talk;
        read_file(&talk, rows[i].content, rows[i].number);
        talker_expect_end(&talk, AS_TALK_CONFIGURATION, rows[i].message);
        cr_expect_null(taken);
        as_talk_deinit(&talk);
    }
}

Test(credentials, endpoint_is_without_slashes_at_its_end)
{
    struct as_provider_option options[] = {{.key = "a", .value = "http://127.0.0.1:80/x//"},
                                           {.key = "b", .value = "/"}};
    const struct as_provider_settings account = {.options = options, .option_count = 2};
    struct as_talk talk;
    as_talk_init(&talk, talker_get_variable);
    cr_expect_str_eq(as_account_get_endpoint(&talk, &account, "a", "https://u"),
                     "http://127.0.0.1:80/x");
    cr_expect_str_eq(as_account_get_endpoint(&talk, &account, "b", "https://u"), "");
    cr_expect_str_eq(as_account_get_endpoint(&talk, &account, "c", "https://u"), "https://u");
    as_talk_deinit(&talk);
}

static int sign(struct as_talk *talk, const char *token, struct as_error *error)
{
    const struct as_provider_credentials credentials = {.token = (char *)token};
    as_talk_init(talk, talker_get_variable);
    as_talk_ask(talk, "GET", "https://x/");
    return as_sign_bearer(talk, &credentials, &(struct as_sign_scope){0}, error);
}

Test(sign_bearer, token_is_a_header)
{
    struct as_talk talk;
    struct as_error error;
    cr_assert_eq(sign(&talk, "dop_v1_~x.y+z/=", &error), 0);
    talker_expect_headers(&talk, "Authorization: Bearer dop_v1_~x.y+z/=\n");
    as_talk_deinit(&talk);
}

Test(sign_token, is_a_header_of_its_own)
{
    struct as_talk talk;
    struct as_error error = AS_ERROR_INIT;
    const struct as_sign_scope scope = {0};
    as_talk_init(&talk, talker_get_variable);
    as_talk_ask(&talk, "GET", "https://x");
    cr_assert_eq(as_sign_token(&talk, &(struct as_provider_credentials){.token = (char *)"gAAA-_"},
                               &scope, &error),
                 0);
    talker_expect_headers(&talk, "X-Auth-Token: gAAA-_\n");
    cr_assert_eq(as_sign_token(&talk, &(struct as_provider_credentials){.token = (char *)"a\nb"},
                               &scope, &error),
                 -EINVAL);
    as_talk_deinit(&talk);
}

/* Such a one would make headers of its own. */
Test(sign_bearer, what_is_no_token_is_not_sent)
{
    static const char *const tokens[] = {NULL, "", "a b", "a\nX-Y: z", "a\x7f", "\xC3\xBC"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(tokens); i++) {
        struct as_talk talk;
        struct as_error error;
        cr_assert_eq(sign(&talk, tokens[i], &error), -EINVAL, "%zu", i);
        talker_expect_headers(&talk, "");
        as_talk_deinit(&talk);
    }
}
