/*
 * The writer of HTML: nothing from outside becomes markup, or a link that does something.
 */
#include "ui/html.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static char written[65536];

static const char *take(struct as_buf *out)
{
    cr_assert_eq(as_buf_check(out), 0);
    (void)snprintf(written, sizeof(written), "%s", out->data ? out->data : "");
    as_buf_deinit(out);
    return written;
}

static const char *text_of(const char *text)
{
    struct as_buf out = AS_BUF_INIT(sizeof(written));
    html_text(&out, text);
    return take(&out);
}

#define LOST "\xef\xbf\xbd"

Test(html, texts_are_escaped)
{
    cr_expect_str_eq(text_of("<script>alert('x') & \"y\"</script>"),
                     "&lt;script&gt;alert(&#39;x&#39;) &amp; &quot;y&quot;&lt;/script&gt;");
    cr_expect_str_eq(text_of("größer → 日本"), "größer → 日本");
    cr_expect_str_eq(text_of("line\nnext\ttab"), "line\nnext\ttab");
}

/* Controls, invalid UTF-8, and marks that would show the text in another order than it is. */
Test(html, what_is_not_shown_as_itself_is_replaced)
{
    cr_expect_str_eq(text_of("a\x01z\x1b[31m\x7f"), "a" LOST "z" LOST "[31m" LOST);
    cr_expect_str_eq(text_of("\xff\xc3("), LOST LOST "(");
    cr_expect_str_eq(text_of("cut \xe2\x86"), "cut " LOST LOST);
    cr_expect_str_eq(text_of("exe\u202egpj.\u2066x"), "exe" LOST "gpj." LOST "x");
    cr_expect_str_eq(text_of("\xc2\x9b\xc2\xa0\xef\xbb\xbf"), LOST "\xc2\xa0" LOST);
}

Test(html, an_attribute_cannot_be_left)
{
    struct as_buf out = AS_BUF_INIT(1024);
    html_attribute(&out, "value", "\"><img src=x onerror='alert(1)'>");
    cr_expect_str_eq(take(&out),
                     " value=\"&quot;&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt;\"");
}

/* Whatever an id has: it stays one part of the path. */
Test(html, a_link_of_ours_stays_ours)
{
    struct as_buf out = AS_BUF_INIT(1024);
    html_link(&out, "/targets/", "node_group/m/http://h/../a?b#c\"", "a<b");
    cr_expect_str_eq(take(&out), "<a href=\"/targets/node_group%2Fm%2Fhttp%3A%2F%2Fh%2F..%2Fa%3Fb"
                                 "%23c%22\">a&lt;b</a>");
}

Test(html, only_http_leads_outside)
{
    static const char *const refused[] = {
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "//evil.example/",
        "/webhook",
        "",
        "https://user:password@evil.example/",
        "https://good.example\n.evil.example/",
        "java\tscript:alert(1)",
        "file:///etc/passwd",
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        struct as_buf out = AS_BUF_INIT(1024);
        html_outside_link(&out, refused[i], "runbook");
        cr_expect_str_eq(take(&out), "runbook", "%s", refused[i]);
    }
    struct as_buf out = AS_BUF_INIT(1024);
    html_outside_link(&out, "https://runbooks.example/a?b=\"c\"&d", "run<book");
    cr_expect_str_eq(take(&out), "<a rel=\"noopener noreferrer nofollow\" "
                                 "href=\"https://runbooks.example/a?b=&quot;c&quot;&amp;d\">"
                                 "run&lt;book</a>");
}

Test(html, a_cell_says_its_column)
{
    static const struct html_column columns[] = {
        {.title = "Target"},
        {.title = "Size",
         .is_number = true,
         .href = "/?sort=size&order=asc",
         .sorted = HTML_DESCENDING},
    };
    struct as_buf out = AS_BUF_INIT(4096);
    struct html_table table;
    html_table_begin(&table, &out, "Targets", columns, 2);
    html_row_begin(&table);
    html_cell(&table);
    html_text(&out, "a");
    html_cell(&table);
    html_text(&out, "4");
    html_row_end(&table);
    html_table_end(&table);
    const char *html = take(&out);
    cr_expect(strstr(html, "<table role=\"table\" aria-label=\"Targets\">"));
    cr_expect(
        strstr(html, "aria-sort=\"descending\"><a href=\"/?sort=size&amp;order=asc\">Size</a>"));
    cr_expect(strstr(html, "<td role=\"cell\" data-title=\"Target\"><div>a</div></td>"
                           "<td role=\"cell\" data-title=\"Size\" class=\"number\"><div>4</div>"
                           "</td></tr>"));
}
