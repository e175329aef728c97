/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel for the software device: how often each value of a byte is there. README.md says how it is built and called. */
#include <string.h>

#include "nacelle_kernel.h"

enum { HISTOGRAM = 81, BINS = 256, BLOCK = 1 << 20 };

/* data, bins. The lowest user bit selects whether the bins are added to (1) or begin at 0. */
static uint32_t histogram(const nacelle_kernel_call *call) {
    if (call->parameters != 2 || call->user > 1)
        return NACELLE_KERNEL_BAD_ARGUMENTS;
    const nacelle_kernel_memory data = call->regions[0], bins = call->regions[1];
    if (bins.length < BINS * sizeof(uint64_t))
        return NACELLE_KERNEL_REGION_TOO_SMALL;
    /* Regions are aligned for every element; numbers are little-endian, as this machine's are. */
    uint64_t *const count = (uint64_t *)(void *)bins.bytes;
    if (call->user == 0)
        memset(count, 0, BINS * sizeof *count);
    for (size_t at = 0; at < data.length; at++) {
        if (at % BLOCK == 0 && nacelle_kernel_is_cancelled(call))
            return NACELLE_KERNEL_CANCELLED;
        count[data.bytes[at]]++;
    }
    return NACELLE_KERNEL_SUCCESS;
}

static const nacelle_kernel_region regions[] = {
    {"data", NACELLE_KERNEL_IN, 0, "any bytes"},
    {"bins", NACELLE_KERNEL_INOUT, 0, "256 counts of 64 bits, little-endian"},
};

static const nacelle_kernel_function functions[] = {
    {HISTOGRAM, 2, "histogram", "Counts how often each byte is there; user bit 0: adds to the counts.", regions, histogram},
};

static const nacelle_kernel_error errors[] = {
    {NACELLE_KERNEL_BAD_ARGUMENTS, "not two regions, or other user bits than bit 0"},
    {NACELLE_KERNEL_REGION_TOO_SMALL, "the bins have less than 2048 bytes"},
};

static const nacelle_kernel kernel = {
    .abi = NACELLE_KERNEL_ABI,
    .size = sizeof kernel,
    .name = "histogram",
    .major = 1,
    .minor = 0,
    .function_count = sizeof functions / sizeof *functions,
    .error_count = sizeof errors / sizeof *errors,
    .functions = functions,
    .errors = errors,
};

const nacelle_kernel *nacelle_kernel_describe(void) {
    return &kernel;
}
