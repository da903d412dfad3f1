/*
 * --web.external-url: the address under which browsers and other programs reach alertscaler, maybe
 * through a proxy.
 *
 * All links that are sent out begin with `base`: append a path that begins with "/", for example
 * "/decisions/01J...". Links within a page begin with the path alone, so that they also work in a
 * browser that reached this page by another address (kubectl port-forward).
 */
#ifndef ALERTSCALER_RULES_EXTERNAL_URL_H
#define ALERTSCALER_RULES_EXTERNAL_URL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/url.h>

#define AS_EXTERNAL_URL_SIZE 1024 /* with NUL */

struct as_external_url {
    /* Scheme, host and port as a browser sends them in `Origin`: lower case, no usual port. */
    char origin[AS_URL_HOST_SIZE + 32];
    char base[AS_EXTERNAL_URL_SIZE]; /* origin and path, without "/" at the end */
    bool is_https;
};

/* "" or "/scaler", for example; only letters, digits and -._~/ */
static inline const char *as_external_url_get_path(const struct as_external_url *url)
{
    return url->base + strlen(url->origin);
}

/* 0; or -EINVAL with an error that says what is wrong. */
int as_external_url_parse(const char *text, struct as_external_url *url_out,
                          struct as_error *error) AS_MUST_USE;

/* --web.route-prefix: as the path above; "/" gives "". 0; or -EINVAL with an error. */
int as_route_prefix_parse(const char *text, char prefix_out[AS_EXTERNAL_URL_SIZE],
                          struct as_error *error) AS_MUST_USE;

/* Without the option: "http://HOST:PORT". HOST is the one of --web.listen-address, or this host's
 * name if alertscaler listens on all addresses. */
void as_external_url_make_default(const char *listen_address, uint16_t port, bool is_https,
                                  struct as_external_url *url_out);

#endif
