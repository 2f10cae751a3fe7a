"""API server of the local Alibaba Cloud: the RPC protocol, resources in SQLite, knobs to move the cloud's behaviour."""
