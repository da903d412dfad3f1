/*
 * Records of the action log for a page: those that fit a filter, the newest first. The index of the
 * log finds them in the history's thread, while the page waits; then the page is answered again,
 * with api->log. What a credential may not see is not found.
 */
#ifndef ALERTSCALER_SRC_UI_PAGE_LOG_H
#define ALERTSCALER_SRC_UI_PAGE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <alertscaler/decide/record.h>

#include "api_private.h"

struct as_log_index;
struct as_log_row;

struct page_log_place { /* between two records */
    bool is_set;
    as_wall_time time;
    int64_t seq; /* of the later record */
};

/* How long a page with records is current: a record is in the log some time after its event. */
#define PAGE_LOG_LASTS_US (5 * AS_US_PER_S)

struct page_log_query {
    unsigned kinds;     /* a bit (1U << kind) for each that is wanted */
    const char *target; /* a name or an id, with `*` for any text; NULL: all */
    const char *rule, *reason;
    const char *who; /* the name of a credential, as the reader sees it; NULL: all */
    as_wall_time from, to;
    struct page_log_place before; /* only records before */
    size_t limit;
    bool (*wants)(const struct as_log_row *row); /* NULL: all */
};

struct page_log_record {
    int64_t seq;
    as_wall_time time;
    enum as_record_kind kind;
    char *id, *target, *target_name; /* "": none */
    char *rule, *reason;             /* "": none */
    bool has_from, has_to, has_would;
    int32_t from, to, would;
    json_t *document;                /* NULL: it is too long, or the log lost it just now */
    char cause[AS_DIGEST_TEXT_SIZE]; /* of a decision: the incident for which the rule won; or "" */
};

struct page_log {
    struct page_log_record *records; /* the newest first */
    size_t count;
    struct page_log_place next; /* there is more, or may be: the `before` of the next page */
    bool is_slow;               /* the search was stopped by its deadline */
    bool is_partial;            /* records may be missing: the index is not complete */
    bool is_broken;             /* the index cannot be read */
};

/*
 * In the history's thread: which targets of the log a page shows, of all that the reader may see.
 * Some records have only the id of a target: they count by each name that the target has in the
 * log.
 */
struct page_log_targets {
    const struct api_reader *reader;
    const char *wanted; /* a name or an id, with `*` for any text; NULL: all */
    struct page_log_id *ids;
};

/* 0 or a negative errno with an error; deinit is necessary then too. */
int page_log_targets_init(struct page_log_targets *targets, const struct api_reader *reader,
                          const char *wanted, struct as_log_index *index,
                          struct as_error *error) AS_MUST_USE;
void page_log_targets_deinit(struct page_log_targets *targets);
/* `name` "": not known. */
bool page_log_targets_have(const struct page_log_targets *targets, const char *name,
                           const char *id) AS_MUST_USE;

/* From then on memory has all decisions. */
as_wall_time page_log_get_memory_begin(const struct api_request *request);

/* Whether a page may have the id in a URL. The log may have been altered. */
bool page_log_is_id(const char *id);

/* The incident for which the rule of the decision's record won; "": none. */
const char *page_log_find_cause(const json_t *decision);

/* True: the page waits. Else api->log has what was found; NULL: the log cannot be read now.
 * `endpoint` is static. */
bool page_log_wait(struct api_request *request, const struct page_log_query *query,
                   const struct as_api_endpoint *endpoint) AS_MUST_USE;

/* A sentence about what api->log lacks; nothing if it is complete. */
void page_log_print_notes(const struct api_request *request);
/* The same of a page that did not get what it needs: too many requests wait for the log. */
void page_log_print_absence(const struct api_request *request);

/* The parameter `before`, "2026-11-20T02:00:00.000000Z,4711". False: it is malformed. */
bool page_log_get_before(const struct api_request *request,
                         struct page_log_place *before_out) AS_MUST_USE;
#define PAGE_LOG_WRONG_BEFORE                                                                      \
    "before: expected a time and the number of a record, as in before=2026-11-20T10:00:00Z,4711."
/* A link to the records after those of api->log, with the other parameters as they are. */
void page_log_print_older(const struct api_request *request, const char *path);

#endif
