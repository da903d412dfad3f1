/*
 * Prints the tables of keys, for test_keys.py: table, key, type, default; for providers "provider
 * TYPE", key, type, "required" or nothing. Separated by tabs.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/rules/provider_kind.h>
#include <alertscaler/rules/tables.h>

#include "rules/rule_tests_private.h"

static const char *const types[] = {
    [SCHEMA_STRING] = "text",
    [SCHEMA_TEXT] = "text",
    [SCHEMA_QUERY] = "text",
    [SCHEMA_NAME] = "name",
    [SCHEMA_PATH] = "path",
    [SCHEMA_URL] = "URL",
    [SCHEMA_BOOL] = "true or false",
    [SCHEMA_INT] = "integer",
    [SCHEMA_DURATION] = "duration",
    [SCHEMA_SIZE] = "size",
    [SCHEMA_PERCENT] = "percentage",
    [SCHEMA_STRINGS] = "list of texts",
    [SCHEMA_PATHS] = "list of paths",
    [SCHEMA_URLS] = "list of URLs",
    [SCHEMA_MAP] = "map",
    [SCHEMA_MAPS] = "list of maps",
    [SCHEMA_NAMED] = "map of names",
};

static void print_type(const struct schema_field *field)
{
    if (field->type == SCHEMA_CUSTOM) {
        fputs(field->expected, stdout);
        return;
    }
    if (field->type != SCHEMA_WORD) {
        fputs(types[field->type], stdout);
        return;
    }
    for (const char *const *word = field->words; *word; word++)
        printf("%s%s", word == field->words ? "" : word[1] ? ", " : " or ", *word);
}

static void print_fields(const struct schema *table, const struct schema *schema)
{
    for (const struct schema_field *field = schema->fields; field->key; field++) {
        printf("%s\t%s\t", table->name, field->key);
        print_type(field);
        const char *fallback = field->is_required ? "required" : field->fallback;
        printf("\t%s\n", fallback ? fallback : "");
    }
}

static void print_kind(const struct as_provider_kind *kind, const struct as_provider_key *key)
{
    for (; key->key; key++)
        printf("provider %s\t%s\t%s\t%s\n", kind->type, key->key,
               key->is_file  ? "path"
               : key->is_url ? "URL"
                             : "text",
               key->is_required ? "required" : "");
}

/* Of a kind of target: its key, and its table where it has one of its own. */
static void print_target_kind(const struct as_target_kind *kind)
{
    printf("target\t%s\tmap\t\n", kind->word);
    for (const struct as_address_key *row = kind->keys;
         as_target_kind_has_key(kind, "name") && row->is_valid; row++)
        printf("%s\t%s\t%s\t%s\n", kind->word, row->key,
               row->is_number ? "integer"
               : row->is_flag ? "boolean"
                              : "text",
               row->is_required ? "required"
               : row->fallback  ? row->fallback
                                : "");
}

static void print_table(const struct schema *schema)
{
    print_fields(schema, schema);
    if (schema->base == &schema_policy)
        print_fields(schema, schema->base);
}

int main(void)
{
    static const struct schema *const roots[] = {&schema_settings,
                                                 &schema_notify,
                                                 &schema_receiver,
                                                 &schema_web,
                                                 &schema_rule_file,
                                                 &schema_rule,
                                                 &schema_target,
                                                 &schema_policy,
                                                 &schema_provider,
                                                 &schema_http_config,
                                                 &schema_objects,
                                                 &schema_test_file,
                                                 &schema_test,
                                                 &schema_test_state,
                                                 &schema_test_pod,
                                                 &schema_test_container,
                                                 &schema_test_nodes,
                                                 &schema_test_resources,
                                                 &schema_test_input,
                                                 &schema_test_query,
                                                 &schema_test_expect,
                                                 &schema_test_cluster,
                                                 &schema_test_cluster_pods,
                                                 &schema_test_cluster_nodes};
    static const struct schema *const *const lists[] = {
        schema_settings_parts, schema_notify_parts, schema_http_parts, schema_receiver_parts,
        schema_web_parts,      schema_target_parts, schema_rule_parts, schema_object_parts};
    for (size_t i = 0; i < AS_ARRAY_SIZE(roots); i++)
        print_table(roots[i]);
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        for (size_t j = 0; lists[i][j]; j++)
            print_table(lists[i][j]);
    }
    for (size_t i = 0; as_target_kinds[i]; i++)
        if (as_target_kinds[i] != &as_target_kind_pool) /* nobody writes its address: its name */
            print_target_kind(as_target_kinds[i]);
    for (size_t i = 0; as_provider_kinds[i]; i++) {
        if (as_provider_kinds[i]->has_url_groups) /* in docs/targets.md, without a table of keys */
            continue;
        print_kind(as_provider_kinds[i], as_provider_kinds[i]->account_keys);
        print_kind(as_provider_kinds[i], as_provider_kinds[i]->group_keys);
    }
    return 0;
}
