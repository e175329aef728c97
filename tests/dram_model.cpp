// SPDX-License-Identifier: Apache-2.0
//
// The model of DRAM (sim/dram.h, sim/ddr.h) by itself: the times of single accesses, data under random traffic, bits that flip.
// Arguments: the fields of nacelle_sim_dram.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "dram.h"

namespace {

constexpr uint64_t kSize = 1 << 20;
constexpr int64_t kCyclePs = 4000;
int failures = 0;

void expect(bool good, const char *what, long long got, long long wanted) {
    if (good) return;
    std::printf("%s: %lld, not %lld\n", what, got, wanted);
    ++failures;
}
void same(long long got, long long wanted, const char *what) { expect(got == wanted, what, got, wanted); }

// Until a read that comes at `now` has passed.
int64_t time_of_read(nacelle::Ddr &ddr, uint64_t address, int64_t now) {
    ddr.advance(now);
    ddr.read(address, now);
    for (int64_t at = now;; at += 125) {
        ddr.advance(at);
        if (ddr.read_done() <= at + ddr.is.latency) break;
    }
    const int64_t done = ddr.read_done();
    ddr.read_taken();
    return done - now;
}

void times(const nacelle_sim_dram &is) {
    nacelle::Ddr ddr(is);
    const uint64_t in_row = uint64_t(is.burst_bytes) * is.bank_groups, next_row = uint64_t(is.row_bytes) * is.banks;
    const int64_t open = is.cl + is.burst + is.latency;
    same(time_of_read(ddr, 0, 1000), is.trcd + open, "a closed bank");
    same(time_of_read(ddr, in_row, 200'000), open, "an open row");
    same(time_of_read(ddr, next_row, 400'000), is.trp + is.trcd + open, "another row of the bank");
    same(time_of_read(ddr, 0, 400'000 + open + is.trp + is.trcd), is.trp + is.trcd + open, "and back");
    same(time_of_read(ddr, in_row, is.trefi + 1000), is.trp + is.trfc + is.trcd + open - 1000, "a refresh that has begun");
    same(time_of_read(ddr, in_row, 2 * int64_t(is.trefi) - 1'000'000), open, "a row that was opened after it");
    same(int64_t(ddr.refreshes), 1, "refreshes");
    const int64_t hour = int64_t(3'600'000'000'000'000);
    same(time_of_read(ddr, in_row, hour / is.trefi * is.trefi + 2'000'000), is.trcd + open, "after an hour all rows are closed");
    same(int64_t(ddr.refreshes), hour / is.trefi, "refreshes of an hour");

    nacelle::Ddr both(is);
    both.write(0, 1000);
    both.advance(1000 + is.trcd);
    same(time_of_read(both, in_row, 1000 + is.trcd), is.cwl + is.burst + is.twtr + open, "a read behind a write");
}

// Bursts of all lengths to a few places, with any strobes, against a copy; in the order of their data.
template <size_t Bytes, bool Checked>
void traffic(const nacelle_sim_dram *dram, uint32_t controller_ecc) {
    using Memory = nacelle::Dram<Bytes, Checked>;
    nacelle::MemoryTiming timing;
    timing.bytes_per_cycle = Bytes;
    Memory memory(0, kSize, timing, 1, kCyclePs);
    memory.set_dram(dram);
    memory.set_faults({0, 0, controller_ecc});
    std::mt19937 random(5);
    std::vector<uint8_t> copy(kSize);
    struct Reading {
        uint64_t address;
        int beats;
    };
    std::deque<Reading> reading;
    int writing = 0, beats_to_write = 0, answered = 0, asked = 0;
    uint64_t write_at = 0, read_beats = 0;
    for (uint64_t cycle = 0; cycle < 200'000; ++cycle) {
        if (memory.b_valid(cycle)) {
            same(memory.b_resp(), Memory::kOkay, "response");
            memory.b_taken();
            ++answered;
            --writing;
        }
        if (memory.r_valid(cycle) && random() % 8) {
            uint8_t beat[Memory::kBeat];
            memory.r_copy(beat);
            same(memory.r_resp(), Memory::kOkay, "response of a read");
            same(std::memcmp(beat, copy.data() + reading.front().address, Bytes), 0, "data");
            if constexpr (Checked)
                for (size_t i = 0; i < Bytes / 8; ++i) {
                    uint64_t word;
                    std::memcpy(&word, beat + 8 * i, 8);
                    same(beat[Bytes + i], nacelle::ecc_check(word), "check bits");
                }
            reading.front().address += Bytes;
            same(memory.r_last(), reading.front().beats == 1, "last");
            if (--reading.front().beats == 0) reading.pop_front();
            memory.r_taken();
            ++read_beats;
        }
        // Reads and writes are not mixed: then the data of each is known.
        const bool write_phase = cycle / 5000 % 2;
        if (write_phase && beats_to_write && memory.w_ready()) {
            uint8_t beat[Memory::kBeat];
            unsigned __int128 strobe = 0;
            for (auto &byte : beat) byte = uint8_t(random());
            for (size_t word = 0; word < Bytes / 8; ++word) {
                const unsigned lanes = Checked ? (random() % 2 ? 0xff : 0) : random() & 0xff;
                strobe |= static_cast<unsigned __int128>(lanes) << 8 * word;
                if constexpr (Checked) {
                    uint64_t value;
                    std::memcpy(&value, beat + 8 * word, 8);
                    beat[Bytes + word] = nacelle::ecc_check(value);
                    if (lanes) strobe |= static_cast<unsigned __int128>(1) << (Bytes + word);
                }
            }
            for (size_t i = 0; i < Bytes; ++i)
                if (strobe >> i & 1) copy[write_at + i] = beat[i];
            memory.w(beat, strobe, cycle);
            write_at += Bytes;
            --beats_to_write;
        } else if (write_phase && !beats_to_write && cycle % 5000 < 4000 && reading.empty() && memory.aw_ready()) {
            beats_to_write = 1 + int(random() % 16);
            write_at = random() % 64 * 4096;
            memory.aw(write_at, 0, uint8_t(beats_to_write - 1));
            ++writing;
            ++asked;
        }
        if (!write_phase && !writing && !beats_to_write && cycle % 5000 < 4000 && memory.ar_ready()) {
            const int beats = 1 + int(random() % 16);
            reading.push_back({random() % 64 * 4096, beats});
            memory.ar(reading.back().address, 0, uint8_t(beats - 1), cycle);
        }
        memory.tick(cycle + 1);
    }
    same(answered, asked, "writes answered");
    expect(read_beats > 10'000, "beats read", (long long)read_beats, 10'000);
}

void flips() {
    nacelle::MemoryTiming timing;
    timing.bytes_per_cycle = 64;
    timing.latency = 1;
    nacelle::Dram<64> memory(0, kSize, timing, 1, kCyclePs);
    uint64_t cycle = 0;
    uint8_t beat[64] = {};
    const auto read = [&] {
        memory.ar(0, 0, 0, cycle);
        while (!memory.r_valid(cycle)) memory.tick(++cycle);
        memory.r_copy(beat);
        const int response = memory.r_resp();
        memory.r_taken();
        return response;
    };
    const auto write = [&](uint64_t strobe) {
        memory.aw(0, 0, 0);
        memory.w(beat, strobe, cycle);
        while (!memory.b_valid(cycle)) memory.tick(++cycle);
        const int response = memory.b_resp();
        memory.b_taken();
        return response;
    };
    memory.flip(8, 3, 0);
    same(read(), 0, "without a code");
    same(beat[8], 3, "what has flipped is read");
    same(memory.flip(8, 0, 1), false, "there are no check bits");
    same(memory.flip(kSize, 1, 0), false, "outside");
    std::memset(beat, 0, 64);
    write(~0ull);
    memory.set_faults({0, 0, 1});
    memory.flip(8, 4, 0);
    same(read(), 0, "one is corrected");
    same(beat[8], 0, "as it was");
    memory.flip(8, 0, 8);
    same(read(), 2, "two are not");
    std::memset(beat, 0x77, 64);
    same(write(0x100), 2, "nor is a part of the word written");
    same(write(0xff), 0, "another word is");
    same(read(), 2, "and the bad one stays");
    std::memset(beat, 0x77, 64);
    same(write(0xff00), 0, "all of it is written");
    same(read(), 0, "and good");
    same(beat[9], 0x77, "with what was written");
    same((long long)memory.flips, 4, "flipped bits");
}

}  // namespace

int main(int count, char **arguments) {
    nacelle_sim_dram dram;
    uint32_t fields[sizeof(dram) / sizeof(uint32_t)];
    if (count != 1 + int(sizeof(fields) / sizeof(fields[0]))) return 2;
    for (int i = 1; i < count; ++i) fields[i - 1] = uint32_t(std::strtoul(arguments[i], nullptr, 10));
    std::memcpy(&dram, fields, sizeof(dram));
    times(dram);
    const nacelle_sim_dram *const kinds[] = {nullptr, &dram};
    for (const nacelle_sim_dram *kind : kinds) {
        traffic<8, false>(kind, 0);
        traffic<64, false>(kind, 1);
        traffic<8, true>(kind, 0);
        traffic<64, true>(kind, 0);
    }
    flips();
    return failures ? 1 : 0;
}
