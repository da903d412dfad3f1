/*
 * Credentials of OpenStack: Keystone gives a token for an application credential or a password,
 * together with the catalogue of services:
 * https://docs.openstack.org/api-ref/identity/v3/#authentication-and-token-management
 *
 * Names and meanings are those of OpenStack's command line, but clouds.yaml is not read:
 * https://docs.openstack.org/python-openstackclient/latest/cli/man/openstack.html
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/login/cloud_answer.h>
#include <alertscaler/login/cloud_credentials.h>

/* A setting: the account's option, else environment variables. */
struct setting {
    const char *key, *variables[2];
};

static const struct setting auth_url = {"auth_url", {"OS_AUTH_URL"}},
                            application_id = {"application_credential_id",
                                              {"OS_APPLICATION_CREDENTIAL_ID"}},
                            application_name = {"application_credential_name",
                                                {"OS_APPLICATION_CREDENTIAL_NAME"}},
                            application_secret = {"application_credential_secret_file",
                                                  {"OS_APPLICATION_CREDENTIAL_SECRET"}},
                            user_id = {"user_id", {"OS_USER_ID"}},
                            user_name = {"username", {"OS_USERNAME"}},
                            user_domain_id = {"user_domain_id", {"OS_USER_DOMAIN_ID"}},
                            user_domain_name = {"user_domain_name", {"OS_USER_DOMAIN_NAME"}},
                            password = {"password_file", {"OS_PASSWORD"}},
                            project_id = {"project_id", {"OS_PROJECT_ID", "OS_TENANT_ID"}},
                            project_name = {"project_name", {"OS_PROJECT_NAME", "OS_TENANT_NAME"}},
                            project_domain_id = {"project_domain_id", {"OS_PROJECT_DOMAIN_ID"}},
                            project_domain_name = {"project_domain_name",
                                                   {"OS_PROJECT_DOMAIN_NAME"}},
                            trust_id = {"trust_id", {"OS_TRUST_ID"}},
                            region = {"region", {"OS_REGION_NAME"}},
                            interface = {"interface", {"OS_INTERFACE", "OS_ENDPOINT_TYPE"}};

/* NULL if no variable is set. */
static const char *find_variable(const struct as_credentials_op *op, const struct setting *setting)
{
    const char *value = NULL;
    for (size_t i = 0; i < AS_ARRAY_SIZE(setting->variables) && !value && setting->variables[i];
         i++)
        value = as_variable_find(&op->op, setting->variables[i]);
    return value;
}

static const char *openstack_auth_find(const struct as_credentials_op *op,
                                       const struct setting *setting)
{
    const char *value = as_account_get(op->account, setting->key);
    return as_str_is_empty(value) ? find_variable(op, setting) : value;
}

/* JSON allows only UTF-8. False after failing the op. */
static bool openstack_auth_check_text(struct as_cloud_op *op, const char *text, const char *where)
{
    if (as_str_is_utf8(text, strlen(text)))
        return true;
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s is not UTF-8", where);
    return false;
}

static bool check_texts(struct as_credentials_op *op)
{
    static const struct setting *const settings[] = {
        &application_id,    &application_name,    &application_secret, &user_id,    &user_name,
        &user_domain_id,    &user_domain_name,    &password,           &project_id, &project_name,
        &project_domain_id, &project_domain_name, &trust_id,
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(settings); i++) {
        const char *value = find_variable(op, settings[i]);
        if (value && !as_account_get(op->account, settings[i]->key) &&
            !openstack_auth_check_text(&op->op, value, settings[i]->variables[0]))
            return false;
    }
    return true;
}

static void fail_missing(struct as_cloud_op *op, const char *what, const struct setting *setting)
{
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s is not known: set `%s` (or %s)", what,
                     setting->key, setting->variables[0]);
}

/* ---- the answer ---- */

/* The service's types in the catalogue; the first is the usual one. */
static const char *const service_types[] = {"container-infra",
                                            "container-infrastructure-management",
                                            "container-infrastructure", "container"};

/* "publicURL" is the former word for "public". */
static bool is_interface(const char *wanted, const char *given)
{
    const size_t size = strlen(given);
    return size > 0 && strncmp(wanted, given, size) == 0 &&
           (!wanted[size] || strcmp(wanted + size, "URL") == 0);
}

static const char *find_endpoint(const json_t *service, const char *wanted_region,
                                 const char *wanted_interface)
{
    for (size_t i = 0; i < answer_count(service, "endpoints"); i++) {
        const json_t *endpoint = answer_at(service, "endpoints", i);
        const bool is_region = !wanted_region ||
                               strcmp(answer_text(endpoint, "region_id"), wanted_region) == 0 ||
                               strcmp(answer_text(endpoint, "region"), wanted_region) == 0;
        if (is_region && is_interface(wanted_interface, answer_text(endpoint, "interface")))
            return answer_text(endpoint, "url");
    }
    return NULL;
}

/* Secrets are sent in clear only if the account itself names an http address. */
static bool is_clear_meant(const struct as_credentials_op *op)
{
    const char *url = as_account_get(op->account, auth_url.key);
    return url && !as_url_is_private(url);
}

static bool openstack_auth_is_plain(const char *url)
{
    char host[AS_URL_HOST_SIZE];
    return as_url_take_host(url, host) && !as_url_is_private(url);
}

/* Whether the token may be sent to the catalogue's address; false after failing the op. */
static bool may_go_to(struct as_credentials_op *op, const char *url)
{
    if (as_url_is_private(url) || (openstack_auth_is_plain(url) && is_clear_meant(op)))
        return true;
    if (openstack_auth_is_plain(url))
        as_cloud_op_fail(
            &op->op, AS_CLOUD_OP_CONFIGURATION,
            "Keystone's catalogue has %s for Magnum, where others could read the token on "
            "its way: set `endpoint` if that is meant",
            url);
    else
        as_cloud_op_fail(
            &op->op, AS_CLOUD_OP_CONFIGURATION,
            "what Keystone's catalogue has for Magnum is not a URL like https://host/v1: "
            "set `endpoint`");
    return false;
}

/* False after failing the op. With an endpoint in the account, no catalogue is needed. */
static bool take_endpoint(struct as_credentials_op *credentials, const json_t *document)
{
    const char *given_region = openstack_auth_find(credentials, &region);
    const char *given_interface = openstack_auth_find(credentials, &interface);
    const char *wanted = given_interface ? given_interface : "public", *url = NULL;
    if (as_account_get(credentials->account, "endpoint"))
        return true;
    for (size_t t = 0; t < AS_ARRAY_SIZE(service_types) && !url; t++) {
        for (size_t i = 0; i < answer_count(document, "token.catalog") && !url; i++) {
            const json_t *service = answer_at(document, "token.catalog", i);
            if (strcmp(answer_text(service, "type"), service_types[t]) == 0)
                url = find_endpoint(service, given_region, wanted);
        }
    }
    if (as_str_is_empty(url)) {
        as_cloud_op_fail(
            &credentials->op, AS_CLOUD_OP_CONFIGURATION,
            "Keystone's catalogue has no service %s with a %s endpoint%s%s: see `region` "
            "and `interface`, or set `endpoint`",
            service_types[0], wanted, given_region ? " in region " : "",
            given_region ? given_region : "");
        return false;
    }
    if (!may_go_to(credentials, url))
        return false;
    credentials->found.endpoint = as_xstrdup(url);
    return true;
}

static void openstack_auth_on_token(struct as_cloud_op *op)
{
    struct as_credentials_op *credentials = as_credentials_get(op);
    if (!as_cloud_op_is_good(op)) {
        const json_t *error = op->http_status ? answer_peek_json(op) : NULL;
        const char *message = answer_text(error, "error.message");
        /* nothing is served at this address */
        const enum as_cloud_op_fault fault =
            op->fault == AS_CLOUD_OP_GONE ? AS_CLOUD_OP_CONFIGURATION : op->fault;
        if (op->http_status)
            as_cloud_op_fail(op, fault, "%s: HTTP %d%s%s", op->request.operation, op->http_status,
                             *message ? ": " : "", message);
        return;
    }
    const char *token = as_http_response_find(op->answer, "x-subject-token");
    const json_t *document = answer_json(op);
    if (!document)
        return;
    if (!*token || !answer_find(document, "token")) {
        (void)answer_misses(op, *token ? "token" : "X-Subject-Token");
        return;
    }
    if (!take_endpoint(credentials, document))
        return;
    credentials->found.token = as_xstrdup(token);
    credentials->found.expires = answer_time(document, "token.expires_at");
    as_cloud_op_end(op);
}

/* ---- the question ---- */

/* Without slashes at the end, and with the version, whether `given` has it or not. */
static const char *make_url(struct as_cloud_op *op, const char *given)
{
    static const char *const versions[] = {"/v3", "/v2.0"};
    size_t size = strlen(given);
    while (size > 0 && given[size - 1] == '/')
        size--;
    for (size_t i = 0; i < AS_ARRAY_SIZE(versions); i++) {
        const size_t length = strlen(versions[i]);
        if (size > length && strncmp(given + size - length, versions[i], length) == 0)
            return as_cloud_op_print(op, "%.*s/v3", (int)(size - length), given);
    }
    return as_cloud_op_print(op, "%.*s/v3", (int)size, given);
}

static json_t *openstack_auth_make_id(const char *id)
{
    return json_pack("{s:s}", "id", id);
}

/* {"id"} or {"name", "domain"}; NULL after failing the op. */
static json_t *openstack_auth_make_named(struct as_credentials_op *op, const char *what,
                                         const struct setting *id, const struct setting *name,
                                         const struct setting *domain_id,
                                         const struct setting *domain_name)
{
    const char *given_id = openstack_auth_find(op, id), *given_name = openstack_auth_find(op, name);
    const char *given_domain = openstack_auth_find(op, domain_id),
               *domain = openstack_auth_find(op, domain_name);
    if (given_id)
        return openstack_auth_make_id(given_id);
    if (!given_name) {
        fail_missing(&op->op, what, name);
        return NULL;
    }
    if (!given_domain && !domain) {
        fail_missing(&op->op, as_cloud_op_print(&op->op, "the domain of %s", what), domain_name);
        return NULL;
    }
    return json_pack("{s:s, s:o}", "name", given_name, "domain",
                     given_domain ? openstack_auth_make_id(given_domain)
                                  : json_pack("{s:s}", "name", domain));
}

static json_t *make_user(struct as_credentials_op *op)
{
    return openstack_auth_make_named(op, "the user", &user_id, &user_name, &user_domain_id,
                                     &user_domain_name);
}

/* Frees `auth`. */
static void openstack_auth_ask(struct as_credentials_op *credentials, json_t *auth)
{
    struct as_cloud_op *op = &credentials->op;
    const char *url = openstack_auth_find(credentials, &auth_url);
    if (!url) {
        fail_missing(op, "Keystone's address", &auth_url);
    } else if (!as_account_get(credentials->account, auth_url.key) && !as_url_is_private(url)) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         openstack_auth_is_plain(url)
                             ? "OS_AUTH_URL is an address with http://, where others could "
                               "read the secret on its way: use https://, or set `auth_url` "
                               "if that is meant"
                             : "OS_AUTH_URL is not a URL like https://host:5000/v3, without "
                               "credentials in it");
    } else {
        as_cloud_op_ask(op, "POST", "%s/auth/tokens", make_url(op, url));
        as_cloud_op_write_json(op, json_pack("{s:O}", "auth", auth));
        op->request.is_plain = true;
        as_cloud_op_send_question(op, "get_keystone_token", openstack_auth_on_token);
    }
    answer_wipe(auth);
    json_decref(auth);
}

static void ask_by_application(struct as_cloud_op *op, const char *secret)
{
    struct as_credentials_op *credentials = as_credentials_get(op);
    const char *id = openstack_auth_find(credentials, &application_id);
    const char *name = openstack_auth_find(credentials, &application_name);
    json_t *user = id || !name ? NULL : make_user(credentials), *proof = NULL;
    if (id)
        proof = json_pack("{s:s, s:s}", "id", id, "secret", secret);
    else if (user)
        proof = json_pack("{s:s, s:s, s:o}", "name", name, "secret", secret, "user", user);
    else if (!name)
        fail_missing(op, "the application credential", &application_id);
    if (proof)
        openstack_auth_ask(credentials,
                           json_pack("{s:{s:[s], s:o}}", "identity", "methods",
                                     "application_credential", "application_credential", proof));
}

/* The token's scope; NULL after failing the op. */
static json_t *make_scope(struct as_credentials_op *op)
{
    const char *trust = openstack_auth_find(op, &trust_id);
    if (trust)
        return json_pack("{s:o}", "OS-TRUST:trust", openstack_auth_make_id(trust));
    json_t *project = openstack_auth_make_named(op, "the project", &project_id, &project_name,
                                                &project_domain_id, &project_domain_name);
    return project ? json_pack("{s:o}", "project", project) : NULL;
}

static void ask_by_password(struct as_cloud_op *op, const char *secret)
{
    struct as_credentials_op *credentials = as_credentials_get(op);
    json_t *user = make_user(credentials), *scope = user ? make_scope(credentials) : NULL;
    if (!scope) {
        json_decref(user);
        return;
    }
    json_object_set_new(user, "password", json_string(secret));
    openstack_auth_ask(credentials,
                       json_pack("{s:{s:[s], s:{s:o}}, s:o}", "identity", "methods", "password",
                                 "password", "user", user, "scope", scope));
}

/* ---- which way ---- */

enum way { WAY_NONE, WAY_APPLICATION, WAY_PASSWORD };

/* The account takes precedence over the environment. */
static enum way choose_way(const struct as_credentials_op *op)
{
    const char *type = op->op.get_variable("OS_AUTH_TYPE");
    if (as_account_get(op->account, application_secret.key))
        return WAY_APPLICATION;
    if (as_account_get(op->account, password.key))
        return WAY_PASSWORD;
    if (!as_str_is_empty(type))
        return strcmp(type, "v3applicationcredential") == 0 ? WAY_APPLICATION : WAY_PASSWORD;
    if (find_variable(op, &application_secret))
        return WAY_APPLICATION;
    return find_variable(op, &password) ? WAY_PASSWORD : WAY_NONE;
}

/* The environment may ask for methods that are not supported. False after failing the op. */
static bool check_environment(struct as_credentials_op *op)
{
    static const char *const known[] = {"v3applicationcredential", "v3password", "password"};
    const char *type = op->op.get_variable("OS_AUTH_TYPE");
    const char *cloud = op->op.get_variable("OS_CLOUD");
    bool is_known = as_str_is_empty(type);
    if (as_account_get(op->account, application_secret.key) ||
        as_account_get(op->account, password.key))
        return true;
    for (size_t i = 0; i < AS_ARRAY_SIZE(known); i++)
        is_known = is_known || strcmp(type, known[i]) == 0;
    if (!is_known)
        as_cloud_op_fail(
            &op->op, AS_CLOUD_OP_CONFIGURATION,
            "OS_AUTH_TYPE is %s: only v3applicationcredential and v3password are supported", type);
    else if (!as_str_is_empty(cloud))
        as_cloud_op_fail(
            &op->op, AS_CLOUD_OP_CONFIGURATION,
            "OS_CLOUD is set, but clouds.yaml is not read: set the provider's own keys, "
            "or OS_AUTH_URL and its like");
    else
        return true;
    return false;
}

static void openstack_auth_begin(struct as_credentials_op *credentials, enum way way,
                                 const struct setting *secret,
                                 void (*use)(struct as_cloud_op *, const char *),
                                 as_cloud_op_response_fn *on_response)
{
    const char *file = as_account_get(credentials->account, secret->key);
    const char *value = find_variable(credentials, secret);
    if (!check_environment(credentials))
        return;
    if (choose_way(credentials) != way)
        as_credentials_not_here(credentials);
    else if (!check_texts(credentials))
        return;
    else if (file)
        as_cloud_op_read(&credentials->op, file, on_response);
    else if (value)
        use(&credentials->op, value);
    else
        fail_missing(&credentials->op, "the secret", secret);
}

static void on_application_secret(struct as_cloud_op *op)
{
    const char *secret = as_credentials_take_file(op);
    if (secret && openstack_auth_check_text(op, secret, op->path))
        ask_by_application(op, secret);
}

static void begin_application(struct as_credentials_op *op)
{
    openstack_auth_begin(op, WAY_APPLICATION, &application_secret, ask_by_application,
                         on_application_secret);
}

static void openstack_auth_on_password(struct as_cloud_op *op)
{
    const char *secret = as_credentials_take_file(op);
    if (secret && openstack_auth_check_text(op, secret, op->path))
        ask_by_password(op, secret);
}

static void begin_password(struct as_credentials_op *op)
{
    openstack_auth_begin(op, WAY_PASSWORD, &password, ask_by_password, openstack_auth_on_password);
}

const struct as_credentials_source openstack_credentials[] = {
    {"application credential", begin_application},
    {"password", begin_password},
    {0},
};
