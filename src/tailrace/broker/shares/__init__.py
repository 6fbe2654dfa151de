"""Share groups (KIP-932): members share single records, each locked for who has it."""
