/*
 * The answer to an AdmissionReview (admission.k8s.io/v1) about a ScalingPolicy: text in, text out.
 * It depends on the review and the configuration alone.
 *
 * https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
 *
 * CREATE and UPDATE are judged, as `check` judges a file. Everything else is allowed: another
 * operation, a subresource, an UPDATE that leaves `spec` as it was, and an object that is being
 * deleted. So a policy that was accepted once can be labelled, paused and deleted.
 */
#ifndef ALERTSCALER_TOOLS_ADMISSION_REVIEW_H
#define ALERTSCALER_TOOLS_ADMISSION_REVIEW_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/rules/policy_set.h>
#include <alertscaler/rules/settings.h>

#define AS_ADMISSION_BODY_MAX ((size_t)3 * 1024 * 1024) /* as the API server limits its own */
#define AS_ADMISSION_ANSWER_MAX                                                                    \
    ((size_t)256 * 1024)               /* more than errors and warnings together take */
#define AS_ADMISSION_WARNINGS_MAX  20  /* in an answer */
#define AS_ADMISSION_WARNING_BYTES 256 /* of one; the API server cuts longer ones */

enum as_admission_outcome {
    AS_ADMISSION_ALLOWED,
    AS_ADMISSION_PASSED, /* allowed without a judgement */
    AS_ADMISSION_DENIED,
    AS_ADMISSION_INVALID, /* no review of a ScalingPolicy: the error says why */
    AS_ADMISSION_OUTCOME_COUNT
};
const char *as_admission_outcome_get_word(enum as_admission_outcome outcome); /* static memory */

/* Judges one object, for an admission and for `check`: the errors of as_policy_judge, and the
 * warnings about an object without errors. */
enum as_policy_reason as_admission_judge(const struct as_settings *settings, const char *object,
                                         size_t size, struct as_diagnostics *diagnostics);

/* Appends the AdmissionReview with the answer, unless INVALID. */
enum as_admission_outcome as_admission_review(const struct as_settings *settings, const char *body,
                                              size_t size, struct as_buf *out,
                                              struct as_error *error) AS_MUST_USE;

#endif
