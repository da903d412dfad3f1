/*
 * rules/external_url.h: what --web.external-url accepts, and what browsers compare it with.
 */
#include <criterion/criterion.h>

#include <string.h>

#include <alertscaler/rules/external_url.h>

Test(external_url, is_normalized)
{
    static const struct {
        const char *text, *origin, *base, *path;
        bool is_https;
    } rows[] = {
        {"http://a", "http://a", "http://a", "", false},
        {"https://Ops.Example.ORG:443/", "https://ops.example.org", "https://ops.example.org", "",
         true},
        {"HTTP://a:80/x/", "http://a", "http://a/x", "/x", false},
        {"https://a:8443/x/y", "https://a:8443", "https://a:8443/x/y", "/x/y", true},
        {"http://[::1]:9096/a-b_c.d~", "http://[::1]:9096", "http://[::1]:9096/a-b_c.d~",
         "/a-b_c.d~", false},
        {"http://[::1]", "http://[::1]", "http://[::1]", "", false},
        {"http://a/x/../y/.", "http://a", "http://a/y", "/y", false},
        {"http://a:65535", "http://a:65535", "http://a:65535", "", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_external_url url;
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(as_external_url_parse(rows[i].text, &url, &error), 0, "%s: %s", rows[i].text,
                     error.text);
        cr_expect_str_eq(url.origin, rows[i].origin);
        cr_expect_str_eq(url.base, rows[i].base);
        cr_expect_str_eq(as_external_url_get_path(&url), rows[i].path);
        cr_expect_eq(url.is_https, rows[i].is_https, "%s", rows[i].text);
    }
}

/* It ends up in headers and pages, and decides whose forms are accepted. */
Test(external_url, refuses_what_is_not_plain)
{
    static const char *const rows[][2] = {
        {"", "expected http:// or https://"},
        {"/scaler", "expected http:// or https://"},
        {"ops.example.org", "expected http:// or https://"},
        {"ftp://a", "expected http:// or https://"},
        {"https://", "expected http:// or https://"},
        {"https://user@a", "no user name"},
        {"https://user:secret@a/", "no user name"},
        {"'https://a'", "quotes"},
        {"\"https://a\"", "quotes"},
        {"https://a/?x", "query"},
        {"https://a/#x", "fragment"},
        {"http://a:0", "port"},
        {"http://a:65536/", "port"},
        {"http://[::1]:70000/", "port"},
        {"http://a/x//y", "empty segment"},
        {"http://a/x y", "its path may only have"},
        {"http://a/%0d%0aSet-Cookie:x", "its path may only have"},
        {"http://a/\r\nSet-Cookie:x", "its path may only have"},
        {"http://a/<script>", "its path may only have"},
        {"http://a/\xc3\xa4", "its path may only have"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_external_url url = {.base = "as it was"};
        struct as_error error = AS_ERROR_INIT;
        cr_expect_lt(as_external_url_parse(rows[i][0], &url, &error), 0, "%s", rows[i][0]);
        cr_expect(strstr(error.text, rows[i][1]), "%s: %s", rows[i][0], error.text);
        cr_expect_str_eq(url.base, "as it was");
    }
}

Test(external_url, has_a_limit)
{
    struct as_external_url url;
    struct as_error error = AS_ERROR_INIT;
    char text[AS_EXTERNAL_URL_SIZE + 1] = "http://a/";
    const size_t start = strlen(text);
    memset(text + start, 'x', AS_EXTERNAL_URL_SIZE - start);
    cr_expect_lt(as_external_url_parse(text, &url, &error), 0);
    text[AS_EXTERNAL_URL_SIZE - 1] = '\0';
    cr_expect_eq(as_external_url_parse(text, &url, &error), 0, "%s", error.text);
    memset(text + start, '{', 400); /* three bytes each when escaped */
    cr_expect_lt(as_external_url_parse(text, &url, &error), 0);
}

Test(external_url, default_is_where_the_server_listens)
{
    static const struct {
        const char *listen;
        bool is_https;
        const char *base; /* NULL: with the name of this host */
    } rows[] = {
        {"127.0.0.1:0", false, "http://127.0.0.1:9096"},
        {"[::1]:9096", true, "https://[::1]:9096"},
        {"scaler.example.org:9096", false, "http://scaler.example.org:9096"},
        {":9096", false, NULL},
        {"0.0.0.0:9096", false, NULL},
        {"[::]:9096", false, NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_external_url url = {0};
        as_external_url_make_default(rows[i].listen, 9096, rows[i].is_https, &url);
        if (rows[i].base)
            cr_expect_str_eq(url.base, rows[i].base);
        cr_expect(strstr(url.base, ":9096"), "%s", url.base);
        cr_expect_not(strstr(url.base, "0.0.0.0") || strstr(url.base, "[::]"), "%s", url.base);
        cr_expect_str_eq(url.base, url.origin);
    }
}

Test(external_url, a_route_prefix_is_a_path)
{
    static const struct {
        const char *text, *prefix; /* NULL: refused */
    } rows[] = {
        {"/", ""},           {"", ""},        {"/scaler", "/scaler"}, {"scaler/", "/scaler"},
        {"//a/b//", "/a/b"}, {"/a//b", NULL}, {"/a b", NULL},         {"/a?b", NULL},
        {"/a#b", NULL},      {"/%41", "/A"},  {"/%2f", NULL},         {"/a\r\nb", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char prefix[AS_EXTERNAL_URL_SIZE] = "as it was";
        struct as_error error = AS_ERROR_INIT;
        const int status = as_route_prefix_parse(rows[i].text, prefix, &error);
        cr_expect_eq(status == 0, rows[i].prefix != NULL, "%s", rows[i].text);
        cr_expect_str_eq(prefix, rows[i].prefix ? rows[i].prefix : "as it was");
        cr_expect_eq(status == 0, error.text[0] == '\0');
    }
}
