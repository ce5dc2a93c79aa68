"""One suite for every door: the same operations, under the same leases, decided alike and told in each protocol's own words."""
