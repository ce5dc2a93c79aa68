"""Labels: whose words some bytes are, and how far they may go."""
