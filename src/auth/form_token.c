/*
 * HMAC-SHA256 by OpenSSL.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <alertscaler/auth/auth.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>

void as_form_key_init(struct as_form_key *key)
{
    if (RAND_bytes(key->bytes, sizeof(key->bytes)) != 1)
        abort();
}

void as_form_token_print(const struct as_form_key *key, const struct as_digest *identity,
                         const char *text, char token_out[AS_FORM_TOKEN_SIZE])
{
    unsigned char mac[32];
    unsigned size = sizeof(mac);
    struct as_buf sealed = AS_BUF_INIT(sizeof(identity->bytes) + strlen(text));
    struct as_buf token = AS_BUF_INIT(AS_FORM_TOKEN_SIZE);
    as_buf_append(&sealed, identity->bytes, sizeof(identity->bytes));
    as_buf_append_str(&sealed, text);
    if (!HMAC(EVP_sha256(), key->bytes, sizeof(key->bytes), (const unsigned char *)sealed.data,
              sealed.size, mac, &size))
        abort();
    as_encode_base64url(&token, mac, sizeof(mac));
    assert(as_buf_check(&token) == 0 && token.size == AS_FORM_TOKEN_SIZE - 1);
    memcpy(token_out, token.data, AS_FORM_TOKEN_SIZE);
    as_buf_wipe(&sealed);
    as_buf_wipe(&token);
    explicit_bzero(mac, sizeof(mac));
}

bool as_form_token_check(const struct as_form_key *key, const struct as_digest *identity,
                         const char *text, const char *given)
{
    char token[AS_FORM_TOKEN_SIZE];
    as_form_token_print(key, identity, text, token);
    const bool is_right = given && strlen(given) == AS_FORM_TOKEN_SIZE - 1 &&
                          as_str_equal_constant_time(given, token, AS_FORM_TOKEN_SIZE - 1);
    explicit_bzero(token, sizeof(token));
    return is_right;
}
