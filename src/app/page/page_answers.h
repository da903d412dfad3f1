/*
 * The pages, for the table of routes: one function each.
 */
#ifndef ALERTSCALER_SRC_APP_PAGE_PAGE_ANSWERS_H
#define ALERTSCALER_SRC_APP_PAGE_PAGE_ANSWERS_H

struct api_request;

void page_answer_home(struct api_request *request);
void page_answer_target(struct api_request *request);
void page_answer_decision(struct api_request *request);
void page_answer_incidents(struct api_request *request);
void page_answer_rules(struct api_request *request);
void page_answer_group(struct api_request *request);

#endif
