/*
 * What a rule may do without an approval, and what was asked.
 */
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/unit.h>
#include <alertscaler/tools/record_text.h>

#include "explain_private.h"

void explain_print_approval(const json_t *proposal, const json_t *result, const char *unit,
                            FILE *out)
{
    static const struct {
        const char *use, *text;
    } rows[] = {{"asks", "asks for an approval"},
                {"awaited", "waits for an approval"},
                {"refused", "not approved"},
                {"used", "approved"}};
    const json_t *terms = json_object_get(proposal, "approval");
    const char *use = as_record_get_text(result, "approval");
    const json_t *request = json_object_get(terms, "request");
    char text[AS_SIZE_TEXT_SIZE];
    int32_t above, to;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].use, use) == 0)
            explain_put(out, ", ", rows[i].text, "");
    }
    if (!*use || !as_record_get_size(terms, "above", &above))
        return;
    fprintf(out, " (by more than %s within an hour)", as_unit_print_size(unit, above, text));
    if (strcmp(use, "asks") != 0 && as_record_get_size(request, "to", &to)) {
        explain_put(out, ", request ", as_record_get_text(request, "id"), "");
        fprintf(out, " as far as %s", as_unit_print_size(unit, to, text));
    }
}
