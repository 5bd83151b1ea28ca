"""One small file a family: how its config maps to the decoder's. Tensor names are those of Hugging Face."""
