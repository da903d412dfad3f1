/*
 * The signature is checked before the time, so that an answer reveals nothing about unsigned times.
 */
#include "auth_signature.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#define DIGEST_SIZE   32
#define LOOK_EVERY_US (1 * AS_US_PER_S)

/* Aborts without memory or SHA-256. */
static void sign(const char *secret, const struct as_signed_request *request, const char *timestamp,
                 char text_out[2 * DIGEST_SIZE])
{
    unsigned char digest[DIGEST_SIZE];
    size_t size = sizeof(digest);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, (const unsigned char *)secret,
                                                 strlen(secret));
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!key || !context || EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) != 1)
        abort();
    if (timestamp && (EVP_DigestSignUpdate(context, timestamp, strlen(timestamp)) != 1 ||
                      EVP_DigestSignUpdate(context, ":", 1) != 1))
        abort();
    if (EVP_DigestSignUpdate(context, request->body, request->body_size) != 1 ||
        EVP_DigestSignFinal(context, digest, &size) != 1 || size != sizeof(digest))
        abort();
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    as_encode_hex_digits(text_out, digest, sizeof(digest));
    explicit_bzero(digest, sizeof(digest));
}

static bool is_recent(const char *timestamp, int64_t max_skew_us, as_wall_time now)
{
    int64_t seconds;
    if (as_number_parse_i64(timestamp, strlen(timestamp), &seconds) != 0 || seconds < 0 ||
        seconds > INT64_MAX / AS_US_PER_S)
        return false;
    const int64_t skew = now.us - seconds * AS_US_PER_S;
    return skew <= max_skew_us && skew >= -max_skew_us;
}

int as_signature_check(struct as_credential_signature *signature,
                       const struct as_signed_request *request, const struct as_clock *clock,
                       struct as_error *error)
{
    const char *secret, *timestamp = signature->timestamp_header ? request->timestamp : NULL;
    char expected[2 * DIGEST_SIZE];
    if (signature->timestamp_header && !timestamp) {
        as_error_set(error, "the header %s is missing, which is signed too",
                     signature->timestamp_header);
        return -EACCES;
    }
    const int status = as_secret_file_get(&signature->secret, clock->get_mono(clock), LOOK_EVERY_US,
                                          &secret, error);
    if (status != 0)
        return status;
    sign(secret, request, timestamp, expected);
    const bool is_right = strlen(request->signature) == 2 * DIGEST_SIZE &&
                          as_str_equal_constant_time(request->signature, expected, 2 * DIGEST_SIZE);
    explicit_bzero(expected, sizeof(expected));
    if (!is_right) {
        as_error_set(error, "the signature in %s is not that of the body", signature->header);
        return -EACCES;
    }
    if (timestamp && !is_recent(timestamp, signature->max_skew_us, clock->get_wall(clock))) {
        as_error_set(error, "the time in %s is not now: are the clocks right?",
                     signature->timestamp_header);
        return -EACCES;
    }
    return 0;
}
