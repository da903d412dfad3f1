/*
 * A missing member is an empty text; a wrong type counts as missing.
 */
#include <alertscaler/tools/record_text.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/safe_text.h>

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
