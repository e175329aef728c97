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

#define NACELLE_SIM_ABI 7u

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

/* Runs until `cycles` have passed, or something has happened that is a bit of `stop`. Returns the cycles that passed. */
uint64_t nacelle_sim_step(nacelle_sim *sim, uint64_t cycles, int stop);
#define NACELLE_SIM_STOP_FRAME 1   /* a frame waits that the device has sent */
#define NACELLE_SIM_STOP_SLOT 2    /* an interrupt, a message, a fault or an answer of the slot waits */
#define NACELLE_SIM_STOP_IDLE 4    /* the device is idle, see nacelle_sim_idle */

/* True if nothing moves inside the device and no frame waits to enter: only timers can change its state. */
int nacelle_sim_idle(const nacelle_sim *sim);

/* Whether the MAC says that the line works; at first it does. The driver of a network card is told, frames pass all the same. */
void nacelle_sim_set_link(nacelle_sim *sim, int up);

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

/* ---- a device in a slot ----
 *
 * Of a device that was built with `[pcie]`; for any other these functions do nothing, and return -1, or 0 if they take what waits. The program is
 * the host of each of its functions, which are numbered: 0 is the device, 1 the network card of one that has it. It sets what
 * configuration space says, gives the device memory, accesses its BARs and takes its interrupts. docs/reference/slot-model.md says what the
 * model of the slot does. */

/* The slot. Zero in a field selects the default in brackets; chances and options are off. Times are in nanoseconds, and are rounded up to cycles
 * of the device. */
typedef struct {
    uint32_t generation, lanes;           /* of the link: 1 to 5 [3], 1 to 16 [16] */
    uint32_t mps, mrrs, rcb, tags;        /* largest payload and read request [256, 512], completion boundary [64], tags a device may use [64] */
    uint32_t request_bytes, completion_bytes;       /* what a TLP takes of the link beside its payload [24, 20] */
    uint32_t link_ns;                     /* one way, without the time of its bytes: a part of all below [80] */
    uint32_t write_ns, read_ns;           /* 64 bytes of the device: until they can be read in host memory, until they are back [172, 620] */
    uint32_t register_write_ns, register_read_ns;   /* of the host: until it is at the device, until the answer is back [440, 900] */
    uint32_t posted_headers, posted_data, non_posted_headers;   /* credits of the root port; data in 16 bytes [64, 1024, 64] */
    uint32_t credit_stall_ns, credit_stall_every_ns;            /* it returns none for so long, with so much time between on average */
    uint32_t split;                       /* completions: 0: as large as possible, 1: at every RCB, 2: at random ones */
    uint32_t jitter_ns, reorder;          /* a completion is up to so much later; 1: those of other tags may pass it */
    uint32_t tail_ppm, tail_ns;           /* reads that take so much longer */
    uint32_t iommu_entries, iommu_miss_ns;          /* pages that the IOMMU knows, 0: there is none; what another costs [500] */
    uint32_t fault_aborts;                /* reads of what is not mapped: 0: UR, 1: CA */
    uint32_t unsupported_ppm, abort_ppm, poison_ppm, loss_ppm;  /* reads answered with UR, with CA, with wrong data that is marked, not at all */
    uint32_t host_reads;                  /* of the host, under way at a time: 1 to 64 [32] */
    uint32_t host_timeout_us;             /* then the host gives one up [50000] */
    uint32_t reserved;
    uint64_t random_seed;                 /* [1] */
} nacelle_sim_slot;

/* What a function has for a slot: for its configuration space. */
typedef struct {
    uint64_t bar_bytes[6];        /* 0: there is none; all are of 64 bits */
    uint32_t vectors;             /* of MSI-X */
    uint32_t msix_table, msix_pending;   /* in BAR 0 */
    uint32_t reserved;
} nacelle_sim_slot_facts;

/* What configuration space says of a function. */
typedef struct {
    uint32_t id;                  /* bus, device and function, from bit 15 on; not 0, which is the root complex, nor that of the other function [0x100, 0x101] */
    uint32_t mps, mrrs, rcb;      /* bytes; at first those of the slot, of which none may be exceeded */
    uint32_t extended_tags, memory_space, bus_master, msix_enable, msix_mask;
} nacelle_sim_slot_space;

/* How an access of the host has ended. */
typedef struct {
    uint64_t token;
    uint64_t issued, finished;    /* cycles: of a write when the device has taken it */
    uint32_t status;              /* NACELLE_SIM_SLOT_... */
    uint32_t length;              /* of what was read; 0: a write, or nothing */
    uint8_t data[64];
} nacelle_sim_slot_answer;
#define NACELLE_SIM_SLOT_OK 0
#define NACELLE_SIM_SLOT_UNSUPPORTED 1   /* as the status field of a completion */
#define NACELLE_SIM_SLOT_ABORT 4
#define NACELLE_SIM_SLOT_TIMEOUT 16
#define NACELLE_SIM_SLOT_POISONED 17

/* An access of the device to memory that was mapped without a pointer. */
typedef struct {
    uint64_t token, address;
    uint32_t length;              /* up to 4096 */
    uint32_t write;
    uint8_t data[4096];           /* of a write */
} nacelle_sim_slot_message;

typedef struct {
    uint64_t address;
    uint32_t data;
    uint32_t reserved;
} nacelle_sim_slot_interrupt;

/* An access of the device to what is not mapped, or not for this kind of access. */
typedef struct {
    uint64_t address;
    uint32_t length, write;
} nacelle_sim_slot_fault;

typedef struct {
    uint64_t up_tlps, up_bytes, up_wire_bytes;          /* from the device: payload, and all that passed the link */
    uint64_t down_tlps, down_bytes, down_wire_bytes;    /* to the device */
    uint64_t writes, write_bytes, reads, read_bytes;    /* requests of the device */
    uint64_t busy_cycles;        /* a TLP waited for the link */
    uint64_t posted_dry_cycles, non_posted_dry_cycles;  /* there was no credit */
    uint64_t interrupts, messages, faults, tlb_misses, peer_tlps;
    uint64_t unsupported, aborted, poisoned, lost;      /* reads that were to go wrong by chance */
    uint64_t violations;         /* of the rules of PCI Express, by the device: nacelle_sim_slot_violation */
} nacelle_sim_slot_stats;

/* Sets the slot, and all that configuration space says to what it is after reset: only while no TLP is under way. Returns 0, or -1 and a sentence
 * in error[]. */
int nacelle_sim_slot_set(nacelle_sim *sim, const nacelle_sim_slot *slot, char *error, size_t error_size);
/* The slot with its defaults in place, and the same in words, for what quotes a figure. */
int nacelle_sim_slot_get(nacelle_sim *sim, nacelle_sim_slot *slot);
int nacelle_sim_slot_text(nacelle_sim *sim, char *text, size_t size);

/* -1: there is no such function. */
int nacelle_sim_slot_get_facts(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_facts *facts);

/* What configuration space says of a function from now on. -1: a size that the slot does not have, or the other one's id. */
int nacelle_sim_slot_set_space(nacelle_sim *sim, uint32_t function, const nacelle_sim_slot_space *space);
/* The bus address of a BAR of a function, a multiple of its size: where peers find it. */
int nacelle_sim_slot_set_bar(nacelle_sim *sim, uint32_t function, uint32_t bar, uint64_t address);

/* Begins a function-level reset, which clears bus_master of its space. _done: 1 when nothing of the function is under way and it has ended, else 0. */
int nacelle_sim_slot_reset(nacelle_sim *sim, uint32_t function);
int nacelle_sim_slot_reset_done(nacelle_sim *sim, uint32_t function);

/* Gives a function host memory: pages of 4 KiB from an IO virtual address of this function on. `memory` must stay until it is taken away; NULL:
 * each access is a message. `access`: what the function may do. Returns 0, or -1 if these are no whole pages, or some are given already. */
int nacelle_sim_slot_map(nacelle_sim *sim, uint32_t function, uint64_t address, uint64_t size, void *memory, uint32_t access);
#define NACELLE_SIM_HOST_READ 1
#define NACELLE_SIM_HOST_WRITE 2
/* Takes it away: from now on no access begins. Returns 0 when none is under way, 1 if messages still wait for an answer (call it again), -1 if
 * there is no such range. */
int nacelle_sim_slot_unmap(nacelle_sim *sim, uint32_t function, uint64_t address, uint64_t size);

/* An access of the host to a BAR of a function: a read of 1 to 64 bytes, a write of 1 to 4096. In the order of the calls. Returns a token, or -1 if it is of no
 * such length or not in the BAR, or -2 if 1024 of this function wait. */
int64_t nacelle_sim_slot_read(nacelle_sim *sim, uint32_t function, uint32_t bar, uint64_t offset, uint32_t length);
int64_t nacelle_sim_slot_write(nacelle_sim *sim, uint32_t function, uint32_t bar, uint64_t offset, const void *data, uint32_t length);
/* Takes the oldest answer of a function. Returns 1, or 0 if there is none. */
int nacelle_sim_slot_pull_answer(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_answer *answer);
/* Steps the device until this access is answered, and takes its answer. Returns its status, or -1 if there is no such access: nobody answers
 * messages meanwhile. */
int nacelle_sim_slot_wait(nacelle_sim *sim, int64_t token, nacelle_sim_slot_answer *answer);

/* Takes the oldest interrupt of a function: all that it has written before can be read. Returns 1, or 0 if there is none. */
int nacelle_sim_slot_pull_interrupt(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_interrupt *interrupt);
/* Takes the oldest message of a function. Returns 1, or 0 if there is none. Each is to be answered, writes as well: these
 * keep their credits until then. */
int nacelle_sim_slot_pull_message(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_message *message);
/* The answer: of a read the data, NULL: it cannot be read. Returns 0, or -1 if there is no such message. */
int nacelle_sim_slot_answer_message(nacelle_sim *sim, uint64_t token, const void *data);
/* Takes the oldest fault of a function. Returns 1, or 0 if there is none. The newest 1024 of each are kept. */
int nacelle_sim_slot_pull_fault(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_fault *fault);

int nacelle_sim_slot_get_stats(nacelle_sim *sim, nacelle_sim_slot_stats *stats);
/* The first rule of PCI Express that the device has broken, in words. Returns how many times it has broken one. */
int64_t nacelle_sim_slot_violation(nacelle_sim *sim, char *text, size_t size);

/* Two devices reach each other's BARs from now on, in `latency_ns`, by a switch or the root complex. Both must have the same age in cycles, and
 * be stepped together. Returns 0, or -1. They must be destroyed together. */
int nacelle_sim_slot_join(nacelle_sim *a, nacelle_sim *b, uint32_t latency_ns);

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

/* The same with idle time skipped, until something has happened to one of the devices that is a bit of `stop`: NACELLE_SIM_STOP_SLOT, or
 * NACELLE_SIM_STOP_IDLE: both are idle and no frame is under way. Returns the cycles that passed. */
uint64_t nacelle_sim_line_run(nacelle_sim_line *line, uint64_t cycles, int stop);

/* What has happened to the frames of a (direction 0) or b (direction 1). */
void nacelle_sim_line_get_stats(const nacelle_sim_line *line, int direction, nacelle_sim_line_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
