"""Writing of short questions: the pointer decoder, encoder-decoders of the hub, beam search."""
