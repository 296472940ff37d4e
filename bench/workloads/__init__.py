"""What is measured: each workload is a function from settings to rows."""
