# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the RTL tests: how a module is built and driven (bench, streams, memory) and what its types are (svtypes)."""
