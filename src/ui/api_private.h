/*
 * What the files of the API and the pages share: one request, JSON answers, lists with a limit, and
 * the decisions and failures that are kept.
 *
 *   api.c         the API itself, and short answers
 *   api_decisions.c  decisions, of memory and of the action log
 *   api_policies.c   scaling policies
 *   api_log.c     records of the action log
 *   api_targets.c targets, and the status as a whole
 *   api_rules.c   rules
 */
#ifndef ALERTSCALER_SRC_UI_API_PRIVATE_H
#define ALERTSCALER_SRC_UI_API_PRIVATE_H

#include <bsd/sys/queue.h>
#include <event2/keyvalq_struct.h>
#include <jansson.h>
#include <uthash.h>

#include <alertscaler/auth/reply.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/random.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/ui/api.h>
#include <alertscaler/ui/history.h>

struct as_log_history;
struct page_incident;
struct page_log;
struct page_older;
struct as_row;
struct as_row_type;

#define API_BODY_MAX  ((size_t)16 * 1024 * 1024)
#define API_LIMIT_MAX 1000000

#define DECISIONS_MAX        1000
#define DECISIONS_BYTES_MAX  ((size_t)16 * 1024 * 1024) /* of their records */
#define DECISION_BYTES_MAX   ((size_t)1024 * 1024)      /* a longer record is not kept */
#define DECISION_ACTIONS_MAX ((size_t)8 * 1024)         /* bytes of the actions after it */

struct kept_decision {
    TAILQ_ENTRY(kept_decision) next;
    char id[AS_ULID_SIZE];
    as_wall_time at;
    char *target, *target_name;
    char *rule; /* NULL: none won */
    enum as_reason reason;
    enum as_direction direction;
    int32_t replicas, desired;
    bool has_would;
    int32_t would;
    uint64_t repeats; /* equal decisions since the previous record, which have no record */
    bool has_value;   /* of the rule that won, whose goal is a value */
    double value, goal;
    char unit[AS_UNIT_SIZE]; /* of the sizes; "": none */
    char *record;            /* JSON, as in the action log; NULL: too long */
    size_t record_size;
    char pool_decision[AS_ULID_SIZE]; /* that it carries out; or "" */
    struct as_buf actions;            /* records of what followed, a line each; the first ones */
    enum as_reason failure; /* of its last action; AS_REASON_APPLIED: none failed, or it was set */
    char cause[AS_DIGEST_TEXT_SIZE]; /* digest of the incident for which the rule won; "": none */
    struct as_digest *incidents;     /* that were open, the first ones */
    size_t incident_count;
};
TAILQ_HEAD(kept_decision_list, kept_decision);

#define ENDED_MAX       1000
#define ENDED_BYTES_MAX ((size_t)4 * 1024 * 1024) /* of their texts and targets */

struct ended_incident {
    TAILQ_ENTRY(ended_incident) next;
    struct as_digest digest;
    bool has_expired; /* else its alert was resolved */
    as_wall_time starts_at, opened, at;
    struct as_labels *labels, *annotations;
    char *generator_url, *external_url; /* NULL: not given */
    struct as_incident_target *targets;
    size_t target_count, size;
};
TAILQ_HEAD(ended_incident_list, ended_incident);

#define LOG_FOLLOWERS_MAX 10

struct log_follower { /* a client that asks again for new records of the action log */
    char id[33];      /* its own; "": the place is free */
    char who[128];    /* the beginning of its credential's name */
    bool is_narrowed;
    as_mono_time until; /* it has gone if it has not asked by then */
};

#define FAILURES_MAX      1000
#define FAILURE_BYTES_MAX 1024

struct kept_failure {
    UT_hash_handle hh;
    char *target, *text;
};

struct as_log_absences;

struct api_found { /* what a page waited for: a decision of the action log */
    const struct as_log_absences *absences; /* without `decision`: of the time in question */
    const struct kept_decision *decision;   /* NULL: there is none, or `problem` says why not */
    const struct kept_decision *next;       /* the next decision on its target; NULL: not found */
    const char *previous;                   /* the id of the decision before it; "": none */
    const char *problem;                    /* "": none */
};

struct as_api {
    struct as_api_config config;
    char *instance;
    struct kept_decision_list decisions; /* the newest first */
    size_t decision_count, decision_bytes;
    struct ended_incident_list ended; /* the newest first */
    size_t ended_count, ended_bytes;
    struct kept_failure *failures; /* by target; oldest first */
    struct as_history *history;
    as_maybe_time returned; /* when another replica led last: memory has nothing before */
    struct as_log_history *history_log; /* borrowed; NULL: answers are from memory only */
    struct log_follower followers[LOG_FOLLOWERS_MAX];
    const struct api_found *found;        /* of the present answer; NULL: it has not waited */
    const struct page_log *log;           /* the same for a page of records */
    const struct page_older *older;       /* the same for the page of a target */
    const struct page_incident *incident; /* the same for the page of an incident */
    as_mono_time next_preview;            /* when the files may be read again for a page */
    struct as_buf body;                   /* of the present answer */
    as_wall_time shown_until;             /* of the present page: when a time on it has passed */
};

struct api_request {
    struct as_api *api;
    struct as_http_exchange *exchange;
    const char *who;                /* the asking credential's name */
    const char *rest;               /* the path's part that matched `*` */
    const struct as_api_note *note; /* of a form; NULL: none */
    struct as_view view;
    struct evkeyvalq parameters;
    struct evkeyvalq typed;                   /* of a page: fields of the form that was refused */
    const char *refused_form, *refused_field; /* or NULL */
    struct as_json_writer json;
    size_t contended;     /* of a page: targets that target_rows_print found */
    bool has_form;        /* of a page: it must not refresh */
    bool is_open;         /* of a page: for everybody */
    bool stays;           /* of a page: offers no refreshing */
    const char *document; /* of a page: that describes it, below docs/ */
};

/* Memory has nothing from before: the start, or the last time at which another replica led. */
static inline as_wall_time api_get_memory_begin(const struct api_request *request)
{
    const struct as_api *api = request->api;
    return api->returned.set ? api->returned.at : request->view.started;
}

/* Writes {"status":"success","data": and the caller then writes the value to request->json. */
void api_begin(struct api_request *request);
void api_end(struct api_request *request); /* sends it too */
void api_reply_body(struct api_request *request, int status, const char *content_type,
                    const char *headers);

/* A list as `data`: at its limit, or if the answer would be too long, it ends with a warning. */
struct api_list {
    struct api_request *request;
    size_t limit, count;
    bool is_cut; /* no more items are written */
};
/* `fallback`: the limit if the request has none. False after answering a request with a wrong
 * limit. */
bool api_list_begin(struct api_list *list, struct api_request *request,
                    size_t fallback) AS_MUST_USE;
void api_list_add(struct api_list *list, const struct as_row *rows, const void *item);
void api_list_end(struct api_list *list); /* sends it too */

/*
 * Answers are tables of rows, which stand in the order of the members. They are only written, so
 * that functions of words need no bound. Types may read the request, because its writer writes the
 * answer.
 */

/* The request whose answer is written. */
struct api_request *api_get_request(struct as_json_writer *json);

extern const struct as_row_type as_row_credential; /* const char *, as the reader may see it */
extern const struct as_row_type as_row_moment;     /* struct as_moment */
#define AS_ROW_TYPE_credential const char *
#define AS_ROW_TYPE_moment     struct as_moment

/* A row whose member is written by a function. */
#define API_HOOK(NAME, WRITE)                                                                      \
    .name = (NAME), .type = &(const struct as_row_type)                                            \
    {                                                                                              \
        .write = (WRITE)                                                                           \
    }

/* api_targets.c: calls `each` for the target with this name, or with this id in any spelling;
 * false: there is none. Targets of one template have no name of their own. */
bool api_visit_target(const struct api_request *request, const char *wanted,
                      as_target_visit_fn *each, void *context) AS_MUST_USE;

/* api_targets.c: a sentence without a subject, as "stays at 6: the rule has no on_resolved". */
void api_print_next(const struct as_target_view *target, const struct as_next_view *next,
                    struct as_buf *out);

/* api_rules.c: as in the rule file, but for the order. */
void api_print_matcher(const struct as_matcher *matcher, struct as_buf *out);
void api_write_action(struct as_json_writer *json, const struct as_rule *rule);

const char *api_parameter_find(const struct api_request *request, const char *name); /* "": NULL */
/* api_decisions.c: RFC 3339, or seconds since 1970. -EINVAL: it is wrong; the error names it. */
int api_parameter_get_time(const struct api_request *request, const char *name,
                           as_maybe_time *time_out, struct as_error *error) AS_MUST_USE;
/* request->rest, percent-decoded, for free(); NULL if malformed. */
char *api_decode_rest(const struct api_request *request) AS_MUST_USE;
const struct kept_decision *api_find_decision(const struct as_api *api, const char *id); /* NULL */
struct kept_decision *api_decision_free(struct kept_decision *decision);
struct ended_incident *api_ended_free(struct ended_incident *ended);
/* api_decisions.c: reads the decision, what followed and the decisions beside it from the action
 * log. Then `endpoint` answers the request again, with api->found. */
void api_read_decision(struct api_request *request, const char *id,
                       const struct as_api_endpoint *endpoint);
/* The same for the decision before this one on its target. */
void api_read_previous_decision(struct api_request *request, const struct kept_decision *decision,
                                const struct as_api_endpoint *endpoint);
const char *api_find_failure(const struct as_api *api, const char *target); /* or NULL */

/*
 * What the reader of an answer may see: the targets and rules that the patterns of its credential
 * fit. All else is answered as if it did not exist.
 */
bool api_may_see_target(const struct api_request *request, const char *name,
                        const char *id) AS_MUST_USE;
bool api_may_see_rule(const struct api_request *request, const char *rule, const char *target_name,
                      const char *target_id) AS_MUST_USE;
/* The name of a target that another target depends on, or a neutral text. */
const char *api_show_target(const struct api_request *request, const char *name);

/*
 * Names of credentials in answers. A credential that is narrowed by `targets` or `rules` sees its
 * own name, and "another credential" in place of other names. All other credentials see all names.
 */

/* What the reader sees of the name: itself, or a neutral text. */
const char *api_show_credential(const struct api_request *request, const char *name);
/* The same for all names in a JSON document with "who", in place. */
void api_hide_credentials(const struct api_request *request, json_t *document);
/* The text of such a document as the reader may see it, for free(). NULL: it is no JSON. */
char *api_copy_document(const struct api_request *request, const char *json,
                        size_t size) AS_MUST_USE;
/* Writes that. False: it is no JSON. */
bool api_write_document(struct api_request *request, const char *json, size_t size) AS_MUST_USE;

/*
 * The reader of an answer that the history's thread writes: a copy of what the request says of it.
 */
struct api_reader {
    struct api_request request; /* only `who`, and what may be seen */
    struct as_scope scope;      /* with all that it points to */
    bool is_whole;
};

/* api_decisions.c: appends ": alertscaler-1 led from ... to ..." for the newest absence, if any. */
void api_append_absence(const struct as_log_absences *absences, struct as_buf *out);

/* api_decisions.c */
void api_reader_init(struct api_reader *reader, const struct api_request *request);
void api_reader_deinit(struct api_reader *reader);
bool api_reader_may_see(const struct api_reader *reader, const char *target_name,
                        const char *target);

/*
 * The API's answers, for the table of routes: one function each.
 */

void api_answer_healthy(struct api_request *request);
void api_answer_ready(struct api_request *request);
void api_answer_metrics(struct api_request *request);
void api_answer_status(struct api_request *request);
void api_answer_targets(struct api_request *request);
void api_answer_target(struct api_request *request);
void api_answer_debug_target(struct api_request *request);
void api_answer_approvals(struct api_request *request);
void api_answer_incidents(struct api_request *request);
void api_answer_rules(struct api_request *request);
void api_answer_policies(struct api_request *request);
void api_answer_policy(struct api_request *request);
void api_answer_decisions(struct api_request *request);
void api_answer_decision(struct api_request *request);
void api_answer_log(struct api_request *request);
void api_answer_unknown(struct api_request *request); /* 404 */

#endif
