/*
 * The sources of credentials of each cloud, in the order of the vendor's own tools, and what else
 * the APIs of a cloud have in common: regions, endpoints, errors.
 */
#ifndef ALERTSCALER_LOGIN_CLOUD_CREDENTIALS_H
#define ALERTSCALER_LOGIN_CLOUD_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/login/cloud_op.h>
#include <alertscaler/login/provider_credentials.h>

/*
 * Credentials of Alibaba Cloud, in the order of its own libraries; and the region.
 */

extern const struct as_credentials_source alibaba_credentials[];

/* The region of the account, else of the environment, else of the credentials; NULL: not known. */
const char *alibaba_find_region(const struct as_cloud_op *op,
                                const struct as_provider_settings *account,
                                const struct as_provider_credentials *credentials) AS_MUST_USE;

/*
 * Credentials, region, endpoints and errors of AWS, in the order of AWS' own tools:
 * https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
 */

extern const struct as_credentials_source aws_credentials[];

/* The account's `region`, else the region found with the credentials; NULL: not known. */
const char *aws_find_region(const struct as_provider_settings *account,
                            const struct as_provider_credentials *credentials) AS_MUST_USE;

/* The account's option `key` if given, else https://SERVICE.REGION.amazonaws.com (.cn in China);
 * without a slash at its end. Memory of the op. NULL after failing the op: the region is
 * invalid. */
const char *aws_make_endpoint(struct as_cloud_op *op, const struct as_provider_settings *account,
                              const char *key, const char *service, const char *region) AS_MUST_USE;

/* Whether the answer is good. If not, the op has failed with the error's class and words, and
 * *code_out is its code ("": no code; memory of the op). The query protocol's errors are XML. */
bool aws_is_good_xml(struct as_cloud_op *op, const char **code_out) AS_MUST_USE;
bool aws_is_good_json(struct as_cloud_op *op) AS_MUST_USE;

/*
 * The files that AWS' own tools share, ~/.aws/config and ~/.aws/credentials, as profiles:
 * https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html
 */

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
void aws_profiles_read_names(const char *content, size_t size, as_provider_names_fn *on_name,
                             void *context);

/* The words of a command, split as by a shell (quotes, backslashes; no substitution), with NULL at
 * the end. NULL if a quote is open or there is no word. */
const char **aws_split_command(struct as_arena *arena, const char *command) AS_MUST_USE;

/*
 * A token of a token server; needs `oauth2` of the op.
 */

extern const struct as_credentials_source oauth2_credentials[];

/*
 * Credentials and endpoints of Azure, in the order of its own libraries' default chain:
 * https://learn.microsoft.com/azure/developer/go/sdk/authentication/credential-chains
 */

extern const struct as_credentials_source azure_credentials[];
/* One source of them each; the source fails if it is not set up. */
extern const struct as_credentials_source azure_client_secret[];
extern const struct as_credentials_source azure_workload_identity[];
extern const struct as_credentials_source azure_managed_identity[];

/* Resource Manager's endpoint: the account's option `endpoint`, else that of its `cloud`; without a
 * slash at its end; memory of the op. NULL after failing the op. */
const char *azure_make_endpoint(struct as_cloud_op *op,
                                const struct as_provider_settings *account) AS_MUST_USE;

/*
 * Credentials of Google Cloud, in the order of its own tools (Application Default Credentials), and
 * what else its APIs have in common:
 * https://cloud.google.com/docs/authentication/application-default-credentials
 */

extern const struct as_credentials_source google_credentials[];

/* For the rows of the table: the files that are read, and the files that these name. */
extern const char *const google_files[];
void google_read_names(const char *content, size_t size, as_provider_names_fn *on_name,
                       void *context);

/* ---- what the APIs have in common: errors ---- */

/* The document of a good answer; NULL after failing the op. */
const json_t *google_take_answer(struct as_cloud_op *op) AS_MUST_USE;

/* The class of an error by its reason or code ("rateLimitExceeded", "QUOTA_EXCEEDED") and its
 * message; `fallback` if unknown. */
enum as_cloud_op_fault google_judge(const char *reason, const char *message,
                                    enum as_cloud_op_fault fallback) AS_MUST_USE;

/*
 * JSON Web Tokens with an RSA signature (RFC 7519; RS256 of RFC 7518).
 */

/*
 * Appends header.claims.signature, in a form that is valid in URLs and forms. `header` and `claims`
 * are JSON texts, `header` contains "alg":"RS256"; `pem` is the private key. 0; -EINVAL with an
 * error if `pem` is not an RSA key without a passphrase.
 */
int jwt_append_rs256(struct as_buf *out, const char *header, const char *claims, const char *pem,
                     struct as_error *error) AS_MUST_USE;

/*
 * Credentials of OpenStack, with the names of its own tools (OS_...), and the service's address
 * from a token's catalogue.
 */

extern const struct as_credentials_source openstack_credentials[];

#endif
