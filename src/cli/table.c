/*
 * A table for people: see the header. The last column is not padded.
 */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>

static void table_print_row(const char *const *cells, const size_t *widths, size_t count, FILE *out)
{
    for (size_t i = 0; i < count; i++) {
        const int width = i + 1 < count ? (int)widths[i] + 2 : 0;
        fprintf(out, "%-*s", width, cells[i]);
    }
    fputc('\n', out);
}

void table_print(const char *const *titles, size_t column_count, char **cells, size_t row_count,
                 FILE *out)
{
    size_t *widths = as_xcalloc(column_count, sizeof(*widths));
    for (size_t i = 0; i < column_count; i++)
        widths[i] = strlen(titles[i]);
    for (size_t i = 0; i < row_count * column_count; i++) {
        cells[i] = as_safe_text_take(cells[i]);
        const size_t width = strlen(cells[i]);
        size_t *widest = &widths[i % column_count];
        *widest = width > *widest ? width : *widest;
    }
    table_print_row(titles, widths, column_count, out);
    for (size_t k = 0; k < row_count; k++)
        table_print_row((const char *const *)cells + k * column_count, widths, column_count, out);
    for (size_t i = 0; i < row_count * column_count; i++)
        free(cells[i]);
    free(widths);
}
