/*
 * The body of an HTTP answer, read while it arrives.
 */
#ifndef ALERTSCALER_PORT_HTTP_BODY_H
#define ALERTSCALER_PORT_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>

#define AS_HTTP_PART_MAX ((size_t)64 * 1024) /* bytes of one call in one turn of the loop */

/*
 * Called first when the head of a 2xx answer is there, maybe with 0 bytes; then with each part of
 * the body, in order. What has arrived is read before `done`, also when the call has failed.
 *
 * `context` is that of `done`. `content_type` is "" where absent. `bytes` is valid during the call
 * and has no NUL behind it. The function may start and cancel any call, its own too. False ends the
 * call as AS_HTTP_BROKEN.
 */
typedef bool as_http_body_fn(void *context, const char *content_type, const char *bytes,
                             size_t size);

#endif
