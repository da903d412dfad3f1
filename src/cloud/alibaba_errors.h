/*
 * The answers of Alibaba Cloud's Auto Scaling, and the meaning of its errors.
 */
#ifndef ALERTSCALER_SRC_CLOUD_ALIBABA_ERRORS_H
#define ALERTSCALER_SRC_CLOUD_ALIBABA_ERRORS_H

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/talk.h>

/* The class of an error by its code (of an answer or of an activity); `fallback` for unknown
 * codes. */
enum as_talk_fault alibaba_judge(const char *code, enum as_talk_fault fallback) AS_MUST_USE;

/* The document of a good answer; NULL after failing the talk with the error's class and words. */
const json_t *alibaba_take_answer(struct as_talk *talk) AS_MUST_USE;

#endif
