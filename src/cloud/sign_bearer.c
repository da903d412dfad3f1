/*
 * A token in each request, as a bearer token:
 * https://www.rfc-editor.org/rfc/rfc6750#section-2.1
 * or in a separate header:
 * https://docs.openstack.org/keystone/latest/api_curl_examples.html
 */
#include <alertscaler/cloud/sign.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>

static int add_token(struct as_talk *talk, const char *header,
                     const struct as_provider_credentials *credentials, struct as_error *error)
{
    if (as_str_is_empty(credentials->token)) {
        as_error_set(error, "the credentials have no token");
        return -EINVAL;
    }
    if (!as_str_is_visible(credentials->token, strlen(credentials->token))) {
        as_error_set(error, "what is given as token has blanks, ends of lines or other characters "
                            "that no token has");
        return -EINVAL;
    }
    as_talk_header(talk, "%s%s", header, credentials->token);
    return 0;
}

int as_sign_bearer(struct as_talk *talk, const struct as_provider_credentials *credentials,
                   const struct as_sign_scope *scope, struct as_error *error)
{
    return add_token(talk, "Authorization: Bearer ", credentials, error);
}

int as_sign_token(struct as_talk *talk, const struct as_provider_credentials *credentials,
                  const struct as_sign_scope *scope, struct as_error *error)
{
    return add_token(talk, "X-Auth-Token: ", credentials, error);
}
