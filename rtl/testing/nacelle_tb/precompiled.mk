# SPDX-License-Identifier: Apache-2.0
# Precompiles the header $(HEADER) with the options of a bench, whose makefile this includes: another option, and it would not be used.
# `runtime` makes the objects that every bench has besides its model, too, and puts them beside the header.
include Vtop.mk

.PHONY: runtime
runtime: $(addprefix $(dir $(HEADER)),$(VK_GLOBAL_OBJS))

$(HEADER).gch: $(HEADER)
	$(CXX) $(OPT_FAST) $(CXXFLAGS) $(CPPFLAGS) -x c++-header -o $@ $<

$(dir $(HEADER))%.o: $(HEADER).gch
	$(MAKE) -f Vtop.mk "USER_CPPFLAGS=-include $(HEADER)" $*.o
	cp $*.o $@
