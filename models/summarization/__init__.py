"""Short questions from long ones: pointer decoder, question templates, reranker, medical entities."""
