"""Power cuts: a disk that remembers every write and flush, and what a file system and a program make of any moment of it."""
