/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NAAICE's naaice.h that programs of the middleware (naaice_ap2.h) use, for Nacelle.
 *
 * The low-level interface (struct naaice_communication_context and its functions) is not here, but for naaice_set_immediate();
 * neither are <infiniband/verbs.h> and <rdma/rdma_cma.h>, because no RDMA NIC is used.
 */
#ifndef NAAICE_H
#define NAAICE_H

/* Programs get these by this header. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The logger of the upstream library, if the program has it. */
#ifdef __has_include
#if __has_include(<ulog.h>)
#include <ulog.h>
#endif
#endif

/* The port of a device, if NAA_SPEC names none and the device publishes none. */
#define SERVER_CONNECTION_PORT 12345
/* Regions of a session, at most. */
#define MAX_MRS 32
/* Seconds that naa_wait() waits for a kernel, at most. */
#define DEFAULT_TIMEOUT 3600

/* How a session stands. Sessions here are in NAAICE_MRSP_DONE, NAAICE_CALCULATING, NAAICE_FINISHED or NAAICE_ERROR. */
typedef enum {
  NAAICE_INIT = 0,
  NAAICE_READY = 1,
  NAAICE_CONNECTED = 2,
  NAAICE_DISCONNECTED = 3,
  NAAICE_MRSP_SENDING = 10,
  NAAICE_MRSP_RECEIVING = 11,
  NAAICE_MRSP_DONE = 12,
  NAAICE_DATA_SENDING = 20,
  NAAICE_CALCULATING = 21,
  NAAICE_DATA_RECEIVING = 22,
  NAAICE_FINISHED = 30,
  NAAICE_ERROR = 40
} naaice_communication_state;

/* What a naa_handle refers to. Programs have pointers to it only, which point to nothing. */
struct naaice_communication_context;

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the three bytes that the kernel gets with each further call (its `user` argument), the first lowest. They are zeros until
 * then. Returns 0, or -1. */
int naaice_set_immediate(struct naaice_communication_context *comm_ctx, uint8_t *imm_bytes);

#ifdef __cplusplus
}
#endif

#endif
