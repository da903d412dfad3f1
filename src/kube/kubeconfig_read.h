/*
 * Reading single keys of one entry of a kubeconfig. The reader remembers the first error, so a
 * series of reads needs one check at its end. An error names file, line and key, and never shows a
 * value. A key that is absent or null leaves *out alone.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBECONFIG_READ_H
#define ALERTSCALER_SRC_KUBE_KUBECONFIG_READ_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/error.h>
#include <alertscaler/doc/yaml_tree.h>

struct as_kubeconfig_source {
    const char *path;
    struct as_yaml_tree *tree;
};

struct as_kubeconfig_reader {
    const struct as_kubeconfig_source *source;
    const struct as_yaml_node *node; /* NULL: an entry without content */
    const char *section, *name;      /* user "prod" */
    bool has_failed;
    struct as_error *error;
};

void as_kubeconfig_fail(struct as_kubeconfig_reader *reader, const char *key, const char *what);

/* Fails if the key is present. */
void as_kubeconfig_refuse(struct as_kubeconfig_reader *reader, const char *key, const char *why);

void as_kubeconfig_read_text(struct as_kubeconfig_reader *reader, const char *key, char **out);
void as_kubeconfig_read_bool(struct as_kubeconfig_reader *reader, const char *key, bool *out);

/* A text for a header line: without control characters. */
void as_kubeconfig_read_secret(struct as_kubeconfig_reader *reader, const char *key, char **out);

/* http:// or https://, or another scheme for a proxy. Slashes at the end are removed. */
void as_kubeconfig_read_url(struct as_kubeconfig_reader *reader, const char *key, char **out);

/* Relative to the file's folder. A command is a path only if it contains a slash. */
void as_kubeconfig_read_path(struct as_kubeconfig_reader *reader, const char *key, char **out);
void as_kubeconfig_read_command(struct as_kubeconfig_reader *reader, const char *key, char **out);

/* PEM in base64. */
void as_kubeconfig_read_pem(struct as_kubeconfig_reader *reader, const char *key, char **out);

const struct as_yaml_node *as_kubeconfig_find_map(struct as_kubeconfig_reader *reader,
                                                  const char *key);
const struct as_yaml_node *as_kubeconfig_find_list(struct as_kubeconfig_reader *reader,
                                                   const char *key, size_t max);

#endif
