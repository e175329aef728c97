// SPDX-License-Identifier: Apache-2.0

// A stream of values of type T with valid/ready hand-shake: a value passes in each cycle in which both are high.
// As AXI4-Stream has it (AMBA IHI 0051, 2.2): once valid is high it stays, and data with it, until ready answers;
// valid never waits for ready.
interface stream_if #(
    parameter type T = logic
);
  logic valid;
  logic ready;
  T     data;

  modport source(output valid, output data, input ready);
  modport sink(input valid, input data, output ready);
  modport monitor(input valid, input data, input ready);
endinterface
