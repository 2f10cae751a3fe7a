"""A local Alibaba Cloud: API server, instance hosts, metadata service and stand-in provider plugins."""
