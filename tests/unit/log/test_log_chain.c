/* The chain: a sealed log verifies; any later change is detected. */
#include <alertscaler/log/log_chain.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>

#include "../records.h"

/* `count` sealed lines. */
static struct as_buf make_log(struct as_chain *chain, unsigned count, struct as_audit_head *head)
{
    struct as_buf lines = AS_BUF_INIT(1 << 20);
    struct test_record made;

    for (unsigned i = 1; i <= count; i++)
        as_chain_seal(chain, test_record_make(&made, i), head, &lines);
    cr_assert(!as_buf_check(&lines));
    return lines;
}

/* The outcome of the first line that is not good, or AS_CHAIN_OK; its number in *line_out. */
static int verify(struct as_chain *chain, const char *data, size_t size, unsigned *line_out,
                  struct as_error *error)
{
    struct as_chain_verify state = AS_CHAIN_VERIFY_INIT(chain);
    const char *end = data + size;

    *line_out = 0;
    while (data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        const char *stop = newline ? newline : end;
        int outcome = as_chain_verify_line(&state, data, (size_t)(stop - data), error);
        ++*line_out;
        if (outcome)
            return outcome;
        data = stop + 1;
    }
    return AS_CHAIN_OK;
}

Test(chain, the_form_of_a_line_is_the_documented_one)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;
    struct as_buf lines = make_log(chain, 2, &head);

    /* The hashes were computed with sha256sum over the JSON without `hash`. */
    cr_assert_str_eq(
        lines.data,
        "{\"hash\":\"36a3a6ea25bcf5deb4c0c24676e441ec7fa78284ecc8334881f680fb85134464\","
        "\"id\":1,\"kind\":\"test\","
        "\"prev\":\"0000000000000000000000000000000000000000000000000000000000000000\","
        "\"seq\":1,\"time\":\"2026-11-20T10:00:00.000000Z\"}\n"
        "{\"hash\":\"3132a905ce6fdc2e62fc80cd3aa1fbe1a2e0e2e7ff8b4dc431572a4271306b03\","
        "\"id\":2,\"kind\":\"test\","
        "\"prev\":\"36a3a6ea25bcf5deb4c0c24676e441ec7fa78284ecc8334881f680fb85134464\","
        "\"seq\":2,\"time\":\"2026-11-20T10:00:00.000000Z\"}\n");
    cr_assert_eq(head.seq, 2);
    as_buf_deinit(&lines);
}

Test(chain, what_is_sealed_verifies)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;
    struct as_buf lines = make_log(chain, 50, &head);
    struct as_error error = AS_ERROR_INIT;
    unsigned line;

    cr_assert_eq(verify(chain, lines.data, lines.size, &line, &error), AS_CHAIN_OK, "%s",
                 error.text);
    cr_assert_eq(line, 50);
    as_buf_deinit(&lines);
}

Test(chain, every_changed_byte_is_seen)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;
    struct as_buf lines = make_log(chain, 3, &head);
    unsigned line;

    for (size_t i = 0; i < lines.size; i++) {
        char before = lines.data[i];
        for (unsigned change = 1; change < 256; change <<= 1) {
            lines.data[i] = (char)(before ^ (int)change);
            cr_assert_neq(verify(chain, lines.data, lines.size, &line, NULL), AS_CHAIN_OK,
                          "byte %zu as %d", i, lines.data[i]);
        }
        lines.data[i] = before;
    }
    as_buf_deinit(&lines);
}

Test(chain, removed_inserted_swapped_and_doubled_lines_are_seen)
{
    static const struct {
        const char *what;
        unsigned order[6]; /* of the lines 1..4; 0 ends */
        int outcome;
        unsigned line;
    } cases[] = {
        {"as it is", {1, 2, 3, 4}, AS_CHAIN_OK, 4},
        {"without the first", {2, 3, 4}, AS_CHAIN_OK, 3}, /* lies in an older file */
        {"without one inside", {1, 3, 4}, AS_CHAIN_BROKEN, 2},
        {"twice", {1, 2, 2, 3}, AS_CHAIN_BROKEN, 3},
        {"swapped", {1, 3, 2, 4}, AS_CHAIN_BROKEN, 2},
        {"again from the start", {1, 2, 3, 4, 1}, AS_CHAIN_BROKEN, 5},
    };
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;
    struct as_buf lines = make_log(chain, 4, &head);
    size_t size = lines.size / 4; /* all have the same length */

    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct as_buf mixed = AS_BUF_INIT(1 << 20);
        unsigned line;
        for (const unsigned *at = cases[i].order; *at; at++)
            as_buf_append(&mixed, lines.data + (*at - 1) * size, size);
        cr_assert_eq(verify(chain, mixed.data, mixed.size, &line, NULL), cases[i].outcome, "%s",
                     cases[i].what);
        cr_assert_eq(line, cases[i].line, "%s", cases[i].what);
        as_buf_deinit(&mixed);
    }
    as_buf_deinit(&lines);
}

Test(chain, a_forged_line_with_a_right_hash_does_not_fit_in)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_audit_head head = AS_AUDIT_HEAD_INIT, forged;
    struct as_buf lines = make_log(chain, 2, &head);
    struct as_chain_verify state = AS_CHAIN_VERIFY_INIT(chain);
    struct as_buf other = AS_BUF_INIT(1 << 20);
    struct as_error error = AS_ERROR_INIT;
    struct test_record made;

    forged = head;
    memset(forged.hash, 'a', 64);
    as_chain_seal(chain, test_record_make(&made, 3), &forged, &other);
    cr_assert_eq(as_chain_verify_line(&state, lines.data, lines.size / 2 - 1, NULL), AS_CHAIN_OK);
    cr_assert_eq(
        as_chain_verify_line(&state, lines.data + lines.size / 2, lines.size / 2 - 1, NULL),
        AS_CHAIN_OK);
    cr_assert_eq(as_chain_verify_line(&state, other.data, other.size - 1, &error), AS_CHAIN_BROKEN);
    cr_assert_str_eq(error.text, "record 3 does not continue the record before it");
    cr_assert_eq(state.head.seq, 2);
    as_buf_deinit(&lines);
    as_buf_deinit(&other);
}

Test(chain, a_line_that_two_parsers_could_read_differently_is_refused)
{
#define H "\"hash\":\"0000000000000000000000000000000000000000000000000000000000000000\""
#define P "\"prev\":\"0000000000000000000000000000000000000000000000000000000000000000\""
    static const char *const lines[] = {
        "",
        "{}",
        "[]",
        "{",
        "{\"",
        "{\"a",
        "{\"a\":",
        "{\"a\":\"",
        "{\"a\":\"\\",
        "{\"a\":1",
        "{\"a\":1,}",
        "{" H "," H "," P ",\"seq\":1,\"time\":1}",              /* twice */
        "{" H "," P "," P ",\"seq\":1,\"time\":1}",              /* twice */
        "{" H "," P ",\"seq\":1,\"seq\":2,\"time\":1}",          /* twice */
        "{\"\\u0068ash\":1," H "," P ",\"seq\":1,\"time\":1}",   /* twice, in disguise */
        "{" P "," H ",\"seq\":1,\"time\":1}",                    /* not sorted */
        "{" H ", " P ",\"seq\":1,\"time\":1}",                   /* white space */
        "{" H "," P ",\"seq\":1,\"time\":\t1}",                  /* white space */
        "{" H "," P ",\"seq\":1,\"time\":[1, 2]}",               /* white space */
        "{" H "," P ",\"seq\":1,\"time\":1} ",                   /* more behind it */
        "{" H "," P ",\"seq\":1,\"time\":1}{}",                  /* more behind it */
        "{" H "," P ",\"seq\":1,\"time\":1]}",                   /* does not nest */
        "{" H "," P ",\"seq\":1,\"time\":{\"a\":1}",             /* does not nest */
        "{" H "," P ",\"seq\":01,\"time\":1}",                   /* number form */
        "{" H "," P ",\"seq\":1.0,\"time\":1}",                  /* number form */
        "{" H "," P ",\"seq\":0,\"time\":1}",                    /* below 1 */
        "{" H "," P ",\"seq\":\"1\",\"time\":1}",                /* text */
        "{" H "," P ",\"seq\":99999999999999999999,\"time\":1}", /* too large */
        "{\"hash\":\"00\"," P ",\"seq\":1,\"time\":1}",          /* short */
        "{" H ",\"prev\":null,\"seq\":1,\"time\":1}",            /* no text */
        "{" H "," P ",\"time\":1}",                              /* no number */
        "{" P ",\"seq\":1,\"time\":1}",                          /* no hash */
    };
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();

    for (size_t i = 0; i < AS_ARRAY_SIZE(lines); i++) {
        struct as_audit_head head;
        char prev[AS_AUDIT_HASH_SIZE];
        /* In memory of exactly its size, so that the sanitizer sees a read behind it. */
        size_t size = strlen(lines[i]);
        AS_CLEANUP(as_free_p) char *exact = as_xmalloc(size + !size);
        memcpy(exact, lines[i], size);
        cr_assert_eq(as_chain_check_line(chain, exact, size, &head, prev, NULL), AS_CHAIN_MALFORMED,
                     "%s", lines[i]);
    }
}

Test(chain, members_go_where_their_keys_sort)
{
    /* All three next to each other, all three apart. */
    static const struct as_audit_record records[] = {
        {"{\"time\":1}", 10, 1, 1, 1},
        {"{\"a\":1,\"id\":2,\"kind\":3,\"receiver\":4,\"time\":5}", 45, 7, 23, 36},
    };
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;
    struct as_buf lines = AS_BUF_INIT(1 << 20);
    struct as_error error = AS_ERROR_INIT;
    unsigned line;

    for (size_t i = 0; i < AS_ARRAY_SIZE(records); i++) {
        cr_assert_eq(strlen(records[i].json), records[i].size);
        as_chain_seal(chain, &records[i], &head, &lines);
    }
    cr_assert_eq(verify(chain, lines.data, lines.size, &line, &error), AS_CHAIN_OK, "%s",
                 error.text);
    as_buf_deinit(&lines);
}

Test(chain, a_buffer_that_is_full_is_an_error_and_not_a_short_line)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;
    struct test_record made;

    test_record_make(&made, 1);
    struct as_buf whole = make_log(chain, 1, &head);
    for (size_t max = 0; max < whole.size + 3; max++) {
        struct as_buf lines = AS_BUF_INIT(max);
        head = AS_AUDIT_HEAD_INIT;
        as_chain_seal(chain, &made.record, &head, &lines);
        if (max >= whole.size)
            cr_assert(!as_buf_check(&lines), "%zu", max);
        else
            cr_assert(as_buf_check(&lines), "%zu", max);
        as_buf_deinit(&lines);
    }
    as_buf_deinit(&whole);
}
