// SPDX-License-Identifier: Apache-2.0
//
// The accesses of the host to the BARs of a device in a slot: one after the other onto the link, whichever function they are for, reads with a tag
// each. Answers are kept, by function, until the program takes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "agenda.h"
#include "nacelle_sim.h"
#include "root_complex.h"
#include "tlp.h"

namespace nacelle {

class HostRequests {
  public:
    static constexpr size_t kQueue = 1024;
    static constexpr uint32_t kLongestRead = 64, kLongestWrite = 4096;

    // `taken`: the device has it.
    using Send = std::function<void(Tlp tlp, int64_t time, std::function<void(int64_t time)> taken)>;

    HostRequests(const nacelle_sim_slot &slot, const HostTimes &times, int64_t cycle_ps, Agenda &agenda, Send send)
        : times_(times), timeout_(int64_t(slot.host_timeout_us) * 1'000'000), cycle_ps_(cycle_ps), agenda_(agenda), send_(std::move(send)) {
        for (uint16_t tag = 0; tag < slot.host_reads; ++tag) free_tags_.push_back(tag);
    }

    void set_mps(uint32_t function, uint32_t mps) { of_[function].mps = mps; }
    bool full(uint32_t function) const { return of_[function].accesses >= kQueue; }

    // `address` on the bus, of the BAR's byte.
    uint64_t read(uint32_t function, uint32_t bar, uint64_t address, uint32_t length, int64_t now) {
        Tlp tlp = memory_request(kMemRead, address, length);
        tlp.func = uint8_t(function);
        tlp.bar = uint8_t(bar);
        const uint64_t token = next_token_++;
        Access &access = begin(token, function, now);
        access.is_read = true;
        access.data.resize(length);
        queue(token, std::move(tlp), now + times_.register_read);
        return token;
    }
    uint64_t write(uint32_t function, uint32_t bar, uint64_t address, const uint8_t *data, uint32_t length, int64_t now) {
        const uint64_t token = next_token_++;
        Access &access = begin(token, function, now);
        while (length) {
            const uint32_t room = std::min(of_[function].mps - uint32_t(address & 3), uint32_t(kPage - address % kPage));
            const uint32_t part = std::min(length, room);
            Tlp tlp = memory_write(address, data, part);
            tlp.func = uint8_t(function);
            tlp.bar = uint8_t(bar);
            address += part;
            data += part;
            length -= part;
            ++access.parts;
            queue(token, std::move(tlp), now + times_.register_write);
        }
        return token;
    }

    // A completion that has come by the link.
    void completion(const Tlp &tlp, int64_t time) {
        const auto found = tags_.find(tlp.tag);
        if (found == tags_.end()) return;
        const uint64_t token = found->second;
        const auto access = accesses_.find(token);  // not there if it was given up
        bool last = tlp.status != kSuccess;
        uint32_t status = tlp.poisoned ? NACELLE_SIM_SLOT_POISONED : tlp.status;
        if (!last) {
            const uint32_t before = tlp.lower_address & 3, have = std::min(tlp.byte_count, tlp.dwords * 4 - before);
            last = have == tlp.byte_count;
            if (access != accesses_.end()) {
                const size_t size = access->second.data.size();
                const size_t offset = size - std::min<size_t>(size, tlp.byte_count);
                std::memcpy(access->second.data.data() + offset, tlp.data.data() + before, std::min<size_t>(have, size - offset));
                if (status) access->second.status = status;
                else status = access->second.status;
            }
        }
        if (!last) return;
        free_tags_.push_back(tlp.tag);
        tags_.erase(found);
        agenda_.at(time + times_.answer, [this, token, status](int64_t when) { finish(token, status, when); });
        pump(time);
    }

    void tick(int64_t now) {
        while (!accesses_.empty() && now - accesses_.begin()->second.issued > timeout_)
            finish(accesses_.begin()->first, NACELLE_SIM_SLOT_TIMEOUT, now);
    }

    bool answer_waits() const {
        return std::any_of(of_.begin(), of_.end(), [](const Function &of) { return !of.answers.empty(); });
    }
    // The oldest one of a function.
    bool pull(uint32_t function, nacelle_sim_slot_answer *answer) {
        auto &answers = of_[function].answers;
        if (answers.empty()) return false;
        *answer = answers.front();
        answers.pop_front();
        return true;
    }
    bool pull_token(uint64_t token, nacelle_sim_slot_answer *answer) {
        for (Function &of : of_) {
            auto &all = of.answers;
            const auto found = std::find_if(all.begin(), all.end(), [&](const auto &other) { return other.token == token; });
            if (found == all.end()) continue;
            *answer = *found;
            all.erase(found);
            return true;
        }
        return false;
    }
    bool idle() const { return accesses_.empty(); }

  private:
    struct Access {
        uint32_t function = 0;
        int64_t issued = 0;
        bool is_read = false;
        uint32_t parts = 0, status = NACELLE_SIM_SLOT_OK;
        std::vector<uint8_t> data;
    };

    struct Function {
        uint32_t mps = 128;
        size_t accesses = 0;  // under way
        std::deque<nacelle_sim_slot_answer> answers;
    };

    Access &begin(uint64_t token, uint32_t function, int64_t now) {
        Access &access = accesses_[token];
        access.function = function;
        access.issued = now;
        ++of_[function].accesses;
        return access;
    }

    void queue(uint64_t token, Tlp tlp, int64_t time) {
        tlp.requester = RootComplex::kId;
        auto kept = std::make_shared<Tlp>(std::move(tlp));
        agenda_.at(time, [this, token, kept](int64_t at) {
            waiting_.emplace_back(token, std::move(*kept));
            pump(at);
        });
    }

    // Reads wait for a tag, and what is behind them with them.
    void pump(int64_t time) {
        for (; !waiting_.empty(); waiting_.pop_front()) {
            auto &[token, tlp] = waiting_.front();
            if (tlp.kind == kMemWrite) {
                send_(std::move(tlp), time, [this, token = token](int64_t at) { part_taken(token, at); });
                continue;
            }
            if (free_tags_.empty()) return;
            tlp.tag = free_tags_.front();
            free_tags_.pop_front();
            tags_[tlp.tag] = token;
            send_(std::move(tlp), time, nullptr);
        }
    }

    void part_taken(uint64_t token, int64_t time) {
        const auto found = accesses_.find(token);
        if (found != accesses_.end() && --found->second.parts == 0) finish(token, NACELLE_SIM_SLOT_OK, time);
    }

    void finish(uint64_t token, uint32_t status, int64_t time) {
        const auto found = accesses_.find(token);
        if (found == accesses_.end()) return;
        const Access &access = found->second;
        --of_[access.function].accesses;
        nacelle_sim_slot_answer &answer = of_[access.function].answers.emplace_back();
        answer.token = token;
        answer.issued = uint64_t(access.issued / cycle_ps_);
        answer.finished = uint64_t((time + cycle_ps_ - 1) / cycle_ps_);
        answer.status = status;
        answer.length = status == NACELLE_SIM_SLOT_OK || status == NACELLE_SIM_SLOT_POISONED ? uint32_t(access.data.size()) : 0;
        std::copy_n(access.data.begin(), answer.length, answer.data);
        accesses_.erase(found);
    }

    const HostTimes times_;
    const int64_t timeout_, cycle_ps_;
    Agenda &agenda_;
    Send send_;
    std::array<Function, kFunctions> of_;
    uint64_t next_token_ = 1;
    std::map<uint64_t, Access> accesses_;  // by token: the oldest first
    std::deque<std::pair<uint64_t, Tlp>> waiting_;
    std::deque<uint16_t> free_tags_;
    std::map<uint16_t, uint64_t> tags_;  // the tokens of the reads that are under way
};

}  // namespace nacelle
