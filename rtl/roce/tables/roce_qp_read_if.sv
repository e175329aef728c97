// SPDX-License-Identifier: Apache-2.0

// Read port of tables of one word per QP: `data` is the word of QP `index` a cycle after `read`, until the next read. A write in
// the cycle of `read` is visible at the next read.
interface roce_qp_read_if
  import roce_pkg::*;
#(
    parameter type T = logic
);
  logic      read;
  qp_index_t index;
  T          data;

  modport reader(output read, output index, input data);
  modport table_(input read, input index, output data);
endinterface
