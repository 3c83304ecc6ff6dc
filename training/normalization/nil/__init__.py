"""When a coder says NIL: the threshold, and the rule that is fitted on terms taken out."""
