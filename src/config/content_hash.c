/*
 * SHA-256 over several texts: see the header.
 */
#include "content_hash.h"

#include <stdlib.h>

#include <openssl/evp.h>

struct content_hash content_hash_begin(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1)
        abort();
    return (struct content_hash){context};
}

void content_hash_add(struct content_hash *hash, const char *text, size_t size)
{
    if (EVP_DigestUpdate(hash->context, text, size) != 1)
        abort();
}

void content_hash_end(struct content_hash *hash, char text_out[AS_DIGEST_TEXT_SIZE])
{
    struct as_digest digest;
    unsigned size = 0;
    if (EVP_DigestFinal_ex(hash->context, digest.bytes, &size) != 1 || size != sizeof(digest.bytes))
        abort();
    EVP_MD_CTX_free(hash->context);
    as_digest_print(&digest, text_out);
}
