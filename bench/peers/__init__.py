# SPDX-License-Identifier: Apache-2.0
"""What Nacelle is measured beside."""
