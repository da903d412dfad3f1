/*
 * The reader of the definition of scaling policies: at its start, after each refresh, and every
 * RETRY_US while the definition is older, or after a failure. Only the metadata is requested. A
 * definition that does not exist is not reported here: the watch of policies fails for it.
 */
#include <alertscaler/kube/policy_definition.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/number.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/rules/policy.h>

#define DEFINITION_PATH                                                                            \
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" AS_POLICY_CRD_NAME
#define DEFINITION_MAX ((size_t)4 * 1024 * 1024) /* with managedFields */
#define METADATA_ONLY  "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
#define SOON_US        AS_US_PER_S
#define RETRY_US       (30 * AS_US_PER_S)

struct as_policy_definition {
    struct as_kube_client *client;
    as_policy_definition_read_fn *on_read;
    void *context;
    struct as_kube_request *request; /* under way */
    struct as_timer *timer;          /* of the next one; NULL: none is planned */
    bool is_soon;                    /* the timer is not that of a retry */
    bool is_older;                   /* as logged */
    bool is_forbidden;               /* this was logged */
};

static void definition_on_timer(void *context);

static void definition_plan(struct as_policy_definition *definition, int64_t us, bool is_soon)
{
    struct as_loop *loop = definition->client->env->loop;
    if (definition->timer)
        loop->cancel_timer(loop, definition->timer);
    definition->is_soon = is_soon;
    definition->timer = loop->start_timer(loop, us, definition_on_timer, definition);
}

/* 0: no number; -1: not an object. */
static int64_t definition_parse(const struct as_http_response *response)
{
    static const struct tree_part annotation[] = {{.name = AS_POLICY_SCHEMA_ANNOTATION}, {0}};
    static const struct tree_part annotations[] = {{.name = "annotations", .parts = annotation},
                                                   {0}};
    static const struct tree_part parts[] = {{.name = "metadata", .parts = annotations}, {0}};
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(DEFINITION_MAX);
    struct as_error error = AS_ERROR_INIT;
    int64_t number = 0;
    if (tree_parse(&tree, response->body, response->body_size, parts, &error) != 0)
        return -1;
    const char *text = tree_find_text(tree_find(tree_find(tree.root, "metadata"), "annotations"),
                                      AS_POLICY_SCHEMA_ANNOTATION);
    return text && as_number_parse_i64(text, strlen(text), &number) == 0 && number > 0 ? number : 0;
}

static void definition_compare(struct as_policy_definition *definition, int64_t schema)
{
    const bool is_older = schema < AS_POLICY_SCHEMA;
    if (is_older && !definition->is_older)
        as_log(AS_LOG_WARN,
               "the CustomResourceDefinition of scaling policies is older than alertscaler: the "
               "API server drops newer keys; apply the output of `alertscaler schema crd`",
               AS_F("definition", AS_POLICY_CRD_NAME), AS_FI("schema", schema),
               AS_FI("expected", AS_POLICY_SCHEMA));
    else if (!is_older && definition->is_older)
        as_log(AS_LOG_INFO, "the CustomResourceDefinition of scaling policies is up to date",
               AS_F("definition", AS_POLICY_CRD_NAME), AS_FI("schema", schema));
    definition->is_older = is_older;
    definition->on_read(definition->context, is_older);
    if (is_older)
        definition_plan(definition, RETRY_US, false);
}

static void definition_on_response(void *context, const struct as_http_response *response,
                                   unsigned attempts)
{
    struct as_policy_definition *definition = context;
    const int status = response->outcome == AS_HTTP_ANSWERED ? response->status : 0;
    definition->request = NULL;
    (void)attempts;
    const int64_t schema = status == 200 ? definition_parse(response) : -1;
    if (schema >= 0) {
        definition->is_forbidden = false;
        definition_compare(definition, schema);
    } else if (status == 401 || status == 403) {
        if (!definition->is_forbidden)
            as_log(AS_LOG_INFO,
                   "the CustomResourceDefinition of scaling policies cannot be read, and its "
                   "version is not compared: the right is missing",
                   AS_F("right", "customresourcedefinitions: get " AS_POLICY_CRD_NAME));
        definition->is_forbidden = true;
    } else if (status != 404) {
        definition_plan(definition, RETRY_US, false);
    }
}

static void definition_on_timer(void *context)
{
    struct as_policy_definition *definition = context;
    definition->timer = NULL;
    definition->is_soon = false;
    definition->request =
        as_kube_request_start(definition->client,
                              &(struct as_kube_request_spec){.method = "GET",
                                                             .path = DEFINITION_PATH,
                                                             .operation = "get_definition",
                                                             .accept = METADATA_ONLY,
                                                             .max_response = DEFINITION_MAX},
                              definition_on_response, definition);
}

void as_policy_definition_refresh(struct as_policy_definition *definition)
{
    if (!definition->request && !definition->is_soon)
        definition_plan(definition, SOON_US, true);
}

struct as_policy_definition *as_policy_definition_start(struct as_kube_client *client,
                                                        as_policy_definition_read_fn *on_read,
                                                        void *context)
{
    struct as_policy_definition *definition = as_xcalloc(1, sizeof(*definition));
    definition->client = client;
    definition->on_read = on_read;
    definition->context = context;
    definition_plan(definition, 0, true);
    return definition;
}

struct as_policy_definition *as_policy_definition_stop(struct as_policy_definition *definition)
{
    if (!definition)
        return NULL;
    struct as_loop *loop = definition->client->env->loop;
    if (definition->timer)
        loop->cancel_timer(loop, definition->timer);
    if (definition->request)
        as_kube_request_cancel(definition->request);
    free(definition);
    return NULL;
}
