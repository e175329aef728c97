// SPDX-License-Identifier: Apache-2.0

// Write port of a table of one word per QP: while `valid`, `data` is written as the word of QP `index`. Never stalls.
interface roce_qp_write_if
  import roce_pkg::*;
#(
    parameter type T = logic
);
  logic      valid;
  qp_index_t index;
  T          data;

  modport writer(output valid, output index, output data);
  modport table_(input valid, input index, input data);
endinterface
