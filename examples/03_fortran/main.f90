! SPDX-License-Identifier: Apache-2.0
! Multiplies two matrices on a device: matmul ADDRESS.
program main
  use, intrinsic :: iso_c_binding
  use nacelle
  implicit none

  ! The function of the kernel `matmul`, and the beginning of its arguments (docs/reference/kernels.md).
  integer, parameter :: matmul_function = 16
  integer(c_int32_t), parameter :: magic = int(z'4d4d414e', c_int32_t), float32 = 1
  integer(c_int32_t), parameter :: m = 20, n = 30, k = 40

  type(nacelle_device) :: device
  type(nacelle_call) :: product
  character(100) :: address
  integer(c_int32_t), target, asynchronous :: arguments(16)
  real(c_float), target, asynchronous :: a(m, k), b(k, n), c(m, n)
  integer :: i, j

  if (command_argument_count() /= 1) error stop 'usage: matmul ADDRESS'
  call get_command_argument(1, address)

  a = reshape([(real(mod(i, 7)), i = 1, size(a))], shape(a))
  b = reshape([(real(mod(j, 5) - 2), j = 1, size(b))], shape(b))
  ! A device has matrices row by row, Fortran column by column: the device sees the transposes, and (a b)' = b' a'.
  arguments = 0
  arguments(1:5) = [magic, float32, n, m, k]

  call nacelle_check(nacelle_open(address, device))
  call nacelle_check(nacelle_create(device, matmul_function, &
    [nacelle_input(c_loc(arguments), c_sizeof(arguments)), nacelle_input(c_loc(b), c_sizeof(b)), &
     nacelle_input(c_loc(a), c_sizeof(a)), nacelle_output(c_loc(c), c_sizeof(c))], product))
  call nacelle_check(nacelle_call_invoke(product))
  call nacelle_check(nacelle_call_wait(product, -1_c_int64_t))
  call nacelle_check(nacelle_call_close(product))
  call nacelle_check(nacelle_device_close(device))

  if (any(abs(c - matmul(a, b)) > 0)) error stop 'the product is wrong'
  print '(a, i0, a, i0, a)', 'the product of ', m, 'x', n, ' is right'
end program main
