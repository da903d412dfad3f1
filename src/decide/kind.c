/*
 * Looking up kinds of targets and their keys.
 */
#include <alertscaler/decide/target_kind.h>

#include <assert.h>
#include <string.h>

const struct as_target_kind *as_target_kind_find(const char *word)
{
    for (size_t i = 0; as_target_kinds[i]; i++) {
        if (strcmp(as_target_kinds[i]->word, word) == 0)
            return as_target_kinds[i];
    }
    return NULL;
}

const struct as_target_kind *as_target_kind_find_of_id(const char *id)
{
    for (size_t i = 0; as_target_kinds[i]; i++) {
        const size_t size = strlen(as_target_kinds[i]->word);
        if (strncmp(as_target_kinds[i]->word, id, size) == 0 && id[size] == '/')
            return as_target_kinds[i];
    }
    return NULL;
}

size_t as_target_kind_get_index(const struct as_target_kind *kind)
{
    size_t i = 0;
    while (as_target_kinds[i] != kind) {
        assert(as_target_kinds[i]); /* every kind is in the table */
        i++;
    }
    return i;
}

const struct as_address_key *as_target_kind_find_key(const struct as_target_kind *kind,
                                                     const char *key)
{
    for (const struct as_address_key *row = kind->keys; row->is_valid; row++) {
        if (!row->key || strcmp(row->key, key) == 0)
            return row;
    }
    return NULL;
}

const char *as_allow_get_word(enum as_allow allow)
{
    static const char *const words[AS_ALLOW_COUNT] = {
        [AS_ALLOW_CLUSTERS] = "clusters", [AS_ALLOW_API_VERSIONS] = "apiVersions",
        [AS_ALLOW_KINDS] = "kinds",       [AS_ALLOW_NAMESPACES] = "namespaces",
        [AS_ALLOW_NAMES] = "names",       [AS_ALLOW_URLS] = "urls",
    };
    return words[allow];
}

enum as_allow as_target_kind_find_allow(const struct as_target_kind *kind, const char *key)
{
    enum as_allow i = 0;
    while (i < AS_ALLOW_COUNT && !(kind->allow[i] && strcmp(kind->allow[i], key) == 0))
        i++;
    return i;
}

bool as_target_kind_has_key(const struct as_target_kind *kind, const char *key)
{
    const struct as_address_key *row = as_target_kind_find_key(kind, key);
    return row && row->key;
}

bool as_target_kind_has_sized(const struct as_target_kind *kind)
{
    const struct as_address_key *row = kind->keys;
    while (row->is_valid && !row->is_sized)
        row++;
    return row->is_valid;
}
