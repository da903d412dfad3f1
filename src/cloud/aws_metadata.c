/*
 * The instance metadata service of EC2, version 2 with a token, version 1 without a token:
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html
 *
 * If the address cannot be reached, there is no such service. In a container's network the answer
 * with the token may be lost on its way (hop limit 1): then version 1 is tried. A question without
 * an answer is asked again: a region counts as missing only if the service says so.
 */
#include "aws_search.h"

#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "provider_answer.h"

#define TIMEOUT_US (2 * AS_US_PER_S)
#define NO_REGION  "no region is set, and the instance metadata service does not tell it: "
#define ROLES_PATH "latest/meta-data/iam/security-credentials/"

/* During an outage the service may give credentials that are about to expire. As in AWS' own tools,
 * they stay in use, and new ones are asked for soon. */
#define USED_ON_BEFORE_US (15 * AS_US_PER_MIN)
#define USED_ON_FOR_US    (20 * AS_US_PER_MIN)

static const char *find_base(const struct as_credentials_talk *given)
{
    const char *base = as_variable_find(&given->talk, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode = as_variable_find(&given->talk, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    if (base)
        return base;
    return mode && (strcmp(mode, "IPv6") == 0 || strcmp(mode, "ipv6") == 0)
               ? "http://[fd00:ec2::254]"
               : "http://169.254.169.254";
}

static void ask(struct as_credentials_talk *given, const char *method, const char *path)
{
    struct as_talk *talk = &given->talk;
    const char *base = find_base(given);
    const size_t size = strlen(base);
    const struct aws_search *search = given->state;
    as_talk_ask(talk, method, "%s%s%s", base, size > 0 && base[size - 1] == '/' ? "" : "/", path);
    if (search->token)
        as_talk_header(talk, "x-aws-ec2-metadata-token: %s", search->token);
    talk->request.is_plain = true;
    talk->request.without_proxy = true;
    talk->request.timeout_us = TIMEOUT_US;
}

/* ---- the token ---- */

/* Credentials without a region are still good: the account may name the region. */
static bool is_region_only(const struct as_credentials_talk *given)
{
    return ((const struct aws_search *)given->state)->is_region_only;
}

static void fail_without_token(struct as_talk *talk)
{
    as_talk_fail(talk, AS_TALK_CONFIGURATION,
                 "the instance metadata service wants a token, and gave none: behind a "
                 "container's network its hop limit has to be 2");
}

static void hear_token(struct as_talk *talk)
{
    struct as_credentials_talk *given = as_credentials_get(talk);
    struct aws_search *search = given->state;
    const enum as_http_outcome outcome = talk->answer->outcome;
    const bool is_off = outcome == AS_HTTP_UNREACHABLE || talk->http_status == 403;
    if (talk->http_status == 200)
        search->token = as_credentials_take_word(talk);
    if (search->token) {
        search->with_token(given);
        return;
    }
    if (is_off && is_region_only(given)) {
        as_talk_end(talk);
    } else if (outcome == AS_HTTP_UNREACHABLE) {
        as_credentials_fail_unreached(given);
    } else if (outcome == AS_HTTP_ANSWERED && talk->answer->status == 400) {
        as_talk_fail(
            talk, AS_TALK_CONFIGURATION,
            "the instance metadata service does not understand how it is asked for a token");
    } else if (as_variable_is_on(&given->talk, "AWS_EC2_METADATA_V1_DISABLED")) {
        as_talk_fail(talk, AS_TALK_RETRY,
                     "the instance metadata service gives no token, and "
                     "AWS_EC2_METADATA_V1_DISABLED is set");
    } else {
        search->with_token(given);
    }
}

static void begin(struct as_credentials_talk *given, aws_search_fn *with_token)
{
    struct aws_search *search = given->state;
    struct as_talk *talk = &given->talk;
    search->with_token = with_token;
    search->token = NULL;
    if (as_variable_is_on(&given->talk, "AWS_EC2_METADATA_DISABLED")) {
        if (is_region_only(given))
            as_talk_end(talk);
        else
            aws_search_not_here(given);
        return;
    }
    ask(given, "PUT", "latest/api/token");
    as_talk_header(talk, "x-aws-ec2-metadata-token-ttl-seconds: 21600");
    as_talk_send_question(talk, "get_metadata_token", hear_token);
}

/* ---- credentials ---- */

/* Whether there is an answer; if not, the talk has ended. */
static bool is_good(struct as_talk *talk)
{
    const struct aws_search *search = aws_search_get(talk);
    if (as_talk_is_good(talk))
        return true;
    if (talk->http_status == 404) /* no role attached */
        aws_search_not_here(as_credentials_get(talk));
    else if (talk->answer->outcome == AS_HTTP_UNREACHABLE)
        as_credentials_fail_unreached(as_credentials_get(talk));
    else if (talk->http_status == 401 && !search->token)
        fail_without_token(talk);
    return false;
}

static void hear_credentials(struct as_talk *talk)
{
    struct as_credentials_talk *given = as_credentials_get(talk);
    if (!is_good(talk))
        return;
    const json_t *document = answer_json(talk);
    if (!document)
        return;
    const char *code = answer_text(document, "Code");
    if (*code && strcmp(code, "Success") != 0) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "the instance's role gives no credentials: %s: %s", code,
                     answer_text(document, "Message"));
        return;
    }
    as_maybe_time expires = answer_time(document, "Expiration");
    if (expires.set && expires.at.us < as_time_add(talk->now.us, USED_ON_BEFORE_US))
        expires.at.us = as_time_add(talk->now.us, USED_ON_FOR_US);
    if (!*answer_text(document, "AccessKeyId") || !*answer_text(document, "SecretAccessKey"))
        as_talk_fail(talk, AS_TALK_RETRY, "the instance's role gives no credentials");
    else
        aws_search_found(given, answer_text(document, "AccessKeyId"),
                         answer_text(document, "SecretAccessKey"), answer_text(document, "Token"),
                         expires);
}

static void hear_role_name(struct as_talk *talk)
{
    if (!is_good(talk))
        return;
    const char *role = as_credentials_take_word(talk);
    if (!role || strchr(role, '/')) {
        aws_search_not_here(as_credentials_get(talk));
        return;
    }
    ask(as_credentials_get(talk), "GET", as_talk_print(talk, ROLES_PATH "%s", role));
    as_talk_send(talk, "get_instance_credentials", hear_credentials);
}

static void ask_for_role_name(struct as_credentials_talk *given)
{
    ask(given, "GET", ROLES_PATH);
    as_talk_send(&given->talk, "get_instance_role", hear_role_name);
}

void aws_metadata_begin(struct as_credentials_talk *given)
{
    begin(given, ask_for_role_name);
}

/* ---- region ---- */

static void hear_region(struct as_talk *talk)
{
    const bool is_answer = as_talk_is_good(talk);
    const char *region = is_answer ? as_credentials_take_word(talk) : NULL;
    const bool is_none = talk->http_status == 403 || talk->http_status == 404 ||
                         talk->answer->outcome == AS_HTTP_UNREACHABLE;
    if (is_answer && (!region || !as_region_is_good(region))) {
        as_talk_fail(talk, AS_TALK_RETRY, NO_REGION "%s: it is none", talk->request.operation);
    } else if (is_answer || is_none) {
        as_credentials_get(talk)->found.region = region ? as_xstrdup(region) : NULL;
        as_talk_end(talk);
    } else if (talk->http_status == 401 && !aws_search_get(talk)->token) {
        fail_without_token(talk);
    } else {
        as_talk_fail(talk, talk->fault, NO_REGION "%s", talk->message);
    }
}

static void ask_for_region(struct as_credentials_talk *given)
{
    ask(given, "GET", "latest/meta-data/placement/region");
    as_talk_send(&given->talk, "get_instance_region", hear_region);
}

void aws_metadata_begin_region(struct as_credentials_talk *given)
{
    const struct aws_search *search = given->state;
    if (search->token && search->with_token)
        ask_for_region(given);
    else
        begin(given, ask_for_region);
}
