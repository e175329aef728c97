// SPDX-License-Identifier: Apache-2.0
//
// The C ABI of nacelle_sim.h over the Verilated shell. One cycle is: sample the hand-shakes, clock edge, new inputs, settle.

#include "nacelle_sim.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <memory>

#include "Vnacelle.h"
#include "dram.h"
#include "ethernet.h"
#include "line.h"
#include "sensors.h"
#include "slot.h"
#include "tlp_port.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_fst_c.h"
#endif

namespace {

constexpr size_t kBytes = NACELLE_DATA_W / 8;
constexpr uint32_t kClockHz = NACELLE_CLOCK_HZ;
constexpr uint32_t kMaxFrame = NACELLE_MAX_FRAME;
constexpr uint64_t kDramBytes = NACELLE_DRAM_BYTES;
constexpr size_t kMemories = NACELLE_MEMORIES;
constexpr bool kInSlot = NACELLE_PCIE_VECTORS != 0;

// The functions of the device: device_in_slot. Pending bits: pcie_msix.
constexpr uint32_t kFunctions = kInSlot + (NACELLE_NETWORK_VECTORS != 0);
constexpr uint32_t kPending = 0x800;
constexpr nacelle_sim_slot_facts kFacts[nacelle::kFunctions] = {
    {{2 << 20, 0, 0, 0, kDramBytes, 0}, NACELLE_PCIE_VECTORS, 1 << 20, (1 << 20) + kPending, 0},
    {{8 << 10, 0, 0, 0, 0, 0}, NACELLE_NETWORK_VECTORS, 4 << 10, (4 << 10) + kPending, 0},
};
nacelle::Slot::BarSizes bars(uint32_t function) {
    nacelle::Slot::BarSizes sizes{};
    if (function < kFunctions) std::copy_n(kFacts[function].bar_bytes, sizes.size(), sizes.begin());
    return sizes;
}
constexpr uint64_t kMemoryStride = uint64_t(1) << NACELLE_MEMORY_STRIDE_W;
constexpr int64_t kCyclePs = 1'000'000'000'000 / kClockHz;
constexpr int kBusTimeout = 1000;  // cycles

template <class Port>
uint8_t *bytes(Port &port) {
    return reinterpret_cast<uint8_t *>(&port);
}

nacelle::LineRate line_rate(uint32_t mbps) {
    if (mbps == UINT32_MAX) return nacelle::LineRate(0);
    return nacelle::LineRate(int64_t(mbps ? mbps : 100000) * 1000000 * 1000 / kClockHz);
}

using Memory = nacelle::Dram<kBytes, NACELLE_ECC>;

#ifdef NACELLE_DRAM
constexpr nacelle_sim_dram kDram{NACELLE_DRAM};  // of the description
#endif

// Those of the description that say what the simulation gives.
const std::vector<nacelle::SensorRange> kSensors{NACELLE_SENSORS};

// A strobe of each byte of a beat.
template <class Port>
unsigned __int128 strobes(Port &port) {
    static_assert(sizeof(Port) <= 16);
    unsigned __int128 all = 0;
    std::memcpy(&all, &port, sizeof(Port));
    return all;
}

constexpr uint64_t keep_mask(size_t count) { return count >= 64 ? ~0ull : (1ull << count) - 1; }

}  // namespace

struct nacelle_sim {
    explicit nacelle_sim(const nacelle_sim_config &config)
        : top(&context),
          source(line_rate(config.line_rate_mbps)),
          sink(line_rate(config.line_rate_mbps)),
          slot(kCyclePs, bars(0), bars(1)),
          sensors(kSensors, NACELLE_SOCKETS, kClockHz) {
        nacelle::MemoryTiming timing;
        if (config.dram_latency_cycles) timing.latency = config.dram_latency_cycles;
        timing.bytes_per_cycle = config.dram_bytes_per_cycle ? config.dram_bytes_per_cycle : uint32_t(kBytes);
        for (size_t i = 0; i < kMemories; ++i)
            dram[i] = std::make_unique<Memory>(i * kMemoryStride, kDramBytes, timing, config.random_seed + i, kCyclePs);
#ifdef NACELLE_DRAM
        for (auto &memory : dram) memory->set_dram(&kDram);
#endif
        context.randSeed(int(config.random_seed ? config.random_seed : 1));
        context.randReset(2);
#if VM_TRACE
        if (config.wave_path) {
            context.traceEverOn(true);
            wave = std::make_unique<VerilatedFstC>();
            top.trace(wave.get(), 99);
            wave->open(config.wave_path);
        }
#endif
        top.clk = 0;
        top.rst = 1;
        top.time_skip = 0;
        top.link_up = 1;
        top.bus_awvalid = top.bus_wvalid = top.bus_arvalid = 0;
        top.bus_bready = top.bus_rready = 1;
        drive();
        for (int i = 0; i < 8; ++i) edge();
        top.rst = 0;
        edge();
        stats.cycles = stats.cycles_simulated = 0;
    }

    ~nacelle_sim() { top.final(); }

    // Clock edge with the inputs as they are, then settle with new ones.
    void edge() {
        top.clk = 1;
        top.eval();
        dump(0);
        drive();
        top.clk = 0;
        top.eval();
        dump(1);
        ++stats.cycles_simulated;
    }

    // Of this device, and of the other end of its line.
    void cycle();

    void own_cycle() {
        sample();
        stats.cycles += 1 + top.time_skip;
        source.tick();
        sink.tick();
        for (auto &memory : dram) memory->tick(stats.cycles);
        if (kInSlot) tick_slot();
        sensors.tick(stats.cycles, uint32_t(__builtin_popcount(top.busy)));
        edge();
    }

    // Lets time pass in one cycle. Only while idle.
    void skip(uint64_t cycles) {
        top.time_skip = uint32_t(std::min<uint64_t>(cycles, UINT32_MAX) - 1);
        source.skip(top.time_skip);
        sink.skip(top.time_skip);
        own_cycle();
        top.time_skip = 0;
        top.eval();
    }

    bool idle() const {
        return top.idle && source.empty() && !sink.in_frame() && !top.tx_tvalid && slot.idle() && to_device.empty() && from_device.empty()
            && std::all_of(dram.begin(), dram.end(), [](const auto &memory) { return memory->idle(); });
    }

    // Whose addresses these are, if any memory's.
    Memory *memory_of(uint64_t address, size_t length) {
        for (auto &memory : dram)
            if (memory->contains(address, length)) return memory.get();
        return nullptr;
    }

    VerilatedContext context;
    Vnacelle top;
    nacelle::FrameSource<kBytes> source;
    nacelle::FrameSink<kBytes> sink;
    std::array<std::unique_ptr<Memory>, kMemories> dram;
    nacelle::Slot slot;
    nacelle::TlpSource<kBytes> to_device;
    nacelle::TlpSink from_device;
    nacelle::SensorModel sensors;
    nacelle_sim_stats stats{};
    nacelle_sim_line *line = nullptr;
#if VM_TRACE
    std::unique_ptr<VerilatedFstC> wave;
#endif

  private:
    // What passes at the coming edge, by the signals as they have settled.
    void sample() {
        const uint64_t now = stats.cycles;
        if (top.rx_tvalid) {  // whatever rx_tready says: a MAC cannot wait
            stats.rx_bytes += source.size();
            stats.rx_frames += source.last();
            source.taken(now);
        }
        if (top.tx_tvalid && top.tx_tready) {
            const size_t size = size_t(__builtin_popcountll(top.tx_tkeep));
            stats.tx_bytes += size;
            stats.tx_frames += top.tx_tlast;
            sink.take(bytes(top.tx_tdata), size, top.tx_tlast, top.tx_tuser, now);
        } else if (sink.in_frame() && !top.tx_tvalid) {
            ++stats.tx_idle_beats;
        }
        if (top.sensor_valid && top.sensor_ready) sensors.taken();
        for (size_t i = 0; i < kMemories; ++i) {
            auto &memory = *dram[i];
            if (top.dram_bvalid[i] && top.dram_bready[i]) memory.b_taken();
            if (top.dram_rvalid[i] && top.dram_rready[i]) memory.r_taken();
            if (top.dram_wvalid[i] && top.dram_wready[i]) memory.w(bytes(top.dram_wdata[i]), strobes(top.dram_wstrb[i]), now);
            if (top.dram_awvalid[i] && top.dram_awready[i]) memory.aw(top.dram_awaddr[i], top.dram_awid[i], top.dram_awlen[i]);
            if (top.dram_arvalid[i] && top.dram_arready[i]) memory.ar(top.dram_araddr[i], top.dram_arid[i], top.dram_arlen[i], now);
        }
        if (kInSlot) sample_slot(now);
    }

    void sample_slot(uint64_t now) {
        if (top.slot_rx_header_valid && top.slot_rx_header_ready) to_device.header_taken();
        if (top.slot_rx_tvalid && top.slot_rx_tready) to_device.taken();
        while (to_device.done()) slot.taken(now);
        if (top.slot_tx_header_valid && top.slot_tx_header_ready) from_device.header(&top.slot_tx_header[0]);
        if (top.slot_tx_tvalid && top.slot_tx_tready)
            from_device.beat(bytes(top.slot_tx_tdata), size_t(__builtin_popcountll(top.slot_tx_tkeep)), top.slot_tx_tlast);
        if (top.slot_tx_header_valid && !top.slot_tx_header_ready) slot.busy();
        while (from_device.complete()) slot.take(from_device.take(), now);
    }

    void tick_slot() {
        uint32_t done = 0;
        for (uint32_t function = 0; function < kFunctions; ++function) done |= uint32_t(top.slot_flr_done[function]) << function;
        slot.tick(stats.cycles, done);
        while (to_device.room() && slot.offered(to_device.held())) to_device.push(*slot.offered(to_device.held()));
    }

    void drive() {
        const uint64_t now = stats.cycles;
        top.rx_tvalid = source.valid();
        if (source.valid()) {
            source.copy(bytes(top.rx_tdata));
            top.rx_tkeep = keep_mask(source.size());
            top.rx_tlast = source.last();
            top.rx_tuser = 0;
        }
        top.tx_tready = sink.ready();
        top.sensor_valid = sensors.valid();
        if (sensors.valid()) {
            top.sensor_number = uint8_t(sensors.number());
            top.sensor_value = uint32_t(sensors.value());
        }
        for (size_t i = 0; i < kMemories; ++i) {
            auto &memory = *dram[i];
            top.dram_awready[i] = memory.aw_ready();
            top.dram_wready[i] = memory.w_ready();
            top.dram_bvalid[i] = memory.b_valid(now);
            if (top.dram_bvalid[i]) {
                top.dram_bid[i] = memory.b_id();
                top.dram_bresp[i] = memory.b_resp();
            }
            top.dram_arready[i] = memory.ar_ready();
            top.dram_rvalid[i] = memory.r_valid(now);
            if (top.dram_rvalid[i]) {
                memory.r_copy(bytes(top.dram_rdata[i]));
                top.dram_rid[i] = memory.r_id();
                top.dram_rresp[i] = memory.r_resp();
                top.dram_rlast[i] = memory.r_last();
            }
        }
        if (kInSlot) drive_slot();
    }

    void drive_slot() {
        const auto size_code = [](uint32_t size) { return uint8_t(__builtin_ctz(size) - 7); };  // as Device Control has it
        for (uint32_t function = 0; function < nacelle::kFunctions; ++function) {
            const nacelle_sim_slot_space &space = slot.space(function);
            top.slot_id[function] = uint16_t(space.id);
            top.slot_mps[function] = size_code(space.mps);
            top.slot_mrrs[function] = size_code(space.mrrs);
            top.slot_rcb_128[function] = space.rcb == 128;
            top.slot_extended_tags[function] = space.extended_tags != 0;
            top.slot_memory_space[function] = space.memory_space != 0;
            top.slot_bus_master[function] = space.bus_master != 0;
            top.slot_msix_enable[function] = space.msix_enable != 0;
            top.slot_msix_mask[function] = space.msix_mask != 0;
            top.slot_flr_request[function] = slot.resetting(function);
        }
        const nacelle::Credits &posted = slot.posted(), &non_posted = slot.non_posted();
        top.slot_credits_endless = uint8_t(posted.headers_endless << 0 | posted.data_endless << 1 | non_posted.headers_endless << 2);
        top.slot_posted_headers = posted.headers & 0xfff;
        top.slot_posted_data = posted.data & 0xffff;
        top.slot_non_posted_headers = non_posted.headers & 0xfff;
        top.slot_rx_header_valid = to_device.header_valid();
        if (to_device.header_valid()) nacelle::pack(to_device.header(), &top.slot_rx_header[0]);
        top.slot_rx_tvalid = to_device.valid();
        if (to_device.valid()) {
            to_device.copy(bytes(top.slot_rx_tdata));
            top.slot_rx_tkeep = keep_mask(to_device.size());
            top.slot_rx_tlast = to_device.last();
        }
        top.slot_tx_header_ready = top.slot_tx_tready = slot.ready();
    }

    void dump([[maybe_unused]] int half) {
#if VM_TRACE
        if (wave) wave->dump(stats.cycles * 2 + uint64_t(half));
#endif
    }
};

// Two devices, stepped together: a cycle of one is a cycle of the other.
struct nacelle_sim_line {
    nacelle_sim_line(nacelle_sim &a, nacelle_sim &b, const nacelle_sim_line_config &config)
        : end{&a, &b},
          way{{config, kClockHz, config.random_seed}, {config, kClockHz, ~config.random_seed}} {
        a.line = b.line = this;
    }
    ~nacelle_sim_line() { end[0]->line = end[1]->line = nullptr; }

    uint64_t now() const { return end[0]->stats.cycles; }

    void cycle() {
        for (int i = 0; i < 2; ++i) {
            auto &sent = end[i]->sink.sent;
            for (; !sent.empty(); sent.pop_front()) way[i].send(std::move(sent.front().bytes), sent.front().stamp.last_beat);
            auto &source = end[1 - i]->source;
            while (!way[i].empty() && way[i].next_arrival() <= now() && !source.full()) {
                const std::vector<uint8_t> frame = way[i].take();
                source.push(frame.data(), frame.size());
            }
            source.stamps.clear();
        }
        for (nacelle_sim *sim : end) sim->own_cycle();
    }

    // Nothing happens before the next frame arrives or more time passes.
    bool quiet() const { return end[0]->idle() && end[1]->idle() && end[0]->sink.sent.empty() && end[1]->sink.sent.empty(); }

    // Lets up to `cycles` pass, one at least.
    void pass(uint64_t cycles) {
        for (const auto &direction : way)
            if (!direction.empty()) cycles = std::min(cycles, direction.next_arrival() - std::min(direction.next_arrival(), now()));
        if (cycles < 2) return cycle();
        for (nacelle_sim *sim : end) sim->skip(cycles);
    }

    nacelle_sim *end[2];
    nacelle::LineDirection way[2];
};

void nacelle_sim::cycle() {
    if (line) line->cycle();
    else own_cycle();
}

extern "C" {

void nacelle_sim_get_info(nacelle_sim_info *info) {
    *info = {NACELLE_SIM_ABI, NACELLE_DATA_W, kClockHz, kMaxFrame, kDramBytes};
}

nacelle_sim *nacelle_sim_create(const nacelle_sim_config *config, char *error, size_t error_size) {
    if (config->abi != NACELLE_SIM_ABI) {
        std::snprintf(error, error_size, "the caller was made for version %" PRIu32 " of the simulator's interface, the library has %u: rebuild both",
                      config->abi, NACELLE_SIM_ABI);
        return nullptr;
    }
#if !VM_TRACE
    if (config->wave_path) {
        std::snprintf(error, error_size, "this library was built without waveforms: build it with `make sim-waves`");
        return nullptr;
    }
#endif
    try {
        return new nacelle_sim(*config);
    } catch (const std::exception &e) {
        std::snprintf(error, error_size, "%s", e.what());
        return nullptr;
    }
}

void nacelle_sim_destroy(nacelle_sim *sim) { delete sim; }

uint64_t nacelle_sim_step(nacelle_sim *sim, uint64_t cycles, int stop) {
    const uint64_t begin = sim->stats.cycles;
    const auto happened = [&] {
        return (stop & NACELLE_SIM_STOP_FRAME && !sim->sink.sent.empty()) || (stop & NACELLE_SIM_STOP_SLOT && sim->slot.something_waits())
            || (stop & NACELLE_SIM_STOP_IDLE && sim->idle());
    };
    while (sim->stats.cycles - begin < cycles && !happened()) sim->cycle();
    return sim->stats.cycles - begin;
}

int nacelle_sim_idle(const nacelle_sim *sim) { return sim->idle(); }

void nacelle_sim_set_link(nacelle_sim *sim, int up) { sim->top.link_up = up != 0; }

uint64_t nacelle_sim_skip(nacelle_sim *sim, uint64_t cycles) {
    if (sim->line || !sim->idle() || cycles == 0) return 0;
    const uint64_t begin = sim->stats.cycles;
    sim->skip(cycles);
    return sim->stats.cycles - begin;
}

int nacelle_sim_push_frame(nacelle_sim *sim, const uint8_t *frame, size_t length) {
    if (length == 0 || length > kMaxFrame) return -1;
    if (sim->source.full()) return -2;
    sim->source.push(frame, length);
    return 0;
}

int nacelle_sim_pop_rx_stamp(nacelle_sim *sim, nacelle_sim_stamp *stamp) {
    if (sim->source.stamps.empty()) return 0;
    *stamp = sim->source.stamps.front();
    sim->source.stamps.pop_front();
    return 1;
}

int64_t nacelle_sim_pull_frame(nacelle_sim *sim, uint8_t *frame, size_t capacity, nacelle_sim_stamp *stamp) {
    if (sim->sink.sent.empty()) return 0;
    const nacelle::SentFrame &sent = sim->sink.sent.front();
    if (sent.bytes.size() > capacity) return -1;
    std::memcpy(frame, sent.bytes.data(), sent.bytes.size());
    if (stamp) *stamp = sent.stamp;
    const auto length = int64_t(sent.bytes.size());
    sim->sink.sent.pop_front();
    return length;
}

int nacelle_sim_reg_read(nacelle_sim *sim, uint32_t address, uint32_t *value) {
    Vnacelle &top = sim->top;
    top.bus_araddr = address;
    top.bus_arvalid = 1;
    top.eval();
    int result = -1;
    for (int i = 0; i < kBusTimeout; ++i) {
        const bool accepted = top.bus_arvalid && top.bus_arready;
        const bool answered = top.bus_rvalid;
        if (answered) {
            *value = top.bus_rdata;
            result = top.bus_rresp == 0 ? 0 : -1;
        }
        sim->cycle();
        if (accepted) {
            top.bus_arvalid = 0;
            top.eval();
        }
        if (answered) break;
    }
    top.bus_arvalid = 0;
    return result;
}

int nacelle_sim_reg_write(nacelle_sim *sim, uint32_t address, uint32_t value) {
    Vnacelle &top = sim->top;
    top.bus_awaddr = address;
    top.bus_wdata = value;
    top.bus_awvalid = top.bus_wvalid = 1;
    top.eval();
    int result = -1;
    for (int i = 0; i < kBusTimeout; ++i) {
        const bool aw = top.bus_awvalid && top.bus_awready;
        const bool w = top.bus_wvalid && top.bus_wready;
        const bool answered = top.bus_bvalid;
        if (answered) result = top.bus_bresp == 0 ? 0 : -1;
        sim->cycle();
        if (aw) top.bus_awvalid = 0;
        if (w) top.bus_wvalid = 0;
        if (aw || w) top.eval();
        if (answered) break;
    }
    top.bus_awvalid = top.bus_wvalid = 0;
    return result;
}

int nacelle_sim_set_memory(nacelle_sim *sim, uint32_t memory, const nacelle_sim_memory *timing) {
    if (memory >= kMemories) return -1;
    sim->dram[memory]->set_timing({timing->latency_cycles, timing->jitter_cycles,
                                   timing->bytes_per_cycle ? timing->bytes_per_cycle : uint32_t(kBytes), timing->stall_cycles,
                                   timing->stall_every_cycles});
    return 0;
}

int nacelle_sim_set_dram(nacelle_sim *sim, uint32_t memory, const nacelle_sim_dram *dram) {
    if (memory >= kMemories || (dram && !nacelle::Ddr::possible(*dram))) return -1;
    sim->dram[memory]->set_dram(dram);
    return 0;
}

int nacelle_sim_set_faults(nacelle_sim *sim, uint32_t memory, const nacelle_sim_faults *faults) {
    return memory < kMemories && sim->dram[memory]->set_faults(*faults) ? 0 : -1;
}

int nacelle_sim_flip(nacelle_sim *sim, uint64_t address, uint64_t data, uint8_t check) {
    auto *memory = sim->memory_of(address, 1);
    return memory && memory->flip(address, data, check) ? 0 : -1;
}

int nacelle_sim_dram_read(nacelle_sim *sim, uint64_t address, void *data, size_t length) {
    auto *memory = sim->memory_of(address, length);
    if (!memory) return -1;
    memory->peek(address, data, length);
    return 0;
}

int nacelle_sim_dram_write(nacelle_sim *sim, uint64_t address, const void *data, size_t length) {
    auto *memory = sim->memory_of(address, length);
    if (!memory) return -1;
    memory->poke(address, data, length);
    return 0;
}

void nacelle_sim_get_stats(const nacelle_sim *sim, nacelle_sim_stats *stats) {
    *stats = sim->stats;
    for (const auto &memory : sim->dram) {
        stats->dram_reads += memory->reads;
        stats->dram_read_bytes += memory->read_bytes;
        stats->dram_writes += memory->writes;
        stats->dram_write_bytes += memory->write_bytes;
        stats->dram_flips += memory->flips;
        stats->dram_last_read = std::max(stats->dram_last_read, memory->last_read);
        stats->dram_last_write = std::max(stats->dram_last_write, memory->last_write);
    }
}

int nacelle_sim_slot_set(nacelle_sim *sim, const nacelle_sim_slot *slot, char *error, size_t error_size) {
    std::string wrong = "the device was built without [pcie]: it is in no slot";
    const bool good = kInSlot && sim->slot.set(*slot, &wrong);
    if (!good) std::snprintf(error, error_size, "%s", wrong.c_str());
    return good ? 0 : -1;
}

int nacelle_sim_slot_get(nacelle_sim *sim, nacelle_sim_slot *slot) {
    *slot = sim->slot.is;
    return kInSlot ? 0 : -1;
}

int nacelle_sim_slot_text(nacelle_sim *sim, char *text, size_t size) {
    std::snprintf(text, size, "%s", sim->slot.text().c_str());
    return kInSlot ? 0 : -1;
}

int nacelle_sim_slot_set_space(nacelle_sim *sim, uint32_t function, const nacelle_sim_slot_space *space) {
    return function < kFunctions && sim->slot.set_space(function, *space, sim->stats.cycles) ? 0 : -1;
}

int nacelle_sim_slot_get_facts(nacelle_sim *, uint32_t function, nacelle_sim_slot_facts *facts) {
    const bool there = function < kFunctions;
    *facts = there ? kFacts[function] : nacelle_sim_slot_facts{};
    return there ? 0 : -1;
}

int nacelle_sim_slot_set_bar(nacelle_sim *sim, uint32_t function, uint32_t bar, uint64_t address) {
    return function < kFunctions && sim->slot.set_bar(function, bar, address) ? 0 : -1;
}

int nacelle_sim_slot_reset(nacelle_sim *sim, uint32_t function) {
    if (function >= kFunctions) return -1;
    sim->slot.reset(function);
    return 0;
}

int nacelle_sim_slot_reset_done(nacelle_sim *sim, uint32_t function) {
    return function < kFunctions ? !sim->slot.resetting(function) : -1;
}

int nacelle_sim_slot_map(nacelle_sim *sim, uint32_t function, uint64_t address, uint64_t size, void *memory, uint32_t access) {
    return function < kFunctions && sim->slot.root().memory[function].map(address, size, memory, access) ? 0 : -1;
}

int nacelle_sim_slot_unmap(nacelle_sim *sim, uint32_t function, uint64_t address, uint64_t size) {
    return function < kFunctions ? sim->slot.root().unmap(function, address, size) : -1;
}

int64_t nacelle_sim_slot_read(nacelle_sim *sim, uint32_t function, uint32_t bar, uint64_t offset, uint32_t length) {
    if (function >= kFunctions || length == 0 || length > nacelle::HostRequests::kLongestRead) return -1;
    if (!sim->slot.in_bar(function, bar, offset, length) || offset % nacelle::kPage + length > nacelle::kPage) return -1;
    return sim->slot.host().full(function) ? -2 : int64_t(sim->slot.read(function, bar, offset, length));
}

int64_t nacelle_sim_slot_write(nacelle_sim *sim, uint32_t function, uint32_t bar, uint64_t offset, const void *data, uint32_t length) {
    if (function >= kFunctions || length == 0 || length > nacelle::HostRequests::kLongestWrite) return -1;
    if (!sim->slot.in_bar(function, bar, offset, length)) return -1;
    return sim->slot.host().full(function) ? -2 : int64_t(sim->slot.write(function, bar, offset, data, length));
}

int nacelle_sim_slot_pull_answer(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_answer *answer) {
    return function < kFunctions && sim->slot.host().pull(function, answer);
}

int nacelle_sim_slot_wait(nacelle_sim *sim, int64_t token, nacelle_sim_slot_answer *answer) {
    if (token < 0) return -1;
    while (!sim->slot.host().pull_token(uint64_t(token), answer)) {
        if (sim->slot.host().idle()) return -1;
        sim->cycle();
    }
    return int(answer->status);
}

int nacelle_sim_slot_pull_interrupt(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_interrupt *interrupt) {
    return function < kFunctions && sim->slot.root().pull(function, interrupt);
}

int nacelle_sim_slot_pull_message(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_message *message) {
    return function < kFunctions && sim->slot.root().pull(function, message);
}

int nacelle_sim_slot_answer_message(nacelle_sim *sim, uint64_t token, const void *data) { return sim->slot.answer(token, data) ? 0 : -1; }

int nacelle_sim_slot_pull_fault(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_fault *fault) {
    return function < kFunctions && sim->slot.root().pull(function, fault);
}

int nacelle_sim_slot_get_stats(nacelle_sim *sim, nacelle_sim_slot_stats *stats) {
    *stats = sim->slot.stats();
    return kInSlot ? 0 : -1;
}

int64_t nacelle_sim_slot_violation(nacelle_sim *sim, char *text, size_t size) {
    std::snprintf(text, size, "%s", sim->slot.violation().c_str());
    return int64_t(sim->slot.stats().violations);
}

int nacelle_sim_slot_join(nacelle_sim *a, nacelle_sim *b, uint32_t latency_ns) {
    if (!kInSlot || a == b || a->stats.cycles != b->stats.cycles) return -1;
    a->slot.join(&b->slot, latency_ns);
    b->slot.join(&a->slot, latency_ns);
    return 0;
}

nacelle_sim_line *nacelle_sim_line_create(nacelle_sim *a, nacelle_sim *b, const nacelle_sim_line_config *config, char *error,
                                          size_t error_size) {
    if (config->abi != NACELLE_SIM_ABI) {
        std::snprintf(error, error_size, "the caller was made for version %" PRIu32 " of the simulator's interface, the library has %u: rebuild both",
                      config->abi, NACELLE_SIM_ABI);
        return nullptr;
    }
    if (a == b || a->line || b->line || a->stats.cycles != b->stats.cycles) {
        std::snprintf(error, error_size, "a line joins two different devices of the same age that are on no line yet");
        return nullptr;
    }
    return new nacelle_sim_line(*a, *b, *config);
}

void nacelle_sim_line_destroy(nacelle_sim_line *line) { delete line; }

void nacelle_sim_line_step(nacelle_sim_line *line, uint64_t cycles, int skip) {
    const uint64_t end = line->now() + cycles;
    while (line->now() < end) {
        if (skip && line->quiet()) line->pass(end - line->now());
        else line->cycle();
    }
}

uint64_t nacelle_sim_line_run(nacelle_sim_line *line, uint64_t cycles, int stop) {
    const uint64_t begin = line->now();
    const auto happened = [&] {
        return (stop & NACELLE_SIM_STOP_SLOT && (line->end[0]->slot.something_waits() || line->end[1]->slot.something_waits()))
            || (stop & NACELLE_SIM_STOP_IDLE && line->quiet() && line->way[0].empty() && line->way[1].empty());
    };
    // A device is idle for a cycle or two between steps of one task as well: only one that stays so has nothing to do.
    constexpr uint32_t kBelieved = 32;
    for (uint32_t quiet = 0; line->now() - begin < cycles && !happened();) {
        quiet = line->quiet() ? quiet + 1 : 0;
        if (quiet <= kBelieved) {
            line->cycle();
        } else {
            line->pass(begin + cycles - line->now());
            quiet = kBelieved;
        }
    }
    return line->now() - begin;
}

void nacelle_sim_line_get_stats(const nacelle_sim_line *line, int direction, nacelle_sim_line_stats *stats) {
    *stats = line->way[direction].stats;
}

}  // extern "C"
