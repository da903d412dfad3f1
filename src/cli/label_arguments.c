/*
 * Splits at the first "="; as_labels_new checks the rest.
 */
#include "label_arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

static int split(const char *text, const char *what, char **copy_out, struct as_label *label_out,
                 struct as_error *error)
{
    const size_t size = strcspn(text, "=");
    if (size == 0 || text[size] == '\0') {
        as_error_set(error, "\"%s\" is not %s %s: expected NAME=VALUE", text,
                     *what == 'a' ? "an" : "a", what);
        return -EINVAL;
    }
    if (!as_str_is_utf8(text, strlen(text))) {
        as_error_set(error, "%s %s is not UTF-8", *what == 'a' ? "an" : "a", what);
        return -EINVAL;
    }
    char *copy = *copy_out = as_xstrdup(text);
    copy[size] = '\0';
    *label_out = (struct as_label){copy, copy + size + 1};
    return 0;
}

int label_arguments_parse(const char *const *texts, size_t count, const char *what,
                          struct as_labels **labels_out, struct as_error *error)
{
    struct as_label *items = as_xcalloc(count + 1, sizeof(*items));
    char **copies = as_xcalloc(count + 1, sizeof(*copies));
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++)
        status = split(texts[i], what, &copies[i], &items[i], error);
    if (status == 0) {
        status = as_labels_new(items, count, labels_out);
        if (status != 0)
            as_error_set(error, status == -EEXIST ? "a %s is given twice" : "the %ss are too large",
                         what);
    }
    for (size_t i = 0; i < count; i++)
        free(copies[i]);
    free(copies);
    free(items);
    return status;
}
