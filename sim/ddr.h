// SPDX-License-Identifier: Apache-2.0
//
// The timing of DRAM behind a memory controller: banks with open rows, row misses, one data bus for both directions, refresh. JEDEC
// JESD79-4 (DDR4) has the rules. It holds no data: it says when the data of each access has passed.
//
// Accesses of a direction go in their order. The controller opens rows for the next few of them. It reads while there is something
// to read and its store of writes is not three quarters full; then it writes until a quarter is left; if both go on, as many
// accesses as the store has in one direction, then in the other. At a refresh all rows are closed. All times are in picoseconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "nacelle_sim.h"

namespace nacelle {

class Ddr {
  public:
    explicit Ddr(const nacelle_sim_dram &dram) : is(dram), banks_(dram.banks), group_(dram.bank_groups), next_refresh_(dram.trefi) {
        activates_.fill(kLongAgo);
    }

    const nacelle_sim_dram is;

    // All values are there, and a refresh leaves time for accesses.
    static bool possible(const nacelle_sim_dram &is) {
        const auto power_of_two = [](uint32_t value) { return value && !(value & (value - 1)); };
        return power_of_two(is.burst_bytes) && power_of_two(is.bank_groups) && power_of_two(is.banks) && power_of_two(is.row_bytes)
            && is.banks >= is.bank_groups && is.row_bytes >= is.burst_bytes && is.lookahead && is.writes
            && is.trefi > uint64_t(is.trfc) + is.trp;
    }

    bool room_to_write() const { return queue_[kWrite].size() < is.writes; }
    void read(uint64_t address, int64_t now) { queue_[kRead].push_back(access(address, now)); }
    void write(uint64_t address, int64_t now) { queue_[kWrite].push_back(access(address, now)); }

    // When the oldest read that was not taken is there, or later than any time.
    int64_t read_done() const { return done_.empty() ? INT64_MAX : done_.front(); }
    void read_taken() { done_.pop_front(); }

    // Does what is due until `now`.
    void advance(int64_t now) {
        for (;;) {
            choose();
            auto &queue = queue_[way_];
            if (queue.empty()) {
                if (next_refresh_ <= now) rest(now);
                return;
            }
            prepare(std::max(last_column_, queue.front().came));
            const Access &head = queue.front();
            const int64_t at = column_time(head);
            if (at >= next_refresh_) {
                if (next_refresh_ > now) return;
                refresh(next_refresh_);
            } else if (at > now) {
                return;
            } else {
                issue(at);
            }
        }
    }

    uint64_t row_hits = 0, row_misses = 0, refreshes = 0;

  private:
    enum Way { kRead, kWrite };
    static constexpr int64_t kLongAgo = -1'000'000'000;

    struct Access {
        int64_t came;
        uint64_t row;
        uint32_t bank;
        bool prepared;
        int64_t ready;   // if prepared: its row is open
    };
    struct Bank {
        bool open = false;
        uint64_t row = 0;
        uint32_t users = 0;                          // prepared accesses
        int64_t activate_ok = 0, precharge_ok = 0, column_ok = 0;
    };
    struct Group {
        int64_t last_activate = kLongAgo, last_column = kLongAgo;
    };

    // Addresses, from the lowest bits: byte of the access, bank group, column, bank of the group, row.
    Access access(uint64_t address, int64_t now) const {
        uint64_t rest = address / is.burst_bytes;
        const auto group = uint32_t(rest % is.bank_groups);
        rest = rest / is.bank_groups / (is.row_bytes / is.burst_bytes);
        const uint32_t in_group = is.banks / is.bank_groups;
        return {now, rest / in_group, uint32_t(rest % in_group) * is.bank_groups + group, false, 0};
    }
    Group &group_of(uint32_t bank) { return group_[bank % is.bank_groups]; }

    // Which direction is served.
    void choose() {
        const auto &reads = queue_[kRead], &writes = queue_[kWrite];
        const Way before = way_;
        const bool long_enough = in_a_row_ >= is.writes;
        if (way_ == kRead) {
            if (!writes.empty() && (reads.empty() || (long_enough && writes.size() >= is.writes - is.writes / 4))) way_ = kWrite;
        } else if (!reads.empty() && (long_enough || writes.size() <= is.writes / 4)) {
            way_ = kRead;
        }
        if (way_ == before) return;
        in_a_row_ = 0;
        forget();
    }

    // Opens rows for the next accesses, in their order. An access whose bank another one needs with another row waits for that one.
    void prepare(int64_t now) {
        auto &queue = queue_[way_];
        const size_t end = std::min<size_t>(queue.size(), is.lookahead);
        for (size_t i = 0; i < end; ++i) {
            Access &next = queue[i];
            if (next.prepared) continue;
            Bank &bank = banks_[next.bank];
            if (bank.users && bank.row != next.row) return;
            if (bank.open && bank.row == next.row) {
                ++row_hits;
            } else {
                activate(next, std::max(now, next.came));
                ++row_misses;
            }
            ++bank.users;
            next.prepared = true;
            next.ready = bank.column_ok;
        }
    }

    void activate(const Access &next, int64_t now) {
        Bank &bank = banks_[next.bank];
        if (bank.open) bank.activate_ok = std::max(now, bank.precharge_ok) + is.trp;
        int64_t at = std::max({now, bank.activate_ok, last_activate_ + is.trrd_s, group_of(next.bank).last_activate + is.trrd_l});
        at = std::max(at, activates_[oldest_activate_] + is.tfaw);
        last_activate_ = group_of(next.bank).last_activate = activates_[oldest_activate_] = at;
        oldest_activate_ = (oldest_activate_ + 1) % activates_.size();
        bank.open = true;
        bank.row = next.row;
        bank.column_ok = at + is.trcd;
        bank.precharge_ok = at + is.tras;
    }

    int64_t column_time(const Access &head) {
        int64_t at = std::max({head.came, head.ready, last_column_ + is.tccd_s, group_of(head.bank).last_column + is.tccd_l});
        if (last_way_ == kRead && way_ == kWrite) at = std::max(at, last_column_ + is.cl + is.burst + is.trtw - is.cwl);
        if (last_way_ == kWrite && way_ == kRead) at = std::max(at, last_column_ + is.cwl + is.burst + is.twtr);
        return at;
    }

    void issue(int64_t at) {
        const Access head = queue_[way_].front();
        queue_[way_].pop_front();
        Bank &bank = banks_[head.bank];
        --bank.users;
        ++in_a_row_;
        last_column_ = group_of(head.bank).last_column = at;
        last_way_ = way_;
        if (way_ == kRead) {
            done_.push_back(at + is.cl + is.burst + is.latency);
            bank.precharge_ok = std::max<int64_t>(bank.precharge_ok, at + is.trtp);
        } else {
            bank.precharge_ok = std::max<int64_t>(bank.precharge_ok, at + is.cwl + is.burst + is.twr);
        }
    }

    // Rows that are open stay so, but for no access.
    void forget() {
        for (auto &queue : queue_)
            for (Access &next : queue) next.prepared = false;
        for (Bank &bank : banks_) bank.users = 0;
    }

    void refresh(int64_t due) {
        int64_t closed = due;
        for (const Bank &bank : banks_)
            closed = std::max(closed, bank.open ? std::max(due, bank.precharge_ok) + is.trp : bank.activate_ok);
        for (Bank &bank : banks_) {
            bank.open = false;
            bank.activate_ok = closed + is.trfc;
        }
        forget();
        next_refresh_ += is.trefi;
        ++refreshes;
    }

    // Nothing is to be done: of the refreshes until `now` the last one counts.
    void rest(int64_t now) {
        const int64_t more = (now - next_refresh_) / is.trefi;
        refreshes += uint64_t(more);
        next_refresh_ += more * is.trefi;
        refresh(next_refresh_);
    }

    std::vector<Bank> banks_;
    std::vector<Group> group_;
    std::deque<Access> queue_[2];
    std::deque<int64_t> done_;
    std::array<int64_t, 4> activates_;
    size_t oldest_activate_ = 0;
    int64_t last_activate_ = kLongAgo, last_column_ = kLongAgo, next_refresh_;
    Way way_ = kRead, last_way_ = kRead;
    uint32_t in_a_row_ = 0;  // accesses since the direction changed
};

}  // namespace nacelle
