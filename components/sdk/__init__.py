"""The parts of the provider's SDK that the components use, without the rest of it.

`pulumi_alicloud.ecs` and its likes import every resource that they have as soon as one is used: 0.6 s for four of them.
Loading only the modules that are needed takes 0.2 s (`benchmarks/registration.py`).
"""
