/*
 * SHA-256 over several texts, one after the other, as hex digits: whether files are still those
 * that were loaded. Begin, add, end; it can only fail if OpenSSL itself is broken, and then aborts.
 */
#ifndef ALERTSCALER_SRC_RULES_CONTENT_HASH_H
#define ALERTSCALER_SRC_RULES_CONTENT_HASH_H

#include <stddef.h>

#include <openssl/types.h>

#include <alertscaler/base/digest.h>

struct as_yaml_node;

struct content_hash {
    EVP_MD_CTX *context;
};

struct content_hash content_hash_begin(void);
void content_hash_add(struct content_hash *hash, const char *text, size_t size);
/* A part of a YAML file: its content without comments and places. */
void content_hash_add_node(struct content_hash *hash, const struct as_yaml_node *node);
struct as_digest content_hash_end_digest(struct content_hash *hash);
void content_hash_end(struct content_hash *hash, char text_out[AS_DIGEST_TEXT_SIZE]);

#endif
