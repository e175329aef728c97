// SPDX-License-Identifier: Apache-2.0

// The sensors of a board by their registers (sensors.rdl): what a monitor of the board gave last. The registers are one block RAM, in which names,
// kinds and what else is constant are from the start; it is written in turns of four cycles: the value of a reading, its state, the time, and a
// value that is too old. A reading is taken within 7 cycles, and then seen. A read takes 4 cycles (axil_access).
//
// A value that no other has followed for 2^32 to 2^33 cycles is none any more, so that a monitor that hangs does not look well: each time that the
// upper bits of the time change, all are visited, and those that did not come since the last time are taken back. After reset likewise, within 64 cycles.
module board_sensors
  import sensors_pkg::*;
  import sensors_regs_pkg::*;
#(
    parameter int unsigned SENSORS = 8,                        // 1 to MAX_SENSORS
    parameter logic [MAX_SENSORS-1:0][127:0] NAMES = '0,       // the first character lowest
    parameter logic [MAX_SENSORS-1:0][7:0]   KINDS = '0,
    parameter logic [31:0] CLOCK_HZ = 250_000_000,
    parameter logic [31:0] NEXT = '0                           // the register block after this one
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,       // device cycles; may jump ahead
    stream_if.sink      reading,   // sensor_reading_t
    axil_if.slave       bus        // 12 bits of address
);
  if (SENSORS < 1 || SENSORS > MAX_SENSORS) begin : g_bad
    $fatal(1, "board_sensors: SENSORS is %0d; it must be 1 to %0d", SENSORS, MAX_SENSORS);
  end

  localparam int unsigned WORDS = 32'(AT_NAME) / 4 + NAME_WORDS;
  typedef logic [$clog2(WORDS)-1:0] word_t;
  function automatic word_t word(logic [11:0] address);
    return address[2 +: $bits(word_t)];
  endfunction
  if (KIND_WORDS != MAX_SENSORS || VALUE_WORDS != MAX_SENSORS || STATE_WORDS != MAX_SENSORS || NAME_WORDS != 4 * MAX_SENSORS
      || AT_VALUE[5:0] != '0 || AT_STATE[5:0] != '0) begin : g_check
    $fatal(1, "board_sensors: the arrays of registers must have a place for each of %0d sensors, where its number is bits of the address", MAX_SENSORS);
  end

  typedef enum logic [1:0] {
    TURN_VALUE,
    TURN_STATE,
    TURN_NOW,
    TURN_OLD
  } turn_e;

  turn_e              turn_q;
  logic               begun_q;             // the value of the reading is written
  logic               visiting_q, epoch_q;
  sensor_t            visited_q;
  logic [SENSORS-1:0] fresh_q;             // came since all were visited last
  logic               write;
  word_t              write_at;
  logic [31:0]        write_data, read_q;
  logic [11:0]        at;
  sensor_reading_t    given;
  assign given = reading.data;
  wire exists = 32'(given.sensor) < SENSORS;
  wire [23:0] ticks = now[39:16];
  wire [MAX_SENSORS-1:0] fresh = MAX_SENSORS'(fresh_q);

  assign reading.ready = turn_q == TURN_STATE && begun_q;

  always_comb begin
    unique case (turn_q)
      TURN_VALUE: begin
        write      = reading.valid && exists;
        write_at   = word(AT_VALUE) | word_t'(given.sensor);
        write_data = given.value;
      end
      TURN_STATE: begin
        write      = begun_q && exists;
        write_at   = word(AT_STATE) | word_t'(given.sensor);
        write_data = {6'd0, given.simulated, given.known, ticks};
      end
      TURN_NOW: begin
        write      = 1'b1;
        write_at   = word(AT_NOW);
        write_data = 32'(ticks);
      end
      default: begin
        write      = visiting_q && !fresh[visited_q];
        write_at   = word(AT_STATE) | word_t'(visited_q);
        write_data = '0;
      end
    endcase
  end

  (* ram_style = "block" *) logic [31:0] words[WORDS];
  initial begin
    for (int unsigned i = 0; i < WORDS; i++) words[i] = '0;
    words[word(AT_TYPE)]     = BLOCK_TYPE;
    words[word(AT_VERSION)]  = BLOCK_VERSION;
    words[word(AT_NEXT)]     = NEXT;
    words[word(AT_CLOCK_HZ)] = CLOCK_HZ;
    words[word(AT_SENSORS)]  = SENSORS;
    for (int unsigned i = 0; i < MAX_SENSORS; i++) begin
      words[32'(word(AT_KIND)) + i] = 32'(KINDS[i]);
      for (int unsigned k = 0; k < 4; k++) words[32'(word(AT_NAME)) + 4 * i + k] = NAMES[i][32*k +: 32];
    end
  end
  always_ff @(posedge clk) if (write) words[write_at] <= write_data;
  always_ff @(posedge clk) read_q <= words[word(at)];

  always_ff @(posedge clk) begin
    turn_q <= turn_e'(turn_q + 2'd1);
    if (turn_q == TURN_VALUE) begun_q <= reading.valid;
    if (turn_q == TURN_OLD && visiting_q) begin
      visited_q  <= visited_q + 1'b1;
      visiting_q <= !(&visited_q);
    end
    if (!visiting_q && epoch_q != now[32]) begin
      visiting_q <= 1'b1;
      epoch_q    <= now[32];
    end
    for (int unsigned i = 0; i < SENSORS; i++) begin
      if (reading.ready && given.sensor == sensor_t'(i)) fresh_q[i] <= 1'b1;
      if (turn_q == TURN_OLD && visiting_q && visited_q == sensor_t'(i)) fresh_q[i] <= 1'b0;
    end
    if (rst) begin
      turn_q     <= TURN_VALUE;
      begun_q    <= 1'b0;
      epoch_q    <= now[32];
      visiting_q <= 1'b1;
      visited_q  <= '0;
      fresh_q    <= '0;
    end
  end

  axil_access access (
      .clk, .rst, .bus, .at, .write(), .wdata(), .readable(readable(at)), .writable(writable(at)), .rdata(read_q), .idle()
  );
endmodule
