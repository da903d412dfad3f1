/*
 * One table per kind. A check compares a token with all digests, so that its duration does not
 * reveal which was close.
 */
#include <alertscaler/auth/credentials.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include <openssl/sha.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#define LOOK_EVERY_US (1 * AS_US_PER_S)

struct token {
    struct as_credential credential;
    const char *name, *file;
    struct as_file_stamp stamp; /* of the content in use */
    struct as_file_stamp seen;  /* at the last look */
    bool is_read;
    bool is_stale; /* the changed file is unusable, which was logged */
    struct as_digest digest;
};

struct certificate {
    struct as_credential credential;
    const char *subject; /* pattern */
};

struct review {
    struct as_credential credential;
    const char *user, *group; /* exactly one is set */
};

struct as_credentials {
    struct as_arena arena;
    struct as_scope *scopes; /* one per credential */
    size_t scope_count;
    unsigned permissions; /* union of all */
    struct token *tokens;
    size_t token_count;
    struct as_credential_user *users;
    size_t user_count;
    struct certificate *certificates;
    size_t certificate_count;
    struct as_credential_signature *signatures;
    size_t signature_count;
    struct review *reviews;
    size_t review_count;
    struct as_proxy_settings proxy;
    as_mono_time looked;
};

static int token_read(struct token *token, struct as_error *error)
{
    char *text;
    size_t size;
    const int status = as_file_read(token->file, (size_t)AS_TOKEN_MAX + 1024, &text, &size);
    if (status != 0) {
        as_error_set_errno(error, status, "token file %s", token->file);
        return status;
    }
    size_t from = 0, to = size;
    while (from < to && isspace((unsigned char)text[from]))
        from++;
    while (to > from && isspace((unsigned char)text[to - 1]))
        to--;
    const bool usable = to > from && to - from <= AS_TOKEN_MAX;
    if (usable)
        SHA256((const unsigned char *)text + from, to - from, token->digest.bytes);
    else
        as_error_set(error, "token file %s: %s", token->file,
                     to == from ? "it is empty" : "the token is longer than 4096 bytes");
    explicit_bzero(text, size);
    free(text);
    return usable ? 0 : -EINVAL;
}

/* Takes the stamp before reading: a change in between is then seen at the next look. Half of a
 * token would be a token too. -EAGAIN: the file may be half written, and the old token stays. */
static int token_refresh(struct token *token, struct as_error *error)
{
    struct as_file_stamp now;
    int status = as_file_stamp_take(token->file, &now);
    if (status != 0) {
        as_error_set_errno(error, status, "token file %s", token->file);
        return status;
    }
    if (as_file_stamp_is_same(&token->stamp, &now))
        return 0;
    const bool has_settled = as_file_stamp_settles(&token->seen, &now);
    if (token->is_read && !has_settled)
        return -EAGAIN;
    status = token_read(token, error);
    if (status == 0)
        token->stamp = now;
    token->is_read = token->is_read || status == 0;
    return status;
}

static const char *const *copy_texts(struct as_arena *arena, const char *const *texts, size_t count)
{
    const char **copy = as_arena_alloc(arena, count, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = as_arena_strdup(arena, texts[i]);
    return copy;
}

/* Adds its scope too. */
static struct as_credential add(struct as_credentials *credentials, const char *name,
                                const struct as_access_settings *access)
{
    struct as_arena *arena = &credentials->arena;
    struct as_scope *scope = &credentials->scopes[credentials->scope_count++];
    *scope = (struct as_scope){
        .credential = as_arena_strdup(arena, name),
        .rules = copy_texts(arena, access->rules, access->rule_count),
        .rule_count = access->rule_count,
        .targets = copy_texts(arena, access->targets, access->target_count),
        .target_count = access->target_count,
    };
    credentials->permissions |= access->permissions;
    return (struct as_credential){scope->credential, access->permissions, NULL};
}

static int add_tokens(struct as_credentials *credentials,
                      const struct as_receiver_settings *settings, struct as_error *error)
{
    credentials->tokens =
        as_arena_alloc(&credentials->arena, settings->token_count, sizeof(struct token));
    for (size_t i = 0; i < settings->token_count; i++) {
        const struct as_token_settings *from = &settings->tokens[i];
        struct token *token = &credentials->tokens[credentials->token_count++];
        token->credential = add(credentials, from->name, &from->access);
        token->credential.secret = &token->digest;
        token->name = token->credential.name;
        token->file = as_arena_strdup(&credentials->arena, from->file);
        const int status = token_refresh(token, error);
        if (status != 0)
            return status;
    }
    return 0;
}

static const struct as_access_settings *find_access(const struct as_receiver_settings *settings,
                                                    const char *user)
{
    static const struct as_access_settings usual = {.permissions = 1U << AS_PERMISSION_NOTIFY |
                                                                   1U << AS_PERMISSION_READ};
    for (size_t i = 0; i < settings->user_count; i++) {
        if (strcmp(settings->users[i].name, user) == 0)
            return &settings->users[i].access;
    }
    return &usual;
}

static void add_users(struct as_credentials *credentials,
                      const struct as_receiver_settings *settings,
                      const struct as_web_settings *web)
{
    credentials->users =
        as_arena_alloc(&credentials->arena, web->user_count, sizeof(*credentials->users));
    for (size_t i = 0; i < web->user_count; i++) {
        const struct as_web_user *from = &web->users[i];
        struct as_credential_user *user = &credentials->users[credentials->user_count++];
        struct as_digest *digest = as_arena_alloc(&credentials->arena, 1, sizeof(*digest));
        SHA256((const unsigned char *)from->hash, strlen(from->hash), digest->bytes);
        user->credential = add(credentials, from->name, find_access(settings, from->name));
        user->credential.secret = digest;
        user->hash = as_arena_strdup(&credentials->arena, from->hash);
    }
}

static void add_certificates(struct as_credentials *credentials,
                             const struct as_receiver_settings *settings)
{
    credentials->certificates = as_arena_alloc(&credentials->arena, settings->certificate_count,
                                               sizeof(struct certificate));
    for (size_t i = 0; i < settings->certificate_count; i++) {
        const struct as_certificate_settings *from = &settings->certificates[i];
        credentials->certificates[credentials->certificate_count++] = (struct certificate){
            .credential = add(credentials, from->name, &from->access),
            .subject = as_arena_strdup(&credentials->arena, from->subject),
        };
    }
}

static int add_signatures(struct as_credentials *credentials,
                          const struct as_receiver_settings *settings, struct as_error *error)
{
    struct as_arena *arena = &credentials->arena;
    credentials->signatures =
        as_arena_alloc(arena, settings->hmac_count, sizeof(*credentials->signatures));
    for (size_t i = 0; i < settings->hmac_count; i++) {
        const struct as_hmac_settings *from = &settings->hmac[i];
        struct as_credential_signature *signature =
            &credentials->signatures[credentials->signature_count++];
        *signature = (struct as_credential_signature){
            .credential = add(credentials, from->name, &from->access),
            .header = as_arena_strdup(arena, from->header),
            .timestamp_header = as_arena_strdup(arena, from->timestamp_header),
            .max_skew_us = from->max_skew_us,
        };
        as_secret_file_init(&signature->secret, from->secret_file);
        const char *secret;
        const int status =
            as_secret_file_get(&signature->secret, (as_mono_time){0}, 0, &secret, error);
        if (status != 0) {
            as_error_wrap(error, "secret of receiver.hmac `%s`", from->name);
            return status;
        }
    }
    return 0;
}

static void add_reviews(struct as_credentials *credentials,
                        const struct as_token_review_settings *settings)
{
    struct as_arena *arena = &credentials->arena;
    credentials->reviews = as_arena_alloc(arena, settings->allow_count, sizeof(struct review));
    for (size_t i = 0; i < settings->allow_count; i++) {
        const struct as_review_settings *from = &settings->allow[i];
        credentials->reviews[credentials->review_count++] = (struct review){
            .credential = add(credentials, from->name, &from->access),
            .user = as_arena_strdup(arena, from->user),
            .group = as_arena_strdup(arena, from->group),
        };
    }
}

static void add_proxy(struct as_credentials *credentials, const struct as_proxy_settings *from)
{
    struct as_arena *arena = &credentials->arena;
    struct as_access_settings access = {0};
    struct as_proxy_group *groups = as_arena_alloc(arena, from->group_count, sizeof(*groups));
    if (from->group_count == 0)
        return;
    for (size_t i = 0; i < from->group_count; i++) {
        groups[i] = (struct as_proxy_group){as_arena_strdup(arena, from->groups[i].name),
                                            from->groups[i].permissions};
        access.permissions |= groups[i].permissions;
    }
    (void)add(credentials, AS_SCOPE_ALL_PROXIED, &access);
    credentials->proxy = (struct as_proxy_settings){
        .header = as_arena_strdup(arena, from->header),
        .groups_header = as_arena_strdup(arena, from->groups_header),
        .certificate = as_arena_strdup(arena, from->certificate),
        .addresses =
            (const char **)(uintptr_t)copy_texts(arena, from->addresses, from->address_count),
        .address_count = from->address_count,
        .groups = groups,
        .group_count = from->group_count,
    };
}

static void warn_users(const struct as_credentials *credentials,
                       const struct as_receiver_settings *settings)
{
    for (size_t i = 0; i < settings->user_count; i++) {
        if (!as_credentials_find_user(credentials, settings->users[i].name))
            as_log(AS_LOG_WARN, "receiver.users names a user that the web configuration lacks",
                   AS_F("user", settings->users[i].name));
    }
}

/* A user of the web configuration may have the name of another credential. */
static int check_names(const struct as_credentials *credentials, struct as_error *error)
{
    for (size_t i = 0; i < credentials->user_count; i++) {
        const char *name = credentials->users[i].credential.name;
        size_t count = 0;
        for (size_t k = 0; k < credentials->scope_count; k++)
            count += strcmp(credentials->scopes[k].credential, name) == 0;
        if (count > 1) {
            as_error_set(error,
                         "the user `%s` of the web configuration has the name of another "
                         "credential in `receiver`: rename one, records know them by it",
                         name);
            return -EINVAL;
        }
    }
    return 0;
}

int as_credentials_new(const struct as_receiver_settings *settings,
                       const struct as_web_settings *web, struct as_credentials **credentials_out,
                       struct as_error *error)
{
    static const struct as_web_settings no_web = {0};
    AS_CLEANUP(as_credentials_free_p)
    struct as_credentials *credentials = as_xcalloc(1, sizeof(*credentials));
    web = web ? web : &no_web;
    const size_t count = settings->token_count + web->user_count + settings->certificate_count +
                         settings->hmac_count + settings->token_review.allow_count +
                         (settings->proxy.group_count > 0);
    credentials->scopes = as_arena_alloc(&credentials->arena, count, sizeof(*credentials->scopes));
    int status = add_tokens(credentials, settings, error);
    if (status == 0)
        status = add_signatures(credentials, settings, error);
    if (status != 0)
        return status;
    add_users(credentials, settings, web);
    add_certificates(credentials, settings);
    add_reviews(credentials, &settings->token_review);
    add_proxy(credentials, &settings->proxy);
    status = check_names(credentials, error);
    if (status != 0)
        return status;
    warn_users(credentials, settings);
    *credentials_out = credentials;
    credentials = NULL;
    return 0;
}

struct as_credentials *as_credentials_free(struct as_credentials *credentials)
{
    if (!credentials)
        return NULL;
    for (size_t i = 0; i < credentials->token_count; i++)
        explicit_bzero(&credentials->tokens[i].digest, sizeof(credentials->tokens[i].digest));
    for (size_t i = 0; i < credentials->user_count; i++) {
        const struct as_credential_user *user = &credentials->users[i];
        explicit_bzero((char *)(uintptr_t)user->hash, strlen(user->hash));
        explicit_bzero((void *)(uintptr_t)user->credential.secret, sizeof(struct as_digest));
    }
    for (size_t i = 0; i < credentials->signature_count; i++)
        as_secret_file_deinit(&credentials->signatures[i].secret);
    as_arena_deinit(&credentials->arena);
    free(credentials);
    return NULL;
}

bool as_credentials_is_empty(const struct as_credentials *credentials)
{
    return credentials->scope_count == 0;
}

struct as_credential_counts as_credentials_count(const struct as_credentials *credentials)
{
    return (struct as_credential_counts){
        .tokens = credentials->token_count,
        .users = credentials->user_count,
        .certificates = credentials->certificate_count,
        .signatures = credentials->signature_count,
        .reviews = credentials->review_count,
        .proxy = credentials->proxy.group_count > 0 ? &credentials->proxy : NULL,
    };
}

const struct as_scope *as_credentials_get_scopes(const struct as_credentials *credentials,
                                                 size_t *count_out)
{
    *count_out = credentials->scope_count;
    return credentials->scopes;
}

bool as_credentials_has_permission(const struct as_credentials *credentials,
                                   enum as_permission permission)
{
    return credentials->permissions & 1U << permission;
}

/* An unusable file is tried at each look: the cause may end without a change of the file. */
static void credentials_poll_files(struct as_credentials *credentials, as_mono_time now)
{
    if (now.us - credentials->looked.us < LOOK_EVERY_US)
        return;
    credentials->looked = now;
    for (size_t i = 0; i < credentials->token_count; i++) {
        struct token *token = &credentials->tokens[i];
        struct as_error error = AS_ERROR_INIT;
        const int status = token_refresh(token, &error);
        const bool is_stale = status != 0;
        if (status == -EAGAIN)
            continue;
        if (is_stale && !token->is_stale)
            as_log(AS_LOG_WARN, "token file not usable, keeping the old token",
                   AS_F("name", token->name), AS_F("error", error.text));
        else if (!is_stale && token->is_stale)
            as_log(AS_LOG_INFO, "token file read again, the old token has ended",
                   AS_F("name", token->name));
        token->is_stale = is_stale;
    }
}

const struct as_credential *as_credentials_find_token(struct as_credentials *credentials,
                                                      const char *given, as_mono_time now)
{
    credentials_poll_files(credentials, now);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)given, strlen(given), digest);
    const struct as_credential *found = NULL;
    for (size_t i = 0; i < credentials->token_count; i++) {
        const struct token *token = &credentials->tokens[i];
        if (as_str_equal_constant_time(token->digest.bytes, digest, sizeof(digest)))
            found = &token->credential;
    }
    explicit_bzero(digest, sizeof(digest));
    return found;
}

const struct as_credential_user *as_credentials_find_user(const struct as_credentials *credentials,
                                                          const char *name)
{
    for (size_t i = 0; i < credentials->user_count; i++) {
        if (strcmp(credentials->users[i].credential.name, name) == 0)
            return &credentials->users[i];
    }
    return NULL;
}

const struct as_credential *as_credentials_find_name(struct as_credentials *credentials,
                                                     const char *name, as_mono_time now)
{
    credentials_poll_files(credentials, now);
    for (size_t i = 0; i < credentials->token_count; i++) {
        if (strcmp(credentials->tokens[i].name, name) == 0)
            return &credentials->tokens[i].credential;
    }
    const struct as_credential_user *user = as_credentials_find_user(credentials, name);
    return user ? &user->credential : NULL;
}

const char *as_credentials_find_dearest_hash(const struct as_credentials *credentials)
{
    const char *dearest = NULL;
    for (size_t i = 0; i < credentials->user_count; i++) {
        const char *hash = credentials->users[i].hash; /* "$2b$10$": two digits of cost, always */
        if (!dearest || strncmp(hash + 4, dearest + 4, 2) > 0)
            dearest = hash;
    }
    return dearest;
}

const struct as_credential *as_credentials_find_certificate(
    const struct as_credentials *credentials, const char *subject)
{
    for (size_t i = 0; i < credentials->certificate_count; i++) {
        if (as_scope_match(credentials->certificates[i].subject, subject))
            return &credentials->certificates[i].credential;
    }
    return NULL;
}

struct as_credential_signature *as_credentials_get_signature(struct as_credentials *credentials,
                                                             size_t index)
{
    return &credentials->signatures[index];
}

static bool is_in(const char *group, const char *const *groups, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(groups[i], group) == 0)
            return true;
    }
    return false;
}

const struct as_credential *as_credentials_find_review(const struct as_credentials *credentials,
                                                       const char *user, const char *const *groups,
                                                       size_t group_count)
{
    for (size_t i = 0; i < credentials->review_count; i++) {
        const struct review *review = &credentials->reviews[i];
        if (review->user ? strcmp(review->user, user) == 0
                         : is_in(review->group, groups, group_count))
            return &review->credential;
    }
    return NULL;
}
