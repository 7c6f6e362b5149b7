"""What each command does: opens places, calls the repository, and returns an answer to print."""
