"""What a round takes on this device, by method: real shapes, random weights. Times are real, texts are not."""
