/*
 * `alertscaler log verify`: checks the numbers and the chain of a log, over all its files. It
 * cannot detect a missing end by the log alone; the state file knows the end.
 *
 * Files of several replicas make one chain. They overlap: records that one replica had perhaps not
 * written when it ended are repeated at the beginning of the next file, and must be identical.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/daemon/adapters.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/log/log_chain.h>
#include <alertscaler/log/storage.h>

#include "cli.h"
#include "log_reader.h"

#define WAIT_MS     500   /* for the rest of a line that is being written */
#define OVERLAP_MAX 65536 /* maximum records in an overlap of two files; a power of two */

struct verify_run {
    const struct as_args *args;
    struct as_chain_verify verify;
    const char *file;                   /* of the fault */
    uint64_t line;                      /* 0: not in a line */
    char (*hashes)[AS_AUDIT_HASH_SIZE]; /* of the last OVERLAP_MAX records, by number */
    bool is_overlap;                    /* so far this file only repeats an earlier one */
    uint64_t overlap_seq;               /* of its last line */
};

/* Checks a line at the beginning of a file: an outcome, and *is_known_out: an earlier file has
 * it. */
static int check_overlap(struct verify_run *run, const char *line, size_t size, bool *is_known_out,
                         struct as_error *fault)
{
    const struct as_audit_head *end = &run->verify.head;
    char prev[AS_AUDIT_HASH_SIZE];
    struct as_audit_head head;
    int outcome = as_chain_check_line(run->verify.chain, line, size, &head, prev, fault);

    *is_known_out = false;
    if (outcome)
        return outcome;
    *is_known_out = head.seq <= end->seq && head.seq >= run->verify.first_seq &&
                    head.seq + OVERLAP_MAX > end->seq &&
                    (!run->overlap_seq || head.seq == run->overlap_seq + 1);
    run->overlap_seq = head.seq;
    if (*is_known_out && strcmp(run->hashes[head.seq % OVERLAP_MAX], head.hash) != 0) {
        as_error_set(fault, "record %" PRIu64 " is another one than in the file before", head.seq);
        return AS_CHAIN_BROKEN;
    }
    return AS_CHAIN_OK;
}

/* The chain's check only reads bytes; the parser checks the JSON. */
static int check_line(struct verify_run *run, const char *line, size_t size, struct as_error *fault)
{
    json_error_t error;
    int outcome = AS_CHAIN_OK;

    if (run->is_overlap)
        outcome = check_overlap(run, line, size, &run->is_overlap, fault);
    if (!outcome && !run->is_overlap)
        outcome = as_chain_verify_line(&run->verify, line, size, fault);
    if (outcome)
        return outcome;
    if (!run->is_overlap)
        memcpy(run->hashes[run->verify.head.seq % OVERLAP_MAX], run->verify.head.hash,
               AS_AUDIT_HASH_SIZE);
    json_t *record = json_loadb(line, size, JSON_REJECT_DUPLICATES, &error);
    if (!record) {
        as_error_set(fault, "not JSON: %s", error.text);
        return AS_CHAIN_MALFORMED;
    }
    json_decref(record);
    return AS_CHAIN_OK;
}

/* 0: valid; > 0: an outcome with `fault`; or a negative errno with `error`. */
static int check_file(struct verify_run *run, const char *path, struct as_error *fault,
                      struct as_error *error)
{
    struct log_reader reader;
    const char *line;
    size_t size;
    int outcome = 0, status = log_reader_open(&reader, path, error);

    if (status)
        return status;
    while (!outcome && (status = log_reader_next(&reader, &line, &size, error)) > 0)
        outcome = check_line(run, line, size, fault);
    if (!outcome && !status && log_reader_get_rest(&reader)) {
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
        while (!outcome && (status = log_reader_next(&reader, &line, &size, error)) > 0)
            outcome = check_line(run, line, size, fault);
    }
    run->line = reader.line;
    if (!outcome && !status && log_reader_get_rest(&reader)) {
        as_error_set(fault, "the file ends in the middle of a line");
        outcome = AS_CHAIN_MALFORMED;
        run->line++;
    }
    log_reader_close(&reader);
    return outcome ? outcome : status;
}

static int check_end(struct verify_run *run, const char *state, struct as_error *fault,
                     struct as_error *error)
{
    const struct as_audit_head *end = &run->verify.head;
    struct as_store *store = NULL;
    struct as_audit_head head;

    const struct as_settings settings = {.state = {.store = AS_STORE_SQLITE, .path = state}};
    int status = run->args->adapters->open_store(&settings, false, NULL, &store, error);
    if (status)
        return status;
    status = as_storage_read_head(store, &head, error);
    store->close(store);
    if (status)
        return status;
    if (end->seq > head.seq) /* records without changes of the state are only in the log */
        return 0;
    if (head.seq == end->seq && strcmp(head.hash, end->hash) == 0)
        return 0;
    if (head.seq == end->seq)
        as_error_set(fault, "record %" PRIu64 " is not the one that the state file knows",
                     end->seq);
    else
        as_error_set(fault, "the log ends at record %" PRIu64 ", but the state file has %" PRIu64,
                     end->seq, head.seq);
    return AS_CHAIN_BROKEN;
}

static void print_json(const struct verify_run *run, const char *fault)
{
    struct as_buf buf = AS_BUF_INIT(4096);
    struct as_json_writer json;

    as_json_init(&json, &buf, 0);
    as_json_begin_object(&json);
    if (fault)
        as_json_write_member(&json, "error", fault);
    if (fault && run->line)
        as_json_write_member(&json, "file", run->file);
    as_json_write_member_i64(&json, "first", (int64_t)run->verify.first_seq);
    as_json_write_member_i64(&json, "last", (int64_t)run->verify.head.seq);
    if (fault && run->line)
        as_json_write_member_i64(&json, "line", (int64_t)run->line);
    as_json_write_member_bool(&json, "ok", !fault);
    as_json_end_object(&json);
    as_safe_json_put(stdout, buf.data, buf.size);
    putchar('\n');
    as_buf_deinit(&buf);
}

static void print_text(const struct verify_run *run, const char *fault)
{
    if (fault && run->line)
        printf("%s:%" PRIu64 ": ", run->file, run->line);
    if (fault) {
        as_safe_text_put(stdout, fault);
        putchar('\n');
    } else if (!run->verify.started)
        puts("no records");
    else
        printf("records %" PRIu64 " to %" PRIu64 " are whole, the last has the hash %s\n",
               run->verify.first_seq, run->verify.head.seq, run->verify.head.hash);
    if (!fault && run->verify.first_seq > 1)
        printf("records 1 to %" PRIu64 " are not in these files\n", run->verify.first_seq - 1);
}

static int verify_all(struct verify_run *run, const struct log_files *files)
{
    const char *state = as_args_get(run->args, "state");
    struct as_error error = AS_ERROR_INIT, fault = AS_ERROR_INIT;
    int status = 0;

    for (size_t i = 0; !status && i < files->count; i++) {
        run->file = files->paths[i];
        run->is_overlap = run->verify.started;
        run->overlap_seq = 0;
        status = check_file(run, run->file, &fault, &error);
    }
    if (!status && state) {
        run->line = 0;
        status = check_end(run, state, &fault, &error);
    }
    if (status < 0)
        return as_cli_fail(run->args, "%s", error.text);
    if (as_args_wants_json(run->args))
        print_json(run, status ? fault.text : NULL);
    else
        print_text(run, status ? fault.text : NULL);
    return status ? AS_EXIT_NO : AS_EXIT_OK;
}

static int run(const struct as_args *args)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    AS_CLEANUP(as_free_p) char *hashes = as_xcalloc(OVERLAP_MAX, AS_AUDIT_HASH_SIZE);
    struct verify_run verify = {.args = args,
                                .verify = AS_CHAIN_VERIFY_INIT(chain),
                                .hashes = (char(*)[AS_AUDIT_HASH_SIZE])hashes};
    struct as_error error = AS_ERROR_INIT;
    struct log_files files;

    if (log_files_find(args, &files, &error))
        return as_cli_fail(args, "%s", error.text);
    int status = verify_all(&verify, &files);
    log_files_deinit(&files);
    return status;
}

static const struct as_option options[] = {
    {.name = "state",
     .value = "FILE",
     .help =
         "Also checks that the log ends where this state file says; alertscaler must be stopped"},
    AS_OPTION_CONFIG_FILE("Where the log's place is read from if no FILE is given"),
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_log_verify = {
    .name = "log verify",
    .operands = "[FILE...]",
    .summary = "Checks that nothing in the action log was changed, removed, inserted or cut.",
    .help = "Give all files of the log, in any order; those of all replicas make one chain. Exit "
            "status 1 with the first bad line if "
            "something is wrong.",
    .options = options,
    .operands_max = 100000,
    .run = run,
};
