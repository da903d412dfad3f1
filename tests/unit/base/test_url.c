/*
 * base/url.h: where a URL leads, and to whom a secret may be sent.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

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
