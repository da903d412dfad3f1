/*
 * Any bytes as lines of an action log: each is accepted, with the form that the chain promises, or
 * refused with a text. And any bytes inside a record: what is sealed verifies.
 */
#include <string.h>

#include <alertscaler/log/log_chain.h>

#include "fuzz.h"

static struct as_chain *chain;

static void check_taken(const char *line, size_t size, const struct as_audit_head *head)
{
    FUZZ_CHECK(line[0] == '{' && line[size - 1] == '}');
    FUZZ_CHECK(!memchr(line, '\n', size) && !memchr(line, '\0', size));
    FUZZ_CHECK(head->seq > 0 && strlen(head->hash) == AS_AUDIT_HASH_SIZE - 1);
    FUZZ_CHECK(memmem(line, size, head->hash, strlen(head->hash)));
}

static void check_lines(const char *data, size_t size)
{
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);

    for (const char *at = data, *end = data + size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        struct as_error error = AS_ERROR_INIT;
        if (as_chain_verify_line(&verify, at, (size_t)(stop - at), &error) == AS_CHAIN_OK)
            check_taken(at, (size_t)(stop - at), &verify.head);
        else
            FUZZ_CHECK(*error.text);
        at = stop + 1;
    }
}

/* The bytes as a text in a record, escaped where JSON wants it. */
static void check_sealing(const uint8_t *data, size_t size)
{
    struct as_buf json = AS_BUF_INIT(16 << 20), lines = AS_BUF_INIT(16 << 20);
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;

    as_buf_append_str(&json, "{\"id\":\"");
    for (size_t i = 0; i < size; i++) {
        if (data[i] < 0x20 || data[i] == '"' || data[i] == '\\')
            as_buf_printf(&json, "\\u%04x", data[i]);
        else
            as_buf_append_char(&json, (char)data[i]);
    }
    as_buf_append_str(&json, "\",\"time\":1}");
    size_t at = json.size - strlen("\"time\":1}");
    struct as_audit_record record = {json.data, json.size, 1, at, at};
    as_chain_seal(chain, &record, &head, &lines);
    FUZZ_CHECK(!as_buf_check(&lines));
    FUZZ_CHECK(as_chain_verify_line(&verify, lines.data, lines.size - 1, NULL) == AS_CHAIN_OK);
    FUZZ_CHECK(verify.head.seq == 1 && strcmp(verify.head.hash, head.hash) == 0);
    as_buf_deinit(&json);
    as_buf_deinit(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!chain)
        chain = as_chain_new();
    check_lines((const char *)data, size);
    check_sealing(data, size < 65536 ? size : 65536);
    return 0;
}
