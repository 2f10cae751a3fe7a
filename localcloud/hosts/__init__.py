"""Instance hosts of the local cloud: every ECS instance is a systemd container with its own network and disk.

`backend.NspawnBackend` is the whole of it to the outside. Packets of the cloud live in network namespaces of their own
(`network`), hosts boot from one public image (`image`), and the services that the cloud gives its instances (metadata,
resolver, package mirror, NAS, API) answer at the cloud's own addresses inside these namespaces (`services`).
"""
