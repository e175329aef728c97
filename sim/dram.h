// SPDX-License-Identifier: Apache-2.0
//
// A memory of the device: an AXI4 slave with a latency, which may vary, a bandwidth, and times in which it does nothing at all.
// Reads and writes each have their own data path, as the channels of AXI do. Responses come in the order of the commands. Data is in
// memory, for every reader, from the cycle in which its beat is taken: before its response. All that is random comes from the seed.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <new>
#include <random>

namespace nacelle {

// How a memory behaves, in cycles.
struct MemoryTiming {
    uint32_t latency = 30;         // read command to first data, and last write data to response
    uint32_t jitter = 0;           // up to so much more, drawn anew for each command
    uint32_t bytes_per_cycle = 0;  // each direction
    uint32_t stall = 0;            // it does nothing for so long ...
    uint32_t stall_every = 0;      // ... with so much time between, on average. 0: never
};

template <size_t Bytes>
class Dram {
  public:
    static constexpr size_t kOutstanding = 64;  // commands of each direction
    static constexpr uint8_t kOkay = 0, kDecErr = 3;

    struct Response {
        uint32_t id;
        uint8_t resp;
        bool last;
        uint64_t address;  // of the read beat
    };

    // The memory has the addresses [base, base + size).
    Dram(uint64_t base, uint64_t size, const MemoryTiming &timing, uint64_t seed)
        : base_(base), size_(size), random_(uint32_t(seed)) {
        set_timing(timing);
        void *map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED) throw std::bad_alloc();
        memory_ = static_cast<uint8_t *>(map);
    }
    ~Dram() { munmap(memory_, size_); }
    Dram(const Dram &) = delete;
    Dram &operator=(const Dram &) = delete;

    void set_timing(const MemoryTiming &timing) {
        timing_ = timing;
        stalled_ = 0;
        draw_stall();
    }

    bool contains(uint64_t address, uint64_t length) const {
        const uint64_t offset = address - base_;
        return address >= base_ && offset <= size_ && length <= size_ - offset;
    }
    uint8_t *at(uint64_t address) { return memory_ + (address - base_); }

    // ---- write channels ----
    bool aw_ready() const { return !stalled_ && writes_.size() < kOutstanding; }
    bool w_ready() const { return !stalled_ && !writes_.empty() && write_beats_ < writes_.size() && write_credit_ >= 0; }

    void aw(uint64_t address, uint32_t id, uint8_t beats_less_one) {
        writes_.push_back({address & ~uint64_t(Bytes - 1), id, beats_less_one + 1u, 0, kOkay});
        ++writes;
    }
    void w(const uint8_t *data, uint64_t strobe, uint64_t cycle) {
        Burst &burst = writes_[write_beats_];
        write_credit_ -= Bytes;
        last_write = cycle;
        if (!contains(burst.address, Bytes)) {
            burst.resp = kDecErr;
        } else if (strobe == kAllLanes) {
            std::memcpy(at(burst.address), data, Bytes);
        } else {
            for (size_t i = 0; i < Bytes; ++i)
                if (strobe >> i & 1) at(burst.address)[i] = data[i];
        }
        write_bytes += static_cast<uint64_t>(__builtin_popcountll(strobe));
        burst.address += Bytes;
        if (--burst.beats == 0) {
            burst.ready_at = cycle + latency();
            ++write_beats_;
        }
    }
    // What is shown stays until it is taken.
    bool b_valid(uint64_t cycle) {
        b_shown_ = b_shown_ || (!stalled_ && write_beats_ > 0 && writes_.front().ready_at <= cycle);
        return b_shown_;
    }
    uint32_t b_id() const { return writes_.front().id; }
    uint8_t b_resp() const { return writes_.front().resp; }
    void b_taken() {
        writes_.pop_front();
        --write_beats_;
        b_shown_ = false;
    }

    // ---- read channels ----
    bool ar_ready() const { return !stalled_ && reads_.size() < kOutstanding; }
    void ar(uint64_t address, uint32_t id, uint8_t beats_less_one, uint64_t cycle) {
        last_read = cycle;
        reads_.push_back({address & ~uint64_t(Bytes - 1), id, beats_less_one + 1u, cycle + latency(), kOkay});
        ++reads;
    }
    bool r_valid(uint64_t cycle) {
        r_shown_ = r_shown_ || (!stalled_ && !reads_.empty() && reads_.front().ready_at <= cycle && read_credit_ >= 0);
        return r_shown_;
    }
    uint32_t r_id() const { return reads_.front().id; }
    bool r_last() const { return reads_.front().beats == 1; }
    uint8_t r_resp() const { return contains(reads_.front().address, Bytes) ? kOkay : kDecErr; }
    void r_copy(uint8_t *to) {
        if (contains(reads_.front().address, Bytes)) std::memcpy(to, at(reads_.front().address), Bytes);
        else std::memset(to, 0, Bytes);
    }
    void r_taken() {
        r_shown_ = false;
        read_credit_ -= Bytes;
        read_bytes += Bytes;
        Burst &burst = reads_.front();
        burst.address += Bytes;
        if (--burst.beats == 0) reads_.pop_front();
    }

    void tick() {
        write_credit_ = refill(write_credit_);
        read_credit_ = refill(read_credit_);
        if (stalled_) --stalled_;
        else if (timing_.stall_every && --until_stall_ == 0) {
            stalled_ = timing_.stall;
            draw_stall();
        }
    }
    bool idle() const { return writes_.empty() && reads_.empty(); }

    uint64_t reads = 0, read_bytes = 0, writes = 0, write_bytes = 0, last_read = 0, last_write = 0;

  private:
    static constexpr uint64_t kAllLanes = Bytes == 64 ? ~0ull : (1ull << (Bytes % 64)) - 1;

    struct Burst {
        uint64_t address;
        uint32_t id;
        uint32_t beats;
        uint64_t ready_at;
        uint8_t resp;
    };
    int64_t refill(int64_t credit) const {
        credit += timing_.bytes_per_cycle;
        return credit > 0 ? 0 : credit;
    }

    uint32_t latency() { return timing_.latency + (timing_.jitter ? random_() % (timing_.jitter + 1) : 0); }
    void draw_stall() { until_stall_ = timing_.stall_every ? 1 + random_() % (2 * timing_.stall_every) : 0; }

    uint64_t base_, size_;
    MemoryTiming timing_;
    std::mt19937 random_;
    uint32_t stalled_ = 0, until_stall_ = 0;
    bool b_shown_ = false, r_shown_ = false;
    uint8_t *memory_;
    std::deque<Burst> writes_, reads_;
    size_t write_beats_ = 0;  // bursts at the front of writes_ whose data is complete
    int64_t write_credit_ = 0, read_credit_ = 0;
};

}  // namespace nacelle
