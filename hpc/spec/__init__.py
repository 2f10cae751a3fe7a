"""The description of a cluster: models of the stack file and every rule that a user can break."""
