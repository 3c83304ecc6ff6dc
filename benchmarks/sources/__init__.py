"""Live sources and the intake: losses under faults and kills."""
