/*
 * The JSON Schemas of the files that alertscaler reads, each from the table of its root.
 */
#include <alertscaler/rules/json_schema.h>

#include <assert.h>

#include "rule_tests_private.h"
#include "schema_writer.h"

const char *const as_json_schema_words[] = {"config", "rules", "tests", "web", NULL};

void as_json_schema_append(size_t kind, struct as_buf *out)
{
    static const struct schema *const roots[] = {&schema_settings, &schema_rule_file,
                                                 &schema_test_file, &schema_web};
    assert(kind < AS_ARRAY_SIZE(roots));
    schema_write_document(roots[kind], out);
}
