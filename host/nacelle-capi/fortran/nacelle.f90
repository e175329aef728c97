! SPDX-License-Identifier: Apache-2.0
!
! Nacelle from Fortran: the functions of nacelle.h, which says what each does, and a few that take Fortran strings.
!
!     use nacelle
!     type(nacelle_device) :: device
!     type(nacelle_call) :: call
!     real(c_float), target :: values(1000)
!
!     call nacelle_check(nacelle_open('10.77.0.2', device))
!     call nacelle_check(nacelle_create(device, 1, [nacelle_inout(c_loc(values), c_sizeof(values))], call))
!     call nacelle_check(nacelle_call_invoke(call))
!     call nacelle_check(nacelle_call_wait(call, -1_c_int64_t))
!     call nacelle_check(nacelle_call_close(call))
!     call nacelle_check(nacelle_device_close(device))
!
! Buffers are used in place until nacelle_call_close() has returned: they must be targets that stay, and be left alone from
! nacelle_call_invoke() to the end of the call. Declare them asynchronous, too, if the compiler may keep them in registers. The same holds
! for buffers of transfers and of windows until nacelle_transfer_close() and nacelle_window_close() have returned.
module nacelle
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private

  ! Results: those of enum nacelle_result_code.
  integer(c_int32_t), parameter, public :: NACELLE_OK = 0
  integer(c_int32_t), parameter, public :: NACELLE_INVALID_ARGUMENT = 1
  integer(c_int32_t), parameter, public :: NACELLE_LINK = 2
  integer(c_int32_t), parameter, public :: NACELLE_ADDRESS_TAKEN = 3
  integer(c_int32_t), parameter, public :: NACELLE_NO_FREE_ADDRESS = 4
  integer(c_int32_t), parameter, public :: NACELLE_UNREACHABLE = 5
  integer(c_int32_t), parameter, public :: NACELLE_REFUSED = 6
  integer(c_int32_t), parameter, public :: NACELLE_REGIONS_REFUSED = 7
  integer(c_int32_t), parameter, public :: NACELLE_TIMEOUT = 8
  integer(c_int32_t), parameter, public :: NACELLE_LOST = 9
  integer(c_int32_t), parameter, public :: NACELLE_TRANSPORT = 10
  integer(c_int32_t), parameter, public :: NACELLE_PROTOCOL = 11
  integer(c_int32_t), parameter, public :: NACELLE_SOCKET_UNAVAILABLE = 12
  integer(c_int32_t), parameter, public :: NACELLE_KERNEL_TIMEOUT = 13
  integer(c_int32_t), parameter, public :: NACELLE_UNKNOWN_FUNCTION = 14
  integer(c_int32_t), parameter, public :: NACELLE_KERNEL = 15
  integer(c_int32_t), parameter, public :: NACELLE_NO_SUCH_DEVICE = 16
  integer(c_int32_t), parameter, public :: NACELLE_MANAGEMENT = 17
  integer(c_int32_t), parameter, public :: NACELLE_CANCELLED = 18
  integer(c_int32_t), parameter, public :: NACELLE_DEADLINE_EXCEEDED = 19
  integer(c_int32_t), parameter, public :: NACELLE_NO_FREE_CONTEXT = 20
  integer(c_int32_t), parameter, public :: NACELLE_UNSUPPORTED = 21
  integer(c_int32_t), parameter, public :: NACELLE_CLOSED = 22
  integer(c_int32_t), parameter, public :: NACELLE_NO_TARGET = 23
  integer(c_int32_t), parameter, public :: NACELLE_WINDOW_OPEN = 24
  integer(c_int32_t), parameter, public :: NACELLE_KERNEL_REFUSED = 25
  integer(c_int32_t), parameter, public :: NACELLE_SIMULATED_DEVICE = 26
  integer(c_int32_t), parameter, public :: NACELLE_NOT_ADMITTED = 27
  integer(c_int32_t), parameter, public :: NACELLE_ADMISSION_ENDED = 28
  integer(c_int32_t), parameter, public :: NACELLE_SLOT = 29
  integer(c_int32_t), parameter, public :: NACELLE_DEVICE_MEMORY = 30
  integer(c_int32_t), parameter, public :: NACELLE_COPY_FAILED = 31
  integer(c_int32_t), parameter, public :: NACELLE_COPIES_FULL = 32
  integer(c_int32_t), parameter, public :: NACELLE_INTERNAL = 1000
  integer(c_int32_t), parameter, public :: NACELLE_BAD_HANDLE = 1001
  integer(c_int32_t), parameter, public :: NACELLE_WRONG_HANDLE = 1002
  integer(c_int32_t), parameter, public :: NACELLE_CLOSED_HANDLE = 1003
  integer(c_int32_t), parameter, public :: NACELLE_BUSY = 1004
  integer(c_int32_t), parameter, public :: NACELLE_FORKED = 1005
  integer(c_int32_t), parameter, public :: NACELLE_PENDING = 1006
  integer(c_int32_t), parameter, public :: NACELLE_BUFFER_TOO_SMALL = 1007

  ! What a region is for: those of enum nacelle_role.
  integer(c_int32_t), parameter, public :: NACELLE_ROLE_INPUT = 1
  integer(c_int32_t), parameter, public :: NACELLE_ROLE_INPUT_ONCE = 2
  integer(c_int32_t), parameter, public :: NACELLE_ROLE_OUTPUT = 3
  integer(c_int32_t), parameter, public :: NACELLE_ROLE_INOUT = 4
  integer(c_int32_t), parameter, public :: NACELLE_ROLE_INOUT_ONCE = 5
  integer(c_int32_t), parameter, public :: NACELLE_ROLE_INTERNAL = 6

  ! States of a call: those of enum nacelle_call_state.
  integer(c_int32_t), parameter, public :: NACELLE_CALL_READY = 0
  integer(c_int32_t), parameter, public :: NACELLE_CALL_RUNNING = 1
  integer(c_int32_t), parameter, public :: NACELLE_CALL_DONE = 2
  integer(c_int32_t), parameter, public :: NACELLE_CALL_FAILED = 3

  ! Links: those of enum nacelle_link.
  integer(c_int32_t), parameter, public :: NACELLE_LINK_AUTO = 0
  integer(c_int32_t), parameter, public :: NACELLE_LINK_WIRE = 1
  integer(c_int32_t), parameter, public :: NACELLE_LINK_UDP = 2
  integer(c_int32_t), parameter, public :: NACELLE_LINK_SHM = 3
  integer(c_int32_t), parameter, public :: NACELLE_LINK_VERBS = 4

  type, bind(C), public :: nacelle_device
    integer(c_int64_t) :: id = 0
  end type

  type, bind(C), public :: nacelle_connection
    integer(c_int64_t) :: id = 0
  end type

  type, bind(C), public :: nacelle_call
    integer(c_int64_t) :: id = 0
  end type

  type, bind(C), public :: nacelle_remote
    integer(c_int64_t) :: id = 0
  end type

  type, bind(C), public :: nacelle_transfer
    integer(c_int64_t) :: id = 0
  end type

  type, bind(C), public :: nacelle_acceptor
    integer(c_int64_t) :: id = 0
  end type

  type, bind(C), public :: nacelle_window
    integer(c_int64_t) :: id = 0
  end type

  type, bind(C), public :: nacelle_region
    integer(c_int32_t) :: role
    integer(c_int32_t) :: reserved
    type(c_ptr) :: data
    integer(c_size_t) :: size
  end type

  ! The fields of the options are those of nacelle.h; a default object has all defaults.
  type, bind(C), public :: nacelle_device_options
    integer(c_size_t) :: size = 80
    type(c_ptr) :: wire = c_null_ptr
    type(c_ptr) :: source = c_null_ptr
    type(c_ptr) :: capture = c_null_ptr
    integer(c_int16_t) :: port = 0
    integer(c_int16_t) :: mtu = 0
    integer(c_int32_t) :: resolve_timeout_ms = 0
    integer(c_int32_t) :: timeout_ms = 0
    integer(c_int32_t) :: ack_timeout_ms = 0
    integer(c_int32_t) :: trace = 0
    integer(c_int32_t) :: progress_thread = 0
    integer(c_int32_t) :: reconnect = 0
    integer(c_int32_t) :: spin_us = 0
    integer(c_int32_t) :: link = 0
    integer(c_int32_t) :: answer_gap_us = 0
    type(c_ptr) :: link_name = c_null_ptr
  end type

  type, bind(C), public :: nacelle_call_options
    integer(c_size_t) :: size = 16
    integer(c_int32_t) :: deadline_ms = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(C), public :: nacelle_connection_options
    integer(c_size_t) :: size = 16
    integer(c_int32_t) :: contexts = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(C), public :: nacelle_connection_info
    integer(c_size_t) :: size = 24
    integer(c_int32_t) :: contexts = 0
    integer(c_int32_t) :: free_contexts = 0
    integer(c_int32_t) :: can_cancel = 0
    integer(c_int32_t) :: has_long_set_up = 0
  end type

  type, bind(C), public :: nacelle_chain_step
    integer(c_int32_t) :: function_code
    integer(c_int32_t) :: user = 0
    integer(c_int32_t) :: first_region
    integer(c_int32_t) :: region_count
  end type

  type, bind(C), public :: nacelle_call_status
    integer(c_size_t) :: size = 24
    integer(c_int32_t) :: state = 0
    integer(c_int32_t) :: device_result = 0
    integer(c_int64_t) :: bytes_received = 0
  end type

  type, bind(C), public :: nacelle_load
    integer(c_size_t) :: size = 56
    integer(c_int64_t) :: connections = 0
    integer(c_int64_t) :: memory_bytes = 0
    integer(c_int64_t) :: memory_held = 0
    integer(c_int64_t) :: calls = 0
    integer(c_int64_t) :: running = 0
    integer(c_int64_t) :: waiting = 0
  end type

  type, bind(C), public :: nacelle_transfer_status
    integer(c_size_t) :: size = 16
    integer(c_int32_t) :: state = 0
    integer(c_int32_t) :: owner_result = 0
  end type

  type, bind(C), public :: nacelle_acceptor_options
    integer(c_size_t) :: size = 64
    type(c_ptr) :: wire = c_null_ptr
    type(c_ptr) :: name = c_null_ptr
    integer(c_int64_t) :: memory_bytes = 0
    integer(c_int64_t) :: memory_per_peer = 0
    integer(c_int32_t) :: connections = 0
    integer(c_int32_t) :: connections_per_peer = 0
    integer(c_int32_t) :: contexts = 0
    integer(c_int32_t) :: callbacks = 0
    integer(c_int32_t) :: callback_time_ms = 0
    integer(c_int32_t) :: reserved = 0
  end type

  ! What a peer has done, as a callback gets it. `data` is null for a reader; c_f_pointer() makes an array of it.
  type, bind(C), public :: nacelle_incoming
    integer(c_size_t) :: size = 40
    type(c_ptr) :: peer
    integer(c_int32_t) :: window
    integer(c_int32_t) :: label
    type(c_ptr) :: data
    integer(c_size_t) :: data_size
  end type

  abstract interface
    ! What nacelle_accept_incoming_write() and nacelle_accept_incoming_read() take, by c_funloc(). Threads of the library call it, several
    ! at a time: it must be recursive, without local variables that are saved.
    integer(c_int32_t) function nacelle_incoming_callback(incoming, data) bind(C)
      import
      type(nacelle_incoming), intent(in) :: incoming
      type(c_ptr), value :: data
    end function
  end interface
  public :: nacelle_incoming_callback

  interface
    integer(c_int32_t) function nacelle_version() bind(C)
      import
    end function
    integer(c_int32_t) function nacelle_device_open(address, options, device) bind(C)
      import
      character(kind=c_char), intent(in) :: address(*)
      type(nacelle_device_options), intent(in), optional :: options
      type(nacelle_device), intent(out) :: device
    end function
    integer(c_int32_t) function nacelle_device_close(device) bind(C)
      import
      type(nacelle_device), value :: device
    end function
    integer(c_int32_t) function nacelle_device_describe(device, text, size, length) bind(C)
      import
      type(nacelle_device), value :: device
      type(c_ptr), value :: text
      integer(c_size_t), value :: size
      integer(c_size_t), intent(inout) :: length
    end function
    integer(c_int32_t) function nacelle_device_ping(device, timeout_ms, round_trip_ns) bind(C)
      import
      type(nacelle_device), value :: device
      integer(c_int32_t), value :: timeout_ms
      integer(c_int64_t), intent(out) :: round_trip_ns
    end function
    integer(c_int32_t) function nacelle_device_load(device, load) bind(C)
      import
      type(nacelle_device), value :: device
      type(nacelle_load), intent(inout) :: load
    end function
    integer(c_int32_t) function nacelle_device_fd(device, fd) bind(C)
      import
      type(nacelle_device), value :: device
      integer(c_int), intent(out) :: fd
    end function
    integer(c_int32_t) function nacelle_device_progress(device) bind(C)
      import
      type(nacelle_device), value :: device
    end function
    integer(c_int32_t) function nacelle_connection_open(device, options, connection) bind(C)
      import
      type(nacelle_device), value :: device
      type(nacelle_connection_options), intent(in), optional :: options
      type(nacelle_connection), intent(out) :: connection
    end function
    integer(c_int32_t) function nacelle_connection_get_info(connection, info) bind(C)
      import
      type(nacelle_connection), value :: connection
      type(nacelle_connection_info), intent(inout) :: info
    end function
    integer(c_int32_t) function nacelle_connection_create(connection, code, regions, count, options, new_call) bind(C)
      import
      type(nacelle_connection), value :: connection
      integer(c_int32_t), value :: code
      type(nacelle_region), intent(in) :: regions(*)
      integer(c_size_t), value :: count
      type(nacelle_call_options), intent(in), optional :: options
      type(nacelle_call), intent(out) :: new_call
    end function
    integer(c_int32_t) function nacelle_connection_create_chain(connection, steps, step_count, regions, count, options, &
                                                                new_call) bind(C)
      import
      type(nacelle_connection), value :: connection
      type(nacelle_chain_step), intent(in) :: steps(*)
      integer(c_size_t), value :: step_count
      type(nacelle_region), intent(in) :: regions(*)
      integer(c_size_t), value :: count
      type(nacelle_call_options), intent(in), optional :: options
      type(nacelle_call), intent(out) :: new_call
    end function
    integer(c_int32_t) function nacelle_connection_close(connection) bind(C)
      import
      type(nacelle_connection), value :: connection
    end function
    integer(c_int32_t) function nacelle_call_create(device, code, regions, count, options, new_call) bind(C)
      import
      type(nacelle_device), value :: device
      integer(c_int32_t), value :: code
      type(nacelle_region), intent(in) :: regions(*)
      integer(c_size_t), value :: count
      type(nacelle_call_options), intent(in), optional :: options
      type(nacelle_call), intent(out) :: new_call
    end function
    integer(c_int32_t) function nacelle_call_invoke(this) bind(C)
      import
      type(nacelle_call), value :: this
    end function
    integer(c_int32_t) function nacelle_call_invoke_with(this, user) bind(C)
      import
      type(nacelle_call), value :: this
      integer(c_int32_t), value :: user
    end function
    integer(c_int32_t) function nacelle_call_test(this, done) bind(C)
      import
      type(nacelle_call), value :: this
      logical(c_bool), intent(out) :: done
    end function
    integer(c_int32_t) function nacelle_call_wait(this, timeout_ms) bind(C)
      import
      type(nacelle_call), value :: this
      integer(c_int64_t), value :: timeout_ms
    end function
    integer(c_int32_t) function nacelle_call_get_status(this, status) bind(C)
      import
      type(nacelle_call), value :: this
      type(nacelle_call_status), intent(inout) :: status
    end function
    integer(c_int32_t) function nacelle_call_report(this, text, size, length) bind(C)
      import
      type(nacelle_call), value :: this
      type(c_ptr), value :: text
      integer(c_size_t), value :: size
      integer(c_size_t), intent(inout) :: length
    end function
    integer(c_int32_t) function nacelle_call_cancel(this) bind(C)
      import
      type(nacelle_call), value :: this
    end function
    integer(c_int32_t) function nacelle_call_on_finish(this, callback, data) bind(C)
      import
      type(nacelle_call), value :: this
      type(c_funptr), value :: callback
      type(c_ptr), value :: data
    end function
    integer(c_int32_t) function nacelle_call_close(this) bind(C)
      import
      type(nacelle_call), value :: this
    end function

    integer(c_int32_t) function nacelle_write(connection, window, data, size, label) bind(C)
      import
      type(nacelle_connection), value :: connection
      integer(c_int32_t), value :: window
      type(c_ptr), value :: data
      integer(c_size_t), value :: size
      integer(c_int32_t), value :: label
    end function
    integer(c_int32_t) function nacelle_read(connection, window, data, size) bind(C)
      import
      type(nacelle_connection), value :: connection
      integer(c_int32_t), value :: window
      type(c_ptr), value :: data
      integer(c_size_t), value :: size
    end function
    integer(c_int32_t) function nacelle_connection_remote(connection, size, remote) bind(C)
      import
      type(nacelle_connection), value :: connection
      integer(c_int64_t), value :: size
      type(nacelle_remote), intent(out) :: remote
    end function
    integer(c_int32_t) function nacelle_connection_window_to_write(connection, window, size, remote) bind(C)
      import
      type(nacelle_connection), value :: connection
      integer(c_int32_t), value :: window
      integer(c_int64_t), value :: size
      type(nacelle_remote), intent(out) :: remote
    end function
    integer(c_int32_t) function nacelle_connection_window_to_read(connection, window, size, remote) bind(C)
      import
      type(nacelle_connection), value :: connection
      integer(c_int32_t), value :: window
      integer(c_int64_t), value :: size
      type(nacelle_remote), intent(out) :: remote
    end function
    integer(c_int32_t) function nacelle_remote_close(remote) bind(C)
      import
      type(nacelle_remote), value :: remote
    end function
    integer(c_int32_t) function nacelle_remote_write(remote, offset, data, size, transfer) bind(C)
      import
      type(nacelle_remote), value :: remote
      integer(c_int64_t), value :: offset
      type(c_ptr), value :: data
      integer(c_size_t), value :: size
      type(nacelle_transfer), intent(out) :: transfer
    end function
    integer(c_int32_t) function nacelle_remote_write_and_notify(remote, offset, data, size, label, transfer) bind(C)
      import
      type(nacelle_remote), value :: remote
      integer(c_int64_t), value :: offset
      type(c_ptr), value :: data
      integer(c_size_t), value :: size
      integer(c_int32_t), value :: label
      type(nacelle_transfer), intent(out) :: transfer
    end function
    integer(c_int32_t) function nacelle_remote_read(remote, offset, data, size, transfer) bind(C)
      import
      type(nacelle_remote), value :: remote
      integer(c_int64_t), value :: offset
      type(c_ptr), value :: data
      integer(c_size_t), value :: size
      type(nacelle_transfer), intent(out) :: transfer
    end function
    integer(c_int32_t) function nacelle_remote_notify(remote, label, transfer) bind(C)
      import
      type(nacelle_remote), value :: remote
      integer(c_int32_t), value :: label
      type(nacelle_transfer), intent(out) :: transfer
    end function
    integer(c_int32_t) function nacelle_transfer_test(transfer, done) bind(C)
      import
      type(nacelle_transfer), value :: transfer
      logical(c_bool), intent(out) :: done
    end function
    integer(c_int32_t) function nacelle_transfer_wait(transfer, timeout_ms) bind(C)
      import
      type(nacelle_transfer), value :: transfer
      integer(c_int64_t), value :: timeout_ms
    end function
    integer(c_int32_t) function nacelle_transfer_on_finish(transfer, callback, data) bind(C)
      import
      type(nacelle_transfer), value :: transfer
      type(c_funptr), value :: callback
      type(c_ptr), value :: data
    end function
    integer(c_int32_t) function nacelle_transfer_get_status(transfer, status) bind(C)
      import
      type(nacelle_transfer), value :: transfer
      type(nacelle_transfer_status), intent(inout) :: status
    end function
    integer(c_int32_t) function nacelle_transfer_close(transfer) bind(C)
      import
      type(nacelle_transfer), value :: transfer
    end function
    integer(c_int32_t) function nacelle_acceptor_open(address, options, acceptor) bind(C)
      import
      character(kind=c_char), intent(in), optional :: address(*)
      type(nacelle_acceptor_options), intent(in), optional :: options
      type(nacelle_acceptor), intent(out) :: acceptor
    end function
    integer(c_int32_t) function nacelle_acceptor_create(address, options, acceptor) bind(C)
      import
      character(kind=c_char), intent(in), optional :: address(*)
      type(nacelle_acceptor_options), intent(in), optional :: options
      type(nacelle_acceptor), intent(out) :: acceptor
    end function
    integer(c_int32_t) function nacelle_acceptor_listen(acceptor) bind(C)
      import
      type(nacelle_acceptor), value :: acceptor
    end function
    integer(c_int32_t) function nacelle_acceptor_address(acceptor, text, size, length) bind(C)
      import
      type(nacelle_acceptor), value :: acceptor
      type(c_ptr), value :: text
      integer(c_size_t), value :: size
      integer(c_size_t), intent(inout) :: length
    end function
    integer(c_int32_t) function nacelle_acceptor_name(acceptor, text, size, length) bind(C)
      import
      type(nacelle_acceptor), value :: acceptor
      type(c_ptr), value :: text
      integer(c_size_t), value :: size
      integer(c_size_t), intent(inout) :: length
    end function
    integer(c_int32_t) function nacelle_acceptor_close(acceptor) bind(C)
      import
      type(nacelle_acceptor), value :: acceptor
    end function
    integer(c_int32_t) function nacelle_accept_incoming_write(acceptor, number, longest, callback, data, window) bind(C)
      import
      type(nacelle_acceptor), value :: acceptor
      integer(c_int32_t), value :: number
      integer(c_size_t), value :: longest
      type(c_funptr), value :: callback
      type(c_ptr), value :: data
      type(nacelle_window), intent(out) :: window
    end function
    integer(c_int32_t) function nacelle_accept_incoming_read(acceptor, number, buffer, size, callback, data, window) bind(C)
      import
      type(nacelle_acceptor), value :: acceptor
      integer(c_int32_t), value :: number
      type(c_ptr), value :: buffer
      integer(c_size_t), value :: size
      type(c_funptr), value :: callback
      type(c_ptr), value :: data
      type(nacelle_window), intent(out) :: window
    end function
    integer(c_int32_t) function nacelle_window_close(window) bind(C)
      import
      type(nacelle_window), value :: window
    end function

    type(c_ptr) function c_last_error() bind(C, name='nacelle_last_error')
      import
    end function
    type(c_ptr) function c_last_hint() bind(C, name='nacelle_last_hint')
      import
    end function
    type(c_ptr) function c_result_string(code) bind(C, name='nacelle_result_string')
      import
      integer(c_int32_t), value :: code
    end function
    integer(c_size_t) function c_strlen(text) bind(C, name='strlen')
      import
      type(c_ptr), value :: text
    end function
  end interface

  public :: nacelle_version
  public :: nacelle_device_open, nacelle_device_close, nacelle_device_describe, nacelle_device_ping
  public :: nacelle_device_load, nacelle_device_fd, nacelle_device_progress
  public :: nacelle_connection_open, nacelle_connection_get_info, nacelle_connection_create, nacelle_connection_create_chain
  public :: nacelle_connection_close, nacelle_call_cancel, nacelle_call_on_finish
  public :: nacelle_call_create, nacelle_call_invoke, nacelle_call_invoke_with, nacelle_call_test, nacelle_call_wait
  public :: nacelle_call_get_status, nacelle_call_report, nacelle_call_close
  public :: nacelle_write, nacelle_read, nacelle_connection_remote, nacelle_connection_window_to_write
  public :: nacelle_connection_window_to_read, nacelle_remote_close, nacelle_remote_write, nacelle_remote_write_and_notify
  public :: nacelle_remote_read, nacelle_remote_notify, nacelle_transfer_test, nacelle_transfer_wait, nacelle_transfer_on_finish
  public :: nacelle_transfer_get_status, nacelle_transfer_close
  public :: nacelle_acceptor_open, nacelle_acceptor_create, nacelle_acceptor_listen, nacelle_acceptor_address, nacelle_acceptor_name
  public :: nacelle_acceptor_close, nacelle_accept_incoming_write, nacelle_accept_incoming_read, nacelle_window_close
  public :: nacelle_open, nacelle_create, nacelle_describe, nacelle_address, nacelle_check
  public :: nacelle_last_error, nacelle_last_hint, nacelle_result_string, nacelle_text
  public :: nacelle_input, nacelle_input_once, nacelle_output, nacelle_inout, nacelle_inout_once, nacelle_internal_region

contains

  ! nacelle_device_open() with a Fortran string.
  integer(c_int32_t) function nacelle_open(address, device, options) result(code)
    character(*), intent(in) :: address
    type(nacelle_device), intent(out) :: device
    type(nacelle_device_options), intent(in), optional :: options
    code = nacelle_device_open(trim(address)//c_null_char, options, device)
  end function

  ! nacelle_call_create() with an array of regions.
  integer(c_int32_t) function nacelle_create(device, function_code, regions, new_call, options) result(code)
    type(nacelle_device), intent(in) :: device
    integer, intent(in) :: function_code
    type(nacelle_region), intent(in) :: regions(:)
    type(nacelle_call), intent(out) :: new_call
    type(nacelle_call_options), intent(in), optional :: options
    code = nacelle_call_create(device, int(function_code, c_int32_t), regions, size(regions, kind=c_size_t), options, new_call)
  end function

  ! What the device says of itself, as JSON; empty if it says nothing.
  integer(c_int32_t) function nacelle_describe(device, text) result(code)
    type(nacelle_device), intent(in) :: device
    character(:), allocatable, intent(out) :: text
    character(kind=c_char), allocatable, target :: bytes(:)
    integer(c_size_t) :: length
    text = ''
    length = 0
    code = nacelle_device_describe(device, c_null_ptr, 0_c_size_t, length)
    if (code /= NACELLE_OK) return
    allocate (bytes(length + 1))
    code = nacelle_device_describe(device, c_loc(bytes), length + 1, length)
    if (code == NACELLE_OK) text = nacelle_text(c_loc(bytes))
  end function

  ! The address that peers of an acceptor connect to.
  integer(c_int32_t) function nacelle_address(acceptor, text) result(code)
    type(nacelle_acceptor), intent(in) :: acceptor
    character(:), allocatable, intent(out) :: text
    character(kind=c_char), target :: bytes(64)
    integer(c_size_t) :: length
    text = ''
    length = 0
    code = nacelle_acceptor_address(acceptor, c_loc(bytes), size(bytes, kind=c_size_t), length)
    if (code == NACELLE_OK) text = nacelle_text(c_loc(bytes))
  end function

  ! Ends the program with the text of the last error, unless the result is NACELLE_OK.
  subroutine nacelle_check(code)
    integer(c_int32_t), intent(in) :: code
    if (code == NACELLE_OK) return
    write (error_unit, '(a)') nacelle_last_error()
    error stop 1
  end subroutine

  ! The last error of this thread, and what to try.
  function nacelle_last_error() result(text)
    character(:), allocatable :: text
    text = nacelle_text(c_last_error())
  end function

  function nacelle_last_hint() result(text)
    character(:), allocatable :: text
    text = nacelle_text(c_last_hint())
  end function

  function nacelle_result_string(code) result(text)
    integer(c_int32_t), intent(in) :: code
    character(:), allocatable :: text
    text = nacelle_text(c_result_string(code))
  end function

  ! A string of C, as `peer` of an incoming write, as a Fortran string.
  function nacelle_text(from) result(text)
    type(c_ptr), intent(in) :: from
    character(:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    integer(c_size_t) :: length, i
    length = c_strlen(from)
    call c_f_pointer(from, bytes, [length])
    allocate (character(length) :: text)
    do i = 1, length
      text(i:i) = bytes(i)
    end do
  end function

  type(nacelle_region) function make_region(role, data, bytes) result(region)
    integer(c_int32_t), intent(in) :: role
    type(c_ptr), intent(in) :: data
    integer(c_size_t), intent(in) :: bytes
    region = nacelle_region(role, 0_c_int32_t, data, bytes)
  end function

  ! Regions: the address of the first element, by c_loc(), and the number of bytes, by c_sizeof().
  type(nacelle_region) function nacelle_input(data, bytes) result(region)
    type(c_ptr), intent(in) :: data
    integer(c_size_t), intent(in) :: bytes
    region = make_region(NACELLE_ROLE_INPUT, data, bytes)
  end function

  type(nacelle_region) function nacelle_input_once(data, bytes) result(region)
    type(c_ptr), intent(in) :: data
    integer(c_size_t), intent(in) :: bytes
    region = make_region(NACELLE_ROLE_INPUT_ONCE, data, bytes)
  end function

  type(nacelle_region) function nacelle_output(data, bytes) result(region)
    type(c_ptr), intent(in) :: data
    integer(c_size_t), intent(in) :: bytes
    region = make_region(NACELLE_ROLE_OUTPUT, data, bytes)
  end function

  type(nacelle_region) function nacelle_inout(data, bytes) result(region)
    type(c_ptr), intent(in) :: data
    integer(c_size_t), intent(in) :: bytes
    region = make_region(NACELLE_ROLE_INOUT, data, bytes)
  end function

  type(nacelle_region) function nacelle_inout_once(data, bytes) result(region)
    type(c_ptr), intent(in) :: data
    integer(c_size_t), intent(in) :: bytes
    region = make_region(NACELLE_ROLE_INOUT_ONCE, data, bytes)
  end function

  type(nacelle_region) function nacelle_internal_region(bytes) result(region)
    integer(c_size_t), intent(in) :: bytes
    region = make_region(NACELLE_ROLE_INTERNAL, c_null_ptr, bytes)
  end function
end module nacelle
