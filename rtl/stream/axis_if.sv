// SPDX-License-Identifier: Apache-2.0

// AXI4-Stream (AMBA IHI 0051) as Nacelle uses it: DATA_W bits a beat, byte 0 of a packet in tdata[7:0] of the first beat.
// tkeep is contiguous from bit 0 and full in every beat but the last. A packet has at least one beat with one byte.
// tuser is valid with tlast: the packet is bad and must have no effect (at the MAC: wrong FCS).
interface axis_if #(
    parameter int unsigned DATA_W = 512
);
  logic [DATA_W-1:0]   tdata;
  logic [DATA_W/8-1:0] tkeep;
  logic                tlast;
  logic                tuser;
  logic                tvalid;
  logic                tready;

  modport source(output tdata, output tkeep, output tlast, output tuser, output tvalid, input tready);
  modport sink(input tdata, input tkeep, input tlast, input tuser, input tvalid, output tready);
  modport monitor(input tdata, input tkeep, input tlast, input tuser, input tvalid, input tready);
endinterface
