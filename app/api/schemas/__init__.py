"""Bodies of requests and answers, as structs."""
