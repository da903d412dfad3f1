/*
 * The table of open incidents, the newest first.
 */
#ifndef ALERTSCALER_SRC_UI_PAGE_INCIDENT_ROWS_H
#define ALERTSCALER_SRC_UI_PAGE_INCIDENT_ROWS_H

#include <stddef.h>

struct api_request;

/* Of those that the asking credential may see, prints `size` rows, and returns how many there are.
 * `path`: of the page, which then has links to the other rows; NULL: the first rows only. The
 * engine must be there. */
size_t incident_rows_print(struct api_request *request, size_t size, const char *path);

#endif
