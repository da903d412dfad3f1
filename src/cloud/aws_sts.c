/*
 * Assuming roles: https://docs.aws.amazon.com/STS/latest/APIReference/
 *
 * With credentials (AssumeRole, signed) or with a token of an identity provider that AWS trusts
 * (AssumeRoleWithWebIdentity, not signed). The token's file is read each time: such tokens are
 * short-lived and replaced in place.
 */
#include "aws_search.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <alertscaler/base/errno_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cloud/sign.h>

#include "aws_errors.h"
#include "credentials_aws.h"
#include "provider_answer.h"

#define SESSION "alertscaler" /* as CloudTrail shows it */

/* If no region is known, asks the global service. False after failing the talk. */
static bool ask(struct as_credentials_talk *given, const char *action, const struct aws_role *role)
{
    struct as_talk *talk = &given->talk;
    const char *region = aws_search_region(given);
    const bool is_global = !region && !as_account_get(given->account, "sts_endpoint");
    const char *base = is_global ? "https://sts.amazonaws.com"
                                 : aws_make_endpoint(talk, given->account, "sts_endpoint", "sts",
                                                     region ? region : "us-east-1");
    if (!base)
        return false;
    as_talk_ask(talk, "POST", "%s/", base);
    as_talk_header(talk, "Content-Type: application/x-www-form-urlencoded; charset=utf-8");
    as_buf_printf(&talk->request.body, "Action=%s&Version=2011-06-15", action);
    as_talk_add_parameter(talk, "RoleArn", role->arn);
    as_talk_add_parameter(talk, "RoleSessionName", role->session ? role->session : SESSION);
    as_talk_add_parameter(talk, "ExternalId", role->external_id);
    as_talk_add_parameter(talk, "DurationSeconds", role->duration);
    talk->request.is_plain = true;
    return true;
}

static void take_credentials(struct as_talk *talk, const char *path)
{
    const char *code;
    if (!aws_is_good_xml(talk, &code))
        return;
    const json_t *document = answer_xml(talk);
    if (!document)
        return;
    const json_t *credentials = answer_find(document, path);
    if (!credentials)
        (void)answer_misses(talk, path);
    else
        aws_search_found_in(as_credentials_get(talk), credentials, "SessionToken");
}

/* ---- with credentials ---- */

static void hear_role(struct as_talk *talk)
{
    take_credentials(talk, "AssumeRoleResponse.AssumeRoleResult.Credentials");
}

void aws_sts_assume_role(struct as_credentials_talk *given)
{
    struct as_talk *talk = &given->talk;
    struct aws_search *search = given->state;
    const struct aws_role *role = &search->roles[--search->role_count];
    const char *region = aws_search_region(given);
    struct as_error error;
    const struct as_sign_scope scope = {
        .region = region ? region : "us-east-1", .service = "sts", .now = talk->now, .nonce = ""};
    if (!ask(given, "AssumeRole", role))
        return;
    if (as_sign_aws(talk, &given->found, &scope, &error) != 0)
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "profile %s: %s", role->profile, error.text);
    else
        as_talk_send_question(talk, "assume_role", hear_role);
    talk->request.is_timed = true;
}

/* ---- with a web identity ---- */

static void hear_identity(struct as_talk *talk)
{
    take_credentials(
        talk, "AssumeRoleWithWebIdentityResponse.AssumeRoleWithWebIdentityResult.Credentials");
}

static void hear_token(struct as_talk *talk)
{
    struct as_credentials_talk *given = as_credentials_get(talk);
    const struct aws_role *role = &aws_search_get(talk)->identity;
    if (!talk->content) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: %s", talk->path,
                     as_errno_get_text(talk->error_number));
        return;
    }
    size_t size = talk->content_size;
    while (size > 0 && isspace((unsigned char)talk->content[size - 1]))
        size--;
    char *token = as_arena_alloc(&talk->arena, size + 1, 1);
    memcpy(token, talk->content, size);
    if (size == 0 || strlen(token) != size) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: there is no token in it", talk->path);
        return;
    }
    if (ask(given, "AssumeRoleWithWebIdentity", role)) {
        as_talk_add_parameter(talk, "WebIdentityToken", token);
        as_talk_send_question(talk, "assume_role_with_web_identity", hear_identity);
    }
    explicit_bzero(token, size);
}

void aws_sts_assume_identity(struct as_credentials_talk *given)
{
    as_talk_read(&given->talk, aws_search_get(&given->talk)->token_path, hear_token);
}
