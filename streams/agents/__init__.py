"""One module for each stage: it turns reports into model inputs, and model outputs into records."""
