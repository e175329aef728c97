// SPDX-License-Identifier: Apache-2.0
//
// Device memory: an AXI4 slave with a latency and a bandwidth. Reads and writes each have their own data path, as the
// channels of AXI do. Responses come in the order of the commands. Data is in memory, for every reader, from the cycle in
// which its beat is taken: before its response.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <new>

namespace nacelle {

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

    Dram(uint64_t size, uint32_t latency, uint32_t bytes_per_cycle)
        : size_(size), latency_(latency), bytes_per_cycle_(bytes_per_cycle) {
        void *map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED) throw std::bad_alloc();
        memory_ = static_cast<uint8_t *>(map);
    }
    ~Dram() { munmap(memory_, size_); }
    Dram(const Dram &) = delete;
    Dram &operator=(const Dram &) = delete;

    bool contains(uint64_t address, uint64_t length) const { return address <= size_ && length <= size_ - address; }
    uint8_t *at(uint64_t address) { return memory_ + address; }

    // ---- write channels ----
    bool aw_ready() const { return writes_.size() < kOutstanding; }
    bool w_ready() const { return !writes_.empty() && write_beats_ < writes_.size() && write_credit_ >= 0; }

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
            std::memcpy(memory_ + burst.address, data, Bytes);
        } else {
            for (size_t i = 0; i < Bytes; ++i)
                if (strobe >> i & 1) memory_[burst.address + i] = data[i];
        }
        write_bytes += static_cast<uint64_t>(__builtin_popcountll(strobe));
        burst.address += Bytes;
        if (--burst.beats == 0) {
            burst.ready_at = cycle + latency_;
            ++write_beats_;
        }
    }
    bool b_valid(uint64_t cycle) const { return write_beats_ > 0 && writes_.front().ready_at <= cycle; }
    uint32_t b_id() const { return writes_.front().id; }
    uint8_t b_resp() const { return writes_.front().resp; }
    void b_taken() {
        writes_.pop_front();
        --write_beats_;
    }

    // ---- read channels ----
    bool ar_ready() const { return reads_.size() < kOutstanding; }
    void ar(uint64_t address, uint32_t id, uint8_t beats_less_one, uint64_t cycle) {
        last_read = cycle;
        reads_.push_back({address & ~uint64_t(Bytes - 1), id, beats_less_one + 1u, cycle + latency_, kOkay});
        ++reads;
    }
    bool r_valid(uint64_t cycle) const { return !reads_.empty() && reads_.front().ready_at <= cycle && read_credit_ >= 0; }
    uint32_t r_id() const { return reads_.front().id; }
    bool r_last() const { return reads_.front().beats == 1; }
    uint8_t r_resp() const { return contains(reads_.front().address, Bytes) ? kOkay : kDecErr; }
    void r_copy(uint8_t *to) const {
        if (contains(reads_.front().address, Bytes)) std::memcpy(to, memory_ + reads_.front().address, Bytes);
        else std::memset(to, 0, Bytes);
    }
    void r_taken() {
        read_credit_ -= Bytes;
        read_bytes += Bytes;
        Burst &burst = reads_.front();
        burst.address += Bytes;
        if (--burst.beats == 0) reads_.pop_front();
    }

    void tick() {
        write_credit_ = refill(write_credit_);
        read_credit_ = refill(read_credit_);
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
        credit += bytes_per_cycle_;
        return credit > 0 ? 0 : credit;
    }

    uint64_t size_;
    uint32_t latency_;
    int64_t bytes_per_cycle_;
    uint8_t *memory_;
    std::deque<Burst> writes_, reads_;
    size_t write_beats_ = 0;  // bursts at the front of writes_ whose data is complete
    int64_t write_credit_ = 0, read_credit_ = 0;
};

}  // namespace nacelle
