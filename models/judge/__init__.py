"""The judge: a second reader of posts, which decides what the effects are that the tagger found."""
