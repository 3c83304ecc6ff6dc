"""Masked-language pretraining: the base's layers adapted to texts of the domain, before a task is trained."""
