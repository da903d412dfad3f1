/*
 * Limits of expensive checks: wrong credentials per address, and tokens that were right lately.
 *
 * Not here: the checks themselves (auth.c).
 */
#include <arpa/inet.h>
#include <assert.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "auth_limit.h"

/* A leaky bucket per address, whose level is stored as the time when it will be empty. An array is
 * enough: searching it costs less than the checks that it limits. */

struct address {
    unsigned char bytes[8]; /* the last eight of ::ffff:a.b.c.d, else the first eight */
    int64_t empty_us;       /* when all failures are forgotten */
};

struct as_auth_limit {
    struct address addresses[AS_AUTH_ADDRESSES];
    size_t count;
};

struct as_auth_limit *as_auth_limit_new(void)
{
    return as_xcalloc(1, sizeof(struct as_auth_limit));
}

struct as_auth_limit *as_auth_limit_free(struct as_auth_limit *limit)
{
    free(limit);
    return NULL;
}

/* Anything that is not an address counts as all zeros. */
static void limit_parse(const char *remote, unsigned char bytes_out[8])
{
    char text[INET6_ADDRSTRLEN + 2] = "";
    struct in6_addr v6;
    struct in_addr v4;
    const char *end = strrchr(remote, ':');
    size_t size = end ? (size_t)(end - remote) : strlen(remote);
    memset(bytes_out, 0, 8);
    if (size > 0 && remote[0] == '[') {
        remote++;
        size -= size > 1 ? 2 : 1;
    }
    if (size >= sizeof(text))
        return;
    memcpy(text, remote, size);
    char *zone = strchr(text, '%');
    if (zone)
        *zone = '\0';
    if (inet_pton(AF_INET, text, &v4) == 1) {
        memcpy(bytes_out + 2, "\xff\xff", 2);
        memcpy(bytes_out + 4, &v4, 4);
    } else if (inet_pton(AF_INET6, text, &v6) == 1) {
        memcpy(bytes_out, v6.s6_addr + (IN6_IS_ADDR_V4MAPPED(&v6) ? 8 : 0), 8);
    }
}

static struct address *limit_find(const struct as_auth_limit *limit, const unsigned char bytes[8])
{
    for (size_t i = 0; i < limit->count; i++) {
        if (memcmp(limit->addresses[i].bytes, bytes, 8) == 0)
            return (struct address *)(uintptr_t)&limit->addresses[i];
    }
    return NULL;
}

int64_t as_auth_limit_get_wait(const struct as_auth_limit *limit, const char *remote,
                               as_mono_time now)
{
    unsigned char bytes[8];
    limit_parse(remote, bytes);
    const struct address *address = limit_find(limit, bytes);
    const int64_t full_us = (AS_AUTH_FAILURES - 1) * AS_AUTH_FORGET_US;
    const int64_t wait = address ? address->empty_us - now.us - full_us : 0;
    return wait > 0 ? wait : 0;
}

bool as_auth_limit_has_failures(const struct as_auth_limit *limit, const char *remote,
                                as_mono_time now)
{
    unsigned char bytes[8];
    limit_parse(remote, bytes);
    const struct address *address = limit_find(limit, bytes);
    return address && address->empty_us > now.us;
}

static struct address *limit_make(struct as_auth_limit *limit, const unsigned char bytes[8])
{
    struct address *place = &limit->addresses[0];
    if (limit->count < AS_AUTH_ADDRESSES) {
        place = &limit->addresses[limit->count++];
    } else {
        for (size_t i = 1; i < limit->count; i++) {
            if (limit->addresses[i].empty_us < place->empty_us)
                place = &limit->addresses[i];
        }
    }
    *place = (struct address){.empty_us = INT64_MIN};
    memcpy(place->bytes, bytes, 8);
    return place;
}

void as_auth_limit_add_failure(struct as_auth_limit *limit, const char *remote, as_mono_time now)
{
    unsigned char bytes[8];
    limit_parse(remote, bytes);
    struct address *address = limit_find(limit, bytes);
    if (!address)
        address = limit_make(limit, bytes);
    const int64_t most_us = now.us + AS_AUTH_FAILURES * AS_AUTH_FORGET_US;
    if (address->empty_us < now.us)
        address->empty_us = now.us;
    address->empty_us += AS_AUTH_FORGET_US;
    if (address->empty_us > most_us)
        address->empty_us = most_us;
}

void as_auth_limit_take_back(struct as_auth_limit *limit, const char *remote)
{
    unsigned char bytes[8];
    limit_parse(remote, bytes);
    struct address *address = limit_find(limit, bytes);
    if (address)
        address->empty_us -= AS_AUTH_FORGET_US;
}

/* Trusted tokens. An array is enough: it is searched only for tokens that no faster check knows. */

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
static size_t trust_find(const struct as_auth_trust *trust, const struct as_auth_digest *digest)
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
    const size_t at = trust_find(trust, digest);
    return at < AS_AUTH_TRUSTED && now.us < trust->trusted[at].until_us;
}

void as_auth_trust_add(struct as_auth_trust *trust, const struct as_auth_digest *digest,
                       as_mono_time now)
{
    size_t at = trust_find(trust, digest);
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
    const size_t at = trust_find(trust, digest);
    if (at < AS_AUTH_TRUSTED)
        explicit_bzero(&trust->trusted[at], sizeof(trust->trusted[at]));
}
