/*
 * Credentials of AWS, and what else its APIs share: the profiles of AWS' own tools, region,
 * endpoints and errors. The order of the sources is that of AWS' own tools. If the configuration
 * names a profile, the environment is not used.
 *
 * A search is the state of one operation for credentials. Each source gets the search, and ends
 * with aws_search_found or aws_search_not_here.
 *
 * Not here: signatures (sign.h).
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/login/cloud_answer.h>
#include <alertscaler/login/cloud_credentials.h>
#include <alertscaler/login/provider_credentials.h>
#include <alertscaler/login/sign.h>

/*
 * Profiles. An indented line belongs to the key above it, as a nested setting of one service, which
 * is ignored here, or as the rest of a value.
 */

struct place { /* the parser's position */
    struct aws_profiles *profiles;
    struct as_arena *arena;
    enum aws_profile_file file;
    const char *profile; /* NULL: in a section without a profile */
    unsigned line;
};

static void aws_profiles_add(struct place *place, const char *key, const char *value)
{
    struct aws_profiles *profiles = place->profiles;
    if (profiles->count == profiles->room) {
        const size_t room = profiles->room ? 2 * profiles->room : 32;
        struct aws_entry *more = as_arena_alloc(place->arena, room, sizeof(*more));
        if (profiles->count > 0)
            memcpy(more, profiles->entries, profiles->count * sizeof(*more));
        profiles->entries = more;
        profiles->room = room;
    }
    profiles->entries[profiles->count++] =
        (struct aws_entry){place->profile, key, value, place->file};
}

/* Removes blanks at both ends. */
static char *aws_profiles_trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return text;
}

/* The profile of a section; NULL: not a profile. In the configuration file all profiles but the
 * default are called "profile NAME". */
static const char *judge_section(const struct place *place, char *name)
{
    if (place->file == AWS_FILE_CREDENTIALS || strcmp(name, "default") == 0)
        return name;
    if (!as_str_starts_with(name, "profile") || !isspace((unsigned char)name[7]))
        return NULL;
    const char **words = aws_split_command(place->arena, name);
    return words && words[1] && !words[2] ? words[1] : NULL;
}

static int begin_section(struct place *place, char *text, struct as_error *error)
{
    char *end = strchr(text, ']');
    if (!end) {
        as_error_set(error, "line %u: a section has no ]", place->line);
        return -EINVAL;
    }
    *end = '\0';
    place->profile = judge_section(place, aws_profiles_trim(text + 1));
    if (place->profile)
        aws_profiles_add(place, "", "");
    return 0;
}

static int take_pair(struct place *place, char *text, struct as_error *error)
{
    char *middle = text + strcspn(text, "=:");
    if (!*middle || middle == text) {
        as_error_set(error, "line %u: expected a section or `key = value`", place->line);
        return -EINVAL;
    }
    *middle = '\0';
    char *key = aws_profiles_trim(text);
    for (char *at = key; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    if (!place->profile)
        return 0;
    if (aws_profiles_find_in(place->profiles, place->file, place->profile, key)) {
        as_error_set(error, "line %u: %s stands twice in profile %s", place->line, key,
                     place->profile);
        return -EINVAL;
    }
    aws_profiles_add(place, key, aws_profiles_trim(middle + 1));
    return 0;
}

int aws_profiles_parse(struct aws_profiles *profiles, struct as_arena *arena, const char *text,
                       enum aws_profile_file file, struct as_error *error)
{
    struct place place = {.profiles = profiles, .arena = arena, .file = file};
    char *rest = as_arena_strdup(arena, text), *line;
    while ((line = strsep(&rest, "\n"))) {
        place.line++;
        const bool is_indented = *line == ' ' || *line == '\t';
        char *words = aws_profiles_trim(line);
        int status = 0;
        if (!*words || *words == '#' || *words == ';' || is_indented)
            continue;
        status =
            *words == '[' ? begin_section(&place, words, error) : take_pair(&place, words, error);
        if (status != 0)
            return status;
    }
    return 0;
}

bool aws_profiles_have(const struct aws_profiles *profiles, const char *profile)
{
    return aws_profiles_find(profiles, profile, "") != NULL;
}

const char *aws_profiles_find_in(const struct aws_profiles *profiles, enum aws_profile_file file,
                                 const char *profile, const char *key)
{
    for (size_t i = 0; i < profiles->count; i++) {
        const struct aws_entry *entry = &profiles->entries[i];
        if (entry->file == file && strcmp(entry->key, key) == 0 &&
            strcmp(entry->profile, profile) == 0)
            return entry->value;
    }
    return NULL;
}

const char *aws_profiles_find(const struct aws_profiles *profiles, const char *profile,
                              const char *key)
{
    const char *value = aws_profiles_find_in(profiles, AWS_FILE_CREDENTIALS, profile, key);
    return value ? value : aws_profiles_find_in(profiles, AWS_FILE_CONFIG, profile, key);
}

/* The value of `key` in a line, or NULL; the caller frees it. */
static char *take_value(const char *line, size_t size, const char *key)
{
    const size_t key_size = strlen(key);
    if (size <= key_size || strncasecmp(line, key, key_size) != 0)
        return NULL;
    AS_CLEANUP(as_free_p) char *rest = as_xstrndup(line + key_size, size - key_size);
    char *text = aws_profiles_trim(rest);
    return *text == '=' || *text == ':' ? as_xstrdup(aws_profiles_trim(text + 1)) : NULL;
}

/* Keys (secrets) are not copied: it reads line by line, and only certain keys. */
static void aws_profiles_read_line(const char *line, size_t size, as_provider_names_fn *on_name,
                                   void *context)
{
    AS_CLEANUP(as_free_p) char *path = take_value(line, size, "web_identity_token_file");
    AS_CLEANUP(as_free_p) char *command = take_value(line, size, "credential_process");
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    const char **words = command ? aws_split_command(&arena, command) : NULL;
    if (!as_str_is_empty(path))
        on_name(context, path, false);
    if (words)
        on_name(context, words[0], true);
}

void aws_profiles_read_names(const char *content, size_t size, as_provider_names_fn *on_name,
                             void *context)
{
    while (size > 0) {
        const char *end = memchr(content, '\n', size);
        const size_t line_size = end ? (size_t)(end - content) : size;
        aws_profiles_read_line(content, line_size, on_name, context);
        content += line_size + (end != NULL);
        size -= line_size + (end != NULL);
    }
}

/* Copies the next word to `out`, without its quotes; false if a quote is open. */
static bool take_word(const char **at, char *out)
{
    char quote = '\0';
    for (; **at && (quote || !isspace((unsigned char)**at)); ++*at) {
        const char byte = **at;
        const bool is_escape =
            byte == '\\' && quote != '\'' && (*at)[1] &&
            (!quote || (*at)[1] == '"' || (*at)[1] == '\\'); /* in "", only these are */
        if (is_escape)
            *out++ = *++*at;
        else if (byte == quote)
            quote = '\0';
        else if (!quote && (byte == '"' || byte == '\''))
            quote = byte;
        else
            *out++ = byte;
    }
    *out = '\0';
    return !quote;
}

const char **aws_split_command(struct as_arena *arena, const char *command)
{
    const size_t size = strlen(command);
    const char **words = as_arena_alloc(arena, size / 2 + 2, sizeof(*words)), *at = command;
    size_t count = 0;
    for (;;) {
        while (isspace((unsigned char)*at))
            at++;
        if (!*at)
            return count > 0 ? words : NULL;
        char *word = as_arena_alloc_raw(arena, strlen(at) + 1);
        words[count++] = word;
        if (!take_word(&at, word))
            return NULL;
    }
}

/* The sources. */

#define AWS_ROLES_MAX 8 /* assumed one after the other */

typedef void aws_search_fn(struct as_credentials_op *op);

struct aws_role { /* of a profile, to be assumed with credentials found first */
    const char *profile, *arn, *session, *external_id, *duration; /* NULL: not given */
};

struct aws_search {    /* memory of the op */
    bool has_profiles; /* the files have been read */
    struct aws_profiles profiles;
    aws_search_fn *then; /* called after reading the files */
    const char *config_path, *credentials_path;
    struct aws_role roles[AWS_ROLES_MAX]; /* the last is assumed first */
    size_t role_count;
    size_t own_roles;         /* those of the account's options: the first of `roles`, or none */
    struct aws_role identity; /* assumed by a web identity, whose token is in this file: */
    const char *token_path;
    const char *token; /* sent with the present source's requests; NULL: no token */
    aws_search_fn *with_token;
    unsigned attempts;
    bool is_region_only; /* only the region is missing */
};

static void aws_sts_assume_role(struct as_credentials_op *op);
static void aws_metadata_begin_region(struct as_credentials_op *op); /* always ends the op */

/* Errors: https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html */

static const struct {
    const char *code, *message; /* globs */
    enum as_cloud_op_fault fault;
} aws_errors[] = {
    {"Throttling*", "*", AS_CLOUD_OP_THROTTLED},
    {"RequestLimitExceeded*", "*", AS_CLOUD_OP_THROTTLED},
    {"RequestThrottled*", "*", AS_CLOUD_OP_THROTTLED},
    {"TooManyRequests*", "*", AS_CLOUD_OP_THROTTLED},
    {"ResourceContention*", "*", AS_CLOUD_OP_RETRY},
    {"RequestTimeout*", "*", AS_CLOUD_OP_RETRY},
    {"IDPCommunicationError*", "*", AS_CLOUD_OP_RETRY},
    {"ScalingActivityInProgress*", "*", AS_CLOUD_OP_BUSY},
    {"ResourceInUse*", "*", AS_CLOUD_OP_BUSY},
    {"ExpiredToken*", "*", AS_CLOUD_OP_UNAUTHORIZED},
    {"InvalidClientTokenId*", "*", AS_CLOUD_OP_UNAUTHORIZED},
    {"UnrecognizedClient*", "*", AS_CLOUD_OP_UNAUTHORIZED},
    {"InvalidAccessKeyId*", "*", AS_CLOUD_OP_UNAUTHORIZED},
    {"AuthFailure*", "*", AS_CLOUD_OP_UNAUTHORIZED},
    {"SignatureDoesNotMatch*", "*", AS_CLOUD_OP_UNAUTHORIZED},
    {"InvalidSignature*", "*", AS_CLOUD_OP_UNAUTHORIZED},
    {"RequestTimeTooSkewed*", "*", AS_CLOUD_OP_UNAUTHORIZED},
    {"RequestExpired*", "*", AS_CLOUD_OP_UNAUTHORIZED},
    {"InvalidIdentityToken*", "*", AS_CLOUD_OP_UNAUTHORIZED},
    {"AccessDenied*", "*", AS_CLOUD_OP_PERMISSION},
    {"UnauthorizedOperation*", "*", AS_CLOUD_OP_PERMISSION},
    {"OptInRequired*", "*", AS_CLOUD_OP_PERMISSION},
    {"RegionDisabled*", "*", AS_CLOUD_OP_PERMISSION},
    {"LimitExceeded*", "*", AS_CLOUD_OP_CAPACITY},
    {"ResourceNotFound*", "*", AS_CLOUD_OP_GONE},
    {"ValidationError", "AutoScalingGroup name not found*", AS_CLOUD_OP_GONE},
    {"ValidationError", "*", AS_CLOUD_OP_CONFIGURATION},
};

/* Only an error of the service itself, or an unknown error, leaves a change ambiguous. */
static void take_error(struct as_cloud_op *op, const char *code, const char *message)
{
    enum as_cloud_op_fault fault = op->fault;
    if (!*code)
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(aws_errors); i++) {
        if (as_str_glob(aws_errors[i].code, code) && as_str_glob(aws_errors[i].message, message)) {
            fault = aws_errors[i].fault;
            op->is_ambiguous = false;
            break;
        }
    }
    as_cloud_op_fail(op, fault, "%s: %s%s%s", op->request.operation, code, *message ? ": " : "",
                     message);
}

bool aws_is_good_xml(struct as_cloud_op *op, const char **code_out)
{
    *code_out = "";
    if (as_cloud_op_is_good(op))
        return true;
    if (op->http_status == 0)
        return false;
    const json_t *document = answer_find(answer_peek_xml(op), "ErrorResponse");
    const char *code = answer_text(document, "Error.Code");
    *code_out = as_arena_strdup(&op->arena, code);
    as_cloud_op_take_request_id(op, answer_text(document, "RequestId"));
    take_error(op, code, answer_text(document, "Error.Message"));
    return false;
}

/* The code is in a header, "Code:http://..."; some front ends put it into the body. */
bool aws_is_good_json(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    if (op->http_status == 0)
        return false;
    const json_t *document = answer_peek_json(op);
    const char *code = as_http_response_find(op->answer, "x-amzn-errortype");
    const char *message = answer_text(document, "message");
    if (!*code)
        code = answer_text(document, "__type");
    take_error(op, as_cloud_op_print(op, "%.*s", (int)strcspn(code, ":"), code),
               *message ? message : answer_text(document, "Message"));
    return false;
}

const char *aws_find_region(const struct as_provider_settings *account,
                            const struct as_provider_credentials *credentials)
{
    const char *region = as_account_get(account, "region");
    return region ? region : credentials->region;
}

const char *aws_make_endpoint(struct as_cloud_op *op, const struct as_provider_settings *account,
                              const char *key, const char *service, const char *region)
{
    if (!as_region_check(op, region))
        return NULL;
    const char *usual = as_cloud_op_print(op, "https://%s.%s.amazonaws.com%s", service, region,
                                          as_str_starts_with(region, "cn-") ? ".cn" : "");
    return as_account_get_endpoint(op, account, key, usual);
}

/* ---- the search ---- */

static struct aws_search *aws_search_get(struct as_cloud_op *op)
{
    return as_credentials_get(op)->state;
}

/* The profile in use; *is_explicit_out: a setting names it. */
static const char *aws_search_profile(const struct as_credentials_op *op, bool *is_explicit_out)
{
    const char *name = as_account_get(op->account, "profile");
    if (!name)
        name = as_variable_find(&op->op, "AWS_DEFAULT_PROFILE");
    if (!name)
        name = as_variable_find(&op->op, "AWS_PROFILE");
    *is_explicit_out = name != NULL;
    return name ? name : "default";
}

/* NULL: none. */
static const char *aws_search_region(const struct as_credentials_op *op)
{
    const struct aws_search *search = op->state;
    bool is_explicit;
    const char *region = as_account_get(op->account, "region");
    if (!region)
        region = as_variable_find(&op->op, "AWS_REGION");
    if (!region)
        region = as_variable_find(&op->op, "AWS_DEFAULT_REGION");
    if (!region)
        region =
            aws_profiles_find(&search->profiles, aws_search_profile(op, &is_explicit), "region");
    return region;
}

/* ---- the files ---- */

static const char *find_path(struct as_credentials_op *op, const char *variable, const char *usual)
{
    const char *path = as_variable_find(&op->op, variable);
    const char *home = as_variable_find(&op->op, "HOME");
    if (!path)
        path = usual;
    if (!as_str_starts_with(path, "~/"))
        return path;
    return home ? as_cloud_op_print(&op->op, "%s%s", home, path + 1) : NULL;
}

/* False after failing the op. A missing file has no profiles. */
static bool aws_take_file(struct as_cloud_op *op, enum aws_profile_file file)
{
    struct as_error error;
    const int number = op->error_number;
    if (!op->content && (number == ENOENT || number == ENOTDIR || number == EACCES))
        return true;
    if (!op->content) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: %s", op->path,
                         as_errno_get_text(number));
        return false;
    }
    if (aws_profiles_parse(&aws_search_get(op)->profiles, &op->arena, op->content, file, &error) ==
        0)
        return true;
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: %s", op->path, error.text);
    return false;
}

static void aws_on_config(struct as_cloud_op *op)
{
    struct aws_search *search = aws_search_get(op);
    if (!aws_take_file(op, AWS_FILE_CONFIG))
        return;
    search->has_profiles = true;
    search->then(as_credentials_get(op));
}

static void aws_on_credentials(struct as_cloud_op *op)
{
    if (aws_take_file(op, AWS_FILE_CREDENTIALS))
        as_cloud_op_read(op, aws_search_get(op)->config_path, aws_on_config);
}

/* Reads the files, once, to find the profile's region and other settings. */
static void aws_search_read_profiles(struct as_credentials_op *op, aws_search_fn *then)
{
    struct aws_search *search = op->state;
    search->then = then;
    search->config_path = find_path(op, "AWS_CONFIG_FILE", "~/.aws/config");
    search->credentials_path = find_path(op, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials");
    if (search->has_profiles || !search->config_path || !search->credentials_path) {
        search->has_profiles = true;
        then(op);
    } else {
        as_cloud_op_read(&op->op, search->credentials_path, aws_on_credentials);
    }
}

/* ---- ends ---- */

/* A missing region is no failure: the account may have it. */
static void aws_end(struct as_credentials_op *op)
{
    const char *region = aws_search_region(op);
    struct aws_search *search = op->state;
    if (region) {
        op->found.region = as_xstrdup(region);
        as_cloud_op_end(&op->op);
    } else if (!search->has_profiles) {
        aws_search_read_profiles(op, aws_end);
    } else {
        search->is_region_only = true;
        aws_metadata_begin_region(op);
    }
}

static void aws_search_found(struct as_credentials_op *op, const char *key_id, const char *secret,
                             const char *token, as_maybe_time expires)
{
    as_credentials_take_keys(op, key_id, secret, token, expires);
    if (((struct aws_search *)op->state)->role_count > 0)
        aws_sts_assume_role(op);
    else
        aws_end(op);
}

/* Takes the credentials with these names from an answer or a program's output; fails the operation
 * if a name is missing. */
static void aws_search_found_in(struct as_credentials_op *op, const json_t *document,
                                const char *token_name)
{
    static const char *const names[] = {"AccessKeyId", "SecretAccessKey"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (!*answer_text(document, names[i])) {
            as_cloud_op_fail(&op->op, AS_CLOUD_OP_RETRY, "there is no %s in what it answers",
                             names[i]);
            return;
        }
    }
    aws_search_found(op, answer_text(document, "AccessKeyId"),
                     answer_text(document, "SecretAccessKey"), answer_text(document, token_name),
                     answer_time(document, "Expiration"));
}

static void aws_search_not_here(struct as_credentials_op *op)
{
    const struct aws_search *search = op->state;
    if (search->role_count > search->own_roles)
        as_cloud_op_fail(&op->op, AS_CLOUD_OP_CONFIGURATION,
                         "profile %s: where its credentials are to come from, there are none",
                         search->roles[search->role_count - 1].profile);
    else
        as_credentials_not_here(op);
}

/* ---- environment ---- */

static void aws_environment_begin(struct as_credentials_op *op)
{
    const char *key_id = as_variable_find(&op->op, "AWS_ACCESS_KEY_ID");
    const char *secret = as_variable_find(&op->op, "AWS_SECRET_ACCESS_KEY");
    const char *token = as_variable_find(&op->op, "AWS_SESSION_TOKEN");
    const char *until = as_variable_find(&op->op, "AWS_CREDENTIAL_EXPIRATION");
    as_maybe_time expires = {.set = until != NULL};
    if (!key_id && !secret) {
        aws_search_not_here(op);
        return;
    }
    if (!key_id || !secret) {
        as_cloud_op_fail(&op->op, AS_CLOUD_OP_CONFIGURATION,
                         "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set");
        return;
    }
    if (until && as_wall_time_parse(until, strlen(until), &expires.at) != 0) {
        as_cloud_op_fail(&op->op, AS_CLOUD_OP_CONFIGURATION,
                         "AWS_CREDENTIAL_EXPIRATION is not a time like 2026-11-20T10:00:00Z");
        return;
    }
    aws_search_found(op, key_id, secret, token, expires);
}

/* Credentials of a container: ECS tasks, and EKS Pod Identity:
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
 *
 * Over http only addresses of the machine itself are asked. The token's file is read each time. */

#define HOST       "http://169.254.170.2"
#define TIMEOUT_US (2 * AS_US_PER_S)
#define TRIES_MAX  3
#define PAUSE_US   (1 * AS_US_PER_S)

/* ---- where ---- */

static bool container_is_allowed(const char *url)
{
    static const char *const hosts[] = {"169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
    char host[AS_URL_HOST_SIZE];
    if (as_url_is_private(url))
        return true;
    for (size_t i = 0; as_url_take_host(url, host) && i < AS_ARRAY_SIZE(hosts); i++) {
        if (strcmp(hosts[i], host) == 0)
            return true;
    }
    return false;
}

/* ---- asking ---- */

static const char *find_url(struct as_credentials_op *given)
{
    const char *path = as_variable_find(&given->op, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    return path ? as_cloud_op_print(&given->op, HOST "%s", path)
                : as_variable_find(&given->op, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
}

static void container_on_credentials(struct as_cloud_op *op);

static void container_ask(struct as_cloud_op *op)
{
    const struct aws_search *search = aws_search_get(op);
    as_cloud_op_ask(op, "GET", "%s", find_url(as_credentials_get(op)));
    as_cloud_op_header(op, "Accept: application/json");
    if (search->token)
        as_cloud_op_header(op, "Authorization: %s", search->token);
    op->request.is_plain = true;
    op->request.without_proxy = true;
    op->request.timeout_us = TIMEOUT_US;
    as_cloud_op_send(op, "get_container_credentials", container_on_credentials);
}

static void container_on_credentials(struct as_cloud_op *op)
{
    const json_t *document = as_cloud_op_is_good(op) ? answer_json(op) : NULL;
    if (document)
        aws_search_found_in(as_credentials_get(op), document, "Token");
    else if (++aws_search_get(op)->attempts < TRIES_MAX)
        as_cloud_op_wait(op, PAUSE_US, container_ask);
}

static void ask_with(struct as_cloud_op *op, const char *token, const char *where)
{
    if (token && strpbrk(token, "\r\n")) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "%s: a token is one line, without an end of line", where);
        return;
    }
    aws_search_get(op)->token = token ? as_arena_strdup(&op->arena, token) : NULL;
    container_ask(op);
}

static void container_on_token(struct as_cloud_op *op)
{
    if (op->content)
        ask_with(op, op->content, op->path);
    else
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: %s", op->path,
                         as_errno_get_text(op->error_number));
}

static void aws_container_begin(struct as_credentials_op *given)
{
    struct as_cloud_op *op = &given->op;
    const char *url = find_url(given);
    const char *path = as_variable_find(&given->op, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    if (!url)
        aws_search_not_here(given);
    else if (!container_is_allowed(url))
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "AWS_CONTAINER_CREDENTIALS_FULL_URI: over http only this machine, "
                         "169.254.170.2, 169.254.170.23 and [fd00:ec2::23] are asked");
    else if (path)
        as_cloud_op_read(op, path, container_on_token);
    else
        ask_with(op, as_variable_find(&given->op, "AWS_CONTAINER_AUTHORIZATION_TOKEN"),
                 "AWS_CONTAINER_AUTHORIZATION_TOKEN");
}

/* The instance metadata service of EC2, version 2 with a token, version 1 without a token:
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html
 *
 * If the address cannot be reached, there is no such service. In a container's network the answer
 * with the token may be lost on its way (hop limit 1): then version 1 is tried. A question without
 * an answer is asked again: a region counts as missing only if the service says so. */

#define AWS_METADATA_TIMEOUT_US (2 * AS_US_PER_S)
#define NO_REGION               "no region is set, and the instance metadata service does not tell it: "
#define ROLES_PATH              "latest/meta-data/iam/security-credentials/"

/* During an outage the service may give credentials that are about to expire. As in AWS' own tools,
 * they stay in use, and new ones are asked for soon. */
#define USED_ON_BEFORE_US (15 * AS_US_PER_MIN)
#define USED_ON_FOR_US    (20 * AS_US_PER_MIN)

static const char *find_base(const struct as_credentials_op *given)
{
    const char *base = as_variable_find(&given->op, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode = as_variable_find(&given->op, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    if (base)
        return base;
    return mode && (strcmp(mode, "IPv6") == 0 || strcmp(mode, "ipv6") == 0)
               ? "http://[fd00:ec2::254]"
               : "http://169.254.169.254";
}

static void metadata_ask(struct as_credentials_op *given, const char *method, const char *path)
{
    struct as_cloud_op *op = &given->op;
    const char *base = find_base(given);
    const size_t size = strlen(base);
    const struct aws_search *search = given->state;
    as_cloud_op_ask(op, method, "%s%s%s", base, size > 0 && base[size - 1] == '/' ? "" : "/", path);
    if (search->token)
        as_cloud_op_header(op, "x-aws-ec2-metadata-token: %s", search->token);
    op->request.is_plain = true;
    op->request.without_proxy = true;
    op->request.timeout_us = AWS_METADATA_TIMEOUT_US;
}

/* ---- the token ---- */

/* Credentials without a region are still good: the account may name the region. */
static bool is_region_only(const struct as_credentials_op *given)
{
    return ((const struct aws_search *)given->state)->is_region_only;
}

static void fail_without_token(struct as_cloud_op *op)
{
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                     "the instance metadata service wants a token, and gave none: behind a "
                     "container's network its hop limit has to be 2");
}

static void metadata_on_token(struct as_cloud_op *op)
{
    struct as_credentials_op *given = as_credentials_get(op);
    struct aws_search *search = given->state;
    const enum as_http_outcome outcome = op->answer->outcome;
    const bool is_off = outcome == AS_HTTP_UNREACHABLE || op->http_status == 403;
    if (op->http_status == 200)
        search->token = as_credentials_take_word(op);
    if (search->token) {
        search->with_token(given);
        return;
    }
    if (is_off && is_region_only(given)) {
        as_cloud_op_end(op);
    } else if (outcome == AS_HTTP_UNREACHABLE) {
        as_credentials_fail_unreached(given);
    } else if (outcome == AS_HTTP_ANSWERED && op->answer->status == 400) {
        as_cloud_op_fail(
            op, AS_CLOUD_OP_CONFIGURATION,
            "the instance metadata service does not understand how it is asked for a token");
    } else if (as_variable_is_on(&given->op, "AWS_EC2_METADATA_V1_DISABLED")) {
        as_cloud_op_fail(op, AS_CLOUD_OP_RETRY,
                         "the instance metadata service gives no token, and "
                         "AWS_EC2_METADATA_V1_DISABLED is set");
    } else {
        search->with_token(given);
    }
}

static void metadata_begin(struct as_credentials_op *given, aws_search_fn *with_token)
{
    struct aws_search *search = given->state;
    struct as_cloud_op *op = &given->op;
    search->with_token = with_token;
    search->token = NULL;
    if (as_variable_is_on(&given->op, "AWS_EC2_METADATA_DISABLED")) {
        if (is_region_only(given))
            as_cloud_op_end(op);
        else
            aws_search_not_here(given);
        return;
    }
    metadata_ask(given, "PUT", "latest/api/token");
    as_cloud_op_header(op, "x-aws-ec2-metadata-token-ttl-seconds: 21600");
    as_cloud_op_send_question(op, "get_metadata_token", metadata_on_token);
}

/* ---- credentials ---- */

/* Whether there is an answer; if not, the op has ended. */
static bool metadata_is_good(struct as_cloud_op *op)
{
    const struct aws_search *search = aws_search_get(op);
    if (as_cloud_op_is_good(op))
        return true;
    if (op->http_status == 404) /* no role attached */
        aws_search_not_here(as_credentials_get(op));
    else if (op->answer->outcome == AS_HTTP_UNREACHABLE)
        as_credentials_fail_unreached(as_credentials_get(op));
    else if (op->http_status == 401 && !search->token)
        fail_without_token(op);
    return false;
}

static void metadata_on_credentials(struct as_cloud_op *op)
{
    struct as_credentials_op *given = as_credentials_get(op);
    if (!metadata_is_good(op))
        return;
    const json_t *document = answer_json(op);
    if (!document)
        return;
    const char *code = answer_text(document, "Code");
    if (*code && strcmp(code, "Success") != 0) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "the instance's role gives no credentials: %s: %s", code,
                         answer_text(document, "Message"));
        return;
    }
    as_maybe_time expires = answer_time(document, "Expiration");
    if (expires.set && expires.at.us < as_time_add(op->now.us, USED_ON_BEFORE_US))
        expires.at.us = as_time_add(op->now.us, USED_ON_FOR_US);
    if (!*answer_text(document, "AccessKeyId") || !*answer_text(document, "SecretAccessKey"))
        as_cloud_op_fail(op, AS_CLOUD_OP_RETRY, "the instance's role gives no credentials");
    else
        aws_search_found(given, answer_text(document, "AccessKeyId"),
                         answer_text(document, "SecretAccessKey"), answer_text(document, "Token"),
                         expires);
}

static void metadata_on_role_name(struct as_cloud_op *op)
{
    if (!metadata_is_good(op))
        return;
    const char *role = as_credentials_take_word(op);
    if (!role || strchr(role, '/')) {
        aws_search_not_here(as_credentials_get(op));
        return;
    }
    metadata_ask(as_credentials_get(op), "GET", as_cloud_op_print(op, ROLES_PATH "%s", role));
    as_cloud_op_send(op, "get_instance_credentials", metadata_on_credentials);
}

static void ask_for_role_name(struct as_credentials_op *given)
{
    metadata_ask(given, "GET", ROLES_PATH);
    as_cloud_op_send(&given->op, "get_instance_role", metadata_on_role_name);
}

static void aws_metadata_begin(struct as_credentials_op *given)
{
    metadata_begin(given, ask_for_role_name);
}

/* ---- region ---- */

static void metadata_on_region(struct as_cloud_op *op)
{
    const bool is_answer = as_cloud_op_is_good(op);
    const char *region = is_answer ? as_credentials_take_word(op) : NULL;
    const bool is_none = op->http_status == 403 || op->http_status == 404 ||
                         op->answer->outcome == AS_HTTP_UNREACHABLE;
    if (is_answer && (!region || !as_region_is_good(region))) {
        as_cloud_op_fail(op, AS_CLOUD_OP_RETRY, NO_REGION "%s: it is none", op->request.operation);
    } else if (is_answer || is_none) {
        as_credentials_get(op)->found.region = region ? as_xstrdup(region) : NULL;
        as_cloud_op_end(op);
    } else if (op->http_status == 401 && !aws_search_get(op)->token) {
        fail_without_token(op);
    } else {
        as_cloud_op_fail(op, op->fault, NO_REGION "%s", op->message);
    }
}

static void ask_for_region(struct as_credentials_op *given)
{
    metadata_ask(given, "GET", "latest/meta-data/placement/region");
    as_cloud_op_send(&given->op, "get_instance_region", metadata_on_region);
}

static void aws_metadata_begin_region(struct as_credentials_op *given)
{
    const struct aws_search *search = given->state;
    if (search->token && search->with_token)
        ask_for_region(given);
    else
        metadata_begin(given, ask_for_region);
}

/* Assuming roles: https://docs.aws.amazon.com/STS/latest/APIReference/
 *
 * With credentials (AssumeRole, signed) or with a token of an identity provider that AWS trusts
 * (AssumeRoleWithWebIdentity, not signed). The token's file is read each time: such tokens are
 * short-lived and replaced in place. */

#define SESSION      "alertscaler"          /* as CloudTrail shows it */
#define STS_VARIABLE "AWS_ENDPOINT_URL_STS" /* an option of logins */

/* If no region is known, asks the global service. False after failing the op. */
static bool sts_ask(struct as_credentials_op *given, const char *action,
                    const struct aws_role *role)
{
    struct as_cloud_op *op = &given->op;
    const char *region = aws_search_region(given);
    const char *variable = as_account_get(given->account, STS_VARIABLE);
    const char *key = variable ? STS_VARIABLE : "sts_endpoint";
    if (variable && !as_url_is_private(variable)) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         STS_VARIABLE ": expected a URL with https:// (http:// only to this "
                                      "machine)");
        return false;
    }
    const bool is_global = !region && !as_account_get(given->account, key);
    const char *base = is_global ? "https://sts.amazonaws.com"
                                 : aws_make_endpoint(op, given->account, key, "sts",
                                                     region ? region : "us-east-1");
    if (!base)
        return false;
    as_cloud_op_ask(op, "POST", "%s/", base);
    as_cloud_op_header(op, "Content-Type: application/x-www-form-urlencoded; charset=utf-8");
    as_buf_printf(&op->request.body, "Action=%s&Version=2011-06-15", action);
    as_cloud_op_add_parameter(op, "RoleArn", role->arn);
    as_cloud_op_add_parameter(op, "RoleSessionName", role->session ? role->session : SESSION);
    as_cloud_op_add_parameter(op, "ExternalId", role->external_id);
    as_cloud_op_add_parameter(op, "DurationSeconds", role->duration);
    op->request.is_plain = true;
    return true;
}

static void take_credentials(struct as_cloud_op *op, const char *path)
{
    const char *code;
    if (!aws_is_good_xml(op, &code))
        return;
    const json_t *document = answer_xml(op);
    if (!document)
        return;
    const json_t *credentials = answer_find(document, path);
    if (!credentials)
        (void)answer_misses(op, path);
    else
        aws_search_found_in(as_credentials_get(op), credentials, "SessionToken");
}

/* ---- with credentials ---- */

static void sts_on_role(struct as_cloud_op *op)
{
    take_credentials(op, "AssumeRoleResponse.AssumeRoleResult.Credentials");
}

/* The last of the roles, with the credentials found. */
static void aws_sts_assume_role(struct as_credentials_op *given)
{
    struct as_cloud_op *op = &given->op;
    struct aws_search *search = given->state;
    const struct aws_role *role = &search->roles[--search->role_count];
    const char *region = aws_search_region(given);
    struct as_error error;
    const struct as_sign_scope scope = {
        .region = region ? region : "us-east-1", .service = "sts", .now = op->now, .nonce = ""};
    if (!sts_ask(given, "AssumeRole", role))
        return;
    if (as_sign_aws(op, &given->found, &scope, &error) != 0)
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: %s", role->arn, error.text);
    else
        as_cloud_op_send_question(op, "assume_role", sts_on_role);
    op->request.is_timed = true;
}

/* ---- with a web identity ---- */

static void sts_on_identity(struct as_cloud_op *op)
{
    take_credentials(
        op, "AssumeRoleWithWebIdentityResponse.AssumeRoleWithWebIdentityResult.Credentials");
}

static void sts_on_token(struct as_cloud_op *op)
{
    struct as_credentials_op *given = as_credentials_get(op);
    const struct aws_role *role = &aws_search_get(op)->identity;
    if (!op->content) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: %s", op->path,
                         as_errno_get_text(op->error_number));
        return;
    }
    size_t size = op->content_size;
    while (size > 0 && isspace((unsigned char)op->content[size - 1]))
        size--;
    char *token = as_arena_alloc(&op->arena, size + 1, 1);
    memcpy(token, op->content, size);
    if (size == 0 || strlen(token) != size) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: there is no token in it", op->path);
        return;
    }
    if (sts_ask(given, "AssumeRoleWithWebIdentity", role)) {
        as_cloud_op_add_parameter(op, "WebIdentityToken", token);
        as_cloud_op_send_question(op, "assume_role_with_web_identity", sts_on_identity);
    }
    explicit_bzero(token, size);
}

/* The identity's role. */
static void aws_sts_assume_identity(struct as_credentials_op *given)
{
    as_cloud_op_read(&given->op, aws_search_get(&given->op)->token_path, sts_on_token);
}

/* What a profile of AWS' shared files says about credentials: keys, a program, a role with a web
 * identity, or a chain of roles, each assumed with the credentials of another profile.
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-assume-role-credentials.html */

static const char *profile_find(const struct as_credentials_op *op, const char *profile,
                                const char *key)
{
    const struct aws_search *search = op->state;
    const char *value = aws_profiles_find(&search->profiles, profile, key);
    return as_str_is_empty(value) ? NULL : value;
}

static void profile_fail(struct as_credentials_op *op, const char *profile, const char *problem)
{
    as_cloud_op_fail(&op->op, AS_CLOUD_OP_CONFIGURATION, "profile %s: %s", profile, problem);
}

/* ---- keys ---- */

/* Whether the file has keys of the profile; then they are taken, or the op has failed. */
static bool take_keys(struct as_credentials_op *op, const char *profile, enum aws_profile_file file)
{
    const struct aws_profiles *profiles = &((struct aws_search *)op->state)->profiles;
    const char *key_id = aws_profiles_find_in(profiles, file, profile, "aws_access_key_id");
    const char *secret = aws_profiles_find_in(profiles, file, profile, "aws_secret_access_key");
    if (as_str_is_empty(key_id))
        return false;
    if (as_str_is_empty(secret))
        profile_fail(op, profile, "it has aws_access_key_id, but no aws_secret_access_key");
    else
        aws_search_found(op, key_id, secret,
                         aws_profiles_find_in(profiles, file, profile, "aws_session_token"),
                         (as_maybe_time){.set = false});
    return true;
}

static bool has_keys(const struct as_credentials_op *op, const char *profile)
{
    return profile_find(op, profile, "aws_access_key_id") ||
           profile_find(op, profile, "aws_secret_access_key");
}

/* ---- a program ---- */

static void profile_on_program(struct as_cloud_op *op)
{
    json_error_t problem;
    if (!op->content) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "credential_process %s: %s", op->argv[0],
                         as_errno_get_text(op->error_number));
        return;
    }
    json_t *document = json_loadb(op->content, op->content_size, JSON_REJECT_DUPLICATES, &problem);
    const json_t *version = answer_find(document, "Version");
    if (!document)
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "credential_process %s: its output is not JSON", op->argv[0]);
    else if (json_integer_value(version) != 1)
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "credential_process %s: its output is not of `Version` 1", op->argv[0]);
    else
        aws_search_found_in(as_credentials_get(op), document, "SessionToken");
    json_decref(document);
}

static void run_program(struct as_credentials_op *op, const char *profile, const char *command)
{
    const char **words = aws_split_command(&op->op.arena, command);
    if (words)
        as_cloud_op_run(&op->op, words, profile_on_program);
    else
        profile_fail(op, profile,
                     "credential_process is no command: a quote is open, or it is empty");
}

/* ---- one profile ---- */

/* Assumes the profile's role with a web identity. False if the profile has no web identity. */
static bool take_identity(struct as_credentials_op *op, const char *profile)
{
    struct aws_search *search = op->state;
    search->token_path = profile_find(op, profile, "web_identity_token_file");
    if (!search->token_path)
        return false;
    search->identity = (struct aws_role){.profile = profile,
                                         .arn = profile_find(op, profile, "role_arn"),
                                         .session = profile_find(op, profile, "role_session_name")};
    if (search->identity.arn)
        aws_sts_assume_identity(op);
    else
        profile_fail(op, profile, "it has web_identity_token_file, but no role_arn");
    return true;
}

static void profile_take_profile(struct as_credentials_op *op, const char *profile)
{
    const char *command = profile_find(op, profile, "credential_process");
    if (take_keys(op, profile, AWS_FILE_CREDENTIALS))
        return;
    if (command)
        run_program(op, profile, command);
    else if (take_keys(op, profile, AWS_FILE_CONFIG))
        return;
    else if (profile_find(op, profile, "sso_session") ||
             profile_find(op, profile, "sso_account_id"))
        profile_fail(
            op, profile,
            "it signs a person in (sso_...): give a service a role, or use credential_process");
    else
        aws_search_not_here(op);
}

static void profile_begin_profile(struct as_credentials_op *op)
{
    const struct aws_search *search = op->state;
    bool is_explicit;
    const char *profile = aws_search_profile(op, &is_explicit);
    if (is_explicit && !aws_profiles_have(&search->profiles, profile))
        as_cloud_op_fail(&op->op, AS_CLOUD_OP_CONFIGURATION, "there is no profile %s in %s or %s",
                         profile, search->config_path ? search->config_path : "~/.aws/config",
                         search->credentials_path ? search->credentials_path
                                                  : "~/.aws/credentials");
    else
        profile_take_profile(op, profile);
}

static void aws_profile_begin(struct as_credentials_op *op)
{
    aws_search_read_profiles(op, profile_begin_profile);
}

/* ---- web identity ---- */

static void profile_begin_identity(struct as_credentials_op *op)
{
    bool is_explicit;
    if (!take_identity(op, aws_search_profile(op, &is_explicit)))
        aws_search_not_here(op);
}

static void aws_profile_begin_identity(struct as_credentials_op *op)
{
    struct aws_search *search = op->state;
    search->token_path = as_variable_find(&op->op, "AWS_WEB_IDENTITY_TOKEN_FILE");
    if (!search->token_path || as_account_get(op->account, "profile")) {
        aws_search_read_profiles(op, profile_begin_identity);
        return;
    }
    search->identity = (struct aws_role){
        .arn = as_variable_find(&op->op, "AWS_ROLE_ARN"),
        .session = as_variable_find(&op->op, "AWS_ROLE_SESSION_NAME"),
    };
    if (search->identity.arn)
        aws_search_read_profiles(op, aws_sts_assume_identity); /* to find the region */
    else
        as_cloud_op_fail(&op->op, AS_CLOUD_OP_CONFIGURATION,
                         "AWS_WEB_IDENTITY_TOKEN_FILE is set, but not AWS_ROLE_ARN");
}

/* ---- roles ---- */

static bool has_role(const struct as_credentials_op *op, const char *profile)
{
    return profile_find(op, profile, "role_arn") &&
           !profile_find(op, profile, "web_identity_token_file");
}

static void take_source(struct as_credentials_op *op, const char *profile, const char *source)
{
    static const struct {
        const char *name;
        aws_search_fn *begin;
    } sources[] = {
        {"Environment", aws_environment_begin},
        {"EcsContainer", aws_container_begin},
        {"Ec2InstanceMetadata", aws_metadata_begin},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(sources); i++) {
        if (strcasecmp(sources[i].name, source) == 0) {
            sources[i].begin(op);
            return;
        }
    }
    profile_fail(op, profile,
                 "its credential_source is none of Environment, EcsContainer, Ec2InstanceMetadata");
}

/* Adds the role at the end: it is assumed before the others. False after failing the op. */
static bool push_role(struct as_credentials_op *op, const char *profile)
{
    struct aws_search *search = op->state;
    const char *duration = profile_find(op, profile, "duration_seconds");
    int64_t seconds;
    for (size_t i = 0; i < search->role_count; i++) {
        if (strcmp(search->roles[i].profile, profile) == 0) {
            profile_fail(op, profile, "its source_profile leads back to it");
            return false;
        }
    }
    if (search->role_count == AWS_ROLES_MAX) {
        profile_fail(op, profile, "too many profiles lead to it by source_profile");
        return false;
    }
    if (profile_find(op, profile, "mfa_serial")) {
        profile_fail(op, profile, "its role wants a code of a person's device (mfa_serial)");
        return false;
    }
    if (duration && as_number_parse_i64(duration, strlen(duration), &seconds) != 0)
        duration = NULL;
    search->roles[search->role_count++] =
        (struct aws_role){.profile = profile,
                          .arn = profile_find(op, profile, "role_arn"),
                          .session = profile_find(op, profile, "role_session_name"),
                          .external_id = profile_find(op, profile, "external_id"),
                          .duration = duration};
    return true;
}

/* Follows source_profile to a profile with credentials. A profile may name itself, if it also has
 * keys. */
static void follow_roles(struct as_credentials_op *op, const char *profile)
{
    const struct aws_search *search = op->state;
    do {
        const char *next = profile_find(op, profile, "source_profile");
        const char *source = profile_find(op, profile, "credential_source");
        if (!push_role(op, profile))
            return;
        if (!next == !source) {
            profile_fail(op, profile,
                         "it has a role_arn, so it needs source_profile or "
                         "credential_source, and not both");
            return;
        }
        if (source) {
            take_source(op, profile, source);
            return;
        }
        if (!aws_profiles_have(&search->profiles, next)) {
            profile_fail(op, profile, "the profile that its source_profile names is not there");
            return;
        }
        profile = next;
    } while (has_role(op, profile) && !has_keys(op, profile));
    if (!take_identity(op, profile))
        profile_take_profile(op, profile);
}

static void profile_begin_role(struct as_credentials_op *op)
{
    bool is_explicit;
    const char *profile = aws_search_profile(op, &is_explicit);
    if (has_role(op, profile))
        follow_roles(op, profile);
    else
        aws_search_not_here(op);
}

static void aws_profile_begin_role(struct as_credentials_op *op)
{
    aws_search_read_profiles(op, profile_begin_role);
}

/* ---- the chain ---- */

static void aws_begin(struct as_credentials_op *op, aws_search_fn *source)
{
    struct aws_search *search = as_arena_alloc(&op->op.arena, 1, sizeof(*search));
    const char *role = as_account_get(op->account, "role_arn");
    op->state = search;
    if (role)
        search->roles[search->role_count++] = (struct aws_role){
            .profile = "", .arn = role, .external_id = as_account_get(op->account, "external_id")};
    search->own_roles = search->role_count;
    source(op);
}

static void aws_begin_environment(struct as_credentials_op *op)
{
    if (as_account_get(op->account, "profile"))
        as_credentials_not_here(op);
    else
        aws_begin(op, aws_environment_begin);
}

static void aws_begin_role(struct as_credentials_op *op)
{
    aws_begin(op, aws_profile_begin_role);
}

static void begin_identity(struct as_credentials_op *op)
{
    aws_begin(op, aws_profile_begin_identity);
}

static void begin_profile(struct as_credentials_op *op)
{
    aws_begin(op, aws_profile_begin);
}

static void begin_container(struct as_credentials_op *op)
{
    aws_begin(op, aws_container_begin);
}

static void aws_begin_metadata(struct as_credentials_op *op)
{
    aws_begin(op, aws_metadata_begin);
}

const struct as_credentials_source aws_credentials[] = {
    {"environment", aws_begin_environment},
    {"assumed role", aws_begin_role},
    {"web identity", begin_identity},
    {"profile", begin_profile},
    {"container", begin_container},
    {"instance metadata", aws_begin_metadata},
    {0},
};
