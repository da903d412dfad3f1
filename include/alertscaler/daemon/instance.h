/*
 * The name of this process in the action log: the pod's name in Kubernetes, else host name and
 * process id.
 */
#ifndef ALERTSCALER_DAEMON_INSTANCE_H
#define ALERTSCALER_DAEMON_INSTANCE_H

#define AS_INSTANCE_SIZE 288
void as_instance_print(char text_out[AS_INSTANCE_SIZE]);

#endif
