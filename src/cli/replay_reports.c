/*
 * One entry for each open incident of the log.
 */
#include "replay_reports.h"

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/tools/record_text.h>

#include "log_reader.h"

struct reported {
    UT_hash_handle hh;
    char *fingerprint;
    json_t *opened;    /* its record */
    as_wall_time last; /* its last report */
};

struct replay_reports {
    struct reported *incidents;
};

struct replay_reports *replay_reports_new(void)
{
    return as_xcalloc(1, sizeof(struct replay_reports));
}

static struct reported *find(const struct replay_reports *reports, const char *fingerprint)
{
    struct reported *found;

    HASH_FIND_STR(reports->incidents, fingerprint, found);
    return found;
}

static void forget(struct replay_reports *reports, struct reported *incident)
{
    HASH_DEL(reports->incidents, incident);
    json_decref(incident->opened);
    free(incident->fingerprint);
    free(incident);
}

struct replay_reports *replay_reports_free(struct replay_reports *reports)
{
    struct reported *incident, *next;

    if (!reports)
        return NULL;
    HASH_ITER (hh, reports->incidents, incident, next)
        forget(reports, incident);
    free(reports);
    return NULL;
}

void replay_reports_note_incident(struct replay_reports *reports, json_t *record)
{
    const char *event = as_record_get_text(record, "event");
    const bool opens = strcmp(event, "opened") == 0;
    struct reported *incident = find(reports, as_record_get_text(record, "fingerprint"));
    as_wall_time at;

    if (strcmp(event, "silenced") == 0 || strcmp(event, "unsilenced") == 0)
        return;
    if (incident)
        forget(reports, incident);
    if (!opens || as_record_get_time(record, &at, NULL) != 0)
        return;
    incident = as_xcalloc(1, sizeof(*incident));
    incident->fingerprint = as_xstrdup(as_record_get_text(record, "fingerprint"));
    incident->opened = json_incref(record);
    incident->last = at;
    HASH_ADD_KEYPTR(hh, reports->incidents, incident->fingerprint, strlen(incident->fingerprint),
                    incident);
}

void replay_reports_note_notification(struct replay_reports *reports, const json_t *record)
{
    const json_t *alert;
    as_wall_time at;
    size_t i;

    if (as_record_get_time(record, &at, NULL) != 0)
        return;
    json_array_foreach(json_object_get(record, "alerts"), i, alert)
    {
        struct reported *incident = find(reports, as_record_get_text(alert, "fingerprint"));
        if (incident && at.us > incident->last.us)
            incident->last = at;
    }
}

const json_t *replay_reports_take(struct replay_reports *reports, const json_t *proposal)
{
    const char *reported = as_record_get_text(proposal, "reported");
    struct reported *incident = find(reports, as_record_get_text(proposal, "incident"));
    as_wall_time at;

    if (!incident || as_wall_time_parse(reported, strlen(reported), &at) != 0 ||
        at.us <= incident->last.us)
        return NULL;
    incident->last = at;
    return incident->opened;
}
