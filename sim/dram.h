// SPDX-License-Identifier: Apache-2.0
//
// A memory of the device: an AXI4 slave with a latency, which may vary, a bandwidth, and times in which it does nothing at all.
// Reads and writes each have their own data path, as the channels of AXI do; or it behaves as DRAM (ddr.h), where they share one.
// Responses come in the order of the commands. Data is in memory, for every reader, from the cycle in which its beat is taken:
// before its response. All that is random comes from the seed.
//
// Bits can flip. With check bits a beat carries a byte of them for each word of 8 bytes, above its data, and what reads is to
// correct. Otherwise flipped bits are simply read, unless the memory's controller corrects by itself.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <random>
#include <unordered_map>

#include "ddr.h"
#include "ecc.h"
#include "nacelle_sim.h"

namespace nacelle {

// How a memory behaves, in cycles.
struct MemoryTiming {
    uint32_t latency = 30;         // read command to first data, and last write data to response
    uint32_t jitter = 0;           // up to so much more, drawn anew for each command
    uint32_t bytes_per_cycle = 0;  // each direction
    uint32_t stall = 0;            // it does nothing for so long ...
    uint32_t stall_every = 0;      // ... with so much time between, on average. 0: never
};

// `Checked`: a beat has check bits.
template <size_t Bytes, bool Checked = false>
class Dram {
  public:
    static constexpr size_t kOutstanding = 64;  // commands of each direction
    static constexpr uint8_t kOkay = 0, kSlvErr = 2, kDecErr = 3;
    static constexpr size_t kWords = Bytes / 8;
    static constexpr size_t kBeat = Bytes + (Checked ? kWords : 0);

    struct Response {
        uint32_t id;
        uint8_t resp;
        bool last;
        uint64_t address;  // of the read beat
    };

    // The memory has the addresses [base, base + size).
    Dram(uint64_t base, uint64_t size, const MemoryTiming &timing, uint64_t seed, int64_t cycle_ps)
        : base_(base), size_(size), mapped_(Checked ? size + size / 8 : size), cycle_ps_(cycle_ps), random_(uint32_t(seed)) {
        set_timing(timing);
        void *map = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED) throw std::bad_alloc();
        memory_ = static_cast<uint8_t *>(map);
    }
    ~Dram() { munmap(memory_, mapped_); }
    Dram(const Dram &) = delete;
    Dram &operator=(const Dram &) = delete;

    void set_timing(const MemoryTiming &timing) {
        timing_ = timing;
        stalled_ = 0;
        draw_stall();
    }

    // As DRAM from now on, or with null as `timing` says.
    void set_dram(const nacelle_sim_dram *dram) { ddr_ = dram ? std::make_unique<Ddr>(*dram) : nullptr; }

    bool set_faults(const nacelle_sim_faults &faults) {
        if (Checked && faults.controller_ecc) return false;
        faults_ = faults;
        return true;
    }

    bool contains(uint64_t address, uint64_t length) const {
        const uint64_t offset = address - base_;
        return address >= base_ && offset <= size_ && length <= size_ - offset;
    }

    // By the back door.
    void peek(uint64_t address, void *data, size_t length) const { std::memcpy(data, at(address), length); }
    void poke(uint64_t address, const void *data, size_t length) {
        std::memcpy(at(address), data, length);
        for (uint64_t word = address & ~7ull; word < address + length; word += 8) {
            if constexpr (Checked) *check_at(word) = ecc_check(word_at(word));
            flipped_.erase(word);
        }
    }
    bool flip(uint64_t address, uint64_t data, uint8_t check) {
        const uint64_t word = address & ~7ull;
        if (!contains(word, 8) || (check && !Checked && !faults_.controller_ecc)) return false;
        flips += uint64_t(__builtin_popcountll(data) + __builtin_popcount(check));
        if (faults_.controller_ecc) {
            Flipped &bits = flipped_[word];
            bits.data ^= data;
            bits.check ^= check;
        } else {
            const uint64_t value = word_at(word) ^ data;
            std::memcpy(at(word), &value, 8);
            if constexpr (Checked) *check_at(word) ^= check;
        }
        return true;
    }

    // ---- write channels ----
    bool aw_ready() const { return !stalled_ && writes_.size() < kOutstanding; }
    bool w_ready() const {
        return !stalled_ && !writes_.empty() && write_beats_ < writes_.size() && write_credit_ >= 0
            && (!ddr_ || ddr_->room_to_write());
    }

    void aw(uint64_t address, uint32_t id, uint8_t beats_less_one) {
        writes_.push_back({address & ~uint64_t(Bytes - 1), id, beats_less_one + 1u, 0, kOkay});
        ++writes;
    }
    // `strobe`: of the data, and above it of the check bits, a byte each.
    void w(const uint8_t *data, unsigned __int128 strobe, uint64_t cycle) {
        Burst &burst = writes_[write_beats_];
        const auto lanes = uint64_t(strobe & kAllLanes);
        write_credit_ -= Bytes;
        last_write = cycle;
        if (!contains(burst.address, Bytes)) {
            burst.resp = kDecErr;
        } else if (!flipped_.empty() && !repair(burst.address, lanes)) {
            burst.resp = kSlvErr;
        } else {
            if (lanes == kAllLanes) {
                std::memcpy(at(burst.address), data, Bytes);
            } else {
                for (size_t i = 0; i < Bytes; ++i)
                    if (lanes >> i & 1) at(burst.address)[i] = data[i];
            }
            if constexpr (Checked)
                for (size_t i = 0; i < kWords; ++i)
                    if (strobe >> (Bytes + i) & 1) check_at(burst.address)[i] = data[Bytes + i];
        }
        write_bytes += static_cast<uint64_t>(__builtin_popcountll(lanes));
        if (ddr_ && ends_access(burst)) ddr_->write(burst.address - base_, int64_t(cycle) * cycle_ps_);
        burst.address += Bytes;
        if (--burst.beats == 0) {
            burst.ready_at = cycle + (ddr_ ? to_cycles(ddr_->is.latency) : latency());
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
        reads_.push_back({address & ~uint64_t(Bytes - 1), id, beats_less_one + 1u, ddr_ ? 0 : cycle + latency(), kOkay});
        ++reads;
        if (ddr_)
            for (Burst burst = reads_.back(); burst.beats; --burst.beats, burst.address += Bytes)
                if (ends_access(burst)) ddr_->read(burst.address - base_, int64_t(cycle) * cycle_ps_);
    }
    bool r_valid(uint64_t cycle) {
        if (!r_shown_ && !stalled_ && !reads_.empty() && read_credit_ >= 0 && is_there(cycle)) {
            r_shown_ = true;
            present(reads_.front().address);
        }
        return r_shown_;
    }
    uint32_t r_id() const { return reads_.front().id; }
    bool r_last() const { return reads_.front().beats == 1; }
    uint8_t r_resp() const { return beat_resp_; }
    void r_copy(uint8_t *to) const { std::memcpy(to, beat_, kBeat); }
    void r_taken() {
        r_shown_ = false;
        read_credit_ -= Bytes;
        read_bytes += Bytes;
        Burst &burst = reads_.front();
        if (ddr_ && ends_access(burst)) ddr_->read_taken();
        burst.address += Bytes;
        if (--burst.beats == 0) reads_.pop_front();
    }

    void tick(uint64_t cycle) {
        if (ddr_) ddr_->advance(int64_t(cycle) * cycle_ps_);
        write_credit_ = refill(write_credit_);
        read_credit_ = refill(read_credit_);
        if (stalled_) --stalled_;
        else if (timing_.stall_every && --until_stall_ == 0) {
            stalled_ = timing_.stall;
            draw_stall();
        }
    }
    bool idle() const { return writes_.empty() && reads_.empty(); }

    uint64_t reads = 0, read_bytes = 0, writes = 0, write_bytes = 0, last_read = 0, last_write = 0, flips = 0;

  private:
    static constexpr uint64_t kAllLanes = Bytes == 64 ? ~0ull : (1ull << (Bytes % 64)) - 1;

    struct Burst {
        uint64_t address;
        uint32_t id;
        uint32_t beats;
        uint64_t ready_at;
        uint8_t resp;
    };
    struct Flipped {
        uint64_t data = 0;
        uint8_t check = 0;
        int count() const { return __builtin_popcountll(data) + __builtin_popcount(check); }
    };

    uint8_t *at(uint64_t address) { return memory_ + (address - base_); }
    const uint8_t *at(uint64_t address) const { return memory_ + (address - base_); }
    uint8_t *check_at(uint64_t address) { return memory_ + size_ + (address - base_) / 8; }
    uint64_t word_at(uint64_t address) const {
        uint64_t word;
        std::memcpy(&word, at(address), 8);
        return word;
    }

    // The beat is the last of its burst in an access of the DRAM.
    bool ends_access(const Burst &burst) const { return burst.beats == 1 || (burst.address + Bytes) % ddr_->is.burst_bytes == 0; }
    uint64_t to_cycles(int64_t ps) const { return uint64_t((ps + cycle_ps_ - 1) / cycle_ps_); }
    bool is_there(uint64_t cycle) const {
        return ddr_ ? ddr_->read_done() <= int64_t(cycle) * cycle_ps_ : reads_.front().ready_at <= cycle;
    }

    // The controller's part: the words of which a beat writes some bytes must be known, and those that it writes are good from then
    // on.
    bool repair(uint64_t address, uint64_t lanes) {
        bool good = true;
        for (size_t i = 0; i < kWords; ++i, lanes >>= 8) {
            const auto found = (lanes & 0xff) ? flipped_.find(address + 8 * i) : flipped_.end();
            if (found == flipped_.end()) continue;
            if ((lanes & 0xff) != 0xff && found->second.count() > 1) good = false;
            else flipped_.erase(found);
        }
        return good;
    }

    void flip_by_chance(uint64_t address) {
        const uint32_t drawn = random_() % 1'000'000;
        if (drawn >= faults_.one_ppm + faults_.two_ppm) return;
        const uint64_t word = address + 8 * (random_() % kWords);
        const uint32_t bits = Checked || faults_.controller_ecc ? 72 : 64;
        const uint32_t first = random_() % bits, second = (first + 1 + random_() % (bits - 1)) % bits;
        const auto one = [&](uint32_t bit) { flip(word, bit < 64 ? 1ull << bit : 0, uint8_t(bit < 64 ? 0 : 1u << (bit - 64))); };
        one(first);
        if (drawn >= faults_.one_ppm) one(second);
    }

    // What the read channel shows, until it is taken.
    void present(uint64_t address) {
        if (!contains(address, Bytes)) {
            beat_resp_ = kDecErr;
            std::memset(beat_, 0, kBeat);
            return;
        }
        if (faults_.one_ppm || faults_.two_ppm) flip_by_chance(address);
        beat_resp_ = kOkay;
        std::memcpy(beat_, at(address), Bytes);
        if constexpr (Checked) std::memcpy(beat_ + Bytes, check_at(address), kWords);
        for (size_t i = 0; i < (flipped_.empty() ? 0 : kWords); ++i) {
            const auto found = flipped_.find(address + 8 * i);
            if (found == flipped_.end() || found->second.count() < 2) continue;
            beat_resp_ = kSlvErr;
            for (size_t k = 0; k < 8; ++k) beat_[8 * i + k] ^= uint8_t(found->second.data >> 8 * k);
        }
    }

    int64_t refill(int64_t credit) const {
        credit += timing_.bytes_per_cycle;
        return credit > 0 ? 0 : credit;
    }

    uint32_t latency() { return timing_.latency + (timing_.jitter ? random_() % (timing_.jitter + 1) : 0); }
    void draw_stall() { until_stall_ = timing_.stall_every ? 1 + random_() % (2 * timing_.stall_every) : 0; }

    uint64_t base_, size_, mapped_;
    int64_t cycle_ps_;
    MemoryTiming timing_;
    std::unique_ptr<Ddr> ddr_;
    nacelle_sim_faults faults_{};
    std::unordered_map<uint64_t, Flipped> flipped_;  // words in a memory whose controller corrects
    uint8_t beat_[kBeat];
    uint8_t beat_resp_ = kOkay;
    std::mt19937 random_;
    uint32_t stalled_ = 0, until_stall_ = 0;
    bool b_shown_ = false, r_shown_ = false;
    uint8_t *memory_;
    std::deque<Burst> writes_, reads_;
    size_t write_beats_ = 0;  // bursts at the front of writes_ whose data is complete
    int64_t write_credit_ = 0, read_credit_ = 0;
};

}  // namespace nacelle
