/*
 * Texts as YAML. A text stands plain only if it can be nothing but text; all else stands in quotes,
 * and what is not printable ASCII is escaped. So no text can end the value or the comment that it
 * stands in.
 */
#include <alertscaler/doc/yaml_text.h>

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/yaml_tree.h>

#define INDENT 2

static bool is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

/* Begins with a letter, has nothing that YAML reads otherwise, and is no word of any YAML. */
static bool yaml_text_is_plain(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on",
                                        "off",  "null",  "y",   "n"};
    const size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789._/-");
    if (text[size] || size == 0 ||
        !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", text[0]))
        return false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        if (strcasecmp(words[i], text) == 0)
            return false;
    }
    return true;
}

static uint32_t yaml_text_decode(const char *text, size_t size)
{
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = (unsigned char)text[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3F);
    return code;
}

static void yaml_text_append_escaped(struct as_buf *out, const char *text)
{
    as_buf_append_char(out, '"');
    for (size_t left = strlen(text), size; left > 0; text += size, left -= size) {
        size = as_str_measure_utf8(text, left);
        const uint32_t code = yaml_text_decode(text, size ? size : 1);
        size = size ? size : 1;
        if (code == '\n')
            as_buf_append_str(out, "\\n");
        else if (code == '"' || code == '\\')
            as_buf_printf(out, "\\%c", (char)code);
        else if (size == 1 && is_printable(*text))
            as_buf_append_char(out, *text);
        else
            as_buf_printf(out, code > 0xFFFF ? "\\U%08" PRIX32 : "\\u%04" PRIX32, code);
    }
    as_buf_append_char(out, '"');
}

static void yaml_text_append_quoted(struct as_buf *out, const char *text)
{
    as_buf_append_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            as_buf_append_char(out, '\'');
        as_buf_append_char(out, *text);
    }
    as_buf_append_char(out, '\'');
}

void yaml_append_text(struct as_buf *out, const char *text)
{
    const char *at = text;
    while (is_printable(*at))
        at++;
    if (*at)
        yaml_text_append_escaped(out, text);
    else if (yaml_text_is_plain(text))
        as_buf_append_str(out, text);
    else
        yaml_text_append_quoted(out, text);
}

/* A block has lines of printable ASCII, none with blanks at its end; the first one gives the
 * indentation. */
static bool can_be_block(const char *text)
{
    for (const char *at = text; *at; at++) {
        const bool is_end = at[1] == '\n' || at[1] == '\0';
        if ((*at != '\n' && !is_printable(*at)) || (*at == ' ' && is_end))
            return false;
    }
    return *text && *text != ' ' && *text != '\n' && text[strlen(text) - 1] != '\n';
}

static void yaml_text_append_block(struct as_buf *out, const char *text, unsigned indent)
{
    for (const char *line = text; line;) {
        const size_t size = strcspn(line, "\n");
        as_buf_append_char(out, '\n');
        if (size > 0)
            as_buf_printf(out, "%*s%.*s", (int)indent, "", (int)size, line);
        line = line[size] ? line + size + 1 : NULL;
    }
}

void yaml_append_query(struct as_buf *out, const char *text, unsigned indent)
{
    if (!strchr(text, '\n') || !can_be_block(text)) {
        yaml_append_text(out, text);
        return;
    }
    as_buf_append_str(out, "|-");
    yaml_text_append_block(out, text, indent);
}

void yaml_append_comment(struct as_buf *out, const char *text)
{
    for (; *text; text++)
        as_buf_append_char(out, is_printable(*text) ? *text : *text == '\n' ? ' ' : '?');
}

/*
 * Nodes of a tree, in block style. The reader bounds their depth.
 */

/* What was read without quotes is written without quotes. */
static void yaml_text_append_scalar(struct as_buf *out, const struct as_yaml_node *node,
                                    unsigned indent)
{
    const size_t size = strlen(node->text);
    const bool has_end = size > 0 && node->text[size - 1] == '\n';
    AS_CLEANUP(as_free_p) char *lines = as_xstrndup(node->text, size - has_end);
    if (node->is_plain && !strchr(node->text, '\n')) {
        as_buf_append_str(out, node->text);
    } else if (has_end && can_be_block(lines)) {
        as_buf_append_char(out, '|');
        yaml_text_append_block(out, lines, indent);
    } else {
        yaml_append_query(out, node->text, indent);
    }
}

static void yaml_text_append_list(struct as_buf *out, const struct as_yaml_node *node,
                                  unsigned indent);
static void yaml_text_append_map(struct as_buf *out, const struct as_yaml_node *node,
                                 unsigned indent);

/* A value after `KEY:` or `-`. The first pair of a map stands beside the `-`. */
static void yaml_text_append_value(struct as_buf *out, const struct as_yaml_node *node,
                                   unsigned indent, bool is_in_list)
{
    const bool is_empty = node->kind != AS_YAML_SCALAR && node->count == 0;
    const bool is_beside =
        node->kind == AS_YAML_SCALAR || is_empty || (is_in_list && node->kind == AS_YAML_MAP);
    if (is_beside)
        as_buf_append_char(out, ' ');
    else
        as_buf_printf(out, "\n%*s", (int)indent, "");
    if (is_empty)
        as_buf_append_str(out, node->kind == AS_YAML_MAP ? "{}" : "[]");
    else if (node->kind == AS_YAML_SCALAR)
        yaml_text_append_scalar(out, node, indent);
    else if (node->kind == AS_YAML_MAP)
        yaml_text_append_map(out, node, indent);
    else
        yaml_text_append_list(out, node, indent);
}

static void yaml_text_append_list(struct as_buf *out, const struct as_yaml_node *node,
                                  unsigned indent)
{
    for (uint32_t i = 0; i < node->count; i++) {
        if (i > 0)
            as_buf_printf(out, "\n%*s", (int)indent, "");
        as_buf_append_char(out, '-');
        yaml_text_append_value(out, node->items[i], indent + INDENT, true);
    }
}

static void yaml_text_append_map(struct as_buf *out, const struct as_yaml_node *node,
                                 unsigned indent)
{
    for (uint32_t i = 0; i < node->count; i++) {
        if (i > 0)
            as_buf_printf(out, "\n%*s", (int)indent, "");
        const struct as_yaml_node *key = node->pairs[i].key;
        if (key->is_plain && !strchr(key->text, '\n'))
            as_buf_append_str(out, key->text);
        else
            yaml_append_text(out, key->text); /* a key is no block */
        as_buf_append_char(out, ':');
        yaml_text_append_value(out, node->pairs[i].value, indent + INDENT, false);
    }
}

void yaml_append_map(struct as_buf *out, const struct as_yaml_node *map)
{
    yaml_text_append_map(out, map, 0);
    as_buf_append_char(out, '\n');
}
