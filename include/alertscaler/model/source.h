/*
 * What the engine and a source of monitoring exchange: a PromQL query and its result, and
 * Alertmanager's list of firing alerts. Plain data; port/source.h has the functions.
 */
#ifndef ALERTSCALER_MODEL_SOURCE_H
#define ALERTSCALER_MODEL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/fair_queue.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/labels.h>

#define AS_QUERY_MAX       16384 /* bytes of a query with its templates filled in */
#define AS_QUERY_ERROR_MAX 256   /* bytes of an error's text, with NUL; longer texts are cut */
#define AS_SAMPLES_MAX     20000 /* of one answer */

enum as_query_form {
    AS_QUERY_NUMBER,  /* a scalar, or a vector of one series */
    AS_QUERY_PER_POD, /* a vector with one series per pod */
    AS_QUERY_ANY      /* any number of series: only whether there is one counts (guards) */
};

struct as_query {
    const char *text; /* in PromQL */
    enum as_query_form form;
    const char *pod_label; /* per pod */
    struct as_flow flow;
    bool is_continuous;  /* only `always` rules need it: the queries of alerts go first */
    const char *written; /* in the rule file, with templates; NULL: as `text` */
    const char *tenant;  /* the namespace of the policy that asks; NULL: a rule file does */
};

struct as_sample {
    const char *pod;
    double value;
    as_maybe_time at; /* unset: the time of evaluation */
    int64_t window_us;
};

/*
 * One of: an error, in a user's words (unreachable, time-out, not JSON, `status: error`, warnings,
 * no data, many series, not a finite number, a missing or repeated pod label, ...); a number;
 * samples, ascending by pod (bytes), each pod once. AS_QUERY_ANY without a series is the error
 * "query returned no data".
 */
struct as_query_result {
    const char *error;               /* NULL: no error */
    double value;                    /* AS_QUERY_NUMBER: finite */
    const struct as_sample *samples; /* AS_QUERY_PER_POD: not empty, values finite */
    size_t sample_count;
};

/* The server's verdict about a query, whatever it would return. */
enum as_query_verdict { AS_QUERY_ACCEPTED, AS_QUERY_REFUSED, AS_QUERY_UNCHECKED };

/*
 * Alertmanager's list of firing alerts, with the receivers of their groups: the answer to a resync.
 */

#define AS_ALERT_LIST_MAX 100000 /* alerts; more is a read error */

/* Whether time intervals mute the receiver cannot be known. */
#define AS_LISTED_NEVER INT64_MAX

/* A receiver, in whose groups the alert is. */
struct as_listed_route {
    const char *receiver;
    bool is_muted;   /* by time intervals: at one Alertmanager, all these groups are */
    int64_t wait_us; /* the alert must have been unmuted for so long until it is certain that
                        Alertmanager sends it; 0: no time interval mutes the receiver */
};

struct as_listed_alert {
    struct as_digest digest; /* of the labels */
    uint64_t fingerprint;    /* Alertmanager's: for display */
    bool is_suppressed;      /* silenced or inhibited: it fires without notifications */
    bool is_inhibited;       /* at one Alertmanager, which then does not check its time intervals */
    as_wall_time starts_at;
    as_wall_time updated_at; /* the last update from Prometheus, by Alertmanager's clock; year 1 if
                                not given */
    const struct as_labels *labels, *annotations;
    const char *generator_url, *external_url; /* NULL: not given */
    const struct as_listed_route *routes;     /* ascending by receiver, each once */
    size_t route_count;
    const char *const *receivers; /* that get it for certain: of a notification, its receiver */
    size_t receiver_count;
};

struct as_alert_list {
    const char *error;                    /* NULL: every Alertmanager gave a list; else the error */
    const struct as_listed_alert *alerts; /* ascending by digest, each once */
    size_t count;
    size_t unread;       /* alerts that could not be read: the list is incomplete */
    const char *problem; /* of the first of these alerts; NULL: none */
    bool is_anew;        /* an Alertmanager has been started since the last list */
    const char *note;    /* why the list may open no incidents; NULL: it may */
};

#endif
