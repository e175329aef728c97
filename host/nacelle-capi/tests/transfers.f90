! SPDX-License-Identifier: Apache-2.0
! Transfers from Fortran, once in every way: between this program and its own windows, and to memory of a device: transfers ADDRESS.
module callbacks
  use, intrinsic :: iso_c_binding
  use nacelle
  implicit none

  ! What the callbacks have seen.
  type, bind(C) :: log
    integer(c_int32_t) :: writes = 0
    integer(c_int32_t) :: reads = 0
    integer(c_int32_t) :: label = 0
    integer(c_int64_t) :: total = 0
  end type

contains

  ! Doubles what was written in place, and adds it up; refuses the label 9.
  recursive integer(c_int32_t) function written(incoming, data) bind(C) result(code)
    type(nacelle_incoming), intent(in) :: incoming
    type(c_ptr), value :: data
    type(log), pointer :: seen
    integer(c_int32_t), pointer :: numbers(:)
    call c_f_pointer(data, seen)
    call c_f_pointer(incoming%data, numbers, [incoming%data_size/4])
    seen%writes = seen%writes + 1
    seen%label = incoming%label
    seen%total = sum(int(numbers, c_int64_t))
    numbers = 2*numbers
    code = merge(int(z'21', c_int32_t), 0_c_int32_t, incoming%label == 9)
    if (len(nacelle_text(incoming%peer)) < len('10.77.0.1')) code = int(z'22', c_int32_t)
  end function

  recursive integer(c_int32_t) function read_by(incoming, data) bind(C) result(code)
    type(nacelle_incoming), intent(in) :: incoming
    type(c_ptr), value :: data
    type(log), pointer :: seen
    call c_f_pointer(data, seen)
    seen%reads = seen%reads + 1
    seen%label = incoming%label
    code = merge(0_c_int32_t, int(z'23', c_int32_t), .not. c_associated(incoming%data))
  end function

  subroutine finished(data) bind(C)
    type(c_ptr), value :: data
    integer(c_int32_t), pointer :: flag
    call c_f_pointer(data, flag)
    flag = 1
  end subroutine

end module callbacks

program main
  use, intrinsic :: iso_c_binding
  use nacelle
  use callbacks
  implicit none

  integer(c_int32_t), parameter :: window = 7
  integer(c_int64_t), parameter :: for_ever = -1
  integer :: failures = 0

  type(log), target, asynchronous :: seen
  integer(c_int32_t), target, asynchronous :: numbers(1000), back(1000), table(500), flag
  type(nacelle_acceptor) :: host, other
  type(nacelle_window) :: to_write, to_read
  type(nacelle_device) :: device
  type(nacelle_connection) :: connection
  type(nacelle_remote) :: remote
  type(nacelle_transfer) :: transfer, second
  type(nacelle_transfer_status) :: status
  type(nacelle_load) :: load
  character(:), allocatable :: address
  character(100) :: of_device
  logical(c_bool) :: done
  integer :: i

  call get_command_argument(1, of_device)
  numbers = [(i, i=1, size(numbers))]
  table = [(i*i, i=1, size(table))]

  ! Windows first, then peers.
  call expect(NACELLE_OK, nacelle_acceptor_create(acceptor=host))
  call expect(NACELLE_OK, nacelle_accept_incoming_write(host, window, c_sizeof(numbers), c_funloc(written), c_loc(seen), to_write))
  call expect(NACELLE_OK, &
    nacelle_accept_incoming_read(host, window, c_loc(table), c_sizeof(table), c_funloc(read_by), c_loc(seen), to_read))
  call expect(NACELLE_INVALID_ARGUMENT, nacelle_address(host, address))
  call expect(NACELLE_OK, nacelle_acceptor_listen(host))
  call expect(NACELLE_OK, nacelle_address(host, address))
  call expect(NACELLE_ADDRESS_TAKEN, nacelle_acceptor_open(address//'/16'//c_null_char, acceptor=other))
  call expect(NACELLE_OK, nacelle_open(address, device))
  call expect(NACELLE_OK, nacelle_connection_open(device, connection=connection))

  ! One at a time.
  call expect(NACELLE_OK, nacelle_write(connection, window, c_loc(numbers), c_sizeof(numbers), 5))
  call check(seen%writes == 1 .and. seen%label == 5 .and. seen%total == sum(numbers), 'what was written')
  call expect(NACELLE_KERNEL, nacelle_write(connection, window, c_loc(numbers), c_sizeof(numbers), 9))
  call expect(NACELLE_OK, nacelle_read(connection, window, c_loc(back), c_sizeof(table)))
  call check(all(back(:500) == table) .and. seen%reads == 0, 'what was read')
  call expect(NACELLE_REGIONS_REFUSED, nacelle_read(connection, window + 1, c_loc(back), 4_c_size_t))

  ! Many on one part of the window, which the owner has changed.
  call expect(NACELLE_OK, nacelle_connection_window_to_write(connection, window, int(c_sizeof(numbers), c_int64_t), remote))
  call expect(NACELLE_OK, nacelle_remote_write(remote, 2000_c_int64_t, c_loc(numbers(501)), 2000_c_size_t, transfer))
  call expect(NACELLE_OK, nacelle_remote_write_and_notify(remote, 0_c_int64_t, c_loc(numbers), 2000_c_size_t, 3, second))
  call expect(NACELLE_OK, nacelle_transfer_wait(second, for_ever))
  call expect(NACELLE_OK, nacelle_transfer_test(transfer, done))
  call check(logical(done) .and. seen%label == 3 .and. seen%total == sum(numbers), 'many transfers')
  call expect(NACELLE_OK, nacelle_transfer_close(transfer))
  call expect(NACELLE_OK, nacelle_transfer_close(second))
  flag = 0
  call expect(NACELLE_OK, nacelle_remote_read(remote, 0_c_int64_t, c_loc(back), c_sizeof(back), transfer))
  call expect(NACELLE_OK, nacelle_transfer_on_finish(transfer, c_funloc(finished), c_loc(flag)))
  call expect(NACELLE_OK, nacelle_transfer_wait(transfer, for_ever))
  call expect(NACELLE_OK, nacelle_transfer_close(transfer))
  call check(all(back == 2*numbers) .and. flag == 1, 'what the owner has left')
  call expect(NACELLE_OK, nacelle_remote_notify(remote, 9, transfer))
  call expect(NACELLE_KERNEL, nacelle_transfer_wait(transfer, for_ever))
  call expect(NACELLE_OK, nacelle_transfer_get_status(transfer, status))
  call check(status%state == NACELLE_CALL_FAILED .and. status%owner_result == int(z'21'), 'the result of the owner')
  call expect(NACELLE_OK, nacelle_transfer_close(transfer))
  call expect(NACELLE_OK, nacelle_remote_close(remote))

  ! A part that is read, and its owner who is told so.
  call expect(NACELLE_OK, nacelle_connection_window_to_read(connection, window, 400_c_int64_t, remote))
  table(100) = -1
  call expect(NACELLE_OK, nacelle_remote_read(remote, 396_c_int64_t, c_loc(back), 4_c_size_t, transfer))
  call expect(NACELLE_OK, nacelle_transfer_close(transfer))
  call expect(NACELLE_OK, nacelle_remote_notify(remote, 4, transfer))
  call expect(NACELLE_OK, nacelle_transfer_close(transfer))
  call check(back(1) == -1 .and. seen%reads == 1 .and. seen%label == 4, 'memory as it is now')
  call expect(NACELLE_OK, nacelle_remote_close(remote))
  call expect(NACELLE_OK, nacelle_window_close(to_write))
  call expect(NACELLE_REGIONS_REFUSED, nacelle_write(connection, window, c_loc(numbers), 4_c_size_t, 0))
  call expect(NACELLE_OK, nacelle_connection_close(connection))
  call expect(NACELLE_OK, nacelle_device_close(device))
  call expect(NACELLE_OK, nacelle_acceptor_close(host))
  call expect(NACELLE_OK, nacelle_window_close(to_read))

  ! Memory of a device, and how busy it is.
  call expect(NACELLE_OK, nacelle_open(of_device, device))
  call expect(NACELLE_OK, nacelle_connection_open(device, connection=connection))
  call expect(NACELLE_OK, nacelle_connection_remote(connection, 4000_c_int64_t, remote))
  call expect(NACELLE_OK, nacelle_device_load(device, load))
  call check(load%memory_held == 4000 .and. load%memory_bytes == 2_c_int64_t**30, 'the load')
  call expect(NACELLE_OK, nacelle_remote_write(remote, 0_c_int64_t, c_loc(numbers), c_sizeof(numbers), transfer))
  call expect(NACELLE_OK, nacelle_remote_read(remote, 0_c_int64_t, c_loc(back), c_sizeof(back), second))
  call expect(NACELLE_OK, nacelle_transfer_close(second))
  call expect(NACELLE_OK, nacelle_transfer_close(transfer))
  call check(all(back == numbers), 'memory of the device')
  call expect(NACELLE_OK, nacelle_remote_close(remote))
  call expect(NACELLE_OK, nacelle_connection_close(connection))
  call expect(NACELLE_OK, nacelle_device_close(device))
  print '(i0, a)', failures, ' failures'
  if (failures /= 0) error stop 1

contains

  subroutine expect(wanted, code)
    integer(c_int32_t), intent(in) :: wanted, code
    if (code == wanted) return
    failures = failures + 1
    print '(a, i0, 4a)', 'not ', wanted, ': ', nacelle_result_string(code), ', ', nacelle_last_error()
  end subroutine

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    failures = failures + 1
    print '(2a)', 'wrong: ', what
  end subroutine

end program main
