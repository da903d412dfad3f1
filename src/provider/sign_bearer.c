/*
 * A bearer token in each request: https://www.rfc-editor.org/rfc/rfc6750#section-2.1
 */
#include <alertscaler/provider/sign.h>

#include <errno.h>
#include <stdbool.h>

#include <alertscaler/base/str.h>

/* Whether it can stand in a header: no end of line, no blank. */
static bool is_token(const char *text)
{
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~')
            return false;
    }
    return true;
}

int as_sign_bearer(struct as_talk *talk, const struct as_credentials *credentials,
                   const struct as_sign_scope *scope, struct as_error *error)
{
    (void)scope;
    if (as_str_is_empty(credentials->token)) {
        as_error_set(error, "the credentials have no token");
        return -EINVAL;
    }
    if (!is_token(credentials->token)) {
        as_error_set(error, "what is given as token has blanks, ends of lines or other characters "
                            "that no token has");
        return -EINVAL;
    }
    as_talk_header(talk, "Authorization: Bearer %s", credentials->token);
    return 0;
}
