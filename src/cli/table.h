/*
 * A table for people: columns as wide as their widest cell, two spaces apart.
 */
#ifndef ALERTSCALER_SRC_CLI_TABLE_H
#define ALERTSCALER_SRC_CLI_TABLE_H

#include <stddef.h>
#include <stdio.h>

/* `cells`: row by row, each for free(). Takes them over, and prints them so that no cell leaves its
 * line. */
void table_print(const char *const *titles, size_t column_count, char **cells, size_t row_count,
                 FILE *out);

#endif
