/*
 * Writing documents that are made with jansson.
 */
#ifndef ALERTSCALER_DOC_JSON_DUMP_H
#define ALERTSCALER_DOC_JSON_DUMP_H

#include <jansson.h>

#include <alertscaler/base/buf.h>

static inline void as_json_free_p(json_t **json)
{
    json_decref(*json);
}

/* Appends the compact text of `json`. */
void as_json_dump(const json_t *json, struct as_buf *out);

#endif
