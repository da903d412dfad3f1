/*
 * The gate: finds the credential, says what is wrong where there is none, and keeps its name with
 * the exchange.
 */
#include "auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/app/api.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#define DENIED_EVERY_US (60 * AS_US_PER_S) /* refusals are counted and recorded so often */

struct admission { /* kept with an exchange */
    char *credential;
};

struct as_auth {
    struct as_auth_config config;
    struct as_credentials *credentials;
    uint64_t denied_count; /* not recorded so far */
    as_mono_time denied_recorded;
    bool has_denied;
};

struct as_auth *as_auth_new(const struct as_auth_config *config)
{
    struct as_auth *auth = as_xcalloc(1, sizeof(*auth));
    auth->config = *config;
    return auth;
}

struct as_auth *as_auth_free(struct as_auth *auth)
{
    if (!auth)
        return NULL;
    as_credentials_free(auth->credentials);
    free(auth);
    return NULL;
}

struct as_credentials *as_auth_swap_credentials(struct as_auth *auth,
                                                struct as_credentials *credentials)
{
    struct as_credentials *old = auth->credentials;
    auth->credentials = credentials;
    return old;
}

const struct as_credentials *as_auth_get_credentials(const struct as_auth *auth)
{
    return auth->credentials;
}

static void admission_free(void *data)
{
    struct admission *admission = data;
    free(admission->credential);
    free(admission);
}

const char *as_auth_get_credential(const struct as_http_exchange *exchange)
{
    const struct admission *admission = as_http_exchange_get_data(exchange);
    return admission ? admission->credential : "";
}

static as_mono_time get_now(const struct as_auth *auth)
{
    return auth->config.clock->get_mono(auth->config.clock);
}

/* Counted, and recorded once in a while: a wrong password in a loop must not fill the disk. */
static void record_denied(struct as_auth *auth, const struct as_http_exchange *exchange,
                          const char *handler, int status, const char *problem)
{
    const as_mono_time now = get_now(auth);
    auth->denied_count++;
    if (auth->has_denied && now.us - auth->denied_recorded.us < DENIED_EVERY_US)
        return;
    const struct as_denied_record record = {
        .remote = as_http_exchange_get_remote(exchange),
        .handler = handler,
        .error = problem,
        .status = status,
        .count = auth->denied_count,
    };
    if (!auth->config.denied(auth->config.context, &record))
        return;
    as_log(AS_LOG_WARN, "request denied", AS_F("remote", record.remote), AS_F("handler", handler),
           AS_F("error", problem), AS_FI("count", record.count));
    auth->has_denied = true;
    auth->denied_count = 0;
    auth->denied_recorded = now;
}

static enum as_http_admission refuse(struct as_auth *auth, struct as_http_exchange *exchange,
                                     const char *handler, int status, const char *problem)
{
    const char *headers =
        status == 401 ? "WWW-Authenticate: Bearer realm=\"alertscaler\"\r\n" : NULL;
    record_denied(auth, exchange, handler, status, problem);
    if (as_str_starts_with(as_http_exchange_get_path(exchange), "/api/")) {
        as_api_reply_error(exchange, status, headers, "%s", problem);
        return AS_HTTP_REPLIED;
    }
    char line[AS_ERROR_SIZE];
    const int size = snprintf(line, sizeof(line), "%s\n", problem);
    as_http_exchange_reply(
        exchange, &(struct as_http_answer){
                      .status = status,
                      .headers = headers,
                      .body = line,
                      .body_size = (size_t)size < sizeof(line) ? (size_t)size : sizeof(line) - 1,
                  });
    return AS_HTTP_REPLIED;
}

static enum as_http_admission admit(struct as_http_exchange *exchange, const char *credential)
{
    struct admission *admission = as_xcalloc(1, sizeof(*admission));
    admission->credential = as_xstrdup(credential);
    as_http_exchange_set_data(exchange, admission, admission_free);
    return AS_HTTP_ADMITTED;
}

/* NULL: the permission can be had by somebody. */
static const char *find_obstacle(const struct as_auth *auth, enum as_permission permission)
{
    if (permission != AS_PERMISSION_ADMIN)
        return NULL;
    if (!auth->config.enable_admin_api)
        return "the admin API is not enabled: start with --web.enable-admin-api";
    if (!as_credentials_has_permission(auth->credentials, AS_PERMISSION_ADMIN))
        return "the admin API needs a credential of its own: give one of receiver.tokens "
               "`permissions: [admin]`";
    return NULL;
}

enum as_http_admission as_auth_admit(struct as_auth *auth, struct as_http_exchange *exchange,
                                     const char *handler, enum as_permission permission)
{
    static const char scheme[] = "Bearer ";
    as_http_exchange_set_handler_name(exchange, handler);
    const char *obstacle = find_obstacle(auth, permission);
    if (obstacle)
        return refuse(auth, exchange, handler, 403, obstacle);
    if (as_credentials_is_empty(auth->credentials))
        return admit(exchange, "");
    const char *given = as_http_exchange_find_header(exchange, "Authorization");
    if (!given || strncasecmp(given, scheme, strlen(scheme)) != 0)
        return refuse(auth, exchange, handler, 401,
                      "a bearer token is needed: in Alertmanager and Prometheus set "
                      "authorization.credentials_file");
    given += strlen(scheme);
    given += strspn(given, " ");
    const struct as_credential *found =
        as_credentials_find_token(auth->credentials, given, get_now(auth));
    if (!found)
        return refuse(auth, exchange, handler, 401,
                      "the bearer token is not one of receiver.tokens");
    if (found->permissions & 1U << permission)
        return admit(exchange, found->name);
    char problem[AS_ERROR_SIZE];
    (void)snprintf(problem, sizeof(problem), "the credential `%s` lacks the permission `%s`",
                   found->name, as_permission_words[permission]);
    return refuse(auth, exchange, handler, 403, problem);
}
