/*
 * YAML that is written: whatever is in a tree, reading what was written gives the same tree.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <alertscaler/doc/yaml_text.h>
#include <alertscaler/doc/yaml_tree.h>

#define TEXT_MAX ((size_t)64 * 1024)

static struct as_yaml_tree *read_tree(const char *text)
{
    AS_CLEANUP(as_diagnostics_deinit) struct as_diagnostics diagnostics = {0};
    struct as_yaml_tree *tree = NULL;
    cr_assert_eq(as_yaml_parse("a.yaml", text, strlen(text), &diagnostics, &tree), AS_YAML_OK,
                 "%s: %s", text, diagnostics.count ? diagnostics.items[0].message : "");
    return tree;
}

static void expect_same(const struct as_yaml_node *a, const struct as_yaml_node *b)
{
    cr_assert_eq(a->kind, b->kind);
    if (a->kind == AS_YAML_SCALAR) {
        cr_expect_str_eq(a->text, b->text);
        return;
    }
    cr_assert_eq(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->kind == AS_YAML_LIST) {
            expect_same(a->items[i], b->items[i]);
        } else {
            expect_same(a->pairs[i].key, b->pairs[i].key);
            expect_same(a->pairs[i].value, b->pairs[i].value);
        }
    }
}

static void expect_written(const char *text, const char *expected)
{
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = read_tree(text), *again = NULL;
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(TEXT_MAX);
    yaml_append_map(&out, as_yaml_get_root(tree));
    cr_assert_eq(as_buf_check(&out), 0);
    if (expected)
        cr_expect_str_eq(out.data, expected);
    again = read_tree(out.data);
    expect_same(as_yaml_get_root(tree), as_yaml_get_root(again));
}

Test(yaml_text, maps_and_lists_are_blocks)
{
    expect_written(
        "# a comment\n{name: slow, match: ['a=\"b\"', c], up: {by: 50%, to: [[1, 2], []]}}",
        "name: slow\n"
        "match:\n"
        "  - 'a=\"b\"'\n"
        "  - c\n"
        "up:\n"
        "  by: 50%\n"
        "  to:\n"
        "    -\n"
        "      - 1\n"
        "      - 2\n"
        "    - []\n");
    expect_written("steps:\n- {above: 1, by: 2}\n- above: 5\n  by: {}\n", "steps:\n"
                                                                          "  - above: 1\n"
                                                                          "    by: 2\n"
                                                                          "  - above: 5\n"
                                                                          "    by: {}\n");
}

Test(yaml_text, lines_are_a_block)
{
    expect_written("query: |\n  sum(x)\n    by (y)\n", "query: |\n  sum(x)\n    by (y)\n");
    expect_written("query: |\n  up\n", "query: |\n  up\n");
    expect_written("query: |-\n  a\n\n  b\nlast: 1\n", "query: |-\n  a\n\n  b\nlast: 1\n");
    expect_written("a:\n  - query: |-\n      a\n      b\n",
                   "a:\n  - query: |-\n      a\n      b\n");
}

Test(yaml_text, each_text_stays_itself)
{
    static const char *const texts[] = {
        "a: ''\nb:\nc: ~\nd: 'null'\ne: '5'\nf: 5\ng: \"yes\"\n",
        "a: \"\\n\"\nb: \"\\n\\n\"\nc: \"x\\n\\n\"\nd: \" x\\ny\"\ne: \"x \\ny\"\nf: \"x\\n \"\n",
        "a: 'it''s'\nb: \"# no\"\nc: ': '\nd: '- a'\ne: '{{ .Labels.a }}'\nf: '</pre>'\n",
        "a: \"\\u00e9\\u2028\\x07\"\nb: \"\\U0001F600\"\nc: \xc3\xa9\n",
        "'a: b': 1\n'': 2\n\"x\\ny\": 3\n'#': 4\n",
        "a: x\n  y\n\n  z\nb: a:b#c\nc: http://x/?a=b\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        expect_written(texts[i], NULL);
}
