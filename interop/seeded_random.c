// SPDX-License-Identifier: Apache-2.0
/* Random numbers by a seed, for User-mode Linux: it takes all of its own from the host's getrandom(2), by the function of the C library.
 *
 * Preloaded (LD_PRELOAD), this gives it those of splitmix64, begun at $NIC_SEED: so a guest that lives in device time does the same in every
 * run. Nothing that such a guest makes is secret. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

ssize_t getrandom(void *buffer, size_t length, unsigned int flags) {
    static uint64_t state;
    static int begun;
    (void)flags;
    if (!begun) {
        const char *seed = getenv("NIC_SEED");
        state = seed ? strtoull(seed, NULL, 0) : 0;
        begun = 1;
    }
    unsigned char *bytes = buffer;
    for (size_t at = 0; at < length; ++at) {
        uint64_t word = state += 0x9e3779b97f4a7c15u;
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
        word = (word ^ word >> 27) * 0x94d049bb133111ebu;
        bytes[at] = (unsigned char)(word >> 56);
    }
    return (ssize_t)length;
}
