"""What Tailrace tells about itself: metrics, logs, spans, and the state of each part."""
