/*
 * The query string, read by libevent's parser, and the limits of its parameters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/http.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#include "api_private.h"

int api_parameters_parse(struct api_request *request, struct as_error *error)
{
    TAILQ_INIT(&request->parameters);
    const char *query = as_http_exchange_get_query(request->exchange);
    if (*query && evhttp_parse_query_str(query, &request->parameters) != 0) {
        as_error_set(error, "the query string is not of the form name=value&...");
        return -EINVAL;
    }
    return 0;
}

void api_parameters_deinit(struct api_request *request)
{
    evhttp_clear_headers(&request->parameters);
}

const char *api_parameter_find(const struct api_request *request, const char *name)
{
    const char *value = evhttp_find_header(&request->parameters, name);
    return as_str_is_empty(value) ? NULL : value;
}

int api_parameter_get_limit(const struct api_request *request, size_t fallback, size_t *limit_out,
                            struct as_error *error)
{
    const char *text = api_parameter_find(request, "limit");
    int64_t limit = (int64_t)fallback;
    if (text && (as_number_parse_i64(text, strlen(text), &limit) != 0 || limit < 1 ||
                 limit > API_LIMIT_MAX)) {
        as_error_set(error, "limit: expected a number from 1 to %d", API_LIMIT_MAX);
        return -EINVAL;
    }
    *limit_out = (size_t)limit;
    return 0;
}

int api_parameter_get_time(const struct api_request *request, const char *name,
                           as_maybe_time *time_out, struct as_error *error)
{
    const char *text = api_parameter_find(request, name);
    as_maybe_time time = {.set = text != NULL};
    double seconds;
    if (!text || as_wall_time_parse(text, strlen(text), &time.at) == 0) {
        *time_out = time;
        return 0;
    }
    if (as_number_parse_double(text, strlen(text), &seconds) == 0 && seconds >= 0 &&
        seconds < 253402300800.0) { /* the year 10000 */
        time.at.us = (int64_t)(seconds * (double)AS_US_PER_S);
        *time_out = time;
        return 0;
    }
    as_error_set(error, "%s: expected a time as 2026-11-20T10:00:00Z, or seconds since 1970", name);
    return -EINVAL;
}

char *api_decode_rest(const struct api_request *request)
{
    size_t size;
    char *text = evhttp_uridecode(request->rest, 0, &size);
    if (text && strlen(text) == size)
        return text;
    free(text);
    return NULL;
}
