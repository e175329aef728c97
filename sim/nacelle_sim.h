/* The simulated device: `nacelle_shell` under Verilator, behind a C ABI.
 *
 * One object is one device. It has no thread and no clock of its own: time passes only inside nacelle_sim_step().
 * No function blocks, none touches the network or the terminal, and different objects are independent of each other.
 * All integers are in host byte order; frames are Ethernet frames without preamble and FCS.
 */
#ifndef NACELLE_SIM_H
#define NACELLE_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NACELLE_SIM_ABI 4u

typedef struct nacelle_sim nacelle_sim;

/* What the library was built as. */
typedef struct {
    uint32_t abi;            /* NACELLE_SIM_ABI of the library */
    uint32_t data_w;         /* DATA_W in bits: 64, 128, 256 or 512 */
    uint32_t clock_hz;       /* the clock at which cycles are converted to time */
    uint32_t max_frame;      /* longest Ethernet frame taken, bytes */
    uint64_t dram_bytes;     /* each memory of the device, bytes */
} nacelle_sim_info;

/* How one device is made. Zero in a field selects the default in brackets. */
typedef struct {
    uint32_t abi;                   /* NACELLE_SIM_ABI of the caller; create fails if it differs */
    uint32_t line_rate_mbps;        /* Ethernet rate model [100000]; UINT32_MAX: no limit, one beat a cycle */
    uint32_t dram_latency_cycles;   /* of each memory: read command to first data, and last write data to response [30] */
    uint32_t dram_bytes_per_cycle;  /* each direction [DATA_W / 8] */
    uint64_t random_seed;           /* seeds the model's own randomness, not the device's [1] */
    const char *wave_path;          /* write an FST waveform here [none] */
} nacelle_sim_config;

/* When a frame crossed the MAC interface, in device cycles. */
typedef struct {
    uint64_t first_beat;
    uint64_t last_beat;
} nacelle_sim_stamp;

/* How one memory of the device behaves, in cycles. Random times come from the seed of nacelle_sim_create. */
typedef struct {
    uint32_t latency_cycles;        /* read command to first data, and last write data to response */
    uint32_t jitter_cycles;         /* up to so much more, for each command */
    uint32_t bytes_per_cycle;       /* each direction [DATA_W / 8] */
    uint32_t stall_cycles;          /* for so long it does nothing ... */
    uint32_t stall_every_cycles;    /* ... after so much time, on average. 0: never */
} nacelle_sim_memory;

/* A memory that behaves as DRAM, with banks, rows and refresh: devices/memories/ddr4-2133.toml says what each is. Times are in
 * picoseconds. Commands of one direction are served in their order; a write is answered `latency` after its data was taken. */
typedef struct {
    uint32_t burst_bytes, row_bytes, bank_groups, banks;   /* powers of two */
    uint32_t burst, cl, cwl, trcd, trp, tras, trrd_s, trrd_l, tfaw, tccd_s, tccd_l, twr, twtr, trtw, trtp, trefi, trfc;
    uint32_t latency;
    uint32_t lookahead, writes;                            /* accesses */
} nacelle_sim_dram;

/* Bits that flip by themselves in one memory, from the seed of nacelle_sim_create. */
typedef struct {
    uint32_t one_ppm;           /* chance, millionths of the beats read: a bit of a word of it has flipped ... */
    uint32_t two_ppm;           /* ... or two bits of a word */
    uint32_t controller_ecc;    /* the memory's controller corrects by itself, and answers with SLVERR what it cannot correct */
} nacelle_sim_faults;

typedef struct {
    uint64_t cycles;            /* device time: cycles simulated and cycles skipped */
    uint64_t cycles_simulated;
    uint64_t rx_frames, rx_bytes;   /* into the device */
    uint64_t tx_frames, tx_bytes;   /* out of the device */
    uint64_t tx_idle_beats;     /* cycles between first and last beat of a sent frame without a beat */
    uint64_t dram_reads, dram_read_bytes, dram_writes, dram_write_bytes;   /* of all memories */
    uint64_t dram_last_read, dram_last_write;  /* cycle of the newest read command and of the newest beat written */
    uint64_t dram_flips;        /* bits that have flipped, by chance or by nacelle_sim_flip */
} nacelle_sim_stats;

void nacelle_sim_get_info(nacelle_sim_info *info);

/* Makes a device, in reset. Returns NULL and a sentence in error[] on failure. */
nacelle_sim *nacelle_sim_create(const nacelle_sim_config *config, char *error, size_t error_size);
void nacelle_sim_destroy(nacelle_sim *sim);

/* Runs until `cycles` have passed or, with stop_on_frame, a frame has been sent. Returns the cycles that passed. */
uint64_t nacelle_sim_step(nacelle_sim *sim, uint64_t cycles, int stop_on_frame);

/* True if nothing moves inside the device and no frame waits to enter: only timers can change its state. */
int nacelle_sim_idle(const nacelle_sim *sim);

/* Lets `cycles` of device time pass in one step. Only while idle: otherwise does nothing and returns 0.
 * Timers due within it fire at its end. Returns the cycles that passed. */
uint64_t nacelle_sim_skip(nacelle_sim *sim, uint64_t cycles);

/* Queues a frame for the device. Returns 0, or -1 if it is empty or longer than max_frame, or -2 if 1024 frames wait. */
int nacelle_sim_push_frame(nacelle_sim *sim, const uint8_t *frame, size_t length);

/* When the oldest pushed frame not yet reported entered. Returns 1 and the stamp, or 0 if none has entered since. */
int nacelle_sim_pop_rx_stamp(nacelle_sim *sim, nacelle_sim_stamp *stamp);

/* Takes the oldest frame that the device sent. Returns its length, 0 if there is none, -1 if it is longer than capacity
 * (it stays). */
int64_t nacelle_sim_pull_frame(nacelle_sim *sim, uint8_t *frame, size_t capacity, nacelle_sim_stamp *stamp);

/* The device's registers, over its AXI4-Lite port. Steps the device some cycles. Returns 0, or -1 on an error response. */
int nacelle_sim_reg_read(nacelle_sim *sim, uint32_t address, uint32_t *value);
int nacelle_sim_reg_write(nacelle_sim *sim, uint32_t address, uint32_t value);

/* Sets the timing of a memory from now on; only while no access is under way. Returns 0, or -1 if the device has no such memory. */
int nacelle_sim_set_memory(nacelle_sim *sim, uint32_t memory, const nacelle_sim_memory *timing);

/* Sets the kind of a memory, or with NULL one of fixed latency as nacelle_sim_set_memory sets it; only while no access is under way.
 * Until then it is as the device's description says. Returns 0, or -1 if there is no such memory or a value is impossible. */
int nacelle_sim_set_dram(nacelle_sim *sim, uint32_t memory, const nacelle_sim_dram *dram);

/* Sets what goes wrong in a memory from now on. Returns 0, or -1 if there is no such memory, or if its controller shall correct
 * words that the device itself keeps by a code. */
int nacelle_sim_set_faults(nacelle_sim *sim, uint32_t memory, const nacelle_sim_faults *faults);

/* Flips bits of the word of 8 bytes that holds `address`: `data` of its bits, `check` of its check bits. Returns 0, or -1 if the
 * address is outside of memory, or the memory has no check bits. */
int nacelle_sim_flip(nacelle_sim *sim, uint64_t address, uint64_t data, uint8_t check);

/* Device memory without a simulated access, at no cost in simulated time. Returns 0, or -1 if the range is outside of it. */
int nacelle_sim_dram_read(nacelle_sim *sim, uint64_t address, void *data, size_t length);
int nacelle_sim_dram_write(nacelle_sim *sim, uint64_t address, const void *data, size_t length);

void nacelle_sim_get_stats(const nacelle_sim *sim, nacelle_sim_stats *stats);

/* ---- two devices on a line ---- */

typedef struct nacelle_sim_line nacelle_sim_line;

/* What happens to the frames, in both directions alike. Zero: it does not happen. */
typedef struct {
    uint32_t abi;             /* NACELLE_SIM_ABI of the caller */
    uint32_t delay_cycles;    /* from the last beat out of one device to the first into the other, less 1 */
    uint32_t rate_mbps;       /* of a switch in the middle, which holds frames back [no switch] */
    uint32_t queue_bytes;     /* what the switch can hold; more is dropped [everything] */
    uint32_t mark_bytes;      /* it marks packets behind more than this as having experienced congestion [none] */
    uint32_t loss_ppm, corrupt_ppm, duplicate_ppm, reorder_ppm;  /* chances, millionths of the frames */
    uint32_t reorder_cycles;  /* a delayed or repeated frame comes up to this later */
    uint64_t random_seed;
} nacelle_sim_line_config;

typedef struct {
    uint64_t sent, lost, corrupted, duplicated, delayed, overflowed, marked;
} nacelle_sim_line_stats;

/* Joins two devices, which must have the same age in cycles. From then on they are stepped by nacelle_sim_line_step, and by register
 * accesses, which step the other one too. Returns NULL and a sentence in error[] on failure. */
nacelle_sim_line *nacelle_sim_line_create(nacelle_sim *a, nacelle_sim *b, const nacelle_sim_line_config *config, char *error,
                                          size_t error_size);
/* Takes the line away; the devices stay. */
void nacelle_sim_line_destroy(nacelle_sim_line *line);

/* Runs both for `cycles`. Time in which both are idle and no frame is under way is skipped if `skip` is set. */
void nacelle_sim_line_step(nacelle_sim_line *line, uint64_t cycles, int skip);

/* What has happened to the frames of a (direction 0) or b (direction 1). */
void nacelle_sim_line_get_stats(const nacelle_sim_line *line, int direction, nacelle_sim_line_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
