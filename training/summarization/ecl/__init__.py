"""Entity-driven contrastive learning: its hard negatives, its losses and its trainer."""
