"""Training runs and evaluation; builds releases through models.releases.store and never touches Kafka."""

from models.process import prepare_program

prepare_program()
