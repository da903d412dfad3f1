/* Any bytes as the body of an operator's order, of each kind: refused with a text, or a valid order
 * for the engine. */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/decide/operator_command.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int kind = 0; kind < AS_OPERATOR_COMMAND_KIND_COUNT; kind++) {
        struct as_operator_command_document document = {0};
        struct as_error error = AS_ERROR_INIT;
        const int r = as_operator_command_decode(
            (const char *)data, size, (enum as_operator_command_kind)kind, &document, &error);
        FUZZ_CHECK(r == 0 || (r == -EBADMSG && *error.text));
        if (r != 0)
            continue;
        FUZZ_CHECK((int)document.order.kind == kind && document.order.for_us >= 0);
        FUZZ_CHECK(*document.reason && strlen(document.reason) < sizeof(document.reason));
        FUZZ_CHECK(as_str_is_utf8(document.reason, strlen(document.reason)));
        FUZZ_CHECK(kind != AS_OPERATOR_COMMAND_SCALE || document.order.replicas >= 0);
    }
    return 0;
}
