/*
 * How large what a peer sends may be, once it is within the limit on the body. An alert that
 * reaches one of these is refused, with a text that names the place; or the whole document, where
 * it is not in an alert.
 */
#ifndef ALERTSCALER_WIRE_LIMITS_H
#define ALERTSCALER_WIRE_LIMITS_H

#include <stddef.h>

#define AS_PAYLOAD_ALERTS_MAX      1000000 /* alerts in one notification */
#define AS_PAYLOAD_INVALID_MAX     1000    /* of them that cannot be read */
#define AS_PAYLOAD_LABELS_MAX      1024    /* labels, or annotations, of one alert */
#define AS_PAYLOAD_LABEL_NAME_MAX  1024    /* bytes */
#define AS_PAYLOAD_LABEL_VALUE_MAX 65536   /* bytes; annotations too */
#define AS_PAYLOAD_RECEIVER_MAX    1024    /* bytes; each of its alerts remembers it */
#define AS_PAYLOAD_TEXT_MAX        65536   /* bytes of any other text: groupKey, version, ... */
#define AS_PAYLOAD_TIME_MAX        64      /* bytes of a time */
#define AS_PAYLOAD_RECEIVERS_MAX   1000    /* that one alert of a list is routed to */

/* Bytes of memory that reading a notification of `size` bytes may take. Real alerts take two to
 * three times their size (labels, annotations, URLs), those with dozens of labels of a few letters
 * five; a body of "[],[],..." would take 14 times. */
#define AS_PAYLOAD_MEMORY_MAX(size)                                                                \
    ((size) < ((size_t)33 << 20) ? ((size_t)1 << 20) + 12 * (size) : (size_t)400 << 20)

/* The same for what Prometheus and Alertmanager answer when asked: samples are small, and numbers
 * take many times their size. */
#define AS_ANSWER_MEMORY_MAX(size)                                                                 \
    ((size) < ((size_t)16 << 20) ? ((size_t)1 << 20) + 24 * (size) : (size_t)400 << 20)

#endif
