/*
 * encode.h: bytes as text; the examples of RFC 4648 section 10, and the differences of the
 * alphabets.
 */
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/encode.h>

typedef void encode_fn(struct as_buf *buf, const void *data, size_t size);

static void expect(encode_fn *encode, const void *data, size_t size, const char *want)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(64);
    as_buf_append_str(&buf, "=");
    encode(&buf, data, size);
    cr_expect_str_eq(buf.data + 1, want);
}

Test(encode, base64)
{
    expect(as_encode_base64, "", 0, "");
    expect(as_encode_base64, "f", 1, "Zg==");
    expect(as_encode_base64, "fo", 2, "Zm8=");
    expect(as_encode_base64, "foo", 3, "Zm9v");
    expect(as_encode_base64, "foob", 4, "Zm9vYg==");
    expect(as_encode_base64, "fooba", 5, "Zm9vYmE=");
    expect(as_encode_base64, "foobar", 6, "Zm9vYmFy");
    expect(as_encode_base64, "\xfb\xff\x00\xfe", 4, "+/8A/g==");
}

Test(encode, base64url)
{
    expect(as_encode_base64url, "", 0, "");
    expect(as_encode_base64url, "f", 1, "Zg");
    expect(as_encode_base64url, "fo", 2, "Zm8");
    expect(as_encode_base64url, "foobar", 6, "Zm9vYmFy");
    expect(as_encode_base64url, "\xfb\xff\x00\xfe", 4, "-_8A_g");
}

Test(encode, hexadecimal)
{
    expect(as_encode_hex, "\x00\x7f\xa0", 3, "007fa0");
}

Test(encode, percent_keeps_what_it_is_told_to)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(64);
    as_encode_percent(&buf, "a-._~ /:\xc3\xa4\0%", 12, "/");
    cr_assert_str_eq(buf.data, "a-._~%20/%3A%C3%A4%00%25");
}

Test(encode, what_does_not_fit_fails)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(7);
    as_encode_base64(&buf, "fooba", 5);
    cr_assert_lt(as_buf_check(&buf), 0);
}
