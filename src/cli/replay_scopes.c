/*
 * Credentials without their secrets: only their scopes matter.
 */
#include "replay_scopes.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

static void add(struct replay_scopes *scopes, const char *name,
                const struct as_access_settings *access)
{
    scopes->items[scopes->count++] = (struct as_scope){
        .credential = name,
        .rules = access->rules,
        .rule_count = access->rule_count,
        .targets = access->targets,
        .target_count = access->target_count,
    };
}

struct replay_scopes replay_scopes_make(const struct as_receiver_settings *settings)
{
    const struct as_token_review_settings *review = &settings->token_review;
    const size_t count = settings->token_count + settings->user_count +
                         settings->certificate_count + settings->hmac_count + review->allow_count;
    struct replay_scopes scopes = {.items = as_xcalloc(count + 1, sizeof(*scopes.items))};
    for (size_t i = 0; i < settings->token_count; i++)
        add(&scopes, settings->tokens[i].name, &settings->tokens[i].access);
    for (size_t i = 0; i < settings->user_count; i++)
        add(&scopes, settings->users[i].name, &settings->users[i].access);
    for (size_t i = 0; i < settings->certificate_count; i++)
        add(&scopes, settings->certificates[i].name, &settings->certificates[i].access);
    for (size_t i = 0; i < settings->hmac_count; i++)
        add(&scopes, settings->hmac[i].name, &settings->hmac[i].access);
    for (size_t i = 0; i < review->allow_count; i++)
        add(&scopes, review->allow[i].name, &review->allow[i].access);
    return scopes;
}

void replay_scopes_deinit(struct replay_scopes *scopes)
{
    free(scopes->items);
    *scopes = (struct replay_scopes){.count = 0};
}

bool replay_scopes_know(const struct replay_scopes *scopes, const char *credential)
{
    for (size_t i = 0; i < scopes->count; i++) {
        if (strcmp(scopes->items[i].credential, credential) == 0)
            return true;
    }
    return false;
}
