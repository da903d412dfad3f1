/*
 * A table of digests. Each check looks at all of them, so that its time tells nothing of which one
 * came close.
 */
#include "auth.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#define LOOK_EVERY_US (1 * AS_US_PER_S)

struct token {
    char *name, *file;
    struct timespec changed;
    ino_t inode;
    off_t size;
    unsigned char digest[SHA256_DIGEST_LENGTH];
};

struct as_auth {
    struct token *tokens;
    size_t count;
    as_mono_time looked;
};

static int token_read(struct token *token, struct as_error *error)
{
    char *text;
    size_t size;
    const int r = as_file_read(token->file, (size_t)AS_AUTH_TOKEN_MAX + 1024, &text, &size);
    if (r != 0) {
        as_error_set_errno(error, r, "token file %s", token->file);
        return r;
    }
    size_t from = 0, to = size;
    while (from < to && isspace((unsigned char)text[from]))
        from++;
    while (to > from && isspace((unsigned char)text[to - 1]))
        to--;
    const bool usable = to > from && to - from <= AS_AUTH_TOKEN_MAX;
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

int as_auth_new(const struct as_auth_token *tokens, size_t count, struct as_auth **auth_out,
                struct as_error *error)
{
    AS_CLEANUP(as_auth_free_p) struct as_auth *auth = as_xcalloc(1, sizeof(*auth));
    auth->tokens = as_xcalloc(count + 1, sizeof(*auth->tokens));
    for (size_t i = 0; i < count; i++) {
        struct token *token = &auth->tokens[auth->count++];
        token->name = as_xstrdup(tokens[i].name);
        token->file = as_xstrdup(tokens[i].file);
        (void)token_has_changed(token);
        const int r = token_read(token, error);
        if (r != 0)
            return r;
    }
    *auth_out = auth;
    auth = NULL;
    return 0;
}

struct as_auth *as_auth_free(struct as_auth *auth)
{
    if (!auth)
        return NULL;
    for (size_t i = 0; i < auth->count; i++) {
        OPENSSL_cleanse(auth->tokens[i].digest, sizeof(auth->tokens[i].digest));
        free(auth->tokens[i].name);
        free(auth->tokens[i].file);
    }
    free(auth->tokens);
    free(auth);
    return NULL;
}

static void look_at_files(struct as_auth *auth, as_mono_time now)
{
    if (now.us - auth->looked.us < LOOK_EVERY_US)
        return;
    auth->looked = now;
    for (size_t i = 0; i < auth->count; i++) {
        struct token *token = &auth->tokens[i];
        struct as_error error = AS_ERROR_INIT;
        if (token_has_changed(token) && token_read(token, &error) != 0)
            as_log(AS_LOG_WARN, "token file not usable, keeping the old token",
                   AS_F("name", token->name), AS_F("error", error.text));
    }
}

enum as_auth_outcome as_auth_check(struct as_auth *auth, const char *authorization,
                                   as_mono_time now, const char **name_out)
{
    static const char scheme[] = "Bearer ";
    *name_out = "";
    if (auth->count == 0)
        return AS_AUTH_OK;
    if (!authorization || strncasecmp(authorization, scheme, strlen(scheme)) != 0)
        return AS_AUTH_MISSING;
    look_at_files(auth, now);

    const char *given = authorization + strlen(scheme);
    given += strspn(given, " ");
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)given, strlen(given), digest);
    const struct token *found = NULL;
    for (size_t i = 0; i < auth->count; i++) {
        if (as_str_equal_constant_time(auth->tokens[i].digest, digest, sizeof(digest)))
            found = &auth->tokens[i];
    }
    if (!found)
        return AS_AUTH_WRONG;
    *name_out = found->name;
    return AS_AUTH_OK;
}
