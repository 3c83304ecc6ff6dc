"""Whether an effect is negated, hypothetical or another person's: rules and their trigger words."""
