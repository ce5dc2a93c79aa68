"""How people and programs prove who they are, beside leases: issuers, certificates, app passwords, and what happens to those who guess."""
