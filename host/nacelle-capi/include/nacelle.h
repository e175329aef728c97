/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nacelle: accelerators on the network, called from C.
 *
 *     nacelle_device device;
 *     nacelle_call call;
 *     unsigned char bytes[3] = {1, 2, 3};
 *     nacelle_region regions[] = {nacelle_inout(bytes, sizeof bytes)};
 *
 *     nacelle_device_open("10.77.0.2", NULL, &device);
 *     nacelle_call_create(device, 1, regions, 1, NULL, &call);
 *     nacelle_call_invoke(call);
 *     nacelle_call_wait(call, -1);
 *     nacelle_call_close(call);
 *     nacelle_device_close(device);
 *
 * Each function returns NACELLE_OK or the number of an error; nacelle_last_error() has the text. Results are written only on
 * success, unless a function says otherwise.
 *
 * Handles are numbers, not pointers. A handle that is zero, of another kind, closed, or of the process that forked this one
 * gives an error and never undefined behaviour. Handles may be copied; closing one closes all copies.
 *
 * Threads: every function may be called from any thread at any time. Different calls of one device run side by side. If two
 * threads use one call or transfer at the same time, the second gets NACELLE_BUSY.
 *
 * Memory: regions are in buffers of the program, which are used in place. A buffer belongs to the program, must stay until
 * nacelle_call_close() has returned, and must be left alone from nacelle_call_invoke() to the end of the call. Buffers of transfers and
 * windows are used in place, too, until nacelle_transfer_close() or nacelle_window_close() has returned.
 *
 * fork(): handles of the parent give NACELLE_FORKED in the child, which opens its own. exit() with calls under way is allowed:
 * the device detects that its caller is gone, and frees what it had.
 */
#ifndef NACELLE_H
#define NACELLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of this header. nacelle_version() has that of the library. */
#define NACELLE_VERSION_MAJOR 0
#define NACELLE_VERSION_MINOR 1
#define NACELLE_VERSION_PATCH 0
#define NACELLE_VERSION_STRING "0.1.0"
/* As one number, which grows from version to version. */
#define NACELLE_VERSION ((NACELLE_VERSION_MAJOR << 16) | (NACELLE_VERSION_MINOR << 8) | NACELLE_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results ---- */

/* The number of a result. It never changes its meaning; later versions may add numbers. */
typedef uint32_t nacelle_result;

enum nacelle_result_code {
  NACELLE_OK = 0,

  /* An argument is not valid: NULL, out of range, regions that overlap, a call that is in the wrong state. */
  NACELLE_INVALID_ARGUMENT = 1,
  /* The wire cannot be used. */
  NACELLE_LINK = 2,
  /* The caller's own address, or the address or the name of an acceptor, is used by another. */
  NACELLE_ADDRESS_TAKEN = 3,
  /* No address is free in the device's subnet. */
  NACELLE_NO_FREE_ADDRESS = 4,
  /* No host has the device's address. */
  NACELLE_UNREACHABLE = 5,
  /* The device refused the connection. */
  NACELLE_REFUSED = 6,
  /* The device refused the regions. */
  NACELLE_REGIONS_REFUSED = 7,
  /* Nothing moved for as long as the options allow. The call may still end: wait again, or close it. */
  NACELLE_TIMEOUT = 8,
  /* The device stopped acknowledging, or closed the connection. */
  NACELLE_LOST = 9,
  /* The device refused a request of the transport. */
  NACELLE_TRANSPORT = 10,
  /* The device did what no device may do. */
  NACELLE_PROTOCOL = 11,
  /* The device has no kernel for the function, or none is free. */
  NACELLE_SOCKET_UNAVAILABLE = 12,
  /* The kernel did not end within the time that the device gives it. */
  NACELLE_KERNEL_TIMEOUT = 13,
  /* The device does not have the function. */
  NACELLE_UNKNOWN_FUNCTION = 14,
  /* The kernel says that it failed; nacelle_call_get_status() has its code. */
  NACELLE_KERNEL = 15,
  /* No device of this name runs on the wire. */
  NACELLE_NO_SUCH_DEVICE = 16,
  /* A device could not be managed. */
  NACELLE_MANAGEMENT = 17,
  /* The call was cancelled. */
  NACELLE_CANCELLED = 18,
  /* The call did not end by its deadline, and was ended. */
  NACELLE_DEADLINE_EXCEEDED = 19,
  /* All contexts of the connection have calls or remotes. */
  NACELLE_NO_FREE_CONTEXT = 20,
  /* The device has not agreed to what is asked for. */
  NACELLE_UNSUPPORTED = 21,
  /* This side has ended the connection. */
  NACELLE_CLOSED = 22,
  /* None of several devices can be reached. */
  NACELLE_NO_TARGET = 23,
  /* A window of this number and direction is open already. */
  NACELLE_WINDOW_OPEN = 24,
  /* The software device does not take the kernel. Not of a function here. */
  NACELLE_KERNEL_REFUSED = 25,
  /* The simulated device cannot be made. Not of a function here. */
  NACELLE_SIMULATED_DEVICE = 26,
  /* The device admits callers by entries, and none is for this one: no token, or a wrong one. */
  NACELLE_NOT_ADMITTED = 27,
  /* The device has closed the connection: the caller's entry was revoked, or its time is over. */
  NACELLE_ADMISSION_ENDED = 28,
  /* The device in a slot cannot be used, or has gone (nacelle_slot.h). */
  NACELLE_SLOT = 29,
  /* So much of the device's memory is not free, or not there. */
  NACELLE_DEVICE_MEMORY = 30,
  /* A copy between host and device memory failed. */
  NACELLE_COPY_FAILED = 31,
  /* So many copies are under way that there is no room for more: wait for one. */
  NACELLE_COPIES_FULL = 32,

  /* A defect of this library, which would otherwise have ended the program. */
  NACELLE_INTERNAL = 1000,
  /* Not a handle: zero, or one that was never given. */
  NACELLE_BAD_HANDLE = 1001,
  /* A handle of another kind. */
  NACELLE_WRONG_HANDLE = 1002,
  /* The handle was closed. */
  NACELLE_CLOSED_HANDLE = 1003,
  /* Another thread uses the call or transfer. */
  NACELLE_BUSY = 1004,
  /* The handle belongs to the process that forked this one. */
  NACELLE_FORKED = 1005,
  /* The call or transfer had not ended when the time of nacelle_call_wait() or nacelle_transfer_wait() was over. It runs on. */
  NACELLE_PENDING = 1006,
  /* The buffer for the text is too small. */
  NACELLE_BUFFER_TOO_SMALL = 1007
};

/* A few words for the number of a result, for ever valid. Never NULL. */
const char *nacelle_result_string(nacelle_result result);

/* The last error of this thread: what has happened, and what to try. Empty if there was none. The text stays until the next
 * function of this library fails on this thread, or the thread ends. Never NULL. */
const char *nacelle_last_error(void);

/* What to try, alone. As nacelle_last_error(). */
const char *nacelle_last_hint(void);

/* ---- Version ---- */

/* The version of the library that the program runs with, as NACELLE_VERSION. */
uint32_t nacelle_version(void);

/* The same, as text, for ever valid. */
const char *nacelle_version_string(void);

/* ---- Devices ---- */

/* A device that was reached, with a network address for its callers. */
typedef struct nacelle_device {
  uint64_t id;
} nacelle_device;

enum nacelle_link {
  /* Shared memory with a device of this user on this machine that offers it; the wire for what a device there can have; for other
     addresses an RDMA NIC, if there is one on the way, else UDP. */
  NACELLE_LINK_AUTO = 0,
  /* The virtual wire: Ethernet frames among the processes of one machine. */
  NACELLE_LINK_WIRE = 1,
  /* A UDP socket: the kernel's network, on this machine or to another. */
  NACELLE_LINK_UDP = 2,
  /* Memory that this process shares with the device, of the same user on the same machine. */
  NACELLE_LINK_SHM = 3,
  /* The RDMA NIC, or Linux' soft-RoCE, that has the address from which packets to the device leave. */
  NACELLE_LINK_VERBS = 4
};

/* How a device is reached. Begin with NACELLE_DEVICE_OPTIONS_INIT; a field that is zero has its default. Strings are copied. */
typedef struct nacelle_device_options {
  /* Bytes of this structure: set by the initializer. */
  size_t size;
  /* The directory of the virtual wire. Default: $NACELLE_WIRE, $XDG_RUNTIME_DIR/nacelle, for root /run/nacelle, or
   * /tmp/nacelle-UID. */
  const char *wire;
  /* The caller's own address, "10.77.0.50" or "10.77.0.50/16". Default: on the wire a free one in the device's subnet; by UDP a
   * free loopback address for a device on this machine, else the address from which packets to it leave. */
  const char *source;
  /* A pcapng file for all that this caller sends and receives. Default: none. */
  const char *capture;
  /* The port of the device's service. Default: what the device publishes, else 12345. */
  uint16_t port;
  /* The longest IP packet, in bytes. Default: the longest that is known to arrive, up to 4200. */
  uint16_t mtu;
  /* How long the device's address is asked for, in ms. Default: 3 000. */
  uint32_t resolve_timeout_ms;
  /* How long nothing may move in a step of a call before it is NACELLE_TIMEOUT, in ms. Default: 60 000. */
  uint32_t timeout_ms;
  /* How long an acknowledgement may take before a packet is sent again, in ms. Default: that of the Rust library. */
  uint32_t ack_timeout_ms;
  /* 1: reports have the device's cycles, as far as it runs on this machine. Takes time. */
  uint32_t trace;
  /* 1: a thread of the library moves frames until the device and its calls are closed. 0: threads that wait do, and
   * nacelle_device_progress(). */
  uint32_t progress_thread;
  /* 1: nacelle_call_invoke() opens a new connection after the loss of the device. */
  uint32_t reconnect;
  /* How long a wait polls before it sleeps, in microseconds: more saves the time of waking up, and keeps a processor busy. Default:
   * 50 by UDP, none on the wire. */
  uint32_t spin_us;
  /* By which link the device is reached, of enum nacelle_link; `link_name` has more. Default: chosen by its address. */
  uint32_t link;
  /* Time that a device which is not Nacelle's gets between its answer and the next call, in microseconds. Default: sixteen times as
   * long as it took to answer the region request, 100 000 at most. */
  uint32_t answer_gap_us;
  /* The same as `link` by name, in every form of the command's --link: "udp", "verbs:DEVICE", "packet:INTERFACE" or
   * "xdp:INTERFACE"; an interface needs a `source`. Only one of the two may be set. Default: none. */
  const char *link_name;
} nacelle_device_options;

#ifdef __cplusplus
#define NACELLE_DEVICE_OPTIONS_INIT \
  { sizeof(nacelle_device_options), nullptr, nullptr, nullptr, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, nullptr }
#else
#define NACELLE_DEVICE_OPTIONS_INIT {.size = sizeof(nacelle_device_options)}
#endif

/* Reaches the device at `address`: an IPv4 or IPv6 address, the name of a device that runs on this machine, or several of these
 * with commas between them, of which it is the first that can be reached. `options` may be NULL. `*device` must be closed by
 * nacelle_device_close(); it is zero after an error. On the wire this takes a fraction of a second, for the address that it probes.
 * By UDP nothing is asked of the device yet: whether one is there shows in nacelle_call_create(). */
nacelle_result nacelle_device_open(const char *address, const nacelle_device_options *options, nacelle_device *device);

/* Ends the handle. Calls that are open go on, until they are closed themselves. Waits at most a second until the device has
 * confirmed the end of the calls that were closed. */
nacelle_result nacelle_device_close(nacelle_device device);

/* Copies what the device says of itself (docs/reference/device-description.md) to `text`, as JSON with a zero byte, and sets
 * `*length` to its length without that byte: 0 if the device says nothing. With `text` NULL and `size` 0 the length alone, which
 * is also set if the buffer is too small. `length` may be NULL if `text` is not. The device is asked once. */
nacelle_result nacelle_device_describe(nacelle_device device, char *text, size_t size, size_t *length);

/* How busy a device is. Begin with NACELLE_LOAD_INIT. */
typedef struct nacelle_load {
  /* Bytes of this structure: set by the initializer. */
  size_t size;
  /* Connections of callers, the one that asks included. */
  uint64_t connections;
  /* Device memory, in bytes. */
  uint64_t memory_bytes;
  /* What callers have of it. */
  uint64_t memory_held;
  /* Calls since the device's start. */
  uint64_t calls;
  /* Kernels that run now. */
  uint64_t running;
  /* Calls that wait for a thread. */
  uint64_t waiting;
} nacelle_load;

#ifdef __cplusplus
#define NACELLE_LOAD_INIT \
  { sizeof(nacelle_load), 0, 0, 0, 0, 0, 0 }
#else
#define NACELLE_LOAD_INIT {.size = sizeof(nacelle_load)}
#endif

/* Fills `*load` as far as `load->size` goes, as the device says at this moment: asked on a connection of its own.
 * NACELLE_UNSUPPORTED if the device does not say. */
nacelle_result nacelle_device_load(nacelle_device device, nacelle_load *load);

/* Sets `*fd` to a descriptor for the program's event loop: readable when nacelle_device_progress() has something to do, or a call
 * has news. It belongs to the device: poll it only, level-triggered, and only until the device is closed. */
nacelle_result nacelle_device_fd(nacelle_device device, int *fd);

/* Moves what can be moved at once for all calls of the device, and never waits. Then look at the calls by nacelle_call_test(). */
nacelle_result nacelle_device_progress(nacelle_device device);

/* Sends one ICMP echo request. `*round_trip_ns` is the time until its answer; `round_trip_ns` may be NULL. */
nacelle_result nacelle_device_ping(nacelle_device device, uint32_t timeout_ms, uint64_t *round_trip_ns);

/* ---- Calls ---- */

/* What a region is for. */
enum nacelle_role {
  /* Goes to the device with each call. */
  NACELLE_INPUT = 1,
  /* Goes to the device with the first call, and stays there. */
  NACELLE_INPUT_ONCE = 2,
  /* Comes back with each call. */
  NACELLE_OUTPUT = 3,
  /* Both. */
  NACELLE_INOUT = 4,
  /* Goes to the device with the first call, and comes back with each. */
  NACELLE_INOUT_ONCE = 5,
  /* Device memory for the kernel alone; `data` is NULL. */
  NACELLE_INTERNAL_REGION = 6
};

/* A region of a call. The order of regions is that in which the kernel sees them. */
typedef struct nacelle_region {
  /* Of enum nacelle_role. */
  uint32_t role;
  /* 0. */
  uint32_t reserved;
  /* The buffer. The library does not write to that of an input. */
  void *data;
  /* Its bytes: 1 to 2^32 - 1, and more on a connection with long set-ups. */
  size_t size;
} nacelle_region;

static inline nacelle_region nacelle_make_region(uint32_t role, const void *data, size_t size) {
  nacelle_region region;
  region.role = role;
  region.reserved = 0;
  region.data = (void *)data;
  region.size = size;
  return region;
}
static inline nacelle_region nacelle_input(const void *data, size_t size) {
  return nacelle_make_region(NACELLE_INPUT, data, size);
}
static inline nacelle_region nacelle_input_once(const void *data, size_t size) {
  return nacelle_make_region(NACELLE_INPUT_ONCE, data, size);
}
static inline nacelle_region nacelle_output(void *data, size_t size) {
  return nacelle_make_region(NACELLE_OUTPUT, data, size);
}
static inline nacelle_region nacelle_inout(void *data, size_t size) {
  return nacelle_make_region(NACELLE_INOUT, data, size);
}
static inline nacelle_region nacelle_inout_once(void *data, size_t size) {
  return nacelle_make_region(NACELLE_INOUT_ONCE, data, size);
}
static inline nacelle_region nacelle_internal(size_t size) {
  return nacelle_make_region(NACELLE_INTERNAL_REGION, NULL, size);
}

/* Calls on one set of regions, one after the other. */
typedef struct nacelle_call {
  uint64_t id;
} nacelle_call;

/* How a call is made. Begin with NACELLE_CALL_OPTIONS_INIT; a field that is zero has its default. */
typedef struct nacelle_call_options {
  /* Bytes of this structure: set by the initializer. */
  size_t size;
  /* How long a call may take, in ms; one that takes longer is ended with NACELLE_DEADLINE_EXCEEDED. Until then a kernel may
   * compute without a sign of progress for longer than `timeout_ms` of the device's options. Default: no deadline. */
  uint32_t deadline_ms;
  /* 0. */
  uint32_t reserved;
} nacelle_call_options;

#ifdef __cplusplus
#define NACELLE_CALL_OPTIONS_INIT \
  { sizeof(nacelle_call_options), 0, 0 }
#else
#define NACELLE_CALL_OPTIONS_INIT {.size = sizeof(nacelle_call_options)}
#endif

/* Opens a connection of its own for calls of `function`, 1 to 127, and agrees with the device on the regions. The array is
 * copied; the buffers are used in place until the call is closed. Two regions whose buffers overlap are an error if one of them
 * comes back. `options` may be NULL. `*call` must be closed by nacelle_call_close(); it is zero after an error. */
nacelle_result nacelle_call_create(nacelle_device device, uint32_t function, const nacelle_region *regions, size_t count,
                                   const nacelle_call_options *options, nacelle_call *call);

/* Starts a call: sends the inputs, and returns at once. From here to the end of the call the buffers are the device's. */
nacelle_result nacelle_call_invoke(nacelle_call call);

/* The same, with a `user` argument of at most 24 bits for the kernel; that of nacelle_call_invoke() is 0. */
nacelle_result nacelle_call_invoke_with(nacelle_call call, uint32_t user);

/* Sets `*done` to whether the call has ended. Does not wait. If it has failed, returns its error, with `*done` true. After
 * NACELLE_TIMEOUT the call may still end. Frames move only while a thread is in a function of this library: a program that does
 * something else meanwhile calls this now and then. */
nacelle_result nacelle_call_test(nacelle_call call, bool *done);

/* Waits for the end of the call, at most `timeout_ms`; if that is negative, until the call ends or nothing has moved for the
 * time in the options. Returns the call's error if it has failed, and NACELLE_PENDING if it runs on. */
nacelle_result nacelle_call_wait(nacelle_call call, int64_t timeout_ms);

/* Makes the call end that runs, and returns at once; does nothing if none runs. Any thread may call this, also while another waits
 * for the call. The call ends with NACELLE_CANCELLED, or as it would have ended if its end was under way. Without contexts
 * (nacelle_connection_get_info()) the connection ends with it, and the next nacelle_call_invoke() is NACELLE_CLOSED, or opens a new
 * one if the device's options say so. */
nacelle_result nacelle_call_cancel(nacelle_call call);

/* Has `callback` called with `data` whenever a call has ended or has run into its timeout, in place of the callback before; then
 * nacelle_call_test() has its outcome. It is called by the thread that moves frames, which may be one in nacelle_call_wait(), or
 * the library's own. It may use other calls, must not wait, and must neither longjmp() nor throw. After nacelle_call_close() has
 * returned, it is not called any more. */
nacelle_result nacelle_call_on_finish(nacelle_call call, void (*callback)(void *data), void *data);

enum nacelle_call_state {
  /* No call was started. */
  NACELLE_CALL_READY = 0,
  NACELLE_CALL_RUNNING = 1,
  NACELLE_CALL_DONE = 2,
  NACELLE_CALL_FAILED = 3
};

/* How the last call stands. Begin with NACELLE_CALL_STATUS_INIT. */
typedef struct nacelle_call_status {
  /* Bytes of this structure: set by the initializer. */
  size_t size;
  /* Of enum nacelle_call_state, as the last test or wait has found it. */
  uint32_t state;
  /* The result code in the device's answer; 0 without an answer, too. 0x10 to 0x7f are those of the kernel. */
  uint32_t device_result;
  /* Bytes of all outputs of a call that has ended with success; else 0. */
  uint64_t bytes_received;
} nacelle_call_status;

#ifdef __cplusplus
#define NACELLE_CALL_STATUS_INIT \
  { sizeof(nacelle_call_status), 0, 0, 0 }
#else
#define NACELLE_CALL_STATUS_INIT {.size = sizeof(nacelle_call_status)}
#endif

/* Fills `*status` as far as `status->size` goes. */
nacelle_result nacelle_call_get_status(nacelle_call call, nacelle_call_status *status);

/* Copies what the set-up and the last call cost, step by step, as JSON. The buffer is as for nacelle_device_describe(). */
nacelle_result nacelle_call_report(nacelle_call call, char *text, size_t size, size_t *length);

/* Ends the handle, and the connection if the call has one of its own. A call that runs on a shared connection is cancelled, and
 * this waits for its end. Afterwards, also after an error of the network, nothing reads or writes the buffers any more.
 * NACELLE_BUSY if another thread uses the call: then nothing has changed. */
nacelle_result nacelle_call_close(nacelle_call call);

/* ---- Connections for several calls ---- */

/* A connection on which several calls run side by side, each in a context of its own, as far as the device agrees. */
typedef struct nacelle_connection {
  uint64_t id;
} nacelle_connection;

/* How a connection is opened. Begin with NACELLE_CONNECTION_OPTIONS_INIT; a field that is zero has its default. */
typedef struct nacelle_connection_options {
  /* Bytes of this structure: set by the initializer. */
  size_t size;
  /* Contexts that are asked for, at most 255. Default: 4. */
  uint32_t contexts;
  /* 0. */
  uint32_t reserved;
} nacelle_connection_options;

/* What the device has agreed to. Begin with NACELLE_CONNECTION_INFO_INIT. */
typedef struct nacelle_connection_info {
  /* Bytes of this structure: set by the initializer. */
  size_t size;
  /* As many calls can be open at a time; a device without contexts has 1. */
  uint32_t contexts;
  /* So many more now. */
  uint32_t free_contexts;
  /* 1: a call can be cancelled without ending the connection. */
  uint32_t can_cancel;
  /* 1: there are chains, regions of 2^32 bytes and more, and deadlines that the device keeps. */
  uint32_t has_long_set_up;
} nacelle_connection_info;

/* A step of a chain: `function` on `region_count` regions from `first_region` on, which the kernel sees as if they were all. */
typedef struct nacelle_chain_step {
  uint32_t function;
  /* 24 bits for the kernel. */
  uint32_t user;
  uint32_t first_region;
  uint32_t region_count;
} nacelle_chain_step;

#ifdef __cplusplus
#define NACELLE_CONNECTION_OPTIONS_INIT \
  { sizeof(nacelle_connection_options), 0, 0 }
#define NACELLE_CONNECTION_INFO_INIT \
  { sizeof(nacelle_connection_info), 0, 0, 0, 0 }
#else
#define NACELLE_CONNECTION_OPTIONS_INIT {.size = sizeof(nacelle_connection_options)}
#define NACELLE_CONNECTION_INFO_INIT {.size = sizeof(nacelle_connection_info)}
#endif

/* Opens a connection. `options` may be NULL. `*connection` must be closed by nacelle_connection_close(); it is zero after an
 * error. */
nacelle_result nacelle_connection_open(nacelle_device device, const nacelle_connection_options *options,
                                       nacelle_connection *connection);

/* Fills `*info` as far as `info->size` goes. */
nacelle_result nacelle_connection_get_info(nacelle_connection connection, nacelle_connection_info *info);

/* As nacelle_call_create(), in a free context of the connection. */
nacelle_result nacelle_connection_create(nacelle_connection connection, uint32_t function, const nacelle_region *regions,
                                         size_t count, const nacelle_call_options *options, nacelle_call *call);

/* The same for a chain: each call runs the steps one after the other in the device, without the caller in between. Outputs are
 * written once, at the end. NACELLE_UNSUPPORTED if the device has no long set-up. Internal regions come after all others. */
nacelle_result nacelle_connection_create_chain(nacelle_connection connection, const nacelle_chain_step *steps, size_t step_count,
                                               const nacelle_region *regions, size_t count, const nacelle_call_options *options,
                                               nacelle_call *call);

/* Ends the handle. The connection itself ends with its last call, remote or transfer. */
nacelle_result nacelle_connection_close(nacelle_connection connection);

/* ---- Memory of a peer, written and read by RDMA ---- */

/*
 * A peer is a device, or a host that accepts (below). Its memory is written and read by RDMA without a call, over a connection that
 * stays open. Windows are memory that a host gives under a number:
 *
 *     nacelle_write(connection, 7, bytes, sizeof bytes, 0);    the host's callback for window 7 has run when this returns
 *     nacelle_read(connection, 8, bytes, sizeof bytes);        no part of the host's program runs
 *
 * These make a context of the connection for each transfer: two exchanges. For many transfers a remote is made once, and each transfer is
 * one RDMA WRITE or READ.
 */

/* Writes the buffer to the peer's window `window`, tells its owner with `label`, at most 16 bits, and waits until the owner's callback
 * has returned. NACELLE_KERNEL if the callback says that it has failed; NACELLE_REGIONS_REFUSED if the peer has no such window, or it is
 * shorter; NACELLE_UNSUPPORTED if the peer has no windows; NACELLE_SOCKET_UNAVAILABLE if the owner has closed it. The library
 * leaves the buffer alone when this has returned, whatever is returned. */
nacelle_result nacelle_write(nacelle_connection connection, uint32_t window, const void *data, size_t size, uint32_t label);

/* Reads the first bytes of the peer's window `window` into all of the buffer. Errors and buffer as for nacelle_write(). */
nacelle_result nacelle_read(nacelle_connection connection, uint32_t window, void *data, size_t size);

/* Memory of a peer, in a context of a connection. Any thread may begin transfers, any number at a time; they take effect in the order in
 * which they were begun. A transfer that the peer refuses ends the connection. */
typedef struct nacelle_remote {
  uint64_t id;
} nacelle_remote;

/* `size` bytes of the peer's memory for this alone, all zero: of a device, without calling a function. `*remote` must be closed by
 * nacelle_remote_close(); it is zero after an error. */
nacelle_result nacelle_connection_remote(nacelle_connection connection, uint64_t size, nacelle_remote *remote);

/* The first `size` bytes of the peer's window to be written: memory that the peer has for this alone, all zero. */
nacelle_result nacelle_connection_window_to_write(nacelle_connection connection, uint32_t window, uint64_t size,
                                                  nacelle_remote *remote);

/* The first `size` bytes of the peer's window to be read: memory of its program. */
nacelle_result nacelle_connection_window_to_read(nacelle_connection connection, uint32_t window, uint64_t size,
                                                 nacelle_remote *remote);

/* Ends the handle. Transfers under way go on; the context is free when they were closed. */
nacelle_result nacelle_remote_close(nacelle_remote remote);

/* A transfer that was begun. */
typedef struct nacelle_transfer {
  uint64_t id;
} nacelle_transfer;

/* Begins to write the buffer to `offset`, and returns at once. The transfer has ended when the bytes are there for every reader. The
 * buffer is used in place until nacelle_transfer_close() has returned, and must be left alone until the transfer has ended. `*transfer`
 * must be closed; it is zero after an error, and then the buffer is left alone. NACELLE_INVALID_ARGUMENT if the bytes do not fit, the
 * window was opened to be read, or the send queue is full: wait for a transfer. */
nacelle_result nacelle_remote_write(nacelle_remote remote, uint64_t offset, const void *data, size_t size,
                                    nacelle_transfer *transfer);

/* The same, and then tells the owner of the window with `label`, at most 16 bits. The transfer has ended when the owner's callback has
 * returned, with what that says. One of these or of nacelle_remote_notify() may be under way at a time. */
nacelle_result nacelle_remote_write_and_notify(nacelle_remote remote, uint64_t offset, const void *data, size_t size,
                                               uint32_t label, nacelle_transfer *transfer);

/* Begins to read into all of the buffer from `offset`. As nacelle_remote_write(). */
nacelle_result nacelle_remote_read(nacelle_remote remote, uint64_t offset, void *data, size_t size, nacelle_transfer *transfer);

/* Tells the owner of the window alone, after all transfers before. */
nacelle_result nacelle_remote_notify(nacelle_remote remote, uint32_t label, nacelle_transfer *transfer);

/* Sets `*done` to whether the transfer has ended. Does not wait. If it has failed, returns its error, with `*done` true. After
 * NACELLE_TIMEOUT the transfer may still end. */
nacelle_result nacelle_transfer_test(nacelle_transfer transfer, bool *done);

/* Waits for the end of the transfer, at most `timeout_ms`; if that is negative, until it ends or nothing has moved for the time in the
 * device's options. Returns the transfer's error if it has failed, and NACELLE_PENDING if it runs on. */
nacelle_result nacelle_transfer_wait(nacelle_transfer transfer, int64_t timeout_ms);

/* Has `callback` called with `data`, once, when the transfer has ended or has run into its timeout: at once if it has ended. It takes the
 * place of a callback before. It is called by the thread that moves frames, as that of nacelle_call_on_finish(): it must not wait, and
 * must neither longjmp() nor throw. It may begin transfers, and may close this one, unless another function of this transfer has called
 * it: then that is NACELLE_BUSY. After nacelle_transfer_close() has returned, it does not run and is not called any more, but that which
 * has called nacelle_transfer_close() itself. */
nacelle_result nacelle_transfer_on_finish(nacelle_transfer transfer, void (*callback)(void *data), void *data);

/* How a transfer stands. Begin with NACELLE_TRANSFER_STATUS_INIT. */
typedef struct nacelle_transfer_status {
  /* Bytes of this structure: set by the initializer. */
  size_t size;
  /* NACELLE_CALL_RUNNING, NACELLE_CALL_DONE or NACELLE_CALL_FAILED, as the last test or wait has found it. */
  uint32_t state;
  /* What the callback of the window's owner has returned, if it has failed: 0x10 to 0x7f; else 0. */
  uint32_t owner_result;
} nacelle_transfer_status;

/* Fills `*status` as far as `status->size` goes. */
nacelle_result nacelle_transfer_get_status(nacelle_transfer transfer, nacelle_transfer_status *status);

/* Ends the handle. A transfer cannot be taken back: this waits for the end of one that is under way, as nacelle_transfer_wait() with a
 * negative time, and returns its error if it fails. Afterwards, also after an error, nothing reads or writes the buffer any more.
 * NACELLE_BUSY if another thread uses the transfer: then nothing has changed. */
nacelle_result nacelle_transfer_close(nacelle_transfer transfer);

/* ---- Hosts that accept what others write, and give what others read ---- */

/* A host that peers connect to with nacelle_device_open(). It has its own threads: no function of this library needs to be called
 * for it. */
typedef struct nacelle_acceptor {
  uint64_t id;
} nacelle_acceptor;

/* Bounds of an acceptor. Begin with NACELLE_ACCEPTOR_OPTIONS_INIT; a field that is zero has its default. Strings are copied. */
typedef struct nacelle_acceptor_options {
  /* Bytes of this structure: set by the initializer. */
  size_t size;
  /* The directory of the wire, on which it is published. Default: as that of nacelle_device_options. */
  const char *wire;
  /* The name that peers on this machine may use in place of the address. Default: the first free one. */
  const char *name;
  /* Memory for what peers write, in bytes. Default: 2^30. */
  uint64_t memory_bytes;
  /* What one peer may have of it. Default: all. */
  uint64_t memory_per_peer;
  /* Connections at a time, at most 4096. Default: 256. */
  uint32_t connections;
  /* Those of one peer. Default: 64. */
  uint32_t connections_per_peer;
  /* Contexts of a connection, at most 32: as many remotes can one have at a time. Default: 8. */
  uint32_t contexts;
  /* Callbacks that run at a time, at most 1024. Default: one for each processor. */
  uint32_t callbacks;
  /* The time after which the peer is told NACELLE_KERNEL_TIMEOUT, in ms. The callback runs on. Default: 60 000. */
  uint32_t callback_time_ms;
  /* 0. */
  uint32_t reserved;
} nacelle_acceptor_options;

#ifdef __cplusplus
#define NACELLE_TRANSFER_STATUS_INIT \
  { sizeof(nacelle_transfer_status), 0, 0 }
#define NACELLE_ACCEPTOR_OPTIONS_INIT \
  { sizeof(nacelle_acceptor_options), nullptr, nullptr, 0, 0, 0, 0, 0, 0, 0, 0 }
#else
#define NACELLE_TRANSFER_STATUS_INIT {.size = sizeof(nacelle_transfer_status)}
#define NACELLE_ACCEPTOR_OPTIONS_INIT {.size = sizeof(nacelle_acceptor_options)}
#endif

/* Starts an acceptor. `address` is "127.0.0.7" or "fd00::7", an address of this machine, for a UDP socket there; or "10.77.0.9/16", an
 * address on the virtual wire; NULL stands for the first free one there. `options` may be NULL. When this returns, peers can connect.
 * NACELLE_ADDRESS_TAKEN if another has the name or the address on the wire. `*acceptor` must be closed by nacelle_acceptor_close(); it is
 * zero after an error. */
nacelle_result nacelle_acceptor_open(const char *address, const nacelle_acceptor_options *options, nacelle_acceptor *acceptor);

/* The same in two steps, so that the first peer finds the windows: peers can connect when nacelle_acceptor_listen() has returned, and
 * windows may be opened before. Until then the acceptor takes no address and no name: that others have them shows in
 * nacelle_acceptor_listen(), which may be tried again after an error. NACELLE_INVALID_ARGUMENT if the acceptor listens already. */
nacelle_result nacelle_acceptor_create(const char *address, const nacelle_acceptor_options *options, nacelle_acceptor *acceptor);
nacelle_result nacelle_acceptor_listen(nacelle_acceptor acceptor);

/* Copies the address that peers connect to, and the name: NACELLE_INVALID_ARGUMENT before the acceptor listens. The buffer is as for nacelle_device_describe(). */
nacelle_result nacelle_acceptor_address(nacelle_acceptor acceptor, char *text, size_t size, size_t *length);
nacelle_result nacelle_acceptor_name(nacelle_acceptor acceptor, char *text, size_t size, size_t *length);

/* What a peer has done, as a callback gets it. Later versions may add fields. */
typedef struct nacelle_incoming {
  /* Bytes of this structure. */
  size_t size;
  /* The peer's address. */
  const char *peer;
  /* The number of the window. */
  uint32_t window;
  /* What the peer says of this transfer: 16 bits. */
  uint32_t label;
  /* The writer's memory in the window, as long as the writer has asked for. What the callback changes, the writer can read. NULL for a
   * reader. Its until the callback returns. */
  void *data;
  /* Its bytes. */
  size_t data_size;
} nacelle_incoming;

/* Is called with the `data` of its window, by a thread of the acceptor: by several at a time, for different connections and contexts.
 * Returns 0, or a code from 0x10 to 0x7f with which the peer's transfer fails (NACELLE_KERNEL); after any other code that fails with
 * NACELLE_SOCKET_UNAVAILABLE. It may use every function of this library, and may close its own window or acceptor. Two callbacks that
 * close each other's windows wait for each other. It must neither longjmp() nor throw. */
typedef uint32_t (*nacelle_incoming_callback)(const nacelle_incoming *incoming, void *data);

/* Memory that peers write or read under a number. */
typedef struct nacelle_window {
  uint64_t id;
} nacelle_window;

/* Lets peers write up to `longest` bytes under `number`. Each remote that a peer makes gets memory of its own, all zero. `callback` is
 * called for each write that a peer says is complete, maybe before this returns. `*window` must be closed by nacelle_window_close(); it
 * is zero after an error. NACELLE_WINDOW_OPEN if a window to be written has the number. */
nacelle_result nacelle_accept_incoming_write(nacelle_acceptor acceptor, uint32_t number, size_t longest,
                                             nacelle_incoming_callback callback, void *data, nacelle_window *window);

/* Lets peers read the buffer under `number`, as it is at that moment, without any part of this program. The program may write the buffer
 * at any time; a peer that reads meanwhile gets some bytes from before and some from after. `callback` is called when a peer says that
 * it has read; it may be NULL. As nacelle_accept_incoming_write(). */
nacelle_result nacelle_accept_incoming_read(nacelle_acceptor acceptor, uint32_t number, const void *buffer, size_t size,
                                            nacelle_incoming_callback callback, void *data, nacelle_window *window);

/* Closes the window, and waits for its callbacks that run. Afterwards its callback does not run and is not called any more, but that
 * which has called this itself, and nothing reads the buffer. Peers that have a part of it: a write ends with
 * NACELLE_SOCKET_UNAVAILABLE when it tells the owner, a read with NACELLE_TRANSPORT. */
nacelle_result nacelle_window_close(nacelle_window window);

/* Ends the acceptor, and closes its windows as nacelle_window_close() does; their handles are to be closed, too. Peers get
 * NACELLE_LOST. */
nacelle_result nacelle_acceptor_close(nacelle_acceptor acceptor);

#ifdef __cplusplus
}
#endif

#endif
