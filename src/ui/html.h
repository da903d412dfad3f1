/*
 * Writes HTML, and escapes it: the one place where text from outside becomes markup. Functions
 * without `raw` in their name take any bytes. Characters that a browser would not show as
 * themselves (controls, invalid UTF-8, marks that turn the direction of writing) become U+FFFD.
 */
#ifndef ALERTSCALER_SRC_UI_HTML_H
#define ALERTSCALER_SRC_UI_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/buf.h>

void html_text(struct as_buf *out, const char *text);
void html_text_part(struct as_buf *out, const char *text, size_t size); /* so many bytes */
/* ` name="value"`. `name` is ours. */
void html_attribute(struct as_buf *out, const char *name, const char *value);
/* `<tag class="class">text</tag>`; tag and class are ours; class NULL: none. */
void html_element(struct as_buf *out, const char *tag, const char *class, const char *text);

/* A link to a page of ours: `base` as it is, then `rest` percent-encoded, with its slashes. */
void html_link(struct as_buf *out, const char *base, const char *rest, const char *text);
/* Appends `name=value&` with the value percent-encoded, for the query string of a link. */
void html_query(struct as_buf *url, const char *name, const char *value);
/* Whether a URL that an alert brought may become a link: http or https, without a password. */
bool html_may_link(const char *url);
/* A link that an alert brought: a link only if it may become one, else the text alone. */
void html_outside_link(struct as_buf *out, const char *url, const char *text);

/*
 * A table, which a narrow screen shows as one card a row: each cell carries its column's title.
 *
 *     html_table_begin(&table, out, "Targets", columns, AS_ARRAY_SIZE(columns));
 *     html_row_begin(&table);
 *     html_cell(&table);
 *     html_text(out, "checkout");
 *     html_row_end(&table);
 *     html_table_end(&table);
 */
enum html_order { HTML_UNSORTED, HTML_ASCENDING, HTML_DESCENDING };

struct html_column {
    const char *title;
    bool is_number;         /* its cells are aligned on the right */
    const char *href;       /* a link that sorts by it; NULL: none */
    enum html_order sorted; /* the rows are in this order of it */
};

struct html_table {
    struct as_buf *out;
    const struct html_column *columns; /* borrowed until the table's end */
    size_t count, next;
};

void html_table_begin(struct html_table *table, struct as_buf *out, const char *caption,
                      const struct html_column *columns, size_t count);
void html_row_begin(struct html_table *table);
void html_cell(struct html_table *table); /* begins the row's next cell */
void html_row_end(struct html_table *table);
void html_table_end(struct html_table *table);

#endif
