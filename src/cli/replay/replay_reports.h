/*
 * Reports of firing alerts that are in no notification: Alertmanager's list said them, and only the
 * decisions that rested on them tell. A further step down waits for one.
 */
#ifndef ALERTSCALER_SRC_CLI_REPLAY_REPLAY_REPORTS_H
#define ALERTSCALER_SRC_CLI_REPLAY_REPLAY_REPORTS_H

#include <jansson.h>

#include <alertscaler/base/attr.h>

struct replay_reports;

struct replay_reports *replay_reports_new(void) AS_MUST_USE;
struct replay_reports *replay_reports_free(struct replay_reports *reports);

/* Of the log, in its order: an incident's record, and a notification, which is a report. */
void replay_reports_note_incident(struct replay_reports *reports, json_t *record);
void replay_reports_note_notification(struct replay_reports *reports, const json_t *record);

/* The record of the opening of the proposal's incident, where the proposal names a report that no
 * notification before was; else NULL. Good until the incident's next record. */
const json_t *replay_reports_take(struct replay_reports *reports, const json_t *proposal);

AS_DEFINE_CLEANUP(struct replay_reports *, replay_reports_free)

#endif
