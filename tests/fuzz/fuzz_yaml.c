/* Any bytes as a YAML document; and its diagnostics. */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/doc/yaml_tree.h>

#include "fuzz.h"

static void check_place(struct as_yaml_place place)
{
    FUZZ_CHECK(place.line > 0 && place.column > 0 && place.end_column > place.column);
}

static void check_node(const struct as_yaml_node *node, unsigned depth);

static void check_pairs(const struct as_yaml_node *map, unsigned depth)
{
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_pair *pair = &map->pairs[i];
        FUZZ_CHECK(pair->key->kind == AS_YAML_SCALAR);
        check_node(pair->key, depth);
        check_node(pair->value, depth);
        FUZZ_CHECK(as_yaml_find(map, pair->key->text) == pair->value);
    }
}

static void check_node(const struct as_yaml_node *node, unsigned depth)
{
    char found[AS_YAML_FOUND_SIZE];

    FUZZ_CHECK(depth <= AS_YAML_DEPTH_MAX);
    check_place(node->place);
    FUZZ_CHECK(*as_yaml_describe(node, found));
    if (node->kind == AS_YAML_MAP)
        check_pairs(node, depth + 1);
    for (uint32_t i = 0; node->kind == AS_YAML_LIST && i < node->count; i++)
        check_node(node->items[i], depth + 1);
    if (node->kind == AS_YAML_SCALAR) {
        FUZZ_CHECK(node->is_flawed || strlen(node->text) == node->size);
        FUZZ_CHECK(as_str_is_utf8(node->text, node->size));
    }
}

static void check_diagnostics(struct as_diagnostics *diagnostics)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    FUZZ_CHECK(out);
    as_diagnostics_sort(diagnostics);
    as_diagnostics_print(diagnostics, out);
    fclose(out);
    FUZZ_CHECK(as_str_is_utf8(text, size));
    free(text);
    for (size_t i = 0; i < diagnostics->count; i++)
        FUZZ_CHECK(*diagnostics->items[i].message && diagnostics->items[i].line > 0);
}

typedef int parse_fn(const char *file, const char *text, size_t size,
                     struct as_diagnostics *diagnostics, struct as_yaml_tree **tree_out);

static void check_parse(parse_fn *parse, const uint8_t *data, size_t size)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_yaml_tree *tree = NULL;
    int r = parse("x.yaml", (const char *)data, size, &diagnostics, &tree);

    FUZZ_CHECK(r == AS_YAML_OK || r == AS_YAML_FLAWED || r == -EINVAL);
    FUZZ_CHECK((r == AS_YAML_OK) == !diagnostics.has_error);
    FUZZ_CHECK((r < 0) == !tree);
    if (tree)
        check_node(as_yaml_get_root(tree), 0);
    check_diagnostics(&diagnostics);
    as_yaml_free(tree);
    as_diagnostics_deinit(&diagnostics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_parse(as_yaml_parse, data, size);
    check_parse(as_yaml_parse_foreign, data, size);
    return 0;
}
