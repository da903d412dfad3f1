/*
 * Reading documents of alerts (the webhook's and the API's). Errors name the place (json_reader.h)
 * and what was there instead: "alerts[3].labels.severity: expected a string, got a number". All
 * errors are -EINVAL. An unreadable alert does not make the others invalid.
 */
#ifndef ALERTSCALER_SRC_MONITORING_ALERT_READER_H
#define ALERTSCALER_SRC_MONITORING_ALERT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/labels.h>

#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_tree.h>

struct alert_reader {
    struct place root, alert;
    bool in_alert;
    bool has_nuls; /* NULs are TREE_NUL in the document */
    size_t given_up;
    struct as_labels_hasher *hasher;
    struct as_label *pairs; /* room for AS_PAYLOAD_LABELS_MAX labels of one set */
};

/* Parses the document into the tree, and makes room for `pairs` there. A NUL, which our texts
 * cannot hold, refuses only its alert. `hasher` is borrowed. */
int alert_load(struct alert_reader *reader, struct tree *tree, struct as_labels_hasher *hasher,
               const char *json, size_t size, struct as_error *error) AS_MUST_USE;

const char *alert_get_type_word(const struct tree_value *value); /* "an object", ... */

/* Begins the next alert of the document. */
void alert_enter(struct alert_reader *reader, size_t index);
/* Ends an unreadable alert: 0 and the text of its error, which is cleared. -EINVAL if there are
 * too many such alerts. */
int alert_give_up(struct alert_reader *reader, char **problem_out) AS_MUST_USE;

/* `name` of the label or annotation in `member`; else NULL. */
int alert_fail(struct alert_reader *reader, const char *member, const char *name,
               const char *format, ...) AS_PRINTF(4, 5);
int alert_fail_with_text(struct alert_reader *reader, const char *member, const char *expected,
                         const char *text);

/* NULL where absent or null. */
const struct tree_value *alert_find(const struct tree_value *object, const char *member);

/* Borrowed from the tree; NULL where absent. */
int alert_read_text(struct alert_reader *reader, const struct tree_value *object,
                    const char *member, size_t max, const char **text_out) AS_MUST_USE;
/* An http or https URL that may become a link, without a password; borrowed from the tree. NULL for
 * anything else: a wrong URL is no reason to refuse an alert. */
const char *alert_find_url(const struct tree_value *object, const char *member);
int alert_read_labels(struct alert_reader *reader, const struct tree_value *alert,
                      const char *member, struct as_labels **labels_out) AS_MUST_USE;
int alert_read_time(struct alert_reader *reader, const struct tree_value *alert, const char *member,
                    bool is_needed, as_wall_time *time_out) AS_MUST_USE;
/* The digest of the labels, and the fingerprint: the given one if it has 16 hex digits, else
 * computed. */
int alert_read_identity(struct alert_reader *reader, const struct tree_value *object,
                        const struct as_labels *labels, struct as_digest *digest_out,
                        uint64_t *fingerprint_out) AS_MUST_USE;

#endif
