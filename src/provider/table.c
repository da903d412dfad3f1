/*
 * The table of providers: one row each.
 */
#include "providers.h"

#include <string.h>

#include <alertscaler/provider/group.h>

static const struct as_group_provider *const table[] = {
    &provider_aws,
};

const struct as_group_provider *as_group_provider_find(const char *type)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        if (strcmp(table[i]->type, type) == 0)
            return table[i];
    }
    return NULL;
}
