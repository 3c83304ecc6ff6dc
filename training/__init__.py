"""Training runs and evaluation; publishes releases through models.releases.store and never touches Kafka."""

from models.first_words import announce_in_programs

announce_in_programs()
