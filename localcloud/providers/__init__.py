"""Stand-in provider plugins of the local stack, for machines where the real ones cannot be had.

They serve the resource types that the shipped stacks use, over the same API as the real provider, and take exactly the
inputs that the real provider's schema allows. `python -m localcloud.providers` starts them; the engine attaches to
their ports.
"""
