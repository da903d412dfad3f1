/*
 * Digests of label sets: see the header. The texts of a set are stored after its array in exactly
 * that form (model/labels.c), so one pass hashes them.
 */
#include <alertscaler/model/labels_digest.h>

#include <pthread.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>

struct as_labels_hasher {
    EVP_MD_CTX *context;
};

/* Never changes and is never freed: fetching it takes longer than hashing an alert's labels. */
static EVP_MD *sha256;

static void fetch(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!sha256)
        abort(); /* without SHA-256 OpenSSL is useless here */
}

static const EVP_MD *get_sha256(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fetch);
    return sha256;
}

struct as_labels_hasher *as_labels_hasher_new(void)
{
    struct as_labels_hasher *hasher = as_xmalloc(sizeof(*hasher));
    hasher->context = EVP_MD_CTX_new();
    if (!hasher->context)
        abort(); /* only without memory */
    return hasher;
}

struct as_labels_hasher *as_labels_hasher_free(struct as_labels_hasher *hasher)
{
    if (hasher) {
        EVP_MD_CTX_free(hasher->context);
        free(hasher);
    }
    return NULL;
}

struct as_digest as_labels_hasher_get(struct as_labels_hasher *hasher,
                                      const struct as_labels *labels)
{
    struct as_digest digest;
    if (!EVP_DigestInit_ex2(hasher->context, get_sha256(), NULL) ||
        !EVP_DigestUpdate(hasher->context, &labels->items[labels->count], labels->bytes) ||
        !EVP_DigestFinal_ex(hasher->context, digest.bytes, NULL))
        abort();
    return digest;
}

struct as_digest as_digest_get(const void *data, size_t size)
{
    struct as_digest digest;
    if (!EVP_Digest(data, size, digest.bytes, NULL, get_sha256(), NULL))
        abort();
    return digest;
}

struct as_digest as_labels_get_digest(const struct as_labels *labels)
{
    AS_CLEANUP(as_labels_hasher_free_p)
    struct as_labels_hasher *hasher = as_labels_hasher_new();
    return as_labels_hasher_get(hasher, labels);
}
