/*
 * Expands `rule_files`: from names and patterns, relative to the folder of the file that has them,
 * to a list of files.
 */
#ifndef ALERTSCALER_SRC_RULES_RULE_FILES_H
#define ALERTSCALER_SRC_RULES_RULE_FILES_H

#include <stddef.h>

#include <alertscaler/doc/schema.h>

struct rule_files {
    char **names;
    size_t count, capacity;
};

void rule_files_deinit(struct rule_files *files);

/* Adds the files of one list element; reports its errors. */
void rule_files_expand(struct rule_files *files, struct loader *loader,
                       const struct as_yaml_node *node);

/* The folder of a file, for a loader: "" for the working directory. Caller's memory. */
char *rule_files_copy_folder(const char *path);

#endif
