/*
 * An array is enough: it is searched only for tokens that no faster check knows.
 */
#include "auth_trust.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

struct trusted {
    struct as_auth_digest digest;
    int64_t until_us; /* 0: free */
};

struct as_auth_trust {
    struct trusted trusted[AS_AUTH_TRUSTED];
};

struct as_auth_trust *as_auth_trust_new(void)
{
    return as_xcalloc(1, sizeof(struct as_auth_trust));
}

struct as_auth_trust *as_auth_trust_free(struct as_auth_trust *trust)
{
    if (trust)
        explicit_bzero(trust, sizeof(*trust));
    free(trust);
    return NULL;
}

struct as_auth_digest as_auth_trust_digest(const char *token)
{
    struct as_auth_digest digest;
    static_assert(sizeof(digest.bytes) == SHA256_DIGEST_LENGTH, "SHA-256");
    SHA256((const unsigned char *)token, strlen(token), digest.bytes);
    return digest;
}

/* Its index, or AS_AUTH_TRUSTED if absent. Always compares with all, for constant time. */
static size_t find(const struct as_auth_trust *trust, const struct as_auth_digest *digest)
{
    size_t found = AS_AUTH_TRUSTED;
    for (size_t i = 0; i < AS_AUTH_TRUSTED; i++) {
        if (as_str_equal_constant_time(trust->trusted[i].digest.bytes, digest->bytes,
                                       sizeof(digest->bytes)))
            found = i;
    }
    return found;
}

bool as_auth_trust_has(const struct as_auth_trust *trust, const struct as_auth_digest *digest,
                       as_mono_time now)
{
    const size_t at = find(trust, digest);
    return at < AS_AUTH_TRUSTED && now.us < trust->trusted[at].until_us;
}

void as_auth_trust_add(struct as_auth_trust *trust, const struct as_auth_digest *digest,
                       as_mono_time now)
{
    size_t at = find(trust, digest);
    if (at == AS_AUTH_TRUSTED) {
        at = 0;
        for (size_t i = 1; i < AS_AUTH_TRUSTED; i++) {
            if (trust->trusted[i].until_us < trust->trusted[at].until_us)
                at = i;
        }
    }
    trust->trusted[at] = (struct trusted){*digest, now.us + AS_AUTH_TRUST_US};
}

void as_auth_trust_remove(struct as_auth_trust *trust, const struct as_auth_digest *digest)
{
    const size_t at = find(trust, digest);
    if (at < AS_AUTH_TRUSTED)
        explicit_bzero(&trust->trusted[at], sizeof(trust->trusted[at]));
}
