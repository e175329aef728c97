# SPDX-License-Identifier: Apache-2.0
# Precompiles the header $(HEADER) with the options of a bench, whose makefile this includes: another option, and it would not be used.
include Vtop.mk

$(HEADER).gch: $(HEADER)
	$(CXX) $(OPT_FAST) $(CXXFLAGS) $(CPPFLAGS) -x c++-header -o $@ $<
