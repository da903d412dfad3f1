/*
 * What `rule_files` stands for: a list of files, from names and patterns relative to the folder of
 * the file that names them.
 */
#ifndef ALERTSCALER_SRC_CONFIG_RULES_RULE_FILES_H
#define ALERTSCALER_SRC_CONFIG_RULES_RULE_FILES_H

#include <stddef.h>

#include "yaml/schema.h"

struct rule_files {
    char **names;
    size_t count, capacity;
};

void rule_files_deinit(struct rule_files *files);
void rule_files_add(struct rule_files *files, const char *path);
void rule_files_sort(struct rule_files *files); /* and leaves each once */

/* Adds what one element of a list stands for; reports what is wrong with it. */
void rule_files_expand(struct rule_files *files, struct loader *loader,
                       const struct as_yaml_node *node);

/* Warns of rule files that no element of the list stands for, as they end in the other one of
 * `.yaml` and `.yml`. After all elements were expanded. */
void rule_files_check_endings(const struct rule_files *files, struct loader *loader,
                              const struct as_yaml_node *list);

/* The folder of a file, as a loader takes it: "" for the working directory. Caller's memory. */
char *rule_files_copy_folder(const char *path);

#endif
