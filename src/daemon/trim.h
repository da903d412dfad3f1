/*
 * Frees memory that only the start (or a reload) needed.
 */
#ifndef ALERTSCALER_SRC_DAEMON_TRIM_H
#define ALERTSCALER_SRC_DAEMON_TRIM_H

void as_trim_memory(void); /* free heap, and the libraries' pages of code and constants, which are
                              read again if needed */

#endif
