/*
 * Reports of firing alerts without a notification: they came from Alertmanager's list, and only the
 * decisions that used them are in the log. The next step down waits for such a report.
 */
#ifndef ALERTSCALER_SRC_CLI_REPLAY_REPORTS_H
#define ALERTSCALER_SRC_CLI_REPLAY_REPORTS_H

#include <jansson.h>

#include <alertscaler/base/attr.h>

struct replay_reports;

struct replay_reports *replay_reports_new(void) AS_MUST_USE;
struct replay_reports *replay_reports_free(struct replay_reports *reports);

/* Call in the log's order, for each incident's record and each notification, which is a report
 * too. */
void replay_reports_note_incident(struct replay_reports *reports, json_t *record);
void replay_reports_note_notification(struct replay_reports *reports, const json_t *record);

/* The opening record of the proposal's incident, if the proposal names a report that did not come
 * in an earlier notification; else NULL. Valid until the incident's next record. */
const json_t *replay_reports_take(struct replay_reports *reports, const json_t *proposal);

AS_DEFINE_CLEANUP(struct replay_reports *, replay_reports_free)

#endif
