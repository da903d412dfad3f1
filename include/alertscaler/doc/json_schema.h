/*
 * What a table adds to its JSON Schema beyond its rows (json_schema.c): `describe_keys` and
 * `describe_map` of those that read further keys themselves.
 */
#ifndef ALERTSCALER_DOC_JSON_SCHEMA_H
#define ALERTSCALER_DOC_JSON_SCHEMA_H

struct schema_writer;

/* `kubernetes`, `node_group`, ... of a target */
void json_schema_describe_addresses(struct schema_writer *to);
void json_schema_describe_address_choice(struct schema_writer *to);

/* The keys of each type of providers. */
void json_schema_describe_provider_type(struct schema_writer *to);
void json_schema_describe_providers(struct schema_writer *to);

/* Resources of a node that have no row: by the form of their names. */
void json_schema_describe_resources(struct schema_writer *to);

#endif
