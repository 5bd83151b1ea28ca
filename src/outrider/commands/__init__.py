"""What the commands do; ``outrider.cli`` declares them and imports these modules only when one runs."""
