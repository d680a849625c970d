"""The code that is sent with a job: what of a folder is taken, and the archive of it."""
