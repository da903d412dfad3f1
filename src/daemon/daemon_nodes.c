/*
 * Nodes that are marked to leave: whether an earlier process may have left some, and what is logged
 * of the search for them.
 *
 * The search lists all nodes of all clusters. It happens only if a node group's instances are
 * nodes, or if the state knows marks or a node group.
 */
#include "daemon_private.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

static bool has_node_group(const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < ruleset->target_count; i++) {
        if (as_target_config_has_nodes(&ruleset->targets[i]))
            return true;
    }
    return false;
}

void daemon_recover_nodes(struct daemon *daemon)
{
    if (!daemon->shell ||
        (!has_node_group(daemon->config->ruleset) && !as_shell_may_have_marks(daemon->shell)))
        return;
    daemon->options->adapters->recover_targets(daemon->targets);
}

static struct node_recovery *get_recovery(struct daemon *daemon, const char *cluster)
{
    struct node_recovery *recovery;
    SLIST_FOREACH (recovery, &daemon->recoveries, next) {
        if (strcmp(recovery->cluster, cluster) == 0)
            return recovery;
    }
    recovery = as_xcalloc(1, sizeof(*recovery));
    recovery->cluster = as_xstrdup(cluster);
    SLIST_INSERT_HEAD(&daemon->recoveries, recovery, next);
    return recovery;
}

/* A search is repeated every minute. A missing right is news once, until a search succeeds; the
 * words of the API server may differ each time. Another failure is news if it is not the last one.
 */
static bool is_news(struct node_recovery *logged, const struct as_nodes_recovery *recovery)
{
    char right[AS_MESSAGE_SIZE] = "";
    if (recovery->reason == AS_REASON_APPLIED) {
        *logged->error = *logged->right = '\0';
        return false;
    }
    if (recovery->reason == AS_REASON_FORBIDDEN) {
        as_str_copy_line(recovery->error, right, sizeof(right));
        right[strcspn(right, ":")] = '\0'; /* "list nodes" */
        if (strcmp(logged->right, right) == 0)
            return false;
        as_str_copy_line(right, logged->right, sizeof(logged->right));
    } else if (strcmp(logged->error, recovery->error) == 0) {
        return false;
    }
    as_str_copy_line(recovery->error, logged->error, sizeof(logged->error));
    return true;
}

void daemon_on_nodes_recovered(void *context, const struct as_nodes_recovery *recovery)
{
    struct daemon *daemon = context;
    if (is_news(get_recovery(daemon, recovery->cluster), recovery))
        as_log(AS_LOG_WARN, "nodes that were marked to leave cannot be given back yet",
               AS_F("cluster", recovery->cluster), AS_F("error", recovery->error));
    if (recovery->undone > 0)
        as_log(AS_LOG_WARN, "nodes that were marked to leave take pods again",
               AS_F("cluster", recovery->cluster), AS_FI("nodes", recovery->undone));
    if (recovery->is_clean && daemon->shell && !daemon->failed)
        as_shell_forget_marks(daemon->shell);
}

void daemon_forget_recoveries(struct daemon *daemon)
{
    struct node_recovery *recovery;
    while ((recovery = SLIST_FIRST(&daemon->recoveries))) {
        SLIST_REMOVE_HEAD(&daemon->recoveries, next);
        free(recovery->cluster);
        free(recovery);
    }
}
