"""Reading what anybody may have made: bounded before it is unpacked, and refused in one sentence."""
