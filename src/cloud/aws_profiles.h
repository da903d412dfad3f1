/*
 * The files that AWS' own tools share, ~/.aws/config and ~/.aws/credentials, as profiles:
 * https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html
 */
#ifndef ALERTSCALER_SRC_CLOUD_AWS_PROFILES_H
#define ALERTSCALER_SRC_CLOUD_AWS_PROFILES_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/rules/provider_kind.h>

enum aws_profile_file { AWS_FILE_CONFIG, AWS_FILE_CREDENTIALS };

struct aws_entry {
    const char *profile, *key, *value; /* the key is "" at the start of a profile */
    enum aws_profile_file file;
};

struct aws_profiles { /* all zero at first; memory of the arena */
    struct aws_entry *entries;
    size_t count, room;
};

/* Adds the profiles of a file. 0; or -EINVAL with an error that names the line. */
int aws_profiles_parse(struct aws_profiles *profiles, struct as_arena *arena, const char *text,
                       enum aws_profile_file file, struct as_error *error) AS_MUST_USE;

bool aws_profiles_have(const struct aws_profiles *profiles, const char *profile) AS_MUST_USE;

/* A profile's value; the credentials file takes precedence. NULL: not set. */
const char *aws_profiles_find(const struct aws_profiles *profiles, const char *profile,
                              const char *key) AS_MUST_USE;
const char *aws_profiles_find_in(const struct aws_profiles *profiles, enum aws_profile_file file,
                                 const char *profile, const char *key) AS_MUST_USE;

/* Reports the files that a profile file refers to, for all profiles: tokens of web identities, and
 * programs that print keys. Content of any other kind refers to no files. */
void aws_profiles_read_names(const char *content, size_t size, as_provider_names_fn *tell,
                             void *context);

/* The words of a command, split as by a shell (quotes, backslashes; no substitution), with NULL at
 * the end. NULL if a quote is open or there is no word. */
const char **aws_split_command(struct as_arena *arena, const char *command) AS_MUST_USE;

#endif
