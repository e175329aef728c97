// SPDX-License-Identifier: Apache-2.0

// Images that come by the network (docs/reference/images.md): their file, the commands and errors of image_store, and the streams between
// its parts.
package images_pkg;

  // ---- SHA-256 ----
  typedef struct packed {
    logic [31:0] data;    // the first byte highest
    logic        last;    // of the message,
    logic [2:0]  bytes;   // and then so many, 0 to 4
  } sha256_word_t;
endpackage
