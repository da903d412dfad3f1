/*
 * Credentials of AWS: see the header.
 */
#include "credentials_aws.h"

#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

const char *aws_find_region(const struct as_provider_settings *account,
                            const struct as_credentials *credentials)
{
    const char *region = as_account_get(account, "region");
    return region ? region : credentials->region;
}

const char *aws_make_endpoint(struct as_talk *talk, const struct as_provider_settings *account,
                              const char *key, const char *service, const char *region)
{
    const char *given = as_account_get(account, key);
    if (!given)
        return as_talk_print(talk, "https://%s.%s.amazonaws.com%s", service, region,
                             as_str_starts_with(region, "cn-") ? ".cn" : "");
    size_t size = strlen(given);
    while (size > 0 && given[size - 1] == '/')
        size--;
    return as_talk_print(talk, "%.*s", (int)size, given);
}

/* ---- environment ---- */

static const char *get(const struct as_credentials_talk *talk, const char *name)
{
    const char *value = talk->talk.get_variable(name);
    return as_str_is_empty(value) ? NULL : value;
}

static char *copy(const char *text)
{
    return text ? as_xstrdup(text) : NULL;
}

static char *find_region(const struct as_credentials_talk *talk)
{
    const char *region = get(talk, "AWS_REGION");
    return copy(region ? region : get(talk, "AWS_DEFAULT_REGION"));
}

static void begin_environment(struct as_credentials_talk *talk)
{
    const char *key_id = get(talk, "AWS_ACCESS_KEY_ID");
    const char *secret = get(talk, "AWS_SECRET_ACCESS_KEY");
    if (!key_id && !secret) {
        as_credentials_not_here(talk);
        return;
    }
    if (!key_id || !secret) {
        as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION,
                     "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set");
        return;
    }
    talk->found = (struct as_credentials){
        .key_id = copy(key_id),
        .secret = copy(secret),
        .token = copy(get(talk, "AWS_SESSION_TOKEN")),
        .region = find_region(talk),
    };
    as_talk_end(&talk->talk);
}

const struct as_credentials_source aws_credentials[] = {
    {"environment", begin_environment},
    {0},
};
