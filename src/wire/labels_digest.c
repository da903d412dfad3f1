/*
 * Digests of label sets: see the header. The texts of a set lie behind its array in just that form
 * (core/labels.c), so that one pass over them is all.
 */
#include <alertscaler/wire/labels_digest.h>

#include <stdlib.h>

#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>

struct as_labels_hasher {
    EVP_MD *sha256;
    EVP_MD_CTX *context;
};

struct as_labels_hasher *as_labels_hasher_new(void)
{
    struct as_labels_hasher *hasher = as_xmalloc(sizeof(*hasher));
    hasher->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    hasher->context = EVP_MD_CTX_new();
    if (!hasher->sha256 || !hasher->context)
        abort(); /* without its own hash function OpenSSL is of no use */
    return hasher;
}

struct as_labels_hasher *as_labels_hasher_free(struct as_labels_hasher *hasher)
{
    if (hasher) {
        EVP_MD_CTX_free(hasher->context);
        EVP_MD_free(hasher->sha256);
        free(hasher);
    }
    return NULL;
}

struct as_digest as_labels_hasher_get(struct as_labels_hasher *hasher,
                                      const struct as_labels *labels)
{
    struct as_digest digest;
    if (!EVP_DigestInit_ex2(hasher->context, hasher->sha256, NULL) ||
        !EVP_DigestUpdate(hasher->context, &labels->items[labels->count], labels->bytes) ||
        !EVP_DigestFinal_ex(hasher->context, digest.bytes, NULL))
        abort();
    return digest;
}

struct as_digest as_labels_get_digest(const struct as_labels *labels)
{
    AS_CLEANUP(as_labels_hasher_free_p)
    struct as_labels_hasher *hasher = as_labels_hasher_new();
    return as_labels_hasher_get(hasher, labels);
}
