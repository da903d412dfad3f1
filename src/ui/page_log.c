/*
 * Records of the action log for a page. A job of the history's thread has copies of all that it
 * uses. It reads the line of each record that the page prints, because the index has only what
 * filters need. The index has no persons: a search for a person reads the lines of commands,
 * approvals and reloads, until its deadline.
 */
#include "page_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/log/log_history.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/tools/record_text.h>

#include "page.h"

#define LOG_DEADLINE_US (2 * AS_US_PER_S)
#define DOCUMENT_MAX    ((size_t)256 * 1024) /* of one record, as it is read */
#define SEQ_MARGIN_US   AS_US_PER_MIN        /* times may go back, when the clock is set */
#define PERSONS         (1U << AS_RECORD_COMMAND | 1U << AS_RECORD_APPROVAL | 1U << AS_RECORD_RELOAD)

struct page_log_job {
    struct as_log_history_job job; /* the first member */
    struct as_api *api;
    struct as_http_exchange *exchange;
    const struct as_api_endpoint *endpoint;
    const char *rest; /* of the exchange's path */
    struct api_reader reader;
    struct page_log_query query; /* its texts belong to the job */
    struct page_log log;

    /* Of the thread: */
    struct as_log_index *index;
    struct page_log_targets targets;
    struct as_buf line;
    struct page_log_place last; /* the last record that was looked at */
    as_mono_time deadline;
};

static void page_log_free(struct page_log_job *job)
{
    const char *const texts[] = {job->query.target, job->query.rule, job->query.reason,
                                 job->query.who};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        free((char *)(uintptr_t)texts[i]);
    for (size_t i = 0; i < job->log.count; i++) {
        struct page_log_record *record = &job->log.records[i];
        free(record->id);
        free(record->target);
        free(record->target_name);
        free(record->rule);
        free(record->reason);
        json_decref(record->document);
    }
    free(job->log.records);
    api_reader_deinit(&job->reader);
    as_buf_deinit(&job->line);
    free(job);
}

/*
 * In the thread.
 */

struct page_log_id {
    UT_hash_handle hh;
    char id[];
};

/* By the id, or by the name that it has here. */
static bool targets_allow(const struct page_log_targets *targets, const char *name, const char *id)
{
    const char *wanted = targets->wanted;
    if (!targets->reader->is_whole && !api_reader_may_see(targets->reader, name, id))
        return false;
    return !wanted || as_str_glob(wanted, id) || as_str_glob(wanted, name) ||
           (strchr(wanted, '/') && as_target_is_same(wanted, id));
}

static void targets_note(void *context, const char *id, const char *name)
{
    struct page_log_targets *targets = context;
    struct page_log_id *known = NULL;
    const size_t size = strlen(id);
    HASH_FIND(hh, targets->ids, id, size, known);
    if (known || !targets_allow(targets, name, id))
        return;
    known = as_xcalloc(1, sizeof(*known) + size + 1);
    memcpy(known->id, id, size + 1);
    HASH_ADD_KEYPTR(hh, targets->ids, known->id, size, known);
}

int page_log_targets_init(struct page_log_targets *targets, const struct api_reader *reader,
                          const char *wanted, struct as_log_index *index, struct as_error *error)
{
    *targets = (struct page_log_targets){.reader = reader, .wanted = wanted};
    return as_log_index_visit_targets(index, targets_note, targets, error);
}

void page_log_targets_deinit(struct page_log_targets *targets)
{
    struct page_log_id *known, *next;
    HASH_ITER (hh, targets->ids, known, next) {
        HASH_DEL(targets->ids, known);
        free(known);
    }
}

bool page_log_targets_have(const struct page_log_targets *targets, const char *name, const char *id)
{
    const struct page_log_id *known = NULL;
    if (*name)
        return targets_allow(targets, name, id);
    HASH_FIND_STR(targets->ids, id, known);
    return known;
}

static bool page_log_may_see(void *context, const char *target_name, const char *target)
{
    const struct page_log_job *job = context;
    return page_log_targets_have(&job->targets, target_name, target);
}

bool page_log_is_id(const char *id)
{
    const size_t size = strlen(id);
    return size > 0 && size < AS_ULID_SIZE &&
           strspn(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == size;
}

/* Of the proposals of the rule that won, the incident of the one with the highest size. */
const char *page_log_find_cause(const json_t *decision)
{
    const json_t *output = json_object_get(decision, "output"), *proposal;
    const json_t *results = json_object_get(output, "proposals");
    const char *rule = as_record_get_text(output, "rule"), *cause = "";
    int32_t highest = -1, size;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(decision, "input"), "proposals"), i,
                       proposal)
    {
        if (!*rule || strcmp(as_record_get_text(proposal, "rule"), rule) != 0 ||
            !as_record_get_size(json_array_get(results, i), "desired", &size) || size <= highest)
            continue;
        highest = size;
        cause = as_record_get_text(proposal, "incident");
    }
    return cause;
}

/* Of a decision only what a page prints: its input is large. */
static json_t *page_log_cut_decision(json_t *decision, struct page_log_record *record)
{
    json_t *cut = json_object();
    const char *unit = as_record_get_text(decision, "unit");
    as_str_copy_line(page_log_find_cause(decision), record->cause, sizeof(record->cause));
    if (*unit)
        json_object_set_new(cut, "unit", json_string(unit));
    json_decref(decision);
    return cut;
}

/* The name of the person in the record; "": none. */
static const char *page_log_find_who(const json_t *document, enum as_record_kind kind)
{
    return as_record_get_text(document, kind == AS_RECORD_RELOAD ? "credential" : "who");
}

static json_t *page_log_read(struct page_log_job *job, const struct as_log_row *row)
{
    struct as_error error;
    as_buf_clear(&job->line);
    if (row->size > DOCUMENT_MAX || as_log_index_read_row(job->index, row, &job->line, &error) != 0)
        return NULL;
    return json_loadb(job->line.data, job->line.size, 0, NULL);
}

static void page_log_add(struct page_log_job *job, const struct as_log_row *row, json_t *document)
{
    struct page_log_record *record = &job->log.records[job->log.count++];
    *record = (struct page_log_record){
        .seq = row->seq,
        .time = row->time,
        .kind = row->kind,
        .id = as_xstrdup(row->id),
        .target = as_xstrdup(row->target),
        .target_name = as_xstrdup(row->target_name),
        .rule = as_xstrdup(row->rule ? row->rule : ""),
        .reason = as_xstrdup(row->reason ? row->reason : ""),
        .has_from = row->has_from,
        .has_to = row->has_to,
        .has_would = row->has_would,
        .from = row->from,
        .to = row->to,
        .would = row->would,
    };
    record->document = row->kind == AS_RECORD_DECISION && document
                           ? page_log_cut_decision(document, record)
                           : document;
}

static bool page_log_on_row(void *context, const struct as_log_row *row)
{
    struct page_log_job *job = context;
    const char *who = job->query.who;
    json_t *document = NULL;
    if ((job->query.before.is_set && row->seq >= job->query.before.seq) ||
        (job->query.wants && !job->query.wants(row)))
        return true;
    if (as_system_clock.get_mono(&as_system_clock).us > job->deadline.us) {
        job->log.is_slow = true;
        return false;
    }
    if (who) {
        document = page_log_read(job, row);
        const char *name = page_log_find_who(document, row->kind);
        if (!*name || strcmp(api_show_credential(&job->reader.request, name), who) != 0) {
            json_decref(document);
            job->last = (struct page_log_place){true, row->time, row->seq};
            return true;
        }
    }
    if (job->log.count == job->query.limit) {
        json_decref(document);
        job->log.next = job->last;
        return false;
    }
    page_log_add(job, row, document ? document : page_log_read(job, row));
    job->last = (struct page_log_place){true, row->time, row->seq};
    return true;
}

static void page_log_run(struct as_log_history_job *self, const struct as_log_history_view *view)
{
    struct page_log_job *job = (struct page_log_job *)self;
    const struct page_log_query *wanted = &job->query;
    const bool is_narrowed = wanted->target || !job->reader.is_whole;
    struct as_error error;
    int64_t until = wanted->to.us;
    if (wanted->before.is_set && wanted->before.time.us + SEQ_MARGIN_US < until)
        until = wanted->before.time.us + SEQ_MARGIN_US;
    job->index = view->index;
    job->log.records = as_xcalloc(wanted->limit, sizeof(*job->log.records));
    job->deadline.us = as_time_add(as_system_clock.get_mono(&as_system_clock).us, LOG_DEADLINE_US);
    const struct as_log_query query = {
        .kinds = wanted->who ? wanted->kinds & PERSONS : wanted->kinds,
        .rule = wanted->rule,
        .reason = wanted->reason,
        .since = {true, wanted->from},
        .until = {true, {until}},
        .may_see = is_narrowed ? page_log_may_see : NULL,
        .on_row = page_log_on_row,
        .context = job,
        .deadline = job->deadline,
    };
    int status = view->index ? 0 : -EIO;
    if (status == 0 && is_narrowed)
        status =
            page_log_targets_init(&job->targets, &job->reader, wanted->target, view->index, &error);
    if (status == 0)
        status = as_log_index_find(view->index, &query, &error);
    page_log_targets_deinit(&job->targets);
    job->log.is_slow = job->log.is_slow || status == -ETIMEDOUT;
    job->log.is_broken = status != 0 && status != -ETIMEDOUT;
    job->log.is_partial = !view->state.is_current || *view->problem;
    if (job->log.is_slow)
        job->log.next = job->last;
}

/*
 * In the loop.
 */

static void page_log_drop(struct as_log_history_job *self)
{
    page_log_free((struct page_log_job *)self);
}

static void page_log_show(struct as_log_history_job *self)
{
    struct page_log_job *job = (struct page_log_job *)self;
    job->api->log = &job->log;
    as_api_answer(job->api, job->exchange, job->endpoint, job->rest, job->reader.request.who, NULL);
    job->api->log = NULL;
    page_log_free(job);
}

as_wall_time page_log_get_memory_begin(const struct api_request *request)
{
    const struct as_api *api = request->api;
    const bool is_full = api->decision_count >= DECISIONS_MAX ||
                         api->decision_bytes > DECISIONS_BYTES_MAX - DECISION_BYTES_MAX;
    if (is_full)
        return TAILQ_LAST(&api->decisions, kept_decision_list)->at;
    return api_get_memory_begin(request);
}

static const char *page_log_copy(const char *text)
{
    return text ? as_xstrdup(text) : NULL;
}

bool page_log_wait(struct api_request *request, const struct page_log_query *query,
                   const struct as_api_endpoint *endpoint)
{
    struct as_api *api = request->api;
    if (api->log || !api->history_log)
        return false;
    struct page_log_job *job = as_xcalloc(1, sizeof(*job));
    api_reader_init(&job->reader, request);
    job->job = (struct as_log_history_job){.is_narrowed = !job->reader.is_whole,
                                           .run = page_log_run,
                                           .done = page_log_show,
                                           .drop = page_log_drop};
    job->api = api;
    job->exchange = request->exchange;
    job->endpoint = endpoint;
    job->rest = request->rest;
    job->line = AS_BUF_INIT_OPEN(DOCUMENT_MAX);
    job->query = *query;
    job->query.target = page_log_copy(query->target);
    job->query.rule = page_log_copy(query->rule);
    job->query.reason = page_log_copy(query->reason);
    job->query.who = page_log_copy(query->who);
    if (as_log_history_submit(api->history_log, &job->job))
        return true;
    page_log_free(job);
    return false;
}

void page_log_print_notes(const struct api_request *request)
{
    const struct page_log *log = request->api->log;
    struct as_buf *out = page_get_out(request);
    if (log->is_broken)
        as_buf_append_str(out, "<p class=\"note warn\">The action log could not be read to the "
                               "end: events may be missing.</p>\n");
    else if (log->is_partial)
        as_buf_append_str(out, "<p class=\"note warn\">The action log is not indexed to the end: "
                               "events may be missing.</p>\n");
    if (!log->is_slow)
        return;
    as_buf_append_str(out, "<p class=\"note warn\">The search takes too long.");
    if (log->next.is_set) {
        as_buf_append_str(out, " It has reached ");
        page_print_time(request, log->next.time);
        as_buf_append_str(out, ": the link at the end continues from there.</p>\n");
    } else {
        as_buf_append_str(out, " Choose a target, or a shorter time.</p>\n");
    }
}

void page_log_print_absence(const struct api_request *request)
{
    if (request->api->history_log)
        html_element(page_get_out(request), "p", "note warn",
                     "The action log cannot be read now: older entries are missing.");
}

bool page_log_get_before(const struct api_request *request, struct page_log_place *before_out)
{
    const char *text = api_parameter_find(request, PAGE_BEFORE);
    const char *comma = text ? strchr(text, ',') : NULL;
    struct page_log_place before = {.is_set = text != NULL};
    if (text &&
        (!comma || as_wall_time_parse(text, (size_t)(comma - text), &before.time) != 0 ||
         as_number_parse_i64(comma + 1, strlen(comma + 1), &before.seq) != 0 || before.seq < 1))
        return false;
    *before_out = before;
    return true;
}

void page_log_print_older(const struct api_request *request, const char *path)
{
    const struct page_log_place *next = &request->api->log->next;
    struct as_buf *out = page_get_out(request);
    AS_CLEANUP(as_buf_deinit) struct as_buf url = AS_BUF_INIT(PAGE_URL_MAX);
    char time[AS_RFC3339_SIZE];
    const bool has_before = api_parameter_find(request, PAGE_BEFORE);
    if (!next->is_set && !has_before)
        return;
    as_buf_append_str(out, "<nav class=\"pages\" aria-label=\"More rows\">");
    as_buf_printf(&url, "%s%s?", page_root(request), path);
    page_append_query(request, PAGE_BEFORE, &url);
    if (has_before && as_buf_check(&url) == 0)
        html_link(out, url.data, "", "Newest");
    as_wall_time_print(next->time, time);
    as_buf_printf(&url, PAGE_BEFORE "=%s,%lld", time, (long long)next->seq);
    if (next->is_set && as_buf_check(&url) == 0)
        html_link(out, url.data, "", "Older");
    as_buf_append_str(out, "</nav>\n");
}
