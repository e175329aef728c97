/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for Nacelle's software device, in a shared library.
 *
 * The library exports one function, nacelle_kernel_describe(). `nacelle device --soft --kernel ./libmy.so` loads it. The kernel
 * runs in the device's process, with all its rights: load only what you trust.
 *
 * Threads
 *   nacelle_kernel_describe() is called once, before the device starts.
 *   A function is called by any thread of the device, and by several at a time, each with a call of its own. What the calls
 *   share in the library, the library protects.
 *   A function may start threads, which must have ended their work for the call when it returns.
 *
 * Memory
 *   From the start of a function to its return the call's regions are its alone. Their pointers are invalid afterwards.
 *   Each region begins at a multiple of NACELLE_KERNEL_ALIGNMENT. Their number and lengths are the caller's choice, as is every
 *   byte in them: check them before you use them.
 *
 * Time
 *   A function that has been cancelled (nacelle_kernel_is_cancelled) should return soon, with whatever result: its time has
 *   passed, or its caller has gone. It cannot be stopped. If it does not return within a second, its thread and the memory of
 *   its call are lost until it does, and another thread takes its place, up to a number.
 *
 * A function must not end the process or the thread, jump out, or let a C++ exception leave it.
 */
#ifndef NACELLE_KERNEL_H
#define NACELLE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A device loads only libraries of its own version. */
#define NACELLE_KERNEL_ABI 1u

/* In bytes, of the first byte of each region. */
#define NACELLE_KERNEL_ALIGNMENT 64u

/* Results. Others than these, and than a kernel's own from 0x10 to 0x7f, are answered as if the function had crashed: 1. */
#define NACELLE_KERNEL_SUCCESS 0x00u
#define NACELLE_KERNEL_CANCELLED 0x02u
#define NACELLE_KERNEL_BAD_ARGUMENTS 0x10u
#define NACELLE_KERNEL_REGION_TOO_SMALL 0x11u
#define NACELLE_KERNEL_MEMORY_ERROR 0x12u

/* Which side writes a region. */
#define NACELLE_KERNEL_IN 0u       /* the caller */
#define NACELLE_KERNEL_OUT 1u      /* the function, for the caller */
#define NACELLE_KERNEL_INOUT 2u    /* both */
#define NACELLE_KERNEL_INTERNAL 3u /* the function, for itself: scratch memory */

/* The bytes of a region. */
typedef struct {
    uint8_t *bytes;
    size_t length; /* may be 0 */
} nacelle_kernel_memory;

/* What the device knows of a call. */
typedef struct nacelle_kernel_context nacelle_kernel_context;

/* A call. */
typedef struct {
    size_t size;      /* of this structure; a later version may append fields */
    uint32_t user;    /* the 24 bits of the immediate that are the function's */
    uint32_t parameters; /* how many of the regions are parameters, in index order; the internal ones follow */
    uint32_t count;   /* how many regions there are */
    const nacelle_kernel_memory *regions;
    nacelle_kernel_context *context;
    int (*is_cancelled)(const nacelle_kernel_context *context);
} nacelle_kernel_call;

/* Whether the function should return now: not 0. Any thread may ask until the function returns; it costs a few nanoseconds. */
static inline int nacelle_kernel_is_cancelled(const nacelle_kernel_call *call) {
    return call->is_cancelled(call->context);
}

/* The description, as in a kernel file (docs/reference/device-description.md). All texts are ASCII, end in 0 and stay as they
 * are while the library is loaded. */

typedef struct {
    const char *name;
    uint32_t access;   /* NACELLE_KERNEL_IN to _INTERNAL */
    uint32_t repeated; /* 1: any number of these; else 0 */
    const char *doc;
} nacelle_kernel_region;

typedef struct {
    uint32_t code; /* 1 to 127 */
    uint32_t region_count;
    const char *name;
    const char *doc;
    const nacelle_kernel_region *regions;
    uint32_t (*run)(const nacelle_kernel_call *call); /* returns a result */
} nacelle_kernel_function;

typedef struct {
    uint32_t code; /* 0x10 to 0x7f */
    const char *meaning;
} nacelle_kernel_error;

typedef struct {
    uint32_t abi;  /* NACELLE_KERNEL_ABI */
    uint32_t size; /* sizeof(nacelle_kernel); a later version may append fields */
    const char *name;
    uint16_t major, minor; /* the kernel's version */
    uint32_t function_count;
    uint32_t error_count;
    const nacelle_kernel_function *functions;
    const nacelle_kernel_error *errors;
} nacelle_kernel;

#if defined(_WIN32)
#define NACELLE_KERNEL_EXPORT __declspec(dllexport)
#else
#define NACELLE_KERNEL_EXPORT __attribute__((visibility("default")))
#endif

/* The kernel in this library. It stays as it is while the library is loaded. */
NACELLE_KERNEL_EXPORT const nacelle_kernel *nacelle_kernel_describe(void);

#ifdef __cplusplus
}
#endif

#endif
