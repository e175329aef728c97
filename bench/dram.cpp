// SPDX-License-Identifier: Apache-2.0
//
// What the model of DRAM (sim/ddr.h) gives a master that always has requests and never waits, in bytes a second:
//
//     dram CLOCK_HZ KIND VALUE ...     KIND: read, write or both; sequential or random: bursts of 4 KiB in a row, or beats anywhere
//                                      VALUE: the fields of nacelle_sim_dram
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "dram.h"

namespace {

constexpr size_t kBytes = 64;
constexpr uint64_t kSize = uint64_t(1) << 30;
constexpr uint64_t kCycles = 1'000'000;

struct Addresses {
    bool random;
    std::mt19937_64 draw{1};
    uint64_t next = 0;

    uint64_t take() {
        if (random) return draw() % (kSize / kBytes) * kBytes;
        const uint64_t address = next;
        next = (next + 4096) % kSize;
        return address;
    }
};

}  // namespace

int main(int count, char **arguments) {
    constexpr int kFields = sizeof(nacelle_sim_dram) / sizeof(uint32_t);
    if (count != 4 + kFields) return 2;
    const int64_t cycle_ps = 1'000'000'000'000 / std::atoll(arguments[1]);
    const std::string way = arguments[2];
    const bool random = std::strcmp(arguments[3], "random") == 0;
    uint32_t fields[kFields];
    for (int i = 0; i < kFields; ++i) fields[i] = uint32_t(std::strtoul(arguments[4 + i], nullptr, 10));
    nacelle_sim_dram dram;
    std::memcpy(&dram, fields, sizeof(dram));

    nacelle::MemoryTiming timing;
    timing.bytes_per_cycle = kBytes;
    nacelle::Dram<kBytes> memory(0, kSize, timing, 1, cycle_ps);
    memory.set_dram(&dram);
    const uint8_t last_beat = random ? 0 : 4096 / kBytes - 1;
    Addresses reads{random}, writes{random};
    writes.next = kSize / 2;
    uint8_t beat[kBytes] = {};
    const bool reading = way != "write", writing = way != "read";
    for (uint64_t cycle = 0; cycle < kCycles; ++cycle) {
        if (memory.b_valid(cycle)) memory.b_taken();
        if (memory.r_valid(cycle)) memory.r_taken();
        if (writing && memory.w_ready()) memory.w(beat, ~0ull, cycle);
        if (writing && memory.aw_ready()) memory.aw(writes.take(), 0, last_beat);
        if (reading && memory.ar_ready()) memory.ar(reads.take(), 0, last_beat, cycle);
        memory.tick(cycle + 1);
    }
    const double seconds = double(kCycles * uint64_t(cycle_ps)) * 1e-12;
    std::printf("%.0f\n", double(memory.read_bytes + memory.write_bytes) / seconds);
}
