"""Training a drafter: data, network, loop, exports, and the report that says when it has converged."""
