/*
 * Credentials: see the header.
 */
#include <alertscaler/cloud/provider_credentials.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/str.h>

#define LABEL_MAX 63 /* bytes of one label of a host name (RFC 1035) */

void as_credentials_deinit(struct as_provider_credentials *credentials)
{
    as_wipe_free(credentials->key_id);
    as_wipe_free(credentials->secret);
    as_wipe_free(credentials->token);
    as_wipe_free(credentials->region);
    as_wipe_free(credentials->project);
    as_wipe_free(credentials->endpoint);
    *credentials = (struct as_provider_credentials){.key_id = NULL};
}

static char *credentials_copy(const char *text)
{
    return as_str_is_empty(text) ? NULL : as_xstrdup(text);
}

void as_credentials_take_keys(struct as_credentials_talk *talk, const char *key_id,
                              const char *secret, const char *token, as_maybe_time expires)
{
    const struct as_provider_credentials found = {.key_id = credentials_copy(key_id),
                                                  .secret = credentials_copy(secret),
                                                  .token = credentials_copy(token),
                                                  .expires = expires};
    as_credentials_deinit(&talk->found);
    talk->found = found;
}

void as_credentials_not_here(struct as_credentials_talk *talk)
{
    talk->is_not_here = true;
    as_talk_end(&talk->talk);
}

const char *as_credentials_take_file(struct as_talk *talk)
{
    if (!talk->content) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "cannot read %s: %s", talk->path,
                     as_errno_get_text(talk->error_number));
        return NULL;
    }
    const char *text = talk->content + strspn(talk->content, " \t\r\n");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r\n", text[size - 1]))
        size--;
    if (size > 0)
        return as_talk_print(talk, "%.*s", (int)size, text);
    as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s is empty", talk->path);
    return NULL;
}

static void find_token(struct as_credentials_talk *talk, const char *token)
{
    talk->found.token = as_xstrdup(token);
    as_talk_end(&talk->talk);
}

static void credentials_hear_token(struct as_talk *talk)
{
    const char *token = as_credentials_take_file(talk);
    if (token)
        find_token(as_credentials_get(talk), token);
}

void as_credentials_begin_token_file(struct as_credentials_talk *talk)
{
    const char *path = as_account_get(talk->account, "token_file");
    if (path)
        as_talk_read(&talk->talk, path, credentials_hear_token);
    else
        as_credentials_not_here(talk);
}

void as_credentials_take_variable(struct as_credentials_talk *talk, const char *const *names)
{
    for (; *names; names++) {
        const char *token = as_variable_find(&talk->talk, *names);
        if (token) {
            find_token(talk, token);
            return;
        }
    }
    as_credentials_not_here(talk);
}

void as_credentials_fail_unreached(struct as_credentials_talk *talk)
{
    as_talk_fail(&talk->talk, AS_TALK_RETRY,
                 "no other credentials are set up, and the metadata service cannot be reached: %s",
                 talk->talk.answer->error);
}

const char *as_credentials_take_word(struct as_talk *talk)
{
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                              "+=,.@_-/";
    const char *body = talk->answer->body;
    const size_t size = strcspn(body, "\r\n");
    return size > 0 && strspn(body, all) == size ? as_talk_print(talk, "%.*s", (int)size, body)
                                                 : NULL;
}

bool as_region_is_good(const char *region)
{
    const size_t size = strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return size > 0 && size <= LABEL_MAX && !region[size];
}

bool as_region_check(struct as_talk *talk, const char *region)
{
    if (as_region_is_good(region))
        return true;
    as_talk_fail(talk, AS_TALK_CONFIGURATION,
                 "the region \"%s\" is none: a region is small letters, digits and hyphens",
                 region);
    return false;
}

const char *as_variable_find(const struct as_talk *talk, const char *name)
{
    const char *value = talk->get_variable(name);
    return as_str_is_empty(value) ? NULL : value;
}

bool as_variable_is_on(const struct as_talk *talk, const char *variable)
{
    const char *value = talk->get_variable(variable);
    return value && strcasecmp(value, "true") == 0;
}

const char *as_account_get(const struct as_provider_settings *account, const char *key)
{
    for (size_t i = 0; i < account->option_count; i++) {
        if (strcmp(account->options[i].key, key) == 0)
            return account->options[i].value;
    }
    return NULL;
}

const char *as_account_get_endpoint(struct as_talk *talk,
                                    const struct as_provider_settings *account, const char *key,
                                    const char *fallback)
{
    const char *given = as_account_get(account, key);
    if (!given)
        return fallback;
    size_t size = strlen(given);
    while (size > 0 && given[size - 1] == '/')
        size--;
    return as_talk_print(talk, "%.*s", (int)size, given);
}
