/*
 * A missing member is an empty text; a wrong type counts as missing.
 */
#include <alertscaler/tools/record_text.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/model/reason.h>

const char *as_record_get_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

const char *as_record_get_incident(const json_t *record)
{
    const char *digest = as_record_get_text(record, "digest");
    return *digest ? digest : as_record_get_text(record, "fingerprint");
}

int as_record_get_time(const json_t *record, as_wall_time *time_out, struct as_error *error)
{
    const char *text = as_record_get_text(record, "time");

    if (as_wall_time_parse(text, strlen(text), time_out) == 0)
        return 0;
    as_error_set(error, "the record has no time");
    return -EBADMSG;
}

bool as_record_get_size(const json_t *object, const char *key, int32_t *size_out)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 0 || number > INT32_MAX)
        return false;
    *size_out = (int32_t)number;
    return true;
}

bool as_record_has_failed(const json_t *action)
{
    const char *outcome = as_record_get_text(action, "outcome");
    return *outcome && strcmp(outcome, as_reason_get_word(AS_REASON_APPLIED)) != 0;
}

/* The component that got the request. */
static const char *get_other_side(const json_t *action)
{
    static const char *const groups[] = {"node_group/", "pool/"};
    const char *target = as_record_get_text(action, "target");
    for (size_t i = 0; i < AS_ARRAY_SIZE(groups); i++) {
        if (strncmp(target, groups[i], strlen(groups[i])) == 0)
            return "the cloud";
    }
    return "Kubernetes";
}

static const char *get_failure(const char *outcome)
{
    static const struct {
        enum as_reason reason;
        const char *text;
    } rows[] = {
        {AS_REASON_FORBIDDEN, "refused"},
        {AS_REASON_REJECTED, "refused"},
        {AS_REASON_UNREACHABLE, "did not answer, or failed"},
        {AS_REASON_THROTTLED, "limits requests"},
        {AS_REASON_TIMEOUT, "did not answer in time"},
        {AS_REASON_TARGET_NOT_FOUND, "does not have the target"},
        {AS_REASON_DID_NOT_COME, "has no capacity"},
        {AS_REASON_CONFLICT, "has another size meanwhile"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(as_reason_get_word(rows[i].reason), outcome) == 0)
            return rows[i].text;
    }
    return NULL;
}

static void print_tries(const json_t *action, as_maybe_time now, FILE *out)
{
    const json_int_t tries = json_integer_value(json_object_get(action, "tries"));
    const char *next = as_record_get_text(action, "next_try");
    as_wall_time time;
    if (tries <= 0)
        return;
    fprintf(out, " (%" JSON_INTEGER_FORMAT " %s", tries, tries == 1 ? "try" : "tries");
    if (as_wall_time_parse(next, strlen(next), &time) == 0) {
        char text[AS_RFC3339_SIZE + AS_DURATION_SIZE];
        if (now.set && now.at.us < time.us) {
            as_duration_print((time.us - now.at.us + AS_US_PER_S - 1) / AS_US_PER_S * AS_US_PER_S,
                              text);
            fprintf(out, ", next in %s", text);
        } else {
            as_wall_time_print_short((as_wall_time){time.us / AS_US_PER_S * AS_US_PER_S}, text);
            fprintf(out, ", next at %s", text);
        }
    }
    fputc(')', out);
}

void as_record_print_failure(const json_t *action, as_maybe_time now, FILE *out)
{
    const char *outcome = as_record_get_text(action, "outcome");
    const char *message = as_record_get_text(action, "message");
    const char *failure = get_failure(outcome);
    if (failure)
        fprintf(out, "%s %s", get_other_side(action), failure);
    else
        as_safe_text_put(out, outcome);
    fputs(*message ? ": " : "", out);
    as_safe_text_put(out, message);
    print_tries(action, now, out);
}

void as_record_print_other_labels(json_t *labels, FILE *out)
{
    const char *separator = "{", *key;
    json_t *value;

    json_object_foreach(labels, key, value)
    {
        if (strcmp(key, "alertname") == 0 || !json_is_string(value))
            continue;
        fputs(separator, out);
        as_safe_text_put(out, key);
        fputs("=\"", out);
        as_safe_text_put(out, json_string_value(value));
        fputc('"', out);
        separator = ",";
    }
    if (*separator == ',')
        fputc('}', out);
}

void as_record_print_labels(json_t *labels, FILE *out)
{
    as_safe_text_put(out, as_record_get_text(labels, "alertname"));
    as_record_print_other_labels(labels, out);
}
