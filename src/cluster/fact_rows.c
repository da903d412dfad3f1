/*
 * Sorted arrays of facts: see the header.
 */
#include "fact_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

static size_t measure_row(const struct fact_row *row)
{
    return row->block_size + AS_ALLOC_EXTRA + as_labels_measure(row->labels);
}

size_t fact_rows_measure(const struct fact_rows *rows)
{
    return rows->bytes + rows->capacity * rows->size + rows->row_capacity * sizeof(struct fact_row);
}

/* Lists come sorted: the end is looked at first. */
bool fact_rows_find(const struct fact_rows *rows, const char *key, size_t *place_out)
{
    size_t low = 0, high = rows->count;

    if (high > 0 && strcmp(rows->rows[high - 1].key, key) < 0)
        low = high;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(rows->rows[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *place_out = low;
    return low < rows->count && strcmp(rows->rows[low].key, key) == 0;
}

static void set(struct fact_rows *rows, size_t place, const struct fact_row *row, const void *fact)
{
    rows->rows[place] = *row;
    memcpy(rows->facts + place * rows->size, fact, rows->size);
    rows->bytes += measure_row(row);
}

void fact_rows_drop(struct fact_rows *rows, size_t place)
{
    struct fact_row *row = &rows->rows[place];

    rows->bytes -= measure_row(row);
    free(row->block);
    as_labels_free(row->labels);
    row->key = NULL;
}

void fact_rows_insert(struct fact_rows *rows, size_t place, const struct fact_row *row,
                      const void *fact)
{
    rows->facts = as_xgrow(rows->facts, rows->count, &rows->capacity, rows->size);
    rows->rows = as_xgrow(rows->rows, rows->count, &rows->row_capacity, sizeof(rows->rows[0]));
    char *at = rows->facts + place * rows->size;
    memmove(at + rows->size, at, (rows->count - place) * rows->size);
    memmove(&rows->rows[place + 1], &rows->rows[place],
            (rows->count - place) * sizeof(rows->rows[0]));
    rows->count++;
    set(rows, place, row, fact);
}

void fact_rows_replace(struct fact_rows *rows, size_t place, const struct fact_row *row,
                       const void *fact)
{
    fact_rows_drop(rows, place);
    set(rows, place, row, fact);
}

void fact_rows_compact(struct fact_rows *rows)
{
    size_t kept = 0;

    for (size_t i = 0; i < rows->count; i++) {
        if (!rows->rows[i].key)
            continue;
        if (kept != i) {
            rows->rows[kept] = rows->rows[i];
            memcpy(rows->facts + kept * rows->size, rows->facts + i * rows->size, rows->size);
        }
        kept++;
    }
    rows->count = kept;
}

void fact_rows_deinit(struct fact_rows *rows)
{
    assert(rows->count == 0);
    free(rows->facts);
    free(rows->rows);
    *rows = (struct fact_rows){.size = rows->size};
}
