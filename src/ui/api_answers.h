/*
 * The API's answers, for the table of routes: one function each.
 */
#ifndef ALERTSCALER_SRC_UI_API_ANSWERS_H
#define ALERTSCALER_SRC_UI_API_ANSWERS_H

struct api_request;

void api_answer_healthy(struct api_request *request);
void api_answer_ready(struct api_request *request);
void api_answer_metrics(struct api_request *request);
void api_answer_status(struct api_request *request);
void api_answer_targets(struct api_request *request);
void api_answer_target(struct api_request *request);
void api_answer_approvals(struct api_request *request);
void api_answer_incidents(struct api_request *request);
void api_answer_rules(struct api_request *request);
void api_answer_decisions(struct api_request *request);
void api_answer_decision(struct api_request *request);
void api_answer_unknown(struct api_request *request); /* 404 */

#endif
