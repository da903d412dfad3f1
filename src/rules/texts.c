/*
 * Texts with their own syntax (matchers, templates): an error is shown at its place inside the
 * text, if the text stands unchanged in the file.
 */
#include <string.h>

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

bool compile_matcher(struct loader *loader, const struct as_yaml_node *node,
                     struct as_matcher *matcher)
{
    struct as_error error = AS_ERROR_INIT;
    if (!schema_is_kind(loader, node, AS_YAML_SCALAR))
        return false;
    if (as_matcher_init(matcher, node->text, &error) < 0) {
        report_in_text(loader, node, error.text);
        return false;
    }
    return true;
}
