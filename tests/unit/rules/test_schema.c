/*
 * The tables of keys: consistent, with suggestions for unknown words.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include <alertscaler/rules/tables.h>

static const struct schema *const roots[] = {
    &schema_settings, &schema_receiver, &schema_web,      &schema_rule_file,   &schema_rule,
    &schema_target,   &schema_policy,   &schema_provider, &schema_http_config, &schema_objects};
static const struct schema *const *const lists[] = {
    schema_settings_parts, schema_http_parts, schema_receiver_parts, schema_web_parts,
    schema_target_parts,   schema_rule_parts, schema_object_parts};

static void check_field(const struct schema *schema, const struct schema_field *field)
{
    cr_expect(!field->is_required || !field->fallback, "%s.%s: required, with a default",
              schema->name, field->key);
    cr_expect(field->min <= field->max || field->max == 0, "%s.%s: range", schema->name,
              field->key);
    cr_expect_eq(field->type == SCHEMA_CUSTOM, field->parse != NULL, "%s.%s: parse", schema->name,
                 field->key);
    cr_expect_eq(field->type == SCHEMA_CUSTOM, field->expected != NULL, "%s.%s: expected",
                 schema->name, field->key);
    cr_expect_eq(field->type == SCHEMA_WORD, field->words != NULL, "%s.%s: words", schema->name,
                 field->key);
    bool is_map =
        field->type == SCHEMA_MAP || field->type == SCHEMA_MAPS || field->type == SCHEMA_NAMED;
    cr_expect_eq(is_map, field->map != NULL, "%s.%s: map", schema->name, field->key);
    for (const struct schema_field *other = schema->fields; other != field; other++)
        cr_expect_str_neq(other->key, field->key, "%s.%s: twice", schema->name, field->key);
    for (const struct schema_refusal *row = schema->refusals; row && row->key; row++)
        cr_expect_str_neq(row->key, field->key, "%s.%s: refused too", schema->name, field->key);
}

/* What a message shows can be read. */
static void check_example(const struct schema *schema)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_arena arena = AS_ARENA_INIT;
    struct as_yaml_tree *tree = NULL;
    cr_assert_eq(
        as_yaml_parse("example", schema->example, strlen(schema->example), &diagnostics, &tree),
        AS_YAML_OK, "%s: %s", schema->name, schema->example);
    struct loader loader = {
        .tree = tree, .diagnostics = &diagnostics, .arena = &arena, .folder = ""};
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    void *object = as_arena_alloc(&arena, 1, schema->size);
    schema_fill_defaults(&loader, schema, object);
    schema_parse(&loader, schema, root, root, object);
    cr_expect_eq(diagnostics.count, 0, "%s: %s: %s", schema->name, schema->example,
                 diagnostics.count > 0 ? diagnostics.items[0].message : "");
    if (strcmp(schema->name, "watchdog") == 0) { /* alone has memory outside of the arena */
        const struct as_receiver_settings *receiver = object;
        for (size_t i = 0; i < receiver->watchdog_count; i++)
            as_matcher_deinit(&receiver->watchdog[i]);
    }
    as_yaml_free(tree);
    as_arena_deinit(&arena);
    as_diagnostics_deinit(&diagnostics);
}

static void check_schema(const struct schema *schema)
{
    if (schema->example)
        check_example(schema);
    cr_expect_not_null(schema->name);
    cr_expect_gt(schema->size, 0, "%s", schema->name);
    for (const struct schema_field *field = schema->fields; field->key; field++)
        check_field(schema, field);
}

Test(schema, tables)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(roots); i++)
        check_schema(roots[i]);
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        for (size_t j = 0; lists[i][j]; j++)
            check_schema(lists[i][j]);
    }
}

/* The order of two values in an id is then never that of the file. */
Test(schema, no_two_keys_of_a_group_tell_the_same_place)
{
    for (size_t i = 0; as_provider_kinds[i]; i++) {
        bool is_told[AS_PLACE_COUNT] = {false};
        for (const struct as_provider_key *key = as_provider_kinds[i]->group_keys; key->key;
             key++) {
            cr_expect(key->place == AS_PLACE_NONE || !is_told[key->place], "%s: %s",
                      as_provider_kinds[i]->type, key->key);
            is_told[key->place] = true;
        }
    }
}

/* A near miss is helped, anything else is not. */
Test(schema, suggestions)
{
    static const struct {
        const char *word, *best;
    } cases[] = {
        {"mx", "max"},
        {"maxx", "max"},
        {"MAX", NULL},
        {"ax", "max"},
        {"coldown", "cooldown"},
        {"cool_down", "cooldown"},
        {"cooldonw", "cooldown"},
        {"replicas", NULL},
        {"x", NULL},
        {"", NULL},
        {"enforcebound", "enforce_bounds"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct suggestion suggestion = suggestion_start(cases[i].word);
        suggestion_offer(&suggestion, "max");
        suggestion_offer(&suggestion, "cooldown");
        suggestion_offer(&suggestion, "enforce_bounds");
        cr_expect(as_str_equal(suggestion.best, cases[i].best), "%s: %s", cases[i].word,
                  suggestion.best ? suggestion.best : "nothing");
    }
}

Test(schema, names)
{
    char long_name[SCHEMA_NAME_MAX + 2];
    memset(long_name, 'a', sizeof(long_name));
    long_name[SCHEMA_NAME_MAX + 1] = '\0';
    cr_assert_not(schema_is_name(long_name));
    long_name[SCHEMA_NAME_MAX] = '\0';
    cr_assert(schema_is_name(long_name));
    cr_assert(schema_is_name("a.B_c-9"));
    static const char *const bad[] = {"", "a b", "a/b", "\xC3\xA4", "a\n", "a:b"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++)
        cr_assert_not(schema_is_name(bad[i]), "%s", bad[i]);
}

/* What may be written as a type: in order, each once, `http` among them; kinds are found by it. */
Test(schema, provider_types)
{
    const char *words[PROVIDER_TYPES_MAX + 1];
    bool has_http = false;
    provider_kind_list(words);
    for (size_t i = 0; words[i]; i++) {
        cr_assert(i == 0 || strcmp(words[i - 1], words[i]) < 0, "%s", words[i]);
        has_http = has_http || strcmp(words[i], "http") == 0;
    }
    cr_assert(has_http);
    cr_assert_not_null(as_provider_kind_find("http"));
    cr_assert_null(as_provider_kind_find("htttp"));
    for (size_t i = 0; as_provider_kinds[i]; i++)
        cr_assert_eq(as_provider_kind_find(as_provider_kinds[i]->type), as_provider_kinds[i]);
}
