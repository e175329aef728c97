// SPDX-License-Identifier: Apache-2.0
//
// The root complex above a slot: it serves the device's requests for host memory and takes its interrupts. Each function of the device has
// IO virtual addresses of its own, as in an IOMMU; `func` of a request says which function it is of.
//
// Order (Base Specification 2.4.1): writes and interrupts take effect in the order in which they came. A read takes its data behind all writes
// before it. Completions of one tag are in the order of their addresses; those of different tags pass each other only if the slot says so.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agenda.h"
#include "host_memory.h"
#include "nacelle_sim.h"
#include "tlp.h"
#include "tlp_monitor.h"

namespace nacelle {

// The parts of the slot's latencies that are not the link's, in picoseconds.
struct HostTimes {
    int64_t write = 0, read = 0;                              // of host memory
    int64_t register_write = 0, register_read = 0, answer = 0;  // of the processor: until its request is at the link, and behind the answer
};

class RootComplex {
  public:
    static constexpr uint16_t kId = 0;
    static constexpr size_t kFaults = 1024;

    using Send = std::function<void(Tlp tlp, int64_t time)>;
    using Ended = std::function<void(const Tlp &read)>;
    using Taken = std::function<void(const Tlp &tlp, int64_t time)>;

    // `send`: to the device. `ended`: a read has its last completion, or will have none. `taken`: there is room for another request.
    RootComplex(const nacelle_sim_slot &slot, const HostTimes &times, Agenda &agenda, Send send, Ended ended, Taken taken)
        : slot_(slot), times_(times), agenda_(agenda), send_(std::move(send)), ended_(std::move(ended)), taken_(std::move(taken)),
          tlb_(slot.iommu_entries), random_(slot.random_seed) {}

    HostMemory memory[kFunctions];
    nacelle_sim_slot_stats stats{};

    void set_mps(uint32_t function, uint32_t mps) { of_[function].mps = mps; }
    int unmap(uint32_t function, uint64_t base, uint64_t size) {
        tlb_.forget();
        return memory[function].unmap(base, size);
    }

    // A request that has come by the link at this time.
    void request(Tlp tlp, int64_t time) {
        const int64_t walk = tlb_.misses(tlp.func, tlp.address) && !is_interrupt(tlp) ? miss() : 0;
        auto kept = std::make_shared<Tlp>(std::move(tlp));
        // The program may be slow: what it is to write keeps its room until it has done it.
        const bool waits = kept->kind == kMemWrite && !is_interrupt(*kept) && by_message(*kept);
        if (!waits) taken_(*kept, time + times_.write);
        if (kept->kind == kMemWrite) {
            posted_until_ = std::max(posted_until_, time + times_.write + walk);
            agenda_.at(posted_until_, [this, kept, waits](int64_t at) {
                const bool asked = write(kept, waits);
                if (waits && !asked) taken_(*kept, at);
            });
        } else {
            int64_t ready = std::max(posted_until_, time + times_.read + walk);
            if (chance(slot_.tail_ppm)) ready += int64_t(slot_.tail_ns) * 1000;
            if (chance(slot_.loss_ppm)) {
                ++stats.lost;
                ended_(*kept);
                return;
            }
            agenda_.at(ready, [this, kept](int64_t at) { read(*kept, at); });
        }
    }

    // ---- what the program takes ----
    bool something_waits() const {
        return std::any_of(of_.begin(), of_.end(), [](const Function &of) {
            return of.interrupt_waits() || !of.messages.empty() || !of.faults.empty();
        });
    }
    bool pull(uint32_t function, nacelle_sim_slot_interrupt *interrupt) {
        Function &of = of_[function];
        if (!of.interrupt_waits()) return false;
        *interrupt = of.interrupts.front().second;
        of.interrupts.pop_front();
        return true;
    }
    bool pull(uint32_t function, nacelle_sim_slot_message *message) { return take(of_[function].messages, message); }
    bool pull(uint32_t function, nacelle_sim_slot_fault *fault) { return take(of_[function].faults, fault); }

    bool answer(uint64_t token, const void *data, int64_t now) {
        const auto found = asked_.find(token);
        if (found == asked_.end()) return false;
        const Asked asked = std::move(found->second);
        asked_.erase(found);
        of_[asked.function].unanswered_writes.erase(token);
        --asked.range->under_way;
        if (asked.request && asked.request->kind == kMemRead) {
            if (data) complete(*asked.request, static_cast<const uint8_t *>(data), now);
            else fail(*asked.request, kAbort, now);
        } else if (asked.request.use_count() == 1) {  // of its last run
            taken_(*asked.request, now);
        }
        return true;
    }
    bool idle() const { return asked_.empty(); }

  private:
    struct Asked {
        uint32_t function;
        HostRange *range;
        std::shared_ptr<Tlp> request;  // null: a write that has its room back already
    };

    // What waits of a function, and how long payloads to it are.
    struct Function {
        bool interrupt_waits() const {
            return !interrupts.empty() && (unanswered_writes.empty() || *unanswered_writes.begin() >= interrupts.front().first);
        }

        uint32_t mps = 128;
        std::deque<std::pair<uint64_t, nacelle_sim_slot_interrupt>> interrupts;  // with the token of the first message behind it
        std::deque<nacelle_sim_slot_message> messages;
        std::deque<nacelle_sim_slot_fault> faults;
        std::set<uint64_t> unanswered_writes;
    };

    template <class Item>
    static bool take(std::deque<Item> &from, Item *to) {
        if (from.empty()) return false;
        *to = from.front();
        from.pop_front();
        return true;
    }

    bool chance(uint32_t ppm) { return ppm != 0 && random_() % 1'000'000 < ppm; }
    int64_t miss() {
        ++stats.tlb_misses;
        return int64_t(slot_.iommu_miss_ns) * 1000;
    }
    void fault(const Tlp &tlp, bool is_write) {
        ++stats.faults;
        auto &faults = of_[tlp.func].faults;
        if (faults.size() == kFaults) faults.pop_front();
        faults.push_back({tlp.first_byte(), tlp.enabled_bytes(), is_write});
    }

    bool by_message(const Tlp &tlp) {
        const HostRange *range = memory[tlp.func].find(tlp.first_byte(), tlp.enabled_bytes(), NACELLE_SIM_HOST_WRITE);
        return range && !range->memory;
    }

    // True: the program has been asked. `waits`: room is given back when it has answered all.
    bool write(const std::shared_ptr<Tlp> &kept, bool waits) {
        const Tlp &tlp = *kept;
        bool asked = false;
        if (is_interrupt(tlp)) {
            uint32_t data;
            std::memcpy(&data, tlp.data.data(), 4);
            of_[tlp.func].interrupts.emplace_back(next_token_, nacelle_sim_slot_interrupt{tlp.address, data, 0});
            ++stats.interrupts;
            return false;
        }
        if (tlp.poisoned) return false;
        HostRange *range = memory[tlp.func].find(tlp.first_byte(), tlp.enabled_bytes(), NACELLE_SIM_HOST_WRITE);
        if (!range) {
            fault(tlp, true);
            return false;
        }
        for (uint32_t from = 0, to; from < tlp.dwords * 4; from = to) {  // what is enabled, in runs
            to = from + 1;
            if (!tlp.enabled(from)) continue;
            while (to < tlp.dwords * 4 && tlp.enabled(to)) ++to;
            const uint64_t address = tlp.address + from;
            if (range->memory) {
                std::memcpy(range->memory + (address - range->base), &tlp.data[from], to - from);
                continue;
            }
            of_[tlp.func].unanswered_writes.insert(ask(tlp.func, range, address, to - from, waits ? kept : nullptr, &tlp.data[from]));
            asked = true;
        }
        return asked;
    }

    void read(const Tlp &tlp, int64_t time) {
        if (chance(slot_.unsupported_ppm)) {
            ++stats.unsupported;
            return fail(tlp, kUnsupported, time);
        }
        if (chance(slot_.abort_ppm)) {
            ++stats.aborted;
            return fail(tlp, kAbort, time);
        }
        HostRange *range = memory[tlp.func].find(tlp.first_byte(), tlp.enabled_bytes(), NACELLE_SIM_HOST_READ);
        if (!range) {
            fault(tlp, false);
            return fail(tlp, slot_.fault_aborts ? kAbort : kUnsupported, time);
        }
        if (range->memory) complete(tlp, range->memory + (tlp.first_byte() - range->base), time);
        else ask(tlp.func, range, tlp.first_byte(), tlp.enabled_bytes(), std::make_shared<Tlp>(tlp), nullptr);
    }

    uint64_t ask(uint32_t function, HostRange *range, uint64_t address, uint32_t length, std::shared_ptr<Tlp> request, const uint8_t *data) {
        const uint64_t token = next_token_++;
        nacelle_sim_slot_message &message = of_[function].messages.emplace_back();
        message.token = token;
        message.address = address;
        message.length = length;
        message.write = data != nullptr;
        if (data) std::memcpy(message.data, data, length);
        ++range->under_way;
        ++stats.messages;
        asked_.emplace(token, Asked{function, range, std::move(request)});
        return token;
    }

    // Where the completion that begins at `at` ends: `left` bytes are to come.
    uint64_t cut(uint64_t at, uint32_t left, uint32_t mps) {
        const uint64_t boundary = slot_.rcb;
        uint64_t most = ((at & ~3ull) + mps) / boundary * boundary;
        const uint64_t least = (at / boundary + 1) * boundary;
        if (slot_.split == 1) most = least;
        else if (slot_.split == 2) most = least + random_() % ((most - least) / boundary + 1) * boundary;
        const uint64_t end = at + left;
        return end - (at & ~3ull) <= mps ? std::min(end, slot_.split ? most : end) : most;
    }

    void complete(const Tlp &request, const uint8_t *data, int64_t time) {
        const bool bad = chance(slot_.poison_ppm);
        stats.poisoned += bad;
        uint64_t at = request.first_byte();
        for (uint32_t left = request.enabled_bytes(); left;) {
            const uint64_t end = cut(at, left, of_[request.func].mps);
            Tlp part = answer_to(request, at, left);
            part.kind = kCompletionData;
            part.dwords = uint32_t(((end + 3) >> 2) - (at >> 2));
            part.data.resize(part.dwords * 4);
            std::memcpy(&part.data[at & 3], data, end - at);
            if (bad) {
                part.poisoned = true;
                for (uint8_t &byte : part.data) byte ^= 0xff;
            }
            data += end - at;
            left -= uint32_t(end - at);
            at = end;
            later(std::move(part), left == 0, time);
        }
    }
    void fail(const Tlp &request, uint8_t status, int64_t time) {
        Tlp part = answer_to(request, request.first_byte(), request.enabled_bytes());
        part.kind = kCompletion;
        part.status = status;
        later(std::move(part), true, time);
    }
    static Tlp answer_to(const Tlp &request, uint64_t at, uint32_t left) {
        Tlp part;
        part.requester = request.requester;
        part.func = request.func;
        part.completer = kId;
        part.tag = request.tag;
        part.tc = request.tc;
        part.attr = request.attr;
        part.byte_count = left;
        part.lower_address = at & 0x7f;
        return part;
    }
    // `time` becomes that of the completion, so that the next one of the tag is not before it.
    void later(Tlp part, bool last, int64_t &time) {
        if (slot_.jitter_ns) time += int64_t(random_() % (uint64_t(slot_.jitter_ns) * 1000 + 1));
        if (!slot_.reorder) time = last_completion_ = std::max(last_completion_, time);
        auto kept = std::make_shared<Tlp>(std::move(part));
        agenda_.at(time, [this, kept, last](int64_t at) {
            if (last) ended_(*kept);
            send_(std::move(*kept), at);
        });
    }

    const nacelle_sim_slot slot_;
    const HostTimes times_;
    Agenda &agenda_;
    Send send_;
    Ended ended_;
    Taken taken_;
    IoTlb tlb_;
    std::mt19937_64 random_;
    int64_t posted_until_ = 0, last_completion_ = 0;
    uint64_t next_token_ = 1;
    std::array<Function, kFunctions> of_;
    std::unordered_map<uint64_t, Asked> asked_;
};

}  // namespace nacelle
