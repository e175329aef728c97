// SPDX-License-Identifier: Apache-2.0

// Device time: a count of cycles that wraps (48 bits: 13.03 days at 250 MHz). All comparisons of times go through here: they
// compare modulo 2^TIME_W, so they are right as long as the two times are less than half of the range apart (6.5 days).
// A time that is kept for longer than that must be dropped, or renewed, before.
package time_pkg;
  localparam int unsigned TIME_W = 48;
  typedef logic [TIME_W-1:0] time_t;

  // a comes before b.
  function automatic logic time_before(time_t a, time_t b);
    time_t difference;
    difference = a - b;
    return difference[TIME_W-1];
  endfunction

  // The deadline is now, or has passed.
  function automatic logic time_reached(time_t now, time_t deadline);
    return !time_before(now, deadline);
  endfunction

  // The deadline is still to come. For deadlines that are never set as far as 2^bits cycles ahead: one that seems to be further
  // away has passed, so the result stays right however late it is used, except for 2^bits cycles of each range.
  function automatic logic time_ahead(time_t now, time_t deadline, int unsigned bits);
    time_t after;   // cycles between the next one and the deadline
    after = deadline + ~now;
    return (after >> bits) == '0;
  endfunction
endpackage
