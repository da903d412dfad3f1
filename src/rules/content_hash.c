/*
 * SHA-256 over several texts: see the header.
 */
#include <stdlib.h>

#include <openssl/evp.h>

#include <alertscaler/doc/yaml_tree.h>

#include "config_private.h"

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

/* The kind, the size and the content of each node, so that no two trees give the same text. */
void content_hash_add_node(struct content_hash *hash, const struct as_yaml_node *node)
{
    const uint32_t size =
        node->kind == AS_YAML_SCALAR ? (uint32_t)node->size : (uint32_t)node->count;
    const unsigned char head[] = {(unsigned char)node->kind,   (unsigned char)node->is_plain,
                                  (unsigned char)(size >> 24), (unsigned char)(size >> 16),
                                  (unsigned char)(size >> 8),  (unsigned char)size};
    content_hash_add(hash, (const char *)head, sizeof(head));
    switch (node->kind) {
    case AS_YAML_SCALAR: content_hash_add(hash, node->text, node->size); break;
    case AS_YAML_LIST:
        for (uint32_t i = 0; i < node->count; i++)
            content_hash_add_node(hash, node->items[i]);
        break;
    case AS_YAML_MAP:
        for (uint32_t i = 0; i < node->count; i++) {
            content_hash_add_node(hash, node->pairs[i].key);
            content_hash_add_node(hash, node->pairs[i].value);
        }
        break;
    }
}

struct as_digest content_hash_end_digest(struct content_hash *hash)
{
    struct as_digest digest;
    unsigned size = 0;
    if (EVP_DigestFinal_ex(hash->context, digest.bytes, &size) != 1 || size != sizeof(digest.bytes))
        abort();
    EVP_MD_CTX_free(hash->context);
    return digest;
}

void content_hash_end(struct content_hash *hash, char text_out[AS_DIGEST_TEXT_SIZE])
{
    const struct as_digest digest = content_hash_end_digest(hash);
    as_digest_print(&digest, text_out);
}
