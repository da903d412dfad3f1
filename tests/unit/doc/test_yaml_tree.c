/*
 * The YAML tree: places, errors, and limits.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/doc/yaml_tree.h>

static struct as_diagnostics diagnostics;
static struct as_yaml_tree *tree;

static int parse_bytes(const char *text, size_t size)
{
    tree = as_yaml_free(tree);
    as_diagnostics_deinit(&diagnostics);
    return as_yaml_parse("x.yaml", text, size, &diagnostics, &tree);
}

static int parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static void teardown(void)
{
    tree = as_yaml_free(tree);
    as_diagnostics_deinit(&diagnostics);
}

TestSuite(yaml_tree, .fini = teardown);

/* "line:column-end" */
static const char *show_place(const struct as_yaml_node *node)
{
    static char text[64];
    snprintf(text, sizeof(text), "%u:%u-%u", node->place.line, node->place.column,
             node->place.end_column);
    return text;
}

/* Every key and value knows where it stands, in characters from 1, in block and flow style. */
Test(yaml_tree, places)
{
    cr_assert_eq(parse("# a comment\n"
                       "targets:\n"
                       "  \xC3\xA4rger: {min: 2, \"max\": 20}\n"
                       "list:\n"
                       "- one\n"
                       "- 'two'\n"
                       "empty:\n"),
                 AS_YAML_OK);
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    cr_assert_eq(root->kind, AS_YAML_MAP);
    cr_assert_eq(root->count, 3);
    cr_assert_str_eq(show_place(root), "2:1-2");
    const struct as_yaml_node *targets = as_yaml_find(root, "targets");
    cr_assert_str_eq(show_place(targets->pairs[0].key), "3:3-8");
    const struct as_yaml_node *map = targets->pairs[0].value;
    cr_assert_str_eq(show_place(map), "3:10-11");
    cr_assert_str_eq(show_place(map->pairs[1].key), "3:19-24");
    cr_assert_str_eq(show_place(as_yaml_find(map, "max")), "3:26-28");
    const struct as_yaml_node *list = as_yaml_find(root, "list");
    cr_assert_eq(list->count, 2);
    cr_assert_str_eq(list->items[1]->text, "two");
    cr_assert(list->items[0]->is_plain);
    cr_assert_not(list->items[1]->is_plain);
    cr_assert_str_eq(show_place(list->items[1]), "6:3-8");
    cr_assert(as_yaml_is_null(as_yaml_find(root, "empty")));
    cr_assert_str_eq(show_place(as_yaml_find(root, "empty")), "7:7-8");
    cr_assert_null(as_yaml_find(root, "none"));
    cr_assert_null(as_yaml_find(list, "none"));
    cr_assert_null(as_yaml_find(NULL, "none"));
}

/* What plain YAML does not have is refused at its place; where the rest can be read, it is. */
Test(yaml_tree, refused)
{
    static const struct {
        const char *text;
        int result;
        unsigned line, column;
        const char *message; /* a part of it */
    } cases[] = {
        {"", -EINVAL, 1, 1, "empty"},
        {"# only a comment\n", -EINVAL, 1, 1, "empty"},
        {"a: &x 1\n", AS_YAML_FLAWED, 1, 4, "anchors"},
        {"a: [*x]\n", AS_YAML_FLAWED, 1, 5, "aliases"},
        {"a: !!str 1\n", AS_YAML_FLAWED, 1, 4, "tags"},
        {"a: ! 1\n", AS_YAML_FLAWED, 1, 4, "tags"},
        {"a: !x {b: 1}\n", AS_YAML_FLAWED, 1, 4, "tags"},
        {"a: &x [1]\n", AS_YAML_FLAWED, 1, 4, "anchors"},
        {"a: 1\n<<: {b: 1}\n", AS_YAML_FLAWED, 2, 1, "merge keys"},
        {"a: 1\nb: 2\na: 3\n", AS_YAML_FLAWED, 3, 1, "twice, first on line 1"},
        {"{b: 1}: 2\n", AS_YAML_FLAWED, 1, 1, "a key must be text"},
        {"a: {{ .Labels.x }}\n", AS_YAML_FLAWED, 1, 5, "a template must stand in quotes"},
        {"a: 1\n---\nb: 2\n", -EINVAL, 2, 1, "second document"},
        {"a: 1\n...\n---\n", -EINVAL, 3, 1, "second document"},
        {"a:\n\tb: 1\n", -EINVAL, 2, 1, "not tabs"},
        {"a: @x\n", -EINVAL, 1, 4, "must stand in quotes"},
        {"a: [1\n", -EINVAL, 2, 1, "not valid YAML"},
        {"a: b: c\n", -EINVAL, 1, 5, "not valid YAML"},
        {"a: \"\\x\"\n", -EINVAL, 1, 7, "not valid YAML"},
        {"a: \"\\0\"\n", AS_YAML_FLAWED, 1, 4, "NUL"},
        {"a: \x01\n", -EINVAL, 1, 4, "control character"},
        {"a: \x7F\n", -EINVAL, 1, 4, "control character"},
        {"\xC3\xA4: \xFF\n", -EINVAL, 1, 4, "UTF-8"},
        {"a: \xC0\x80\n", -EINVAL, 1, 4, "UTF-8"},
        {"\xFF\xFE\x61", -EINVAL, 1, 1, "UTF-8"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int r = parse(cases[i].text);
        cr_assert_eq(r, cases[i].result, "%s: result %d", cases[i].text, r);
        cr_assert(diagnostics.has_error && diagnostics.count == 1, "%s: %zu diagnostics",
                  cases[i].text, diagnostics.count);
        const struct as_diagnostic *item = &diagnostics.items[0];
        cr_assert(item->line == cases[i].line && item->column == cases[i].column, "%s: at %u:%u",
                  cases[i].text, item->line, item->column);
        cr_assert(strstr(item->message, cases[i].message), "%s: %s", cases[i].text, item->message);
    }
}

Test(yaml_tree, nul_byte)
{
    cr_assert_eq(parse_bytes("a: 1\nb: \0c\n", 11), -EINVAL);
    cr_assert_eq(diagnostics.items[0].line, 2);
    cr_assert_eq(diagnostics.items[0].column, 4);
    cr_assert(strstr(diagnostics.items[0].message, "NUL"));
}

/* Of two values for one key the first is kept, and other keys are found all the same. */
Test(yaml_tree, flawed_tree_can_be_read)
{
    cr_assert_eq(parse("a: 1\nb: *x\na: 2\n<<: 3\nc: 4\n"), AS_YAML_FLAWED);
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    cr_assert_eq(root->count, 3);
    cr_assert_str_eq(as_yaml_find(root, "a")->text, "1");
    cr_assert_str_eq(as_yaml_find(root, "c")->text, "4");
    cr_assert_eq(diagnostics.count, 3);
    as_yaml_report(tree, as_yaml_find(root, "b"), AS_YAML_SHOW, &diagnostics, "again");
    cr_assert_eq(diagnostics.count, 3, "a flawed node is reported once");
}

/* 32 levels are read, 33 are not, however deep the file goes on. */
Test(yaml_tree, depth)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(1 << 20);
    for (int i = 0; i < 32; i++)
        as_buf_append_char(&text, '[');
    for (int i = 0; i < 32; i++)
        as_buf_append_char(&text, ']');
    cr_assert_eq(parse(text.data), AS_YAML_OK);
    as_buf_clear(&text);
    for (int i = 0; i < 500000; i++)
        as_buf_append_char(&text, '[');
    cr_assert_eq(parse(text.data), -EINVAL);
    cr_assert_eq(diagnostics.items[0].column, 33);
    as_buf_clear(&text);
    for (int i = 0; i < 1000; i++)
        as_buf_printf(&text, "%*s- \n", i, "");
    cr_assert_eq(parse(text.data), -EINVAL);
}

/* A million values is the limit; a file at the limit of size with an error on one long line ends
 * at once. */
Test(yaml_tree, size)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(32 << 20);
    as_buf_append_char(&text, '[');
    for (int i = 0; i < AS_YAML_NODES_MAX; i++)
        as_buf_append_str(&text, "1,");
    as_buf_append_char(&text, ']');
    cr_assert_eq(parse(text.data), -EINVAL);
    cr_assert(strstr(diagnostics.items[0].message, "1000000"), "%s", diagnostics.items[0].message);

    as_buf_clear(&text);
    as_buf_append_char(&text, '{');
    for (int i = 0; i < 20000; i++)
        as_buf_append_str(&text, "a: 1, ");
    as_buf_append_char(&text, '}');
    cr_assert_eq(parse(text.data), AS_YAML_FLAWED);
    cr_assert_eq(diagnostics.count, AS_DIAGNOSTICS_MAX);
    cr_assert_eq(diagnostics.more, 19999 - AS_DIAGNOSTICS_MAX);

    as_buf_clear(&text);
    while (text.size <= AS_YAML_SIZE_MAX)
        as_buf_append_str(&text, "# a comment of some length that goes on and on\n");
    cr_assert_eq(parse_bytes(text.data, text.size), -EINVAL);
    cr_assert(strstr(diagnostics.items[0].message, "16 MiB"));
}

Test(yaml_tree, files)
{
    cr_assert_eq(as_yaml_load("/", &diagnostics, &tree), -EISDIR);
    cr_assert_eq(as_yaml_load("/nowhere/x.yaml", &diagnostics, &tree), -ENOENT);
    cr_assert_eq(as_yaml_load("/dev/zero", &diagnostics, &tree), -EMEDIUMTYPE);
    cr_assert_eq(diagnostics.count, 3);
    cr_assert_eq(diagnostics.items[0].line, 0);
    cr_assert_str_eq(diagnostics.items[1].file, "/nowhere/x.yaml");
    cr_assert(strstr(diagnostics.items[1].message, "No such file"));
    cr_assert_eq(as_yaml_input_load("/dev/null", &diagnostics, &tree), -EINVAL);
}

static int parse_foreign(const char *text)
{
    tree = as_yaml_free(tree);
    as_diagnostics_deinit(&diagnostics);
    return as_yaml_parse_foreign("x.yaml", text, strlen(text), &diagnostics, &tree);
}

static const char *find_text(const struct as_yaml_node *node, const char *key)
{
    const struct as_yaml_node *value = as_yaml_find(node, key);
    return value && value->kind == AS_YAML_SCALAR ? value->text : NULL;
}

/* In files of other programs an alias is the node it stands for, at that node's place, and the last
 * anchor of a name counts. */
Test(yaml_tree, foreign_aliases)
{
    cr_assert_eq(parse_foreign("first: &x {a: 1}\n"
                               "again: *x\n"
                               "then: &x two\n"
                               "last: [*x, &y !!str 3, *y]\n"),
                 AS_YAML_OK);
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    cr_assert_eq(as_yaml_find(root, "again"), as_yaml_find(root, "first"));
    cr_assert_str_eq(show_place(as_yaml_find(as_yaml_find(root, "again"), "a")), "1:15-16");
    const struct as_yaml_node *last = as_yaml_find(root, "last");
    cr_assert_str_eq(last->items[0]->text, "two");
    cr_assert_eq(last->items[2], last->items[1]);
    cr_assert(last->items[0]->is_plain);
    cr_assert_not(last->items[1]->is_plain, "a tag made it text");
}

/* A map's own keys come before merged ones, and an earlier map under << before a later one. */
Test(yaml_tree, foreign_merge_keys)
{
    cr_assert_eq(parse_foreign("a: &a {x: a, y: a}\n"
                               "b: &b {x: b, z: b}\n"
                               "one: {<<: *a, y: own}\n"
                               "two: {<<: [*b, *a], w: own}\n"
                               "quoted: {'<<': text}\n"),
                 AS_YAML_OK);
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    const struct as_yaml_node *one = as_yaml_find(root, "one"), *two = as_yaml_find(root, "two");
    cr_assert_eq(one->count, 2);
    cr_assert_str_eq(find_text(one, "x"), "a");
    cr_assert_str_eq(find_text(one, "y"), "own");
    cr_assert_eq(two->count, 4);
    cr_assert_str_eq(find_text(two, "x"), "b");
    cr_assert_str_eq(find_text(two, "y"), "a");
    cr_assert_str_eq(find_text(two, "z"), "b");
    cr_assert_str_eq(find_text(as_yaml_find(root, "quoted"), "<<"), "text");
}

/* What is wrong in files of other programs too. */
Test(yaml_tree, foreign_refusals)
{
    static const struct {
        const char *text, *message;
        uint32_t line, column;
        int outcome;
    } rows[] = {
        {"a: *x", "an alias (*) of what is not named above with &", 1, 4, -EINVAL},
        {"a: &x [1, *x]", "an alias (*) of what it stands in itself", 1, 11, -EINVAL},
        {"a: {<<: text}", "expected a map, or a list of maps, behind <<", 1, 9, AS_YAML_FLAWED},
        {"a: &x {k: 1, k: 2}", "key `k` is given twice, first on line 1", 1, 14, AS_YAML_FLAWED},
        {"a: 1\n---\nb: 2", "a second document; a file holds one", 2, 1, -EINVAL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert_eq(parse_foreign(rows[i].text), rows[i].outcome, "%s", rows[i].text);
        cr_assert_eq(diagnostics.count, 1);
        cr_assert_str_eq(diagnostics.items[0].message, rows[i].message);
        cr_assert_eq(diagnostics.items[0].line, rows[i].line, "%s", rows[i].text);
        cr_assert_eq(diagnostics.items[0].column, rows[i].column, "%s", rows[i].text);
    }
}

/* A text without a document holds nothing, which is no error there. */
Test(yaml_tree, foreign_nothing)
{
    cr_assert_eq(parse_foreign("# off\n"), AS_YAML_OK);
    cr_assert(as_yaml_is_null(as_yaml_get_root(tree)));
    cr_assert_eq(parse("# off\n"), -EINVAL);
}

/* Aliases count as what they stand for, in values and in levels, so that walking the tree ends. */
Test(yaml_tree, foreign_aliases_are_bounded)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT((size_t)1 << 20);
    as_buf_append_str(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i <= 6; i++) {
        as_buf_printf(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            as_buf_printf(&text, "%s*a%d", k ? ", " : "", i - 1);
        as_buf_append_str(&text, "]\n");
    }
    cr_assert_eq(parse_foreign(text.data), -EINVAL);
    cr_assert_str_eq(diagnostics.items[0].message, "the file holds more than 1000000 values");

    as_buf_clear(&text);
    as_buf_append_str(&text, "a0: &a0 [x]\n");
    for (int i = 1; i <= 32; i++)
        as_buf_printf(&text, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    cr_assert_eq(parse_foreign(text.data), -EINVAL);
    cr_assert_str_eq(diagnostics.items[0].message, "nested too deeply (more than 32 levels)");
    cr_assert_eq(diagnostics.items[0].line, 32, "the root map is a level too");
}
