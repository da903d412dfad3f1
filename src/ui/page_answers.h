/*
 * The pages, for the table of routes: one function each.
 */
#ifndef ALERTSCALER_SRC_UI_PAGE_ANSWERS_H
#define ALERTSCALER_SRC_UI_PAGE_ANSWERS_H

struct api_request;

void page_answer_home(struct api_request *request);
void page_answer_target(struct api_request *request);
void page_answer_decision(struct api_request *request);
void page_answer_incidents(struct api_request *request);
void page_answer_rules(struct api_request *request);
void page_answer_group(struct api_request *request);
void page_answer_account(struct api_request *request);

/* For everybody, without a credential; but for the first, with request->note: */
void page_answer_login(struct api_request *request);
void page_answer_refused(struct api_request *request);
void page_answer_again(struct api_request *request); /* leads to note->to */

#endif
