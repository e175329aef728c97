# SPDX-License-Identifier: Apache-2.0
# Makes the bitstream of boards/agilex_f with Quartus Prime Pro 21.3 or later: not run by anybody yet.
#
#   python tools/board.py agilex_f
#   quartus_sh -t boards/agilex_f/agilex_f.tcl
#
# The first writes files.tcl, which lists the sources, and sets the addresses; all goes to build/boards/agilex_f.
load_package flow
set here [file normalize [file dirname [info script]]]
set out [file normalize $here/../../build/boards/agilex_f]
source $out/files.tcl
cd $out

exec -ignorestderr qsys-script --script=$here/ip.tcl >@ stdout

project_new agilex_f -overwrite
set_global_assignment -name TOP_LEVEL_ENTITY agilex_f
source $here/agilex_f.qsf
foreach file $nacelle_sources {set_global_assignment -name SYSTEMVERILOG_FILE $file}
foreach name {reset_release pll_250 etile_100g} {set_global_assignment -name IP_FILE $name.ip}
set_global_assignment -name SDC_FILE $here/agilex_f.sdc
foreach parameter $nacelle_parameters {
    lassign [split $parameter =] name value
    set_parameter -name $name $value
}
export_assignments
execute_flow -compile
project_close
