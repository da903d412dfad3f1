/*
 * libyaml's errors are about its grammar; the most common cause is indentation.
 */
#include "yaml_words.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/errno_text.h>

const char *yaml_words_explain(const char *problem)
{
    static const struct {
        const char *problem, *words;
    } table[] = {
        {"did not find expected key",
         "this line is indented otherwise than the keys beside it: keys of one map begin in one "
         "column"},
        {"did not find expected '-' indicator",
         "this line is indented otherwise than the list beside it: its entries begin with `- ` in "
         "one column"},
        {"mapping values are not allowed in this context",
         "no `key: value` can stand here: either the line is indented too far, or a value that "
         "holds `: ` needs quotes"},
        {"block sequence entries are not allowed in this context",
         "no list entry `- ` can stand here: begin the list on the line after its key"},
        {"could not find expected ':'", "expected `key: value`: there is no `: ` behind the key"},
        {"did not find expected <document start>",
         "expected the end of the file: this line is indented less than the first one"},
        {"found character that cannot start any token", "no value begins with this character"},
        {"did not find expected ',' or '}'", "expected `,` or `}`: a `{` is not closed"},
        {"did not find expected ',' or ']'", "expected `,` or `]`: a `[` is not closed"},
        {"found unexpected end of stream", "the file ends here, within a text in quotes"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        if (strcmp(problem, table[i].problem) == 0)
            return table[i].words;
    }
    return problem;
}

static char *describe_failure(const char *path, int status)
{
    if (status == -EFBIG)
        return as_xstrdup("the file is larger than 16 MiB");
    if ((status == -ENOENT || status == -ENOTDIR) && strpbrk(path, "*?["))
        return as_xstrdup("no file matches this pattern");
    if (status == -EISDIR)
        return as_xasprintf("this is a folder: name the files in it, as %s%s*.yaml", path,
                            *path && path[strlen(path) - 1] == '/' ? "" : "/");
    return as_xasprintf("cannot read this: %s", as_errno_get_text(status));
}

void yaml_words_report_failure(const char *path, int status, struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_free_p) char *message = describe_failure(path, status);
    as_diagnostics_add(diagnostics, &(struct as_diagnostic){.file = path, .message = message});
}
