/*
 * Where Kubernetes mounts a pod's service account.
 */
#ifndef ALERTSCALER_SRC_KUBE_SERVICE_ACCOUNT_H
#define ALERTSCALER_SRC_KUBE_SERVICE_ACCOUNT_H

#define AS_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

#endif
