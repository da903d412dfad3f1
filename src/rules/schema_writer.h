/*
 * The writer of JSON Schemas, and what a table adds to its JSON Schema beyond its rows:
 * `describe_keys` and `describe_map` of tables that read further keys themselves.
 */
#ifndef ALERTSCALER_SRC_RULES_SCHEMA_WRITER_H
#define ALERTSCALER_SRC_RULES_SCHEMA_WRITER_H

#include <alertscaler/base/buf.h>
#include <alertscaler/rules/tables.h>

struct schema_writer;

/* The JSON Schema of a file whose root is this table. */
void schema_write_document(const struct schema *root, struct as_buf *out);

/* `kubernetes`, `node_group`, ... of a target */
void json_schema_describe_addresses(struct schema_writer *to);
void json_schema_describe_address_choice(struct schema_writer *to);

/* The keys of each type of providers. */
void json_schema_describe_provider_type(struct schema_writer *to);
void json_schema_describe_providers(struct schema_writer *to);

/* Resources of a node that have no row: by the form of their names. */
void json_schema_describe_resources(struct schema_writer *to);

#endif
