/*
 * Credentials: see the header.
 */
#include <alertscaler/login/provider_credentials.h>

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

void as_credentials_take_keys(struct as_credentials_op *op, const char *key_id, const char *secret,
                              const char *token, as_maybe_time expires)
{
    const struct as_provider_credentials found = {.key_id = credentials_copy(key_id),
                                                  .secret = credentials_copy(secret),
                                                  .token = credentials_copy(token),
                                                  .expires = expires};
    as_credentials_deinit(&op->found);
    op->found = found;
}

void as_credentials_not_here(struct as_credentials_op *op)
{
    op->is_not_here = true;
    as_cloud_op_end(&op->op);
}

const char *as_credentials_take_file(struct as_cloud_op *op)
{
    if (!op->content) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "cannot read %s: %s", op->path,
                         as_errno_get_text(op->error_number));
        return NULL;
    }
    const char *text = op->content + strspn(op->content, " \t\r\n");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r\n", text[size - 1]))
        size--;
    if (size > 0)
        return as_cloud_op_print(op, "%.*s", (int)size, text);
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s is empty", op->path);
    return NULL;
}

static void find_token(struct as_credentials_op *op, const char *token)
{
    op->found.token = as_xstrdup(token);
    as_cloud_op_end(&op->op);
}

static void credentials_on_token(struct as_cloud_op *op)
{
    const char *token = as_credentials_take_file(op);
    if (token)
        find_token(as_credentials_get(op), token);
}

void as_credentials_begin_token_file(struct as_credentials_op *op)
{
    const char *path = as_account_get(op->account, "token_file");
    if (path)
        as_cloud_op_read(&op->op, path, credentials_on_token);
    else
        as_credentials_not_here(op);
}

void as_credentials_take_variable(struct as_credentials_op *op, const char *const *names)
{
    for (; *names; names++) {
        const char *token = as_variable_find(&op->op, *names);
        if (token) {
            find_token(op, token);
            return;
        }
    }
    as_credentials_not_here(op);
}

void as_credentials_fail_unreached(struct as_credentials_op *op)
{
    as_cloud_op_fail(
        &op->op, AS_CLOUD_OP_RETRY,
        "no other credentials are set up, and the metadata service cannot be reached: %s",
        op->op.answer->error);
}

const char *as_credentials_take_word(struct as_cloud_op *op)
{
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                              "+=,.@_-/";
    const char *body = op->answer->body;
    const size_t size = strcspn(body, "\r\n");
    return size > 0 && strspn(body, all) == size ? as_cloud_op_print(op, "%.*s", (int)size, body)
                                                 : NULL;
}

bool as_region_is_good(const char *region)
{
    const size_t size = strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return size > 0 && size <= LABEL_MAX && !region[size];
}

bool as_region_check(struct as_cloud_op *op, const char *region)
{
    if (as_region_is_good(region))
        return true;
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                     "the region \"%s\" is none: a region is small letters, digits and hyphens",
                     region);
    return false;
}

const char *as_variable_find(const struct as_cloud_op *op, const char *name)
{
    const char *value = op->get_variable(name);
    return as_str_is_empty(value) ? NULL : value;
}

bool as_variable_is_on(const struct as_cloud_op *op, const char *variable)
{
    const char *value = op->get_variable(variable);
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

const char *as_account_get_endpoint(struct as_cloud_op *op,
                                    const struct as_provider_settings *account, const char *key,
                                    const char *fallback)
{
    const char *given = as_account_get(account, key);
    if (!given)
        return fallback;
    size_t size = strlen(given);
    while (size > 0 && given[size - 1] == '/')
        size--;
    return as_cloud_op_print(op, "%.*s", (int)size, given);
}
