/*
 * Credentials of a container: ECS tasks, and EKS Pod Identity:
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
 *
 * Over http only addresses of the machine itself are asked. The token's file is read each time.
 */
#include "aws_search.h"

#include <string.h>

#include <alertscaler/base/errno_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>

#include "provider_answer.h"

#define HOST       "http://169.254.170.2"
#define TIMEOUT_US (2 * AS_US_PER_S)
#define TRIES_MAX  3
#define PAUSE_US   (1 * AS_US_PER_S)

/* ---- where ---- */

static bool is_allowed(const char *url)
{
    static const char *const hosts[] = {"169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
    char host[AS_URL_HOST_SIZE];
    if (as_url_is_private(url))
        return true;
    for (size_t i = 0; as_url_take_host(url, host) && i < AS_ARRAY_SIZE(hosts); i++) {
        if (strcmp(hosts[i], host) == 0)
            return true;
    }
    return false;
}

static const char *find_url(struct as_credentials_talk *given)
{
    const char *path = as_variable_find(&given->talk, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    return path ? as_talk_print(&given->talk, HOST "%s", path)
                : as_variable_find(&given->talk, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
}

/* ---- asking ---- */

static void hear_credentials(struct as_talk *talk);

static void ask(struct as_talk *talk)
{
    const struct aws_search *search = aws_search_get(talk);
    as_talk_ask(talk, "GET", "%s", find_url(as_credentials_get(talk)));
    as_talk_header(talk, "Accept: application/json");
    if (search->token)
        as_talk_header(talk, "Authorization: %s", search->token);
    talk->request.is_plain = true;
    talk->request.without_proxy = true;
    talk->request.timeout_us = TIMEOUT_US;
    as_talk_send(talk, "get_container_credentials", hear_credentials);
}

static void hear_credentials(struct as_talk *talk)
{
    const json_t *document = as_talk_is_good(talk) ? answer_json(talk) : NULL;
    if (document)
        aws_search_found_in(as_credentials_get(talk), document, "Token");
    else if (++aws_search_get(talk)->attempts < TRIES_MAX)
        as_talk_wait(talk, PAUSE_US, ask);
}

static void ask_with(struct as_talk *talk, const char *token, const char *where)
{
    if (token && strpbrk(token, "\r\n")) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: a token is one line, without an end of line",
                     where);
        return;
    }
    aws_search_get(talk)->token = token ? as_arena_strdup(&talk->arena, token) : NULL;
    ask(talk);
}

static void hear_token(struct as_talk *talk)
{
    if (talk->content)
        ask_with(talk, talk->content, talk->path);
    else
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: %s", talk->path,
                     as_errno_get_text(talk->error_number));
}

void aws_container_begin(struct as_credentials_talk *given)
{
    struct as_talk *talk = &given->talk;
    const char *url = find_url(given);
    const char *path = as_variable_find(&given->talk, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    if (!url)
        aws_search_not_here(given);
    else if (!is_allowed(url))
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "AWS_CONTAINER_CREDENTIALS_FULL_URI: over http only this machine, "
                     "169.254.170.2, 169.254.170.23 and [fd00:ec2::23] are asked");
    else if (path)
        as_talk_read(talk, path, hear_token);
    else
        ask_with(talk, as_variable_find(&given->talk, "AWS_CONTAINER_AUTHORIZATION_TOKEN"),
                 "AWS_CONTAINER_AUTHORIZATION_TOKEN");
}
