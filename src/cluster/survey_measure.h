/*
 * How many bytes a part of a survey takes in a decision document, at most: so that the document
 * stays below its limit whatever texts a cluster has.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_SURVEY_MEASURE_H
#define ALERTSCALER_SRC_CLUSTER_SURVEY_MEASURE_H

#include <alertscaler/cluster/survey.h>

size_t survey_measure_text(const char *text);
size_t survey_measure_labels(const struct as_labels *labels); /* NULL: 0 */
size_t survey_measure_shape(const struct as_survey_shape *shape, const struct as_res_names *names);
size_t survey_measure_group(const struct as_survey_group *group, const struct as_res_names *names);
/* Without its lists of pods. */
size_t survey_measure_node(const struct as_node_shape *node, const struct as_res_names *names);

#define SURVEY_PODS_BYTES     20 /* of a number of pods of a shape */
#define SURVEY_UNNEEDED_BYTES 90 /* what is remembered of a node, without its name */
#define SURVEY_ASKED_BYTES    140

#endif
