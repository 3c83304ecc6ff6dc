"""The short question as a part of the message: its asking clause, and in front of it what it is about."""
