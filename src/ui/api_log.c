/*
 * Requests for the action log's records, page after page: a line for each record, as in the file. A
 * request becomes a job of the history's thread (log/log_history.h), which reads the page
 * (log/log_page.h); the loop only sends it. The cursor is the number of a record, so a client loses
 * nothing over rotations and restarts.
 *
 * A narrowed credential gets the records about its targets only, without the chain, and without
 * other targets of an incident and names of other credentials.
 *
 * A follower answers too, because its files have records that the leader lacks. The answer says who
 * leads. It refuses a client that follows the log, which would wait in vain.
 *
 * A client that follows the log asks again and again, with an id of its own. The id has one of
 * LOG_FOLLOWERS_MAX places until it has not asked for FOLLOWER_US.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/log/log_absences.h>
#include <alertscaler/log/log_history.h>
#include <alertscaler/log/log_page.h>
#include <alertscaler/port/clock.h>

#include "api_private.h"

#define RECORDS_MAX       10000
#define LOG_BYTES_MAX     ((size_t)4 << 20) /* of an answer, but for one longer record */
#define LOG_DURATION_US   (100 * AS_US_PER_MS)
#define LOG_ABSENCES_US   AS_US_PER_S
#define LOG_HEADERS_MAX   ((size_t)8 << 10)
#define NARROWED_LINE_MAX ((size_t)1 << 20)
#define FOLLOWER_US       (30 * AS_US_PER_S)
#define LOG_TYPE          "application/x-ndjson"

struct seen_target { /* that a narrowed reader may see by a name of it */
    UT_hash_handle hh;
    char id[];
};

struct api_log {
    struct as_log_history_job job; /* the first member */
    struct as_http_exchange *exchange;
    struct api_reader reader;
    char *log_path, *target;
    const char *instance; /* of this replica; the API's */
    struct as_log_absences absences;
    char *leader;                     /* who leads in place of this replica; NULL: this one does */
    bool kinds[AS_RECORD_KIND_COUNT]; /* that are wanted */
    bool has_kinds;                   /* else all, also those of later versions */
    int64_t after;
    as_maybe_time since, until;
    size_t limit, count;
    uint64_t skipped;
    struct seen_target *seen; /* incidents name only ids */
    struct as_log_page page;
    int status; /* of HTTP */
    struct as_error error;
    struct as_buf body;
};

static struct api_log *api_log_free(struct api_log *log)
{
    struct seen_target *seen, *next;
    HASH_ITER (hh, log->seen, seen, next) {
        HASH_DEL(log->seen, seen);
        free(seen);
    }
    api_reader_deinit(&log->reader);
    free(log->log_path);
    free(log->target);
    free(log->leader);
    as_buf_deinit(&log->body);
    free(log);
    return NULL;
}

/*
 * In the thread.
 */

static bool api_log_wants_kind(const struct api_log *log, const char *word)
{
    for (int kind = 0; log->has_kinds && kind < AS_RECORD_KIND_COUNT; kind++) {
        if (strcmp(word, as_record_kind_get_word((enum as_record_kind)kind)) == 0)
            return log->kinds[kind];
    }
    return !log->has_kinds;
}

static const char *api_log_get_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool api_log_incident_has(const json_t *incident, const char *pattern)
{
    const json_t *each;
    size_t i;
    json_array_foreach(json_object_get(incident, "targets"), i, each)
    {
        if (as_str_glob(pattern, api_log_get_text(each, "target")))
            return true;
    }
    return false;
}

/* Whether the record is about a wanted target. `document`: of an incident. */
static bool api_log_wants_target(const struct api_log *log, const struct as_log_page_record *record,
                                 const json_t *document)
{
    return !log->target || (*record->target && as_str_glob(log->target, record->target)) ||
           (*record->target_name && as_str_glob(log->target, record->target_name)) ||
           api_log_incident_has(document, log->target);
}

static void api_log_on_target(void *context, const char *id, const char *name)
{
    struct api_log *log = context;
    struct seen_target *seen = NULL;
    const size_t size = strlen(id);
    HASH_FIND(hh, log->seen, id, size, seen);
    if (seen || !api_reader_may_see(&log->reader, name, id))
        return;
    seen = as_xcalloc(1, sizeof(*seen) + size + 1);
    memcpy(seen->id, id, size + 1);
    HASH_ADD_KEYPTR(hh, log->seen, seen->id, size, seen);
}

static bool api_log_may_see_id(const struct api_log *log, const char *id)
{
    const struct seen_target *seen = NULL;
    HASH_FIND_STR(log->seen, id, seen);
    return seen || api_reader_may_see(&log->reader, NULL, id);
}

/* False: the incident has no target that the reader may see. */
static bool api_log_narrow_incident(const struct api_log *log, json_t *incident)
{
    json_t *targets = json_object_get(incident, "targets");
    for (size_t i = json_array_size(targets); i > 0; i--) {
        const json_t *each = json_array_get(targets, i - 1);
        if (!api_log_may_see_id(log, api_log_get_text(each, "target")))
            (void)json_array_remove(targets, i - 1);
    }
    return json_array_size(targets) > 0;
}

/* What a narrowed reader sees of the record, for free(). NULL: nothing. */
static char *api_log_narrow(const struct api_log *log, json_t *document, bool is_incident)
{
    if (is_incident && !api_log_narrow_incident(log, document))
        return NULL;
    const char *who = api_log_get_text(document, "who");
    if (*who && api_show_credential(&log->reader.request, who) != who)
        json_object_set_new(document, "remote", json_string(""));
    api_hide_credentials(&log->reader.request, document);
    (void)json_object_del(document, "hash");
    (void)json_object_del(document, "prev");
    return json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);
}

static bool api_log_may_be_seen(const struct api_log *log, const struct as_log_page_record *record,
                                bool is_incident)
{
    return log->reader.is_whole || is_incident ||
           (*record->target &&
            api_reader_may_see(&log->reader, record->target_name, record->target));
}

/* False: the answer is full. */
static bool api_log_add(struct api_log *log, const char *line, size_t size)
{
    if (log->count == log->limit || (log->count > 0 && log->body.size + size + 1 > LOG_BYTES_MAX))
        return false;
    as_buf_append(&log->body, line, size);
    as_buf_append_char(&log->body, '\n');
    log->count++;
    return true;
}

static bool api_log_on_record(void *context, const struct as_log_page_record *record)
{
    struct api_log *log = context;
    const bool is_incident = strcmp(record->kind, "incident") == 0;
    const bool is_whole = log->reader.is_whole;
    if (!api_log_wants_kind(log, record->kind) || !api_log_may_be_seen(log, record, is_incident))
        return true;
    json_t *document = NULL;
    if (!is_whole && record->size > NARROWED_LINE_MAX) {
        log->skipped++;
        return true;
    }
    if (!is_whole || (is_incident && log->target))
        document = json_loadb(record->line, record->size, 0, NULL);
    AS_CLEANUP(as_free_p)
    char *narrowed = !is_whole && document ? api_log_narrow(log, document, is_incident) : NULL;
    const bool is_wanted =
        (is_whole || narrowed) && api_log_wants_target(log, record, is_incident ? document : NULL);
    json_decref(document);
    if (!is_wanted)
        return true;
    return narrowed ? api_log_add(log, narrowed, strlen(narrowed))
                    : api_log_add(log, record->line, record->size);
}

/* Who has the records that are missing in the page, or before the first one. */
static void api_log_find_absences(struct api_log *log, const struct as_log_history_view *view)
{
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    const struct as_log_absences_query query = {
        .instance = log->instance,
        .since = log->since,
        .until = log->until,
        .after = log->after,
        .last = log->page.next,
        .deadline = {as_time_add(now.us, LOG_ABSENCES_US)},
    };
    as_log_absences_find(view, &query, &log->absences);
}

static void api_log_run(struct as_log_history_job *job, const struct as_log_history_view *view)
{
    struct api_log *log = (struct api_log *)job;
    const struct as_log_page_query query = {
        .log_path = log->log_path,
        .after = log->after,
        .since = log->since,
        .until = log->until,
        .duration_us = LOG_DURATION_US,
        .on_record = api_log_on_record,
        .context = log,
    };
    int status = 0;
    if (!log->reader.is_whole && view->index)
        status = as_log_index_visit_targets(view->index, api_log_on_target, log, &log->error);
    if (status == 0)
        status = as_log_page_read(&query, &log->page, &log->error);
    if (status == 0 && (log->page.missing > 0 || log->after == 0))
        api_log_find_absences(log, view);
    if (status == 0)
        return;
    log->status = 503;
    if (!log->reader.is_whole)
        as_error_set(&log->error, "the action log cannot be read");
}

/*
 * In the loop.
 */

static void api_log_drop(struct as_log_history_job *job)
{
    api_log_free((struct api_log *)job);
}

static void api_log_print_headers(const struct api_log *log, struct as_buf *out)
{
    const struct as_log_absences *absences = &log->absences;
    as_buf_printf(out,
                  AS_REPLY_NO_STORE "Alertscaler-Log-Next: %lld\r\n"
                                    "Alertscaler-Log-More: %s\r\n"
                                    "Alertscaler-Log-Missing: %llu\r\n"
                                    "Alertscaler-Log-Skipped: %llu\r\n",
                  (long long)log->page.next, log->page.has_more ? "yes" : "no",
                  (unsigned long long)log->page.missing,
                  (unsigned long long)log->page.skipped + log->skipped);
    if (log->leader)
        as_buf_printf(out, "Alertscaler-Log-Leader: %s\r\n", log->leader);
    for (size_t i = 0; i < absences->count; i++) {
        as_buf_append_str(out, i == 0 ? "Alertscaler-Log-Absences: " : ". ");
        as_log_absence_print(&absences->items[i], out);
    }
    as_buf_append_str(out, absences->count > 0 ? "\r\n" : "");
    as_buf_append_char(out, '\0');
}

static void api_log_send(struct as_log_history_job *job)
{
    struct api_log *log = (struct api_log *)job;
    if (log->status == 200 && as_buf_check(&log->body) != 0) {
        log->status = 500;
        as_error_set(&log->error, "there is no memory for the answer");
    }
    if (log->status != 200) {
        as_reply_error(log->exchange, log->status, log->status == 503 ? AS_REPLY_LATER : NULL, "%s",
                       log->error.text);
    } else {
        AS_CLEANUP(as_buf_deinit) struct as_buf headers = AS_BUF_INIT(LOG_HEADERS_MAX);
        api_log_print_headers(log, &headers);
        as_http_exchange_reply(log->exchange, &(struct as_http_answer){
                                                  .status = 200,
                                                  .content_type = LOG_TYPE,
                                                  .headers = headers.data,
                                                  .body = log->body.data,
                                                  .body_size = log->body.size,
                                              });
    }
    api_log_free(log);
}

static int api_log_read_number(const struct api_request *request, const char *name, int64_t least,
                               int64_t most, int64_t *number_io, struct as_error *error)
{
    const char *text = api_parameter_find(request, name);
    int64_t number;
    if (!text)
        return 0;
    if (as_number_parse_i64(text, strlen(text), &number) != 0 || number < least || number > most) {
        as_error_set(error, "%s: expected a number from %lld to %lld", name, (long long)least,
                     (long long)most);
        return -EINVAL;
    }
    *number_io = number;
    return 0;
}

static int api_log_read_kind(struct api_log *log, const char *word, size_t size,
                             struct as_error *error)
{
    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        const char *known = as_record_kind_get_word((enum as_record_kind)kind);
        if (strlen(known) == size && memcmp(known, word, size) == 0) {
            log->kinds[kind] = true;
            return 0;
        }
    }
    as_error_set(error, "kind: expected kinds of records, as decision,action");
    return -EINVAL;
}

static int api_log_read_kinds(struct api_log *log, const char *text, struct as_error *error)
{
    int status = 0;
    log->has_kinds = text != NULL;
    while (status == 0 && text) {
        const size_t size = strcspn(text, ",");
        status = api_log_read_kind(log, text, size, error);
        text = text[size] ? text + size + 1 : NULL;
    }
    return status;
}

static int api_log_read_request(struct api_log *log, const struct api_request *request,
                                struct as_error *error)
{
    int64_t limit = RECORDS_MAX;
    int status = api_log_read_kinds(log, api_parameter_find(request, "kind"), error);
    if (status == 0)
        status = api_log_read_number(request, "after", 0, INT64_MAX - 1, &log->after, error);
    if (status == 0)
        status = api_log_read_number(request, "limit", 1, RECORDS_MAX, &limit, error);
    if (status == 0)
        status = api_parameter_get_time(request, "since", &log->since, error);
    if (status == 0)
        status = api_parameter_get_time(request, "until", &log->until, error);
    const char *target = api_parameter_find(request, "target");
    log->target = target ? as_xstrdup(target) : NULL;
    log->limit = (size_t)limit;
    return status;
}

/*
 * Clients that follow the log.
 */

static bool log_follower_is(const struct log_follower *follower, const char *id, const char *who)
{
    return strcmp(follower->id, id) == 0 &&
           strncmp(follower->who, who, sizeof(follower->who) - 1) == 0;
}

/* The place of the client, perhaps a free one; NULL: there is none. */
static struct log_follower *api_log_find_follower(struct as_api *api, const char *id,
                                                  const struct api_reader *reader)
{
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    struct log_follower *place = NULL;
    size_t narrowed = 0;
    for (size_t i = 0; i < LOG_FOLLOWERS_MAX; i++) {
        struct log_follower *each = &api->followers[i];
        if (*each->id && each->until.us < now.us)
            *each = (struct log_follower){.id = ""};
        if (log_follower_is(each, id, reader->request.who))
            return each;
        narrowed += each->is_narrowed;
        place = *each->id ? place : each;
    }
    return reader->is_whole || narrowed < LOG_FOLLOWERS_MAX / 2 ? place : NULL;
}

static bool api_log_is_follower_id(const char *id)
{
    const size_t size = strlen(id);
    return size >= 1 && size < sizeof(((struct log_follower *)NULL)->id) &&
           strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == size;
}

/* 0; or a status of HTTP with an error. */
static int api_log_follow(struct as_api *api, const char *id, const struct api_reader *reader,
                          struct as_error *error)
{
    if (!api_log_is_follower_id(id)) {
        as_error_set(error, "follow: expected an id of 1 to 32 letters and digits");
        return 400;
    }
    struct log_follower *follower = api_log_find_follower(api, id, reader);
    if (!follower) {
        as_error_set(error,
                     "%d clients follow the action log already: end one, then try again after %d s",
                     reader->is_whole ? LOG_FOLLOWERS_MAX : LOG_FOLLOWERS_MAX / 2,
                     (int)(FOLLOWER_US / AS_US_PER_S));
        return 503;
    }
    (void)snprintf(follower->who, sizeof(follower->who), "%s", reader->request.who);
    (void)snprintf(follower->id, sizeof(follower->id), "%s", id);
    follower->is_narrowed = !reader->is_whole;
    follower->until.us = as_time_add(as_system_clock.get_mono(&as_system_clock).us, FOLLOWER_US);
    return 0;
}

/* The holder of the Lease, for a header. */
static char *api_log_copy_leader(const struct as_leader_view *leader)
{
    const char *holder = leader->holder;
    const bool is_known = *holder && strcmp(holder, leader->identity) != 0 &&
                          as_str_is_visible(holder, strlen(holder));
    return as_xstrdup(is_known ? holder : "nobody");
}

void api_answer_log(struct api_request *request)
{
    struct as_api *api = request->api;
    const struct as_leader_view *leader = &request->view.leader;
    struct api_log *log = as_xcalloc(1, sizeof(*log));
    const char *follow = api_parameter_find(request, "follow");
    log->job =
        (struct as_log_history_job){.run = api_log_run, .done = api_log_send, .drop = api_log_drop};
    log->exchange = request->exchange;
    log->instance = api->instance;
    log->leader = leader->is_leader ? NULL : api_log_copy_leader(leader);
    log->status = 200;
    log->body = AS_BUF_INIT_OPEN(AS_LOG_PAGE_LINE_MAX + LOG_BYTES_MAX);
    api_reader_init(&log->reader, request);
    log->job.is_narrowed = !log->reader.is_whole;
    if (api_log_read_request(log, request, &log->error) != 0) {
        log->status = 400;
    } else if (log->leader && follow) {
        log->status = 503;
        as_error_set(&log->error, "%s: ask that one",
                     request->view.not_ready ? request->view.not_ready : "not the leader");
    } else if (!api->history_log) {
        log->status = 503;
        as_error_set(&log->error, "the action log cannot be read now: try again");
    } else {
        log->log_path = as_xstrdup(as_log_history_get_path(api->history_log));
        const int refusal = follow ? api_log_follow(api, follow, &log->reader, &log->error) : 0;
        log->status = refusal ? refusal : 200;
    }
    if (log->status == 200 && as_log_history_submit(api->history_log, &log->job))
        return;
    if (log->status == 200) {
        log->status = 503;
        as_error_set(&log->error, "too many requests for the action log wait: try again");
    }
    api_log_send(&log->job);
}
