/*
 * Names of credentials in answers. A credential that is narrowed by `targets` or `rules` sees its
 * own name, and "another credential" in place of other names. All other credentials see all names.
 */
#ifndef ALERTSCALER_SRC_UI_API_NAMES_H
#define ALERTSCALER_SRC_UI_API_NAMES_H

#include <jansson.h>

#include "api_private.h"

/* What the reader sees of the name: itself, or a neutral text. */
const char *api_show_credential(const struct api_request *request, const char *name);
/* The same for all names in a record of the action log, in place. */
void api_hide_credentials(const struct api_request *request, json_t *record);

#endif
