/*
 * A table of digests. Each check looks at all of them, so that its time tells nothing of which one
 * came close.
 */
#include "credentials.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#define LOOK_EVERY_US (1 * AS_US_PER_S)

struct token {
    struct as_credential credential;
    char *name, *file;
    struct timespec changed;
    ino_t inode;
    off_t size;
    unsigned char digest[SHA256_DIGEST_LENGTH];
};

struct as_credentials {
    struct as_arena arena;
    struct as_scope *scopes;
    size_t scope_count;
    struct token *tokens;
    size_t token_count;
    as_mono_time looked;
};

static int token_read(struct token *token, struct as_error *error)
{
    char *text;
    size_t size;
    const int r = as_file_read(token->file, (size_t)AS_TOKEN_MAX + 1024, &text, &size);
    if (r != 0) {
        as_error_set_errno(error, r, "token file %s", token->file);
        return r;
    }
    size_t from = 0, to = size;
    while (from < to && isspace((unsigned char)text[from]))
        from++;
    while (to > from && isspace((unsigned char)text[to - 1]))
        to--;
    const bool usable = to > from && to - from <= AS_TOKEN_MAX;
    if (usable)
        SHA256((const unsigned char *)text + from, to - from, token->digest);
    else
        as_error_set(error, "token file %s: %s", token->file,
                     to == from ? "it is empty" : "the token is longer than 4096 bytes");
    OPENSSL_cleanse(text, size);
    free(text);
    return usable ? 0 : -EINVAL;
}

static bool token_has_changed(struct token *token)
{
    struct stat st;
    if (stat(token->file, &st) != 0)
        return false; /* keeps what it has; a file that is being replaced comes back */
    const bool changed = st.st_ino != token->inode || st.st_size != token->size ||
                         st.st_mtim.tv_sec != token->changed.tv_sec ||
                         st.st_mtim.tv_nsec != token->changed.tv_nsec;
    token->inode = st.st_ino;
    token->size = st.st_size;
    token->changed = st.st_mtim;
    return changed;
}

static const char *const *copy_texts(struct as_arena *arena, const char *const *texts, size_t count)
{
    const char **copy = as_arena_alloc(arena, count, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = as_arena_strdup(arena, texts[i]);
    return copy;
}

static void add_scope(struct as_credentials *credentials, const char *name,
                      const struct as_access_settings *access)
{
    struct as_arena *arena = &credentials->arena;
    credentials->scopes[credentials->scope_count++] = (struct as_scope){
        .credential = as_arena_strdup(arena, name),
        .rules = copy_texts(arena, access->rules, access->rule_count),
        .rule_count = access->rule_count,
        .targets = copy_texts(arena, access->targets, access->target_count),
        .target_count = access->target_count,
    };
}

static int token_init(struct token *token, const struct as_token_settings *settings,
                      struct as_error *error)
{
    token->name = as_xstrdup(settings->name);
    token->file = as_xstrdup(settings->file);
    token->credential = (struct as_credential){token->name, settings->access.permissions};
    (void)token_has_changed(token);
    return token_read(token, error);
}

int as_credentials_new(const struct as_receiver_settings *settings,
                       struct as_credentials **credentials_out, struct as_error *error)
{
    AS_CLEANUP(as_credentials_free_p)
    struct as_credentials *credentials = as_xcalloc(1, sizeof(*credentials));
    credentials->tokens = as_xcalloc(settings->token_count + 1, sizeof(*credentials->tokens));
    credentials->scopes =
        as_arena_alloc(&credentials->arena, settings->token_count, sizeof(*credentials->scopes));
    for (size_t i = 0; i < settings->token_count; i++) {
        struct token *token = &credentials->tokens[credentials->token_count++];
        add_scope(credentials, settings->tokens[i].name, &settings->tokens[i].access);
        const int r = token_init(token, &settings->tokens[i], error);
        if (r != 0)
            return r;
    }
    *credentials_out = credentials;
    credentials = NULL;
    return 0;
}

struct as_credentials *as_credentials_free(struct as_credentials *credentials)
{
    if (!credentials)
        return NULL;
    for (size_t i = 0; i < credentials->token_count; i++) {
        struct token *token = &credentials->tokens[i];
        OPENSSL_cleanse(token->digest, sizeof(token->digest));
        free(token->name);
        free(token->file);
    }
    free(credentials->tokens);
    as_arena_deinit(&credentials->arena);
    free(credentials);
    return NULL;
}

bool as_credentials_is_empty(const struct as_credentials *credentials)
{
    return credentials->token_count == 0;
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
    for (size_t i = 0; i < credentials->token_count; i++) {
        if (credentials->tokens[i].credential.permissions & 1U << permission)
            return true;
    }
    return false;
}

static void look_at_files(struct as_credentials *credentials, as_mono_time now)
{
    if (now.us - credentials->looked.us < LOOK_EVERY_US)
        return;
    credentials->looked = now;
    for (size_t i = 0; i < credentials->token_count; i++) {
        struct token *token = &credentials->tokens[i];
        struct as_error error = AS_ERROR_INIT;
        if (token_has_changed(token) && token_read(token, &error) != 0)
            as_log(AS_LOG_WARN, "token file not usable, keeping the old token",
                   AS_F("name", token->name), AS_F("error", error.text));
    }
}

const struct as_credential *as_credentials_find_token(struct as_credentials *credentials,
                                                      const char *given, as_mono_time now)
{
    look_at_files(credentials, now);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)given, strlen(given), digest);
    const struct as_credential *found = NULL;
    for (size_t i = 0; i < credentials->token_count; i++) {
        const struct token *token = &credentials->tokens[i];
        if (as_str_equal_constant_time(token->digest, digest, sizeof(digest)))
            found = &token->credential;
    }
    OPENSSL_cleanse(digest, sizeof(digest));
    return found;
}
