/*
 * A bearer token in each request: https://www.rfc-editor.org/rfc/rfc6750#section-2.1
 */
#include <alertscaler/provider/sign.h>

#include <errno.h>

#include <alertscaler/base/str.h>

int as_sign_bearer(struct as_talk *talk, const struct as_credentials *credentials,
                   const struct as_sign_scope *scope, struct as_error *error)
{
    (void)scope;
    if (as_str_is_empty(credentials->token)) {
        as_error_set(error, "the credentials have no token");
        return -EINVAL;
    }
    as_talk_header(talk, "Authorization: Bearer %s", credentials->token);
    return 0;
}
