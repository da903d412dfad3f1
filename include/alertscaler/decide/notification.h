/*
 * A notification as Alertmanager sent it, already checked: the receiver hands it to the engine.
 */
#ifndef ALERTSCALER_DECIDE_NOTIFICATION_H
#define ALERTSCALER_DECIDE_NOTIFICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/labels.h>

enum as_alert_status { AS_ALERT_FIRING, AS_ALERT_RESOLVED };

struct as_alert {
    char *problem; /* why the alert could not be read, with the place: all else is void, labels are
                      empty. NULL: it was read */
    enum as_alert_status status;
    struct as_digest digest; /* of the labels: the alert's identity */
    uint64_t fingerprint;    /* the sender's: for display, never trusted */
    as_wall_time starts_at;
    as_wall_time ends_at; /* year 1: still firing */
    struct as_labels *labels;
    struct as_labels *annotations;
    char *generator_url; /* http or https: what made the alert; NULL: not given, or no such URL */
};

struct as_record_base; /* runtime/shell.h */

/* All texts owned, never NULL ("" where absent) unless noted. */
struct as_notification {
    char id[AS_ULID_SIZE];
    char *receiver; /* unquoted */
    char *group_key;
    char *reason;       /* notification_reason */
    char *external_url; /* http or https: the sender's own pages; NULL: as generator_url */
    uint64_t truncated;
    struct as_alert *alerts;
    size_t alert_count;
    /* from the request, filled by the receiver */
    char *remote;
    char *credential; /* the credential's name, never its secret */
    char *traceparent;
    char body_sha256[AS_DIGEST_TEXT_SIZE];
    uint64_t body_size;
    struct as_record_base *base; /* of the body; NULL: the body is not remembered */
};

/* Bytes of memory that it uses, without those of the request. */
size_t as_notification_measure(const struct as_notification *notification);
struct as_notification *as_notification_free(struct as_notification *notification);

AS_DEFINE_CLEANUP(struct as_notification *, as_notification_free)

/*
 * Limits on the content of a peer's document; the size of the body has its own limit. Beyond a
 * limit the alert is refused, with an error that names the place; outside of alerts the whole
 * document is refused.
 */

#define AS_PAYLOAD_ALERTS_MAX      1000000 /* alerts in one notification */
#define AS_PAYLOAD_INVALID_MAX     1000    /* unreadable alerts in one notification */
#define AS_PAYLOAD_LABELS_MAX      1024    /* labels, or annotations, of one alert */
#define AS_PAYLOAD_LABEL_NAME_MAX  1024    /* bytes */
#define AS_PAYLOAD_LABEL_VALUE_MAX 65536   /* bytes; annotations too */
#define AS_PAYLOAD_RECEIVER_MAX    1024    /* bytes; each alert stores it */
#define AS_PAYLOAD_TEXT_MAX        65536   /* bytes of any other text: groupKey, version, ... */
#define AS_PAYLOAD_TIME_MAX        64      /* bytes of a time */
#define AS_PAYLOAD_URL_MAX         4096    /* bytes of a URL; a longer one is dropped */
#define AS_PAYLOAD_RECEIVERS_MAX   1000    /* receivers of one alert of a list */

/* One object of a list or a watch of the Kubernetes API, in bytes. The API server refuses one of
 * more than about 1.5 MiB, and the JSON text may be larger than what etcd stores. */
#define AS_KUBE_ITEM_MAX ((size_t)3 * 1024 * 1024)
/* The token that continues a list. */
#define AS_KUBE_CONTINUE_MAX ((size_t)16 * 1024)

/* Bytes of memory for reading a notification, or an answer of Prometheus or Alertmanager, of `size`
 * bytes. Real alerts take two to three times their size (labels, annotations, URLs), samples eight
 * times; a body of "[],[],..." would take 14 times. */
#define AS_DOCUMENT_MEMORY_MAX(size)                                                               \
    ((size) < ((size_t)33 << 20) ? ((size_t)1 << 20) + 12 * (size) : (size_t)400 << 20)

#endif
