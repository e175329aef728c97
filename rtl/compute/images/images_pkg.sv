// SPDX-License-Identifier: Apache-2.0

// Images that come by the network (docs/reference/images.md): their file, the commands and errors of image_store, and the streams between
// its parts. Numbers in a file are little-endian.
package images_pkg;

  // ---- SHA-256 ----
  typedef struct packed {
    logic [31:0] data;    // the first byte highest
    logic        last;    // of the message,
    logic [2:0]  bytes;   // and then so many, 0 to 4
  } sha256_word_t;

  function automatic logic [31:0] swapped(logic [31:0] word);
    return {word[7:0], word[15:8], word[23:16], word[31:24]};
  endfunction

  // ---- the file: a header, the bitstream, the SHA-256 of both, and the HMAC-SHA-256 of that digest ----
  localparam logic [31:0] IMAGE_MAGIC = 32'h474d494e;   // "NIMG"
  localparam logic [31:0] IMAGE_VERSION = 32'd1;
  localparam int unsigned IMAGE_HEAD_WORDS = 24;
  localparam int unsigned IMAGE_TAIL_WORDS = 16;

  // Words of the header.
  localparam logic [4:0] HEAD_MAGIC = 5'd0, HEAD_VERSION = 5'd1, HEAD_BUILD_LO = 5'd2, HEAD_BUILD_HI = 5'd3;
  localparam logic [4:0] HEAD_SOCKET = 5'd4, HEAD_LENGTH = 5'd5;
  localparam logic [4:0] HEAD_IDENTITY = 5'd6, HEAD_IDENTITY_END = 5'd21;

  // ---- the store ----
  localparam int unsigned MAX_SLOTS = 4;
  typedef logic [1:0] image_slot_t;
  typedef logic [23:0] store_word_t;      // of the store: 64 MiB

  // An access to the store, one word; and its answer, for a write as well.
  typedef struct packed {
    logic        write;
    store_word_t word;
    logic [31:0] data;
  } store_access_t;
  typedef struct packed {
    logic        error;                   // memory's
    logic [31:0] data;
  } store_answer_t;

  localparam logic [31:0] STORE_BEGIN = 32'd1, STORE_VERIFY = 32'd2, STORE_FORGET = 32'd3;

  typedef enum logic [3:0] {
    STORE_OK,
    STORE_BAD_COMMAND,      // no such command
    STORE_BAD_SLOT,         // no such place
    STORE_NO_KEY,           // no key is set
    STORE_IN_USE,           // a socket holds the image in the place, or it is being loaded
    STORE_NO_UPLOAD,        // nothing to verify
    STORE_BAD_HEADER,       // not an image's magic and version, or a reserved word that is not 0
    STORE_BAD_BUILD,        // of another build
    STORE_BAD_SOCKET,       // of no socket with several images
    STORE_BAD_LENGTH,       // not as long as it says
    STORE_BAD_DIGEST,       // the digest is not that of what came
    STORE_BAD_SIGNATURE,    // the digest is not signed with this key
    STORE_MEMORY            // memory answered with an error
  } store_error_e;
endpackage
