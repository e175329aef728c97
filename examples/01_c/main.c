/* SPDX-License-Identifier: Apache-2.0 */
/* Adds one to each byte of a text, on a device: increment ADDRESS. */
#include <nacelle.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The function of the kernel `increment`, which every device has. */
#define INCREMENT 1

/* Ends the program with the reason, if there is one. */
static void check(nacelle_result result) {
  if (result != NACELLE_OK) {
    fprintf(stderr, "error %u: %s\n", result, nacelle_last_error());
    exit(EXIT_FAILURE);
  }
}

int main(int argc, char *argv[]) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s ADDRESS\n", argv[0]);
    return 2;
  }
  nacelle_device device;
  check(nacelle_device_open(argv[1], NULL, &device));

  /* The device reads the text here, and writes it back to the same place. */
  char text[] = "GdkknVnqkc";
  const nacelle_region regions[] = {nacelle_inout(text, strlen(text))};
  nacelle_call call;
  check(nacelle_call_create(device, INCREMENT, regions, 1, NULL, &call));

  /* Start, and do something else until it is done. */
  check(nacelle_call_invoke(call));
  unsigned long others = 0;
  for (bool done = false; !done; ++others) {
    check(nacelle_call_test(call, &done));
  }
  printf("%s, after %lu looks\n", text, others);

  /* The regions stay: another call costs its data only. This time, wait. */
  memcpy(text, "@f`hm-----", strlen(text));
  check(nacelle_call_invoke(call));
  check(nacelle_call_wait(call, -1));
  printf("%s\n", text);

  check(nacelle_call_close(call));
  check(nacelle_device_close(device));
  return 0;
}
