/*
 * The folder that `alertscaler convert` writes: all of it or nothing.
 */
#ifndef ALERTSCALER_SRC_CLI_CONVERT_FOLDER_H
#define ALERTSCALER_SRC_CLI_CONVERT_FOLDER_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/tools/convert.h>

#define CONVERT_LIST "not-carried-over.txt"

/*
 * Writes the files into a new folder beside `path`, with `list` as CONVERT_LIST unless it is empty;
 * checks them and runs their tests; then renames the folder to `path`, which must not exist, or be
 * an empty folder. 0, or a negative errno with an error: then nothing is left of it.
 */
int convert_folder_write(const char *path, const struct as_conversion *conversion, const char *list,
                         struct as_error *error) AS_MUST_USE;

#endif
