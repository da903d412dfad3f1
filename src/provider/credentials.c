/*
 * Credentials: see the header.
 */
#include <alertscaler/provider/credentials.h>

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

static void wipe(char **text)
{
    if (*text)
        OPENSSL_cleanse(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

void as_credentials_deinit(struct as_credentials *credentials)
{
    wipe(&credentials->key_id);
    wipe(&credentials->secret);
    wipe(&credentials->token);
    wipe(&credentials->region);
    wipe(&credentials->project);
    credentials->expires = (as_maybe_time){.set = false};
}

void as_credentials_not_here(struct as_credentials_talk *talk)
{
    talk->is_not_here = true;
    as_talk_end(&talk->talk);
}

const char *as_account_get(const struct as_provider_settings *account, const char *key)
{
    for (size_t i = 0; i < account->option_count; i++) {
        if (strcmp(account->options[i].key, key) == 0)
            return account->options[i].value;
    }
    return NULL;
}
