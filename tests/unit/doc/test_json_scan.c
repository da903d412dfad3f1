/*
 * The bytes of a member in a document. The tokens are tested with their readers (kube_object,
 * kube_stream).
 */
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/doc/json_scan.h>

Test(json_scan, finds_the_bytes_of_a_member)
{
    static const struct {
        const char *json, *value; /* NULL: not found */
    } rows[] = {
        {"{\"input\":{\"a\":1}}", "{\"a\":1}"},
        {"{\"a\":{\"input\":{}},\"b\":\"\\\"input\\\":{}\",\"input\":{\"c\":[{}, {}]},\"d\":1}",
         "{\"c\":[{}, {}]}"},
        {" { \"input\" : [ 1 , {\"input\":{}} ] } ", "[ 1 , {\"input\":{}} ]"},
        {"{\"inp\\u0075t\":{},\"input\":[]}", "{}"},
        {"{\"input\":{},\"input\":[1]}", "{}"},
        {"{\"input\":1,\"inputs\":{},\"inpu\":{}}", NULL},
        {"{\"input\":\"{}\",\"a\":{}}", NULL},
        {"{\"input\":{\"a\":1}", "{\"a\":1}"}, /* what follows is not read */
        {"{\"input\":{\"a\":1", NULL},
        {"{\"input\":{\"a\":1]}", NULL},
        {"[{\"input\":{}}]", NULL},
        {"\"input\"", NULL},
        {"{}", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *value = NULL;
        size_t size = 0;
        const bool is_found =
            json_scan_find_member(rows[i].json, strlen(rows[i].json), "input", &value, &size);
        cr_assert_eq(is_found, rows[i].value != NULL, "%s", rows[i].json);
        if (!is_found)
            continue;
        AS_CLEANUP(as_free_p) char *text = as_xstrndup(value, size);
        cr_expect_str_eq(text, rows[i].value, "%s", rows[i].json);
    }
}
