/*
 * Texts with their own syntax (matchers, templates): an error is shown at its place inside the
 * text, if the text stands unchanged in the file.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#include <alertscaler/rules/tables.h>

/* "offset 12: expected ..." */
static bool split_offset(const char *text, size_t *offset_out, const char **message_out)
{
    static const char prefix[] = "offset ";
    if (!as_str_starts_with(text, prefix))
        return false;
    const char *digits = text + sizeof(prefix) - 1;
    size_t size = strspn(digits, "0123456789");
    int64_t offset = 0;
    if (as_number_parse_i64(digits, size, &offset) < 0 || strncmp(digits + size, ": ", 2) != 0)
        return false;
    *offset_out = (size_t)offset;
    *message_out = digits + size + 2;
    return true;
}

void report_in_text(struct loader *loader, const struct as_yaml_node *node, const char *text)
{
    size_t offset = 0;
    const char *message = NULL;
    struct as_yaml_node inside = *node;
    if (split_offset(text, &offset, &message) &&
        as_yaml_find_inside(loader->tree, node, offset, &inside.place))
        loader_report(loader, &inside, "%s", message);
    else
        loader_report(loader, node, "%s", text);
}

/*
 * The usual mistakes in lists of matchers, with the list as it is written: a map of labels, one
 * text for the whole list, several matchers in one entry.
 */

#define LIST_MAX ((size_t)300) /* bytes of a list that a message shows */

/* Adds one entry in single quotes. False: it is no matcher, or has a single quote. */
static bool texts_add_entry(struct as_buf *list, const char *text)
{
    struct as_matcher matcher;
    if (strpbrk(text, "'\n") || as_matcher_init(&matcher, text, NULL) != 0)
        return false;
    as_matcher_deinit(&matcher);
    as_buf_printf(list, "%s'%s'", list->size > 1 ? ", " : "", text);
    return true;
}

/* The end of a matcher in a text with several: a comma outside of double quotes, or the end. */
static const char *find_comma(const char *at)
{
    bool is_quoted = false;
    for (; *at && (is_quoted || *at != ','); at++) {
        if (is_quoted && at[0] == '\\' && at[1])
            at++;
        else
            is_quoted ^= *at == '"';
    }
    return at;
}

static char *copy_trimmed(const char *start, const char *end)
{
    while (start < end && *start == ' ')
        start++;
    while (end > start && end[-1] == ' ')
        end--;
    return as_xstrndup(start, (size_t)(end - start));
}

/* `a="x", b="y"`, also in braces. The result is the number of matchers; 0: this is something
 * else. */
static size_t add_entries(struct as_buf *list, const char *text)
{
    AS_CLEANUP(as_free_p) char *all = copy_trimmed(text, text + strlen(text));
    const size_t size = strlen(all);
    const bool has_braces = size > 1 && all[0] == '{' && all[size - 1] == '}';
    size_t count = 0;
    if (has_braces)
        all[size - 1] = '\0';
    for (const char *at = all + has_braces;; at++) {
        const char *end = find_comma(at);
        AS_CLEANUP(as_free_p) char *entry = copy_trimmed(at, end);
        if (!texts_add_entry(list, entry))
            return 0;
        count++;
        at = end;
        if (!*at)
            return count;
    }
}

static bool add_label(struct as_buf *list, const struct as_yaml_pair *pair)
{
    if (pair->value->kind != AS_YAML_SCALAR || strpbrk(pair->value->text, "\"\\"))
        return false;
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf("%s=\"%s\"", pair->key->text, pair->value->text);
    return texts_add_entry(list, text);
}

void report_no_matcher_list(struct loader *loader, const struct as_yaml_node *node)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf list = AS_BUF_INIT(LIST_MAX);
    char found[AS_YAML_FOUND_SIZE];
    bool is_good = node->count > 0 || node->kind == AS_YAML_SCALAR;
    as_buf_append_str(&list, "[");
    for (uint32_t i = 0; is_good && node->kind == AS_YAML_MAP && i < node->count; i++)
        is_good = add_label(&list, &node->pairs[i]);
    if (is_good && node->kind == AS_YAML_SCALAR)
        is_good = !as_yaml_is_null(node) && add_entries(&list, node->text) > 0;
    as_buf_append_str(&list, "]");
    is_good = is_good && as_buf_check(&list) == 0;
    loader_report(loader, node, "expected a list of matchers, found %s: write `%s`",
                  as_yaml_describe(node, found), is_good ? list.data : "['alertname=\"Busy\"']");
}

/* A map in the list: one label, or several. */
static void report_map_entry(struct loader *loader, const struct as_yaml_node *map)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(LIST_MAX);
    const bool is_good = map->count == 1 && add_label(&text, &map->pairs[0]);
    loader_report(loader, map, "expected a matcher, found a map: write `%s`",
                  is_good && as_buf_check(&text) == 0 ? text.data : "'alertname=\"Busy\"'");
}

/* Several matchers in one entry. */
static bool report_several(struct loader *loader, const struct as_yaml_node *node, const char *text)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf list = AS_BUF_INIT(LIST_MAX);
    as_buf_append_str(&list, "[");
    if (add_entries(&list, node->text) < 1)
        return false;
    as_buf_append_str(&list, "]");
    if (as_buf_check(&list) != 0)
        return false;
    size_t offset = 0;
    const char *message = NULL;
    struct as_yaml_node inside = *node;
    if (split_offset(text, &offset, &message))
        (void)as_yaml_find_inside(loader->tree, node, offset, &inside.place);
    loader_report(loader, &inside, "an entry has one matcher, without braces: write `%s`",
                  list.data);
    return true;
}

bool compile_matcher(struct loader *loader, const struct as_yaml_node *node,
                     struct as_matcher *matcher)
{
    struct as_error error = AS_ERROR_INIT;
    if (node->kind == AS_YAML_MAP) {
        report_map_entry(loader, node);
        return false;
    }
    if (!schema_is_kind(loader, node, AS_YAML_SCALAR))
        return false;
    if (as_matcher_init(matcher, node->text, &error) < 0) {
        if (!report_several(loader, node, error.text))
            report_in_text(loader, node, error.text);
        return false;
    }
    return true;
}
