// SPDX-License-Identifier: Apache-2.0
//
// Whether the functions of a device in a slot keep the rules of PCI Express (Base Specification 4.0, chapter 2). It looks at what the device sends, and
// remembers the first thing that is wrong.
#pragma once

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <set>
#include <string>
#include <unordered_map>

#include "nacelle_sim.h"
#include "tlp.h"

namespace nacelle {

constexpr uint64_t kInterrupts = 0xfee00000, kInterruptsSize = 1 << 20;  // addresses of messages that are interrupts

inline bool is_interrupt(const Tlp &tlp) { return tlp.kind == kMemWrite && tlp.address - kInterrupts < kInterruptsSize; }

class TlpMonitor {
  public:
    // So many cycles after a change of configuration space, and after each of so many requests behind it, the device may still send as it was
    // permitted before: what it had begun, whose payload is on its way. Cycles in which it has no credit for it do not count.
    static constexpr uint64_t kGrace = 64;
    static constexpr uint32_t kBegun = 16;

    void set_space(uint32_t function, const nacelle_sim_slot_space &space, uint32_t tags, uint64_t cycle) {
        Function &of = of_[function];
        const auto keep = [&](uint32_t nacelle_sim_slot_space::*field) {
            of.before.*field = cycle - of.changed < kGrace ? std::max(of.before.*field, of.space.*field) : of.space.*field;
        };
        keep(&nacelle_sim_slot_space::mps), keep(&nacelle_sim_slot_space::mrrs);
        keep(&nacelle_sim_slot_space::extended_tags), keep(&nacelle_sim_slot_space::bus_master);
        of.space = space;
        of.changed = cycle;
        of.begun = kBegun;
        tags_ = tags;
    }
    void without_credit(uint64_t cycle) {
        for (Function &of : of_)
            if (cycle > of.changed && cycle - of.changed < kGrace) ++of.changed;
    }

    // A request is offered to the device: a completion with this requester and tag will come, for so many bytes from there on.
    void asked(const Tlp &request) { expected_[request.transaction()] = {request.func, request.first_byte(), request.enabled_bytes()}; }
    // A read of the device has its last completion, or will never have one.
    void answered(const Tlp &read) { tags_used_.erase(read.transaction()); }

    // A TLP of the device, of this function if it is a request. False: it must not go on.
    bool sent(const Tlp &tlp, bool had_credit, uint64_t cycle) {
        const uint64_t before = violations;
        if (!had_credit) wrong(tlp, "has no credit");
        if (tlp.has_data() && tlp.data.size() != tlp.dwords * 4) wrong(tlp, "has more or less data than its header says");
        if (tlp.tc != 0) wrong(tlp, "has a traffic class that is not configured");
        if (tlp.is_completion()) completion(tlp, cycle);
        else if (tlp.func >= kFunctions) wrong(tlp, "has a requester that is no function of the device");
        else request(tlp, cycle);
        return violations == before;
    }

    uint64_t violations = 0;
    std::string first;

  private:
    struct Function {
        nacelle_sim_slot_space space{}, before{};
        uint64_t changed = 0;
        uint32_t begun = 0;
    };
    struct Expected {
        uint8_t function;
        uint64_t address;
        uint32_t bytes;
    };

    // The largest of what is permitted now and what was a moment ago.
    static uint32_t limit(const Function &of, uint32_t nacelle_sim_slot_space::*field, uint64_t cycle) {
        return cycle - of.changed < kGrace ? std::max(of.space.*field, of.before.*field) : of.space.*field;
    }
    void payload(const Tlp &tlp, const Function &of, uint64_t cycle) {
        if (tlp.has_data() && tlp.dwords * 4 > limit(of, &nacelle_sim_slot_space::mps, cycle)) wrong(tlp, "exceeds the largest payload");
    }

    void request(const Tlp &tlp, uint64_t cycle) {
        Function &of = of_[tlp.func];
        check_request(tlp, of, cycle);
        if (of.begun > 0 && cycle - of.changed < kGrace) {
            --of.begun;
            of.changed = cycle;
        }
    }
    void check_request(const Tlp &tlp, const Function &of, uint64_t cycle) {
        payload(tlp, of, cycle);
        if (tlp.kind != kMemRead && tlp.kind != kMemWrite) {
            if (!tlp.is_posted()) wrong(tlp, "is of a kind that a device has no reason to send");
            return;
        }
        if (!limit(of, &nacelle_sim_slot_space::bus_master, cycle)) wrong(tlp, "comes while bus mastering is off, or in a reset");
        if (tlp.dwords < 1 || tlp.dwords > 1024 || tlp.address & 3) wrong(tlp, "has no such length or address");
        if (tlp.address % kPage + tlp.dwords * 4 > kPage) wrong(tlp, "crosses 4 KiB");
        if (tlp.dwords == 1 ? tlp.last_be != 0 : tlp.first_be == 0 || tlp.last_be == 0) wrong(tlp, "has byte enables that are not permitted");
        if (tlp.dwords > 2 && (!runs_up(tlp.first_be) || !runs_down(tlp.last_be))) wrong(tlp, "has byte enables with a gap");
        if (is_interrupt(tlp)) {
            if (tlp.dwords != 1 || tlp.first_be != 0xf) wrong(tlp, "is no message signalled interrupt: one dword");
            if (tlp.attr & kRelaxed) wrong(tlp, "is an interrupt that may pass its data");
        }
        if (tlp.kind == kMemWrite) return;
        if (tlp.dwords * 4 > limit(of, &nacelle_sim_slot_space::mrrs, cycle)) wrong(tlp, "exceeds the largest read request");
        if (tlp.tag >= (limit(of, &nacelle_sim_slot_space::extended_tags, cycle) ? tags_ : 32u)) wrong(tlp, "has a tag that is not permitted");
        if (!tags_used_.insert(tlp.transaction()).second) wrong(tlp, "has the tag of a read that is under way");
    }

    // Completions of one request come in the order of its addresses.
    void completion(const Tlp &tlp, uint64_t cycle) {
        const auto found = expected_.find(tlp.transaction());
        if (found == expected_.end()) return wrong(tlp, "answers no request");
        Expected &left = found->second;
        payload(tlp, of_[left.function], cycle);
        if (tlp.completer != of_[left.function].space.id) wrong(tlp, "has another completer than the function");
        if (tlp.status != kSuccess) {
            if (tlp.has_data()) wrong(tlp, "has data though it has failed");
            expected_.erase(found);
            return;
        }
        if (!tlp.has_data()) return wrong(tlp, "has no data");
        if (tlp.byte_count != left.bytes) wrong(tlp, "has another byte count than there are bytes left");
        if (tlp.lower_address != (left.address & 0x7f)) wrong(tlp, "has another lower address");
        const uint32_t covers = tlp.dwords * 4 - uint32_t(left.address & 3);
        if (covers >= left.bytes) {
            if (tlp.dwords != ((left.address & 3) + left.bytes + 3) / 4) wrong(tlp, "has more data than there are bytes left");
            expected_.erase(found);
            return;
        }
        left.address += covers;
        left.bytes -= covers;
        if (left.address % 64) wrong(tlp, "does not end at a read completion boundary");
    }

    static bool runs_up(uint8_t be) { return be == 0xf || be == 0xe || be == 0xc || be == 0x8; }
    static bool runs_down(uint8_t be) { return be == 0xf || be == 0x7 || be == 0x3 || be == 0x1; }

    void wrong(const Tlp &tlp, const char *what) {
        if (violations++) return;
        char text[200];
        std::snprintf(text, sizeof(text),
                      "a TLP %s: kind %u, address %#" PRIx64 ", %u dwords, byte enables %x %x, requester %04x, tag %u, byte count %u", what,
                      tlp.kind, tlp.address, tlp.dwords, tlp.first_be, tlp.last_be, tlp.requester, tlp.tag, tlp.byte_count);
        first = text;
    }

    std::array<Function, kFunctions> of_;
    uint32_t tags_ = 32;
    std::set<uint32_t> tags_used_;
    std::unordered_map<uint32_t, Expected> expected_;
};

}  // namespace nacelle
