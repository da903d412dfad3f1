/*
 * Whose forms are accepted, by the head of a request alone. The exchange is simulated.
 */
#include <alertscaler/auth/browser.h>

#include <criterion/criterion.h>

#include <string.h>
#include <strings.h>

struct as_http_exchange {
    const char *remote;
    const char *headers[8][2];
};

const char *as_http_exchange_get_remote(const struct as_http_exchange *exchange)
{
    return exchange->remote ? exchange->remote : "192.0.2.7:40000";
}

const char *as_http_exchange_find_header(const struct as_http_exchange *exchange, const char *name)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(exchange->headers) && exchange->headers[i][0]; i++) {
        if (strcasecmp(exchange->headers[i][0], name) == 0)
            return exchange->headers[i][1];
    }
    return NULL;
}

#define TYPE                                                                                       \
    {                                                                                              \
        "Content-Type", "application/x-www-form-urlencoded"                                        \
    }
#define LENGTH                                                                                     \
    {                                                                                              \
        "Content-Length", "10"                                                                     \
    }

static struct as_external_url make_url(const char *text)
{
    struct as_external_url url;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_external_url_parse(text, &url, &error), 0, "%s", error.text);
    return url;
}

static int check(const char *external, const char *remote, const char *host, const char *origin,
                 const char *site, bool *is_local_out)
{
    const struct as_external_url url = make_url(external);
    struct as_http_exchange exchange = {.remote = remote, .headers = {TYPE, LENGTH}};
    struct as_form_way way = {0};
    struct as_error error = AS_ERROR_INIT;
    size_t at = 2;
    const char *const rows[][2] = {{"Host", host}, {"Origin", origin}, {"Sec-Fetch-Site", site}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (rows[i][1]) {
            exchange.headers[at][0] = rows[i][0];
            exchange.headers[at++][1] = rows[i][1];
        }
    }
    const int status = as_browser_check_form(&exchange, &url, &way, &error);
    cr_expect_eq(status == 0, error.text[0] == '\0');
    *is_local_out = way.is_local;
    return status;
}

#define OPS   "https://ops.example.org"
#define THERE "192.0.2.7:40000"
#define HERE  "127.0.0.1:40000"

Test(browser, a_form_comes_from_a_page_of_ours)
{
    static const struct {
        const char *external, *remote, *host, *origin, *site;
        int status;
        bool is_local;
    } rows[] = {
        /* an https external URL: TLS here, or at a proxy */
        {OPS "/x/", THERE, "ops.example.org", OPS, "same-origin", 0, false},
        {OPS, THERE, "ops.example.org", OPS, NULL, 0, false},
        {OPS, HERE, "127.0.0.1:9096", OPS, "same-origin", 0, false}, /* a proxy beside us */
        {OPS, THERE, "forged.example.org", OPS, "same-origin", 0, false},
        {OPS ":8443", THERE, "ops.example.org", OPS ":8443", NULL, 0, false},
        /* another page */
        {OPS, THERE, "ops.example.org", "https://evil.example.org", NULL, 403, false},
        {OPS, THERE, "ops.example.org", OPS, "cross-site", 403, false},
        {OPS, THERE, "ops.example.org", OPS, "same-site", 403, false},
        {OPS, THERE, "ops.example.org", OPS, "none", 403, false},
        {OPS, THERE, "ops.example.org", OPS, "", 403, false},
        {OPS, THERE, "ops.example.org", OPS ":8443", NULL, 403, false},
        {OPS, THERE, "ops.example.org", OPS ".evil.org", NULL, 403, false},
        {OPS, THERE, "ops.example.org", OPS "/", NULL, 403, false},
        {OPS, THERE, "ops.example.org", "http://ops.example.org", NULL, 403, false},
        {OPS, THERE, "ops.example.org", "null", NULL, 403, false},
        {OPS, THERE, "ops.example.org", "", NULL, 403, false},
        {OPS, THERE, "ops.example.org", NULL, "same-origin", 403, false},
        {OPS, THERE, "ops.example.org", NULL, NULL, 403, false},
        {OPS, THERE, "evil.example.org", "https://evil.example.org", "same-origin", 403, false},
        /* this machine, by its own names */
        {OPS, HERE, "localhost:9096", "http://localhost:9096", "same-origin", 0, true},
        {OPS, HERE, "LOCALHOST:9096", "http://localhost:9096", "same-origin", 0, true},
        {OPS, "[::1]:4711", "[::1]:9096", "http://[::1]:9096", NULL, 0, true},
        {OPS, HERE, "127.0.0.1:9096", "https://127.0.0.1:9096", NULL, 0, false},
        {"http://scaler:9096", HERE, "localhost:80", "http://localhost:80", NULL, 0, true},
        /* the same names from elsewhere, and other names that lead here: DNS rebinding */
        {OPS, THERE, "localhost:9096", "http://localhost:9096", NULL, 403, false},
        {OPS, HERE, "evil.org:9096", "http://evil.org:9096", "same-origin", 403, false},
        {OPS, HERE, "localhost.evil.org", "http://localhost.evil.org", NULL, 403, false},
        {OPS, HERE, "localhost:9096", "http://localhost:3000", NULL, 403, false},
        {OPS, HERE, "localhost:9096", "http://127.0.0.1:9096", NULL, 403, false},
        {OPS, HERE, "localhost:9096", "ftp://localhost:9096", NULL, 403, false},
        {OPS, HERE, "a@localhost:9096", "http://a@localhost:9096", NULL, 403, false},
        {OPS, HERE, "localhost:9096/x", "http://localhost:9096/x", NULL, 403, false},
        {OPS, HERE, NULL, "http://localhost:9096", NULL, 403, false},
        {OPS, HERE, "", "http://", NULL, 403, false},
        /* plain HTTP from another host */
        {"http://scaler:9096", THERE, "scaler:9096", "http://scaler:9096", NULL, 403, false},
        {"http://scaler:9096", HERE, "scaler:9096", "http://scaler:9096", NULL, 403, false},
        {"http://localhost:9096", THERE, "localhost:9096", "http://localhost:9096", NULL, 403,
         false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        bool is_local;
        cr_expect_eq(check(rows[i].external, rows[i].remote, rows[i].host, rows[i].origin,
                           rows[i].site, &is_local),
                     rows[i].status, "row %zu", i);
        cr_expect_eq(is_local, rows[i].is_local, "row %zu", i);
    }
}

Test(browser, programs_and_pages_of_ours_may_send_requests)
{
    static const struct {
        const char *origin, *site;
        int status;
    } rows[] = {
        {NULL, NULL, 0}, /* a program */
        {"", NULL, 0},
        {OPS, NULL, 0},
        {OPS, "same-origin", 0},
        {NULL, "same-origin", 0},
        {"http://localhost:9096", "same-origin", 0},
        {"https://evil.example", NULL, 403},
        {"https://evil.example", "cross-site", 403},
        {"https://evil.example", "same-origin", 403},
        {"null", NULL, 403},
        {OPS, "cross-site", 403},
        {OPS, "same-site", 403},
        {OPS, "none", 403},
        {OPS, "", 403},
        {OPS, "Same-Origin", 403},
        {NULL, "cross-site", 403},
        {"http://localhost:3000", "same-site", 403},
        {"http://localhost:3000", NULL, 403},
    };
    const struct as_external_url url = make_url(OPS);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_http_exchange exchange = {.remote = HERE,
                                            .headers = {{"Host", "localhost:9096"}}};
        struct as_error error = AS_ERROR_INIT;
        size_t at = 1;
        if (rows[i].origin) {
            exchange.headers[at][0] = "Origin";
            exchange.headers[at++][1] = rows[i].origin;
        }
        if (rows[i].site) {
            exchange.headers[at][0] = "Sec-Fetch-Site";
            exchange.headers[at][1] = rows[i].site;
        }
        cr_expect_eq(as_browser_check_sender(&exchange, &url, &error), rows[i].status, "row %zu",
                     i);
        cr_expect_eq(error.text[0] != '\0', rows[i].status != 0, "row %zu: %s", i, error.text);
    }
}

Test(browser, a_form_has_its_type_and_a_limited_size)
{
    static const struct {
        const char *type, *size;
        int status;
    } rows[] = {
        {"application/x-www-form-urlencoded", "16384", 0},
        {"Application/X-WWW-form-urlencoded; charset=UTF-8", "0", 0},
        {"application/x-www-form-urlencoded", "16385", 413},
        {"application/x-www-form-urlencoded", "99999999999999999999999", 413},
        {"application/x-www-form-urlencoded", NULL, 411},
        {"application/x-www-form-urlencoded2", "1", 415},
        {"multipart/form-data; boundary=x", "1", 415},
        {"text/plain", "1", 415},
        {"application/json", "1", 415},
        {"", "1", 415},
        {NULL, "1", 415},
    };
    const struct as_external_url url = make_url(OPS);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_http_exchange exchange = {.headers = {{"Origin", OPS}}};
        struct as_form_way way;
        struct as_error error = AS_ERROR_INIT;
        size_t at = 1;
        if (rows[i].type) {
            exchange.headers[at][0] = "Content-Type";
            exchange.headers[at++][1] = rows[i].type;
        }
        if (rows[i].size) {
            exchange.headers[at][0] = "Content-Length";
            exchange.headers[at][1] = rows[i].size;
        }
        cr_expect_eq(as_browser_check_form(&exchange, &url, &way, &error), rows[i].status,
                     "row %zu: %s", i, error.text);
    }
}

Test(browser, a_password_is_typed_only_where_nobody_can_read_it)
{
    static const struct {
        const char *external, *remote, *host;
        bool may;
    } rows[] = {
        {OPS, THERE, "ops.example.org", true},
        {"http://scaler:9096", THERE, "scaler:9096", false},
        {"http://scaler:9096", HERE, "scaler:9096", false},
        {"http://scaler:9096", HERE, "localhost:9096", true},
        {"http://localhost:9096", THERE, "localhost:9096", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_external_url url = make_url(rows[i].external);
        const struct as_http_exchange exchange = {.remote = rows[i].remote,
                                                  .headers = {{"Host", rows[i].host}}};
        cr_expect_eq(as_browser_may_log_in(&exchange, &url), rows[i].may, "row %zu", i);
    }
}

Test(browser, tells_pages_from_programs_and_other_sites)
{
    const struct as_http_exchange program = {.headers = {{"Accept", "*/*"}}};
    const struct as_http_exchange own = {
        .headers = {{"Accept", "text/html,*/*;q=0.8"}, {"Sec-Fetch-Site", "none"}}};
    const struct as_http_exchange other = {.headers = {{"Sec-Fetch-Site", "cross-site"}}};
    cr_expect_not(as_browser_wants_page(&program));
    cr_expect_not(as_browser_wants_page(&other));
    cr_expect(as_browser_wants_page(&own));
    cr_expect_not(as_browser_comes_from_elsewhere(&program));
    cr_expect_not(as_browser_comes_from_elsewhere(&own));
    cr_expect(as_browser_comes_from_elsewhere(&other));
}
