"""Models that others have published: their folders in and out, by tables of names."""
