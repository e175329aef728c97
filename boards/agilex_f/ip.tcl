# SPDX-License-Identifier: Apache-2.0
# The IP of boards/agilex_f, for qsys-script (Quartus Prime Pro 21.3 or later); parameters not named here have their defaults. Not run by anybody yet.
package require -exact qsys 21.3

proc ip {name kind parameters} {
    create_system $name
    set_project_property DEVICE_FAMILY {Agilex}
    set_project_property DEVICE {AGFB014R24B2E2V}
    set_project_property HIDE_FROM_IP_CATALOG {true}
    set_use_testbench_naming_pattern 0 {}
    add_instance ${kind}_0 $kind
    foreach {parameter value} $parameters {set_instance_parameter_value ${kind}_0 $parameter $value}
    set_instance_property ${kind}_0 AUTO_EXPORT true
    save_system $name.ip
}

ip reset_release altera_s10_user_rst_clkgate {}
ip pll_250 altera_iopll {
    gui_reference_clock_frequency 100.0 gui_number_of_clocks 1 gui_output_clock_frequency0 250.0 gui_use_locked 1
}
# 100 Gbit/s without RS-FEC; the recipe of the receiver's adaptation is loaded by the hard IP.
ip etile_100g alt_ehipc3_fm {
    core_variant 2 ehip_rate_gui 100G ehip_mode_gui MAC+PCS ENABLE_RSFEC 0 ENABLE_PTP 0 PHY_REFCLK 156.250000 STATUS_CLK_MHZ 100.0
    ready_latency 0 rx_bytes_to_remove {Remove CRC bytes} preamble_passthrough_gui 0 source_address_insertion_gui 0
    flow_control_gui No link_fault_mode_gui Bidirectional rx_max_frame_size_gui 9600 tx_max_frame_size_gui 9600 tx_ipg_size_gui 12
    ENABLE_ASYNC_ADAPTERS 0 rcp_load_enable 1
}
