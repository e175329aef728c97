// SPDX-License-Identifier: Apache-2.0

// The registers of a virtio network device on the PCI transport (virtio 1.2, 4.1.4): common configuration, ISR status, device
// configuration and notifications, as their capabilities point into a BAR; then three of our own: pairs of
// queues in use, why queues have stopped, counters.
//
// The standard has fields of 8 to 64 bits, accessed by 8, 16 or 32 bits. Here an access is a 32-bit word with a strobe for each
// byte: a write changes the fields whose bytes are strobed, a read gives the whole word, of which the master takes its bytes. Only
// the read of ISR status has an effect, and its word has nothing else. A write takes 3 cycles, a read 3. What is not there reads 0,
// and writes to it do nothing.
//
// A write of 0 to device_status halts the device, waits until nothing of it is under way in memory or on its interrupt, and clears
// it in 160 cycles; until then device_status keeps its value (2.1.2, 2.4). The counters live on. `reset`, that of a PCI function, does the same,
// and `reset_done` says from when on.
module virtio_registers
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned PAIRS   = 1,              // of queues, beside a control queue
    parameter int unsigned QUEUES  = 2,              // of the engine
    parameter int unsigned VECTORS = 8,              // of MSI-X
    parameter int unsigned SIZE    = 256,            // largest queue size
    parameter logic [63:0] OFFERED = '0,             // features
    parameter hash_types_t HASHES  = '0              // with VIRTIO_NET_F_RSS
) (
    input  logic              clk,
    input  logic              rst,
    axil_if.slave             bus,                   // 12 bits of address
    input  logic [47:0]       mac,                   // as it is read: the first byte on the wire is the highest
    input  logic [15:0]       mtu,
    input  logic              link_up,
    input  logic              mac_set,               // pulse: the driver has changed the MAC address,
    input  logic              announced,             // or has told the network of itself
    input  logic              reset,                 // until `reset_done`
    output logic              reset_done,            // nothing is under way, and all is as after power-on, until `reset` falls
    output virtq_setup_t      setup,
    output logic [QUEUES-1:0] enable,
    output logic [63:0]       features,              // negotiated
    output pairs_set_t        pairs_set,             // by the register
    output logic              halt,
    output logic              clear,                 // reset of the device but for its counters
    input  logic              idle,
    stream_if.source          notify,                // queue_t
    input  virtq_fail_t       fault,
    stream_if.sink            queue_interrupt,       // 16 bits: the vector
    stream_if.source          interrupt,             // 16 bits: the vector
    output counter_t          counter_at,
    input  logic [31:0]       counter
);
  typedef logic [$clog2(QUEUES)-1:0] index_t;
  localparam int unsigned QUIET = 16;                // cycles of `idle` after which it is believed
  localparam int unsigned CLEAR = 160;               // cycles that units need to clear their tables

  typedef enum logic [1:0] {
    D_RUN,
    D_HALT,
    D_CLEAR
  } device_e;
  device_e        device_q;
  device_status_t status_q;
  logic           notify_free, fresh_q;      // fresh_q: `reset` has had its effect

  // ---- the bus ----
  typedef enum logic [1:0] {
    B_IDLE,
    B_ACT,
    B_ANSWER
  } bus_e;

  bus_e        bus_q;
  logic        write_q;
  logic [11:0] at_q;
  logic [31:0] wdata_q, rdata_q, rdata;
  logic [3:0]  wstrb_q;

  // An access that has waited has no effect in `reset`: the device stays as it is after power-on.
  wire   obeys      = device_q == D_RUN && !reset;
  assign reset_done = fresh_q && bus_q == B_IDLE && !bus.awvalid && !bus.arvalid;

  // While tables are cleared, and in a reset that device_status cannot show as it is 0 already, accesses wait.
  wire accepting = bus_q == B_IDLE && !rst && (device_q == D_RUN || (device_q == D_HALT && status_q != '0));
  wire takes_write = accepting && bus.awvalid && bus.wvalid;
  wire acts_write = bus_q == B_ACT && write_q && notify_free;
  wire acts_read = bus_q == B_ACT && !write_q;
  assign bus.awready = takes_write;
  assign bus.wready  = takes_write;
  assign bus.arready = accepting && !takes_write;
  assign bus.bvalid  = bus_q == B_ANSWER && write_q;
  assign bus.bresp   = AXI_OKAY;
  assign bus.rvalid  = bus_q == B_ANSWER && !write_q;
  assign bus.rresp   = AXI_OKAY;
  assign bus.rdata   = rdata_q;

  always_ff @(posedge clk) begin
    unique case (bus_q)
      B_IDLE: begin
        write_q <= takes_write;
        at_q    <= takes_write ? bus.awaddr : bus.araddr;
        wdata_q <= bus.wdata;
        wstrb_q <= bus.wstrb;
        if (takes_write || (accepting && bus.arvalid)) bus_q <= B_ACT;
      end
      B_ACT: begin
        rdata_q <= rdata;
        if (!write_q || notify_free) bus_q <= B_ANSWER;
      end
      default: if (write_q ? bus.bready : bus.rready) bus_q <= B_IDLE;
    endcase
    if (rst) bus_q <= B_IDLE;
  end

  function automatic logic [31:0] merged(logic [31:0] old, logic [31:0] data, logic [3:0] strobes);
    logic [31:0] value;
    for (int unsigned i = 0; i < 4; i++) value[i*8+:8] = strobes[i] ? data[i*8+:8] : old[i*8+:8];
    return value;
  endfunction

  wire in_common = at_q[11:6] == COMMON_AT[11:6];
  wire [3:0] word = at_q[5:2];
  wire at_isr = at_q[11:2] == ISR_AT[11:2];

  // ---- common configuration ----
  logic [31:0]       device_select_q, driver_select_q;
  logic [63:0]       driver_features_q;
  logic [15:0]       config_vector_q, queue_select_q;
  logic [7:0]        generation_q;
  logic [QUEUES-1:0] enable_q;
  logic [1:0]        isr_q;

  // The configuration of each queue; after a reset all have the largest size and no vector.
  (* ram_style = "distributed" *) logic [$bits(virtq_config_t)-1:0] configs[MAX_QUEUES];
  virtq_config_t now, changed;
  queue_t        clear_at;
  queue_named_t  select;
  assign select = driver_queue(queue_select_q, PAIRS, all_pairs(driver_features_q));
  wire selected = select.valid;
  wire enabled = selected && enable_q[index_t'(select.vq)];
  assign now = virtq_config_t'(configs[select.vq]);

  wire [31:0] size_word = merged({now.vector, now.size}, wdata_q, wstrb_q);
  wire size_good = size_word[15:0] != '0 && (size_word[15:0] & (size_word[15:0] - 1'b1)) == '0 && size_word[15:0] <= 16'(SIZE);
  function automatic logic [15:0] vector(logic [15:0] wished);
    return 32'(wished) < VECTORS ? wished : VIRTIO_MSI_NO_VECTOR;
  endfunction

  always_comb begin
    changed = now;
    unique case (word)
      4'h6: begin
        if (size_good) changed.size = size_word[15:0];
        changed.vector = vector(size_word[31:16]);
      end
      4'h8: changed.desc[31:0] = merged(now.desc[31:0], wdata_q, wstrb_q);
      4'h9: changed.desc[63:32] = merged(now.desc[63:32], wdata_q, wstrb_q);
      4'ha: changed.avail[31:0] = merged(now.avail[31:0], wdata_q, wstrb_q);
      4'hb: changed.avail[63:32] = merged(now.avail[63:32], wdata_q, wstrb_q);
      4'hc: changed.used[31:0] = merged(now.used[31:0], wdata_q, wstrb_q);
      4'hd: changed.used[63:32] = merged(now.used[63:32], wdata_q, wstrb_q);
      default: ;
    endcase
  end

  logic [7:0] wait_q;
  assign clear_at = wait_q[QUEUE_W-1:0];
  assign halt     = device_q != D_RUN;
  assign clear    = device_q == D_CLEAR && wait_q < 8'd16;

  wire changes = acts_write && in_common && obeys && selected && !enabled && word >= 4'h6 && word <= 4'hd && word != 4'h7;
  always_comb begin
    setup        = '{valid: changes, vq: select.vq, values: changed};
    if (device_q == D_CLEAR) setup = '{valid: 1'b1, vq: clear_at, values: '{size: 16'(SIZE), vector: VIRTIO_MSI_NO_VECTOR, default: '0}};
  end
  always_ff @(posedge clk) if (setup.valid) configs[setup.vq] <= setup.values;

  // What the driver wants must be offered, this device knows no driver of before 1.0 (6.2), what works by commands needs them, and segments
  // have checksums (5.1.3.1).
  wire segments = driver_features_q[VIRTIO_NET_F_HOST_TSO4] || driver_features_q[VIRTIO_NET_F_HOST_TSO6];
  wire acceptable = (driver_features_q & ~OFFERED) == '0 && driver_features_q[VIRTIO_F_VERSION_1]
                 && ((driver_features_q & BY_COMMANDS) == '0 || driver_features_q[VIRTIO_NET_F_CTRL_VQ])
                 && (!segments || driver_features_q[VIRTIO_NET_F_CSUM])
                 && (!driver_features_q[VIRTIO_NET_F_HOST_ECN] || segments);
  assign features = driver_features_q;
  assign enable   = status_q.driver_ok && status_q.features_ok ? enable_q : '0;

  wire [31:0] status_word = merged({queue_select_q, generation_q, status_q}, wdata_q, wstrb_q);
  device_status_t asked;
  assign asked = status_word[7:0];

  logic link_q, config_told_q;               // config_told_q: a change of the configuration waits to be told
  logic announce_q;                          // VIRTIO_NET_S_ANNOUNCE

  always_ff @(posedge clk) begin
    link_q <= link_up;
    if (acts_write && in_common && obeys) begin
      unique case (word)
        4'h0: device_select_q <= merged(device_select_q, wdata_q, wstrb_q);
        4'h2: driver_select_q <= merged(driver_select_q, wdata_q, wstrb_q);
        4'h3: if (!status_q.features_ok && driver_select_q[31:1] == '0) begin
          if (driver_select_q[0]) driver_features_q[63:32] <= merged(driver_features_q[63:32], wdata_q, wstrb_q);
          else driver_features_q[31:0] <= merged(driver_features_q[31:0], wdata_q, wstrb_q);
        end
        4'h4: if (wstrb_q[0]) config_vector_q <= vector(wdata_q[15:0]);
        4'h5: begin
          queue_select_q <= status_word[31:16];
          if (wstrb_q[0]) begin
            status_q             <= asked;
            status_q.unused      <= '0;
            status_q.needs_reset <= status_q.needs_reset;
            status_q.features_ok <= asked.features_ok && (status_q.features_ok || acceptable);
            if (asked == '0) begin
              status_q <= status_q;
              device_q <= D_HALT;
              wait_q   <= '0;
            end
          end
        end
        4'h7: if (wstrb_q[0] && wdata_q[0] && selected) enable_q[index_t'(select.vq)] <= 1'b1;
        default: ;
      endcase
    end
    fresh_q <= reset && (fresh_q || (device_q == D_CLEAR && wait_q == 8'(CLEAR)));
    if (device_q == D_RUN && reset && !fresh_q) begin
      device_q <= D_HALT;
      wait_q   <= '0;
    end
    if (device_q == D_HALT) begin
      wait_q <= idle ? wait_q + 1'b1 : '0;
      if (wait_q == 8'(QUIET)) begin
        device_q <= D_CLEAR;
        wait_q   <= '0;
      end
    end
    if (device_q == D_CLEAR) begin
      wait_q <= wait_q + 1'b1;
      if (wait_q == 8'(CLEAR)) device_q <= D_RUN;
    end
    if (fault.valid) status_q.needs_reset <= 1'b1;
    if (link_q != link_up || mac_set || announced) generation_q <= generation_q + 1'b1;
    if (announced) announce_q <= 1'b0;
    if (link_up && !link_q && status_q.driver_ok) announce_q <= driver_features_q[VIRTIO_NET_F_GUEST_ANNOUNCE];

    // ---- interrupts: one that comes while ISR is read stays ----
    if (acts_read && at_isr) isr_q <= '0;
    if (config_interrupt.valid && config_interrupt.ready) config_told_q <= 1'b1;
    if (queue_interrupt.valid && queue_interrupt.ready) isr_q[0] <= 1'b1;
    if ((fault.valid || link_q != link_up) && status_q.driver_ok) begin
      config_told_q <= 1'b0;
      isr_q[1]      <= 1'b1;
    end

    if (rst || (device_q == D_CLEAR && wait_q == 8'(CLEAR))) begin
      status_q          <= '0;
      driver_features_q <= '0;
      device_select_q   <= '0;
      driver_select_q   <= '0;
      queue_select_q    <= '0;
      config_vector_q   <= VIRTIO_MSI_NO_VECTOR;
      enable_q          <= '0;
      isr_q             <= '0;
      config_told_q     <= 1'b1;
      announce_q        <= 1'b0;
    end
    if (rst) begin
      device_q     <= D_CLEAR;
      fresh_q      <= 1'b0;
      wait_q       <= '0;
      generation_q <= '0;
      link_q       <= link_up;
    end
  end

  assign pairs_set = '{valid: acts_write && obeys && at_q[11:2] == PAIRS_AT[11:2] && wstrb_q[1:0] == '1, pairs: wdata_q[15:0]};

  // A queue without a vector interrupts nobody.
  stream_if #(.T(logic [15:0])) told[2] ();
  stream_if #(.T(logic [15:0])) config_interrupt ();
  stream_if #(.T(logic [15:0])) chosen ();
  assign told[0].valid          = queue_interrupt.valid && queue_interrupt.data != VIRTIO_MSI_NO_VECTOR;
  assign told[0].data           = queue_interrupt.data;
  assign queue_interrupt.ready  = told[0].ready || queue_interrupt.data == VIRTIO_MSI_NO_VECTOR;
  assign config_interrupt.valid = !config_told_q && device_q == D_RUN;
  assign config_interrupt.data  = config_vector_q;
  assign told[1].valid          = config_interrupt.valid && config_vector_q != VIRTIO_MSI_NO_VECTOR;
  assign told[1].data           = config_interrupt.data;
  assign config_interrupt.ready = told[1].ready || config_vector_q == VIRTIO_MSI_NO_VECTOR;
  stream_arbiter #(.T(logic [15:0]), .N(2)) arbiter (.clk, .rst, .in(told), .last('1), .out(chosen));
  assign interrupt.valid = chosen.valid;
  assign interrupt.data  = chosen.data;
  assign chosen.ready    = interrupt.ready;

  // ---- notifications: the value that is written does not matter ----
  wire at_notify = at_q[11:6] == NOTIFY_AT[11:6];
  assign notify_free  = !at_notify || notify.ready;
  assign notify.valid = bus_q == B_ACT && write_q && at_notify;
  assign notify.data  = at_q[QUEUE_W+1:2];

  // ---- why queues have stopped ----
  virtq_error_e faults_q[QUEUES];
  always_ff @(posedge clk) begin
    if (fault.valid) faults_q[index_t'(fault.vq)] <= fault.code;
    if (rst || clear) for (int unsigned i = 0; i < QUEUES; i++) faults_q[i] <= VIRTQ_OK;
  end

  // ---- reading ----
  assign counter_at = '{kind: counter_e'(at_q[PAIR_W+2+:4]), pair: at_q[2+:PAIR_W]};
  queue_named_t at_fault;
  assign at_fault = driver_queue(16'(at_q[6:2]), PAIRS, all_pairs(driver_features_q));
  always_comb begin
    rdata = '0;
    if (in_common) begin
      unique case (word)
        4'h0: rdata = device_select_q;
        4'h1: rdata = device_select_q == 32'd0 ? OFFERED[31:0] : device_select_q == 32'd1 ? OFFERED[63:32] : '0;
        4'h2: rdata = driver_select_q;
        4'h3: rdata = driver_select_q == 32'd0 ? driver_features_q[31:0] : driver_select_q == 32'd1 ? driver_features_q[63:32] : '0;
        4'h4: rdata = {16'(2 * PAIRS + 1), config_vector_q};
        4'h5: rdata = {queue_select_q, generation_q, status_q};
        4'h6: rdata = selected ? {now.vector, now.size} : {VIRTIO_MSI_NO_VECTOR, 16'd0};
        4'h7: rdata = selected ? {queue_select_q, 15'd0, enabled} : '0;      // queue_notify_off: the number of the queue
        4'h8: rdata = selected ? now.desc[31:0] : '0;
        4'h9: rdata = selected ? now.desc[63:32] : '0;
        4'ha: rdata = selected ? now.avail[31:0] : '0;
        4'hb: rdata = selected ? now.avail[63:32] : '0;
        4'hc: rdata = selected ? now.used[31:0] : '0;
        4'hd: rdata = selected ? now.used[63:32] : '0;
        default: ;
      endcase
    end
    if (at_isr) rdata = 32'(isr_q);
    if (at_q[11:5] == DEVICE_AT[11:5]) begin
      unique case (at_q[4:2])
        3'd0: rdata = {mac[23:16], mac[31:24], mac[39:32], mac[47:40]};
        3'd1: rdata = {16'(link_up) << VIRTIO_NET_S_LINK_UP | 16'(announce_q) << VIRTIO_NET_S_ANNOUNCE, mac[7:0], mac[15:8]};
        3'd2: rdata = {mtu, 16'(PAIRS)};
        3'd4: if (OFFERED[VIRTIO_NET_F_RSS]) rdata = {16'(INDIRECTIONS), 8'(HASH_KEY_BYTES), 8'd0};
        3'd5: rdata = 32'(HASHES);
        default: ;
      endcase
    end
    if (at_q[11:7] == FAULT_AT[11:7] && at_fault.valid) rdata = 32'(faults_q[index_t'(at_fault.vq)]);
    if (at_q[11:8] == COUNTERS_AT[11:8]) rdata = counter;
  end
endmodule
