/* SPDX-License-Identifier: Apache-2.0 */
/* A call by a link that is named: links ADDRESS LINK SOURCE. */
#include "expect.h"

int main(int argc, char *argv[]) {
  if (argc != 4) {
    fprintf(stderr, "usage: links ADDRESS LINK SOURCE\n");
    return 2;
  }
  unsigned char bytes[5000] = {0};
  const nacelle_region region = nacelle_inout(bytes, sizeof bytes);
  nacelle_device_options options = NACELLE_DEVICE_OPTIONS_INIT;
  options.link_name = argv[2];
  options.source = argv[3];
  nacelle_device device;
  nacelle_call call;
  EXPECT(NACELLE_OK, nacelle_device_open(argv[1], &options, &device));
  EXPECT(NACELLE_OK, nacelle_call_create(device, 1, &region, 1, NULL, &call));
  EXPECT(NACELLE_OK, nacelle_call_invoke(call));
  EXPECT(NACELLE_OK, nacelle_call_wait(call, -1));
  CHECK(bytes[0] == 1 && bytes[sizeof bytes - 1] == 1);
  EXPECT(NACELLE_OK, nacelle_call_close(call));
  EXPECT(NACELLE_OK, nacelle_device_close(device));
  printf("%d failures\n", failures);
  return failures != 0;
}
