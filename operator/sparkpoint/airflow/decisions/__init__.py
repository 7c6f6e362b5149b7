"""What to do, decided from resources as the API server tells them. Pure: time is an argument."""
