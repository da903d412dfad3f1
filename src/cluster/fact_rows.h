/*
 * Nodes or budgets: an array of facts, sorted by their keys, and beside it what keeps each of them.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_FACT_ROWS_H
#define ALERTSCALER_SRC_CLUSTER_FACT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/model/labels.h>

struct fact_row {
    const char *key; /* in the block */
    void *block;     /* what the fact points to */
    size_t block_size;
    struct as_labels *labels; /* NULL: it has none */
    uint32_t slot;            /* of a node's name */
    uint32_t list;            /* that named it last */
};

struct fact_rows {
    size_t size; /* of a fact */
    size_t count, capacity, row_capacity;
    char *facts;
    struct fact_row *rows;
    size_t bytes; /* of what rows keep */
};

size_t fact_rows_measure(const struct fact_rows *rows);

/* The place of the key: of the first row that is not below it. Whether it has that key. */
bool fact_rows_find(const struct fact_rows *rows, const char *key, size_t *place_out);

/* Row and fact are copied, and what the row has is taken over. */
void fact_rows_insert(struct fact_rows *rows, size_t place, const struct fact_row *row,
                      const void *fact);
/* Frees what the row that stood there had, but for its slot. */
void fact_rows_replace(struct fact_rows *rows, size_t place, const struct fact_row *row,
                       const void *fact);
/* Frees what the row has, but for its slot. Compact the rows before anything else. */
void fact_rows_drop(struct fact_rows *rows, size_t place);
void fact_rows_compact(struct fact_rows *rows);
void fact_rows_deinit(struct fact_rows *rows); /* that are empty */

#endif
