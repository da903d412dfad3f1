/*
 * The file in the present folder comes first: a user who works on rules means that one.
 */
#include "config_option.h"

#include <unistd.h>

const char *config_option_find(const struct as_args *args)
{
    const char *given = as_args_get(args, "config.file");
    if (given)
        return given;
    return access(CONFIG_HERE, F_OK) == 0 ? CONFIG_HERE : CONFIG_MACHINE;
}

const char *config_option_tell(const struct as_args *args)
{
    const char *path = config_option_find(args);
    if (!as_args_has(args, "config.file") && path[0] == '/')
        fprintf(stderr, "alertscaler %s: there is no %s here: reading %s\n", args->command->name,
                CONFIG_HERE, path);
    return path;
}
