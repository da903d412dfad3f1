/*
 * The types of providers, and their keys: see rules/provider_kind.h.
 */
#include <alertscaler/rules/provider_kind.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/rules/tables.h>

const char *const provider_usual_keys[] = {"type", "timeout", "http_config", NULL};
const char *const provider_login_keys[] = {"basic_auth", "authorization", "oauth2",       "sigv4",
                                           "azuread",    "google_iam",    "http_headers", NULL};

const struct as_provider_kind *as_provider_kind_find(const char *type)
{
    for (size_t i = 0; as_provider_kinds[i]; i++) {
        if (strcmp(as_provider_kinds[i]->type, type) == 0)
            return as_provider_kinds[i];
    }
    return NULL;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void provider_kind_list(const char *words_out[PROVIDER_TYPES_MAX + 1])
{
    size_t count = 0;
    for (size_t i = 0; as_provider_kinds[i] && count < PROVIDER_TYPES_MAX; i++)
        words_out[count++] = as_provider_kinds[i]->type;
    qsort(words_out, count, sizeof(*words_out), compare_words);
    words_out[count] = NULL;
}

enum as_place provider_key_get_place(const struct as_provider_kind *kind, const char *key)
{
    enum as_place place = AS_PLACE_NONE;
    for (size_t i = 0; as_provider_kinds[i] && place == AS_PLACE_NONE; i++) {
        const struct as_provider_key *row;
        if ((!kind || kind == as_provider_kinds[i]) &&
            provider_key_find(as_provider_kinds[i]->group_keys, key, &row))
            place = row->place;
    }
    return place;
}

bool provider_key_find(const struct as_provider_key *keys, const char *key,
                       const struct as_provider_key **key_out)
{
    for (*key_out = keys; (*key_out)->key; ++*key_out) {
        if (strcmp((*key_out)->key, key) == 0)
            return true;
    }
    return false;
}

void provider_key_report(struct loader *loader, const struct as_provider_kind *kind,
                         const struct as_provider_key *keys, const char *const *others,
                         const struct as_yaml_node *key)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    struct suggestion suggestion = suggestion_start(key->text);
    for (; keys->key; keys++)
        suggestion_offer(&suggestion, keys->key);
    for (; *others; others++)
        suggestion_offer(&suggestion, *others);
    loader_report(loader, key, "unknown key %s for a provider of type %s%s",
                  as_yaml_describe(key, found), kind->type, suggestion_print(&suggestion, hint));
}

bool provider_keys_check(struct loader *loader, const struct as_provider_kind *kind,
                         const struct as_provider_key *keys, const struct as_yaml_node *map,
                         const struct as_yaml_node *at)
{
    bool is_good = true;
    for (; keys->key; keys++) {
        if (!keys->is_required || as_yaml_find(map, keys->key))
            continue;
        loader_report(loader, at, "key `%s` is missing: a provider of type %s needs it", keys->key,
                      kind->type);
        is_good = false;
    }
    return is_good;
}
