/*
 * JSON Web Tokens: see the header.
 */
#include "jwt.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <alertscaler/base/encode.h>

#define SIGNATURE_MAX 2048 /* bytes: keys of 16384 bits */

/* Keys with a passphrase are refused; without this callback OpenSSL would ask on the terminal. */
static int have_no_passphrase(char *text, int size, int is_writing, void *context)
{
    return -1;
}

static EVP_PKEY *read_key(const char *pem)
{
    const size_t size = strlen(pem);
    if (size > INT_MAX)
        return NULL;
    BIO *bio = BIO_new_mem_buf(pem, (int)size);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, have_no_passphrase, NULL) : NULL;
    BIO_free(bio);
    return key;
}

static bool jwt_sign(EVP_PKEY *key, const char *text, size_t size,
                     unsigned char signature[SIGNATURE_MAX], size_t *size_out)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    *size_out = SIGNATURE_MAX;
    const bool is_good =
        context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestSign(context, signature, size_out, (const unsigned char *)text, size) == 1;
    EVP_MD_CTX_free(context);
    return is_good;
}

int jwt_append_rs256(struct as_buf *out, const char *header, const char *claims, const char *pem,
                     struct as_error *error)
{
    unsigned char signature[SIGNATURE_MAX];
    size_t size;
    const size_t start = out->size;
    EVP_PKEY *key = read_key(pem);
    if (!key || !EVP_PKEY_is_a(key, "RSA")) {
        EVP_PKEY_free(key);
        as_error_set(error, "the private key is not an RSA key in PEM form without a passphrase");
        return -EINVAL;
    }
    as_encode_base64url(out, header, strlen(header));
    as_buf_append_char(out, '.');
    as_encode_base64url(out, claims, strlen(claims));
    const bool is_signed = as_buf_check(out) == 0 &&
                           jwt_sign(key, out->data + start, out->size - start, signature, &size);
    EVP_PKEY_free(key);
    if (!is_signed) {
        as_error_set(error, "the token cannot be signed with the private key");
        return -EINVAL;
    }
    as_buf_append_char(out, '.');
    as_encode_base64url(out, signature, size);
    return 0;
}
