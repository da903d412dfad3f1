/*
 * The client file: the daemons that the commands of a user talk to, by names of contexts.
 *
 * $XDG_CONFIG_HOME/alertscaler/config.yaml, else ~/.config/alertscaler/config.yaml:
 *
 *   current_context: shop
 *   contexts:
 *     - {name: shop, url: 'https://scaler.shop.example', token_file: shop.token, ca_file: ca.pem}
 *
 * The file has no secrets: a token is in a file of its own.
 */
#ifndef ALERTSCALER_SRC_CLI_CLIENT_FILE_H
#define ALERTSCALER_SRC_CLI_CLIENT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

#define CLIENT_CONTEXTS_MAX 1000

struct client_context {
    const char *name, *url;
    const char *token_file, *ca_file; /* NULL: none; as paths, no longer relative to the file */
};

struct client_file {
    char *path;          /* NULL: neither XDG_CONFIG_HOME nor HOME is set */
    const char *current; /* NULL: none is chosen */
    struct client_context *contexts;
    size_t count; /* 0: also without a file */
    struct as_arena arena;
};

/* A file that is absent has no contexts. 0; or a negative errno with the first error and its
 * place. */
int client_file_load(struct client_file *file_out, struct as_error *error) AS_MUST_USE;
void client_file_deinit(struct client_file *file);

/* The context of this name; NULL: the current one. 0 and a context, which is NULL if none is
 * chosen; -ENOENT with an error if there is no context of this name. */
int client_file_find(const struct client_file *file, const char *name,
                     const struct client_context **context_out, struct as_error *error) AS_MUST_USE;

#endif
