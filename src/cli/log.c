/*
 * `alertscaler log`: prints the action log for people, or unchanged, from files or from a running
 * daemon; and `alertscaler log verify`:
 * checks the numbers and the chain of a log.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/daemon/adapters.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/log/log_chain.h>
#include <alertscaler/log/storage.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/tools/record_text.h>

#include "cli.h"
#include "http_call.h"
#include "log_reader.h"

struct log_filter {
    const char *target, *rule, *reason; /* NULL: any; target may be a glob */
    bool kinds[AS_RECORD_KIND_COUNT];
    as_maybe_time since, until;
};

/* For the table of a command. */
#define LOG_FILTER_OPTIONS                                                                         \
    {.name = "target",                                                                             \
     .value = "NAME",                                                                              \
     .names = "targets",                                                                           \
     .help = "Records of this target: its name in the rules or its id; * and ? are wildcards"},    \
        {.name = "rule",                                                                           \
         .value = "NAME",                                                                          \
         .names = "rules",                                                                         \
         .help = "Records that involve this rule"},                                                \
        {.name = "reason",                                                                         \
         .value = "CODE",                                                                          \
         .names = "reasons",                                                                       \
         .help = "Records with this reason code or outcome"},                                      \
        {.name = "kind",                                                                           \
         .value = "KIND,...",                                                                      \
         .help = "Records of these kinds: notification, repeat, decision, action, ..."},           \
        {.name = "since",                                                                          \
         .value = "TIME",                                                                          \
         .help = "From this time on: 2026-11-20T14:00:00Z, or 2h for two hours ago"},              \
    {                                                                                              \
        .name = "until", .value = "TIME", .help = "Up to this time, as --since"                    \
    }

/* --- the filters --- */

/*
 * A record matches if it contains the word of every given filter. The tables here list where each
 * kind of record may have the word; other kinds do not match.
 */

static int log_read_time(const char *option, const char *text, as_wall_time now, as_maybe_time *out,
                         struct as_error *error)
{
    if (!text)
        return 0;
    out->set = true;
    return moment_parse(option, text, now, &out->at, error);
}

static int log_read_kind(struct log_filter *filter, const char *word, size_t size,
                         struct as_error *error)
{
    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        const char *known = as_record_kind_get_word((enum as_record_kind)kind);
        if (strlen(known) == size && !memcmp(known, word, size)) {
            filter->kinds[kind] = true;
            return 0;
        }
    }
    as_error_set(error, "--kind: \"%.*s\" is none of", (int)size, word);
    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        size_t used = strlen(error->text);
        snprintf(error->text + used, sizeof(error->text) - used, "%s %s", kind ? "," : "",
                 as_record_kind_get_word((enum as_record_kind)kind));
    }
    return -EINVAL;
}

static int read_kinds(struct log_filter *filter, const char *text, struct as_error *error)
{
    if (!text) {
        memset(filter->kinds, true, sizeof(filter->kinds));
        return 0;
    }
    for (;;) {
        size_t size = strcspn(text, ",");
        int status = log_read_kind(filter, text, size, error);
        if (status || !text[size])
            return status;
        text += size + 1;
    }
}

static int check_reason(const char *word, struct as_error *error)
{
    enum as_reason reason;

    if (!word || strcmp(word, "queued") == 0 || as_reason_find(word, &reason))
        return 0;
    struct as_spelling spelling = as_spelling_begin(word);
    for (int i = 0; i < AS_REASON_COUNT; i++)
        as_spelling_offer(&spelling, as_reason_get_word((enum as_reason)i));
    AS_CLEANUP(as_free_p) char *hint = as_spelling_end(&spelling);
    as_error_set(error, "--reason: there is no reason code \"%s\"%s", word, hint);
    return -EINVAL;
}

/* From --target, --rule, --reason, --kind, --since, --until. 0; -EINVAL with an error. */
static int log_filter_init(struct log_filter *filter, const struct as_args *args, as_wall_time now,
                           struct as_error *error)
{
    *filter = (struct log_filter){.target = as_args_get(args, "target"),
                                  .rule = as_args_get(args, "rule"),
                                  .reason = as_args_get(args, "reason")};
    int status = read_kinds(filter, as_args_get(args, "kind"), error);

    if (!status)
        status = check_reason(filter->reason, error);
    if (!status)
        status = log_read_time("since", as_args_get(args, "since"), now, &filter->since, error);
    if (!status)
        status = log_read_time("until", as_args_get(args, "until"), now, &filter->until, error);
    return status;
}

/* A place of a word: member `key` of the record, of its member `in`, or of the elements of the list
 * `in`.`list` (or `list`). The member may itself be a list of texts. */
struct place {
    const char *in, *list, *key;
};

static const struct place target_places[] = {
    {NULL, NULL, "target"}, {NULL, NULL, "target_name"}, {NULL, "targets", "target"}};
static const struct place rule_places[] = {{NULL, NULL, "rule"},
                                           {NULL, "alerts", "rules"},
                                           {NULL, "targets", "rule"},
                                           {"output", NULL, "rule"},
                                           {"input", "proposals", "rule"}};
static const struct place reason_places[] = {
    {NULL, NULL, "outcome"}, {NULL, "alerts", "outcome"}, {"output", NULL, "reason"}};

static bool value_is(const json_t *value, const char *word)
{
    size_t i;
    const json_t *item;

    if (json_is_string(value))
        return as_str_glob(word, json_string_value(value));
    json_array_foreach(value, i, item)
    {
        if (json_is_string(item) && as_str_glob(word, json_string_value(item)))
            return true;
    }
    return false;
}

static bool log_find_word(const json_t *record, const struct place *places, size_t count,
                          const char *word)
{
    for (size_t i = 0; i < count; i++) {
        const struct place *place = &places[i];
        const json_t *object = place->in ? json_object_get(record, place->in) : record;
        if (!place->list) {
            if (value_is(json_object_get(object, place->key), word))
                return true;
            continue;
        }
        size_t j;
        const json_t *item;
        json_array_foreach(json_object_get(object, place->list), j, item)
        {
            if (value_is(json_object_get(item, place->key), word))
                return true;
        }
    }
    return false;
}

static void offer_value(const json_t *value, struct as_spelling *spelling)
{
    size_t i;
    const json_t *item;

    if (json_is_string(value))
        as_spelling_offer(spelling, json_string_value(value));
    json_array_foreach(value, i, item)
    {
        if (json_is_string(item))
            as_spelling_offer(spelling, json_string_value(item));
    }
}

static void offer_words(const json_t *record, const struct place *places, size_t count,
                        struct as_spelling *spelling)
{
    for (size_t i = 0; i < count; i++) {
        const struct place *place = &places[i];
        const json_t *object = place->in ? json_object_get(record, place->in) : record;
        size_t j;
        const json_t *item;
        if (!place->list)
            offer_value(json_object_get(object, place->key), spelling);
        json_array_foreach(place->list ? json_object_get(object, place->list) : NULL, j, item)
        {
            offer_value(json_object_get(item, place->key), spelling);
        }
    }
}

static bool kind_matches(const struct log_filter *filter, const char *word)
{
    bool all = true;

    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        if (strcmp(as_record_kind_get_word((enum as_record_kind)kind), word) == 0)
            return filter->kinds[kind];
        all = all && filter->kinds[kind];
    }
    return all; /* a kind of a later version */
}

static bool has_reason(const json_t *record, const char *word)
{
    const char *reason;
    json_t *count;
    json_object_foreach(json_object_get(record, "outcomes"), reason, count)
    {
        if (as_str_glob(word, reason))
            return true;
    }
    return log_find_word(record, reason_places, AS_ARRAY_SIZE(reason_places), word);
}

/* `details`: the record itself; for a `repeat` its full record, or NULL: then no filter for a rule
 * matches. */
static bool log_filter_match(const struct log_filter *filter, const json_t *record,
                             const json_t *details)
{
    const char *time = as_record_get_text(record, "time");
    as_wall_time at = {0};

    if (!kind_matches(filter, as_record_get_text(record, "kind")))
        return false;
    if ((filter->since.set || filter->until.set) && as_wall_time_parse(time, strlen(time), &at))
        return false;
    if ((filter->since.set && at.us < filter->since.at.us) ||
        (filter->until.set && at.us > filter->until.at.us))
        return false;
    if (filter->target &&
        !log_find_word(details, target_places, AS_ARRAY_SIZE(target_places), filter->target))
        return false;
    if (filter->rule &&
        !log_find_word(details, rule_places, AS_ARRAY_SIZE(rule_places), filter->rule))
        return false;
    return !filter->reason || has_reason(record, filter->reason);
}

/* --- log verify --- */

/*
 * Checks the numbers and the chain over all files of a log. It cannot detect a missing end by the
 * log alone; the state file knows the end.
 *
 * Files of several replicas make one chain. They overlap: records that one replica had perhaps not
 * written when it ended are repeated at the beginning of the next file, and must be identical.
 */

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
static int check_overlap(struct verify_run *log_verify_run, const char *line, size_t size,
                         bool *is_known_out, struct as_error *fault)
{
    const struct as_audit_head *end = &log_verify_run->verify.head;
    char prev[AS_AUDIT_HASH_SIZE];
    struct as_audit_head head;
    int outcome = as_chain_check_line(log_verify_run->verify.chain, line, size, &head, prev, fault);

    *is_known_out = false;
    if (outcome)
        return outcome;
    *is_known_out = head.seq <= end->seq && head.seq >= log_verify_run->verify.first_seq &&
                    head.seq + OVERLAP_MAX > end->seq &&
                    (!log_verify_run->overlap_seq || head.seq == log_verify_run->overlap_seq + 1);
    log_verify_run->overlap_seq = head.seq;
    if (*is_known_out && strcmp(log_verify_run->hashes[head.seq % OVERLAP_MAX], head.hash) != 0) {
        as_error_set(fault, "record %" PRIu64 " is another one than in the file before", head.seq);
        return AS_CHAIN_BROKEN;
    }
    return AS_CHAIN_OK;
}

/* The chain's check only reads bytes; the parser checks the JSON. */
static int log_check_line(struct verify_run *log_verify_run, const char *line, size_t size,
                          struct as_error *fault)
{
    json_error_t error;
    int outcome = AS_CHAIN_OK;

    if (log_verify_run->is_overlap)
        outcome = check_overlap(log_verify_run, line, size, &log_verify_run->is_overlap, fault);
    if (!outcome && !log_verify_run->is_overlap)
        outcome = as_chain_verify_line(&log_verify_run->verify, line, size, fault);
    if (outcome)
        return outcome;
    if (!log_verify_run->is_overlap)
        memcpy(log_verify_run->hashes[log_verify_run->verify.head.seq % OVERLAP_MAX],
               log_verify_run->verify.head.hash, AS_AUDIT_HASH_SIZE);
    json_t *record = json_loadb(line, size, JSON_REJECT_DUPLICATES, &error);
    if (!record) {
        as_error_set(fault, "not JSON: %s", error.text);
        return AS_CHAIN_MALFORMED;
    }
    json_decref(record);
    return AS_CHAIN_OK;
}

/* 0: valid; > 0: an outcome with `fault`; or a negative errno with `error`. */
static int check_file(struct verify_run *log_verify_run, const char *path, struct as_error *fault,
                      struct as_error *error)
{
    struct log_reader reader;
    const char *line;
    size_t size;
    int outcome = 0, status = log_reader_open(&reader, path, error);

    if (status)
        return status;
    while (!outcome && (status = log_reader_next(&reader, &line, &size, error)) > 0)
        outcome = log_check_line(log_verify_run, line, size, fault);
    if (!outcome && !status && log_reader_get_rest(&reader)) {
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
        while (!outcome && (status = log_reader_next(&reader, &line, &size, error)) > 0)
            outcome = log_check_line(log_verify_run, line, size, fault);
    }
    log_verify_run->line = reader.line;
    if (!outcome && !status && log_reader_get_rest(&reader)) {
        as_error_set(fault, "the file ends in the middle of a line");
        outcome = AS_CHAIN_MALFORMED;
        log_verify_run->line++;
    }
    log_reader_close(&reader);
    return outcome ? outcome : status;
}

static int log_check_end(struct verify_run *log_verify_run, const char *state,
                         struct as_error *fault, struct as_error *error)
{
    const struct as_audit_head *end = &log_verify_run->verify.head;
    struct as_store *store = NULL;
    struct as_audit_head head;

    const struct as_settings settings = {.state = {.store = AS_STORE_SQLITE, .path = state}};
    int status = log_verify_run->args->adapters->open_store(&settings, false, NULL, &store, error);
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

static void log_print_json(const struct verify_run *log_verify_run, const char *fault)
{
    struct as_buf buf = AS_BUF_INIT(4096);
    struct as_json_writer json;

    as_json_init(&json, &buf, 0);
    as_json_begin_object(&json);
    if (fault)
        as_json_write_member(&json, "error", fault);
    if (fault && log_verify_run->line)
        as_json_write_member(&json, "file", log_verify_run->file);
    as_json_write_member_i64(&json, "first", (int64_t)log_verify_run->verify.first_seq);
    as_json_write_member_i64(&json, "last", (int64_t)log_verify_run->verify.head.seq);
    if (fault && log_verify_run->line)
        as_json_write_member_i64(&json, "line", (int64_t)log_verify_run->line);
    as_json_write_member_bool(&json, "ok", !fault);
    as_json_end_object(&json);
    as_safe_json_put(stdout, buf.data, buf.size);
    putchar('\n');
    as_buf_deinit(&buf);
}

static void log_print_text(const struct verify_run *log_verify_run, const char *fault)
{
    if (fault && log_verify_run->line)
        printf("%s:%" PRIu64 ": ", log_verify_run->file, log_verify_run->line);
    if (fault) {
        as_safe_text_put(stdout, fault);
        putchar('\n');
    } else if (!log_verify_run->verify.started)
        puts("no records");
    else
        printf("records %" PRIu64 " to %" PRIu64 " are whole, the last has the hash %s\n",
               log_verify_run->verify.first_seq, log_verify_run->verify.head.seq,
               log_verify_run->verify.head.hash);
    if (!fault && log_verify_run->verify.first_seq > 1)
        printf("records 1 to %" PRIu64 " are not in these files\n",
               log_verify_run->verify.first_seq - 1);
}

static int verify_all(struct verify_run *log_verify_run, const struct log_files *files)
{
    const char *state = as_args_get(log_verify_run->args, "state");
    struct as_error error = AS_ERROR_INIT, fault = AS_ERROR_INIT;
    int status = 0;

    for (size_t i = 0; !status && i < files->count; i++) {
        log_verify_run->file = files->paths[i];
        log_verify_run->is_overlap = log_verify_run->verify.started;
        log_verify_run->overlap_seq = 0;
        status = check_file(log_verify_run, log_verify_run->file, &fault, &error);
    }
    if (!status && state) {
        log_verify_run->line = 0;
        status = log_check_end(log_verify_run, state, &fault, &error);
    }
    if (status < 0)
        return as_cli_fail(log_verify_run->args, "%s", error.text);
    if (as_args_wants_json(log_verify_run->args))
        log_print_json(log_verify_run, status ? fault.text : NULL);
    else
        log_print_text(log_verify_run, status ? fault.text : NULL);
    return status ? AS_EXIT_NO : AS_EXIT_OK;
}

static int log_verify_run(const struct as_args *args)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    AS_CLEANUP(as_free_p) char *hashes = as_xcalloc(OVERLAP_MAX, AS_AUDIT_HASH_SIZE);
    struct verify_run verify = {.args = args,
                                .verify = AS_CHAIN_VERIFY_INIT(chain),
                                .hashes = (char(*)[AS_AUDIT_HASH_SIZE])hashes};
    struct as_error error = AS_ERROR_INIT;
    struct log_files files;

    if (as_args_has(args, "url"))
        return as_cli_fail(args,
                           "--url: a daemon sends only the records that the credential may see, so "
                           "the chain cannot be verified; name the files: alertscaler log verify "
                           "/var/lib/alertscaler/actions.jsonl*");
    if (log_files_find(args, &files, &error))
        return as_cli_fail(args, "%s", error.text);
    int status = verify_all(&verify, &files);
    log_files_deinit(&files);
    return status;
}

static const struct as_option log_verify_options[] = {
    {.name = "state",
     .value = "FILE",
     .help =
         "Also checks that the log ends where this state file says; alertscaler must be stopped"},
    AS_OPTION_CONFIG_FILE("Where the log's place is read from if no FILE is given"),
    {.name = "url", .value = "URL", .help = "Refused: the chain is in the files only"},
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
    .options = log_verify_options,
    .operands_max = 100000,
    .run = log_verify_run,
};

/* --- log --- */

#define FOLLOW_INTERVAL_MS        200
#define FOLLOW_DAEMON_INTERVAL_MS 1000

struct log_run {
    const struct as_args *args;
    struct log_filter filter;
    struct log_selection selection; /* of a daemon */
    char *kinds;                    /* in it */
    bool json, colors, follow, is_terminal;
    json_t *ids;                     /* the last printed id of each target name */
    struct as_spelling target, rule; /* of the filter, while no record matches */
    struct log_repeats *repeats;
    bool is_bad; /* a line was not a record */
    uint64_t printed;
    uint64_t unknown; /* repeats that the filter cannot judge */
    struct log_overlap overlap;
};

/* The names of a record that does not match: one of them may be meant. */
static void log_offer_names(struct log_run *log_run, const json_t *record)
{
    if (log_run->printed > 0)
        return;
    if (log_run->filter.target)
        offer_words(record, target_places, AS_ARRAY_SIZE(target_places), &log_run->target);
    if (log_run->filter.rule)
        offer_words(record, rule_places, AS_ARRAY_SIZE(rule_places), &log_run->rule);
}

/* "no record has the rule "slwo"; did you mean "slow"?": only if a name is near. */
static void log_suggest(const struct as_args *args, const char *what, const char *asked,
                        struct as_spelling *spelling)
{
    const bool is_same = spelling->nearest && strcmp(spelling->nearest, asked) == 0;
    AS_CLEANUP(as_free_p) char *hint = as_spelling_end(spelling);
    if (*hint && !is_same)
        (void)as_cli_fail(args, "no record matches the %s \"%s\"%s", what, asked, hint);
}

static void log_take_record(struct log_run *log_run, json_t *record, const char *line, size_t size)
{
    log_repeats_note(log_run->repeats, record, line, size);
    const bool is_repeat = log_repeats_is_repeat(record);
    json_t *details =
        is_repeat ? log_repeats_resolve(log_run->repeats, record) : json_incref(record);
    struct log_filter others = log_run->filter;
    others.rule = NULL;
    if (!log_filter_match(&log_run->filter, record, details)) {
        log_run->unknown += !details && log_filter_match(&others, record, details);
        log_offer_names(log_run, record);
    } else {
        log_run->printed++;
        if (log_run->json) {
            if (log_run->is_terminal)
                as_safe_json_put(stdout, line, size);
            else
                fwrite(line, 1, size, stdout); /* whose hashes can be verified */
            putchar('\n');
        } else {
            log_print(record, details, log_run->colors, log_run->ids, stdout);
        }
    }
    json_decref(details);
}

static void log_take_line(struct log_run *log_run, const struct log_reader *reader,
                          const char *line, size_t size)
{
    json_error_t error;
    json_t *record = json_loadb(line, size, JSON_REJECT_DUPLICATES, &error);

    if (!json_is_object(record)) {
        log_run->is_bad = true;
        as_cli_fail(log_run->args, "%s:%llu: not a record: %s", reader->path,
                    (unsigned long long)reader->line, record ? "not an object" : error.text);
    } else {
        log_take_record(log_run, record, line, size);
    }
    json_decref(record);
}

/* All complete lines so far. */
static int log_read_lines(struct log_run *log_run, struct log_reader *reader,
                          struct as_error *error)
{
    const char *line;
    size_t size;
    int status;

    while ((status = log_reader_next(reader, &line, &size, error)) > 0 && !ferror(stdout))
        if (!log_overlap_has(&log_run->overlap, line, size))
            log_take_line(log_run, reader, line, size);
    return status < 0 ? status : 0;
}

/* Until it is interrupted, or its output is closed. */
static int follow(struct log_run *log_run, struct log_reader *reader, struct as_error *error)
{
    int status = 0;

    const long ms = reader->remote ? FOLLOW_DAEMON_INTERVAL_MS : FOLLOW_INTERVAL_MS;

    while (!status && !fflush(stdout)) {
        nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
        status = log_read_lines(log_run, reader, error);
        if (!status)
            status = log_reader_follow(reader, error);
    }
    return status;
}

static int log_take_file(struct log_run *log_run, const struct log_files *files, size_t at,
                         struct as_error *error)
{
    const bool is_last = at + 1 == files->count;
    struct log_reader reader;
    int status = log_files_open(files, at, &log_run->selection, &reader, error);

    if (status)
        return status;
    status = log_read_lines(log_run, &reader, error);
    if (!status && is_last && log_run->follow)
        status = follow(log_run, &reader, error);
    log_reader_close(&reader);
    return status;
}

/* What a daemon must send, so that the filter has all it needs: before a repeat also the record
 * with its details. */
static void log_select(struct log_run *log_run)
{
    const struct log_filter *filter = &log_run->filter;
    const char *kinds = as_args_get(log_run->args, "kind");
    const bool has_repeats = !filter->target && filter->kinds[AS_RECORD_REPEAT];

    log_run->kinds = kinds ? as_xasprintf("%s%s", kinds, has_repeats ? ",notification" : "") : NULL;
    log_run->selection = (struct log_selection){
        .target = filter->target,
        .kinds = log_run->kinds,
        .since = filter->since,
        .until = filter->until,
        .follows = log_run->follow,
    };
    if (has_repeats)
        log_run->selection.since.at.us = as_time_add(filter->since.at.us, -AS_REPEAT_REACH_US);
}

static bool wants_colors(const struct as_args *args)
{
    const char *wanted = as_args_get(args, "color"), *terminal = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");

    if (strcmp(wanted, "auto") != 0)
        return strcmp(wanted, "always") == 0;
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

static int log_run(const struct as_args *args)
{
    struct log_run log = {.args = args,
                          .json = as_args_wants_json(args),
                          .is_terminal = isatty(STDOUT_FILENO) == 1,
                          .colors = wants_colors(args),
                          .follow = as_args_has(args, "follow")};
    struct as_error error = AS_ERROR_INIT;
    struct log_files files;

    if (log_filter_init(&log.filter, args, moment_get_now(), &error) ||
        log_files_find_any(args, &files, &error))
        return as_cli_fail(args, "%s", error.text);
    int status = 0;
    log_select(&log);
    log.target = as_spelling_begin(log.filter.target ? log.filter.target : "");
    log.rule = as_spelling_begin(log.filter.rule ? log.filter.rule : "");
    log.ids = json_object();
    log.repeats = log_repeats_new();
    for (size_t i = 0; !status && i < files.count; i++) {
        log.overlap.at_beginning = true;
        status = log_take_file(&log, &files, i, &error);
    }
    const bool is_of_daemon = files.daemon != NULL;
    log_files_deinit(&files);
    free(log.kinds);
    json_decref(log.ids);
    log_repeats_free(log.repeats);
    if (status == 0 && log.printed == 0 && is_of_daemon && log.filter.target)
        http_offer_targets(args, &log.target); /* which the daemon has left out */
    if (status == 0 && log.printed == 0) {
        log_suggest(args, "target", log.filter.target, &log.target);
        log_suggest(args, "rule", log.filter.rule, &log.rule);
    }
    free(log.target.nearest);
    free(log.rule.nearest);
    if (status)
        return as_cli_fail(args, "%s", error.text);
    if (log.unknown > 0)
        (void)as_cli_fail(
            args,
            "%llu repeats were left out: the records with their details, and so their "
            "rules, are not in these files",
            (unsigned long long)log.unknown);
    if (log.is_bad)
        return AS_EXIT_USAGE;
    return log.printed ? AS_EXIT_OK : AS_EXIT_NO;
}

static const char *const color_choices[] = {"auto", "always", "never", NULL};

static const struct as_option log_options[] = {
    LOG_FILTER_OPTIONS,
    {.name = "follow", .letter = 'f', .help = "Waits for new records and prints them, as tail -f"},
    AS_OPTION_CONFIG_FILE("Names the log if no FILE is given"),
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    {.name = "color",
     .value = "WHEN",
     .fallback = "auto",
     .choices = color_choices,
     .help = "auto: on a terminal, unless NO_COLOR is set"},
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_log = {
    .name = "log",
    .operands = "[FILE...]",
    .summary = "Prints the action log: what happened, and why.",
    .help = "Without FILE, the log of the configuration with its rotated files. FILEs may come in "
            "any order; '-' is\nstandard input. With --url or --context, the log of a running "
            "daemon, which sends the records that the\ncredential may see. Exit status 1 if no "
            "record matches.",
    .options = log_options,
    .operands_max = 100000,
    .run = log_run,
};
