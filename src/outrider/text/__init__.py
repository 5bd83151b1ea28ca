"""From text to tokens and back: tokenizers, chat templates, growing text, stops. No torch."""
