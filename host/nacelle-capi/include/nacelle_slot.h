/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nacelle: memory of a device in a slot of this host, and copies between it and host memory.
 *
 *     nacelle_slot slot;
 *     nacelle_buffer host, near;
 *     void *data;
 *
 *     nacelle_slot_open("card.sock", NULL, &slot);
 *     nacelle_slot_alloc_host(slot, 4096, &host, &data);
 *     nacelle_slot_alloc_device(slot, 4096, &near);
 *     memcpy(data, "to the device", 13);
 *     nacelle_copy_entry entry = {host, 0, near, 0, 4096};
 *     nacelle_slot_copy(slot, &entry, 1);
 *     nacelle_buffer_close(host);
 *     nacelle_buffer_close(near);
 *     nacelle_slot_close(slot);
 *
 * Results, handles, threads and fork() are as nacelle.h says; of these handles any number of threads may use one at a time.
 */
#ifndef NACELLE_SLOT_H
#define NACELLE_SLOT_H

#include "nacelle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A device in a slot, which this process has for itself. */
typedef struct nacelle_slot {
  uint64_t id;
} nacelle_slot;

/* How a slot is used. Begin with NACELLE_SLOT_OPTIONS_INIT; a field that is zero has its default. */
typedef struct nacelle_slot_options {
  /* Bytes of this structure: set by the initializer. */
  size_t size;
  /* How long the device may take to answer, in ms. Default: 60 000. */
  uint32_t timeout_ms;
  /* 2^n copies can be under way, n from 5 to 15. Default: 10. */
  uint32_t ring_log;
  /* 1: whoever waits looks at memory all the time; no interrupts are asked for. It costs a processor, and is the fastest. */
  uint32_t poll;
  /* 0. */
  uint32_t reserved;
} nacelle_slot_options;

#ifdef __cplusplus
#define NACELLE_SLOT_OPTIONS_INIT \
  { sizeof(nacelle_slot_options), 0, 0, 0, 0 }
#else
#define NACELLE_SLOT_OPTIONS_INIT {.size = sizeof(nacelle_slot_options)}
#endif

/* Opens the device of a slot: the path of a socket ("nacelle device --slot SOCKET"), or the PCI address of a board that the kernel's VFIO
 * has ("0000:01:00.0"). The function is reset: what others have begun ends. `options` may be NULL. `*slot` must be closed by
 * nacelle_slot_close(); it is zero after an error. NACELLE_SLOT if there is no device, another program has it, or it has no copy engine. */
nacelle_result nacelle_slot_open(const char *where, const nacelle_slot_options *options, nacelle_slot *slot);

/* The part of the device's memory that is the host's: its device address, and its bytes. No call, connection or kernel is given any of
 * it. Both pointers may be NULL. */
nacelle_result nacelle_slot_get_memory(nacelle_slot slot, uint64_t *address, uint64_t *size);

/* Ends the handle. The device is closed when all copies were closed, too; those under way then are given up. */
nacelle_result nacelle_slot_close(nacelle_slot slot);

/* ---- Buffers ---- */

/* Memory of the host that the device reaches, or memory of the device. */
typedef struct nacelle_buffer {
  uint64_t id;
} nacelle_buffer;

/* Takes `size` bytes of zeros in host memory, and sets `*data` to the first. `*buffer` must be closed by nacelle_buffer_close(); it is
 * zero after an error. */
nacelle_result nacelle_slot_alloc_host(nacelle_slot slot, size_t size, nacelle_buffer *buffer, void **data);

/* Takes `size` bytes of device memory, from a multiple of 64 on. They hold what was there before. NACELLE_DEVICE_MEMORY if so many are
 * not free. As nacelle_slot_alloc_host(). */
nacelle_result nacelle_slot_alloc_device(nacelle_slot slot, uint64_t size, nacelle_buffer *buffer);

/* The same at a place of the caller's choice, `offset` bytes behind the begin of the host's part. NACELLE_DEVICE_MEMORY if these bytes do
 * not all exist, or some are in use. */
nacelle_result nacelle_slot_alloc_device_at(nacelle_slot slot, uint64_t offset, uint64_t size, nacelle_buffer *buffer);

/* The device address of the first byte: that of host memory has bit 63 set. */
nacelle_result nacelle_buffer_get_address(nacelle_buffer buffer, uint64_t *address);

/* Gives the buffer back, when the copies that use it have ended. The pointer of nacelle_slot_alloc_host() is not valid any more. */
nacelle_result nacelle_buffer_close(nacelle_buffer buffer);

/* ---- Copies ---- */

/* `size` bytes from one buffer to another one, or to another part of it: any lengths and offsets, each from host or device memory to
 * either. */
typedef struct nacelle_copy_entry {
  nacelle_buffer from;
  uint64_t from_offset;
  nacelle_buffer to;
  uint64_t to_offset;
  uint64_t size;
} nacelle_copy_entry;

/* Copies `count` entries, and waits for their end. They are not made in order: none may read what another one writes. If one fails
 * (NACELLE_COPY_FAILED: the text says which, and why), the others are made nevertheless. NACELLE_INVALID_ARGUMENT, and nothing is copied,
 * if bytes do not exist, an entry overlaps itself, or there are more entries than the ring has places. */
nacelle_result nacelle_slot_copy(nacelle_slot slot, const nacelle_copy_entry *entries, size_t count);

/* Copies, or a list of them, that were begun. */
typedef struct nacelle_copy {
  uint64_t id;
} nacelle_copy;

/* Begins the same, and returns at once. `*copy` must be closed by nacelle_copy_close(); it is zero after an error. The buffers may be
 * closed meanwhile. NACELLE_COPIES_FULL if there is no room now: wait for a copy. */
nacelle_result nacelle_slot_copy_start(nacelle_slot slot, const nacelle_copy_entry *entries, size_t count, nacelle_copy *copy);

/* Sets `*done` to whether the copies have ended. Does not wait. If one has failed, returns its error, with `*done` true. */
nacelle_result nacelle_copy_test(nacelle_copy copy, bool *done);

/* Waits for their end, at most `timeout_ms`; if that is negative, until they end, the engine has stopped or the device has gone. Returns
 * the error if one has failed, and NACELLE_PENDING if they run on. */
nacelle_result nacelle_copy_wait(nacelle_copy copy, int64_t timeout_ms);

/* Ends the handle. Copies under way go on, and keep their buffers. */
nacelle_result nacelle_copy_close(nacelle_copy copy);

/* Writes `byte` to `size` bytes of a buffer from `offset` on, and waits for the end. */
nacelle_result nacelle_slot_fill(nacelle_slot slot, nacelle_buffer buffer, uint64_t offset, uint64_t size, uint32_t byte);

/* Resets the function: copies under way end with NACELLE_COPY_FAILED. Buffers stay, and other copies can follow. */
nacelle_result nacelle_slot_reset(nacelle_slot slot);

#ifdef __cplusplus
}
#endif

#endif
