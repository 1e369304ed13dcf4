"""Many runs of one kind: a pool of worker processes, and a record of finished jobs by which a stopped run goes on."""
