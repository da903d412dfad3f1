/* Any bytes as the body of a form: refused with a text and no values, or values that are text, and
 * that are read again as they are when they are encoded. */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>

#include "fuzz.h"
#include "ui/form_body.h"

static const struct as_form_body empty = {.names = {"form", "reason", "to"}};

static void check_again(const struct as_form_body *body)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT((size_t)1 << 24);
    AS_CLEANUP(as_form_body_deinit) struct as_form_body again = empty;
    for (size_t i = 0; body->names[i]; i++) {
        if (!body->values[i])
            continue;
        as_buf_printf(&text, "%s%s=", text.size > 0 ? "&" : "", body->names[i]);
        as_encode_percent(&text, body->values[i], strlen(body->values[i]), "");
    }
    FUZZ_CHECK(as_form_body_decode(text.data, text.size, &again, NULL) == 0);
    for (size_t i = 0; body->names[i]; i++)
        FUZZ_CHECK(as_str_equal(body->values[i], again.values[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_CLEANUP(as_form_body_deinit) struct as_form_body body = empty;
    struct as_error error = AS_ERROR_INIT;
    const int status = as_form_body_decode((const char *)data, size, &body, &error);
    FUZZ_CHECK(status == 0 || (status == -EBADMSG && *error.text));
    for (size_t i = 0; body.names[i]; i++) {
        const char *value = body.values[i];
        FUZZ_CHECK(!value || (status == 0 && as_str_is_utf8(value, strlen(value))));
    }
    if (status == 0)
        check_again(&body);
    return 0;
}
