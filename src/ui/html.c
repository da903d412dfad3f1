/*
 * The roles of tables are written out: a browser drops those of a table that is shown as cards.
 */
#include "html.h"

#include <assert.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>

#define REPLACEMENT "\xef\xbf\xbd"

static void put_ascii(struct as_buf *out, char byte)
{
    switch (byte) {
    case '&': as_buf_append_str(out, "&amp;"); break;
    case '<': as_buf_append_str(out, "&lt;"); break;
    case '>': as_buf_append_str(out, "&gt;"); break;
    case '"': as_buf_append_str(out, "&quot;"); break;
    case '\'': as_buf_append_str(out, "&#39;"); break;
    default: as_buf_append_char(out, byte);
    }
}

void html_text(struct as_buf *out, const char *text)
{
    html_text_part(out, text, strlen(text));
}

void html_text_part(struct as_buf *out, const char *text, size_t size)
{
    struct as_safe_char read;
    for (size_t i = 0; i < size; i += read.size) {
        read = as_safe_char_read(text + i, size - i);
        if (read.is_unsafe && text[i] != '\n' && text[i] != '\t')
            as_buf_append_str(out, REPLACEMENT);
        else if (read.size == 1)
            put_ascii(out, text[i]);
        else
            as_buf_append(out, text + i, read.size);
    }
}

void html_attribute(struct as_buf *out, const char *name, const char *value)
{
    as_buf_printf(out, " %s=\"", name);
    html_text(out, value);
    as_buf_append_char(out, '"');
}

void html_element(struct as_buf *out, const char *tag, const char *class, const char *text)
{
    as_buf_printf(out, "<%s", tag);
    if (class)
        html_attribute(out, "class", class);
    as_buf_append_char(out, '>');
    html_text(out, text);
    as_buf_printf(out, "</%s>", tag);
}

void html_link(struct as_buf *out, const char *base, const char *rest, const char *text)
{
    as_buf_append_str(out, "<a href=\"");
    html_text(out, base);
    as_encode_percent(out, rest, strlen(rest), "");
    as_buf_append_str(out, "\">");
    html_text(out, text);
    as_buf_append_str(out, "</a>");
}

void html_query(struct as_buf *url, const char *name, const char *value)
{
    as_buf_append_str(url, name);
    as_buf_append_char(url, '=');
    as_encode_percent(url, value, strlen(value), "");
    as_buf_append_char(url, '&');
}

bool html_may_link(const char *url)
{
    char host[AS_URL_HOST_SIZE];
    return as_str_is_visible(url, strlen(url)) && as_url_take_host(url, host);
}

void html_outside_link(struct as_buf *out, const char *url, const char *text)
{
    if (!html_may_link(url)) {
        html_text(out, text);
        return;
    }
    as_buf_append_str(out, "<a rel=\"noopener noreferrer nofollow\"");
    html_attribute(out, "href", url);
    as_buf_append_char(out, '>');
    html_text(out, text);
    as_buf_append_str(out, "</a>");
}

static void print_column(struct as_buf *out, const struct html_column *column)
{
    static const char *const words[] = {
        [HTML_UNSORTED] = "none",
        [HTML_ASCENDING] = "ascending",
        [HTML_DESCENDING] = "descending",
    };
    as_buf_append_str(out, "<th scope=\"col\" role=\"columnheader\"");
    if (column->is_number)
        html_attribute(out, "class", "number");
    if (column->href)
        html_attribute(out, "aria-sort", words[column->sorted]);
    as_buf_append_char(out, '>');
    if (column->href) {
        html_link(out, column->href, "", column->title);
        as_buf_append_str(out, column->sorted == HTML_ASCENDING    ? " \u2191"
                               : column->sorted == HTML_DESCENDING ? " \u2193"
                                                                   : "");
    } else {
        html_text(out, column->title);
    }
    as_buf_append_str(out, "</th>");
}

void html_table_begin(struct html_table *table, struct as_buf *out, const char *caption,
                      const struct html_column *columns, size_t count)
{
    *table = (struct html_table){.out = out, .columns = columns, .count = count};
    as_buf_append_str(out, "<table role=\"table\"");
    html_attribute(out, "aria-label", caption);
    as_buf_append_str(out, ">\n<thead role=\"rowgroup\"><tr role=\"row\">");
    for (size_t i = 0; i < count; i++)
        print_column(out, &columns[i]);
    as_buf_append_str(out, "</tr></thead>\n<tbody role=\"rowgroup\">\n");
}

void html_row_begin(struct html_table *table)
{
    table->next = 0;
    as_buf_append_str(table->out, "<tr role=\"row\">");
}

void html_cell(struct html_table *table)
{
    assert(table->next < table->count);
    const struct html_column *column = &table->columns[table->next];
    as_buf_append_str(table->out, table->next++ > 0 ? "</div></td>" : "");
    as_buf_append_str(table->out, "<td role=\"cell\"");
    html_attribute(table->out, "data-title", column->title);
    as_buf_append_str(table->out, column->is_number ? " class=\"number\"><div>" : "><div>");
}

void html_row_end(struct html_table *table)
{
    assert(table->next == table->count);
    as_buf_append_str(table->out, "</div></td></tr>\n");
}

void html_table_end(struct html_table *table)
{
    as_buf_append_str(table->out, "</tbody></table>\n");
}
