/*
 * The words that name what this version does not have: they are read and checked like all others,
 * and refused where something would need them, so that nothing is ever silently ignored.
 */
#include <string.h>

#include "tables.h"

static const struct {
    const char *table, *key, *word;
} rows[] = {
    {"providers", "type", "alibaba"},      {"providers", "type", "aws"},
    {"providers", "type", "azure"},        {"providers", "type", "baidu"},
    {"providers", "type", "digitalocean"}, {"providers", "type", "equinix"},
    {"providers", "type", "externalgrpc"}, {"providers", "type", "gce"},
    {"providers", "type", "gke"},          {"providers", "type", "magnum"},
};

bool is_unsupported(const char *table, const char *key, const char *word)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].table, table) == 0 && strcmp(rows[i].key, key) == 0 &&
            (!word || strcmp(rows[i].word, word) == 0))
            return true;
    }
    return false;
}
