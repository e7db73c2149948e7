"""Cards of datasets: what packtok knows, written for other catalogues, and theirs read as answers."""
