/*
 * base/url.h: the parts of a URL, and where a secret may be sent.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/url.h>

Test(url, hosts)
{
    static const char *const rows[][2] = {
        {"https://example.org", "example.org"},
        {"HTTP://Example.ORG:5000/v3?x#y", "example.org"},
        {"http://a_b-c.d?x", "a_b-c.d"},
        {"http://[FD00:ec2::23]:80/c", "fd00:ec2::23"},
        {"http://[::ffff:127.0.0.1]", "::ffff:127.0.0.1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char host[AS_URL_HOST_SIZE];
        cr_assert(as_url_take_host(rows[i][0], host), "%s", rows[i][0]);
        cr_expect_str_eq(host, rows[i][1]);
    }
}

/* What another parser might take for another host is none. */
Test(url, no_hosts)
{
    static const char *const rows[] = {
        "",
        "example.org",
        "/x",
        "ftp://a",
        "http:/a",
        "http://",
        "https:///x",
        "http://:80",
        "http://u:p@a",
        "http://127.0.0.1@example.org",
        "https://a@b/",
        "http://a:b",
        "http://a:",
        "http://a:123456",
        "http://a b",
        "http://a\\@b",
        "http://a\tb",
        "http://[::1",
        "http://[]",
        "http://[::1]x",
        "http://[::1%25eth0]",
        "http://\xc3\xa4",
        " http://a",
        "http://a\r\nb",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char host[AS_URL_HOST_SIZE] = "as it was";
        cr_expect_not(as_url_take_host(rows[i], host), "%s", rows[i]);
        cr_expect_str_eq(host, "as it was");
        cr_expect_not(as_url_is_near(rows[i]), "%s", rows[i]);
    }
}

Test(url, hosts_have_a_limit)
{
    char url[400] = "http://", host[AS_URL_HOST_SIZE];
    memset(url + 7, 'a', AS_URL_HOST_SIZE);
    cr_expect_not(as_url_take_host(url, host));
    url[7 + AS_URL_HOST_SIZE - 1] = '\0';
    cr_expect(as_url_take_host(url, host));
}

Test(url, to_whom_secrets_are_sent)
{
    static const struct {
        const char *url;
        bool is_private, is_near;
    } rows[] = {
        {"https://example.org/x", true, true},
        {"HTTPS://10.0.0.1", true, true},
        {"http://localhost:5000", true, true},
        {"http://LOCALHOST/", true, true},
        {"http://127.0.0.1", true, true},
        {"http://127.8.9.1:99/c", true, true},
        {"http://[::1]:1", true, true},
        {"http://169.254.169.254/metadata", false, true},
        {"http://[fe80::1]", false, true},
        {"http://example.org", false, false},
        {"http://10.0.0.1", false, false},
        {"http://100.100.100.200", false, false},
        {"http://localhost.example.org", false, false},
        {"http://127.0.0.1.example.org", false, false},
        {"http://127.1", false, false},
        {"http://[::2]", false, false},
        {"http://0.0.0.0", false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        cr_expect_eq(as_url_is_private(rows[i].url), rows[i].is_private, "%s", rows[i].url);
        cr_expect_eq(as_url_is_near(rows[i].url), rows[i].is_near, "%s", rows[i].url);
    }
}

static const char *normal_of(const char *url, struct as_buf *out)
{
    as_buf_clear(out);
    cr_assert(as_url_append_normal(url, out), "%s", url);
    return out->data;
}

/* Two spellings of one place are one text (RFC 3986, 6.2.2 and 6.2.3). */
Test(url, equal_places_have_one_spelling)
{
    static const char *const rows[][2] = {
        {"http://h/x", "http://h/x"},
        {"HTTP://H/x", "http://h/x"},
        {"http://h:80/x", "http://h/x"},
        {"http://h:/x", "http://h/x"},
        {"http://h:080/x", "http://h/x"},
        {"https://h:443/x", "https://h/x"},
        {"https://h:80/x", "https://h:80/x"},
        {"http://h:8080/x", "http://h:8080/x"},
        {"http://h/x/", "http://h/x"},
        {"http://h/x///", "http://h/x"},
        {"http://h", "http://h"},
        {"http://h/", "http://h"},
        {"http://h/?a=b", "http://h?a=b"},
        {"http://h/X", "http://h/X"},
        {"http://h/a/./b/../x", "http://h/a/x"},
        {"http://h/../x", "http://h/x"},
        {"http://h/a/..", "http://h"},
        {"http://h/a//b/../x", "http://h/a/x"},
        {"http://h//x", "http://h/x"},
        {"http://h///a////x//", "http://h/a/x"},
        {"http://h/a//../x", "http://h/a/x"},
        {"http://h//", "http://h"},
        {"http://h/x?a=b//c", "http://h/x?a=b//c"},
        {"http://h/%7ex/%2e%2E/y%2fz", "http://h/y%2Fz"},
        {"http://h/x?q=%7e%2f&Q=/../", "http://h/x?q=~%2F&Q=/../"},
        {"http://h/x?", "http://h/x"},
        {"http://h/x/?#there", "http://h/x"},
        {"http://h?", "http://h"},
        {"http://h/x??", "http://h/x??"},
        {"http://h/x#there", "http://h/x"},
        {"http://h/\xc3\xbc", "http://h/%C3%BC"},
        {"http://h/%c3%bc", "http://h/%C3%BC"},
        {"http://h/100%", "http://h/100%25"},
        {"http://h/%4", "http://h/%254"},
        {"http://[FD00::0:1]:80/x", "http://[fd00::1]/x"},
        {"http://[0:0::1]:8080", "http://[::1]:8080"},
        {"http://[::ffff:127.0.0.1]:8080/x", "http://127.0.0.1:8080/x"},
        {"http://[::FFFF:7f00:1]/x", "http://127.0.0.1/x"},
        {"http://[::127.0.0.1]/x", "http://[::127.0.0.1]/x"},
        {"http://[FE80::1%25Eth0]/x", "http://[fe80::1%25eth0]/x"},
        {"http://h./x", "http://h/x"},
        {"http://h.example.:80/x", "http://h.example/x"},
        {"http://../x", "http://../x"},
        {"http://h::80/x", "http://h%3a/x"},
        {"http://127.1::80/x", "http://127.1%3a/x"},
        {"http://[::1/x", "http://%5b%3a:1/x"},
        {"http://%48.ex%61mple/x", "http://h.example/x"},
        {"http://h%2fx/y", "http://h%2fx/y"},
        {"http://%%341/x", "http://%2541/x"},
        {"http://127.1/x", "http://127.0.0.1/x"},
        {"http://0x7f000001/x", "http://127.0.0.1/x"},
        {"http://127.0.0.1.:80/x", "http://127.0.0.1/x"},
        {"http://127.1.example/x", "http://127.1.example/x"},
        {"http://h/a%2f..%2Fb", "http://h/a%2F..%2Fb"},
        {"http://h/a%3fb", "http://h/a%3Fb"},
        {"http://h/.%2e/a/%2e", "http://h/a"},
        {"http://h/%%32e/x", "http://h/%252e/x"},
        {"http://User@H/x", "http://User@h/x"},
    };
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(1000), again = AS_BUF_INIT(1000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        cr_expect_str_eq(normal_of(rows[i][0], &out), rows[i][1], "%s: %s", rows[i][0], out.data);
        cr_expect_str_eq(normal_of(out.data, &again), rows[i][1], "again: %s", again.data);
    }
}

Test(url, what_is_no_url_has_no_normal_form)
{
    static const char *const rows[] = {"",        "h/x",     "/x",        "ftp://h/x",
                                       "http:/x", "http://", "http:///x", "http://?x"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct as_buf out = AS_BUF_INIT(100);
        cr_expect_not(as_url_append_normal(rows[i], &out), "%s", rows[i]);
        cr_expect_eq(out.size, 0);
        as_buf_deinit(&out);
    }
}
