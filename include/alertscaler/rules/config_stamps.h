/*
 * Whether another process may be writing the files of a configuration: two stamps that are the
 * same, taken at some distance, say that the files were not changed in between.
 */
#ifndef ALERTSCALER_RULES_CONFIG_STAMPS_H
#define ALERTSCALER_RULES_CONFIG_STAMPS_H

#include <alertscaler/base/digest.h>
#include <alertscaler/rules/config.h>

struct as_config_stamps {
    char text[AS_DIGEST_TEXT_SIZE]; /* of the names, inodes, sizes and times of the files */
    char newest[256];               /* the file that was changed last */
};

/* The files are found by the names and patterns of this configuration. Take the stamps before the
 * files are read. */
void as_config_stamp_files(const struct as_config *config, struct as_config_stamps *stamps_out);

#endif
