// SPDX-License-Identifier: Apache-2.0
//
// A slot with a device in it, of one function or two: the link both ways with its credits, the root complex above it, other devices beside it,
// and a watch on what the device sends. docs/reference/slot-model.md says what each parameter is. Time is that of the device: cycles outside,
// picoseconds inside.
#pragma once

#include <array>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "agenda.h"
#include "host_requests.h"
#include "nacelle_sim.h"
#include "pcie_link.h"
#include "root_complex.h"
#include "tlp.h"
#include "tlp_monitor.h"

namespace nacelle {

inline bool power_of_two(uint64_t value) { return value && !(value & (value - 1)); }

// The slot with its defaults in place.
inline nacelle_sim_slot with_defaults(nacelle_sim_slot slot) {
    const auto set = [](auto &field, uint64_t value) {
        if (!field) field = value;
    };
    set(slot.generation, 3), set(slot.lanes, 16);
    set(slot.mps, 256), set(slot.mrrs, 512), set(slot.rcb, 64), set(slot.tags, 64);
    set(slot.request_bytes, 24), set(slot.completion_bytes, 20);
    set(slot.link_ns, 80), set(slot.write_ns, 172), set(slot.read_ns, 620), set(slot.register_write_ns, 440), set(slot.register_read_ns, 900);
    set(slot.posted_headers, 64), set(slot.posted_data, 1024), set(slot.non_posted_headers, 64);
    set(slot.iommu_miss_ns, 500);
    set(slot.host_reads, 32), set(slot.host_timeout_us, 50000);
    set(slot.random_seed, 1);
    return slot;
}

class Slot {
  public:
    static constexpr uint32_t kBars = 6;
    static constexpr uint32_t kBacklog = 1024;  // bytes that wait for the link at most

    // Sizes of the BARs of each function; 0: there is none.
    using BarSizes = std::array<uint64_t, kBars>;
    Slot(int64_t cycle_ps, const BarSizes &sizes, const BarSizes &second = {}) : cycle_ps_(cycle_ps) {
        for (uint32_t bar = 0; bar < kBars; ++bar) {
            of_[0].bars[bar] = {kFirstBar * (bar + 1), sizes[bar]};
            of_[1].bars[bar] = {kFirstBar * (kBars + bar + 1), second[bar]};
        }
        std::string none;
        set({}, &none);
    }
    Slot(const Slot &) = delete;
    Slot &operator=(const Slot &) = delete;

    // False, and why: there is no such slot.
    bool set(const nacelle_sim_slot &wanted, std::string *error) {
        const nacelle_sim_slot slot = with_defaults(wanted);
        if ((*error = wrong_with(slot)) != "") return false;
        is = slot;
        const double gbps = tlp_gbps(is.generation, is.lanes, is.mps);
        up_ = std::make_unique<PcieLink>(gbps, int64_t(is.link_ns) * 1000);
        down_ = std::make_unique<PcieLink>(gbps, int64_t(is.link_ns) * 1000);
        const HostTimes times = host_times(is, *up_);
        agenda_ = std::make_unique<Agenda>();
        posted_ = std::make_unique<Credits>(is.posted_headers, is.posted_data);
        non_posted_ = std::make_unique<Credits>(is.non_posted_headers, UINT32_MAX);
        monitor_ = std::make_unique<TlpMonitor>();
        root_ = std::make_unique<RootComplex>(
            is, times, *agenda_, [this](Tlp tlp, int64_t time) { send(std::move(tlp), time, nullptr); },
            [this](const Tlp &read) { monitor_->answered(read); }, [this](const Tlp &tlp, int64_t time) { give_back(tlp, time); });
        host_ = std::make_unique<HostRequests>(is, times, cycle_ps_, *agenda_, [this](Tlp tlp, int64_t time, Taken taken) {
            send(std::move(tlp), time, std::move(taken));
        });
        to_device_.clear();
        random_.seed(is.random_seed);
        stall_begin_ = stall_end_ = 0;
        stats_ = {};
        for (uint32_t function = 0; function < kFunctions; ++function) {
            of_[function].resetting = false;
            of_[function].space.id = 0;
        }
        bool good = true;
        for (uint32_t function = 0; function < kFunctions; ++function)
            good &= set_space(function, {0x100 + function, is.mps, is.mrrs, is.rcb, is.tags > 32, 0, 0, 0, 0}, 0);
        return good;
    }

    bool set_space(uint32_t function, const nacelle_sim_slot_space &wanted, uint64_t cycle) {
        const auto size = [](uint32_t bytes, uint32_t most) { return power_of_two(bytes) && bytes >= 128 && bytes <= most; };
        if (!size(wanted.mps, is.mps) || !size(wanted.mrrs, 4096) || wanted.rcb != is.rcb || !wanted.id || wanted.id > 0xffff) return false;
        for (uint32_t other = 0; other < kFunctions; ++other)
            if (other != function && of_[other].space.id == wanted.id) return false;
        of_[function].space = wanted;
        root_->set_mps(function, wanted.mps);
        host_->set_mps(function, wanted.mps);
        watch(function, cycle);
        return true;
    }
    bool set_bar(uint32_t function, uint32_t bar, uint64_t address) {
        if (bar >= kBars) return false;
        Bar &is = of_[function].bars[bar];
        if (!is.size || address % is.size) return false;
        is.address = address;
        return true;
    }
    const nacelle_sim_slot_space &space(uint32_t function) const { return of_[function].space; }
    void join(Slot *other, uint32_t latency_ns) { peers_.push_back({other, int64_t(latency_ns) * 1000}); }

    // A function-level reset, until the device says that it is done. It clears Bus Master Enable (Base Specification 6.6.2): after it the
    // function sends nothing until the program sets its configuration space.
    void reset(uint32_t function) {
        of_[function].resetting = true;
        of_[function].space.bus_master = 0;
        watch(function, uint64_t(now_ / cycle_ps_));
    }
    bool resetting(uint32_t function) const { return of_[function].resetting; }

    // ---- the program ----
    RootComplex &root() { return *root_; }
    HostRequests &host() { return *host_; }
    uint64_t read(uint32_t function, uint32_t bar, uint64_t offset, uint32_t length) {
        return host_->read(function, bar, of_[function].bars[bar].address + offset, length, now_);
    }
    uint64_t write(uint32_t function, uint32_t bar, uint64_t offset, const void *data, uint32_t length) {
        return host_->write(function, bar, of_[function].bars[bar].address + offset, static_cast<const uint8_t *>(data), length, now_);
    }
    bool in_bar(uint32_t function, uint32_t bar, uint64_t offset, uint64_t length) const {
        if (bar >= kBars) return false;
        const uint64_t size = of_[function].bars[bar].size;
        return offset < size && length <= size - offset;
    }
    bool answer(uint64_t token, const void *data) { return root_->answer(token, data, now_); }
    bool something_waits() const { return root_->something_waits() || host_->answer_waits(); }
    nacelle_sim_slot_stats stats() const {
        nacelle_sim_slot_stats all = stats_;
        const nacelle_sim_slot_stats &root = root_->stats;
        all.interrupts = root.interrupts, all.messages = root.messages, all.faults = root.faults, all.tlb_misses = root.tlb_misses;
        all.unsupported = root.unsupported, all.aborted = root.aborted, all.poisoned = root.poisoned, all.lost = root.lost;
        all.violations = monitor_->violations;
        return all;
    }
    const std::string &violation() const { return monitor_->first; }

    // ---- the device, cycle by cycle ----
    const Credits &posted() const { return *posted_; }
    const Credits &non_posted() const { return *non_posted_; }

    // What it may send is taken.
    bool ready() const { return up_->backlog(now_) < up_->serial(kBacklog); }
    void busy() { ++stats_.busy_cycles; }

    // A TLP that it has sent in this cycle.
    void take(Tlp tlp, uint64_t cycle) {
        bool had_credit = true;
        if (tlp.is_posted()) had_credit = posted_->use(tlp);
        else if (tlp.is_request()) had_credit = non_posted_->use(tlp);
        if (tlp.is_request()) tlp.func = asks(tlp);
        const bool good = monitor_->sent(tlp, had_credit, cycle);
        ++stats_.up_tlps;
        stats_.up_bytes += tlp.data.size();
        stats_.up_wire_bytes += wire_bytes(tlp);
        if (tlp.kind == kMemWrite) ++stats_.writes, stats_.write_bytes += tlp.dwords * 4;
        if (tlp.kind == kMemRead) ++stats_.reads, stats_.read_bytes += tlp.dwords * 4;
        const int64_t there = up_->send(wire_bytes(tlp), int64_t(cycle) * cycle_ps_);
        if (!good) return give_back(tlp, there);
        auto kept = std::make_shared<Tlp>(std::move(tlp));
        agenda_->at(there, [this, kept](int64_t time) { route(std::move(*kept), time); });
    }

    // The TLP that it is to take next, or so many behind that one, or null; and that it has taken the next.
    const Tlp *offered(size_t behind = 0) const { return behind < to_device_.size() ? &to_device_[behind].tlp : nullptr; }
    void taken(uint64_t cycle) {
        const Taken taken = std::move(to_device_.front().taken);
        to_device_.pop_front();
        if (taken) taken(int64_t(cycle) * cycle_ps_);
    }

    // `done`: which functions say that they are quiet, for a reset, a bit each.
    void tick(uint64_t cycle, uint32_t done) {
        now_ = int64_t(cycle) * cycle_ps_;
        for (uint32_t function = 0; function < kFunctions; ++function) {
            if (!of_[function].resetting || !(done >> function & 1)) continue;
            of_[function].resetting = false;
            watch(function, cycle);
        }
        agenda_->run(now_);
        host_->tick(now_);
        const bool posted_dry = posted_->none(std::max(of_[0].space.mps, of_[1].space.mps)), non_posted_dry = non_posted_->none(0);
        stats_.posted_dry_cycles += posted_dry;
        stats_.non_posted_dry_cycles += non_posted_dry;
        if (posted_dry || non_posted_dry) monitor_->without_credit(cycle);
    }
    bool idle() const { return agenda_->empty() && to_device_.empty() && host_->idle() && root_->idle() && !of_[0].resetting && !of_[1].resetting; }

    std::string text() const {
        char line[600];
        std::snprintf(line, sizeof(line),
                      "PCIe Gen%u x%u, %.1f Gb/s for TLPs, MPS %u, MRRS %u, RCB %u, %u tags, %u and %u bytes a request and a completion; "
                      "link %u ns, write %u ns, read %u ns, register write %u ns, register read %u ns; "
                      "credits %u/%u posted, %u non-posted%s%s%s",
                      is.generation, is.lanes, tlp_gbps(is.generation, is.lanes, is.mps), of_[0].space.mps, of_[0].space.mrrs, is.rcb, is.tags,
                      is.request_bytes, is.completion_bytes, is.link_ns, is.write_ns, is.read_ns, is.register_write_ns,
                      is.register_read_ns, is.posted_headers, is.posted_data, is.non_posted_headers,
                      is.split ? "; completions split" : "", is.jitter_ns || is.tail_ppm ? "; jitter" : "",
                      is.iommu_entries ? "; IOMMU" : "");
        return line;
    }

    nacelle_sim_slot is{};

  private:
    static constexpr uint64_t kFirstBar = uint64_t(1) << 44;  // room for each, until the program says where it is

    using Taken = std::function<void(int64_t time)>;
    struct Bar {
        uint64_t address, size;
    };
    struct Function {
        nacelle_sim_slot_space space{};
        bool resetting = false;
        Bar bars[kBars];
    };
    struct Peer {
        Slot *slot;
        int64_t latency;
    };
    struct Inbound {
        Tlp tlp;
        Taken taken;
    };

    // Tells the watch what a function may do now: nothing in a reset.
    void watch(uint32_t function, uint64_t cycle) {
        nacelle_sim_slot_space told = of_[function].space;
        if (of_[function].resetting) told.bus_master = 0;
        monitor_->set_space(function, told, is.tags, cycle);
    }
    // The function that a request of the device is of; kFunctions: none.
    uint8_t asks(const Tlp &tlp) const {
        uint8_t function = 0;
        while (function < kFunctions && of_[function].space.id != tlp.requester) ++function;
        return function;
    }

    // What is left of the latencies without the link. Those of a write and of a read have the time of their bytes in them.
    static HostTimes host_times(const nacelle_sim_slot &is, const PcieLink &link) {
        const auto ps = [](uint32_t ns) { return int64_t(ns) * 1000; };
        const int64_t one_way = ps(is.link_ns), request = link.serial(is.request_bytes);
        HostTimes times;
        times.write = ps(is.write_ns) - one_way - link.serial(is.request_bytes + 64);
        times.read = ps(is.read_ns) - 2 * one_way - request - link.serial(is.completion_bytes + 64);
        times.register_write = ps(is.register_write_ns) - one_way - link.serial(is.request_bytes + 4);
        times.register_read = ps(is.register_write_ns) - one_way - request;
        times.answer = ps(is.register_read_ns) - ps(is.register_write_ns) - one_way - link.serial(is.completion_bytes + 4);
        return times;
    }

    static std::string wrong_with(const nacelle_sim_slot &is) {
        const auto size = [](uint32_t bytes) { return power_of_two(bytes) && bytes >= 128 && bytes <= 4096; };
        if (is.generation > 5) return "generation must be 1 to 5";
        if (is.lanes > 16 || !power_of_two(is.lanes)) return "lanes must be 1, 2, 4, 8 or 16";
        if (!size(is.mps) || !size(is.mrrs)) return "mps and mrrs must be powers of two from 128 to 4096";
        if (is.rcb != 64 && is.rcb != 128) return "rcb must be 64 or 128";
        if (is.tags > 1024) return "there are 1024 tags";
        if (is.split > 2) return "split must be 0, 1 or 2";
        if (is.host_reads > 64) return "host_reads must be 1 to 64";
        if (is.posted_data < is.mps / 16) return "posted_data must hold the largest payload, 16 bytes each";
        const PcieLink link(tlp_gbps(is.generation, is.lanes, is.mps), 0);
        const HostTimes times = host_times(is, link);
        if (times.write < 0 || times.read < 0 || times.register_write < 0 || times.answer < 0)
            return "a latency is shorter than the link's part of it";
        return "";
    }

    uint32_t wire_bytes(const Tlp &tlp) const {
        return (tlp.is_completion() ? is.completion_bytes : is.request_bytes) + uint32_t(tlp.data.size());
    }

    // Onto the link to the device.
    void send(Tlp tlp, int64_t time, Taken taken) {
        ++stats_.down_tlps;
        stats_.down_bytes += tlp.data.size();
        stats_.down_wire_bytes += wire_bytes(tlp);
        const int64_t there = down_->send(wire_bytes(tlp), time);
        auto kept = std::make_shared<Inbound>(Inbound{std::move(tlp), std::move(taken)});
        agenda_->at(there, [this, kept](int64_t) {
            if (kept->tlp.is_request() && !kept->tlp.is_posted()) monitor_->asked(kept->tlp);
            to_device_.push_back(std::move(*kept));
        });
    }

    // At the upper end of the link.
    void route(Tlp tlp, int64_t time) {
        if (tlp.is_completion()) {
            if (tlp.requester == RootComplex::kId) return host_->completion(tlp, time);
            for (const Peer &peer : peers_)
                if (peer.slot->asks(tlp) < kFunctions) return peer.slot->from_peer(std::move(tlp), time + peer.latency, nullptr);
            return;
        }
        if (tlp.kind != kMemRead && tlp.kind != kMemWrite) return give_back(tlp, time);
        for (const Peer &peer : peers_) {
            if (!peer.slot->is_at(tlp)) continue;
            ++stats_.peer_tlps;
            auto credit = std::make_shared<Tlp>(tlp);
            return peer.slot->from_peer(std::move(tlp), time + peer.latency,
                                        [this, credit](int64_t at) { give_back(*credit, std::max(at, now_)); });
        }
        root_->request(std::move(tlp), time);
    }

    // In an address of one of the BARs: tells the device which, and of which function.
    bool is_at(Tlp &tlp) const {
        for (uint32_t function = 0; function < kFunctions; ++function) {
            for (uint32_t bar = 0; bar < kBars; ++bar) {
                const Bar &is = of_[function].bars[bar];
                if (tlp.address - is.address >= is.size) continue;
                tlp.func = uint8_t(function);
                tlp.bar = uint8_t(bar);
                return true;
            }
        }
        return false;
    }
    void from_peer(Tlp tlp, int64_t time, Taken taken) {
        if (tlp.is_completion()) {
            const bool last = tlp.status != kSuccess || tlp.dwords * 4 - (tlp.lower_address & 3) >= tlp.byte_count;
            if (last) monitor_->answered(tlp);
        }
        auto kept = std::make_shared<Tlp>(std::move(tlp));
        agenda_->at(std::max(time, now_), [this, kept, taken](int64_t at) { send(std::move(*kept), at, taken); });
    }

    // The credits of a TLP are back at the device after the link's latency, but for times in which the root port returns none.
    void give_back(const Tlp &tlp, int64_t time) {
        if (is.credit_stall_ns && is.credit_stall_every_ns) {
            while (time >= stall_end_) {
                stall_begin_ = stall_end_ + int64_t(random_() % (uint64_t(is.credit_stall_every_ns) * 2000 + 1));
                stall_end_ = stall_begin_ + int64_t(is.credit_stall_ns) * 1000;
            }
            if (time >= stall_begin_) time = stall_end_;
        }
        Credits *const pool = tlp.is_posted() ? posted_.get() : tlp.is_request() ? non_posted_.get() : nullptr;
        if (!pool) return;
        Tlp size = tlp;
        size.data.clear();
        agenda_->at(time + int64_t(is.link_ns) * 1000, [pool, size](int64_t) { pool->give_back(size); });
    }

    const int64_t cycle_ps_;
    int64_t now_ = 0, stall_begin_ = 0, stall_end_ = 0;
    std::array<Function, kFunctions> of_;
    std::vector<Peer> peers_;
    std::unique_ptr<Agenda> agenda_;
    std::unique_ptr<PcieLink> up_, down_;
    std::unique_ptr<Credits> posted_, non_posted_;
    std::unique_ptr<TlpMonitor> monitor_;
    std::unique_ptr<RootComplex> root_;
    std::unique_ptr<HostRequests> host_;
    std::deque<Inbound> to_device_;
    std::mt19937_64 random_;
    nacelle_sim_slot_stats stats_{};
};

}  // namespace nacelle
