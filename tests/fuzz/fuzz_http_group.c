/* Any bytes as the answer of an HTTP node group: a valid size, or a text that names the field; and
 * a line for people from any error document. */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/cloud/http_group.h>

#include "fuzz.h"

static void check_line(const char *text)
{
    FUZZ_CHECK(as_str_is_utf8(text, strlen(text)));
    FUZZ_CHECK(!strpbrk(text, "\r\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    struct as_http_group group;
    struct as_error error = AS_ERROR_INIT;
    char message[AS_MESSAGE_SIZE];
    const int r = as_http_group_decode(json, size, &group, &error);

    FUZZ_CHECK(r == 0 || (r == -EBADMSG && *error.text));
    if (r == 0) {
        FUZZ_CHECK(group.size >= 0 && group.min >= -1 && group.max >= -1);
        FUZZ_CHECK(strlen(group.etag) < sizeof(group.etag));
        FUZZ_CHECK(!*group.etag || as_http_group_etag_is_valid(group.etag));
    }
    as_http_group_decode_message(json, size, message);
    FUZZ_CHECK(strlen(message) < sizeof(message));
    check_line(message);
    return 0;
}
