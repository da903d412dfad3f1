/*
 * Signatures over bodies. Expected values were computed by the openssl command.
 */
#include "auth/auth_signature.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* printf '{"a":1}' | openssl dgst -sha256 -hmac sesame; and with '1700000000:' in front */
#define PLAIN "8e6033a502f8c683d8d9a9cb5ac42d00fa5a4e9ab83cb4ce403eba9e11b0bc24"
#define TIMED "136f7e2119434593b5d9d6b94c5b85672c268ae06bd4c76e806be3881ebd672b"

static char path[] = "/tmp/test-signature-XXXXXX";
static struct as_credential_signature signature;
static int64_t now_s = 1700000000;

static as_mono_time get_mono(const struct as_clock *clock)
{
    (void)clock;
    return (as_mono_time){now_s * AS_US_PER_S};
}

static as_wall_time get_wall(const struct as_clock *clock)
{
    (void)clock;
    return (as_wall_time){now_s * AS_US_PER_S};
}

static const struct as_clock test_clock = {.get_mono = get_mono, .get_wall = get_wall};

static void write_secret(const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void setup(void)
{
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && close(fd) == 0);
    write_secret("sesame\n");
    signature.header = "X-Signature";
    signature.max_skew_us = 60 * AS_US_PER_S;
    as_secret_file_init(&signature.secret, path);
}

static void teardown(void)
{
    as_secret_file_deinit(&signature.secret);
    (void)unlink(path);
}

TestSuite(auth_signature, .init = setup, .fini = teardown);

static int check(const char *given, const char *timestamp, const char *body)
{
    const struct as_signed_request request = {given, timestamp, body, strlen(body)};
    struct as_error error = AS_ERROR_INIT;
    const int r = as_signature_check(&signature, &request, &test_clock, &error);
    cr_expect_eq(r == 0, error.text[0] == '\0');
    cr_expect_not(strstr(error.text, "sesame"));
    return r;
}

Test(auth_signature, the_body_and_nothing_else_is_signed)
{
    char upper[] = PLAIN, cut[] = PLAIN;
    cr_expect_eq(check(PLAIN, NULL, "{\"a\":1}"), 0);
    cr_expect_eq(check(PLAIN, "1", "{\"a\":1}"), 0); /* no header for the time is configured */
    cr_expect_eq(check(PLAIN, NULL, "{\"a\":2}"), -EACCES);
    cr_expect_eq(check(PLAIN "0", NULL, "{\"a\":1}"), -EACCES);
    cr_expect_eq(check("", NULL, "{\"a\":1}"), -EACCES);
    cut[63] = '\0';
    cr_expect_eq(check(cut, NULL, "{\"a\":1}"), -EACCES);
    upper[0] = upper[0] == 'f' ? 'e' : 'f';
    cr_expect_eq(check(upper, NULL, "{\"a\":1}"), -EACCES);
}

Test(auth_signature, a_time_that_is_signed_must_be_now)
{
    signature.timestamp_header = "X-Signed-At";
    cr_expect_eq(check(TIMED, "1700000000", "{\"a\":1}"), 0);
    cr_expect_eq(check(TIMED, NULL, "{\"a\":1}"), -EACCES);
    cr_expect_eq(check(PLAIN, "1700000000", "{\"a\":1}"), -EACCES);
    cr_expect_eq(check(TIMED, "1700000001", "{\"a\":1}"), -EACCES);
    now_s += 60;
    cr_expect_eq(check(TIMED, "1700000000", "{\"a\":1}"), 0);
    now_s += 1;
    cr_expect_eq(check(TIMED, "1700000000", "{\"a\":1}"), -EACCES);
    now_s -= 122;
    cr_expect_eq(check(TIMED, "1700000000", "{\"a\":1}"), -EACCES);
}

Test(auth_signature, a_rotated_secret_counts_within_two_seconds)
{
    cr_expect_eq(check(PLAIN, NULL, "{\"a\":1}"), 0);
    write_secret("another secret");
    now_s += 1;
    cr_expect_eq(check(PLAIN, NULL, "{\"a\":1}"), 0);
    now_s += 1;
    cr_expect_eq(check(PLAIN, NULL, "{\"a\":1}"), -EACCES);
}
