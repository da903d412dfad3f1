/*
 * Limits on the content of a peer's document; the size of the body has its own limit. Beyond a
 * limit the alert is refused, with an error that names the place; outside of alerts the whole
 * document is refused.
 */
#ifndef ALERTSCALER_DECIDE_DOCUMENT_LIMITS_H
#define ALERTSCALER_DECIDE_DOCUMENT_LIMITS_H

#include <stddef.h>

#define AS_PAYLOAD_ALERTS_MAX      1000000 /* alerts in one notification */
#define AS_PAYLOAD_INVALID_MAX     1000    /* unreadable alerts in one notification */
#define AS_PAYLOAD_LABELS_MAX      1024    /* labels, or annotations, of one alert */
#define AS_PAYLOAD_LABEL_NAME_MAX  1024    /* bytes */
#define AS_PAYLOAD_LABEL_VALUE_MAX 65536   /* bytes; annotations too */
#define AS_PAYLOAD_RECEIVER_MAX    1024    /* bytes; each alert stores it */
#define AS_PAYLOAD_TEXT_MAX        65536   /* bytes of any other text: groupKey, version, ... */
#define AS_PAYLOAD_TIME_MAX        64      /* bytes of a time */
#define AS_PAYLOAD_RECEIVERS_MAX   1000    /* receivers of one alert of a list */

/* One object of a list or a watch of the Kubernetes API, in bytes. The API server refuses one of
 * more than about 1.5 MiB, and the JSON text may be larger than what etcd stores. */
#define AS_KUBE_OBJECT_MAX ((size_t)3 * 1024 * 1024)
/* The token that continues a list. */
#define AS_KUBE_CONTINUE_MAX ((size_t)16 * 1024)

/* Bytes of memory for reading a notification, or an answer of Prometheus or Alertmanager, of `size`
 * bytes. Real alerts take two to three times their size (labels, annotations, URLs), samples eight
 * times; a body of "[],[],..." would take 14 times. */
#define AS_DOCUMENT_MEMORY_MAX(size)                                                               \
    ((size) < ((size_t)33 << 20) ? ((size_t)1 << 20) + 12 * (size) : (size_t)400 << 20)

#endif
