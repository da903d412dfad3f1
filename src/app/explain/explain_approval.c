/*
 * What a rule may do without an approval, and what was asked.
 */
#include <inttypes.h>
#include <string.h>

#include <alertscaler/app/record_text.h>
#include <alertscaler/base/attr.h>

#include "explain_private.h"

void explain_print_approval(const json_t *proposal, const json_t *result, FILE *out)
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
    int32_t above, to;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].use, use) == 0)
            explain_put(out, ", ", rows[i].text, "");
    }
    if (!*use || !as_record_get_size(terms, "above", &above))
        return;
    fprintf(out, " (by more than %" PRId32 " within an hour)", above);
    if (strcmp(use, "asks") != 0 && as_record_get_size(request, "to", &to)) {
        explain_put(out, ", request ", as_record_get_text(request, "id"), "");
        fprintf(out, " as far as %" PRId32, to);
    }
}
