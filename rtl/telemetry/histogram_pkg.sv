// SPDX-License-Identifier: Apache-2.0

// What is measured of calls, and where it is in the memory of histograms (docs/reference/histograms.md).
package histogram_pkg;
  localparam int unsigned SOCKETS_MAX = 16;
  localparam int unsigned TIME_W = 40;        // of times in cycles: they count modulo 2^TIME_W
  localparam int unsigned DEPTH_W = 13;       // of calls at a socket: one of every context
  localparam int unsigned SUM_W = 56;

  typedef logic [3:0] socket_t;
  typedef logic [TIME_W-1:0] time_t;
  typedef logic [SUM_W-1:0] sum_t;

  typedef enum logic [1:0] {
    LATENCY,   // cycles from the arrival of a call to its result
    RUN,       // cycles of these that it had its socket
    QUEUE      // calls that the socket had when another one came
  } histogram_e;

  typedef struct packed {
    histogram_e histogram;
    socket_t    socket;
    time_t      value;
  } sample_t;

  // Bin b of a time has what is below 2^(FIRST + b) and in no bin before; that of a depth what is below 2^b. The last has the rest.
  localparam int unsigned FIRST = 8;
  localparam int unsigned TIME_BINS = 24;
  localparam int unsigned QUEUE_BINS = 8;

  // A row of the memory is a bin of every socket.
  typedef logic [5:0] row_t;
  localparam row_t SUM_ROW = 6'd2;
  localparam row_t QUEUE_ROW = SUM_ROW + 6'd6;
  localparam row_t LATENCY_ROW = QUEUE_ROW + row_t'(QUEUE_BINS);
  localparam row_t RUN_ROW = LATENCY_ROW + row_t'(TIME_BINS);

  typedef struct packed {
    row_t    row;
    socket_t socket;
  } bin_t;

  function automatic bin_t bin_of(sample_t sample);
    logic [TIME_W-FIRST-1:0] value;   // from where the bins begin
    row_t bits;                       // that it has
    row_t last, first;
    value = sample.histogram == QUEUE ? ($bits(value))'(sample.value[DEPTH_W-1:0]) : sample.value[TIME_W-1:FIRST];
    last  = sample.histogram == QUEUE ? row_t'(QUEUE_BINS - 1) : row_t'(TIME_BINS - 1);
    first = sample.histogram == QUEUE ? QUEUE_ROW : sample.histogram == RUN ? RUN_ROW : LATENCY_ROW;
    bits  = '0;
    for (int unsigned i = 0; i < $bits(value); i++) if (value[i]) bits = row_t'(i + 1);
    return '{row: first + (bits > last ? last : bits), socket: sample.socket};
  endfunction
endpackage
