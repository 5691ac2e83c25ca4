"""What tests of several rooms share: made-up tasks, models, shards, archives, clusters."""
